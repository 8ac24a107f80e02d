/** Quarantine entries. */
import * as Effect from "effect/Effect"
import * as Sql from "../postgres/Sql.ts"

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
  /** As sent, cut to a maximum. */
  readonly bytes: string
  readonly characters: number
  readonly isCut: boolean
  readonly runId: bigint
  readonly source: string
}

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

/** The newest entries below an id, newest first. */
export const list = (
  { companyId, resource, state }: Filter,
  before: bigint | null,
  entriesMax: number
): Sql.Query<ReadonlyArray<ListedEntry>> => {
  // The statement contains only the given conditions, so that Postgres can use the index of each.
  const given = Object.entries({
    "company_id = ?::bigint": companyId?.toString() ?? null,
    "resource = ?": resource,
    "id < ?::bigint": before?.toString() ?? null
  }).filter(([, value]) => value !== null)
  const where = [conditions[state], ...given.map(([condition], index) => condition.replace("?", `$${index + 2}`))]
  return Sql.rows<ListedEntry>(
    `select ${columns} from tributary.quarantine where ${where.join(" and ")} order by id desc limit $1::int`,
    [entriesMax, ...given.map(([, value]) => value)]
  )
}

/** The numbers of open entries, by company and resource. */
export const open: Sql.Query<ReadonlyArray<OpenCount>> = Sql.rows<OpenCount>(
  `select company_id as "companyId", resource, count(*)::float8 as open from tributary.quarantine
    where resolved_at is null group by 1, 2 order by 1, 2`
)

/** One entry; null when there is none. */
export const one = (id: bigint, charactersMax: number): Sql.Query<Entry | null> =>
  Effect.map(
    Sql.rows<Entry>(
      `select ${columns}, left(bytes, $2::int) as bytes, length(bytes) as characters, length(bytes) > $2::int as "isCut", run_id as "runId", source
         from tributary.quarantine where id = $1::bigint`,
      [id.toString(), charactersMax]
    ),
    ([row]) => row ?? null
  )

/** The newest open entry of a record. */
export const newestOpen = (companyId: bigint, resource: string, recordId: string): Sql.Query<ListedEntry | null> =>
  Effect.map(
    Sql.rows<ListedEntry>(
      `select ${columns} from tributary.quarantine
        where company_id = $1::bigint and resource = $2 and coalesce(record_id, '') = $3 and resolved_at is null
        order by last_seen_at desc, id desc limit 1`,
      [companyId.toString(), resource, recordId]
    ),
    ([row]) => row ?? null
  )
