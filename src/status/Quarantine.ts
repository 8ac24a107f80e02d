/** The read model of quarantine entries. */
import * as Effect from "effect/Effect"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

export type EntryState = "open" | "resolved" | "all"

export interface Filter {
  readonly companyId: bigint | null
  readonly resource: string | null
  readonly state: EntryState
  /** The run that saw the entry last. */
  readonly runId?: bigint | null
}

const columns = {
  ...Statement.columns("int8", "id", "companyId"),
  resource: "text",
  ...Statement.columns("text?", "recordId", "field"),
  reason: "text",
  times: "float8",
  ...Statement.columns("timestamptz", "firstSeenAt", "lastSeenAt"),
  resolvedAt: "timestamptz?"
} as const
export type ListedEntry = Statement.RowOf<Statement.Statement<[], typeof columns>>

const selected = `id, company_id as "companyId", resource, record_id as "recordId", field, reason, times::float8 as times,
  first_seen_at as "firstSeenAt", last_seen_at as "lastSeenAt", resolved_at as "resolvedAt"`

const conditions: Readonly<Record<EntryState, string>> = {
  open: "resolved_at is null",
  resolved: "resolved_at is not null",
  all: "true"
}

/** The newest entries below an id, newest first. */
export const list = (
  { companyId, resource, runId = null, state }: Filter,
  before: bigint | null,
  entriesMax: number
): Sql.Query<ReadonlyArray<ListedEntry>> =>
  Sql.newestRows(
    `select ${selected} from tributary.quarantine where ${conditions[state]}`,
    {
      "company_id = ?::bigint": companyId?.toString() ?? null,
      "resource = ?": resource,
      "run_id = ?::bigint": runId?.toString() ?? null,
      "id < ?::bigint": before?.toString() ?? null
    },
    entriesMax
  )

export const openStatement = Statement.make({
  name: "count open quarantine entries",
  params: ["int4"],
  columns: { companyId: "int8", resource: "text", open: "float8" },
  text: `select company_id as "companyId", resource, count(*)::float8 as open from tributary.quarantine
    where resolved_at is null group by 1, 2 order by 3 desc, 1, 2 limit $1::int`
})

/** The numbers of open entries by company and resource, the most first. */
export const open = (rowsMax: number) => Statement.run(openStatement, [rowsMax])

export const oneStatement = Statement.make({
  name: "read a quarantine entry",
  params: ["int8", "int4"],
  columns: {
    ...columns,
    /** As sent, cut to a maximum. */
    bytes: "text",
    characters: "int4",
    isCut: "bool",
    runId: "int8",
    source: "text"
  },
  text: `select ${selected}, left(bytes, $2) as bytes, length(bytes) as characters, length(bytes) > $2 as "isCut", run_id as "runId", source
         from tributary.quarantine where id = $1`
})
export type Entry = Statement.RowOf<typeof oneStatement>

/** One entry; null when there is none. */
export const one = (id: bigint, charactersMax: number): Sql.Query<Entry | null> =>
  Effect.map(Statement.run(oneStatement, [id, charactersMax]), ([row]) => row ?? null)

export const newestOpenStatement = Statement.make({
  name: "read the newest open quarantine entry of a record",
  params: ["int8", "text", "text"],
  columns,
  text: `select ${selected} from tributary.quarantine
        where company_id = $1 and resource = $2 and coalesce(record_id, '') = $3 and resolved_at is null
        order by last_seen_at desc, id desc limit 1`
})

/** The newest open entry of a record. */
export const newestOpen = (companyId: bigint, resource: string, recordId: string): Sql.Query<ListedEntry | null> =>
  Effect.map(Statement.run(newestOpenStatement, [companyId, resource, recordId]), ([row]) => row ?? null)
