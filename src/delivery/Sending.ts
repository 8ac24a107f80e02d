/**
 * Sending the messages of a round: lanes beside each other, each of them in order.
 *
 * Promise: after a failure, no later change of the same record is sent in the round. When the first messages fail
 * without a success, the round sends no more.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Message from "./Message.ts"
import type { Item, Plan } from "./Plan.ts"
import * as RetryPolicy from "./RetryPolicy.ts"
import type { EndpointRow } from "./SenderStore.ts"
import type { Answer, Transport } from "./Transport.ts"

/** Messages in flight to one endpoint. */
const concurrency = 16

export interface Attempt {
  readonly items: ReadonlyArray<Item>
  readonly id: string
  readonly isDelivered: boolean
  readonly status: number | null
  readonly retryAfterMs: number | null
  readonly error: string | null
  readonly durationMs: number
}

export interface SendOptions {
  readonly row: Pick<EndpointRow, "url" | "allowPrivate" | "batchMax">
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  readonly companies: ReadonlyMap<bigint, string>
  readonly transport: Transport
}

/** Sends one message. Never fails. */
const attempt = Effect.fnUntraced(function* (
  items: ReadonlyArray<Item>,
  { row, secrets, companies, transport }: SendOptions
): Effect.fn.Return<Attempt> {
  const message = Message.make(
    items.map(({ change }) => change),
    { isBatch: row.batchMax > 1, companies }
  )
  const nowMs = yield* MonotonicClock.make
  const beganMs = nowMs()
  const headers = Message.headersOf(message, secrets, yield* Clock.currentTimeMillis)
  const answer: Answer | string = yield* transport
    .send({ url: row.url, allowPrivate: row.allowPrivate, headers, body: message.body })
    .pipe(Effect.catch((error) => Effect.succeed(error.message)))
  const common = { items, id: message.id, durationMs: Math.round(nowMs() - beganMs) }
  if (typeof answer === "string") {
    return { ...common, isDelivered: false, status: null, retryAfterMs: null, error: answer.slice(0, 300) }
  }
  const { status, retryAfterMs } = answer
  const isDelivered = RetryPolicy.isDelivered(status)
  return { ...common, isDelivered, status, retryAfterMs, error: isDelivered ? null : `HTTP ${status}` }
})

/** Sends the messages of a plan, and answers the attempts in the order of their ends. */
export const send = Effect.fnUntraced(function* ({ lanes }: Plan, options: SendOptions) {
  const attempts: Array<Attempt> = []
  const blocked = new Set<string>()
  let [successes, failures] = [0, 0]
  const isStopped = () => successes === 0 && failures >= RetryPolicy.failedRecordsMax
  let isGone = false
  yield* Effect.forEach(
    lanes,
    Effect.fnUntraced(function* (messages) {
      for (const message of messages) {
        const items = message.filter(({ key }) => !blocked.has(key))
        if (isGone || isStopped()) return
        if (items.length === 0) continue
        const one = yield* attempt(items, options)
        attempts.push(one)
        if (one.isDelivered) successes += 1
        else {
          failures += 1
          isGone ||= one.status === RetryPolicy.goneStatus
          for (const { key } of items) blocked.add(key)
        }
      }
    }),
    { concurrency, discard: true }
  )
  return attempts
})
