/** The read model of runs. */
import * as Effect from "effect/Effect"
import type { RunStatus } from "./Resources.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

export const lanes = ["live", "backfill", "records", "push"] as const
export const statuses: ReadonlyArray<RunStatus> = ["running", "done", "quarantined", "failed", "abandoned"]
export type Lane = (typeof lanes)[number]

/** A place in the list: the microsecond of an end, or `running`; then `-`, and the id of the run. */
export type RunPlace = `${bigint | "running"}-${bigint}`

/** The runs to list; null is any. */
export interface RunFilter {
  readonly companyId: bigint | null
  readonly resource: string | null
  readonly status: RunStatus | null
  readonly lane: Lane | null
  /** Only runs that ended in the hour that begins at this time. */
  readonly hour: Date | null
  /** Only runs that the list has after this place. */
  readonly before: RunPlace | null
}

export const anyRun: RunFilter = { companyId: null, resource: null, status: null, lane: null, hour: null, before: null }

/** SQL: the last name of a company, which was perhaps renamed. */
export const lastNameSql = (companyId: string) =>
  `select company from tributary.companies where company_id = ${companyId} order by seen_at desc, company limit 1`

const columns = `
  r.id, r.company_id as "companyId", (${lastNameSql("r.company_id")}) as company,
  r.resource, r.lane, r.kind, r.status, r.resumed, r.started_at as "beganAt", r.finished_at as "endedAt",
  (extract(epoch from r.finished_at) * 1000000)::int8 as "endedUs",
  r.cursor_from as "cursorFrom", r.cursor_to as "cursorTo", r.pages::float8 as pages, r.requests::float8 as requests,
  r.retries::float8 as retries, r.bytes::float8 as bytes, r.records::float8 as records, r.inserted::float8 as inserted,
  r.updated::float8 as updated, r.unchanged::float8 as unchanged, r.deleted::float8 as deleted,
  r.quarantined::float8 as quarantined, r.late_rows::float8 as late, r.max_lateness_ms::float8 as "lateMs",
  r.stale_records::float8 as "staleVersions", r.quiet_runs::float8 as "quietRuns", r.quiet_since as "quietSince", r.note, r.error_kind as "errorKind", r.error, r.remedy`

export const oneStatement = Statement.make({
  name: "read a run",
  params: ["int8"],
  columns: {
    ...Statement.columns("int8", "id", "companyId"),
    /** Its last name, where it was renamed; null for a company without a stored name. */
    company: "text?",
    resource: "text",
    lane: Statement.as<Lane>("text"),
    kind: "text",
    status: Statement.as<RunStatus>("text"),
    resumed: "bool",
    beganAt: "timestamptz",
    endedAt: "timestamptz?",
    /** Microseconds since 1970. */
    endedUs: "int8?",
    ...Statement.columns("text?", "cursorFrom", "cursorTo"),
    ...Statement.columns("float8", "pages", "requests", "retries", "bytes", "records", "inserted", "updated"),
    ...Statement.columns("float8", "unchanged", "deleted", "quarantined", "late", "lateMs", "staleVersions"),
    /** How many runs in a row found nothing, when the row stands for them; 0 for the row of a single run. */
    quietRuns: "float8",
    quietSince: "timestamptz?",
    ...Statement.columns("text?", "note", "errorKind", "error", "remedy")
  },
  text: `select ${columns} from tributary.runs r where r.id = $1`
})
type RunRow = Statement.RowOf<typeof oneStatement>

export interface Run extends RunRow {
  /** Events that name the run and are dead letters: it did not read their records. Counted for runs by number. */
  readonly deadLetters: number
}

/** How many of the newest dead letters are searched for those of a run. */
export const deadLettersSearched = 20_000

export const deadLettersStatement = Statement.make({
  name: "count the dead letters of runs",
  params: ["int8[]"],
  columns: { run: "int8?", events: "float8" },
  // The addition keeps the search from reading all events by their numbers.
  text: `select run_id as run, count(*)::float8 as events
    from (select run_id from tributary.inbox where state = 'dead_letter' order by id + 0 desc limit ${deadLettersSearched}) newest
   where run_id = any($1::bigint[]) group by 1`
})

const withDeadLetters = Effect.fnUntraced(function* (runs: ReadonlyArray<RunRow>) {
  const byNumber = runs.filter(({ kind }) => kind === "fetch").map(({ id }) => id)
  const found = byNumber.length === 0 ? [] : yield* Statement.run(deadLettersStatement, [byNumber])
  return runs.map((run): Run => ({ ...run, deadLetters: found.find((one) => one.run === run.id)?.events ?? 0 }))
})

export const one = (id: bigint) =>
  Statement.run(oneStatement, [id]).pipe(
    Effect.flatMap(withDeadLetters),
    Effect.map(([run]) => run ?? null)
  )

/** The place of a run in the list. */
export const placeOf = ({ id, endedUs }: RunRow): RunPlace => `${endedUs ?? "running"}-${id}`

const placed = `(r.finished_at, r.id) <
  (timestamptz 'epoch' + split_part(?, '-', 1)::bigint * interval '1 microsecond', split_part(?, '-', 2)::bigint)`

/**
 * Those that run now, newest first, then the others, the last to end first. A row that stands for several runs has the place
 * of the last of them.
 */
export const list = (filter: RunFilter, limit: number): Sql.Query<ReadonlyArray<Run>> =>
  Effect.gen(function* () {
    const { hour, before } = filter
    const conditions = {
      "company_id = ?::bigint": filter.companyId?.toString() ?? null,
      "resource = ?": filter.resource,
      "status = ?": filter.status,
      "lane = ?": filter.lane
    }
    const [, runningBelow = null] = /^running-(.*)$/.exec(before ?? "") ?? []
    const running =
      hour !== null || (before !== null && runningBelow === null)
        ? []
        : yield* Sql.newestRows<RunRow>(
            `select ${columns} from tributary.runs r where status = 'running' and finished_at is null`,
            { ...conditions, "id < ?::bigint": runningBelow },
            limit
          )
    if (running.length >= limit) return yield* withDeadLetters(running)
    const ended = yield* Sql.newestRows<RunRow>(
      `select ${columns} from tributary.runs r where finished_at is not null`,
      {
        ...conditions,
        "finished_at >= ?::timestamptz": hour?.toISOString() ?? null,
        "finished_at < ?::timestamptz + interval '1 hour'": hour?.toISOString() ?? null,
        [placed]: runningBelow === null ? before : null
      },
      limit - running.length,
      "r.finished_at desc, r.id desc"
    )
    return yield* withDeadLetters([...running, ...ended])
  })
