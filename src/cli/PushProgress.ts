/**
 * Progress of a push: one bar on a terminal, a line every few seconds elsewhere, nothing with `--json`.
 *
 * Promise: what it counts is what the ledger says is settled, whichever process settled it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Counts, outcomes } from "../outbox/Push.ts"
import { type ProgressStyle, roundedCount } from "./SyncProgress.ts"
import * as Output from "./Output.ts"

/** Sooner than this a rate says nothing. */
const rateAfterMs = 1_000
/** How often there is a line where there is no bar. */
const lineEveryMs = 5_000

export const resolvedCount = (counts: Counts): number =>
  counts.refused + outcomes.reduce((sum, outcome) => sum + counts[outcome], 0)

/** `1,200 created, 3 adopted, 1 refused`. */
export const describeOutcomes = (counts: Pick<Counts, (typeof outcomes)[number] | "refused">): string =>
  [...outcomes, "refused" as const]
    .flatMap((outcome) => (counts[outcome] === 0 ? [] : [`${Output.count(counts[outcome])} ${outcome}`]))
    .join(", ")

/** `480 records/s`; empty when it went too fast to tell. */
export const rate = (records: number, elapsedMs: number): string => {
  if (elapsedMs < rateAfterMs || records === 0) return ""
  const perSecond = (records * 1000) / elapsedMs
  return `${Output.count(perSecond < 10 ? Math.round(perSecond * 10) / 10 : Math.round(perSecond))} records/s`
}

/** What is told of a push at work; `done` is what was settled since `elapsedMs` ago. */
export const pace = (counts: Counts, done: number, elapsedMs: number): string => {
  const left = counts.waiting + counts.sending
  return [
    describeOutcomes(counts),
    rate(done, elapsedMs),
    elapsedMs < rateAfterMs || done === 0 || left === 0 ? "" : `about ${roundedCount((left * elapsedMs) / done)} left`
  ]
    .filter((part) => part !== "")
    .join(", ")
}

/** What is to be told after each settlement, for as long as the scope. What was settled `before` is no part of the pace. */
export const make = Effect.fnUntraced(function* (
  style: ProgressStyle,
  before: number
): Effect.fn.Return<(counts: Counts) => Effect.Effect<void>, never, Scope.Scope> {
  if (style === "none") return () => Effect.void
  const clock = yield* Clock.Clock
  const nowMs = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const beganAt = nowMs()
  const paced = (counts: Counts) => pace(counts, resolvedCount(counts) - before, nowMs() - beganAt)
  if (style === "lines") {
    let toldAt = beganAt
    return (counts) =>
      Effect.suspend(() => {
        if (nowMs() - toldAt < lineEveryMs) return Effect.void
        toldAt = nowMs()
        const total = resolvedCount(counts) + counts.waiting + counts.sending
        const told = paced(counts)
        return Output.note(
          `  ${Output.count(resolvedCount(counts))} of ${Output.count(total)} records${told === "" ? "" : `: ${told}`}`
        )
      })
  }
  const { default: cliProgress } = yield* Effect.promise(() => import("cli-progress"))
  const bar = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const drawn = new cliProgress.SingleBar(
        {
          format: "  {bar} {records} of {of} records  {told}",
          barsize: 18,
          barCompleteChar: "█",
          barIncompleteChar: "░",
          hideCursor: true,
          clearOnComplete: true,
          gracefulExit: false,
          stream: process.stderr,
          linewrap: false,
          fps: 12
        },
        cliProgress.Presets.shades_classic
      )
      drawn.start(1, 0, { records: "0", of: "…", told: "" })
      return drawn
    }),
    (drawn) => Effect.sync(() => drawn.stop())
  )
  return (counts) =>
    Effect.sync(() => {
      const total = resolvedCount(counts) + counts.waiting + counts.sending
      bar.setTotal(Math.max(total, 1))
      bar.update(resolvedCount(counts), {
        records: Output.count(resolvedCount(counts)),
        of: Output.count(total),
        told: paced(counts)
      })
    })
})
