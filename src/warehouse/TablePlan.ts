/**
 * The plan that brings the warehouse's tables up to the catalogue.
 *
 * Promise: changes are additive. A missing table, column or primary key is created; comments are kept up to date. What
 * contradicts the catalogue is damage (TableDamage.ts): it is reported for all tables at once, and only a repair
 * changes it; other resources go on. After a column is added to a table with rows, the next run is a
 * full scan, which fills it; so a dropped column is restored too. Of several processes one applies the plan, and the
 * others wait. A change waits for a table in use only for a short time, so that readers behind it do not wait long.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Field } from "../catalogue/Field.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as LockWait from "../postgres/LockWait.ts"
import * as Remedy from "../postgres/Remedy.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import { alteredSql } from "./Altered.ts"
import * as AsOf from "./AsOf.ts"
import * as Digest from "./Digest.ts"
import { identifier, literal } from "./Identifier.ts"
import {
  type CatalogueTable,
  type Existing,
  type FoundRelation,
  introspect,
  otherKind,
  planRelation
} from "./RelationPlan.ts"
import { pending } from "./PendingRules.ts"
import * as PrivacyRewrite from "./PrivacyRewrite.ts"
import type { RulesChanged } from "./RulesChanged.ts"
import * as TableDamage from "./TableDamage.ts"
import {
  type Column,
  commentsOn,
  currentColumns,
  historyColumns,
  keys,
  statements,
  supersededColumns,
  type Table
} from "./Table.ts"

/** A change of the tables was not made: a table is in use, or Postgres refuses the change. */
export class TableConflict extends Data.TaggedError("TableConflict")<{
  readonly table: string
  readonly detail: string
  /** What to do. */
  readonly remedy: string
  /** Whether a later attempt may succeed without a repair. */
  readonly isRetryable?: boolean
}> {
  override get message(): string {
    return `${this.table}: ${this.detail}. ${this.remedy}; nothing was changed`
  }
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

/** The statements for one resource, and its damaged tables. Those of a damaged resource only prepare its repair. */
interface ResourcePlan {
  readonly statements: ReadonlyArray<string>
  readonly damaged: ReadonlyArray<TableDamage.TableDamaged>
}

export const planTable = Effect.fnUntraced(function* (
  table: Table,
  existing: Existing,
  promoted: ReadonlySet<Field>
): Effect.fn.Return<ResourcePlan, DatabaseError, SqlClient.SqlClient> {
  const { datasets, resource } = table
  const isPromoted = (column: Column) => {
    const field = resource.field.get(column.field)
    return field !== undefined && promoted.has(field)
  }
  const find = (dataset: string, name: string) => existing.relations.get(`${dataset}.${name}`)
  const current = find(datasets.current, table.name)
  const superseded = find(datasets.history, table.supersededName)
  const view = find(datasets.history, table.name)
  const asOf = find(datasets.asOf, table.name)
  const { currentKey, supersededKey } = keys
  const ownTables: ReadonlyArray<readonly [CatalogueTable, FoundRelation | undefined]> = [
    [
      {
        dataset: datasets.current,
        name: table.name,
        quoted: table.current,
        columns: currentColumns(table),
        create: statements.createCurrent(table),
        noteRemoval: statements.noteRemovedRows(table),
        key: currentKey,
        what: "record"
      },
      current
    ],
    [
      {
        dataset: datasets.history,
        name: table.supersededName,
        quoted: table.superseded,
        columns: supersededColumns(table),
        create: statements.createSuperseded(table),
        noteRemoval: statements.noteRemovedVersions(table),
        key: supersededKey,
        what: "version"
      },
      superseded
    ]
  ]
  const plans = yield* Effect.forEach(ownTables, ([one, found]) => planRelation(one, found, datasets, isPromoted))
  const views = (
    [
      [{ dataset: datasets.history, name: table.name, quoted: table.view }, view],
      [{ dataset: datasets.asOf, name: table.name, quoted: table.asOf }, asOf]
    ] as const
  ).map(([one, found]) => {
    const kind = found === undefined ? null : otherKind(found, "v")
    return [one, kind === null ? [] : [TableDamage.setAside(one, kind)]] as const
  })
  const damaged = [...ownTables.map(([one], index) => [one, plans[index]!.faults] as const), ...views].flatMap(
    ([{ dataset, name }, faults]) =>
      faults.length === 0
        ? []
        : [new TableDamage.TableDamaged({ resource: resource.path, table: `${dataset}.${name}`, faults })]
  )
  if (damaged.length > 0) return { statements: plans.flatMap((plan) => plan.statements), damaged }
  const planned: Array<string> = []
  if (resource.basis === "configured" && current === undefined) {
    planned.push(nameStatement("", resource.path, table.name))
  }
  planned.push(...plans.flatMap((plan) => plan.statements))
  const added = current === undefined ? [] : plans[0]!.added
  if (added.length > 0) planned.push(requireFullScan(table, added))
  const tablesOfTheView = [`${datasets.current}.${table.name}`, `${datasets.history}.${table.supersededName}`]
  const viewIsStale =
    ownTables.some(
      ([{ columns }, found]) => found === undefined || columns.some(({ name }) => !found.columns.has(name))
    ) ||
    view === undefined ||
    !tablesOfTheView.every((name) => view.reads?.includes(name))
  if (viewIsStale) planned.push(statements.createView(table))
  planned.push(...historyComments(table, view?.comment))
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
  return { statements: planned, damaged: [] }
})

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

/** What brings the tables up to date, which of them are damaged, and which follow other privacy rules. */
export interface TablesPlan {
  /** Of every resource without damage whose tables follow its privacy rules. */
  readonly statements: ReadonlyArray<string>
  readonly damaged: ReadonlyArray<TableDamage.TableDamaged>
  /** Resources of which nothing can be landed yet. */
  readonly rules: ReadonlyArray<RulesChanged>
  /** The revision of the privacy rules. */
  readonly revision: bigint
}

/** Compares all tables with the catalogue. What is wrong with one resource leaves out its statements only. */
export const plan = Effect.fnUntraced(function* (
  tables: ReadonlyArray<Table>,
  promoted: ReadonlySet<Field> = new Set()
): Effect.fn.Return<TablesPlan, DatabaseError, SqlClient.SqlClient> {
  const first = tables[0]
  const { revision, rules } = yield* pending(tables)
  if (first === undefined) return { statements: [], damaged: [], rules: [], revision }
  const existing = yield* introspect(first.datasets, tables)
  // Of a resource without a table nothing is stored. A damaged one is repaired first. A process under older rules would make
  // columns that the newer ones contradict.
  const behind = rules.filter(({ reason, table: { datasets, name, supersededName } }) => {
    if (reason.isReplaced) return true
    const earlier = existing.relations.get(`${datasets.history}.${supersededName}`)
    return existing.relations.get(`${datasets.current}.${name}`)?.kind === "r" && (earlier?.kind ?? "r") === "r"
  })
  const others = new Set(behind.map(({ table }) => table))
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
  const plans = yield* Effect.forEach(
    tables.filter((table) => !others.has(table)),
    (table) => planTable(table, existing, promoted)
  )
  return {
    statements: [...planned, ...plans.flatMap((one) => (one.damaged.length > 0 ? [] : one.statements))],
    damaged: plans.flatMap((one) => one.damaged),
    rules: behind.map(({ reason }) => reason),
    revision
  }
})

/** The statements of a plan; fails where a table is damaged or follows other rules. */
const orFail = ({ damaged, rules, statements: planned }: TablesPlan) => {
  const [first] = [...damaged, ...rules]
  return first === undefined ? Effect.succeed(planned) : Effect.fail(first)
}

/**
 * The statements that bring the tables up to date; empty when they are. Fails as {@link apply} does. The values of
 * promoted fields are in the rows: ColumnPromotion.ts moves them out of `_extra`.
 */
export const planFor = Effect.fnUntraced(function* (
  tables: ReadonlyArray<Table>,
  promoted: ReadonlySet<Field> = new Set()
): Effect.fn.Return<
  ReadonlyArray<string>,
  TableDamage.TableDamaged | RulesChanged | DatabaseError,
  SqlClient.SqlClient
> {
  return yield* orFail(yield* plan(tables, promoted))
})

/** The number of this advisory lock is used for no other. */
export const planLockStatement = Statement.make({
  name: "wait for changes of the tables",
  columns: { pg_advisory_xact_lock: "void" },
  text: "select pg_advisory_xact_lock(7261001)"
})

/** A conflict, where Postgres rejects the change itself; an error of the connection stays as it is. */
const refused = (where: string, error: DatabaseError): DatabaseError | TableConflict => {
  const { code, message, isRetryable } = error
  // The tables are in use; the message names the session.
  if (code === "55P03")
    return new TableConflict({ table: where, detail: message, remedy: "Then run this again", isRetryable: true })
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code) || /^E[A-Z]/.test(code)) return error
  return isRetryable
    ? error
    : new TableConflict({
        table: where,
        detail: `Postgres refuses the change: ${message} (${code})`,
        remedy: code.startsWith("23")
          ? `Undo what was changed by hand, or run ${TableDamage.repairCommand}`
          : (Remedy.remedyOf({ code }) ?? Remedy.readLog).replace(/^[a-z]/, (letter) => letter.toUpperCase()),
        isRetryable: Remedy.isServerFault({ code })
      })
}

