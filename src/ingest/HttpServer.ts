/**
 * The HTTP server for deliveries, health and metrics.
 *
 * Promise: the signature is verified over the raw bytes: nothing is decompressed (415) and nothing is re-encoded. Each
 * request is answered or cut within bounded time, and takes bounded memory. Many unfinished large bodies do not keep out
 * an event of the usual size. Renewed certificates are loaded. At shutdown, requests in flight are finished first.
 *
 * `POST /hooks/{company}` deliveries · `GET /healthz` the process runs · `GET /readyz` events can be stored ·
 * `GET /metrics`. A separate listener may answer the last three; `/metrics` is then only there.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import type * as http from "node:http"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Server from "../http/Server.ts"
import * as BodyBuffer from "./BodyBuffer.ts"
import type { Answer, Ingest } from "./Ingest.ts"
import { makeReplier, plain, type Replier, type Reply, replies } from "./Reply.ts"

export interface HttpServerOptions extends Pick<
  Server.ServerOptions,
  | "host"
  | "port"
  | "tls"
  | "bodyBytesMax"
  | "requestTimeout"
  | "connectionsMax"
  | "connectionsPerAddressMax"
  | "certificateInterval"
> {
  readonly receiver: Pick<Ingest, "receive" | "refuseTooLarge" | "refuseBusy" | "signatureHeader">
  /** Memory of all bodies that are being read; default 64 MiB. */
  readonly readingBytesMax?: number | undefined
  /** Proves that events can be stored now. */
  readonly ready: Effect.Effect<unknown, { readonly message: string }>
  /** The text of `/metrics`. */
  readonly metrics: Effect.Effect<string>
  /** The separate listener for health and metrics. */
  readonly monitoring?: Pick<Server.ServerOptions, "host" | "port"> | null | undefined
  /** The bearer token of `/metrics`; none by default. */
  readonly metricsToken?: Redacted.Redacted | null | undefined
  /** Handles other paths; true when it answers. */
  readonly more?: ((request: http.IncomingMessage, response: http.ServerResponse) => boolean) | undefined
}

export interface HttpServer extends Pick<Server.Server, "port" | "url"> {
  /** The address of health and metrics. */
  readonly monitoringUrl: string
}

const readingBytesMaxDefault = 64 * 1024 * 1024
/** A body of this size is read in any case. With one on each connection, that is 64 MiB more. */
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

const replyOf = ({ status, text, retryAfterSeconds }: Answer): Reply => ({
  status,
  text,
  headers: retryAfterSeconds === null ? [] : ["Retry-After", String(retryAfterSeconds)]
})

interface ServerState {
  readonly options: HttpServerOptions
  readonly replier: Replier
  /** Runs an effect of a request for as long as the server lives. */
  readonly run: (effect: Effect.Effect<void>) => unknown
  readonly metricsTokenDigest: Buffer | null
  /** Memory of all bodies that are being read. */
  readingBytes: number
}

type Request = http.IncomingMessage
type Response = http.ServerResponse

const signaturesOf = ({ rawHeaders }: Request, signatureHeader: string): ReadonlyArray<string> => {
  const signatures: Array<string> = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    if (name.length === signatureHeader.length && name.toLowerCase() === signatureHeader) {
      signatures.push(rawHeaders[index + 1]!)
    }
  }
  return signatures
}

/** Reads a delivery, and passes it to {@link Ingest}. */
const deliver = (state: ServerState, company: string, request: Request, response: Response) => {
  const { receiver, bodyBytesMax } = state.options
  const { reply, refuse, turnAway } = state.replier
  const readingBytesMax = state.options.readingBytesMax ?? readingBytesMaxDefault
  const { headers } = request
  const encoding = headers["content-encoding"]
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    return turnAway(request, response, replies.encoded)
  }
  const announced = Number(headers["content-length"] ?? bodyBytesMax)
  const refuseTooLarge = () => refuse(request, response, replyOf(receiver.refuseTooLarge(company)))
  if (announced > bodyBytesMax) return refuseTooLarge()
  const body = BodyBuffer.make(announced)
  let countedBytes = 0
  const countMemory = (bytes: number) => {
    state.readingBytes += bytes - countedBytes
    countedBytes = bytes
  }
  const stopReading = () => {
    countMemory(0)
    request.off("data", addChunk).off("end", complete).off("close", stopReading)
  }
  const addChunk = (chunk: Buffer) => {
    if (body.size + chunk.length > bodyBytesMax) {
      stopReading()
      return refuseTooLarge()
    }
    body.add(chunk)
    countMemory(body.capacity)
    if (body.size <= smallBytes || state.readingBytes <= readingBytesMax) return
    stopReading()
    refuse(request, response, replyOf(receiver.refuseBusy(company)))
  }
  const complete = () => {
    stopReading()
    const signatures = signaturesOf(request, receiver.signatureHeader)
    receiver.receive({ company, signatures, body: body.takeAll() }, (answer) => reply(response, replyOf(answer)))
  }
  // A peer that closes the connection within the body has delivered nothing.
  request.on("data", addChunk).on("end", complete).on("close", stopReading)
}

