/**
 * The rows of a company in all tables, and their copy into another warehouse.
 *
 * Promise: rows stream from COPY to COPY; memory does not grow with them. Columns are named, and both tables must have
 * the same ones. Ids that Postgres numbers are shifted into a range that was reserved in the other warehouse, and all
 * references with them; in an unused warehouse they stay. Every copied table has the same rows on both sides, by their
 * number and a checksum of their text.
 */
import * as Effect from "effect/Effect"
import { type Client, query } from "../postgres/driver/Connection.ts"
import { copyIn, copyOut } from "../postgres/driver/Copy.ts"
import { Database, type DatabaseError } from "../postgres/Database.ts"
import * as Statement from "../postgres/Statement.ts"
import { movedIdentitySql } from "../land/MovedIdentity.ts"
import { literal } from "../warehouse/Identifier.ts"
import type { Datasets } from "../warehouse/Table.ts"
import * as TablePlan from "../warehouse/TablePlan.ts"
import { arraySql, tablesThat } from "./CompanyTables.ts"
import { MoveRefused } from "./MoveRefused.ts"
import { relationsStatement } from "./Removal.ts"

export const shapesStatement = Statement.make({
  name: "read the columns of the tables whose rows move",
  params: ["text[]"],
  columns: {
    name: "text",
    /** The column that Postgres numbers. */
    identity: "text?",
    /** The highest number so far. */
    last: "int8?",
    columns: Statement.as<ReadonlyArray<readonly [name: string, type: string]>>("jsonb")
  },
  text: `select r.name, i.attname::text as identity,
                coalesce(pg_sequence_last_value(pg_get_serial_sequence(r.name, i.attname)::regclass), 0) as last,
                (select jsonb_agg(jsonb_build_array(a.attname, format_type(a.atttypid, a.atttypmod)) order by a.attnum)
                   from pg_attribute a
                  where a.attrelid = r.name::regclass and a.attnum > 0 and not a.attisdropped) as columns
           from (select name, row_number() over () as place from (${relationsStatement.text}) n) r
           left join pg_attribute i on i.attrelid = r.name::regclass and i.attidentity <> '' and not i.attisdropped
          where r.name <> all(${arraySql(tablesThat("deleted"))})
          order by r.place`
})

/** A table with rows of companies. */
export type Shape = Statement.RowOf<typeof shapesStatement>

/** The company whose rows are meant: its name, and its number where it is known. */
export interface Company {
  readonly company: string
  readonly companyId: bigint | null
}

const isControl = (relation: string) => relation.startsWith("tributary.")

/** The condition of the company's rows. COPY takes no parameters. */
const conditionOf = ({ name, columns }: Shape, { company, companyId }: Company): string => {
  const number = companyId === null ? "null" : `${companyId}`
  if (!isControl(name)) return `"_company_id" = ${number}`
  const has = (column: string) => columns.some(([one]) => one === column)
  return [
    ...(has("company") ? [`company = ${literal(company)}`] : []),
    ...(has("company_id") ? [`company_id = ${number}`] : [])
  ].join(" or ")
}

/** The numbers by which ids of a table are shifted. */
export type Offsets = ReadonlyMap<string, bigint>

/** Columns of the control plane with an id of another table. */
export const references: Readonly<Record<string, string>> = {
  run_id: "tributary.runs",
  first_run_id: "tributary.runs",
  last_run_id: "tributary.runs",
  push_id: "tributary.pushes",
  request_id: "tributary.push_requests",
  refetch_generation: "tributary.refetch_requests",
  past_batch: "tributary.change_batches"
}

/** The table whose ids a column has; undefined for any other column. */
const numberedBy = ({ name, identity }: Shape, column: string): string | undefined => {
  if (!isControl(name)) return column === "_run_id" ? "tributary.runs" : undefined
  return column === identity ? name : references[column]
}

/** A column as the other warehouse stores it. */
const movedColumn = (shape: Shape, column: string, offsets: Offsets, datasets: Datasets): string => {
  const value = `"${column.replaceAll('"', '""')}"`
  if (shape.name === "tributary.checkpoints" && column === "table_identity") {
    return `${movedIdentitySql(datasets)} as ${value}`
  }
  const runs = offsets.get("tributary.runs") ?? 0n
  if (shape.name === "tributary.delivery_gaps" && column === "closed_by") {
    return `case when ${value} ~ '^run [0-9]+$' then 'run ' || substr(${value}, 5)::bigint + ${runs} else ${value} end as ${value}`
  }
  // The feed of the other warehouse gives its own positions.
  if (shape.name === "tributary.change_batches" && (column === "last_position" || column === "token"))
    return `null as ${value}`
  const offset = offsets.get(numberedBy(shape, column) ?? "") ?? 0n
  return offset === 0n ? value : `case when ${value} > 0 then ${value} + ${offset} else ${value} end as ${value}`
}

/** Formats of values that both sessions share, whatever the defaults of servers and roles are. */
const formats =
  "set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres'; set local extra_float_digits = 1; " +
  "set local bytea_output = 'hex'; set local idle_in_transaction_session_timeout = 0"

/** Begins the transaction of a copy. */
export const begin = (client: Client, isolation: "read committed" | "repeatable read") =>
  query(client, "begin", `begin isolation level ${isolation}; ${formats}`)

