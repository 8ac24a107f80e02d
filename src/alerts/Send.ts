/**
 * The sending of alert messages, which one process does.
 *
 * Promise: a message that the evaluation wrote is sent exactly once, if the receiver answers and no process dies during
 * the request itself. `MessageStore.ts` states what such a death leaves. A process that is stopped finishes its requests.
 * A refused message is tried again after a pause that grows, not before Retry-After, and given up after a day. Each route
 * has one request at a time, and no route waits for another one.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Client from "../http/Client.ts"
import type { Proxies } from "../http/Proxies.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { readNowMs } from "../postgres/Now.ts"
import { retryTransient } from "../postgres/Transaction.ts"
import * as Backoff from "../time/Backoff.ts"
import { type Answer, requestTimeout } from "./Answer.ts"
import * as MessageStore from "./MessageStore.ts"
import * as Receivers from "./Receivers.ts"
import type { Route } from "./Route.ts"

const pollEveryMs = 2_000
const retryDelayMinMs = 10_000
const retryDelayMaxMs = 60 * 60_000
/** A message is given up when its next attempt would be later than this after the first. */
const retryMax = Duration.days(1)

/** What an answer makes of a batch. */
const resultOf = (
  answer: Answer,
  { attempts, firstAttemptAt }: MessageStore.Batch,
  isIdempotent: boolean,
  nowMs: number
): MessageStore.Result => {
  if (answer.type === "accepted") return { state: "sent", error: null }
  if (answer.type === "unknown" && !isIdempotent) {
    return { state: "uncertain", error: `${answer.error}; the receiver may have the message` }
  }
  const requestedMs = answer.type === "refused" && answer.retryAfter !== null ? Duration.toMillis(answer.retryAfter) : 0
  const delayMs = Math.max(requestedMs, Backoff.delayMs(attempts, retryDelayMinMs, retryDelayMaxMs))
  const isLast = nowMs + delayMs > firstAttemptAt.getTime() + Duration.toMillis(retryMax)
  return isLast
    ? { state: "failed", error: answer.error }
    : { state: "pending", error: answer.error, delaySeconds: delayMs / 1000 }
}

const sendBatch = Effect.fnUntraced(function* (route: Route, owner: string, batch: MessageStore.Batch) {
  if (!(yield* MessageStore.begin(batch, owner))) return
  const answer = yield* Receivers.send(route, batch.messages)
  const result = resultOf(answer, batch, Receivers.isIdempotent(route.receiver), yield* readNowMs)
  yield* retryTransient(MessageStore.finish(batch, owner, result))
  // The log shows the first failure of a batch and its end.
  if (result.state === "sent" || (result.state === "pending" && batch.attempts > 1)) return
  const next = result.state === "pending" ? `next attempt in ${Math.round(result.delaySeconds ?? 0)} s` : result.state
  yield* Effect.logWarning(`alerts: route ${route.name}: ${result.error}; ${next}; tributary alerts history shows it`)
})

/** Sends the next batch of a route. Answers whether there was one. An interruption waits for the request. */
export const sendNext = Effect.fnUntraced(function* (
  route: Route,
  owner: string
): Effect.fn.Return<boolean, DatabaseError, SqlClient.SqlClient | HttpClient.HttpClient> {
  const { name, digest, receiver } = route
  const batch = yield* MessageStore.claim(name, owner, {
    isDigest: digest !== null,
    isIdempotent: Receivers.isIdempotent(receiver)
  })
  if (batch === null) return false
  yield* Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(Effect.interruptible(sendBatch(route, owner, batch))), (fiber) =>
      Effect.onInterrupt(restore(Fiber.join(fiber)), () => Fiber.await(fiber))
    )
  )
  return true
})

/** Sends what is due on all routes, until it is interrupted. `owner` is the name of the process. */
export const sendForever = Effect.fnUntraced(function* (
  routes: ReadonlyArray<Route>,
  owner: string
): Effect.fn.Return<never, DatabaseError, SqlClient.SqlClient | HttpClient.HttpClient> {
  yield* Effect.forEach(
    routes,
    (route) =>
      Effect.forever(
        Effect.flatMap(sendNext(route, owner), (wasSent) => (wasSent ? Effect.void : Effect.sleep(pollEveryMs)))
      ),
    { concurrency: "unbounded", discard: true }
  )
  return yield* Effect.never
})

/**
 * The HTTP client of alerts. A request never waits for a connection: routes often share an origin, and each has one
 * request at a time.
 */
export const makeHttpClient = (proxies: Proxies | null): Effect.Effect<HttpClient.HttpClient, never, Scope.Scope> =>
  Client.make({
    proxies,
    maxResponseSize: 1024 * 1024,
    connectTimeout: Duration.millis(Duration.toMillis(requestTimeout) / 2)
  })
