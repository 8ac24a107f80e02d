/**
 * One round of an endpoint: reads from its feed what is due and what is new, sends it, and stores the results.
 *
 * Promise: one transaction stores the position, what waits and what was delivered, guarded by the fence. A crash before
 * it repeats the same changes under the same ids.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Position, PositionLost, ViewDropped } from "../changes/ChangeFeed.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { retryTransient, transaction } from "../postgres/Transaction.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Plan from "./Plan.ts"
import * as Resolve from "./Resolve.ts"
import { type Attempt, type MessageOutcome, sendLanes } from "./Sending.ts"
import * as SenderStore from "./SenderStore.ts"
import type { EndpointRow } from "./SenderStore.ts"
import type { Limits, Transport } from "./Transport.ts"

/** A position without a change for the endpoint is stored this often. */
const storeEveryMs = 2_000

export interface Sender extends SenderStore.Lease {
  readonly transport: Transport
}

/** What a round sends. */
export interface Work extends Plan.Plan {
  /** Everything up to here was read. */
  readonly position: Position
  readonly waiting: ReadonlyArray<Plan.Entry>
  /** What waits, and is not sent. */
  readonly obsolete: ReadonlyArray<Pick<Plan.Entry, "position"> & { readonly error: string }>
  /** Whether new changes are read. */
  readonly canRead: boolean
  /** Sends changes as one message. */
  readonly send: (items: Plan.Message) => Effect.Effect<MessageOutcome>
}

export class EndpointUnusable extends Data.TaggedError("EndpointUnusable")<{ readonly message: string }> {}

type FeedError = PositionLost | ViewDropped | EndpointUnusable | SenderStore.LeaseLost | DatabaseError

/** Where the changes of an endpoint come from, and the form in which they are sent. */
export interface Feed {
  readonly limits: Limits
  /** Whether the receiver recognizes a message that it has, so that one with an unknown outcome is sent again. */
  readonly isIdempotent: boolean
  /** Whether a process that stops finishes its round. */
  readonly isFinished: boolean
  readonly read: (sender: Sender, row: EndpointRow, from: Position) => Effect.Effect<Work, FeedError, SqlClient>
}

/** What the loop of an endpoint knows after a round. */
export interface State {
  /** Everything up to here was read. */
  readonly position: Position | null
  readonly storedMs: number
  /** Whether the next round may find more at once. */
  readonly isBusy: boolean
  /** Whether new changes are read. */
  readonly canRead: boolean
  /** When something that waits is due; null for nothing. */
  readonly dueMs: number | null
}

export const initial: State = { position: null, storedMs: 0, isBusy: true, canRead: true, dueMs: null }

/** The entries of the delivery log. */
const logOf = ({ obsolete }: Work, attempts: ReadonlyArray<Attempt>, { results }: Resolve.Resolution) => [
  ...attempts.map(({ id, items, status, error, durationMs: ms }, index) => ({
    id,
    first: items[0]!.position,
    changes: items.length,
    result: results[index],
    status,
    error,
    ms
  })),
  ...obsolete.map(({ position, error }) => ({
    id: `chg_${position}`,
    first: position,
    changes: 1,
    result: "obsolete",
    status: null,
    error,
    ms: 0
  }))
]

const store = Effect.fnUntraced(function* (
  sender: Sender,
  work: Work,
  attempts: ReadonlyArray<Attempt>,
  resolution: Resolve.Resolution
) {
  const { name } = sender
  const log = logOf(work, attempts, resolution)
  const before = yield* SenderStore.advance(sender, work.position, resolution, log.length)
  if (resolution.endReason !== null) yield* SenderStore.end(sender, resolution.endReason)
  yield* SenderStore.deleteWaiting(name, [...resolution.delivered, ...work.obsolete.map((one) => one.position)])
  yield* SenderStore.storeWaits(name, resolution.waits)
  if (resolution.waits.some(({ state }) => state === "dead")) yield* SenderStore.deleteOldDead(name)
  if (resolution.isRecovered) yield* SenderStore.makeDue(name)
  yield* SenderStore.writeLog(name, before, log)
}, transaction)

const runOnce = Effect.fnUntraced(function* (feed: Feed, sender: Sender, state: State) {
  const row = yield* SenderStore.load(sender)
  const stored: Position = { number: row.lastPosition, token: row.lastToken }
  const from = state.position !== null && state.position.number > stored.number ? state.position : stored
  if (row.nextAttemptMs !== null && row.nextAttemptMs > row.nowMs) {
    return { ...state, position: from, isBusy: false, canRead: false, dueMs: row.nextAttemptMs } satisfies State
  }
  const monotonicMs = yield* MonotonicClock.make
  const beganMs = monotonicMs()
  const work = yield* feed.read(sender, row, from)
  const { position, waiting, lanes, behind, obsolete, canRead } = work
  const hasWork = lanes.length + behind.length + obsolete.length > 0
  const isStored = hasWork || (position.number > stored.number && row.nowMs - state.storedMs >= storeEveryMs)
  if (!isStored) {
    // Without a change for the endpoint, the end is reached unless the page was full.
    const isBusy = canRead && position.number < row.end
    return { ...state, position, isBusy, canRead, dueMs: Plan.nextDueMs(waiting) } satisfies State
  }
  const attempts = yield* sendLanes(lanes, work.send)
  const sent = new Set(attempts.flatMap(({ items }) => items))
  const known = new Set(waiting.map((one) => one.position))
  const unsent = lanes.flat(2).filter((item) => !known.has(item.position) && !sent.has(item))
  const random = yield* Random.Random
  const resolution = Resolve.resolve({
    row,
    waiting,
    attempts,
    unsent: [...behind, ...unsent],
    isIdempotent: feed.isIdempotent,
    nowMs: row.nowMs + monotonicMs() - beganMs,
    random: () => random.nextDoubleUnsafe()
  })
  yield* retryTransient(store(sender, work, attempts, resolution))
  return { ...state, position, storedMs: row.nowMs, isBusy: true, canRead: true, dueMs: null } satisfies State
})

/** Runs one round, and answers the state for the next one. */
export const run = (feed: Feed, sender: Sender, state: State) => {
  const once = runOnce(feed, sender, state)
  return feed.isFinished
    ? Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(Effect.forkDetach(Effect.interruptible(once)), (fiber) =>
          Effect.onInterrupt(restore(Fiber.join(fiber)), () => Fiber.await(fiber))
        )
      )
    : once
}
