/**
 * Bringing the warehouse's tables to what the catalogue says.
 *
 * Promise: changes are additive. A missing table or column is created and a comment is kept up to date; a column of
 * another type, which somebody must have changed, is reported and never touched. Concurrent programs may apply the
 * same plan: one does the work, the others wait for it.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { identifier, literal } from "./Identifier.ts"
import { type Column, type Datasets, type Table, statements } from "./Table.ts"

/** The warehouse has something that the catalogue contradicts; nothing was changed. */
export class TableConflict extends Data.TaggedError("TableConflict")<{
  readonly table: string
  readonly detail: string
}> {
  override get message(): string {
    return `${this.table}: ${this.detail}. Rename it or move the dataset (datasets in the configuration); nothing was changed`
  }
}

interface Existing {
  /** Type and comment by `table.column`, per dataset. */
  readonly columns: ReadonlyMap<string, { readonly type: string; readonly comment: string | null }>
  readonly relations: ReadonlyMap<string, { readonly kind: string; readonly comment: string | null }>
  readonly datasets: ReadonlySet<string>
}

/** What stands in the datasets now, in two queries whatever the number of tables. */
const introspect = Effect.fnUntraced(function* (datasets: Datasets) {
  const sql = yield* SqlClient.SqlClient
  const names = [datasets.current, datasets.history]
  const relations = yield* sql<{ dataset: string; name: string; kind: string; comment: string | null }>`
    select n.nspname as dataset, coalesce(c.relname, '') as name, coalesce(c.relkind::text, '') as kind,
           obj_description(c.oid, 'pg_class') as comment
      from pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relkind in ('r', 'p', 'v', 'm')
     where ${sql.in("n.nspname", names)}`
  const columns = yield* sql<{ key: string; type: string; comment: string | null }>`
    select n.nspname || '.' || c.relname || '.' || a.attname as key, format_type(a.atttypid, a.atttypmod) as type,
           col_description(c.oid, a.attnum) as comment
      from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
     where ${sql.in("n.nspname", names)} and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped`
  return {
    datasets: new Set(relations.map((relation) => relation.dataset)),
    relations: new Map(
      relations
        .filter((relation) => relation.name !== "")
        .map((relation) => [`${relation.dataset}.${relation.name}`, relation])
    ),
    columns: new Map(columns.map((column) => [column.key, column]))
  } satisfies Existing
})

/** Postgres tells types by longer names than one writes. */
const toldType: Readonly<Record<string, string>> = { timestamptz: "timestamp with time zone" }

const plainType = (column: Column): string => {
  const written = column.sqlType.split(" ")[0] ?? column.sqlType
  return toldType[written] ?? written
}

const planTable = (table: Table, existing: Existing): ReadonlyArray<string> | TableConflict => {
  const planned: Array<string> = []
  const { datasets, resource } = table
  let viewIsStale = false
  const relation = (dataset: string, name: string, quoted: string, create: string): TableConflict | undefined => {
    const found = existing.relations.get(`${dataset}.${name}`)
    const columns = [...table.columns, ...table.meta]
    if (found === undefined) {
      planned.push(create)
      for (const column of columns) {
        planned.push(`comment on column ${quoted}.${column.sql} is ${literal(column.comment)}`)
      }
      viewIsStale = true
      return undefined
    }
    if (found.kind !== "r") return new TableConflict({ table: `${dataset}.${name}`, detail: "is no table" })
    for (const column of columns) {
      const key = `${dataset}.${name}.${column.name}`
      const present = existing.columns.get(key)
      if (present === undefined) {
        planned.push(`alter table ${quoted} add column ${column.sql} ${column.sqlType}`)
        planned.push(`comment on column ${quoted}.${column.sql} is ${literal(column.comment)}`)
        viewIsStale = true
      } else if (present.type !== plainType(column)) {
        return new TableConflict({
          table: `${dataset}.${name}`,
          detail: `the column ${column.name} is ${present.type} and should be ${plainType(column)}`
        })
      } else if (present.comment !== column.comment) {
        planned.push(`comment on column ${quoted}.${column.sql} is ${literal(column.comment)}`)
      }
    }
    return undefined
  }
  const conflict =
    relation(datasets.current, resource.path, table.current, statements.createCurrent(table)) ??
    relation(datasets.history, table.supersededName, table.superseded, statements.createSuperseded(table))
  if (conflict !== undefined) return conflict
  const view = existing.relations.get(`${datasets.history}.${resource.path}`)
  if (view !== undefined && view.kind !== "v") {
    return new TableConflict({ table: `${datasets.history}.${resource.path}`, detail: "is no view" })
  }
  if (view === undefined || viewIsStale) planned.push(statements.createView(table))
  const comment = `${resource.purpose} [${resource.basis}]`
  if (existing.relations.get(`${datasets.current}.${resource.path}`)?.comment !== comment) {
    planned.push(`comment on table ${table.current} is ${literal(comment)}`)
  }
  if (view === undefined) {
    planned.push(
      `comment on table ${table.superseded} is ${literal(`Earlier versions of ${resource.path}; read the view ${resource.path} beside it`)}`,
      `comment on view ${table.view} is ${literal(`Every version of ${resource.path}: ${resource.purpose}`)}`
    )
  }
  return planned
}

/** The statements that bring the tables up to date; empty when they are. */
export const planFor = Effect.fnUntraced(function* (
  tables: ReadonlyArray<Table>
): Effect.fn.Return<ReadonlyArray<string>, TableConflict | SqlError, SqlClient.SqlClient> {
  const first = tables[0]
  if (first === undefined) return []
  const existing = yield* introspect(first.datasets)
  const planned: Array<string> = []
  for (const dataset of [first.datasets.current, first.datasets.history]) {
    if (!existing.datasets.has(dataset)) planned.push(`create schema if not exists ${identifier(dataset)}`)
  }
  for (const table of tables) {
    const result = planTable(table, existing)
    if (result instanceof TableConflict) return yield* result
    planned.push(...result)
  }
  return planned
})

/** Any number that no other lock of the program uses. */
const planLock = 7_261_001

/** Plans and applies in one transaction; answers what it did. */
export const apply = Effect.fn("TablePlan.apply")(function* (
  tables: ReadonlyArray<Table>
): Effect.fn.Return<ReadonlyArray<string>, TableConflict | SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  if ((yield* planFor(tables)).length === 0) return []
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`select pg_advisory_xact_lock(${planLock})`
      // Another program may have done it while this one waited.
      const planned = yield* planFor(tables)
      for (const statement of planned) yield* sql.unsafe(statement)
      return planned
    })
  )
})
