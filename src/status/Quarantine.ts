/** Records that could not be landed, for people; and letting go of what the source no longer shows. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

export type EntryState = "open" | "resolved" | "all"

export interface Filter {
  readonly companyId: bigint | null
  readonly resource: string | null
  readonly state: EntryState
}

export interface ListedEntry {
  readonly id: bigint
  readonly companyId: bigint
  readonly resource: string
  readonly recordId: string | null
  readonly field: string | null
  readonly reason: string
  readonly times: number
  readonly firstSeenAt: Date
  readonly lastSeenAt: Date
  readonly resolvedAt: Date | null
}

export interface Entry extends ListedEntry {
  /** As sent; cut after so many characters as were asked for. */
  readonly bytes: string
  readonly characters: number
  readonly isCut: boolean
  readonly runId: bigint
  readonly source: string
}

/** How many are open. */
export interface OpenCount {
  readonly companyId: bigint
  readonly resource: string
  readonly open: number
}

const columns = `id, company_id as "companyId", resource, record_id as "recordId", field, reason, times::float8 as times,
  first_seen_at as "firstSeenAt", last_seen_at as "lastSeenAt", resolved_at as "resolvedAt"`

const conditions: Readonly<Record<EntryState, string>> = {
  open: "resolved_at is null",
  resolved: "resolved_at is not null",
  all: "true"
}

/** The newest before a number, newest first. */
export const list = (
  { companyId, resource, state }: Filter,
  before: bigint | null,
  atMost: number
): Effect.Effect<ReadonlyArray<ListedEntry>, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    // Only what is asked for stands in the statement, so that each has an index of its own.
    const parameters: Array<string | number> = []
    const where = [conditions[state]]
    const add = (condition: (parameter: string) => string, value: string | number) => {
      parameters.push(value)
      where.push(condition(`$${parameters.length}`))
    }
    if (companyId !== null) add((p) => `company_id = ${p}::bigint`, companyId.toString())
    if (resource !== null) add((p) => `resource = ${p}`, resource)
    if (before !== null) add((p) => `id < ${p}::bigint`, before.toString())
    parameters.push(atMost)
    return sql.unsafe<ListedEntry>(
      `select ${columns} from tributary.quarantine where ${where.join(" and ")} order by id desc limit $${parameters.length}::int`,
      parameters
    )
  })

/** How many are open, by company and resource. */
export const open: Effect.Effect<ReadonlyArray<OpenCount>, SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    sql.unsafe<OpenCount>(
      `select company_id as "companyId", resource, count(*)::float8 as open from tributary.quarantine
        where resolved_at is null group by 1, 2 order by 1, 2`
    )
)

/** One of them; null when there is none of the number. */
export const one = (id: bigint, charactersMax: number): Effect.Effect<Entry | null, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql.unsafe<Entry>(
        `select ${columns}, left(bytes, $2::int) as bytes, length(bytes) as characters, length(bytes) > $2::int as "isCut", run_id as "runId", source
           from tributary.quarantine where id = $1::bigint`,
        [id.toString(), charactersMax]
      ),
      ([row]) => row ?? null
    )
  )

/** The newest that is open of a record. */
export const newestOpen = (
  companyId: bigint,
  resource: string,
  recordId: string
): Effect.Effect<ListedEntry | null, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql.unsafe<ListedEntry>(
        `select ${columns} from tributary.quarantine
          where company_id = $1::bigint and resource = $2 and coalesce(record_id, '') = $3 and resolved_at is null
          order by last_seen_at desc, id desc limit 1`,
        [companyId.toString(), resource, recordId]
      ),
      ([row]) => row ?? null
    )
  )
