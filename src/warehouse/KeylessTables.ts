/**
 * The check that a statement reads no table that lost its primary key.
 *
 * Promise: the rows of a statement that read such a table are not passed on: its records may be there twice, so that sums
 * and counts would be wrong. The locks of the transaction name the tables, also those behind views and functions.
 */
import * as Effect from "effect/Effect"
import { type Client, queryNamed } from "../postgres/driver/Connection.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { isLocked } from "./PresentRecords.ts"
import type { Datasets } from "./Table.ts"
import { remedy } from "./TableDamage.ts"

/** A table of the catalogue has the column of the company; a table of a person beside it need not have a key. */
export const keylessStatement = Statement.make({
  name: "look for tables without a key that the statement read",
  params: ["text[]"],
  columns: { table: "text?" },
  text: `select min(n.nspname || '.' || c.relname) as table
           from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
          where ${isLocked} and n.nspname = any($1::text[]) and c.relkind = 'r'
            and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = '_company_id' and not a.attisdropped)
            and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and i.indisvalid)`
})

/** Refuses what the transaction has read where a table has no key. */
export const refuse = Effect.fnUntraced(function* (client: Client, { current, history }: Datasets) {
  const [found] = yield* queryNamed(client, keylessStatement, [[current, history]])
  if (found === undefined || found.table === null) return
  return yield* new DatabaseError({
    operation: "query",
    code: undefined,
    message: `${found.table} is damaged: it has no primary key, so that a record may be there twice; ${remedy}`,
    isRetryable: false
  })
})
