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
import { csvRow } from "../export/Csv.ts"
import { typeIds, queryNamed } from "../postgres/driver/Connection.ts"
import * as Reader from "../warehouse/Reader.ts"
import * as ReaderQuery from "../warehouse/ReaderQuery.ts"
import * as ReaderTables from "../warehouse/ReaderTables.ts"
import type { AsOf, QueryResult } from "../warehouse/ReaderQuery.ts"
import { type Model, modelDatasetsOf } from "../warehouse/Model.ts"
import type { Datasets } from "../warehouse/Table.ts"
import * as Views from "../warehouse/Views.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { config, demoWarehouse, json, onWarehouse, switchFlag, textFlag, withExamples } from "./Command.ts"
import { usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as Models from "./Models.ts"
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
  datasets: Datasets,
  leftOut: ReadonlyArray<Views.Refused> = []
) {
  if (code !== undefinedTable) return null
  const name = /"(?:[^".]+\.)?([^".]+)"/.exec(message)?.[1]
  const model = models.find((one) => one.name === name)
  if (model === undefined) return null
  const refused = leftOut.find((one) => one.name === name)
  if (refused !== undefined) return `the model ${model.name} is left out: ${refused.reason}; ${refused.remedy}`
  const where = modelDatasetsOf(datasets)
  const plans = yield* Effect.forEach(where, (one) => Views.planFor([model], one))
  const missing = [...new Set(plans.flatMap(({ skipped }) => skipped.flatMap((one) => one.missing)))]
  return missing.length === 0
    ? `the model ${model.name} does not exist yet; create it with: tributary sync ${model.resources.join(" ")}`
    : `the model ${model.name} does not exist yet: it needs ${missing.join(", ")}, which ${missing.length === 1 ? "is" : "are"} not synced; ` +
        `sync with: tributary sync ${missing.join(" ")}`
})

const oids = (...names: ReadonlyArray<keyof typeof typeIds>): ReadonlySet<number> =>
  new Set(names.map((name): number => typeIds[name]))

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

/** The tables and views that a statement can read, with their comments. */
export const readTables = Effect.fnUntraced(function* (datasets: Datasets) {
  const client = yield* Reader.connect
  const found = yield* queryNamed(client, ReaderTables.tablesStatement, [
    Object.values(ReaderTables.datasetOf(datasets)),
    null,
    null
  ])
  const { TEXT: text, FLOAT8: number } = typeIds
  return {
    columns: [
      { name: "name", oid: text },
      { name: "kind", oid: text },
      { name: "rows_estimate", oid: number },
      { name: "comment", oid: text }
    ],
    rows: found.map((row) => [
      ReaderTables.queryNameOf(row),
      ReaderTables.kindOf(row.dataset),
      row.rowsEstimate?.toString() ?? null,
      row.meaning
    ])
  } satisfies QueryResult
}, Effect.scoped)

/** Characters of a comment in a table for people. */
const commentMax = 100

const tablesForPeople = ({ columns, rows }: QueryResult): string =>
  toTable({
    columns,
    rows: rows.map((row) =>
      row.map((value) => (value !== null && value.length > commentMax ? `${value.slice(0, commentMax)}…` : value))
    )
  })

/** The line of the statement that the server could not run, with a mark below the place, as psql shows it. */
export const markPlace = (statement: string, position: number): string => {
  const before = Array.from(statement)
    .slice(0, position - 1)
    .join("")
  const number = before.split("\n").length
  const label = `LINE ${number}: `
  const line = statement.split("\n")[number - 1] ?? ""
  const column = Output.widthOf(before.slice(before.lastIndexOf("\n") + 1).replaceAll("\t", " "))
  return `  ${label}${Output.shown(line.replaceAll("\t", " "))}\n  ${" ".repeat(label.length + column)}^`
}

const tablesHint = "tributary query --tables lists the tables and views"

/** A statement that fails: the server's message, the place, and its advice or ours. */
export const failedStatement = (text: string, { code, hint, message, position }: DatabaseError) => {
  const advice = hint ?? (code === undefinedTable ? tablesHint : null)
  return usageError(
    [
      `${message}${code === undefined ? "" : ` (${code})`}`,
      ...(position === undefined ? [] : [markPlace(text.trim(), position)]),
      ...(advice === null ? [] : [`  hint: ${advice}`])
    ].join("\n")
  )
}

/** Prints the parts of a result as lines, as they arrive. */
const printer = (format: "csv" | "ndjson") => {
  let isFirst = true
  return (part: QueryResult) =>
    Effect.gen(function* () {
      if (isFirst && format === "csv") yield* Output.print(csvRow(part.columns.map(({ name }) => name)))
      isFirst = false
      for (const row of part.rows) yield* Output.print(format === "csv" ? csvRow(row) : rowJson(part, row))
    })
}

export const command = Command.make(
  "query",
  {
    sql: Argument.String("sql").pipe(
      Argument.withDescription("One SQL statement; it runs as the reader, in a read-only transaction"),
      Argument.optional
    ),
    tables: switchFlag("tables", "List the tables and views that a statement can read, with their comments"),
    format: Flag.Literals("format", ["table", "csv", "ndjson"]).pipe(
      Flag.withDescription("The format of the rows (default: table); csv has a header, and NULL is an empty cell"),
      Flag.optional
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
    const format = Option.getOrElse(flags.format, () => (flags.json ? "ndjson" : "table"))
    const text = Option.getOrNull(flags.sql)
    yield* onWarehouse(flags, (settings) =>
      Effect.gen(function* () {
        const { datasets } = settings
        if (flags.tables) {
          const tables = yield* readTables(datasets)
          return yield* format === "table" ? Output.print(tablesForPeople(tables)) : printer(format)(tables)
        }
        if (text === null) return yield* usageError(`give a statement: tributary query "select ..."; ${tablesHint}`)
        const answered =
          format === "table"
            ? Effect.flatMap(read(text, at), (result) =>
                Effect.andThen(
                  Output.print(toTable(result)),
                  Output.note(`  ${Output.plural(result.rows.length, "row")}`)
                )
              )
            : readParts(text, printer(format), at)
        return yield* Effect.catchTag(
          answered,
          "DatabaseError",
          Effect.fnUntraced(function* (error) {
            if (error.operation !== "query" || error.isRetryable) return yield* error
            const about = yield* missingModel(
              error,
              yield* (yield* Source).models,
              datasets,
              (yield* Models.of(settings)).leftOut
            )
            return yield* about === null ? failedStatement(text, error) : usageError(about)
          })
        )
      })
    )
  })
).pipe(
  withExamples({
    'tributary query "select resource, status, records from tributary.runs order by id desc limit 5"':
      "The last five runs",
    "tributary query --tables": "The tables and views, with their comments",
    'tributary query --format csv "select * from RESOURCE" > records.csv': "For a spreadsheet",
    'tributary query --as-of "2026-10-31 23:59:59+00" "select count(*) from RESOURCE where _deleted_at is null"':
      "The records that the warehouse had at the end of October",
    'tributary query --as-of "position 12345" "select * from RESOURCE order by id limit 5"':
      "Records as they were after a change of the change feed"
  })
)
