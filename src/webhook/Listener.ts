/**
 * The HTTP side of the receiver.
 *
 * Promise: a delivery is judged by its raw bytes, as they came: nothing is decompressed (415) and nothing is re-encoded.
 * Whatever a peer sends, it is answered or cut within bounded time, and holds bounded memory meanwhile. Certificates are
 * followed as they are renewed. When it stops, what is in hand is finished first.
 *
 * `POST /hooks/{company}` deliveries · `GET /healthz` the process is there · `GET /readyz` events can be stored ·
 * `GET /metrics`.
 */
import { readFileSync } from "node:fs"
import * as http from "node:http"
import * as https from "node:https"
import type { AddressInfo, Socket } from "node:net"
import { createSecureContext } from "node:tls"
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Answer, Receiver } from "./Receiver.ts"

/** Nobody can listen as the configuration wants it. */
export class ListenError extends Data.TaggedError("ListenError")<{ readonly detail: string }> {
  override get message(): string {
    return `cannot receive deliveries: ${this.detail}`
  }
}

export interface ListenOptions {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** PEM files; null for plain HTTP, behind something that ends TLS. */
  readonly tls: { readonly certificate: string; readonly key: string } | null
  readonly bodyBytesMax: number
  readonly receiver: Pick<Receiver, "receive" | "refuseTooLarge" | "signatureHeader">
  /** Proves that events can be stored now. */
  readonly ready: Effect.Effect<unknown, { readonly message: string }>
  /** The page of `/metrics`. */
  readonly metrics: Effect.Effect<string>
  /** Asked about other paths; true when it answers. */
  readonly more?: ((request: http.IncomingMessage, response: http.ServerResponse) => boolean) | undefined
  /** How long a peer may take for a request, headers and body; default 10 s. */
  readonly requestMaxMs?: number | undefined
  /** How often the certificate's files are looked at; default a minute. */
  readonly certificateEveryMs?: number | undefined
}

export interface Listener {
  readonly port: number
  /** Where it listens; not the address that a sender outside uses. */
  readonly url: string
}

const requestMaxMsDefault = 10_000
const checkEveryMs = 1_000
/** Longer than a load balancer keeps an idle connection, so that it is never the receiver that closes first. */
const keepAliveMs = 65_000
const connectionsMax = 1_024
/** Of all requests that are being read. */
const readingBytesMax = 64 * 1024 * 1024
const stopMaxMs = 5_000
const certificateEveryMsDefault = 60_000
const readyMaxMs = 5_000

const hooks = /^\/hooks\/([^/]{1,192})$/
const companyName = /^[A-Za-z0-9_-]{1,64}$/

/** The company that a path names, or null. */
const companyOf = (path: string): string | null => {
  const part = hooks.exec(path)?.[1]
  if (part === undefined) return null
  if (companyName.test(part)) return part
  if (!part.includes("%")) return null
  try {
    const name = decodeURIComponent(part)
    return companyName.test(name) ? name : null
  } catch {
    return null
  }
}

const headersOf = (text: string): ReadonlyArray<string> => [
  "Content-Type",
  "text/plain; charset=utf-8",
  "Content-Length",
  String(Buffer.byteLength(text))
]

const plain = (status: number, text: string): Reply => ({ status, text, headers: [] })

interface Reply {
  readonly status: number
  readonly text: string
  readonly headers: ReadonlyArray<string>
}

const replies = {
  notFound: plain(404, "There is nothing here.\n"),
  encoded: plain(415, "The body must not be compressed: it is judged as it is sent.\n"),
  busy: { ...plain(503, "Too much is being received. Send it again.\n"), headers: ["Retry-After", "10"] },
  onlyPost: { ...plain(405, "Only POST.\n"), headers: ["Allow", "POST"] },
  onlyGet: { ...plain(405, "Only GET.\n"), headers: ["Allow", "GET, HEAD"] },
  failed: plain(500, "Something went wrong here. Send it again.\n")
} as const

const replyOf = ({ status, text, retryAfterSeconds }: Answer): Reply => ({
  status,
  text,
  headers: retryAfterSeconds === null ? [] : ["Retry-After", String(retryAfterSeconds)]
})

