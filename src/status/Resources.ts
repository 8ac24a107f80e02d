/**
 * The state of every resource (`tributary.resource_states`) with its task, last run and checkpoint.
 *
 * Promise: one statement reads all resources, each by an index, whatever the number of runs.
 */
import * as Effect from "effect/Effect"
import { learnedOverlap } from "../warehouse/Overlap.ts"
import * as CountRows from "../tasks/CountRows.ts"
import * as TaskQueue from "../tasks/TaskQueue.ts"
import type { PushSettings } from "../outbox/PushSession.ts"
import type { Company } from "../sync/Company.ts"
import * as Statement from "../postgres/Statement.ts"

export type RunStatus = "running" | "done" | "quarantined" | "failed" | "abandoned"

export interface LastRun extends Pick<Row, "endedAt" | "errorKind" | "error" | "remedy" | "note"> {
  readonly id: bigint
  readonly status: RunStatus
  readonly kind: string
  readonly beganAt: Date
}

export type Checkpoint = Pick<
  Row,
  "cursor" | "overlapMs" | "lateMs" | "fullScanAt" | "fullWanted" | "scanKind" | "scanPages"
>

export interface ResourceState {
  readonly company: string
  /** Null until the source has answered it. */
  readonly companyId: bigint | null
  readonly resource: string
  /** Null without a schedule. */
  readonly task: TaskQueue.Task | null
  readonly backfill: TaskQueue.Task | null
  readonly checkpoint: Checkpoint | null
  readonly lastRun: LastRun | null
  /** The start of the last run that made it fresh, or the time at which events prove it fresh. */
  readonly freshAt: Date | null
  /** Whether that is the proof by events. */
  readonly isProven: boolean
  readonly rows: CountRows.RowCount | null
  readonly quarantined: number
  readonly health: Health
  /** The last failure of a failing or blocked resource; null otherwise. */
  readonly failure: { readonly at: Date | null; readonly error: string; readonly remedy: string | null } | null
}

/** A company on the dashboard. */
export interface ShownCompany extends Company {
  /** The name of its installation, or the host of its address. */
  readonly installation: string
  /** The key of its rate budget in `tributary.budgets`. */
  readonly fingerprint: string
  /** The address that the source delivers events to; null where `webhooks.public_url` is not set. */
  readonly receivesAt: string | null
  /** How rejected rows of a push are sent again. */
  readonly push: PushSettings
  /** The resources that `exclude_resources` leaves out, paths or patterns; absent: none. */
  readonly excluded?: ReadonlyArray<{ readonly pattern: string }>
}

/** Worst first. `never-synced` is not late: it has no target, or its first run is under way. `blocked`: the token may not read it. */
export const healthStates = ["failing", "late", "never-synced", "quarantine", "blocked", "paused", "fresh"] as const
export type HealthState = (typeof healthStates)[number]

/** As in `tributary.resource_states`. `ageMs` is null where nothing made it fresh. */
export type Health = Pick<
  Row,
  "state" | "isFailing" | "isLate" | "isPaused" | "isRunning" | "isBlocked" | "ageMs" | "targetMs"
>

/** Compares by health, the worst first; equally bad ones by age against target, others by name. */
export const worse = (one: ResourceState, other: ResourceState): number => {
  const rank = ({ health }: ResourceState) => healthStates.indexOf(health.state)
  const share = ({ health: { ageMs, targetMs } }: ResourceState) =>
    ageMs === null || targetMs === null ? 0 : ageMs / targetMs
  const isBad = one.health.isFailing || one.health.isLate
  return rank(one) - rank(other) || (isBad ? share(other) - share(one) : 0) || (one.resource < other.resource ? -1 : 1)
}

