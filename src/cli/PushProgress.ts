/**
 * Progress of a push.
 *
 * Promise: it shows the rows that are resolved in the outbox, whichever process resolved them.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Counts, outcomes } from "../outbox/Push.ts"
import * as Output from "./Output.ts"
import { bars, lineEveryMs, type ProgressStyle, rateAfterMs, recordRate, timeLeft } from "./Progress.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

export const resolvedCount = (counts: Counts): number =>
  counts.rejected + outcomes.reduce((sum, outcome) => sum + counts[outcome], 0)

export const openCount = ({ waiting, sending }: Counts): number => waiting + sending

/** `1,200 created, 3 adopted, 1 rejected`. */
export const describeOutcomes = (counts: Counts): string =>
  Output.list([...outcomes, "rejected" as const].map((outcome) => Output.counted(counts[outcome], outcome)))

/** `480 records/s`; empty when the time is too short. */
export const rate = (records: number, elapsedMs: number): string =>
  elapsedMs < rateAfterMs || records === 0 ? "" : recordRate(records, elapsedMs)

/** The outcomes so far, the rate and the time left; `done` rows were resolved within `elapsedMs`. */
export const pace = (counts: Counts, done: number, elapsedMs: number): string => {
  const left = openCount(counts)
  const isKnown = elapsedMs >= rateAfterMs && done > 0 && left > 0
  return Output.list([
    describeOutcomes(counts),
    rate(done, elapsedMs),
    isKnown ? timeLeft((left * elapsedMs) / done) : ""
  ])
}

/** The function to call after each commit, within the scope. The pace excludes rows that were resolved `before`. */
export const make = Effect.fnUntraced(function* (
  style: ProgressStyle,
  before: number
): Effect.fn.Return<(counts: Counts) => Effect.Effect<void>, never, Scope.Scope> {
  if (style === "none") return () => Effect.void
  const nowMs = yield* MonotonicClock.make
  const beganAt = nowMs()
  const shown = (counts: Counts) => {
    const resolved = resolvedCount(counts)
    return { resolved, total: resolved + openCount(counts), pace: pace(counts, resolved - before, nowMs() - beganAt) }
  }
  if (style === "lines") {
    let lineAt = beganAt
    return (counts) =>
      Effect.suspend(() => {
        if (nowMs() - lineAt < lineEveryMs) return Effect.void
        lineAt = nowMs()
        const { resolved, total, pace } = shown(counts)
        return Output.note(
          `  ${Output.list([`${Output.count(resolved)} of ${Output.count(total)} records`, pace], ": ")}`
        )
      })
  }
  const drawn = yield* bars("  {bar} {records} of {of} records  {pace}")
  const bar = drawn.create(1, 0, { records: "0", of: "…", pace: "" })
  return (counts) =>
    Effect.sync(() => {
      const { resolved, total, pace } = shown(counts)
      bar.setTotal(Math.max(total, 1))
      bar.update(resolved, { records: Output.count(resolved), of: Output.count(total), pace })
    })
})