/** Runs a change of the tables in one transaction: one process at a time, without a long wait for a table in use. */
export const changing = <A, E, R>(
  where: string,
  body: Effect.Effect<A, E | DatabaseError, R>
): Effect.Effect<A, E | DatabaseError | TableConflict, R | SqlClient.SqlClient> =>
  LockWait.attempts(
    "A change of the tables waits",
    transaction(Effect.andThen(Statement.run(planLockStatement), LockWait.bounded("change the tables", body)))
  ).pipe(Effect.mapError((error) => (error instanceof DatabaseError ? refused(where, error) : error)))

/** Statements sent to the server at once. */
const statementsAtOnce = 200

/** Runs statements without parameters, many at a time. */
export const run = Effect.fnUntraced(function* (
  statements: ReadonlyArray<string>
): Effect.fn.Return<void, DatabaseError, SqlClient.SqlClient> {
  for (let at = 0; at < statements.length; at += statementsAtOnce) {
    const some = statements.slice(at, at + statementsAtOnce)
    yield* some.length === 1 ? Sql.rows(some[0]!) : Sql.rows(`do ${literal(`begin\n${some.join(";\n")};\nend`)}`)
  }
})

/**
 * Applies newer privacy rules, then plans and applies the rest in one transaction; returns the statements, and what was left
 * as it is.
 */
