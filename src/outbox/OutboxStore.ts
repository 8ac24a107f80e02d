/**
 * The open rows of the outbox.
 *
 * Promise: every statement here runs in a transaction under the fence. Rows of one record are selected in the order of
 * their numbers: a later one is not selected before the earlier ones are resolved.
 */
import type { Table } from "../warehouse/Table.ts"
import { keySql } from "./Externalid.ts"
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { type OutboxRow, type OutboxScope, rowColumns, rowsOf, type RunSql, selectedColumns } from "./OutboxRow.ts"

/** The condition of the indexes on open rows. */
export const isOpen = (row: string) => `${row}.state in ('pending', 'in_flight')`

/** Pending rows of a scope and its blockers: {@link scopeParams}. */
export const pending = `o.company = $1 and o.resource = $2 and ${isOpen("o")} and o.state = 'pending'
   and (o.push_id is not distinct from $3::bigint or o.id = any($4::bigint[]))`

export const scopeParams = ["text", "text", "int8?", "int8[]"] as const
export const parametersOf = ({ company, resource, push, blockers }: OutboxScope) =>
  [company, resource, push, blockers] as const

/** Open rows of the same record with a lower number, one condition for each index. */
const earlier = [
  "e.operation <> 'create' and e.externalid = o.externalid",
  "e.operation = 'create' and o.operation <> 'create' and e.externalid = o.externalid",
  "e.record_id is not null and e.record_id = o.record_id"
].map((same) => `${isOpen("e")} and e.company = o.company and e.resource = o.resource and e.id < o.id and ${same}`)

/** The earlier row of the same record; null when there is none. A subquery for each index, since a join uses none. */
export const blocker = `coalesce(${earlier
  .map((same) => `(select e.id from tributary.outbox e where ${same} order by e.id limit 1)`)
  .join(", ")})`

/**
 * Planner settings of the session. Postgres has no statistics of a table that was just filled, and expects few pending
 * rows. All statements look rows up by their keys, except where all of them are compared.
 */
export const plannerSql =
  "set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_material = off; set jit = off"

/** The state of a row that is looked up by its number, and by no other index. */
export const stateIs = (state: string) => `o.state || '' = ${state}`

/** The highest number of the pending rows; null when there is none. */
export const lastPendingStatement = Statement.make({
  name: "find the last pending row of",
  params: scopeParams,
  columns: { last: "int8?" },
  text: `select max(o.id) as last from tributary.outbox o where ${pending}`
})

/** Open rows that must be sent before pending rows of the scope. */
export const blockersStatement = Statement.make({
  name: "find the blockers of",
  params: scopeParams,
  columns: { id: "int8" },
  text: `select distinct b.id from (select ${blocker} as id from tributary.outbox o where ${pending}) b
          where b.id is not null limit 1000`
})

/** The updates and cancels after `$5` up to `$6`. */
export const changesStatement = Statement.make({
  name: "select changes of",
  params: [...scopeParams, "int8", "int8", "int8"],
  columns: rowColumns,
  text: `select ${selectedColumns} from tributary.outbox o
   where ${pending} and o.operation <> 'create' and o.validated and o.id > $5 and o.id <= $6 and ${blocker} is null
   order by o.id limit $7`
})

const recordIdsSql = (table: Table) => `
  select ${keySql(table)} as externalid, array_agg("id"::text order by "id") as ids from ${table.current}
   where "_company_id" = $1 and ${keySql(table)} = any($2::text[]) and "_deleted_at" is null group by 1`

/** The numbers of the records that the warehouse holds with these externalids. */
export const recordIdsOf = (run: RunSql, table: Table, companyId: bigint, externalids: ReadonlyArray<string>) =>
  Effect.map(
    run<{ externalid: string; ids: ReadonlyArray<string> }>("find the records of", recordIdsSql(table), [
      companyId,
      externalids
    ]),
    ({ rows }): ReadonlyMap<string, ReadonlyArray<string>> =>
      new Map(rows.map(({ externalid, ids }) => [externalid, ids]))
  )

export const saveRecordIdsStatement = Statement.make({
  name: "save the record numbers of",
  params: ["int8[]", "text[]"],
  text: `update tributary.outbox o set record_id = v.record_id
    from unnest($1::bigint[], $2::text[]) as v(id, record_id) where o.id = v.id and o.state = 'pending'`
})

/** Saves the record numbers of pending changes. */
export const saveRecordIds = (run: RunSql, rows: ReadonlyArray<OutboxRow>) =>
  rowsOf(run, saveRecordIdsStatement, [rows.map(({ id }) => id), rows.map(({ recordId }) => recordId)])

/** Locks the row if it is still pending, unchanged and not blocked. */
export const lockPendingStatement = Statement.make({
  name: "lock a row of",
  params: ["int8", "text"],
  columns: { id: "int8" },
  text: `select o.id from tributary.outbox o
   where o.id = $1 and o.state = 'pending' and o.validated and o.record::text = $2 and ${blocker} is null
     for update of o`
})

export const rowsOfRequestStatement = Statement.make({
  name: "read the rows of a request of",
  params: ["text", "text", "int8?", "int8"],
  columns: rowColumns,
  text: `select ${selectedColumns} from tributary.outbox o
   where o.company = $1 and o.resource = $2 and o.request_id = $4 and o.state = 'in_flight' order by o.request_index`
})

/** Marks pushes without open rows as finished. */
export const finishPushesStatement = Statement.make({
  name: "finish the pushes of",
  params: ["text", "text"],
  // Two subqueries, so that each is a lookup in the index on push and state.
  text: `update tributary.pushes p set finished_at = tributary.now()
   where p.company = $1 and p.resource = $2 and p.finished_at is null
     and not exists (select 1 from tributary.outbox o where o.push_id = p.id and o.state = 'pending')
     and not exists (select 1 from tributary.outbox o where o.push_id = p.id and o.state = 'in_flight')`
})
