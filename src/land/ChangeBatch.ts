/**
 * What a landing adds to the change feed: the versions that it wrote, in its transaction.
 *
 * Promise: a version is in the feed exactly when it is in the table. The batches of a resource have ids in the order of its
 * landings, because each landing locks the resource before it writes. Positions are given after the commit
 * (`tributary.order_changes`), so that no landing waits for another one. A table that was replaced, or that had records
 * before its first checkpoint, begins again in the feed: `truncate`, then every record.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { literal } from "../warehouse/Identifier.ts"
import type { Table } from "../warehouse/Table.ts"
import type { LandingConnection } from "./LandingConnection.ts"

/** Changes per batch: a reader of one change reads the ids of its batch. */
const batchChangesMax = 10_000

/** Inserts the rows of a relation with the columns `id` and `version`; the expressions are of one of its rows. */
export const insert = (
  table: Table,
  relation: string,
  { company, began }: { readonly company: string; readonly began: string }
): string =>
  `insert into tributary.change_batches (company_id, resource, history, ids, versions, changes, began) ` +
  `select ${company}, ${literal(table.resource.path)}, ${literal(table.view)}, ` +
  `array_agg(id order by id), array_agg(version order by id), count(*), min(began) ` +
  `from (select id, version, ${began} as began, row_number() over () as place from ${relation}) written ` +
  `group by (place - 1) / ${batchChangesMax} order by min(place)`

/**
 * Whether the feed had a version before this statement. `among` selects the ids in question: only their versions are kept
 * in memory. `is true` keeps Postgres from joining the feed with them record by record.
 */
export const had = (
  table: Table,
  version: { readonly company: string; readonly id: string; readonly version: string; readonly among: string }
): string =>
  `(${version.id}, ${version.version}) in (select u.id, coalesce(u.version, 1) from tributary.change_batches b ` +
  `cross join unnest(b.ids, b.versions) u(id, version) where b.company_id = ${version.company} ` +
  `and b.resource = ${literal(table.resource.path)} and (u.id in (${version.among})) is true)`

export const firstLoadStatement = Statement.make({
  name: "add a first load to the change feed of",
  isPrepared: true,
  params: ["int8", "text", "text", "int8[]", "timestamptz"],
  text: `insert into tributary.change_batches (company_id, resource, history, ids, changes, began)
         select $1, $2, $3, $4, cardinality($4::bigint[]), $5`
})

/** Adds first versions. `began` is the text of the begin of the earliest read. */
export const addFirst = (
  { runStatement }: Pick<LandingConnection, "runStatement">,
  table: Table,
  companyId: bigint,
  ids: ReadonlyArray<string>,
  began: string
): Effect.Effect<void, DatabaseError> =>
  Effect.asVoid(runStatement(firstLoadStatement, [companyId, table.resource.path, table.view, ids, began]))

export const beginStatement = Statement.make({
  name: "begin the change feed of",
  params: ["int8", "text", "text", "text", "bool"],
  columns: { begin_feed: "void" },
  text: "select tributary.begin_feed($1, $2, $3, $4::text::regclass, $5)"
})

/**
 * Begins the table in the feed again, with the records that it has now. The caller's transaction has locked the resource
 * and fenced the other lanes off. A table that was not replaced and has no record is left out.
 */
export const beginAgain = (
  { runStatement }: Pick<LandingConnection, "runStatement">,
  table: Table,
  companyId: bigint,
  isReplaced: boolean
): Effect.Effect<void, DatabaseError> =>
  Effect.asVoid(runStatement(beginStatement, [companyId, table.resource.path, table.view, table.current, isReplaced]))
