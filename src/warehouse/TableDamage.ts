/**
 * Damage of the warehouse's tables: what contradicts the catalogue so that rows could not be landed, or would be counted
 * wrong. A table that was restored over another one has lost its key, and has its records twice.
 *
 * Promise: nothing is landed in a damaged table, and every part of the program describes it in the same sentence. Each
 * fault has a repair, which keeps everything that agrees with the catalogue, and says what it removed.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Sql from "../postgres/Sql.ts"
import { transaction } from "../postgres/Transaction.ts"
import { identifier, literal } from "./Identifier.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "./Model.ts"
import type { Column, Datasets, Table } from "./Table.ts"

/** Repairs one fault; a sentence for each thing that was done. */
type Repair = Effect.Effect<ReadonlyArray<string>, DatabaseError, SqlClient.SqlClient>

/** One contradiction of a table to the catalogue. */
export interface Fault {
  /** For people, without the table's name. */
  readonly detail: string
  readonly repair: Repair
}

/** A table, or a view, that the catalogue states. */
export interface Relation {
  readonly dataset: string
  readonly name: string
  /** Its name in SQL. */
  readonly quoted: string
}

export const repairCommand = "tributary schema repair"

/** The one step that repairs every damaged table. */
export const remedy = `${repairCommand} repairs all damaged tables together; with --dry-run it shows what it would do`

/** A damaged table of a resource. Nothing of the resource is landed until it is repaired; other resources go on. */
export class TableDamaged extends Data.TaggedError("TableDamaged")<{
  readonly resource: string
  /** `dataset.name`. */
  readonly table: string
  readonly faults: ReadonlyArray<Fault>
}> {
  readonly remedy = remedy
  override get message(): string {
    return `${this.resource}: ${this.table} is damaged: ${this.faults.map(({ detail }) => detail).join("; ")}`
  }
}

/** Damage that a process finds when it acquires the resource: a landing could double rows. The plan adds the key. */
export const withoutKey = ({ resource, datasets, name, supersededName }: Table): TableDamaged =>
  new TableDamaged({
    resource: resource.path,
    table: `${datasets.current}.${name} or ${datasets.history}.${supersededName}`,
    faults: [{ detail: "it has no primary key", repair: Effect.succeed([]) }]
  })

/** Logs the damaged tables in one line: the first one, and how many there are. */
export const log = (damaged: ReadonlyArray<TableDamaged>): Effect.Effect<void> =>
  damaged[0] === undefined
    ? Effect.void
    : Effect.logError(
        `${damaged[0].message}${damaged.length === 1 ? "" : `, and ${damaged.length - 1} more tables`}; ${remedy}`
      )

const count = (rows: number, one: string, many: string): string =>
  `${rows.toLocaleString("en-US")} ${rows === 1 ? one : many}`

const execute = Sql.rows

/** Runs a statement that ends in `select from`; how many rows it answers. */
const changedRows = (text: string) => Effect.map(execute(text), ({ length }) => length)

const listOf = (names: ReadonlyArray<string>): string => names.map(identifier).join(", ")

/** A name of another program or person in SQL. */
const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** A name has at most 63 bytes. */
const asideLengthMax = 45