/** Listens until the scope ends. */
export const listen = Effect.fnUntraced(function* (
  options: ListenOptions
): Effect.fn.Return<Listener, ListenError, Scope.Scope> {
  const { receiver, bodyBytesMax, more } = options
  const run = yield* FiberSet.makeRuntime()
  const requestMaxMs = options.requestMaxMs ?? requestMaxMsDefault
  /** Where half of an answer has been written, so that no other one may follow. */
  const answered = new WeakSet<Socket>()
  let isStopping = false
  let readingBytes = 0

  const reply = (response: http.ServerResponse, { status, text, headers }: Reply) => {
    if (response.headersSent || response.destroyed) return
    if (isStopping) response.shouldKeepAlive = false
    if (status === 204) {
      response.writeHead(204)
      response.end()
      return
    }
    response.writeHead(status, [...headersOf(text), ...headers])
    response.end(text)
  }

  /**
   * Answers before the body has come, and ends the connection. The answer goes out at once; a peer that goes on sending
   * all the same is listened to for a little while, since cutting it off could cost it the answer.
   */
  const refuse = (request: http.IncomingMessage, response: http.ServerResponse, { status, text, headers }: Reply) => {
    if (response.headersSent || response.destroyed) return
    answered.add(request.socket)
    response.writeHead(status, [...headersOf(text), "Connection", "close", ...headers])
    response.write(text)
    const end = () => response.end()
    let discarded = 0
    request.on("data", (chunk: Buffer) => {
      discarded += chunk.length
      if (discarded > 4 * bodyBytesMax) end()
    })
    request.once("end", end)
    request.once("close", end)
    if (request.complete) end()
    request.resume()
  }
  const hasBody = ({ headers }: http.IncomingMessage) =>
    headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0"
  /** For requests that are not read. */
  const turnAway = (request: http.IncomingMessage, response: http.ServerResponse, one: Reply) =>
    hasBody(request) ? refuse(request, response, one) : reply(response, one)

  const signaturesOf = ({ rawHeaders }: http.IncomingMessage): ReadonlyArray<string> => {
    const found: Array<string> = []
    const { signatureHeader } = receiver
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index]!
      if (name.length === signatureHeader.length && name.toLowerCase() === signatureHeader) {
        found.push(rawHeaders[index + 1]!)
      }
    }
    return found
  }

  const deliver = (company: string, request: http.IncomingMessage, response: http.ServerResponse) => {
    const { headers } = request
    const encoding = headers["content-encoding"]
    if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
      return turnAway(request, response, replies.encoded)
    }
    const tooLarge = () => refuse(request, response, replyOf(receiver.refuseTooLarge(company)))
    if (Number(headers["content-length"] ?? 0) > bodyBytesMax) return tooLarge()
    const chunks: Array<Buffer> = []
    let size = 0
    const forget = () => {
      readingBytes -= size
      size = 0
      chunks.length = 0
      request.off("data", take).off("end", complete).off("close", forget)
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      readingBytes += chunk.length
      chunks.push(chunk)
      if (size <= bodyBytesMax && readingBytes <= readingBytesMax) return
      const isTooLarge = size > bodyBytesMax
      forget()
      if (isTooLarge) tooLarge()
      else refuse(request, response, replies.busy)
    }
    const complete = () => {
      const [first] = chunks
      const body = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
      forget()
      receiver.receive({ company, signatures: signaturesOf(request), body }, (answer) =>
        reply(response, replyOf(answer))
      )
    }
    // A peer that goes away in the middle has sent nothing; nobody is told.
    request.on("data", take).on("end", complete).on("close", forget)
  }

  /** Answers with what an effect comes to. */
  const eventually = (response: http.ServerResponse, effect: Effect.Effect<Reply>) => {
    run(
      Effect.onExit(effect, (exit) =>
        Effect.sync(() => reply(response, Exit.isSuccess(exit) ? exit.value : replies.failed))
      )
    )
  }
  const readiness = options.ready.pipe(
    Effect.as(plain(200, "ready\n")),
    Effect.catch(() => Effect.succeed(plain(503, "Events cannot be stored now.\n"))),
    Effect.timeoutOrElse({
      duration: readyMaxMs,
      orElse: () => Effect.succeed(plain(503, "Events cannot be stored now.\n"))
    })
  )

  const route = (request: http.IncomingMessage, response: http.ServerResponse) => {
    const { url = "/", method } = request
    const end = url.indexOf("?")
    const path = end < 0 ? url : url.slice(0, end)
    const company = companyOf(path)
    if (company !== null) {
      return method === "POST" ? deliver(company, request, response) : turnAway(request, response, replies.onlyPost)
    }
    if (path !== "/healthz" && path !== "/readyz" && path !== "/metrics") {
      if (more?.(request, response) !== true) turnAway(request, response, replies.notFound)
      return
    }
    if (method !== "GET" && method !== "HEAD") return turnAway(request, response, replies.onlyGet)
    if (path === "/healthz") return reply(response, plain(200, "ok\n"))
    eventually(response, path === "/readyz" ? readiness : Effect.map(options.metrics, (text) => plain(200, text)))
  }
  const handle = (request: http.IncomingMessage, response: http.ServerResponse) => {
    request.on("error", () => {})
    response.on("error", () => {})
    try {
      route(request, response)
    } catch (error) {
      run(Effect.logError("A request could not be handled", Cause.die(error)))
      turnAway(request, response, replies.failed)
    }
  }

  const settings: http.ServerOptions = {
    headersTimeout: requestMaxMs,
    requestTimeout: requestMaxMs,
    connectionsCheckingInterval: Math.min(checkEveryMs, requestMaxMs),
    keepAliveTimeout: keepAliveMs,
    noDelay: true
  }
  const { tls } = options
  const pem = tls === null ? null : yield* readPem(tls)
  const server =
    pem === null
      ? http.createServer(settings, handle)
      : https.createServer({ ...settings, ...pem, minVersion: "TLSv1.2", handshakeTimeout: requestMaxMs }, handle)
  server.maxConnections = connectionsMax
  // Whoever asks before sending is told before sending.
  server.on("checkContinue", (request: http.IncomingMessage, response: http.ServerResponse) => {
    if (Number(request.headers["content-length"] ?? 0) <= bodyBytesMax) response.writeContinue()
    handle(request, response)
  })
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === "ECONNRESET" || !socket.writable || answered.has(socket)) {
      socket.destroy()
      return
    }
    const status = statusOf(error.code)
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy())
  })

  yield* Effect.acquireRelease(
    Effect.callback<void, ListenError>((resume) => {
      server.once("error", (error) => resume(Effect.fail(listenError(options, error))))
      server.listen(options.port, options.host, () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        isStopping = true
        server.close(() => resume(Effect.void))
        server.closeIdleConnections()
      }).pipe(
        Effect.timeoutOrElse({ duration: stopMaxMs, orElse: () => Effect.sync(() => server.closeAllConnections()) })
      )
  )
  server.on("error", () => {})
  if (tls !== null && server instanceof https.Server) {
    yield* Effect.forkScoped(follow(server, tls, pem, options.certificateEveryMs ?? certificateEveryMsDefault))
  }
  const address = server.address()
  const port = isAddress(address) ? address.port : options.port
  const host = options.host.includes(":") ? `[${options.host}]` : options.host
  return { port, url: `${tls === null ? "http" : "https"}://${host}:${port}` }
})

