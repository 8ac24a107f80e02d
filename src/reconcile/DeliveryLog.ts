/** One read of a subscription's delivery log, from its newest entry down to the cursor. */
import * as Effect from "effect/Effect"
import { Priority } from "../budget/Budget.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Attempt, Subscriptions } from "../connector/Subscriptions.ts"
import type { LogCursor, LogHead } from "./LogCursor.ts"

/** The last attempt of an event. */
export interface LastAttempt {
  attempt: Attempt
  /** Whether the log shows a later attempt of another event. */
  readonly isPassed: boolean
}

export interface LogScan {
  readonly lastAttempts: ReadonlyArray<LastAttempt>
  readonly newest: LogHead | null
  /** A response code since the last check at which the source disables the subscription; null for none. */
  readonly disabling: number | null
  /** Whether the read reached the cursor. */
  readonly isWhole: boolean
}

/** The log is ordered approximately by attempt. If the cursor's entry is missing, this much before it is read again. */
const logMarginMs = 60_000
/** Beyond this many pages, reading the resources is cheaper. */
export const logPagesMax = 200
/** From this page on, the read has the priority of a backfill. */
const logPagesPrompt = 5

/**
 * Reads a log, newest first, down to the entry at the cursor. Older entries do not change: the source sends nothing to a
 * subscription while an event waits for its next attempt. That holds whether the log has an entry for each attempt or one
 * for each event. Test deliveries bypass the queue and are left out.
 */
export const readLog = Effect.fnUntraced(function* (
  { deliveries }: Subscriptions,
  id: string,
  cursor: LogCursor
): Effect.fn.Return<LogScan, SourceError> {
  const cursorMs = cursor.to === null ? Number.NaN : Date.parse(cursor.to)
  const urgent = yield* Priority
  const lastAttempts = new Map<string, LastAttempt>()
  let newest: Pick<LogHead, "at" | "event"> | null = null
  let disabling: number | null = null
  // A comparison with a time that cannot be parsed is false.
  let newestMs = Number.NaN
  let downTo = cursorMs - logMarginMs
  for (let token: string | null = null, pages = 1; ; pages += 1) {
    const page: Effect.Success<ReturnType<typeof deliveries>> = yield* Effect.provideService(
      deliveries({ id, token }),
      Priority,
      pages <= logPagesPrompt ? urgent : { class: "backfill", dueAt: urgent.dueAt }
    )
    let isSeen = false
    for (const attempt of page.attempts) {
      const { at, eventId } = attempt
      if (attempt.resource === null) continue
      const atMs = Date.parse(at)
      if (newest === null) {
        newest = { at, event: eventId }
        newestMs = atMs
        // The log lost entries, or the source's clock was set back. All of the log is read.
        if (atMs < cursorMs) downTo = Number.NaN
      }
      if (atMs < downTo) {
        isSeen = true
        break
      }
      if (attempt.disables && !(atMs <= cursorMs)) disabling = attempt.responseCode
      const last = lastAttempts.get(eventId)
      if (last === undefined)
        lastAttempts.set(eventId, { attempt, isPassed: eventId !== newest.event && atMs < newestMs })
      else if (attempt.delivered || (attempt.abandoned && !last.attempt.delivered)) last.attempt = attempt
      if (eventId === cursor.event && atMs <= cursorMs && !Number.isNaN(downTo)) {
        isSeen = true
        break
      }
    }
    const isWhole = isSeen || page.next === null
    if (isWhole || pages >= logPagesMax) {
      const last = newest === null ? undefined : lastAttempts.get(newest.event)?.attempt
      const isWaiting = last !== undefined && !last.delivered && !last.abandoned
      return {
        lastAttempts: [...lastAttempts.values()],
        newest: newest === null ? null : { ...newest, isWaiting },
        disabling,
        isWhole
      }
    }
    token = page.next
  }
})