/** A free name in the dataset for what a repair puts aside. */
const asideName = Effect.fnUntraced(function* ({ dataset, name }: Relation) {
  const base = `${name.slice(0, asideLengthMax)}__damaged`
  const rows = yield* execute<{ name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and starts_with(c.relname, $2)`,
    [dataset, base]
  )
  const used = new Set(rows.map((row) => row.name))
  let free = base
  for (let number = 2; used.has(free); number += 1) free = `${base}_${number}`
  return free
})

/** Moves the rows out of the table into a new one; how many there were, and its name. */
const moveAside = Effect.fnUntraced(function* (relation: Relation, ctids: string) {
  const name = yield* asideName(relation)
  const aside = `${identifier(relation.dataset)}.${identifier(name)}`
  yield* execute(`create table ${aside} as select * from ${relation.quoted} where ctid in (${ctids})`)
  const rows = yield* changedRows(
    `with gone as (delete from ${relation.quoted} where ctid in (${ctids}) returning 1) select from gone`
  )
  if (rows === 0) yield* execute(`drop table ${aside}`)
  return { rows, to: `${relation.dataset}.${name}` }
})

/** The places of all rows but the newest of those with one key, or only of copies that are equal in every column. */
const duplicates = ({ quoted: table }: Relation, key: ReadonlyArray<string>, kind: "equal" | "any"): string =>
  `select ctid from (select ctid, row_number() over (partition by ${listOf(key)}${kind === "equal" ? ', "_t"::text' : ""} ` +
  `order by "_version" desc nulls last, "_observed_at" desc nulls last, ctid desc) as place from ${table} "_t") as places where place > 1`

/** Several rows have one key. */
export const doubled = (relation: Relation, key: ReadonlyArray<string>, what: "record" | "version"): Fault => ({
  detail: `it has no primary key, and several rows for one ${what}`,
  repair: Effect.gen(function* () {
    const remove = (kind: "equal" | "any") =>
      changedRows(
        `with gone as (delete from ${relation.quoted} where ctid in (${duplicates(relation, key, kind)}) returning 1) select from gone`
      )
    const equal = yield* remove("equal")
    const copies = equal === 0 ? [] : [`${count(equal, "copy", "copies")} of rows removed`]
    if (what === "record") {
      const older = yield* remove("any")
      return older === 0
        ? copies
        : [...copies, `${count(older, "older row", "older rows")} of the same records removed`]
    }
    const { rows, to } = yield* moveAside(relation, duplicates(relation, key, "any"))
    return rows === 0
      ? copies
      : [...copies, `${count(rows, "version", "versions")} moved to ${to}: another version has the same number`]
  })
})

/** Columns that every row must have are empty. */
export const emptyColumns = (relation: Relation, columns: ReadonlyArray<string>): Fault => ({
  detail: `rows have no value in ${columns.join(", ")}`,
  repair: Effect.map(
    moveAside(
      relation,
      `select ctid from ${relation.quoted} where ${columns.map((name) => `${identifier(name)} is null`).join(" or ")}`
    ),
    ({ rows, to }) => [`${count(rows, "row", "rows")} without ${columns.join(" or ")} moved to ${to}`]
  )
})

/** A key on other columns. */
export const otherKey = ({ quoted: table }: Relation, constraint: string, columns: ReadonlyArray<string>): Fault => ({
  detail: `its primary key is (${columns.join(", ")})`,
  repair: Effect.as(execute(`alter table ${table} drop constraint ${quote(constraint)}`), [
    `the primary key on (${columns.join(", ")}) was removed`
  ])
})

/** A column refuses records without a value, or computes its values itself. */
export const strictColumn = (
  { quoted: table }: Relation,
  name: string,
  kind: "not null" | "expression" | "identity"
): Fault => ({
  detail: {
    "not null": `its column ${name} refuses records without a value`,
    expression: `its column ${name} is computed`,
    identity: `its column ${name} is an identity column`
  }[kind],
  repair: Effect.as(execute(`alter table ${table} alter column ${quote(name)} drop ${kind}`), [
    `the column ${name} takes the values of the source again`
  ])
})

/** Tables that inherit from it: their rows are read as its own. */
export const children = ({ quoted: table }: Relation, names: ReadonlyArray<string>): Fault => ({
  detail: `the rows of ${names.join(", ")} count as its own (inheritance)`,
  repair: Effect.as(
    Effect.forEach(names, (child) => execute(`alter table ${child} no inherit ${table}`)),
    [`${names.join(", ")} no longer inherits from it`]
  )
})

/** Drops the views of ours that read the table, also through another view. They are created again. */
const dropOwnViews = (table: string, { history, asOf }: Datasets): string => {
  const own = [history, asOf, modelsDatasetDefault, asOfModelsDataset].map(literal).join(", ")
  return `do ${literal(`declare own text;
begin
  with recursive readers as (
    select w.ev_class as oid from pg_depend d join pg_rewrite w on w.oid = d.objid
     where d.classid = 'pg_rewrite'::regclass and d.refobjid = ${literal(table)}::regclass
    union
    select w.ev_class from readers r join pg_depend d on d.refobjid = r.oid and d.classid = 'pg_rewrite'::regclass
      join pg_rewrite w on w.oid = d.objid and w.ev_class <> r.oid)
  select string_agg(distinct format('%I.%I', n.nspname, c.relname), ', ') into own
    from readers r join pg_class c on c.oid = r.oid join pg_namespace n on n.oid = c.relnamespace
   where c.relkind = 'v' and n.nspname in (${own}) and obj_description(c.oid, 'pg_class') ~ '\\[tributary [0-9a-f]{16}\\]$';
  if own is not null then execute 'drop view ' || own; end if;
end`)}`
}

/** Whether Postgres rejects values for their type; a view that reads the column is another reason. */
const isOtherValue = ({ code }: DatabaseError): boolean => /^22|^42846$/.test(code ?? "")

/** A column of another type. */
export const otherType = (
  { quoted: table }: Relation,
  datasets: Datasets,
  { name, sql: column, sqlType }: Column,
  found: string,
  expected: string
): Fault => ({
  detail: `the column ${name} is ${found} and should be ${expected}`,
  repair: Effect.gen(function* () {
    yield* execute(dropOwnViews(table, datasets))
    const cast = execute(
      `alter table ${table} alter column ${column} drop default, alter column ${column} type ${expected} using ${column}::text::${expected}`
    )
    const aside = `${name.slice(0, asideLengthMax)}__damaged`
    const again = Effect.andThen(
      execute(`alter table ${table} rename column ${column} to ${identifier(aside)}`),
      execute(`alter table ${table} alter column ${identifier(aside)} drop not null, add column ${column} ${sqlType}`)
    )
    return yield* transaction(cast).pipe(
      Effect.as([`the column ${name} was converted to ${expected}`]),
      Effect.catchIf(isOtherValue, () =>
        Effect.as(again, [
          `the column ${name} is ${aside} now, because its values are no ${expected}; a new one was created`
        ])
      )
    )
  })
})

/** Something else has the name, or the table lacks a column without which its rows mean nothing. It gets another name. */
export const setAside = (relation: Relation, detail: string): Fault => ({
  detail,
  repair: Effect.gen(function* () {
    const { dataset, name } = relation
    const free = yield* asideName(relation)
    const [row] = yield* execute<{ kind: string }>(
      `select c.relkind::text as kind from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2`,
      [dataset, name]
    )
    yield* execute(`alter ${row?.kind === "c" ? "type" : "table"} ${relation.quoted} rename to ${identifier(free)}`)
    return [`it is ${dataset}.${free} now, and views that read it still do; a new one was created`]
  })
})
