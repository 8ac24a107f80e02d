/**
 * The HTTP side of the receiver.
 *
 * Promise: a delivery is judged by its raw bytes, as they came: nothing is decompressed (415) and nothing is re-encoded.
 * Whatever a peer sends, it is answered or cut within bounded time, and holds bounded memory meanwhile; many who send
 * large bodies and do not end them keep no event of the usual size from being received. Certificates are followed as they
 * are renewed. When it stops, what is in hand is finished first.
 *
 * `POST /hooks/{company}` deliveries · `GET /healthz` the process is there · `GET /readyz` events can be stored ·
 * `GET /metrics`. A listener of their own may answer the last three; `/metrics` is then there only.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import type * as http from "node:http"
import type { Socket } from "node:net"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Server from "../http/Server.ts"
import * as BodyBuffer from "./BodyBuffer.ts"
import type { Answer, Ingest } from "./Ingest.ts"

export interface HttpServerOptions extends Pick<
  Server.ServerOptions,
  | "host"
  | "port"
  | "tls"
  | "bodyBytesMax"
  | "requestMaxMs"
  | "connectionsMax"
  | "connectionsPerAddressMax"
  | "certificateEveryMs"
> {
  readonly receiver: Pick<Ingest, "receive" | "refuseTooLarge" | "refuseBusy" | "signatureHeader">
  /** What the bodies that are being read may take together; default 64 MiB. */
  readonly readingBytesMax?: number | undefined
  /** Proves that events can be stored now. */
  readonly ready: Effect.Effect<unknown, { readonly message: string }>
  /** The page of `/metrics`. */
  readonly metrics: Effect.Effect<string>
  /** A listener of its own for health and metrics. */
  readonly monitoring?: Pick<Server.ServerOptions, "host" | "port"> | null | undefined
  /** The bearer token that `/metrics` wants; none by default. */
  readonly metricsToken?: Redacted.Redacted | null | undefined
  /** Asked about other paths; true when it answers. */
  readonly more?: ((request: http.IncomingMessage, response: http.ServerResponse) => boolean) | undefined
}

export interface HttpServer extends Pick<Server.Server, "port" | "url"> {
  /** Where health and metrics are answered. */
  readonly monitoringUrl: string
}

const readingBytesMaxDefault = 64 * 1024 * 1024
/** A body of this size is read however much is being read: with as many as there are connections, 64 MiB more. */
const smallBytes = 64 * 1024
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

const pathOf = ({ url = "/" }: http.IncomingMessage): string => {
  const end = url.indexOf("?")
  return end < 0 ? url : url.slice(0, end)
}

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest()

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
  onlyPost: { ...plain(405, "Only POST.\n"), headers: ["Allow", "POST"] },
  noToken: {
    ...plain(401, "The bearer token of the metrics is missing or wrong.\n"),
    headers: ["WWW-Authenticate", "Bearer"]
  },
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
  options: HttpServerOptions
): Effect.fn.Return<HttpServer, Server.ListenError, Scope.Scope> {
  const { receiver, bodyBytesMax, more, monitoring = null, metricsToken = null } = options
  const readingBytesMax = options.readingBytesMax ?? readingBytesMaxDefault
  const run = yield* FiberSet.makeRuntime()
  /** Where half of an answer has been written, so that no other one may follow. */
  const answered = new WeakSet<Socket>()
  /** Set as soon as it listens. */
  let isStopping = () => false
  let readingBytes = 0

  const reply = (response: http.ServerResponse, { status, text, headers }: Reply) => {
    if (response.headersSent || response.destroyed) return
    if (isStopping()) response.shouldKeepAlive = false
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
    const announced = Number(headers["content-length"] ?? bodyBytesMax)
    const tooLarge = () => refuse(request, response, replyOf(receiver.refuseTooLarge(company)))
    if (announced > bodyBytesMax) return tooLarge()
    const body = BodyBuffer.make(announced)
    let held = 0
    const hold = (bytes: number) => {
      readingBytes += bytes - held
      held = bytes
    }
    const forget = () => {
      hold(0)
      request.off("data", take).off("end", complete).off("close", forget)
    }
    const take = (chunk: Buffer) => {
      if (body.size + chunk.length > bodyBytesMax) {
        forget()
        return tooLarge()
      }
      body.add(chunk)
      hold(body.held)
      if (body.size <= smallBytes || readingBytes <= readingBytesMax) return
      forget()
      refuse(request, response, replyOf(receiver.refuseBusy(company)))
    }
    const complete = () => {
      forget()
      receiver.receive({ company, signatures: signaturesOf(request), body: body.handOver() }, (answer) =>
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

  /** Answers what asks how the process is; true when it does. */
  const monitor = (path: string, request: http.IncomingMessage, response: http.ServerResponse): boolean => {
    if (path !== "/healthz" && path !== "/readyz" && path !== "/metrics") return false
    if (request.method !== "GET" && request.method !== "HEAD") turnAway(request, response, replies.onlyGet)
    else if (path === "/healthz") reply(response, plain(200, "ok\n"))
    else if (path === "/readyz") eventually(response, readiness)
    else if (!mayReadMetrics(request)) turnAway(request, response, replies.noToken)
    else
      eventually(
        response,
        Effect.map(options.metrics, (text) => plain(200, text))
      )
    return true
  }
  const tokenDigest = metricsToken === null ? null : digestOf(`Bearer ${Redacted.value(metricsToken)}`)
  const mayReadMetrics = ({ headers }: http.IncomingMessage): boolean =>
    tokenDigest === null || timingSafeEqual(tokenDigest, digestOf(headers.authorization ?? ""))

  const route = (request: http.IncomingMessage, response: http.ServerResponse) => {
    const { method } = request
    const path = pathOf(request)
    const company = companyOf(path)
    if (company !== null) {
      return method === "POST" ? deliver(company, request, response) : turnAway(request, response, replies.onlyPost)
    }
    if (path === "/metrics" && monitoring !== null) return turnAway(request, response, replies.notFound)
    if (monitor(path, request, response)) return
    if (more?.(request, response) !== true) turnAway(request, response, replies.notFound)
  }
  const handle = (request: http.IncomingMessage, response: http.ServerResponse, answer = route) => {
    request.on("error", () => {})
    response.on("error", () => {})
    try {
      answer(request, response)
    } catch (error) {
      run(Effect.logError("A request could not be handled", Cause.die(error)))
      turnAway(request, response, replies.failed)
    }
  }

  const server = yield* Server.listen({
    ...options,
    purpose: "receive deliveries",
    answersHalfOpen: true,
    isAnswered: (socket) => answered.has(socket),
    onCut: () => void receiver.refuseBusy(null),
    handle: (request, response) => handle(request, response)
  })
  isStopping = server.isStopping
  const { port, url } = server
  if (monitoring === null) return { port, url, monitoringUrl: url }
  const own = yield* Server.listen({
    ...monitoring,
    purpose: "answer health checks and metrics",
    tls: null,
    bodyBytesMax: 0,
    isAnswered: (socket) => answered.has(socket),
    handle: (request, response) =>
      handle(request, response, () => {
        if (!monitor(pathOf(request), request, response)) turnAway(request, response, replies.notFound)
      })
  })
  return { port, url, monitoringUrl: own.url }
})
