/**
 * The HTTP client of the deliveries: undici, with connections of its own for each endpoint.
 *
 * Promise: without `allowPrivate`, no connection is opened to a private address. The check is of the addresses to which
 * the socket connects, so that a name that changes its address does not pass it. Redirects are not followed, certificates
 * are verified, and the answer's body is discarded.
 */
import { lookup } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Agent, buildConnector, request } from "undici"
import * as RetryAfter from "../time/RetryAfter.ts"
import { isPrivate } from "./PrivateAddress.ts"

/** No answer arrived. */
export class SendFailed extends Data.TaggedError("SendFailed")<{ readonly message: string }> {}

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

/** Time limit of one message. */
export const timeoutDefault = Duration.seconds(15)
const connections = 16
const connectTimeoutMs = 10_000
const answerBytesMax = 64 * 1024

const refusal = (host: string, address: string) =>
  new Error(
    `${host === address ? address : `${host} has the address ${address}, which`} is private; allow it for this endpoint with allow_private`
  )

/** Answers the public addresses of a name, and fails where it has a private one. */
const publicLookup: LookupFunction = (host, options, done) => {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    const found = addresses?.find(({ address }) => isPrivate(address))
    if (error !== null) done(error, "")
    else if (found !== undefined) done(refusal(host, found.address), "")
    else if (options.all === true) done(null, addresses)
    else done(null, addresses[0]!.address, addresses[0]!.family)
  })
}

const connector = (allowPrivate: boolean): buildConnector.connector => {
  const timeouts = { timeout: connectTimeoutMs, rejectUnauthorized: true }
  if (allowPrivate) return buildConnector(timeouts)
  const connect = buildConnector({ ...timeouts, lookup: publicLookup })
  return (options, done) => {
    // An address is not looked up.
    const host = options.hostname.replace(/^\[|\]$/g, "")
    if (isIP(host) !== 0 && isPrivate(host)) done(refusal(host, host), null)
    else connect(options, done)
  }
}

const makeAgent = (allowPrivate: boolean): Effect.Effect<Agent, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new Agent({ connections, pipelining: 1, allowH2: false, connect: connector(allowPrivate) })),
    (agent) => Effect.promise(() => agent.destroy())
  )

/** The innermost message, and the code of a system error. */
const describe = (error: unknown): string => {
  if (error instanceof AggregateError && error.errors.length > 0) return describe(error.errors[0])
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && error.message === "fetch failed" ? describe(error.cause) : error.message
}

/** A client until the end of the scope. */
export const make = Effect.fnUntraced(function* (
  timeout: Duration.Duration = timeoutDefault
): Effect.fn.Return<Transport, never, Scope.Scope> {
  const agents = { public: yield* makeAgent(false), any: yield* makeAgent(true) }
  return {
    send: Effect.fnUntraced(function* ({ url, allowPrivate, headers, body }) {
      const { statusCode, headers: answered } = yield* Effect.tryPromise({
        try: async (signal) => {
          const dispatcher = allowPrivate ? agents.any : agents.public
          const response = await request(url, { method: "POST", headers, body, dispatcher, signal })
          void response.body.dump({ limit: answerBytesMax }).catch(() => undefined)
          return response
        },
        catch: (error) => new SendFailed({ message: describe(error) })
      }).pipe(
        Effect.timeoutOrElse({
          duration: timeout,
          orElse: () =>
            Effect.fail(new SendFailed({ message: `no answer within ${Duration.toSeconds(timeout)} seconds` }))
        })
      )
      const nowMs = yield* Clock.currentTimeMillis
      return { status: statusCode, retryAfterMs: RetryAfter.millisOf([answered["retry-after"]].flat()[0], nowMs) }
    })
  }
})
