/**
 * The plan that brings the warehouse's tables up to the catalogue.
 *
 * Promise: changes are additive. A missing table, column or primary key is created; comments are kept up to date. A
 * column of another type is reported and never changed. After a column is added to a table with rows, the next run is a
 * full scan, which fills it; so a dropped column is restored too. Of several processes one applies the plan, and the
 * others wait. A change waits for a table in use only for a short time, so that readers behind it do not wait long.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Field } from "../catalogue/Field.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as LockWait from "../postgres/LockWait.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import { alteredSql } from "./Altered.ts"
import * as AsOf from "./AsOf.ts"
import * as Digest from "./Digest.ts"
import { identifier, literal } from "./Identifier.ts"
import {
  type Column,
  commentsOn,
  currentColumns,
  type Datasets,
  historyColumns,
  removalTrigger,
  statements,
  supersededColumns,
  type Table
} from "./Table.ts"
import { tablesOfView } from "./ViewTables.ts"

/** A table contradicts the catalogue, or is in use; nothing was changed. */
export class TableConflict extends Data.TaggedError("TableConflict")<{
  readonly table: string
  readonly detail: string
  /** What to do. */
  readonly remedy?: string
  /** Whether a later attempt may succeed without a repair. */
  readonly isRetryable?: boolean
}> {
  override get message(): string {
    const remedy =
      this.remedy ??
      "Undo that, or rename or drop it: the next sync creates it again and reads every record. Or use another dataset (warehouse.current in the configuration)"
    return `${this.table}: ${this.detail}. ${remedy}; nothing was changed`
  }
}

export const relationsStatement = Statement.make({
  name: "look for the tables of the catalogue",
  params: ["text[]", "text[]"],
  columns: {
    dataset: "name",
    name: "name?",
    kind: "text",
    comment: "text?",
    hasKey: "bool",
    /** Whether it notes rows that are deleted by hand. */
    notesRemoval: "bool",
    /** The tables that a view reads. A renamed table stays the one that its views read. */
    reads: "text[]?",
    /** Name, type and comment; without comments for views, whose own comment has a digest of them. */
    columns: Statement.as<ReadonlyArray<readonly [name: string, type: string, comment: string | null]> | null>("jsonb?")
  },
  text: `
    select n.nspname as dataset, c.relname as name, c.relkind::text as kind, obj_description(c.oid, 'pg_class') as comment,
           exists (select 1 from pg_index i where i.indrelid = c.oid and i.indisprimary) as "hasKey",
           exists (select 1 from pg_trigger t where t.tgrelid = c.oid and t.tgname = ${literal(removalTrigger)}) as "notesRemoval",
           case when c.relkind = 'v' then ${tablesOfView("c.oid")} end as reads,
           (select jsonb_agg(jsonb_build_array(a.attname, replace(format_type(a.atttypid, a.atttypmod), '"', ''), d.description) order by a.attnum)
              from pg_attribute a
              left join pg_description d
                on d.objoid = c.oid and d.classoid = 'pg_class'::regclass and d.objsubid = a.attnum and c.relkind = 'r'
             where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
      from pg_namespace n left join pg_class c on c.relnamespace = n.oid
       and c.relname = any($1::text[]) and c.relkind in ('r', 'p', 'v', 'm', 'f')
     where n.nspname = any($2::text[])`
})

