/**
 * An HTTP server with limits on time and connections.
 *
 * Promise: a peer that sends slowly or not at all, or does not read its answer, is cut within bounded time, with or
 * without TLS. `ConnectionLimit.ts` bounds the connections. Renewed certificates are loaded. When it stops, it accepts
 * no more requests and finishes those in flight. The error of a failure to listen has a remedy.
 */
import * as http from "node:http"
import * as https from "node:https"
import type { AddressInfo, Socket } from "node:net"
import { createSecureContext } from "node:tls"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as ReadFile from "../files/ReadFile.ts"
import * as ConnectionLimit from "./ConnectionLimit.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** The server cannot listen at the configured address, or with the configured certificate. */
export class ListenError extends Data.TaggedError("ListenError")<{
  readonly purpose: string
  readonly detail: string
}> {
  override get message(): string {
    return `cannot ${this.purpose}: ${this.detail}`
  }
}

/** PEM files. */
export interface Tls {
  readonly certificate: string
  readonly key: string
}

export interface ServerOptions {
  /** The purpose of the server in messages: `receive deliveries`. */
  readonly purpose: string
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Null for plain HTTP, behind a proxy that ends TLS. */
  readonly tls: Tls | null
  /** A peer that announces a larger body with `Expect: 100-continue` gets no `100 Continue`. */
  readonly bodyBytesMax: number
  /** How long a peer may take for a request, headers and body; default 10 s. */
  readonly requestTimeout?: Duration.Duration | undefined
  /** How long a connection may be silent during an answer; default a minute. */
  readonly silenceTimeout?: Duration.Duration | undefined
  /**
   * Whether a peer that ends its side after its request is still answered (not over TLS); otherwise it counts as gone.
   * Default false.
   */
  readonly answersHalfOpen?: boolean | undefined
  /** Default 1,024. */
  readonly connectionsMax?: number | undefined
  /** Slow connections of one address, as in `ConnectionLimitOptions.perAddressMax`; default 64. */
  readonly connectionsPerAddressMax?: number | undefined
  /** A connection with a request was cut for another one, or a new connection found no place. */
  readonly onCut?: (() => void) | undefined
  /** How often the certificate's files are read; default a minute. */
  readonly certificateInterval?: Duration.Duration | undefined
  /** Whether a part of an answer was sent on the socket, so that no other answer may follow. */
  readonly isAnswered?: ((socket: Socket) => boolean) | undefined
  /** Answers a request; never throws. */
  readonly handle: (request: http.IncomingMessage, response: http.ServerResponse) => void
}

export interface Server {
  readonly port: number
  /** The address it listens at; a sender outside may use another one. */
  readonly url: string
  /** Whether it accepts no more requests. Connections are not kept alive then. */
  readonly isStopping: () => boolean
}

const requestTimeoutDefault = Duration.seconds(10)
const silenceTimeoutDefault = Duration.minutes(1)
const checkEveryMs = 1_000
/** Longer than a load balancer keeps an idle connection: this side never closes first. */
const keepAliveMs = 65_000
const connectionsMaxDefault = 1_024
const connectionsPerAddressMaxDefault = 64
/** The last answer to a peer that is cut must leave within this time. */
const lastWordMaxMs = 1_000
const stopMaxMs = 5_000
const certificateIntervalDefault = Duration.minutes(1)

