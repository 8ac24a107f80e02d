/**
 * The command `backfill`: a past range, or everything, read again beside live syncing.
 *
 * Promise: it may be stopped, started and repeated at any time. The same range resumes where it was interrupted; another
 * range begins anew and reports that. No row returns to an older version. Live syncing keeps its own cursor; without
 * one, it continues where a backfill of everything ended.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { Priority } from "../budget/Budget.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { isAfter } from "../connector/Instant.ts"
import { control } from "../postgres/Tables.ts"
import { plan, type PlanCompany } from "../sync/Estimate.ts"
import { Progress, type ProgressShape } from "../sync/Progress.ts"
import type { SyncCompany, SyncReport } from "../sync/Sync.ts"
import * as Query from "../postgres/Query.ts"
import { type ProgressStyle, styleOf } from "./Progress.ts"
import * as SyncProgress from "./SyncProgress.ts"
import { company, config, json, reported, resources, url, withExamples } from "./Command.ts"
import { codeOf, type CommandFailed, endWith, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as Sync from "./sync.ts"
import { onTargets } from "./Targets.ts"

// ---------------------------------------------------------------------------------------------------------- the range

const timePattern = /^(\d{4}-\d{2}-\d{2})(?:T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z)?$/

const isTime = (text: string): boolean => {
  const day = timePattern.exec(text)?.[1]
  if (day === undefined) return false
  const milliseconds = Date.parse(`${day}T00:00:00Z`)
  return !Number.isNaN(milliseconds) && new Date(milliseconds).toISOString().startsWith(day)
}

/** An instant, RFC 3339 in UTC, or a day. */
export const Time = Schema.String.check(
  Schema.makeFilter((text: string) =>
    isTime(text) ? undefined : `Expected a day like 2026-01-31, or a time in UTC like 2026-01-31T08:00:00Z`
  )
)

const isDay = (text: string) => text.length === 10

export interface Range {
  readonly since: string | null
  readonly until: string | null
}

/** Both ends are included. A day is its beginning as `since` and its end as `until`. */
export const rangeOf = (
  since: Option.Option<string>,
  until: Option.Option<string>
): Effect.Effect<Range, CommandFailed> => {
  const range = {
    since: Option.getOrNull(Option.map(since, (text) => (isDay(text) ? `${text}T00:00:00Z` : text))),
    until: Option.getOrNull(Option.map(until, (text) => (isDay(text) ? `${text}T23:59:59.999999999Z` : text)))
  }
  return range.since !== null && range.until !== null && isAfter(range.until, range.since) !== true
    ? Effect.fail(
        usageError(
          `--since must be before --until: ${Option.getOrThrow(since)} is not before ${Option.getOrThrow(until)}`
        )
      )
    : Effect.succeed(range)
}

export const since = Flag.String("since").pipe(
  Flag.withDescription(
    "Only records that changed at this time or later: a day, or RFC 3339 in UTC (default: everything)"
  ),
  Flag.withMetavar("T"),
  Flag.withSchema(Time),
  Flag.optional
)

export const until = Flag.String("until").pipe(
  Flag.withDescription("Only records that changed at this time or before; a day is included as a whole (default: now)"),
  Flag.withMetavar("T"),
  Flag.withSchema(Time),
  Flag.optional
)

// ------------------------------------------------------------------------------------------------------ the time left

/** Interval at which the remaining size of long runs is requested from the source. */
const askAfter = "15 seconds"

interface AtWork {
  readonly records: number
  readonly requests: number
}

const planOptions = (settings: Configuration, backfill: Range) => ({
  datasets: settings.datasets,
  full: false,
  engine: settings.engine,
  freshnessOf: settings.freshnessOf,
  backfill,
  pageSize: settings.pageSize,
  concurrency: settings.concurrency
})

/** The expected size of each run: at first an estimate from the warehouse, for long runs the answer of the source. */
const expecting = Effect.fnUntraced(function* (
  settings: Configuration,
  range: Range,
  targets: ReadonlyArray<SyncCompany>
) {
  const expected = new Map<string, SyncProgress.Expected>()
  const identified = yield* Effect.forEach(
    targets,
    (target) =>
      Effect.result(target.connector.identify).pipe(
        Effect.map((result): ReadonlyArray<PlanCompany> =>
          // The backfill itself reports the failure.
          result._tag === "Success" ? [{ ...target, companyId: result.success.companyId }] : []
        )
      ),
    { concurrency: "unbounded" }
  )
  const companies = identified.flat()
  const estimateOptions = planOptions(settings, range)
  const beforehand = yield* plan({ ...estimateOptions, companies, probe: false })
  const remarks: Array<string> = []
  const unknown = new Map<string, PlanCompany>()
  for (const [index, planned] of beforehand.companies.entries()) {
    if (planned.companyId === null) continue
    for (const one of planned.resources) {
      const key = SyncProgress.keyOf({ companyId: planned.companyId, resource: one.resource })
      if (one.because !== null) remarks.push(`${one.resource}: ${one.because}`)
      if (one.resumesAt !== null) remarks.push(`${one.resource}: resumes at page ${one.resumesAt}`)
      if (one.certainty === "about") expected.set(key, { records: one.records, requests: one.requests })
      else {
        const company = companies[index]!
        const resources = company.resources.filter(({ path }) => path === one.resource)
        unknown.set(key, { ...company, resources })
      }
    }
  }

  const atWork = yield* Ref.make<ReadonlyMap<string, AtWork>>(new Map())
  const change = (key: string, work: AtWork | null) =>
    Ref.update(atWork, (all) => {
      const changed = new Map(all)
      if (work === null) changed.delete(key)
      else changed.set(key, work)
      return changed
    })
  const watching = (progress: ProgressShape): ProgressShape => ({
    ...progress,
    began: (run) => Effect.andThen(change(SyncProgress.keyOf(run), { records: 0, requests: 0 }), progress.began(run)),
    landed: (run, totals) => Effect.andThen(change(SyncProgress.keyOf(run), totals), progress.landed(run, totals)),
    ended: (outcome) => Effect.andThen(change(SyncProgress.keyOf(outcome), null), progress.ended(outcome))
  })

  const askOnce = Effect.gen(function* () {
    for (const [key, work] of yield* Ref.get(atWork)) {
      const company = unknown.get(key)
      if (company === undefined) continue
      unknown.delete(key)
      const asked = yield* plan({ ...estimateOptions, companies: [company], probe: true })
      const left = asked.companies[0]?.resources[0]
      const records = left?.records ?? null
      if (left === undefined || records === null || left.certainty === "atLeast") continue
      const now = (yield* Ref.get(atWork)).get(key) ?? work
      expected.set(key, { records: now.records + records, requests: now.requests + left.requests })
    }
  })
  const asking = askOnce.pipe(
    Effect.ignore,
    Effect.repeat(Schedule.spaced(askAfter)),
    Effect.delay(askAfter),
    Effect.provideService(Priority, { class: "backfill", dueAt: Number.POSITIVE_INFINITY })
  )
  const expectations: SyncProgress.Expectations = (run) => expected.get(SyncProgress.keyOf(run)) ?? null
  return { remarks, watching, asking, expectations }
})

