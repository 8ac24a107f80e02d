/**
 * One SQL statement that a person or a program wrote, in a session of the reader.
 *
 * Promise: every value is Postgres' own text, so that no digit changes. Names without a dataset mean the current records
 * and the models, or those as of a moment; a statement as of a moment never reads the current ones. A statement that reads
 * a table without its key is refused. Rows are passed on in parts, so that memory does not grow with the result.
 */
import * as Effect from "effect/Effect"
import { asText, type Client, type QueryArrayConfig, queryNamed } from "../postgres/driver/Connection.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as KeylessTables from "./KeylessTables.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "./Model.ts"
import * as PresentRecords from "./PresentRecords.ts"
import * as Reader from "./Reader.ts"
import type { Datasets } from "./Table.ts"

export interface QueryResult {
  readonly columns: ReadonlyArray<{ readonly name: string; readonly oid: number }>
  /** Every value as Postgres writes it; null is SQL's null. */
  readonly rows: ReadonlyArray<ReadonlyArray<string | null>>
}

const reads = "select, values, table, with, explain or show"

/** Target size of one fetch; the first one fetches a few rows. */
const partBytes = 4 * 1024 * 1024
const firstRows = 10
const partRowsMax = 10_000

/** The memory of a value besides its text. */
const valueBytes = 16
export const bytesOf = ({ rows }: QueryResult): number =>
  rows.reduce((sum, row) => row.reduce((bytes, value) => bytes + valueBytes + (value?.length ?? 0), sum), 0)

/** The moment of a query: the settings `tributary.as_of` and `tributary.as_of_mode`. */
export interface AsOf {
  readonly moment: string
  readonly mode: "warehouse" | "source"
}

/** The settings of a session whose names without a dataset mean the records as of the moment, or the current ones. */
const settingsOf = ({ current, asOf }: Datasets, at: AsOf | undefined): string =>
  JSON.stringify(
    at === undefined
      ? { search_path: `${current}, ${modelsDatasetDefault}, public` }
      : {
          search_path: `${asOf}, ${asOfModelsDataset}, public`,
          "tributary.as_of": at.moment,
          "tributary.as_of_mode": at.mode
        }
  )

/** Sets the names and the moment of a session up. */
export const setUp = Effect.fnUntraced(function* (client: Client, at?: AsOf) {
  const { datasets } = yield* Reader.ReaderOptions
  yield* queryNamed(client, Reader.settingsStatement, [settingsOf(datasets, at)])
})

/** Limits of a result. */
export interface Limits {
  /** The moment of the session ({@link setUp}): then the statement may not read present records. */
  readonly at?: AsOf | undefined
  /** The values of `$1`, `$2` and so on, as text. */
  readonly params?: ReadonlyArray<string | null>
  /** Time limit of each fetch; default: {@link Reader.statementTimeout}. */
  readonly timeout?: string
  /**
   * The characters of all values of a row: longer values are cut by the server, so that no row exceeds the memory of this
   * process. Without it, rows are passed on whole.
   */
  readonly rowCharactersMax?: number
  /** The characters of one value, with `rowCharactersMax`. */
  readonly valueCharactersMax?: number
}

/** A named query is prepared, and Postgres prepares only a single statement. */
const send = (client: Client, text: string, options: { readonly name?: string; readonly values?: Limits["params"] }) =>
  Effect.tryPromise({
    try: () =>
      client.query<Array<string | null>>({
        ...options,
        text,
        rowMode: "array",
        types: asText
      } as QueryArrayConfig),
    catch: DatabaseError.from("query")
  }).pipe(
    Effect.map(({ fields, rows }): QueryResult => ({
      columns: fields.map((field) => ({ name: field.name, oid: field.dataTypeID })),
      rows
    }))
  )

/** The statement with values that the server cuts, and the columns of the statement. */
const cutStatement = Effect.fnUntraced(function* (
  client: Client,
  statement: string,
  rowCharactersMax: number,
  { params = [], valueCharactersMax = rowCharactersMax }: Limits
) {
  // A comment at the end of the statement ends with its line.
  const described = yield* send(client, `select * from (\n${statement}\n) as result limit 0`, {
    name: "columns",
    values: params
  })
  const { columns } = described
  const names = columns.map((_, index) => `c${index}`)
  const share = Math.floor(rowCharactersMax / Math.max(1, names.length))
  const charactersMax = Math.max(1, Math.min(valueCharactersMax, share))
  const list = names.map((name) => `left(${name}::text, ${charactersMax})`).join(", ")
  const alias = names.length === 0 ? "result" : `result(${names.join(", ")})`
  return { columns, charactersMax, text: `select ${list} from (\n${statement}\n) as ${alias}` }
})

/**
 * Runs one statement in a session of the reader, and passes its rows on in parts until `take` answers false. The first part
 * may be empty. A statement that no cursor can run is a syntax error.
 */
export const readParts = Effect.fnUntraced(function* <E, R>(
  client: Client,
  text: string,
  take: (part: QueryResult) => Effect.Effect<boolean, E, R>,
  limits: Limits = {}
) {
  const { params = [], rowCharactersMax } = limits
  const { datasets } = yield* Reader.ReaderOptions
  const statement = text.trim().replace(/;\s*$/, "")
  const isCursor = !/^(?:explain|show)\b/i.test(statement)
  const declaration = isCursor ? "declare statement no scroll cursor for " : ""
  const declared = (query: string) => `${declaration}${query}`
  /** The place in the statement as it was given; none where the server got a longer one. */
  const located = (error: DatabaseError) => {
    const { position } = error
    return asSentence(
      error,
      position === undefined || rowCharactersMax !== undefined ? undefined : position - declaration.length
    )
  }
  yield* Reader.limitTime(client, limits.timeout)
  const refusePresent =
    limits.at === undefined
      ? Effect.void
      : yield* Effect.mapError(PresentRecords.refuseIn(client, declared(statement), datasets), located)
  const refuseUnreadable = Effect.andThen(refusePresent, KeylessTables.refuse(client, datasets))
  if (!isCursor) {
    const result = yield* Effect.mapError(send(client, statement, { name: "statement", values: params }), located)
    yield* refuseUnreadable
    yield* take(result)
    return
  }
  const cut =
    rowCharactersMax === undefined
      ? null
      : yield* Effect.mapError(cutStatement(client, statement, rowCharactersMax, limits), located)
  yield* Effect.mapError(send(client, declared(cut?.text ?? statement), { name: "statement", values: params }), located)
  for (let count = firstRows; ;) {
    yield* Reader.limitTime(client, limits.timeout)
    const part = yield* send(client, `fetch ${count} from statement`, {})
    yield* refuseUnreadable
    const isWanted = yield* take(cut === null ? part : { columns: cut.columns, rows: part.rows })
    if (!isWanted || part.rows.length < count) return
    if (cut === null)
      count = Math.max(1, Math.min(partRowsMax, Math.floor((partBytes * count) / Math.max(1, bytesOf(part)))))
  }
})

const syntaxError = "42601"

const asSentence = ({ operation, code, hint, isRetryable, message }: DatabaseError, position?: number): DatabaseError =>
  new DatabaseError({
    operation,
    code,
    message: code === syntaxError ? `query runs one read-only statement (${reads}): ${message}` : message,
    isRetryable,
    hint,
    position
  })