/** Listens until the scope ends. */
export const listen = Effect.fnUntraced(function* (
  options: ServerOptions
): Effect.fn.Return<Server, ListenError, Scope.Scope> {
  const { purpose, tls, bodyBytesMax } = options
  const clock = yield* Clock.Clock
  const limit = ConnectionLimit.make({
    connectionsMax: options.connectionsMax ?? connectionsMaxDefault,
    perAddressMax: options.connectionsPerAddressMax ?? connectionsPerAddressMaxDefault,
    nowMs: () => MonotonicClock.nowMs(clock),
    onCut: options.onCut ?? (() => {})
  })
  const handle: typeof options.handle = (request, response) => {
    if (limit.begin(request, response)) options.handle(request, response)
  }
  const requestTimeout = Duration.toMillis(options.requestTimeout ?? requestTimeoutDefault)
  const run = yield* FiberSet.makeRuntime()
  let isStopping = false
  const settings: http.ServerOptions = {
    headersTimeout: requestTimeout,
    requestTimeout,
    connectionsCheckingInterval: Math.min(checkEveryMs, requestTimeout),
    keepAliveTimeout: keepAliveMs,
    noDelay: true
  }
  const pem = tls === null ? null : yield* readPem(purpose, tls)
  const server =
    pem === null
      ? http.createServer(settings, handle)
      : https.createServer({ ...settings, ...pem, minVersion: "TLSv1.2", handshakeTimeout: requestTimeout }, handle)
  server.timeout = Duration.toMillis(options.silenceTimeout ?? silenceTimeoutDefault)
  Object.assign(server, { httpAllowHalfOpen: options.answersHalfOpen === true })
  server.on("connection", limit.add)
  // A peer with `Expect: 100-continue` is answered before it sends its body.
  server.on("checkContinue", (request: http.IncomingMessage, response: http.ServerResponse) => {
    if (Number(request.headers["content-length"] ?? 0) <= bodyBytesMax) response.writeContinue()
    handle(request, response)
  })
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    const status = statusOf(error.code)
    if (status === null || !socket.writable || options.isAnswered?.(socket) === true) {
      socket.destroy()
      return
    }
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy())
    run(
      Effect.delay(
        Effect.sync(() => socket.destroy()),
        lastWordMaxMs
      )
    )
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
    const interval = options.certificateInterval ?? certificateIntervalDefault
    yield* Effect.forkScoped(follow(server, purpose, tls, pem, interval))
  }
  const address = server.address()
  const port = isAddress(address) ? address.port : options.port
  const host = options.host.includes(":") ? `[${options.host}]` : options.host
  return { port, url: `${tls === null ? "http" : "https"}://${host}:${port}`, isStopping: () => isStopping }
})

const isAddress = (address: AddressInfo | string | null): address is AddressInfo =>
  typeof address === "object" && address !== null

/** The answer to a malformed request; null where there is no peer to answer, as before the end of a handshake. */
const statusOf = (code: string | undefined): string | null => {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return "408 Request Timeout"
    case "HPE_HEADER_OVERFLOW":
      return "431 Request Header Fields Too Large"
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return "413 Payload Too Large"
    default:
      return code?.startsWith("HPE_") === true ? "400 Bad Request" : null
  }
}

const listenError = ({ purpose, host, port }: ServerOptions, error: NodeJS.ErrnoException): ListenError => {
  const at = `${host}:${port}`
  const failure = (detail: string) => new ListenError({ purpose, detail })
  switch (error.code) {
    case "EADDRINUSE":
      return failure(`${at} is in use; stop the other program, or name another port`)
    case "EACCES":
      return failure(`${at} is not allowed to this user; name a port above 1023`)
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return failure(`${host} is no address of this machine`)
    default:
      return failure(`${at}: ${error.message}`)
  }
}

// -------------------------------------------------------------------------------------------------------- certificates

interface Pem {
  readonly cert: string
  readonly key: string
}

/** Reads both files and proves that they fit each other. An error never quotes their content. */
const readPem = (purpose: string, tls: Tls): Effect.Effect<Pem, ListenError> =>
  Effect.try({
    try: () => {
      const pem = { cert: ReadFile.text(tls.certificate), key: ReadFile.text(tls.key) }
      createSecureContext({ ...pem, minVersion: "TLSv1.2" })
      return pem
    },
    catch: (error) =>
      new ListenError({
        purpose,
        detail: `certificate ${tls.certificate} and key ${tls.key} cannot be used (${error instanceof Error ? error.message : "unknown"})`
      })
  })

/** Loads renewed certificates. Instead of a broken one, which is logged once, the old one stays in use. */
const follow = (
  server: https.Server,
  purpose: string,
  tls: Tls,
  first: Pem | null,
  interval: Duration.Duration
): Effect.Effect<never> =>
  Effect.suspend(() => {
    let current = first
    let logged: string | null = null
    const look = Effect.gen(function* () {
      const read = yield* Effect.result(readPem(purpose, tls))
      if (Result.isFailure(read)) {
        const { detail } = read.failure
        if (detail !== logged)
          yield* Effect.logWarning(`The renewed certificate is not used, the old one stays: ${detail}`)
        logged = detail
        return
      }
      logged = null
      const pem = read.success
      if (pem.cert === current?.cert && pem.key === current.key) return
      server.setSecureContext({ ...pem, minVersion: "TLSv1.2" })
      current = pem
      yield* Effect.logInfo("The renewed certificate is used from now on")
    })
    return Effect.forever(Effect.delay(look, interval))
  })