// --------------------------------------------------------------------------------------------- the effect on live syncs

export interface LiveState {
  /** Resources whose live syncing now continues from the start of the backfill. */
  readonly follows: ReadonlyArray<string>
  /** Resources that live syncing has not completed once; its next run is a full scan. */
  readonly neverSynced: ReadonlyArray<string>
}

/** The state of live syncing after the backfill. */
const liveAfter = Effect.fnUntraced(function* (report: SyncReport) {
  const rows = yield* Query.run(
    control
      .selectFrom("tributary.checkpoints as l")
      .innerJoin("tributary.checkpoints as b", (join) =>
        join.onRef("l.company_id", "=", "b.company_id").onRef("l.resource", "=", "b.resource")
      )
      .where("l.lane", "=", "live")
      .where("b.lane", "=", "backfill")
      .select(["l.company_id", "l.resource", "l.cursor", "l.full_scan_at", "b.full_scan_at as backfilled_at"])
  )
  const byKey = new Map(rows.map((row) => [`${row.company_id} ${row.resource}`, row]))
  const follows: Array<string> = []
  const neverSynced: Array<string> = []
  for (const outcome of report.companies.flatMap(({ outcomes }) => outcomes)) {
    if (outcome.status !== "done" && outcome.status !== "quarantined") continue
    const row = byKey.get(SyncProgress.keyOf(outcome))
    if (row === undefined) continue
    if (row.cursor === null && row.full_scan_at === null) neverSynced.push(outcome.resource)
    else if (row.full_scan_at !== null && row.full_scan_at.getTime() === row.backfilled_at?.getTime()) {
      follows.push(outcome.resource)
    }
  }
  return { follows, neverSynced } satisfies LiveState
})

const namesShownMax = 6

const names = (resources: ReadonlyArray<string>): string => Output.firstOf([...new Set(resources)], namesShownMax)

// ---------------------------------------------------------------------------------------------------------- the command

export interface BackfillReport extends SyncReport {
  readonly backfill: Range
  readonly live: LiveState
}

/** Backfills the targets. */
export const run = Effect.fn("backfill.run")(function* (
  settings: Configuration,
  backfill: Range,
  targets: ReadonlyArray<SyncCompany>,
  style: ProgressStyle
) {
  const expectation = yield* expecting(settings, backfill, targets)
  for (const remark of expectation.remarks) yield* Output.note(`tributary: ${remark}`)
  const synced = Effect.gen(function* () {
    if (style === "none") return yield* Sync.run(settings, { backfill }, targets)
    const progress = yield* Progress
    yield* Effect.forkScoped(expectation.asking)
    return yield* Effect.provideService(
      Sync.run(settings, { backfill }, targets),
      Progress,
      expectation.watching(progress)
    )
  }).pipe(Effect.scoped, Effect.provide(SyncProgress.layer(style, expectation.expectations)))
  const report = yield* synced
  const live = yield* liveAfter(report)
  return { ...report, backfill, live } satisfies BackfillReport
})

/** The report for people. */
export const lines = (report: BackfillReport): ReadonlyArray<string> => {
  const { follows, neverSynced } = report.live
  return [
    Sync.summary(report),
    ...(follows.length === 0
      ? []
      : [`Live syncing of ${names(follows)} continues from here: npx tributary sync reads the later changes`]),
    ...(neverSynced.length === 0
      ? []
      : [`Live syncing has not read ${names(neverSynced)} yet: npx tributary sync will read every record`])
  ]
}

export const command = Command.make(
  "backfill",
  {
    resources: resources("read"),
    company,
    since,
    until,
    url,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const report = yield* reported(
      Effect.flatMap(rangeOf(flags.since, flags.until), (backfill) =>
        onTargets(flags, { companies: flags.company, resources: flags.resources }, (settings, companies) =>
          run(settings, backfill, companies, styleOf(flags))
        )
      )
    )
    yield* Sync.noteProblems(report)
    yield* Output.printResult(flags.json, report, lines)
    yield* endWith(codeOf(report))
  })
).pipe(
  withExamples({
    "tributary backfill": "Read everything of every resource",
    "tributary backfill --since 2026-01-01 --until 2026-01-31": "The changes of January, both days included"
  })
)
