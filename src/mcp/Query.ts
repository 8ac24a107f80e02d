/**
 * The tool `query`: one read-only statement of the assistant.
 *
 * Promise: the statement runs as a login that has never had the rights of the owner and cannot read a secret, in a read-only
 * transaction on a connection of its own, which is closed and rolled back at the end. Each fetch has a time limit. Rows,
 * values and the whole answer have a maximum size, which the server applies before it sends a value. The answer names the
 * tables that the statement has locked, also those behind views and functions, with their freshness in the same snapshot.
 *
 * Without such a login the tool refuses. `tributary query` falls back to the owner in a read-only transaction there, which
 * a person may do who has the owner's rights anyway; an assistant could read secrets by it.
 */
import type { Socket } from "node:net"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import { type Client, query as send, queryNamed } from "../postgres/driver/Connection.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import * as Grants from "../warehouse/Grants.ts"
import { presentRecords } from "../warehouse/PresentRecords.ts"
import * as Reader from "../warehouse/Reader.ts"
import * as ReaderQuery from "../warehouse/ReaderQuery.ts"
import { type Answer, answer, messageCharactersMax, toolFailure, ToolFailure } from "./Answer.ts"
import { Capabilities, unreachable } from "./Capabilities.ts"
import * as Freshness from "./Freshness.ts"
import { resourcesOf } from "./Tables.ts"

const statementTimeout = "10s"
const rowsDefault = 200
const rowsMax = 1_000
/** The characters of all values of an answer. */
const charactersMax = 1_000_000
const valueCharactersMax = 20_000
const sqlCharactersMax = 20_000
const paramsMax = 100

const Scalar = Schema.Union([
  Schema.String.check(Schema.isMaxLength(10_000)),
  Schema.Finite,
  Schema.Boolean,
  Schema.Null
])

export const query = Tool.make("query", {
  description:
    "Runs one read-only SQL statement of Postgres on the warehouse: select, values, table, with, explain or show. Names " +
    "without a dataset mean the current records and the models. Deleted records stay in the tables: add where _deleted_at " +
    "is null. Money is numeric: results are exact text. Give values as params ($1, $2), with a cast where the type is not clear. " +
    `A value is cut at ${valueCharactersMax} characters, an answer at ${charactersMax}, a message of Postgres at ${messageCharactersMax}.`,
  parameters: Schema.Struct({
    sql: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(sqlCharactersMax)),
    params: Schema.optionalKey(
      Schema.Array(Scalar).check(Schema.isMaxLength(paramsMax)).annotate({ description: "The values of $1, $2, ..." })
    ),
    as_of: Schema.optionalKey(
      Schema.String.check(Schema.isMaxLength(100)).annotate({
        description:
          "Read the records and models as of this moment (2026-10-31 23:59:59+00) or position of the change feed (position 12345). " +
          "Name them without a dataset: a statement that names present records is refused. The control plane has no past."
      })
    ),
    as_of_mode: Schema.optionalKey(
      Schema.Literals(["warehouse", "source"]).annotate({
        description: "By the reads of the warehouse (default) or by the source's times of change"
      })
    ),
    limit: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: rowsMax })).annotate({
        description: `The maximum number of rows; default ${rowsDefault}`
      })
    )
  }),
  success: answer(
    Schema.Struct({
      columns: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String })),
      rows: Schema.Array(Schema.Array(Schema.NullOr(Schema.String))).annotate({
        description: "Every value as Postgres writes it; null is SQL's null"
      }),
      row_count: Schema.Int,
      is_complete: Schema.Boolean.annotate({ description: "Whether these are all rows of the result" }),
      tables: Schema.Array(Schema.String).annotate({ description: "Every table and view that the statement read" })
    })
  ),
  failure: ToolFailure
})

export interface QueryRequest {
  readonly sql: string
  readonly params?: ReadonlyArray<string | number | boolean | null>
  readonly as_of?: string
  readonly as_of_mode?: "warehouse" | "source"
  readonly limit?: number
}

/** The columns that a reader sees of each table with secrets. */
const secretColumns = Object.entries(Grants.secretTables)
  .map(([table, shown]) => `('${table}', array[${shown.map((name) => `'${name}'`).join(", ")}]::text[])`)
  .join(", ")