/** The datasets and the relations with the names of these tables, by `dataset.name`, in one query. */
const introspect = Effect.fnUntraced(function* (datasets: Datasets, tables: ReadonlyArray<Table>) {
  const names = tables.flatMap((table) => [table.name, table.supersededName])
  const found = yield* Statement.run(relationsStatement, [names, [datasets.current, datasets.history, datasets.asOf]])
  return {
    datasets: new Set(found.map(({ dataset }) => dataset)),
    relations: new Map(
      found.flatMap(({ dataset, name, columns, ...one }) => {
        const byName = new Map((columns ?? []).map(([column, type, comment]) => [column, { type, comment }]))
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

/**
 * An added column is empty although the source has values, so that the next run forgets a scan in progress and reads every
 * record. The values of a promoted field are in the rows already.
 */
const requireFullScan = (table: Table, columns: ReadonlyArray<Column>): string => {
  const why = `new in the table: ${columns.map(({ name }) => name).join(", ")}`
  return (
    `update tributary.checkpoints set ${alteredSql(why)}, ` +
    `full_scan_reason = case when cursor is null and full_scan_at is null then full_scan_reason ` +
    `else coalesce(full_scan_reason, ${literal(why)}) end ` +
    `where resource = ${literal(table.resource.path)} and lane = 'live'`
  )
}

/** The comments of the view of all versions; none when its own comment has the digest of these. */
const historyComments = (table: Table, found: string | null | undefined): ReadonlyArray<string> => {
  const comments = commentsOn(table.view, historyColumns(table), undefined)
  const { path, purpose } = table.resource
  const comment = Digest.mark(`Every version of ${path}: ${purpose}`, Digest.of(comments.join("\n")))
  return found === comment ? [] : [...comments, `comment on view ${table.view} is ${literal(comment)}`]
}

const planTable = (
  table: Table,
  existing: Effect.Success<ReturnType<typeof introspect>>,
  promoted: ReadonlySet<Field>
): ReadonlyArray<string> | TableConflict => {
  const planned: Array<string> = []
  const { datasets, resource } = table
  let viewIsStale = false
  const relation = (
    dataset: string,
    name: string,
    quoted: string,
    columns: ReadonlyArray<Column>,
    create: string,
    key: string,
    noteRemoval: string
  ): TableConflict | undefined => {
    const found = existing.relations.get(`${dataset}.${name}`)
    if (found === undefined) {
      planned.push(create, ...commentsOn(quoted, columns, undefined), noteRemoval)
      viewIsStale = true
      return undefined
    }
    if (found.kind !== "r") return new TableConflict({ table: `${dataset}.${name}`, detail: "is no table" })
    const empty: Array<Column> = []
    for (const column of columns) {
      const present = found.columns.get(column.name)
      if (present === undefined) {
        planned.push(`alter table ${quoted} add column ${column.sql} ${column.sqlType}`)
        viewIsStale = true
        const field = resource.field.get(column.field)
        if (field === undefined || !promoted.has(field)) empty.push(column)
      } else if (present.type !== plainType(column)) {
        return new TableConflict({
          table: `${dataset}.${name}`,
          detail: `the column ${column.name} is ${present.type} and should be ${plainType(column)}`
        })
      }
    }
    planned.push(...commentsOn(quoted, columns, found.columns))
    // As pg_restore leaves a table that was restored alone (--table).
    if (!found.hasKey) planned.push(`alter table ${quoted} add ${key}`)
    if (!found.notesRemoval) planned.push(noteRemoval)
    if (empty.length > 0 && dataset === datasets.current) planned.push(requireFullScan(table, empty))
    return undefined
  }
  if (resource.basis === "configured" && !existing.relations.has(`${datasets.current}.${table.name}`)) {
    planned.push(nameStatement("", resource.path, table.name))
  }
  const conflict =
    relation(
      datasets.current,
      table.name,
      table.current,
      currentColumns(table),
      statements.createCurrent(table),
      statements.currentKey,
      statements.noteRemovedRows(table)
    ) ??
    relation(
      datasets.history,
      table.supersededName,
      table.superseded,
      supersededColumns(table),
      statements.createSuperseded(table),
      statements.supersededKey,
      statements.noteRemovedVersions(table)
    )
  if (conflict !== undefined) return conflict
  const view = existing.relations.get(`${datasets.history}.${table.name}`)
  if (view !== undefined && view.kind !== "v") {
    return new TableConflict({ table: `${datasets.history}.${table.name}`, detail: "is no view" })
  }
  const tablesOfTheView = [`${datasets.current}.${table.name}`, `${datasets.history}.${table.supersededName}`]
  viewIsStale ||= view === undefined || !tablesOfTheView.every((name) => view.reads?.includes(name))
  if (viewIsStale) planned.push(statements.createView(table))
  planned.push(...historyComments(table, view?.comment))
  const asOf = existing.relations.get(`${datasets.asOf}.${table.name}`)
  if (asOf !== undefined && asOf.kind !== "v") {
    return new TableConflict({ table: `${datasets.asOf}.${table.name}`, detail: "is no view" })
  }
  const current = existing.relations.get(`${datasets.current}.${table.name}`)
  const superseded = existing.relations.get(`${datasets.history}.${table.supersededName}`)
  planned.push(...AsOf.planView(table, { current, superseded, view: asOf }))
  const comment = `${resource.purpose} [${resource.basis}]`
  if (current?.comment !== comment) {
    planned.push(`comment on table ${table.current} is ${literal(comment)}`)
  }
  if (view === undefined) {
    planned.push(
      `comment on table ${table.superseded} is ${literal(`Earlier versions of ${table.name}; read the view ${table.name} beside it`)}`
    )
  }
  return planned
}

export const namesStatement = Statement.make({
  name: "read the stored SQL names",
  params: ["text"],
  columns: { name: "text", column: "text" },
  text: "select api_name as name, sql_name as column from tributary.sql_names where scope = $1"
})

/** The stored SQL names of a resource's fields, or of the resources themselves for "", by the API's name. */
export const readNames = (scope: string): Sql.Query<ReadonlyMap<string, string>> =>
  Effect.map(
    Statement.run(namesStatement, [scope]),
    (rows) => new Map(rows.map(({ name, column }) => [name, column] as const))
  )

/** Stores a SQL name for ever. */
export const nameStatement = (scope: string, apiName: string, name: string): string =>
  `insert into tributary.sql_names (scope, api_name, sql_name) values (${literal(scope)}, ${literal(apiName)}, ${literal(name)}) ` +
  "on conflict do nothing"

/**
 * The statements that bring the tables up to date; empty when they are. The values of promoted fields are in the rows:
 * ColumnPromotion.ts moves them out of `_extra`.
 */
export const planFor = Effect.fnUntraced(function* (
  tables: ReadonlyArray<Table>,
  promoted: ReadonlySet<Field> = new Set()
): Effect.fn.Return<ReadonlyArray<string>, TableConflict | SqlError, SqlClient.SqlClient> {
  const first = tables[0]
  if (first === undefined) return []
  const existing = yield* introspect(first.datasets, tables)
  const planned: Array<string> = []
  const { current, history, asOf } = first.datasets
  for (const [dataset, comment] of [
    [current, `Current records: a table for each resource. Deleted records stay as rows with _deleted_at.`],
    [history, "Every version of every record: a view for each resource."],
    [asOf, "The tables with the records as of the setting tributary.as_of: a view for each resource."]
  ] as const) {
    if (existing.datasets.has(dataset)) continue
    const name = identifier(dataset)
    planned.push(`create schema if not exists ${name}`, `comment on schema ${name} is ${literal(comment)}`)
  }
  for (const table of tables) {
    const result = planTable(table, existing, promoted)
    if (result instanceof TableConflict) return yield* result
    planned.push(...result)
  }
  return planned
})

/** The number of this advisory lock is used for no other. */
export const planLockStatement = Statement.make({
  name: "wait for changes of the tables",
  columns: { pg_advisory_xact_lock: "void" },
  text: "select pg_advisory_xact_lock(7261001)"
})

/** A conflict, where Postgres rejects the change itself; an error of the connection stays as it is. */
const refused = (where: string, error: SqlError): SqlError | TableConflict => {
  const { code, message, isRetryable } = DatabaseError.from("change the tables")(error)
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code) || /^E[A-Z]/.test(code)) return error
  return isRetryable
    ? error
    : new TableConflict({
        table: where,
        detail: `Postgres refuses the change: ${message} (${code})`,
        remedy: code.startsWith("23")
          ? "Undo what was changed by hand, or rename or drop the table: the next sync creates it again and reads every record"
          : "Remove the cause (a trigger, a view, a missing right) and run this again"
      })
}

/** Runs a change of the tables in one transaction: one process at a time, without a long wait for a table in use. */
export const changing = <A, E, R>(
  where: string,
  body: Effect.Effect<A, E | SqlError, R>
): Effect.Effect<A, E | SqlError | TableConflict, R | SqlClient.SqlClient> =>
  LockWait.attempts(
    "A change of the tables waits",
    transaction(Effect.andThen(Statement.run(planLockStatement), LockWait.inPool("change the tables", body)))
  ).pipe(
    Effect.mapError((error) => {
      if (isSqlError(error)) return refused(where, error)
      // The tables are in use; the message names the session.
      return error instanceof DatabaseError
        ? new TableConflict({ table: where, detail: error.message, remedy: "Then run this again", isRetryable: true })
        : error
    })
  )

/** Statements sent to the server at once. */
const statementsAtOnce = 200

/** Runs statements without parameters, many at a time. */
export const run = Effect.fnUntraced(function* (
  statements: ReadonlyArray<string>
): Effect.fn.Return<void, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  for (let at = 0; at < statements.length; at += statementsAtOnce) {
    const some = statements.slice(at, at + statementsAtOnce)
    yield* some.length === 1 ? sql.unsafe(some[0]!) : sql.unsafe(`do ${literal(`begin\n${some.join(";\n")};\nend`)}`)
  }
})

/** Plans and applies in one transaction; returns the statements. */
export const apply = Effect.fn("TablePlan.apply")(function* (
  tables: ReadonlyArray<Table>
): Effect.fn.Return<ReadonlyArray<string>, TableConflict | SqlError, SqlClient.SqlClient> {
  if ((yield* planFor(tables)).length === 0) return []
  return yield* changing(
    "the tables",
    Effect.gen(function* () {
      // Another process may have done it meanwhile.
      const planned = yield* planFor(tables)
      yield* run(planned)
      return planned
    })
  )
})
