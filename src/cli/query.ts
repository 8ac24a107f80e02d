/**
 * `tributary query`: one read-only SQL statement on the warehouse.
 *
 * Names without a dataset mean the current records and the models, or with `--as-of` those as of the moment.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import pg from "pg"
import * as Reader from "../warehouse/Reader.ts"
import * as ReaderQuery from "../warehouse/ReaderQuery.ts"
import type { AsOf, QueryResult } from "../warehouse/ReaderQuery.ts"
import { type Model, modelDatasetsOf } from "../warehouse/Model.ts"
import type { Datasets } from "../warehouse/Table.ts"
import * as Views from "../warehouse/Views.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { config, demoWarehouse, json, onWarehouse, textFlag, withExamples } from "./Command.ts"
import { usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { Source } from "./Source.ts"

/** The maximum size of a table for people, which is laid out as a whole. */
const tableBytesMax = 64 * 1024 * 1024

/** Runs one statement as the reader, and passes its rows on in parts. */
export const readParts = Effect.fn("query.read")(function* <E, R>(
  text: string,
  take: (part: QueryResult) => Effect.Effect<void, E, R>,
  at?: AsOf
) {
  const client = yield* Reader.connect
  yield* ReaderQuery.setUp(client, at)
  yield* ReaderQuery.readParts(client, text, (part) => Effect.as(take(part), true), { at })
}, Effect.scoped)

/** {@link readParts}, as a whole. */
export const read = Effect.fnUntraced(function* (text: string, at?: AsOf) {
  let columns: QueryResult["columns"] = []
  const rows: Array<QueryResult["rows"][number]> = []
  let bytes = 0
  yield* readParts(
    text,
    (part) => {
      bytes += ReaderQuery.bytesOf(part)
      if (bytes > tableBytesMax) return Effect.fail(tooLarge)
      columns = part.columns
      for (const row of part.rows) rows.push(row)
      return Effect.void
    },
    at
  )
  return { columns, rows } satisfies QueryResult
})

const tooLarge = new DatabaseError({
  operation: "query",
  code: undefined,
  message: `the result is larger than ${tableBytesMax / 1024 / 1024} MB; add a limit, or use --json, which prints each row as it arrives`,
  isRetryable: false
})

/** The SQLSTATE of a relation that does not exist. */
const undefinedTable = "42P01"

/**
 * What a query about a model that does not exist says: the resources that the model still needs. Null where the relation is
 * no model of the connector.
 */
export const missingModel = Effect.fnUntraced(function* (
  { code, message }: Pick<DatabaseError, "code" | "message">,
  models: ReadonlyArray<Model>,
  datasets: Datasets
) {
  if (code !== undefinedTable) return null
  const name = /"(?:[^".]+\.)?([^".]+)"/.exec(message)?.[1]
  const model = models.find((one) => one.name === name)
  if (model === undefined) return null
  const where = modelDatasetsOf(datasets)
  const plans = yield* Effect.forEach(where, (one) => Views.planFor([model], one))
  const missing = [...new Set(plans.flatMap(({ skipped }) => skipped.flatMap((one) => one.missing)))]
  return missing.length === 0
    ? `the model ${model.name} does not exist yet; create it with: tributary sync ${model.resources.join(" ")}`
    : `the model ${model.name} does not exist yet: it needs ${missing.join(", ")}, which ${missing.length === 1 ? "is" : "are"} not synced; ` +
        `sync with: tributary sync ${missing.join(" ")}`
})

const oids = (...names: ReadonlyArray<keyof typeof pg.types.builtins>): ReadonlySet<number> =>
  new Set(names.map((name): number => pg.types.builtins[name]))

const booleans = oids("BOOL")
/** Postgres writes these as JSON already. */
const verbatim = oids("INT2", "INT4", "INT8", "JSON", "JSONB")
const numeric = oids("INT2", "INT4", "INT8", "NUMERIC", "FLOAT8")

/** A row as JSON: integers, booleans and JSON as they are, everything else (decimals too) as text. */
const rowJson = ({ columns }: QueryResult, row: ReadonlyArray<string | null>): string =>
  `{${columns
    .map(({ name, oid }, index) => {
      const value = row[index] ?? null
      const text =
        value === null
          ? "null"
          : booleans.has(oid)
            ? String(value === "t" || value === "true")
            : verbatim.has(oid)
              ? value
              : JSON.stringify(value)
      return `${JSON.stringify(name)}:${text}`
    })
    .join(",")}}`

/** A result as a table for people. */
export const toTable = ({ columns, rows }: QueryResult): string =>
  Output.table(
    columns.map(({ name }) => name),
    rows.map((row) => row.map((value) => value ?? "")),
    columns.map(({ oid }) => (numeric.has(oid) ? "right" : "left"))
  )

export const command = Command.make(
  "query",
  {
    sql: Argument.String("sql").pipe(
      Argument.withDescription("One SQL statement; it runs as the reader, in a read-only transaction")
    ),
    asOf: textFlag(
      "as-of",
      "MOMENT",
      "The records and models as of this moment (2026-10-31 23:59:59+00) or position of the change feed (position 12345)"
    ),
    mode: Flag.Literals("mode", ["warehouse", "source"]).pipe(
      Flag.withDescription(
        "With --as-of: the versions that the warehouse had read by then, or those that the source had by its times of " +
          "change. The source has no time of a deletion: it counts from the read that found it (default: warehouse)"
      ),
      Flag.withDefault("warehouse" as const)
    ),
    config,
    demo: demoWarehouse,
    json
  },
  Effect.fn(function* (flags) {
    const at = Option.isNone(flags.asOf) ? undefined : { moment: flags.asOf.value, mode: flags.mode }
    const answered = flags.json
      ? readParts(
          flags.sql,
          (part) => Effect.forEach(part.rows, (row) => Output.print(rowJson(part, row)), { discard: true }),
          at
        )
      : Effect.flatMap(read(flags.sql, at), (result) =>
          Effect.andThen(Output.print(toTable(result)), Output.note(`  ${Output.plural(result.rows.length, "row")}`))
        )
    yield* onWarehouse(flags, ({ datasets }) =>
      Effect.catchTag(
        answered,
        "DatabaseError",
        Effect.fnUntraced(function* (error) {
          if (error.operation !== "query" || error.isRetryable) return yield* error
          const about = yield* missingModel(error, yield* (yield* Source).models, datasets)
          return yield* usageError(about ?? `${error.message}${error.code === undefined ? "" : ` (${error.code})`}`)
        })
      )
    )
  })
).pipe(
  withExamples({
    'tributary query "select resource, status, records from tributary.runs order by id desc limit 5"':
      "The last five runs",
    'tributary query --as-of "2026-10-31 23:59:59+00" "select count(*) from RESOURCE where _deleted_at is null"':
      "The records that the warehouse had at the end of October",
    'tributary query --as-of "position 12345" "select * from RESOURCE order by id limit 5"':
      "Records as they were after a change of the change feed"
  })
)
