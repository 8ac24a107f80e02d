/**
 * The records of a company as the source sends them, from one snapshot of the warehouse.
 *
 * Promise: all records are of the same moment. A record that the source no longer has is left out. Decimals and times are as
 * the source sends them; memory does not grow with the records.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { type Client, query } from "../postgres/driver/Connection.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Reader from "./Reader.ts"
import * as ReaderMark from "./ReaderMark.ts"
import * as ReaderQuery from "./ReaderQuery.ts"
import { recordJson, type Table } from "./Table.ts"

const recordsPerFetch = 1000

/** Opens the snapshot of now, or as of a moment, as the reader. It ends with the scope. */
export const open = Effect.fnUntraced(function* (at?: ReaderQuery.AsOf) {
  const client = yield* Reader.connect
  const send = (text: string) => query(client, "begin to read records", text)
  yield* send("rollback; set statement_timeout = 0; set jit = off")
  yield* ReaderMark.begin(client, "begin to read records", yield* ReaderMark.make)
  yield* ReaderQuery.setUp(client, at)
  return client
})

/** The JSON text of each record. One stream of a snapshot is read at a time. */
export const read = (
  client: Client,
  table: Table,
  companyId: bigint,
  at?: ReaderQuery.AsOf
): Stream.Stream<string, DatabaseError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const relation = at === undefined ? table.current : table.asOf
      yield* query(
        client,
        "read records",
        `declare records no scroll cursor for select (${recordJson(table, "r")})::text as record
           from ${relation} r where r."_company_id" = ${companyId} and r."_deleted_at" is null`
      )
      const fetch = query<{ readonly record: string }>(client, "read records", `fetch ${recordsPerFetch} from records`)
      return Stream.paginate(undefined, () =>
        Effect.gen(function* () {
          const rows = yield* fetch
          const isLast = rows.length < recordsPerFetch
          if (isLast) yield* query(client, "read records", "close records")
          return [rows.map(({ record }) => record), isLast ? Option.none() : Option.some(undefined)] as const
        })
      )
    })
  )
