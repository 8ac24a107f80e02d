/**
 * The comparison of one table of the warehouse with the catalogue: what completes it, and what is damaged.
 *
 * Promise: the rows are read only where a constraint is missing that would exclude what is looked for.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { identifier, literal } from "./Identifier.ts"
import { type Column, commentsOn, type Datasets, removalTrigger, type Table } from "./Table.ts"
import * as TableDamage from "./TableDamage.ts"
import { tablesOfView } from "./ViewTables.ts"

/** A column of a relation as it is. */
interface FoundColumn {
  readonly name: string
  readonly type: string
  readonly comment: string | null
  readonly isRequired: boolean
  readonly hasDefault: boolean
  readonly computed: "expression" | "identity" | null
}

export const relationsStatement = Statement.make({
  name: "look for the tables of the catalogue",
  params: ["text[]", "text[]"],
  columns: {
    dataset: "name",
    name: "name?",
    kind: "text",
    comment: "text?",
    /** The primary key, also one that no landing can use (invalid, deferred). */
    keyName: "name?",
    keyColumns: "text[]?",
    isKeyUsable: "bool",
    /** Whether it notes rows that are deleted by hand. */
    notesRemoval: "bool",
    /** Tables that inherit from it, as names in SQL. */
    children: "text[]?",
    /** The tables that a view reads. A renamed table stays the one that its views read. */
    reads: "text[]?",
    /** Without comments for views, whose own comment has a digest of them. */
    columns: Statement.as<ReadonlyArray<FoundColumn> | null>("jsonb?")
  },
  text: `
    select n.nspname as dataset, c.relname as name, c.relkind::text as kind, obj_description(c.oid, 'pg_class') as comment,
           k.conname as "keyName", array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum = any(k.conkey)) as "keyColumns",
           coalesce(i.indisvalid and i.indimmediate, false) as "isKeyUsable",
           exists (select 1 from pg_trigger t where t.tgrelid = c.oid and t.tgname = ${literal(removalTrigger)}) as "notesRemoval",
           case when c.relhassubclass then (select array_agg(h.inhrelid::regclass::text) from pg_inherits h where h.inhparent = c.oid) end as children,
           case when c.relkind = 'v' then ${tablesOfView("c.oid")} end as reads,
           (select jsonb_agg(jsonb_build_object('name', a.attname, 'type', replace(format_type(a.atttypid, a.atttypmod), '"', ''),
                     'comment', d.description, 'isRequired', a.attnotnull, 'hasDefault', a.atthasdef,
                     'computed', case when a.attgenerated <> '' then 'expression' when a.attidentity = 'a' then 'identity' end) order by a.attnum)
              from pg_attribute a
              left join pg_description d
                on d.objoid = c.oid and d.classoid = 'pg_class'::regclass and d.objsubid = a.attnum and c.relkind = 'r'
             where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
      from pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relname = any($1::text[])
      left join pg_constraint k on k.conrelid = c.oid and k.contype = 'p'
      left join pg_index i on i.indexrelid = k.conindid
     where n.nspname = any($2::text[])`
})

export const tablesStatement = Statement.make({
  name: "list the tables of a dataset",
  params: ["name"],
  columns: { name: "name" },
  text: `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = $1 and c.relkind = 'r'`
})

/** The datasets and the relations with the names of these tables, by `dataset.name`, in one query. */
export const introspect = Effect.fnUntraced(function* (datasets: Datasets, tables: ReadonlyArray<Table>) {
  const names = tables.flatMap((table) => [table.name, table.supersededName])
  const found = yield* Statement.run(relationsStatement, [names, [datasets.current, datasets.history, datasets.asOf]])
  return {
    datasets: new Set(found.map(({ dataset }) => dataset)),
    relations: new Map(
      found.flatMap(({ dataset, name, columns, ...one }) => {
        const byName = new Map((columns ?? []).map((column) => [column.name, column]))
        return name === null ? [] : [[`${dataset}.${name}`, { ...one, columns: byName }] as const]
      })
    )
  }
})

/** Names of types as Postgres prints them. */
const longTypeNames: Readonly<Record<string, string>> = { timestamptz: "timestamp with time zone" }

const plainType = (column: Column): string => {
  const written = column.sqlType.split(" ")[0] ?? column.sqlType
  return longTypeNames[written] ?? written
}

export type Existing = Effect.Success<ReturnType<typeof introspect>>
export type FoundRelation = Existing["relations"] extends ReadonlyMap<string, infer Found> ? Found : never

/** A table of the catalogue: its columns, and how to create it. */
export interface CatalogueTable extends TableDamage.Relation {
  readonly columns: ReadonlyArray<Column>
  readonly create: string
  readonly noteRemoval: string
  readonly key: ReadonlyArray<string>
  /** What a row of it is. */
  readonly what: "record" | "version"
}

interface RelationPlan {
  readonly statements: ReadonlyArray<string>
  readonly faults: ReadonlyArray<TableDamage.Fault>
  /** New columns that are empty although the source has values; those of a promoted field are not. */
  readonly added: ReadonlyArray<Column>
}

const kinds: Readonly<Record<string, string>> = {
  v: "a view",
  m: "a materialized view",
  p: "a partitioned table",
  f: "a foreign table",
  S: "a sequence",
  c: "a type"
}

