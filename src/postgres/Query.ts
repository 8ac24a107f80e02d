/**
 * Typed SQL: Kysely builds the text, the `SqlClient` runs it.
 *
 * Promise: Kysely never opens a connection; a query takes part in `sql.withTransaction`, is interrupted like any other,
 * and fails with a typed `DatabaseError`. Rows have the types of the `SqlClient` (bigint for int8, text for numeric).
 */
import * as Effect from "effect/Effect"
import {
  type CompiledQuery,
  DummyDriver,
  type Expression,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql
} from "kysely"
import * as Sql from "./Sql.ts"

/** The builder for the tables of `DB`: `const k = Query.k<Tables>()`. */
export const k = <DB>(): Kysely<DB> =>
  new Kysely<DB>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler()
    }
  })

/** The warehouse's clock. */
export const now = sql<Date>`tributary.now()`

/** The warehouse's clock `ms` milliseconds later; negative: earlier. */
export const nowPlus = (ms: number): RawBuilder<Date> =>
  sql<Date>`tributary.now() + ${ms}::float8 * interval '1 millisecond'`

/** A time in milliseconds since 1970: `epochMs<Date>(Query.now)`. */
export const epochMs = <At extends Date | null>(at: Expression<At>): RawBuilder<At extends null ? null : number> =>
  sql`(extract(epoch from ${at}) * 1000)::float8`

/** How long ago a time is, in milliseconds. */
export const ageMs = <At extends Date | null>(at: Expression<At>): RawBuilder<At extends null ? null : number> =>
  sql`(extract(epoch from tributary.now() - ${at}) * 1000)::float8`

/** A time in RFC 3339, to the microsecond. */
export const instant = <At extends Date | null>(at: Expression<At>): RawBuilder<At extends null ? null : string> =>
  sql`to_char(${at} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** A time in microseconds since 1970, which no precision is lost by. */
export const epochUs = <At extends Date | null>(at: Expression<At>): RawBuilder<At extends null ? null : bigint> =>
  sql`(extract(epoch from ${at}) * 1000000)::int8`

/** The time of {@link epochUs}. */
export const timeOfUs = (us: bigint): RawBuilder<Date> =>
  sql<Date>`timestamptz 'epoch' + ${us}::bigint * interval '1 microsecond'`

/** The conditions of a filter, for `and`; a null is any value. */
export const given = <A extends object>(filter: A): { readonly [Name in keyof A]?: NonNullable<A[Name]> } =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== null)) as {
    readonly [Name in keyof A]?: NonNullable<A[Name]>
  }

/** One of the values, for the right side of `=`. It may be none, unlike with `in`. */
export const anyOf = <A>(values: ReadonlyArray<A>): RawBuilder<A> => sql<A>`any(${values})`

/** A time that a text of RFC 3339 names, to the microsecond. */
export const at = (text: string): RawBuilder<Date> => sql`${text}::timestamptz`

/** The time that is so many milliseconds after 1970. */
export const timeOf = (ms: number): RawBuilder<Date> => sql`to_timestamp(${ms}::float8 / 1000)`

/** A query that `k` built, and Postgres has not seen. */
export interface Built<Row> {
  readonly compile: () => CompiledQuery<Row>
}

/** The rows of a query, or of the queries that a function builds. */
export type RowOf<Q> = Q extends (...values: never) => infer B ? RowOf<B> : Q extends Built<infer Row> ? Row : never

/** The operation in errors: "select tributary.checkpoints". */
const operationOf = (text: string) => {
  const verb = /\b(?:insert|update|delete|select)\b/.exec(text)?.[0] ?? "ask"
  const [, dataset, table] = /"(\w+)"\."(\w+)"/.exec(text) ?? []
  return table === undefined ? verb : `${verb} ${dataset}.${table}`
}

/** A query as text, with its operation for errors. */
export const compiled = (query: Built<unknown>) => {
  const { sql: text, parameters } = query.compile()
  return { text, parameters, operation: operationOf(text) }
}

/** The rows of a query. */
export const run = <Row>(query: Built<Row>): Sql.Query<ReadonlyArray<Row>> => {
  const { operation, parameters, text } = compiled(query)
  // The compiled query states the type of the rows; the client cannot know it.
  return Effect.map(Sql.rows(text, parameters, operation), (rows) => rows as unknown as ReadonlyArray<Row>)
}

/** The first row of a query; null where it answers none. */
export const first = <Row>(query: Built<Row>): Sql.Query<Row | null> => Effect.map(run(query), ([row]) => row ?? null)

/** Whether a query answers a row. */
export const hasRows = (query: Built<unknown>): Sql.Query<boolean> => Effect.map(run(query), (rows) => rows.length > 0)

/** Changes a setting of the session until the end of the transaction. */
export const setLocal = (setting: string, value: string) =>
  run(k<object>().selectNoFrom((of) => of.fn("set_config", [of.val(setting), of.val(value), of.lit(true)]).as("value")))

/** Turns the compilation of statements off in the transaction: compiling a long one takes Postgres longer than running it. */
export const withoutCompilation = setLocal("jit", "off")
