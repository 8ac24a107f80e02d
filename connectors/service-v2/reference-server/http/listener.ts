/**
 * Transport of requests and answers over sockets.
 *
 * Promise: no input makes the server hang or crash: bodies are bounded, parser errors are answered in the one envelope,
 * and closing ends every connection at once. Faults of the wire are applied only here.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { createServer } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { ApiError, printEnvelope } from "../ApiError.ts"
import type { Fault, WireFault } from "./faults.ts"
import type { Answer, Request } from "./Message.ts"
import type { Certificate } from "./certificate.ts"

/** The functions that answer requests. */
export interface Handler {
  readonly bodyBytesMax: number
  /** Refuses a request before its body is read; default none is refused. */
  readonly refuse?: (request: Request) => Answer | null
  readonly draw: (request: Request) => Fault | null
  readonly answer: (request: Request, fault: Fault | null) => Answer
  readonly hold: (request: Request) => () => void
  /** Waits, by the clock of the server's caller. */
  readonly sleep: (ms: number) => Promise<void>
}

/**
 * Time for which an answered request is still read after its body was too long. A connection that is closed before its
 * bytes were read is reset, and the answer is lost with it.
 */
const lingerMs = 1000

/** Reads a body. A result of one byte more than allowed stands for a longer body, whose rest is discarded. */
const readBody = (message: IncomingMessage, bytesMax: number): Promise<Uint8Array | null> =>
  new Promise((resolve, reject) => {
    const chunks: Array<Buffer> = []
    let length = 0
    message.on("data", (chunk: Buffer) => {
      if (length > bytesMax) return
      length += chunk.length
      if (length <= bytesMax) {
        chunks.push(chunk)
        return
      }
      chunks.length = 0
      resolve(new Uint8Array(bytesMax + 1))
    })
    message.on("end", () => resolve(length === 0 ? null : Buffer.concat(chunks)))
    message.on("error", reject)
    message.on("close", () => reject(new Error("the connection closed inside the request")))
  })

const headersOf = (message: IncomingMessage): Record<string, string | undefined> => {
  const headers: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(message.headers)) {
    headers[name] = Array.isArray(value) ? value.join(", ") : value
  }
  return headers
}

/** Ends a connection without an answer: by a TCP reset, or under TLS, which has none, by closing it. */
const reset = (socket: Socket | null) => {
  if (socket instanceof TLSSocket) socket.destroy()
  else socket?.resetAndDestroy()
}

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const go = () => {
      response.off("drain", go).off("close", go)
      resolve()
    }
    response.once("drain", go).once("close", go)
  })

/** Sends the body of a slow answer in pieces. */
const drip = async (response: ServerResponse, body: Buffer, { bytes, ms }: WireFault, sleep: Handler["sleep"]) => {
  const piece = Math.max(1, bytes ?? Math.ceil(body.length / 10))
  for (let sent = 0; sent < body.length && !response.destroyed; sent += piece) {
    response.write(body.subarray(sent, sent + piece))
    await sleep(ms)
  }
  response.end()
}

const send = async (response: ServerResponse, answer: Answer, isHead: boolean, sleep: Handler["sleep"]) => {
  const { wire } = answer
  if (wire?.kind === "reset" || wire?.kind === "dropResponse") {
    reset(response.socket)
    return
  }
  response.sendDate = answer.headers["Date"] === undefined
  const { headers } = answer
  if (answer.chunks !== undefined) {
    response.writeHead(answer.status, headers)
    for (const chunk of answer.chunks) {
      if (response.destroyed) return
      if (!response.write(chunk)) await drained(response)
    }
    response.end()
    return
  }
  const body = answer.bytes === undefined ? Buffer.from(answer.body) : Buffer.from(answer.bytes)
  response.writeHead(answer.status, { ...headers, "Content-Length": body.length })
  if (isHead) {
    response.end()
  } else if (wire?.kind === "truncate") {
    const cut = body.subarray(0, Math.min(wire.bytes ?? body.length >> 1, Math.max(0, body.length - 1)))
    response.write(cut, () => response.socket?.destroy())
  } else if (wire?.kind === "slowBody") {
    await drip(response, body, wire, sleep)
  } else {
    response.end(body)
  }
}

const respond = async (handler: Handler, message: IncomingMessage, response: ServerResponse) => {
  let request: Request = {
    method: message.method ?? "GET",
    url: message.url ?? "/",
    headers: headersOf(message),
    body: null,
    address: message.socket.remoteAddress ?? ""
  }
  const fault = handler.draw(request)
  if (fault?.kind === "reset") {
    handler.answer(request, fault)
    reset(message.socket)
    return
  }
  const refused = handler.refuse?.(request) ?? null
  const bodyBytesMax = refused === null ? handler.bodyBytesMax : 0
  request = { ...request, body: await readBody(message, bodyBytesMax) }
  if (fault?.kind === "delay") {
    const release = handler.hold(request)
    await handler.sleep(fault.ms)
    release()
  }
  const reply = refused ?? handler.answer(request, fault)
  const answer = reply.pending === undefined ? reply : await reply.pending
  await send(response, answer, request.method === "HEAD", handler.sleep)
  if ((request.body?.length ?? 0) <= bodyBytesMax) return
  await handler.sleep(lingerMs)
  if (!message.complete) message.destroy()
}

/** Answers bytes that are not an HTTP request. */
const refuseBytes = (socket: Socket) => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const body = printEnvelope(new ApiError("invalid_request", "this is no HTTP request that the service can read"))
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`
  )
}

/** A server for a handler; the caller listens and closes. With a certificate it speaks HTTPS only. */
export const listener = (
  handler: Handler,
  onDefect: (error: unknown) => void,
  certificate: Certificate | null = null
): Server => {
  const answer = (message: IncomingMessage, response: ServerResponse) => {
    respond(handler, message, response).catch((error: unknown) => {
      if (!message.destroyed && !response.headersSent) onDefect(error)
      response.destroy()
    })
  }
  const options = { keepAliveTimeout: 65_000, headersTimeout: 30_000, requestTimeout: 60_000, noDelay: true }
  const server =
    certificate === null ? createServer(options, answer) : createTlsServer({ ...options, ...certificate }, answer)
  server.on("clientError", (_error, socket) => refuseBytes(socket as Socket))
  server.on("connect", (_request, socket) => refuseBytes(socket as Socket))
  return server
}
