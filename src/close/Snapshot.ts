/**
 * A session that sees the warehouse as it is after one change of the change feed, and after no later one.
 *
 * Promise: the current rows of the company in this session are those of the views as of that position. The session has
 * everything that was committed before it was opened, also where the reader is a replica ({@link ReaderMark.begin}).
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import { type Client, query, queryNamed } from "../postgres/driver/Connection.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import * as Reader from "../warehouse/Reader.ts"
import * as ReaderMark from "../warehouse/ReaderMark.ts"

export interface Snapshot {
  readonly client: Client
  readonly position: ChangeFeed.Position
  readonly at: Date
  readonly installation: string
}

export const snapshotStatement = Statement.make({
  name: "read the time and the order of the snapshot",
  params: ["int8"],
  columns: { at: "timestamptz", installation: "text", isOrdered: "bool" },
  text: `select tributary.now() as at, (select identity from tributary.warehouse) as installation,
                not exists (select from tributary.change_batches where last_position is null and company_id = $1) as "isOrdered"`
})

/** A change may land between the order of the feed and the snapshot. */
const attemptsMax = 50

const busy = new DatabaseError({
  operation: "begin to close",
  code: undefined,
  message: "changes of the company land all the time; try again",
  isRetryable: true
})

/** Opens it, as the reader. It ends with the scope. */
export const open = Effect.fnUntraced(function* (
  companyId: bigint
): Effect.fn.Return<Snapshot, DatabaseError, Database | SqlClient | Scope.Scope> {
  const client = yield* Reader.connect
  const send = (text: string) => query(client, "begin to close", text)
  yield* send("rollback")
  // The expressions are long, and run once. Their time is that of the hashes, which workers share.
  yield* send(
    "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set jit = off; set work_mem = '32MB'; " +
      "set parallel_setup_cost = 0; set parallel_tuple_cost = 0"
  )
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    yield* ChangeFeed.order
    yield* ReaderMark.begin(client, "begin to close", yield* ReaderMark.make)
    const [found] = yield* queryNamed(client, snapshotStatement, [companyId])
    const [end] = yield* queryNamed(client, ChangeFeed.endStatement)
    const { at, installation, isOrdered } = found!
    if (isOrdered) return { client, position: end!, at, installation }
    yield* send("rollback")
  }
  return yield* busy
})

export const relationsStatement = Statement.make({
  name: "list the relations of datasets",
  params: ["text[]"],
  columns: { name: "text" },
  text: `select n.nspname || '.' || c.relname as name
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = any($1::text[]) and c.relkind in ('r', 'p', 'v')`
})

/** The relations that exist, as `dataset.name`. */
export const relationsOf = (client: Client, datasets: ReadonlyArray<string>) =>
  Effect.map(queryNamed(client, relationsStatement, [datasets]), (rows) => new Set(rows.map(({ name }) => name)))