/** The tables whose secrets the login can read, by its own rights or by those of a role that it can take. */
export const readableSecretsStatement = Statement.make({
  name: "look for secrets that the reader can read",
  columns: { names: "text?" },
  text: `select string_agg(distinct c.relname::text, ', ') as names
           from (values ${secretColumns}) s(name, shown)
           join pg_class c on c.relname = s.name and c.relnamespace = to_regnamespace('${Grants.controlDataset}')
           join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attname <> all(s.shown)
           join pg_roles r on pg_has_role(session_user, r.oid, 'member')
          where has_column_privilege(r.oid, c.oid, a.attnum, 'select')`
})

/** The relations that the transaction has locked: those that its statements named, also behind views and functions. */
export const relationsStatement = Statement.make({
  name: "list the relations of the transaction",
  columns: { name: "text" },
  text: `select distinct n.nspname || '.' || c.relname as name
           from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
          where l.pid = pg_backend_pid() and l.locktype = 'relation' and c.relkind in ('r', 'p', 'v', 'm', 'f')
            and l.database = (select oid from pg_database where datname = current_database())
            and n.nspname <> all(array['pg_catalog', 'information_schema', 'pg_toast'])
          order by 1`
})

export const typeNamesStatement = Statement.make({
  name: "name the types of columns",
  params: ["int8[]"],
  columns: { oid: "int8", name: "text" },
  text: "select t::int8 as oid, format_type(t::oid, null) as name from unnest($1::int8[]) as t"
})

/** All that one session may receive: the rows, and what the server does not cut: errors and plans. */
const receivedBytesMax = 64 * 1024 * 1024

/** Ends a session that receives more, before the client decodes a message larger than a string can be. */
const limitReceived = (client: Client): void => {
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Socket } }).connection
  let bytes = 0
  stream.prependListener("data", (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > receivedBytesMax && !stream.destroyed)
      stream.destroy(new Error("the answer is larger than 64 MB: select less"))
  })
}

/** A session whose statements see one snapshot. */
const openSession = Effect.fnUntraced(function* (connect: Reader.Pages["connect"], at: ReaderQuery.AsOf | undefined) {
  const client = yield* connect
  limitReceived(client)
  yield* send(client, "begin to read", "set transaction isolation level repeatable read")
  const [secrets] = yield* queryNamed(client, readableSecretsStatement)
  if (secrets?.names !== null) {
    return yield* Effect.fail(
      toolFailure(
        "no_reader",
        `SQL is not run: its login can read the secrets in ${secrets?.names ?? "the warehouse"}.`,
        "The operator makes a reader (tributary schema grants | psql) and sets DATABASE_READER_URL to log in as it. " +
          "The other tools work without it."
      )
    )
  }
  yield* ReaderQuery.setUp(client, at)
  return client
})

/** The rows up to the maximum of rows or characters. */
const readRows = Effect.fnUntraced(function* (client: Client, request: QueryRequest, at: ReaderQuery.AsOf | undefined) {
  const { sql, params = [], limit = rowsDefault } = request
  const rows: Array<ReadonlyArray<string | null>> = []
  let columns: ReaderQuery.QueryResult["columns"] = []
  let characters = 0
  let hasCutValue = false
  let stopped: string | null = null
  const take = (part: ReaderQuery.QueryResult): boolean => {
    columns = part.columns
    for (const row of part.rows) {
      if (rows.length >= limit) stopped = `The result has more than ${limit} rows: add a limit, or aggregate.`
      else if (characters > charactersMax)
        stopped = `The result is larger than ${charactersMax} characters: select fewer columns or rows.`
      if (stopped !== null) return false
      const shown = row.map((value) => (value === null ? null : value.slice(0, valueCharactersMax)))
      for (const value of shown) characters += value?.length ?? 4
      hasCutValue ||= shown.some((value, index) => value !== null && value.length < row[index]!.length)
      rows.push(shown)
    }
    return true
  }
  yield* ReaderQuery.readParts(client, sql, (part) => Effect.sync(() => take(part)), {
    params: params.map((value) => (value === null ? null : String(value))),
    at,
    timeout: statementTimeout,
    rowCharactersMax: charactersMax,
    // One more than the maximum, so that a value that was cut is recognised.
    valueCharactersMax: valueCharactersMax + 1
  })
  const remarks = [
    ...(stopped === null ? [] : [stopped]),
    ...(hasCutValue ? [`Values longer than ${valueCharactersMax} characters are cut.`] : [])
  ]
  return { columns, rows, remarks, isComplete: stopped === null }
})

