/** Runs and their open quarantine. */
import * as Effect from "effect/Effect"
import type { RunStatus } from "./Resources.ts"
import * as Sql from "../postgres/Sql.ts"

export const lanes = ["live", "backfill", "records", "push"] as const
export const statuses: ReadonlyArray<RunStatus> = ["running", "done", "quarantined", "failed", "abandoned"]
export type Lane = (typeof lanes)[number]

export interface Run {
  readonly id: bigint
  readonly companyId: bigint
  /** Null for a company without a stored name. */
  readonly company: string | null
  readonly resource: string
  readonly lane: Lane
  readonly kind: string
  readonly status: RunStatus
  readonly resumed: boolean
  readonly beganAt: Date
  readonly endedAt: Date | null
  readonly cursorFrom: string | null
  readonly cursorTo: string | null
  readonly pages: number
  readonly requests: number
  readonly retries: number
  readonly bytes: number
  readonly records: number
  readonly inserted: number
  readonly updated: number
  readonly unchanged: number
  readonly deleted: number
  readonly quarantined: number
  readonly late: number
  readonly lateMs: number
  readonly staleVersions: number
  readonly note: string | null
  readonly errorKind: string | null
  readonly error: string | null
  readonly remedy: string | null
}

/** The runs to list; null is any. */
export interface RunFilter {
  readonly companyId: bigint | null
  readonly resource: string | null
  readonly status: RunStatus | null
  readonly lane: Lane | null
  /** Only runs with a smaller id. */
  readonly before: bigint | null
}

export const anyRun: RunFilter = { companyId: null, resource: null, status: null, lane: null, before: null }

const columns = `
  r.id, r.company_id as "companyId", (select min(c.company) from tributary.companies c where c.company_id = r.company_id) as company,
  r.resource, r.lane, r.kind, r.status, r.resumed, r.started_at as "beganAt", r.finished_at as "endedAt",
  r.cursor_from as "cursorFrom", r.cursor_to as "cursorTo", r.pages::float8 as pages, r.requests::float8 as requests,
  r.retries::float8 as retries, r.bytes::float8 as bytes, r.records::float8 as records, r.inserted::float8 as inserted,
  r.updated::float8 as updated, r.unchanged::float8 as unchanged, r.deleted::float8 as deleted,
  r.quarantined::float8 as quarantined, r.late_rows::float8 as late, r.max_lateness_ms::float8 as "lateMs",
  r.stale_records::float8 as "staleVersions", r.note, r.error_kind as "errorKind", r.error, r.remedy`

/** Newest first. */
export const list = Effect.fn("dashboard.Runs.list")(function* (filter: RunFilter, limit: number) {
  const given = Object.entries({
    "r.company_id = ?::bigint": filter.companyId?.toString() ?? null,
    "r.resource = ?": filter.resource,
    "r.status = ?": filter.status,
    "r.lane = ?": filter.lane,
    "r.id < ?::bigint": filter.before?.toString() ?? null
  }).filter(([, value]) => value !== null)
  const where = given.map(([condition], index) => condition.replace("?", `$${index + 2}`))
  return yield* Sql.rows<Run>(
    `select ${columns} from tributary.runs r ${where.length === 0 ? "" : `where ${where.join(" and ")}`}
      order by r.id desc limit $1`,
    [limit, ...given.map(([, value]) => value)]
  )
})

export const one = Effect.fn("dashboard.Runs.one")(function* (id: bigint) {
  const [run] = yield* Sql.rows<Run>(`select ${columns} from tributary.runs r where r.id = $1::bigint`, [id.toString()])
  return run ?? null
})

export interface QuarantinedRecord {
  readonly id: bigint
  readonly runId: bigint
  readonly recordId: string | null
  readonly field: string | null
  readonly reason: string
  readonly lastSeenAt: Date
}

/** Open quarantine of a resource, newest first; with a run, the entries that this run met last. */
export const quarantine = Effect.fn("dashboard.Runs.quarantine")(function* (
  companyId: bigint,
  resource: string,
  runId: bigint | null,
  limit: number
) {
  return yield* Sql.rows<QuarantinedRecord>(
    `select id, run_id as "runId", record_id as "recordId", field, reason, last_seen_at as "lastSeenAt"
       from tributary.quarantine
      where resolved_at is null and company_id = $1::bigint and resource = $2 and ($3::bigint is null or run_id = $3::bigint)
      order by id desc limit $4`,
    [companyId.toString(), resource, runId?.toString() ?? null, limit]
  )
})
