/**
 * Sending the messages of a round: lanes beside each other, each of them in order.
 *
 * Promise: after a failure, no later change of the same record is sent in the round. When the first messages fail
 * without a success, the round sends no more. An answer decides whether the receiver has a message. Without an answer,
 * that is known only where nothing was sent, as after a refused connection.
 */
import * as Effect from "effect/Effect"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import type { Message, Plan } from "./Plan.ts"
import * as RetryPolicy from "./RetryPolicy.ts"
import type { Request, Transport } from "./Transport.ts"

/** Messages in flight to one endpoint. */
const concurrency = 16
const errorLengthMax = 300

/** What became of a message. */
export interface Outcome {
  /** Null without an answer. */
  readonly status: number | null
  readonly retryAfterMs: number | null
  /** Null where the receiver has accepted it. */
  readonly error: string | null
  /** It failed, and the receiver may have it. */
  readonly mayHaveArrived: boolean
}

export interface MessageOutcome extends Outcome {
  /** The id of the message. */
  readonly id: string
}

export interface Attempt extends MessageOutcome {
  readonly items: Message
  readonly durationMs: number
}

export const delivered = (status: number | null): Outcome => ({
  status,
  retryAfterMs: null,
  error: null,
  mayHaveArrived: false
})

/** Sends one request. Never fails. */
export const post = (transport: Transport, request: Request) =>
  Effect.match(transport.send(request), {
    onSuccess: ({ status, retryAfterMs }): Outcome =>
      RetryPolicy.isDelivered(status)
        ? delivered(status)
        : { status, retryAfterMs, error: `HTTP ${status}`, mayHaveArrived: false },
    onFailure: (failure): Outcome => ({
      status: null,
      retryAfterMs: null,
      error: failure.message.slice(0, errorLengthMax),
      mayHaveArrived: failure.mayHaveArrived
    })
  })

/** Sends the messages of the lanes, and answers the attempts in the order of their ends. */
export const sendLanes = Effect.fnUntraced(function* (
  lanes: Plan["lanes"],
  send: (items: Message) => Effect.Effect<MessageOutcome>
) {
  const attempts: Array<Attempt> = []
  const blocked = new Set<string>()
  let [successes, failures] = [0, 0]
  const isStopped = () => successes === 0 && failures >= RetryPolicy.failedRecordsMax
  let isGone = false
  const nowMs = yield* MonotonicClock.make
  yield* Effect.forEach(
    lanes,
    Effect.fnUntraced(function* (messages) {
      for (const message of messages) {
        const items = message.filter(({ key }) => !blocked.has(key))
        if (isGone || isStopped()) return
        if (items.length === 0) continue
        const beganMs = nowMs()
        const outcome = yield* send(items)
        attempts.push({ ...outcome, items, durationMs: Math.round(nowMs() - beganMs) })
        if (outcome.error === null) successes += 1
        else {
          failures += 1
          isGone ||= outcome.status === RetryPolicy.goneStatus
          for (const { key } of items) blocked.add(key)
        }
      }
    }),
    { concurrency, discard: true }
  )
  return attempts
})
