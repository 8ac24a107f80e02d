/**
 * The HTTP client of the deliveries: undici, with connections of its own for each endpoint.
 *
 * Promise: a message is sent at once. It never waits for a connection, since the sender bounds the messages in flight. The
 * status decides about a message. Its body is discarded: a connection whose body does not end in time, or is too long, is
 * closed. Without `allowPrivate`, no connection is opened to a private address. The check is of the addresses to which
 * the socket connects, so that a name that changes its address does not pass it. A proxy gets such a checked address, too,
 * and resolves no name. The rest is promised by `src/http/Client.ts`.
 */
import { type LookupAddress, lookup } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { buildConnector, type Dispatcher, request } from "undici"
import * as Client from "../http/Client.ts"
import { type Proxies, ProxyFailed } from "../http/Proxies.ts"
import * as RetryAfter from "../time/RetryAfter.ts"
import { isPrivate } from "./PrivateAddress.ts"

/** No answer arrived. */
export class SendFailed extends Data.TaggedError("SendFailed")<{
  readonly message: string
  /** The receiver may have the message. */
  readonly mayHaveArrived: boolean
}> {}

export interface Answer {
  readonly status: number
  /** The time that the header Retry-After states, from now on. */
  readonly retryAfterMs: number | null
}

export interface Request {
  readonly url: string
  readonly allowPrivate: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Transport {
  readonly send: (request: Request) => Effect.Effect<Answer, SendFailed>
}

export interface Limits {
  /** From the start of a message until its status. */
  readonly status: Duration.Duration
  /** From the status until the end of the body. */
  readonly body: Duration.Duration
}

export const limitsDefault: Limits = { status: Duration.seconds(15), body: Duration.seconds(1) }
/** Alert routes finish their request when the process stops, so that they have less time. */
export const limitsOfRoutes: Limits = { status: Duration.seconds(8), body: Duration.seconds(1) }
const answerBytesMax = 64 * 1024

const refusal = (host: string, address: string) =>
  new Error(
    `${host === address ? address : `${host} has the address ${address}, which`} is private; allow it for this endpoint with allow_private`
  )

type OnResolved = (error: NodeJS.ErrnoException | null, addresses: Array<LookupAddress>) => void
type Resolve = (host: string, onResolved: OnResolved) => void

/**
 * Resolves names: to public addresses only, or to any. Connections that wait for the same name share one lookup: the
 * process has few threads for lookups, and a name server that does not answer must not occupy them all.
 */
const makeResolve = (allowPrivate: boolean): Resolve => {
  const pending = new Map<string, Array<OnResolved>>()
  return (host, onResolved) => {
    const waiting = pending.get(host)
    if (waiting !== undefined) return void waiting.push(onResolved)
    pending.set(host, [onResolved])
    lookup(host, { all: true }, (error, addresses) => {
      const found = allowPrivate ? undefined : addresses?.find(({ address }) => isPrivate(address))
      const all = pending.get(host) ?? []
      pending.delete(host)
      for (const one of all) one(found === undefined ? error : refusal(host, found.address), addresses)
    })
  }
}

const connector = (resolve: Resolve, allowPrivate: boolean, timeout: Duration.Duration): buildConnector.connector => {
  const find: LookupFunction = (host, options, done) =>
    resolve(host, (error, addresses) => {
      if (error !== null) done(error, "")
      else if (options.all === true) done(null, addresses)
      else done(null, addresses[0]!.address, addresses[0]!.family)
    })
  const connect = buildConnector({
    timeout: Duration.toMillis(timeout),
    rejectUnauthorized: true,
    allowH2: false,
    lookup: find
  })
  if (allowPrivate) return connect
  return (options, done) => {
    // An address is not looked up.
    const host = options.hostname.replace(/^\[|\]$/g, "")
    if (isIP(host) !== 0 && isPrivate(host)) done(refusal(host, host), null)
    else connect(options, done)
  }
}

const cannotBeChecked = "has no address that can be checked: this machine cannot resolve the name"
const letProxyResolve = "allow_private for this endpoint leaves that to the proxy"

/** The public address that a proxy gets. Many proxies reach IPv4 only. */
const publicAddress =
  (resolve: Resolve) =>
  (host: string): Promise<string> =>
    new Promise((done, fail) =>
      resolve(host, (error, addresses) => {
        if (error === null) done((addresses.find(({ family }) => family === 4) ?? addresses[0]!).address)
        else if (error.code === undefined) fail(error)
        else fail(new Error(`${host} ${cannotBeChecked} (${error.code}); ${letProxyResolve}`))
      })
    )

const makeDispatcher = (
  allowPrivate: boolean,
  limit: Duration.Duration,
  proxies: Proxies | null
): Effect.Effect<Dispatcher, never, Scope.Scope> => {
  // Shorter than the limit: a message whose connection was not opened has certainly not arrived.
  const connectTimeout = Duration.divideUnsafe(limit, 2)
  const resolve = makeResolve(allowPrivate)
  return Client.makeDispatcher({
    proxies,
    connectTimeout,
    connect: connector(resolve, allowPrivate, connectTimeout),
    ...(allowPrivate ? {} : { resolve: publicAddress(resolve) })
  })
}

/** The innermost message, and the code of a system error. */
const describe = (error: unknown): string => {
  if (error instanceof AggregateError && error.errors.length > 0) return describe(error.errors[0])
  if (!(error instanceof Error)) return String(error)
  if (error instanceof ProxyFailed) return `${error.message}; ${error.remedy}`
  return error.cause instanceof Error && error.message === "fetch failed" ? describe(error.cause) : error.message
}

/** Errors before the first byte of a request was sent. */
const notSent =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_.*|ERR_PROXY_.*|CERT_.*|.*_CERT(?:_.*)?|.*_SIGNATURE|ERR_SSL_.*)$/

const failureOf = (error: unknown): SendFailed => {
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : ""
  return new SendFailed({ message: describe(error), mayHaveArrived: !notSent.test(code) })
}

/** A client until the end of the scope. */
export const make = Effect.fnUntraced(function* (
  proxies: Proxies | null,
  limits: Limits = limitsDefault
): Effect.fn.Return<Transport, never, Scope.Scope> {
  const agents = {
    public: yield* makeDispatcher(false, limits.status, proxies),
    any: yield* makeDispatcher(true, limits.status, proxies)
  }
  const timedOut = new SendFailed({
    message: `no answer within ${Duration.toSeconds(limits.status)} seconds`,
    mayHaveArrived: true
  })
  return {
    send: Effect.fnUntraced(function* ({ url, allowPrivate, headers, body }) {
      const dispatcher = allowPrivate ? agents.any : agents.public
      const {
        statusCode,
        headers: answered,
        body: rest
      } = yield* Effect.tryPromise({
        try: (signal) => request(url, { method: "POST", headers, body, dispatcher, signal }),
        catch: failureOf
      }).pipe(
        Effect.timeoutOrElse({
          duration: limits.status,
          orElse: () => Effect.fail(timedOut)
        })
      )
      // An interruption destroys the body and with it the connection.
      yield* Effect.promise((signal) => rest.dump({ limit: answerBytesMax, signal }).catch(() => undefined)).pipe(
        Effect.timeoutOption(limits.body)
      )
      const nowMs = yield* Clock.currentTimeMillis
      return { status: statusCode, retryAfterMs: RetryAfter.millisOf([answered["retry-after"]].flat()[0], nowMs) }
    })
  }
})