/** What a relation is, where it is not what the catalogue states; null where it is. */
export const otherKind = ({ kind }: FoundRelation, expected: "r" | "v"): string | null =>
  kind === expected
    ? null
    : `it is ${kind === "r" ? "a table" : (kinds[kind] ?? "an index")} and should be a ${expected === "r" ? "table" : "view"}`

const isRequired = ({ sqlType }: Column): boolean => sqlType.includes(" not null")
const defaultOf = ({ sqlType }: Column): string | undefined => / default (.+)$/.exec(sqlType)?.[1]

/** Whether rows contradict the constraints that a table lacks; asked only where it lacks some. */
const readRows = Effect.fnUntraced(function* (
  { quoted, key }: CatalogueTable,
  { columns }: FoundRelation,
  lacksKey: boolean,
  loose: ReadonlyArray<Column>
): Effect.fn.Return<
  { readonly hasRows: boolean; readonly isDoubled: boolean; readonly empty: ReadonlyArray<string> },
  DatabaseError,
  SqlClient.SqlClient
> {
  const hasKeyColumns = key.every((name) => columns.has(name))
  const empty = loose.map(
    ({ sql, name }) => `case when exists (select from ${quoted} where ${sql} is null) then ${literal(name)} end`
  )
  const [row] = yield* Sql.rows<{ hasRows: boolean; isDoubled: boolean; empty: ReadonlyArray<string> }>(
    `select exists (select from ${quoted}) as "hasRows", ` +
      `${lacksKey && hasKeyColumns ? `exists (select from ${quoted} group by ${key.map(identifier).join(", ")} having count(*) > 1)` : "false"} as "isDoubled", ` +
      `array_remove(array[${empty.join(", ")}]::text[], null) as empty`
  )
  return row!
})

/** Compares a table with the catalogue: statements that complete it, and faults that only a repair removes. */
export const planRelation = Effect.fnUntraced(function* (
  table: CatalogueTable,
  found: FoundRelation | undefined,
  datasets: Datasets,
  isPromoted: (column: Column) => boolean
): Effect.fn.Return<RelationPlan, DatabaseError, SqlClient.SqlClient> {
  const { columns, key, quoted } = table
  if (found === undefined) {
    return {
      statements: [table.create, ...commentsOn(quoted, columns, undefined), table.noteRemoval],
      faults: [],
      added: []
    }
  }
  const kind = otherKind(found, "r")
  if (kind !== null) return { statements: [], faults: [TableDamage.setAside(table, kind)], added: [] }
  const hasKey =
    found.isKeyUsable &&
    found.keyColumns?.length === key.length &&
    key.every((name) => found.keyColumns?.includes(name))
  const missing = columns.filter(({ name }) => !found.columns.has(name))
  const loose = columns.filter((column) => isRequired(column) && found.columns.get(column.name)?.isRequired === false)
  const lost = missing.filter((column) => isRequired(column) && defaultOf(column) === undefined).map(({ name }) => name)
  const isWhole = hasKey && loose.length === 0 && lost.length === 0
  const { empty, hasRows, isDoubled } = isWhole
    ? { empty: [], hasRows: false, isDoubled: false }
    : yield* readRows(table, found, !hasKey, loose)
  if (hasRows && lost.length > 0) {
    const detail = `it lacks ${lost.join(", ")}, without which its rows mean nothing`
    return { statements: [], faults: [TableDamage.setAside(table, detail)], added: [] }
  }
  const statements = missing.map(({ sql, sqlType }) => `alter table ${quoted} add column ${sql} ${sqlType}`)
  const faults: Array<TableDamage.Fault> = []
  const own = new Map(columns.map((column) => [column.name, column]))
  for (const { name, type, isRequired: isStrict, hasDefault, computed } of found.columns.values()) {
    const column = own.get(name)
    if (column === undefined) {
      if (isStrict && !hasDefault && computed === null) faults.push(TableDamage.strictColumn(table, name, "not null"))
      continue
    }
    if (computed !== null) faults.push(TableDamage.strictColumn(table, name, computed))
    if (type !== plainType(column)) {
      faults.push(TableDamage.otherType(table, datasets, column, type, plainType(column)))
    }
    if (isStrict && !isRequired(column)) faults.push(TableDamage.strictColumn(table, name, "not null"))
    // As `create table as` leaves a table.
    if (!isStrict && isRequired(column) && !empty.includes(name))
      statements.push(`alter table ${quoted} alter column ${column.sql} set not null`)
    const value = defaultOf(column)
    if (!hasDefault && value !== undefined)
      statements.push(`alter table ${quoted} alter column ${column.sql} set default ${value}`)
  }
  if (found.children !== null) faults.push(TableDamage.children(table, found.children))
  if (found.keyName !== null && !hasKey) faults.push(TableDamage.otherKey(table, found.keyName, found.keyColumns ?? []))
  if (empty.length > 0) faults.push(TableDamage.emptyColumns(table, empty))
  if (isDoubled) faults.push(TableDamage.doubled(table, key, table.what))
  // As pg_restore leaves a table that was restored alone (--table).
  if (!hasKey && faults.length === 0)
    statements.push(`alter table ${quoted} add primary key (${key.map(identifier).join(", ")})`)
  // A repair removes copies of rows, which are no loss.
  if (!found.notesRemoval && faults.length === 0) statements.push(table.noteRemoval)
  statements.push(...commentsOn(quoted, columns, found.columns))
  return { statements, faults, added: missing.filter((column) => !isPromoted(column)) }
})