const notReady = plain(503, "Events cannot be stored now.\n")

const readiness = ({ ready }: HttpServerOptions): Effect.Effect<Reply> =>
  ready.pipe(
    Effect.as(plain(200, "ready\n")),
    Effect.catch(() => Effect.succeed(notReady)),
    Effect.timeoutOrElse({ duration: readyMaxMs, orElse: () => Effect.succeed(notReady) })
  )

/** Replies with the result of an effect. */
const replyWith = ({ run, replier }: ServerState, response: Response, effect: Effect.Effect<Reply>) => {
  run(
    Effect.asVoid(
      Effect.onExit(effect, (exit) =>
        Effect.sync(() => replier.reply(response, Exit.isSuccess(exit) ? exit.value : replies.failed))
      )
    )
  )
}

const mayReadMetrics = ({ metricsTokenDigest }: ServerState, { headers }: Request): boolean =>
  metricsTokenDigest === null || timingSafeEqual(metricsTokenDigest, digestOf(headers.authorization ?? ""))

/** Answers requests for health and metrics; false for other paths. */
const monitor = (state: ServerState, path: string, request: Request, response: Response): boolean => {
  const { options, replier } = state
  if (path !== "/healthz" && path !== "/readyz" && path !== "/metrics") return false
  if (request.method !== "GET" && request.method !== "HEAD") replier.turnAway(request, response, replies.onlyGet)
  else if (path === "/healthz") replier.reply(response, plain(200, "ok\n"))
  else if (path === "/readyz") replyWith(state, response, readiness(options))
  else if (!mayReadMetrics(state, request)) replier.turnAway(request, response, replies.noToken)
  else {
    const page = Effect.map(options.metrics, (text) => plain(200, text))
    replyWith(state, response, page)
  }
  return true
}

const route = (state: ServerState, request: Request, response: Response) => {
  const { more, monitoring = null } = state.options
  const { turnAway } = state.replier
  const path = pathOf(request)
  const company = companyOf(path)
  if (company !== null) {
    if (request.method === "POST") return deliver(state, company, request, response)
    return turnAway(request, response, replies.onlyPost)
  }
  if (path === "/metrics" && monitoring !== null) return turnAway(request, response, replies.notFound)
  if (monitor(state, path, request, response)) return
  if (more?.(request, response) !== true) turnAway(request, response, replies.notFound)
}

/** The listener for health and metrics alone. */
const routeMonitoring = (state: ServerState, request: Request, response: Response) => {
  if (monitor(state, pathOf(request), request, response)) return
  state.replier.turnAway(request, response, replies.notFound)
}

const handleWith =
  (state: ServerState, answer: typeof route) =>
  (request: Request, response: Response): void => {
    request.on("error", () => {})
    response.on("error", () => {})
    try {
      answer(state, request, response)
    } catch (error) {
      state.run(Effect.logError("A request could not be handled", Cause.die(error)))
      state.replier.turnAway(request, response, replies.failed)
    }
  }

/** Listens until the scope ends. */
export const listen = Effect.fnUntraced(function* (
  options: HttpServerOptions
): Effect.fn.Return<HttpServer, Server.ListenError, Scope.Scope> {
  const { receiver, bodyBytesMax, monitoring = null, metricsToken = null } = options
  const replier = makeReplier(bodyBytesMax)
  const state: ServerState = {
    options,
    replier,
    run: yield* FiberSet.makeRuntime(),
    metricsTokenDigest: metricsToken === null ? null : digestOf(`Bearer ${Redacted.value(metricsToken)}`),
    readingBytes: 0
  }
  const server = yield* Server.listen({
    ...options,
    purpose: "receive deliveries",
    answersHalfOpen: true,
    isAnswered: replier.isAnswered,
    onCut: () => void receiver.refuseBusy(null),
    handle: handleWith(state, route)
  })
  replier.isStopping = server.isStopping
  const { port, url } = server
  if (monitoring === null) return { port, url, monitoringUrl: url }
  const monitoringServer = yield* Server.listen({
    ...monitoring,
    purpose: "answer health checks and metrics",
    tls: null,
    bodyBytesMax: 0,
    isAnswered: replier.isAnswered,
    handle: handleWith(state, routeMonitoring)
  })
  return { port, url, monitoringUrl: monitoringServer.url }
})
