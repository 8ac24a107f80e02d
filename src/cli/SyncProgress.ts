/** Progress of syncs and backfills, by resource. */
import type { SingleBar } from "cli-progress"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Outcome, RunTotals } from "../sync/Outcome.ts"
import { Progress, type ProgressShape } from "../sync/Progress.ts"
import { CommandLine } from "./Invocation.ts"
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

/** `1,200 new, 3 deleted`, or `nothing new`. */
export const describeChanges = (
  totals: Pick<RunTotals, "inserted" | "updated" | "deleted" | "quarantined">,
  ...others: ReadonlyArray<string>
): string =>
  Output.list([
    Output.counted(totals.inserted, "new"),
    Output.counted(totals.updated, "changed"),
    Output.counted(totals.deleted, "deleted"),
    Output.counted(totals.quarantined, "in quarantine"),
    ...others
  ]) || "nothing new"

/** How a run ended, in one line. A failure has its own line after the last run. */
const outcomeLine = ({ durationMs, massDeleteBlocked, resource, status, totals }: Outcome): string =>
  `${resource}: ` +
  (status === "failed" || status === "skipped"
    ? status
    : describeChanges(totals, massDeleteBlocked === null ? "" : "deletions blocked")) +
  ` (${Output.duration(durationMs)})`

/** Whether a run has a line of its own only with `--verbose`: it changed nothing, was skipped, or has a damaged table. */
const isQuiet = ({ failure, status, totals }: Outcome) =>
  status === "skipped" ||
  failure?.kind === "TableDamaged" ||
  (status === "done" && totals.inserted + totals.updated + totals.deleted === 0)

/** The company and the resource of a run: `main invoices`. */
const makePlaces = () => {
  const names = new Map<bigint, string>()
  return {
    identified: (companyId: bigint, name: string) => Effect.sync(() => void names.set(companyId, name)),
    nameOf: (companyId: bigint) => names.get(companyId) ?? `company ${companyId}`
  }
}

const makeLines = (expectations: Expectations) =>
  Effect.map(MonotonicClock.make, (nowMs): ProgressShape => {
    const { identified, nameOf } = makePlaces()
    const runs = new Map<string, { readonly beganAtMs: number; lineAtMs: number }>()
    return {
      identified,
      began: (run) =>
        Effect.sync(() => {
          const now = nowMs()
          runs.set(keyOf(run), { beganAtMs: now, lineAtMs: now })
        }),
      landed: (run, totals) =>
        Effect.suspend(() => {
          const now = nowMs()
          const active = runs.get(keyOf(run))
          if (active === undefined || now - active.lineAtMs < lineEveryMs) return Effect.void
          active.lineAtMs = now
          const expected = expectations(run)
          const records = expected?.records ?? null
          const of = records === null ? "" : ` of about ${Output.count(records)}`
          const text = pace(totals, now - active.beganAtMs, expected)
          return Output.note(
            `  ${nameOf(run.companyId)} ${run.resource}: ${Output.count(totals.records)}${of} records so far, ${text}`
          )
        }),
      ended: (outcome) =>
        Effect.suspend(() => {
          runs.delete(keyOf(outcome))
          return Output.note(`  ${nameOf(outcome.companyId)} ${outcomeLine(outcome)}`)
        }),
      note: (text) => Output.note(`  ${text}`)
    }
  })

/** A bar for each active run. A run that has ended becomes a line above the bars, so that any terminal is tall enough. */
const makeBars = Effect.fnUntraced(function* (expectations: Expectations, isVerbose: boolean) {
  const nowMs = yield* MonotonicClock.make
  const drawn = yield* bars("  {name} {bar} {records} records  {text}")
  const { identified, nameOf } = makePlaces()
  const runs = new Map<string, { readonly beganAtMs: number; readonly bar: SingleBar }>()
  const line = (text: string) => Effect.sync(() => drawn.log(`  ${text}\n`))
  return {
    identified,
    began: (run) =>
      Effect.sync(() => {
        const name = `${nameOf(run.companyId)} ${run.resource}`.padEnd(34)
        const text = run.resumed ? "resumed" : ""
        const bar = runs.get(keyOf(run))?.bar ?? drawn.create(1, 0, { name, records: "0".padStart(9), text })
        runs.set(keyOf(run), { beganAtMs: nowMs(), bar })
      }),
    // Without an estimate the bar approaches its end, and reaches it with the last page.
    landed: (run, totals) =>
      Effect.sync(() => {
        const active = runs.get(keyOf(run))
        if (active === undefined) return
        const expected = expectations(run)
        const records = expected?.records ?? 0
        const share = records <= 0 ? 1 - 1 / (1 + totals.pages) : Math.min(0.99, totals.records / records)
        active.bar.update(share, {
          records: Output.count(totals.records).padStart(9),
          text: pace(totals, nowMs() - active.beganAtMs, expected) || (run.resumed ? "resumed" : "")
        })
      }),
    ended: (outcome) =>
      Effect.gen(function* () {
        const active = runs.get(keyOf(outcome))
        runs.delete(keyOf(outcome))
        if (isVerbose || !isQuiet(outcome)) yield* line(`${nameOf(outcome.companyId)} ${outcomeLine(outcome)}`)
        if (active !== undefined) drawn.remove(active.bar)
      }),
    note: line
  } satisfies ProgressShape
})

interface ProgressOptions {
  readonly expectations?: Expectations
  readonly isVerbose?: boolean
}

/** Progress in a style, for as long as the scope. Runs with an estimate show the time left. */
export const layer = (
  style: ProgressStyle,
  { expectations = () => null, isVerbose = false }: ProgressOptions = {}
): Layer.Layer<never> => {
  switch (style) {
    case "bars":
      return Layer.effect(Progress, makeBars(expectations, isVerbose))
    case "lines":
      return Layer.effect(Progress, makeLines(expectations))
    case "quiet":
      return Layer.effect(
        Progress,
        Effect.map(Progress, (silent) => ({ ...silent, note: (text: string) => Output.note(`  ${text}`) }))
      )
    case "none":
      return Layer.empty
  }
}

/**
 * Work that a later run of the same command continues, with its progress. Where a signal stops it, it prints the number of
 * records that are kept, and that command.
 */
export const resumable = <A, E, R>(work: Effect.Effect<A, E, R>, progress: Layer.Layer<never>) =>
  Effect.suspend(() => {
    const kept = new Map<string, number>()
    const counted = Effect.flatMap(Progress, (shape) =>
      Effect.provideService(work, Progress, {
        ...shape,
        landed: (run, totals) => {
          kept.set(keyOf(run), totals.records)
          return shape.landed(run, totals)
        }
      })
    )
    return counted.pipe(
      Effect.provide(progress),
      Effect.onInterrupt(() =>
        Effect.flatMap(CommandLine, (command) => {
          const records = [...kept.values()].reduce((total, one) => total + one, 0)
          return Output.note(`Stopped; ${Output.plural(records, "record")} kept. Continue with: ${command}`)
        })
      )
    )
  })