const typeNames = (client: Client, { columns }: Pick<ReaderQuery.QueryResult, "columns">) =>
  Effect.map(queryNamed(client, typeNamesStatement, [[...new Set(columns.map(({ oid }) => oid))]]), (rows) => {
    const names = new Map(rows.map(({ oid, name }) => [Number(oid), name]))
    return columns.map(({ name, oid }) => ({ name, type: names.get(oid) ?? String(oid) }))
  })

const run = Effect.fnUntraced(function* (request: QueryRequest, connect: Reader.Pages["connect"]) {
  const { datasets } = yield* Capabilities
  const at =
    request.as_of === undefined ? undefined : { moment: request.as_of, mode: request.as_of_mode ?? "warehouse" }
  const client = yield* openSession(connect, at)
  const { rows, remarks, isComplete, ...result } = yield* readRows(client, request, at)
  // The statement may have changed the limit.
  yield* Reader.limitTime(client, statementTimeout)
  const relations = (yield* queryNamed(client, relationsStatement)).map(({ name }) => name)
  const columns = yield* typeNames(client, result)
  const context = yield* Freshness.read<DatabaseError, never>(
    (statement, ...values) => queryNamed(client, statement, ...values),
    {
      resources: [...new Set(resourcesOf(datasets, relations))]
    }
  )
  return {
    ...context,
    data: { columns, rows, row_count: rows.length, is_complete: isComplete, tables: relations },
    sql: [
      {
        text: request.sql,
        parameters: (request.params ?? []).map((value) => (value === null ? null : String(value)))
      }
    ],
    remarks: [...remarks, ...context.remarks]
  } satisfies Answer<typeof query.successSchema.Type.data>
}, Effect.scoped)

/** What to do about an error of Postgres, by its code. */
const remedies: Readonly<Record<string, string>> = {
  "25006": "This server only reads. It changes nothing.",
  "42501": "The reader may not read this part of the warehouse. list_tables shows what it may read.",
  "42601": "Correct the statement. It must be one statement of Postgres that reads.",
  "42703": "describe_table shows the columns of a table.",
  "42P01": "list_tables shows the tables.",
  [presentRecords]: "Name the tables as query_name of list_tables has them, without a dataset.",
  "57014": `A statement has ${statementTimeout}. Read less: add conditions, aggregate, or use a model.`
}

const failureOf = (error: ToolFailure | DatabaseError): ToolFailure => {
  if (!(error instanceof DatabaseError)) return error
  if (error.operation === "read as the reader") {
    return toolFailure(
      "no_reader",
      error.message,
      "The operator sets DATABASE_READER_URL; tributary doctor shows more."
    )
  }
  if (error.code === "57014" || error.operation === "query") {
    if (error.isRetryable) return unreachable
    const what = remedies[error.code ?? ""] ?? "Correct the statement."
    return toolFailure(`sql_${error.code ?? "error"}`, error.message, what)
  }
  return unreachable
}

const insufficientPrivilege = "42501"

export const handle = (request: QueryRequest) =>
  Effect.gen(function* () {
    const { warehouse } = yield* Capabilities
    const { connect, context, pools } = yield* warehouse
    const once = Effect.provideService(run(request, connect), Capabilities, yield* Capabilities)
    // A table may have been created since the last grant.
    const again = Effect.catchIf(
      once,
      (error) => error instanceof DatabaseError && error.code === insufficientPrivilege,
      () =>
        Effect.andThen(
          Effect.flatMap(pools, ({ pages }) => pages.grant),
          once
        )
    )
    return yield* Effect.provideContext(again, context)
  }).pipe(Effect.mapError(failureOf))
