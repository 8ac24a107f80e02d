/** The ledger of runs, for people. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { RunStatus } from "./Resources.ts"

export const lanes = ["live", "backfill", "records", "push"] as const
export const statuses: ReadonlyArray<RunStatus> = ["running", "done", "quarantined", "failed", "abandoned"]
export type Lane = (typeof lanes)[number]

export interface Run {
  readonly id: bigint
  readonly companyId: bigint
  /** Null for a company that is not configured under any name that was seen. */
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

/** What runs are wanted; null is any. */
export interface RunFilter {
  readonly companyId: bigint | null
  readonly resource: string | null
  readonly status: RunStatus | null
  readonly lane: Lane | null
  /** Only those before it. */
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

/** Newest first, at most so many. */
export const list = Effect.fn("dashboard.Runs.list")(function* (filter: RunFilter, limit: number) {
  const sql = yield* SqlClient.SqlClient
  const wanted: ReadonlyArray<readonly [condition: (parameter: string) => string, value: string | null]> = [
    [(parameter) => `r.company_id = ${parameter}::bigint`, filter.companyId?.toString() ?? null],
    [(parameter) => `r.resource = ${parameter}`, filter.resource],
    [(parameter) => `r.status = ${parameter}`, filter.status],
    [(parameter) => `r.lane = ${parameter}`, filter.lane],
    [(parameter) => `r.id < ${parameter}::bigint`, filter.before?.toString() ?? null]
  ]
  const given = wanted.flatMap(([condition, value]) => (value === null ? [] : [{ condition, value }]))
  const where = given.map(({ condition }, index) => condition(`$${index + 2}`))
  return yield* sql.unsafe<Run>(
    `select ${columns} from tributary.runs r ${where.length === 0 ? "" : `where ${where.join(" and ")}`}
      order by r.id desc limit $1`,
    [limit, ...given.map(({ value }) => value)]
  )
})

export const one = Effect.fn("dashboard.Runs.one")(function* (id: bigint) {
  const sql = yield* SqlClient.SqlClient
  const [run] = yield* sql.unsafe<Run>(`select ${columns} from tributary.runs r where r.id = $1::bigint`, [
    id.toString()
  ])
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

/** Open entries of the quarantine of a resource, newest first; those that a run met last, or of any. */
export const quarantine = Effect.fn("dashboard.Runs.quarantine")(function* (
  companyId: bigint,
  resource: string,
  runId: bigint | null,
  limit: number
) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.unsafe<QuarantinedRecord>(
    `select id, run_id as "runId", record_id as "recordId", field, reason, last_seen_at as "lastSeenAt"
       from tributary.quarantine
      where resolved_at is null and company_id = $1::bigint and resource = $2 and ($3::bigint is null or run_id = $3::bigint)
      order by id desc limit $4`,
    [companyId.toString(), resource, runId?.toString() ?? null, limit]
  )
})
