/** Progress of syncs and backfills, by resource. */
import type { SingleBar } from "cli-progress"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Outcome, RunTotals } from "../sync/Outcome.ts"
import { Progress, type ProgressShape } from "../sync/Progress.ts"
import * as Output from "./Output.ts"
import { bars, lineEveryMs, type ProgressStyle, rateAfterMs, recordRate, timeLeft } from "./Progress.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** The expected size of a run; null where it is not known. */
export interface Expected {
  readonly records: number | null
  readonly requests: number | null
}

/** Read again for each line, since an estimate may arrive meanwhile. */
export type Expectations = (run: { readonly companyId: bigint; readonly resource: string }) => Expected | null

/**
 * The rates of a run and its time left: `4,100 records/s, 480 requests/min, about 12 min left`. The time left is omitted
 * where no estimate is known, or where it was too low.
 */
export const pace = (
  totals: Pick<RunTotals, "records" | "requests">,
  elapsedMs: number,
  expected: Expected | null
): string => {
  if (elapsedMs < rateAfterMs) return ""
  const rates = [
    recordRate(totals.records, elapsedMs),
    `${Output.count(Math.round((totals.requests * 60_000) / elapsedMs))} requests/min`
  ]
  // The budget counts requests; records are used where their number is not known.
  const by = ([["requests", 2] as const, ["records", 1] as const] as const).find(
    ([what, least]) => (expected?.[what] ?? 0) > totals[what] && totals[what] >= least
  )
  if (by === undefined) return rates.join(", ")
  const left = expected![by[0]]! - totals[by[0]]
  return [...rates, timeLeft((left * elapsedMs) / totals[by[0]])].join(", ")
}

export const keyOf = (run: { readonly companyId: bigint; readonly resource: string }) =>
  `${run.companyId} ${run.resource}`

/** How a run ended, in one line. */
const outcomeLine = (outcome: Outcome): string => {
  const { totals } = outcome
  const changes = [
    totals.inserted > 0 ? `${Output.count(totals.inserted)} new` : "",
    totals.updated > 0 ? `${Output.count(totals.updated)} changed` : "",
    totals.deleted > 0 ? `${Output.count(totals.deleted)} deleted` : "",
    totals.quarantined > 0 ? `${Output.count(totals.quarantined)} in quarantine` : ""
  ].filter((part) => part !== "")
  const text =
    outcome.failure === null
      ? `${changes.length === 0 ? "nothing new" : changes.join(", ")} (${Output.duration(outcome.durationMs)})`
      : outcome.status === "skipped"
        ? "skipped: the company's token is not accepted"
        : `failed: ${outcome.failure.message}. What to do: ${outcome.failure.remedy}`
  const doubted =
    outcome.massDeleteBlocked === null
      ? ""
      : `; ${outcome.massDeleteBlocked.gone} of ${outcome.massDeleteBlocked.live} rows were missing at the source, and the mass-delete guard deleted none: if they are deleted there, run again with --full --accept-deletions`
  return `${outcome.resource}: ${text}${doubted}`
}

/** Whether a run has no line of its own: it changed nothing, or was skipped. The summary counts it. */
const isQuiet = ({ status, totals }: Outcome) =>
  status === "skipped" || (status === "done" && totals.inserted + totals.updated + totals.deleted === 0)

/** When runs began, on the monotonic clock. */
const stopwatch = Effect.map(Clock.Clock, (clock) => {
  const began = new Map<string, number>()
  const nowMs = () => MonotonicClock.nowMs(clock)
  return {
    nowMs,
    start: (key: string) => began.set(key, nowMs()),
    elapsedMs: (key: string) => nowMs() - (began.get(key) ?? nowMs()),
    end: (key: string) => began.delete(key)
  }
})

const makeLines = (expectations: Expectations) =>
  Effect.map(stopwatch, (watch): ProgressShape => {
    const toldAt = new Map<string, number>()
    return {
      began: (run) =>
        Effect.sync(() => {
          watch.start(keyOf(run))
          toldAt.set(keyOf(run), watch.nowMs())
        }),
      landed: (run, totals) =>
        Effect.suspend(() => {
          const key = keyOf(run)
          if (watch.nowMs() - (toldAt.get(key) ?? watch.nowMs()) < lineEveryMs) return Effect.void
          toldAt.set(key, watch.nowMs())
          const expected = expectations(run)
          const records = expected?.records ?? null
          const of = records === null ? "" : ` of about ${Output.count(records)}`
          const text = pace(totals, watch.elapsedMs(key), expected)
          return Output.note(
            `  company ${run.companyId} ${run.resource}: ${Output.count(totals.records)}${of} records so far, ${text}`
          )
        }),
      ended: (outcome) =>
        Effect.suspend(() => {
          watch.end(keyOf(outcome))
          toldAt.delete(keyOf(outcome))
          return isQuiet(outcome) ? Effect.void : Output.note(`  company ${outcome.companyId} ${outcomeLine(outcome)}`)
        }),
      note: (text) => Output.note(`  ${text}`)
    }
  })

/** A bar for each active run. A run that has ended becomes a line above the bars, so that any terminal is tall enough. */
const makeBars = Effect.fnUntraced(function* (expectations: Expectations) {
  const watch = yield* stopwatch
  const drawn = yield* bars("  {name} {bar} {records} records  {text}")
  const known = new Map<string, SingleBar>()
  const line = (text: string) => Effect.sync(() => drawn.log(`  ${text}\n`))
  return {
    began: (run) =>
      Effect.sync(() => {
        watch.start(keyOf(run))
        const name = `company ${run.companyId} ${run.resource}`.padEnd(34)
        const text = run.resumed ? "resumed" : ""
        const bar = known.get(keyOf(run)) ?? drawn.create(1, 0, { name, records: "0".padStart(9), text })
        known.set(keyOf(run), bar)
      }),
    // Without an estimate the bar approaches its end, and reaches it with the last page.
    landed: (run, totals) =>
      Effect.sync(() => {
        const expected = expectations(run)
        const records = expected?.records ?? 0
        const share = records <= 0 ? 1 - 1 / (1 + totals.pages) : Math.min(0.99, totals.records / records)
        known.get(keyOf(run))?.update(share, {
          records: Output.count(totals.records).padStart(9),
          text: pace(totals, watch.elapsedMs(keyOf(run)), expected) || (run.resumed ? "resumed" : "")
        })
      }),
    ended: (outcome) =>
      Effect.suspend(() => {
        const bar = known.get(keyOf(outcome))
        known.delete(keyOf(outcome))
        watch.end(keyOf(outcome))
        const removed = bar === undefined ? Effect.void : Effect.sync(() => drawn.remove(bar))
        return isQuiet(outcome)
          ? removed
          : Effect.andThen(line(`company ${outcome.companyId} ${outcomeLine(outcome)}`), removed)
      }),
    note: line
  } satisfies ProgressShape
})

/** Progress in a style, for as long as the scope. Runs with an estimate show the time left. */
export const layer = (style: ProgressStyle, expectations: Expectations = () => null): Layer.Layer<never> => {
  switch (style) {
    case "bars":
      return Layer.effect(Progress, makeBars(expectations))
    case "lines":
      return Layer.effect(Progress, makeLines(expectations))
    case "none":
      return Layer.empty
  }
}
