/**
 * A search for records by number, key or external id.
 *
 * Promise: no large table is read as a whole. Numbers are found by the primary keys, texts by the indexes of
 * `searchIndexesOf`. Resources whose table is large and has no such index yet are named. At most {@link foundMax}
 * records are returned.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { searchColumnsOf, searchIndexName } from "../warehouse/Indexes.ts"
import type { Column, Table } from "../warehouse/Table.ts"
import { canFind, findTables, type FoundTable, lineColumns, type RecordLine, selectLine } from "./RecordTables.ts"

/** Records of one resource. */
export const perResourceMax = 20
export const foundMax = 200
/** Companies that one search covers: each has an entry of its own in every index. */
export const companiesMax = 50

export interface RecordQuery {
  readonly companies: ReadonlyArray<bigint>
  readonly tables: ReadonlyArray<Table>
  readonly text: string
  /** Only keys that begin with the text; otherwise these only where no record has exactly the text. */
  readonly isPrefix: boolean
}

/** How a record fits the text: by its `number`, by a whole `text`, by the `beginning` of one. */
type TableMatch = "number" | "text" | "beginning"
/** `quarantine`: the number is that of a record that never landed. */
export type Match = TableMatch | "quarantine"

export interface FoundRecord extends RecordLine {
  readonly match: Match
}

export interface SearchResult {
  readonly records: ReadonlyArray<FoundRecord>
  /** Whether there may be more records. */
  readonly isCut: boolean
  /** Resources whose texts were not searched. */
  readonly unsearched: ReadonlyArray<string>
}

const maxBigint = 9_223_372_036_854_775_807n

/** Whether it can be the number of a record. */
export const isNumber = (text: string): boolean => {
  if (!/^-?\d{1,19}$/.test(text)) return false
  const number = BigInt(text)
  return number <= maxBigint && number >= -maxBigint
}

/** The highest character. */
const highest = "chr(1114111)"

/** A range of the index instead of `like`, which needs a plan of its own for each pattern. */
const compare = (text: string, match: "text" | "beginning"): string =>
  match === "text"
    ? `${text} = lower($3::text)`
    : `${text} ~>=~ lower($3::text) and ${text} ~<~ (lower($3::text) || ${highest})`

/** A condition for each index that finds records. */
const conditionsOf = (columns: ReadonlyArray<Column>, match: TableMatch): ReadonlyArray<string> => {
  if (match === "number") return [`id = $2::bigint`]
  return columns.map(({ sql }) => `${sql} is not null and ${compare(`lower(${sql})`, match)}`)
}

const searchedColumns = (found: FoundTable): ReadonlyArray<Column> =>
  searchColumnsOf(found.table).filter(({ name }) => found.columns.has(name))

const branches = (found: FoundTable, match: TableMatch): ReadonlyArray<string> => {
  const columns = searchedColumns(found).filter((column) => canFind(found, searchIndexName(found.table, column)))
  const conditions = conditionsOf(columns, match)
  // A small table is read once; each index of a large one is used by itself.
  const read = found.isSmall && conditions.length > 1 ? [conditions.map((one) => `(${one})`).join(" or ")] : conditions
  return read.map(
    (condition) =>
      `(${selectLine(found)}, '${match}'::text as match from ${found.table.current} where _company_id = any($1::bigint[]) and (${condition}) limit ${perResourceMax + 1})`
  )
}

const readMatches = (
  found: ReadonlyArray<FoundTable>,
  matches: ReadonlyArray<TableMatch>,
  { companies, text }: RecordQuery
) => {
  const parts = found.flatMap((one) => matches.flatMap((match) => branches(one, match)))
  if (parts.length === 0) return Effect.succeed([])
  return Statement.run(
    {
      name: "search records",
      params: ["int8[]", "int8?", "text"],
      columns: { ...lineColumns, match: Statement.as<Match>("text") },
      // Each parameter is used, whatever the parts.
      text: `select * from (${parts.join("\nunion all\n")}) found where true or ($2::bigint, $3::text) is null limit ${foundMax + 1}`
    },
    [companies, isNumber(text) ? text : null, text]
  )
}

/** Each record once, by its resource; and whether some are left out. */
const bounded = (rows: ReadonlyArray<FoundRecord>) => {
  const seen = new Map<string, number>()
  const ids = new Set<string>()
  let isCut = rows.length > foundMax
  const records = rows.filter(({ resource, company, id }) => {
    const key = `${resource} ${company} ${id}`
    if (ids.has(key)) return false
    ids.add(key)
    const count = (seen.get(resource) ?? 0) + 1
    seen.set(resource, count)
    if (count > perResourceMax) isCut = true
    return count <= perResourceMax
  })
  return { records: records.slice(0, foundMax), isCut }
}

export const quarantinedStatement = Statement.make({
  name: "search the quarantine for a record",
  params: ["text[]", "int8[]", "text"],
  columns: { resource: "text", company: "int8" },
  text: `select distinct resource, company_id as company from tributary.quarantine
          where resource = any($1) and company_id = any($2) and record_id = $3 and resolved_at is null limit ${perResourceMax}`
})

const readQuarantined = ({ companies, tables, text }: RecordQuery) =>
  Effect.map(
    Statement.run(quarantinedStatement, [tables.map(({ resource }) => resource.path), companies, text]),
    (rows) =>
      rows.map((row): FoundRecord => ({
        ...row,
        id: text,
        key: null,
        detail: "",
        isCancelled: false,
        isDeleted: false,
        match: "quarantine"
      }))
  )

export const search = Effect.fn("RecordSearch.search")(function* (query: RecordQuery) {
  const found = yield* findTables(query.tables)
  const exact: ReadonlyArray<TableMatch> = isNumber(query.text) ? ["number", "text"] : ["text"]
  const landed = query.isPrefix ? [] : yield* readMatches(found, exact, query)
  const exactly = isNumber(query.text) && !query.isPrefix ? [...landed, ...(yield* readQuarantined(query))] : landed
  const rows = exactly.length > 0 ? exactly : yield* readMatches(found, ["beginning"], query)
  return {
    ...bounded(rows),
    unsearched: found.flatMap((one) =>
      searchedColumns(one).every((column) => canFind(one, searchIndexName(one.table, column)))
        ? []
        : [one.table.resource.path]
    )
  } satisfies SearchResult
})