export const applyUndamaged = Effect.fn("TablePlan.apply")(function* (
  tables: ReadonlyArray<Table>,
  options: PrivacyRewrite.ApplyOptions = {}
): Effect.fn.Return<TablesPlan, TableConflict | DatabaseError, SqlClient.SqlClient> {
  yield* PrivacyRewrite.apply(
    tables,
    options,
    changing<void, TableConflict, SqlClient.SqlClient>,
    (table, detail, remedy) => new TableConflict({ table, detail, remedy })
  )
  const before = yield* plan(tables)
  if (before.statements.length === 0) return before
  return yield* changing(
    "the tables",
    Effect.gen(function* () {
      // Another process may have done it meanwhile.
      const planned = yield* plan(tables)
      yield* run(planned.statements)
      return planned
    })
  )
})

/** {@link applyUndamaged}, for a process without a person: damage is logged. */
export const applyAndLog = (tables: ReadonlyArray<Table>) =>
  Effect.tap(applyUndamaged(tables), ({ damaged }) => TableDamage.log(damaged))

/** {@link applyUndamaged}; fails where a table is damaged, or follows privacy rules that replaced those of this process. */
export const apply = (
  tables: ReadonlyArray<Table>,
  options: PrivacyRewrite.ApplyOptions = {}
): Effect.Effect<
  ReadonlyArray<string>,
  TableConflict | TableDamage.TableDamaged | RulesChanged | DatabaseError,
  SqlClient.SqlClient
> => Effect.flatMap(applyUndamaged(tables, options), orFail)
