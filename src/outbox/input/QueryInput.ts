/**
 * Records from a query of the warehouse.
 *
 * Promise: the query is one statement that only reads; Postgres enforces both. Every value is as Postgres writes it in
 * JSON, numbers with all their digits; null is a value that was not given. A cursor on its own connection reads the
 * rows: memory does not grow with them. They have every change that was committed before, and are of no table without its
 * key.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as KeylessTables from "../../warehouse/KeylessTables.ts"
import * as Reader from "../../warehouse/Reader.ts"
import * as ReaderMark from "../../warehouse/ReaderMark.ts"
import { type Client, query } from "../../postgres/driver/Connection.ts"
import type { Database } from "../../postgres/Database.ts"
import { DatabaseError } from "../../postgres/DatabaseError.ts"
import type { InputRecord } from "./InputRecord.ts"
import { InputError } from "./InputRecord.ts"

/** Whether the text is meant as a query. */
export const isQuery = (text: string): boolean => /^\s*(?:select|with)\s/i.test(text)

const rowsPerFetch = 1000

const inputErrorOf = (error: DatabaseError): DatabaseError | InputError =>
  error.isRetryable
    ? error
    : new InputError({
        message: `the query failed: ${error.message}${error.code === undefined ? "" : ` (${error.code})`}`,
        remedy: "correct the query: it must be one statement that only reads; try it with tributary query first"
      })

/** Declares the cursor. A statement with a name is prepared, and only one statement can be prepared. */
const declare = (client: Client, statement: string) => {
  const text = statement.trim().replace(/;\s*$/, "")
  return Effect.tryPromise({
    try: () =>
      client.query({
        name: "given",
        text: `declare given no scroll cursor for select row_to_json(q)::text as record from (${text}\n) q`
      }),
    catch: DatabaseError.from("read the records to push")
  })
}

/** Reads the rows in order; the line of a record is the number of its row. */
export const read = (statement: string): Stream.Stream<InputRecord, InputError | DatabaseError, Database> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const client = yield* Reader.connect
      yield* query(client, "begin to read", "rollback")
      yield* ReaderMark.begin(client, "begin to read", yield* ReaderMark.make)
      yield* Effect.mapError(declare(client, statement), inputErrorOf)
      yield* KeylessTables.refuse(client, (yield* Reader.ReaderOptions).datasets)
      return Stream.paginate(0, (row) =>
        Effect.andThen(
          Reader.limitTime(client),
          query<{ record: string }>(client, "read", `fetch ${rowsPerFetch} from given`)
        ).pipe(
          Effect.map(
            (rows) =>
              [
                rows.map(({ record }, index): InputRecord => ({
                  _tag: "Json",
                  line: row + index + 1,
                  json: record,
                  nullIsAbsent: true
                })),
                rows.length < rowsPerFetch ? Option.none() : Option.some(row + rows.length)
              ] as const
          ),
          Effect.mapError(inputErrorOf)
        )
      )
    })
  )
