/** A queue of events that wait to be inserted, bounded in number and bytes. */
import * as Data from "effect/Data"
import type { NewEvent } from "./InsertEvents.ts"

/** Both are durable. `known`: the inbox had the event before. */
export type InsertResult = "stored" | "known"

/** The event is not in the inbox, or that is uncertain. Sending it again is safe. */
export class InboxUnavailable extends Data.TaggedError("InboxUnavailable")<{
  /**
   * away: the warehouse does not answer, or rejects the write. full: too many events wait. refused: Postgres cannot hold
   * the values of this event, and another attempt does not help. ended: the process is stopping.
   */
  readonly reason: "away" | "full" | "refused" | "ended"
  readonly detail: string
}> {
  override get message(): string {
    return `the event cannot be stored (${this.detail})`
  }
}

export type Outcome = InsertResult | InboxUnavailable

/** A request to insert an event, or (without one) to prove that one can be inserted. */
export interface PendingInsert {
  readonly event: NewEvent | null
  readonly size: number
  /** When it was offered, by the monotonic clock, in milliseconds. */
  readonly since: number
  readonly done: (outcome: Outcome) => void
  isResolved: boolean
  /** Failed statements with this event. After one of them the event may be in the inbox. */
  attempts: number
}

export interface PendingInserts {
  inserts: Array<PendingInsert>
  bytes: number
}

const batchMax = 1_000
const batchBytesMax = 8 * 1024 * 1024
/** Approximate memory of an event besides its body. */
const eventBytes = 512

export const sizeOf = (event: NewEvent | null): number => (event === null ? 0 : event.body.length + eventBytes)

export const append = (pending: PendingInserts, insert: PendingInsert): void => {
  pending.inserts.push(insert)
  pending.bytes += insert.size
}

/** Puts inserts back at the head of the queue. */
export const putBack = (pending: PendingInserts, inserts: ReadonlyArray<PendingInsert>): void => {
  pending.inserts.unshift(...inserts)
  for (const { size } of inserts) pending.bytes += size
}

const shift = (pending: PendingInserts, count: number): ReadonlyArray<PendingInsert> => {
  const shifted = pending.inserts.splice(0, count)
  for (const { size } of shifted) pending.bytes -= size
  return shifted
}

export const shiftAll = (pending: PendingInserts): ReadonlyArray<PendingInsert> => {
  const all = pending.inserts
  pending.inserts = []
  pending.bytes = 0
  return all
}

/** Removes the inserts that were offered before this time. */
export const shiftOlder = (pending: PendingInserts, since: number): ReadonlyArray<PendingInsert> => {
  const count = pending.inserts.findIndex((insert) => insert.since >= since)
  return shift(pending, count < 0 ? pending.inserts.length : count)
}

/** Removes as many inserts as one statement takes. */
export const shiftBatch = (pending: PendingInserts): ReadonlyArray<PendingInsert> => {
  const { inserts, bytes } = pending
  if (inserts.length <= batchMax && bytes <= batchBytesMax) return shiftAll(pending)
  let count = 0
  let batchBytes = 0
  while (count < inserts.length && count < batchMax) {
    const { size } = inserts[count]!
    if (count > 0 && batchBytes + size > batchBytesMax) break
    batchBytes += size
    count += 1
  }
  return shift(pending, count)
}