/** The number of rows, and a checksum that does not depend on their order. */
export interface Measure {
  readonly rows: bigint
  readonly checksum: string
}

const measure = (client: Client, table: string, select: string): Effect.Effect<Measure, DatabaseError> =>
  Effect.map(
    query<{ rows: bigint; checksum: string }>(
      client,
      `compare ${table}`,
      `select count(*) as rows, coalesce(sum(('x' || left(md5(r::text), 16))::bit(64)::bigint::numeric), 0)::text as checksum
         from (${select}) r`
    ),
    ([row]) => row!
  )

const refuse = (message: string) => new MoveRefused({ message })

/** Fails where the tables differ. */
const confirmShape = Effect.fnUntraced(function* (shape: Shape, target: Shape | undefined) {
  if (target === undefined) {
    return yield* refuse(
      `${shape.name} has rows of the company, and the target has no such table, since it is of no configured resource; ` +
        "configure the resource, or delete these rows"
    )
  }
  const types = new Map(target.columns)
  const own = new Map(shape.columns)
  const different = [...new Set([...own.keys(), ...types.keys()])].filter((name) => own.get(name) !== types.get(name))
  if (different.length === 0) return
  const details = different.map(
    (name) => `${name} is ${own.get(name) ?? "missing"} here and ${types.get(name) ?? "missing"} in the target`
  )
  return yield* refuse(`the columns of ${shape.name} differ: ${details.join(", ")}; change one of the tables`)
})

/** Copies the rows of one table, and confirms the copy. */
export const copyTable = Effect.fnUntraced(function* (
  { source, target }: { readonly source: Client; readonly target: Client },
  company: Company,
  shape: Shape,
  targetShape: Shape | undefined,
  offsets: Offsets,
  datasets: Datasets
): Effect.fn.Return<Measure, DatabaseError | MoveRefused> {
  const condition = conditionOf(shape, company)
  const columns = shape.columns.map(([name]) => name)
  const list = columns.map((name) => `"${name.replaceAll('"', '""')}"`).join(", ")
  const moved = columns.map((name) => movedColumn(shape, name, offsets, datasets)).join(", ")
  const select = `select ${moved} from ${shape.name} where ${condition}`
  const sent = yield* measure(source, shape.name, select)
  if (sent.rows === 0n) return sent
  yield* confirmShape(shape, targetShape)
  yield* copyIn(target, `copy ${shape.name} (${list}) from stdin`, copyOut(source, `copy (${select}) to stdout`))
  const stored = yield* measure(target, shape.name, `select ${list} from ${shape.name} where ${condition}`)
  if (stored.rows !== sent.rows || stored.checksum !== sent.checksum) {
    return yield* refuse(
      `the copy of ${shape.name} differs: ${stored.rows} of ${sent.rows} rows, checksum ${stored.checksum} instead of ` +
        `${sent.checksum}; nothing was moved`
    )
  }
  return sent
})

/** Tables with a row of the company. */
export const findRows = Effect.fnUntraced(function* (client: Client, company: Company, shapes: ReadonlyArray<Shape>) {
  const parts = shapes.map(
    (shape) =>
      `select ${literal(shape.name)} as name where exists (select from ${shape.name} where ${conditionOf(shape, company)})`
  )
  return (yield* query<{ name: string }>(client, "look for rows of the company", parts.join(" union all "))).map(
    ({ name }) => name
  )
})

/** The number of rows by table; tables without one are left out. */
export const countRows = Effect.fnUntraced(function* (company: Company, shapes: ReadonlyArray<Shape>) {
  const client = yield* (yield* Database).connect
  const parts = shapes.map(
    (shape) =>
      `select ${literal(shape.name)} as name, count(*) as rows from ${shape.name} where ${conditionOf(shape, company)}`
  )
  const counted = yield* query<{ name: string; rows: bigint }>(
    client,
    "count the rows of the company",
    parts.join(" union all ")
  )
  return new Map(counted.flatMap(({ name, rows }) => (rows === 0n ? [] : [[name, rows] as const])))
}, Effect.scoped)

/** The tables of the control plane, into which other programs may write while a company moves. */
export const controlOnly = (shapes: ReadonlyArray<Shape>) => shapes.filter(({ name }) => isControl(name))

export const reserveStatement = Statement.make({
  name: "reserve ids for a copy",
  params: ["text", "text", "int8"],
  columns: { offset: "int8", setval: "int8" },
  text: `with before as materialized (
           select s.id, coalesce(pg_sequence_last_value(s.id), 0) as last from (select pg_get_serial_sequence($1, $2)::regclass as id) s)
         select last as offset, case when last + $3 > 0 then setval(id, last + $3) end as setval from before`
})

/** Reserves ids for those of the other warehouse. No row of the table is being inserted meanwhile. */
export const reserveIds = Effect.fnUntraced(function* (shapes: ReadonlyArray<Shape>) {
  const offsets = new Map<string, bigint>()
  for (const { name, identity, last } of shapes) {
    if (identity === null) continue
    const [reserved] = yield* TablePlan.changing(
      name,
      Effect.andThen(
        TablePlan.run([`lock table ${name} in share mode`]),
        Statement.run(reserveStatement, [name, identity, last ?? 0n])
      )
    )
    offsets.set(name, reserved!.offset)
  }
  return offsets
})