export const resourcesStatement = Statement.make({
  name: "read the state of resources",
  params: ["jsonb", "text?"],
  columns: {
    company: "text",
    companyId: "int8?",
    resource: "text",
    hasCheckpoint: "bool",
    cursor: "text?",
    ...Statement.columns("float8", "overlapMs", "lateMs"),
    fullScanAt: "timestamptz?",
    /** Why the next run reads every record; null when it need not. */
    fullWanted: "text?",
    /** Of an interrupted scan, which the next run continues. */
    scanKind: "text?",
    scanPages: "float8?",
    runId: "int8?",
    status: Statement.as<RunStatus | null>("text?"),
    kind: "text?",
    ...Statement.columns("timestamptz?", "beganAt", "endedAt"),
    ...Statement.columns("text?", "errorKind", "error", "remedy", "note"),
    freshAt: "timestamptz?",
    isProven: "bool",
    quarantined: "float8",
    state: Statement.as<HealthState>("text"),
    ...Statement.columns("bool", "isFailing", "isLate", "isBlocked", "isPaused", "isRunning"),
    ...Statement.columns("float8?", "ageMs", "targetMs"),
    /** Why it failed at last, and what to do; null unless it is failing or blocked. */
    ...Statement.columns("text?", "problem", "step"),
    failedAt: "timestamptz?"
  },
  text: `select f.company, f.company_id as "companyId", f.resource, k.company_id is not null as "hasCheckpoint",
         k.cursor, coalesce(${learnedOverlap("k")}, 0)::float8 as "overlapMs", coalesce(k.max_lateness_ms, 0)::float8 as "lateMs",
         k.full_scan_at as "fullScanAt", k.full_scan_reason as "fullWanted", s.kind as "scanKind",
         s.pages::float8 as "scanPages", r.id as "runId", r.status, r.kind, r.started_at as "beganAt",
         r.finished_at as "endedAt", r.error_kind as "errorKind", r.error, r.remedy, r.note, f.fresh_at as "freshAt",
         f.is_proven as "isProven", f.quarantined::float8 as quarantined, f.state, f.is_failing as "isFailing", f.is_late as "isLate",
         f.is_blocked as "isBlocked", f.is_paused as "isPaused", f.is_running as "isRunning",
         (extract(epoch from f.age) * 1000)::float8 as "ageMs", (extract(epoch from f.target) * 1000)::float8 as "targetMs",
         f.error as problem, f.remedy as step, f.failed_at as "failedAt"
    from tributary.resource_states f
    left join tributary.checkpoints k
      on k.company_id = f.company_id and k.resource = f.resource and k.lane = 'live'
    left join tributary.scans s on s.company_id = f.company_id and s.resource = f.resource and s.lane = 'live'
    left join tributary.runs r on r.id = f.last_run_id
   where f.company = any(array(select jsonb_array_elements_text($1::jsonb))) and ($2::text is null or f.resource = $2)
   order by f.company, f.resource`
})
type Row = Statement.RowOf<typeof resourcesStatement>

const lastRunOf = ({ runId, status, kind, beganAt, endedAt, errorKind, error, remedy, note }: Row): LastRun | null =>
  runId === null || status === null || kind === null || beganAt === null
    ? null
    : { id: runId, status, kind, beganAt, endedAt, errorKind, error, remedy, note }

/** All resources of these companies, or one of them, by company and name. */
export const read = Effect.fn("dashboard.Resources.read")(function* (
  companies: ReadonlyArray<Pick<Company, "name">>,
  resource: string | null = null
) {
  const names = companies.map(({ name }) => name)
  const rows = yield* Statement.run(resourcesStatement, [JSON.stringify(names), resource])
  const tasks = new Map(
    (yield* TaskQueue.readTasksOf(names, resource)).map(
      (task) => [`${task.kind} ${task.company} ${task.resource}`, task] as const
    )
  )
  const counts = yield* CountRows.readOf([...new Set(rows.flatMap(({ companyId }) => companyId ?? []))])
  return rows.map((row): ResourceState => ({
    company: row.company,
    companyId: row.companyId,
    resource: row.resource,
    task: tasks.get(`sync ${row.company} ${row.resource}`) ?? null,
    backfill: tasks.get(`backfill ${row.company} ${row.resource}`) ?? null,
    checkpoint: row.hasCheckpoint ? row : null,
    lastRun: lastRunOf(row),
    freshAt: row.freshAt,
    isProven: row.isProven,
    rows: row.companyId === null ? null : (counts.get(`${row.companyId} ${row.resource}`) ?? null),
    quarantined: row.quarantined,
    health: row,
    failure: row.problem === null ? null : { at: row.failedAt, error: row.problem, remedy: row.step }
  }))
})
