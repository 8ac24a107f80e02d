/**
 * Parquet files of CSV files, through DuckDB.
 *
 * Promise: exact values: a `numeric(20,4)` becomes DECIMAL(20,4), a `timestamptz` an instant with microseconds; a number
 * without a scale and JSON stay text. DuckDB is an optional package, loaded here alone.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { ExportFailed } from "./ExportFailed.ts"
import type { ExportColumn } from "./ExportTable.ts"

export interface ParquetWriter {
  /** Writes the rows of a CSV file without header; returns their number. */
  readonly write: (
    csv: string,
    columns: ReadonlyArray<ExportColumn>,
    parquet: string
  ) => Effect.Effect<number, ExportFailed>
}

/** DuckDB has a buffer of the CSV and one row group in memory. A second thread would need twice as much, and is no faster. */
const memoryLimit = "96MB"
const rowsPerGroup = 10_000
/** Of one row; also the size of the buffer. */
const lineBytesMax = 8 * 1024 * 1024

const missing = new ExportFailed({
  message:
    "Parquet files need DuckDB, which is not installed: npm install @duckdb/node-api@1.5.6-r.1, or choose --format csv or ndjson"
})

/** The type of DuckDB for a type of Postgres, as `format_type` prints it. */
export const duckDbType = (type: string): string => {
  const scale = /^numeric\(20,(\d+)\)$/.exec(type)?.[1]
  if (scale !== undefined) return `DECIMAL(20,${scale})`
  switch (type) {
    case "bigint":
      return "BIGINT"
    case "boolean":
      return "BOOLEAN"
    case "date":
      return "DATE"
    case "timestamp with time zone":
      return "TIMESTAMPTZ"
    default:
      return "VARCHAR"
  }
}

const decimal = /^DECIMAL\(20,(\d+)\)$/

/**
 * The column of the CSV as its type. DuckDB takes 14 us to read a DECIMAL of more than 18 digits from text, and 0.3 us for
 * one of 18, which is exact where the value fits; the others take the slow way.
 */
const valueOf = ({ name, type }: ExportColumn): string => {
  const column = `"${name.replaceAll('"', '""')}"`
  const scale = decimal.exec(duckDbType(type))?.[1]
  if (scale === undefined) return column
  return `coalesce(try_cast(${column} as DECIMAL(18,${scale}))::DECIMAL(20,${scale}), ${column}::DECIMAL(20,${scale})) as ${column}`
}

/** DuckDB takes paths and names as literals; a backslash is no escape. */
const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

export const open = (temporaryFolder: string): Effect.Effect<ParquetWriter, ExportFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { DuckDBInstance } = yield* Effect.tryPromise({
      try: () => import("@duckdb/node-api"),
      catch: () => missing
    })
    const connection = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: async () => {
          const instance = await DuckDBInstance.create(":memory:", {
            memory_limit: memoryLimit,
            threads: "1",
            temp_directory: temporaryFolder,
            autoload_known_extensions: "false"
          })
          return await instance.connect()
        },
        catch: ExportFailed.from("DuckDB")
      }),
      (opened) => Effect.sync(() => opened.closeSync())
    )
    return {
      write: (csv, columns, parquet) =>
        Effect.tryPromise({
          try: async () => {
            const types = columns.map(({ name, type }) => {
              const read = duckDbType(type)
              return `${quoted(name)}: ${quoted(decimal.test(read) ? "VARCHAR" : read)}`
            })
            const result = await connection.run(
              // An empty string is quoted, and null is not.
              `copy (select ${columns.map(valueOf).join(", ")} from read_csv(${quoted(csv)}, header = false, auto_detect = false, delim = ',', quote = '"',
                 escape = '"', nullstr = '', allow_quoted_nulls = false, max_line_size = ${lineBytesMax}, buffer_size = ${lineBytesMax}, columns = {${types.join(", ")}}))
               to ${quoted(parquet)} (format parquet, compression snappy, row_group_size ${rowsPerGroup})`
            )
            return result.rowsChanged
          },
          catch: ExportFailed.from("write Parquet")
        })
    }
  })