const isAddress = (address: AddressInfo | string | null): address is AddressInfo =>
  typeof address === "object" && address !== null

const statusOf = (code: string | undefined): string => {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return "408 Request Timeout"
    case "HPE_HEADER_OVERFLOW":
      return "431 Request Header Fields Too Large"
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return "413 Payload Too Large"
    default:
      return "400 Bad Request"
  }
}

const listenError = ({ host, port }: ListenOptions, error: NodeJS.ErrnoException): ListenError => {
  const at = `${host}:${port}`
  switch (error.code) {
    case "EADDRINUSE":
      return new ListenError({ detail: `${at} is in use; stop the other program, or name another port` })
    case "EACCES":
      return new ListenError({ detail: `${at} is not allowed to this user; name a port above 1023` })
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new ListenError({ detail: `${host} is no address of this machine` })
    default:
      return new ListenError({ detail: `${at}: ${error.message}` })
  }
}

// -------------------------------------------------------------------------------------------------------- certificates

interface Pem {
  readonly cert: string
  readonly key: string
}

/** Reads both files and proves that they fit each other. What is wrong never quotes what stands in them. */
const readPem = (tls: NonNullable<ListenOptions["tls"]>): Effect.Effect<Pem, ListenError> =>
  Effect.try({
    try: () => {
      const pem = { cert: readFileSync(tls.certificate, "utf8"), key: readFileSync(tls.key, "utf8") }
      createSecureContext({ ...pem, minVersion: "TLSv1.2" })
      return pem
    },
    catch: (error) =>
      new ListenError({
        detail: `certificate ${tls.certificate} and key ${tls.key} cannot be used (${error instanceof Error ? error.message : "unknown"})`
      })
  })

/** Takes a renewed certificate over; a broken one is told once and the old one stays. */
const follow = (
  server: https.Server,
  tls: NonNullable<ListenOptions["tls"]>,
  first: Pem | null,
  everyMs: number
): Effect.Effect<never> =>
  Effect.gen(function* () {
    let current = first
    let told: string | null = null
    for (;;) {
      yield* Effect.sleep(everyMs)
      const read = yield* Effect.result(readPem(tls))
      if (Result.isFailure(read)) {
        const { detail } = read.failure
        if (detail !== told)
          yield* Effect.logWarning(`The renewed certificate is not used, the old one stays: ${detail}`)
        told = detail
        continue
      }
      told = null
      const pem = read.success
      if (pem.cert === current?.cert && pem.key === current.key) continue
      server.setSecureContext({ ...pem, minVersion: "TLSv1.2" })
      current = pem
      yield* Effect.logInfo("The renewed certificate is used from now on")
    }
  })
