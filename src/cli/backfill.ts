/**
 * The command `backfill`: a past range, or everything, read again beside live syncing.
 *
 * Promise: it may be stopped, started and repeated at any time. The same range resumes where it was interrupted; another
 * range begins anew and reports that. No row returns to an older version. Live syncing keeps its own cursor; without
 * one, it continues where a backfill of everything ended.
 */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import type { Configuration } from "../configuration/Configuration.ts"
import { control } from "../postgres/Tables.ts"
import { Progress } from "../sync/Progress.ts"
import type { SyncCompany, SyncReport } from "../sync/Sync.ts"
import * as Query from "../postgres/Query.ts"
import * as BackfillEstimate from "./BackfillEstimate.ts"
import { type ProgressStyle, styleOf } from "./Progress.ts"
import * as SyncProgress from "./SyncProgress.ts"
import { company, config, json, resources, url, verbose, withExamples } from "./Command.ts"
import { codeOf, endWith } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as Sync from "./sync.ts"
import { onTargets } from "./Targets.ts"
import { type Range, rangeOf, since, until } from "./TimeRange.ts"

interface LiveState {
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

interface BackfillReport extends SyncReport {
  readonly backfill: Range
  readonly live: LiveState
}

/** Backfills the targets. */
const run = Effect.fn("backfill.run")(function* (
  settings: Configuration,
  backfill: Range,
  targets: ReadonlyArray<SyncCompany>,
  style: ProgressStyle,
  isVerbose: boolean
) {
  const estimate = yield* BackfillEstimate.make(settings, backfill, targets)
  for (const remark of estimate.remarks) yield* Output.note(`tributary: ${remark}`)
  const synced = Sync.run(settings, { backfill }, targets)
  const isShown = style === "bars" || style === "lines"
  const report = yield* SyncProgress.resumable(
    isShown
      ? Effect.gen(function* () {
          yield* Effect.forkScoped(estimate.refine)
          return yield* Effect.provideService(synced, Progress, estimate.watch(yield* Progress))
        }).pipe(Effect.scoped)
      : synced,
    SyncProgress.layer(style, { expectations: estimate.expectations, isVerbose })
  )
  const live = yield* liveAfter(report)
  return { ...report, backfill, live } satisfies BackfillReport
})

/** The report for people. */
const lines = (report: BackfillReport): ReadonlyArray<string> => {
  const { follows, neverSynced } = report.live
  return [
    ...Sync.summary(report),
    ...(follows.length === 0
      ? []
      : [`Live syncing of ${names(follows)} continues from here: tributary sync reads the later changes`]),
    ...(neverSynced.length === 0
      ? []
      : [`Live syncing has not read ${names(neverSynced)} yet: tributary sync will read every record`])
  ]
}

export const command = Command.make(
  "backfill",
  {
    resources: resources("read"),
    company,
    since,
    until,
    verbose,
    url,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const report = yield* Effect.flatMap(rangeOf(flags.since, flags.until), (backfill) =>
      onTargets(flags, { companies: flags.company, resources: flags.resources }, (settings, companies) =>
        run(settings, backfill, companies, styleOf(flags), flags.verbose)
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
