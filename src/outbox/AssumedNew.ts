/**
 * Creates whose records the source is assumed not to have.
 *
 * Promise: a create is assumed new for the time of a session, by a scan that began after it was remembered here, or for
 * ten minutes after a lookup. A create whose externalid the warehouse or its quarantine may hold is not assumed new.
 */
import type { Table } from "../warehouse/Table.ts"
import * as Effect from "effect/Effect"
import { planForAll } from "../land/MergeSql.ts"
import { foldExternalidSql, keySql } from "./Externalid.ts"
import * as Statement from "../postgres/Statement.ts"
import { type OutboxRow, type OutboxScope, rowColumns, rowsOf, type RunSql, selectedColumns } from "./OutboxRow.ts"
import { pending, scopeParams } from "./OutboxStore.ts"

/** How long a lookup proves that the source does not have a record. */
const absentFor = "interval '10 minutes'"

/** Creates that a scan of this session proves to be new. */
const assumedNewTable = "pg_temp.push_absent"

/** Creates the session's table, empty. */
export const prepareSql = `create temp table if not exists push_absent (id bigint primary key, externalid text); truncate ${assumedNewTable}`

/** Whether a create is assumed new. */
export const isAssumedNew = `(coalesce(o.absence_confirmed_at >= tributary.now() - ${absentFor}, false)
              or (select true from ${assumedNewTable} a where a.id = o.id) is true)`

const isUnknown = `${pending} and o.operation = 'create' and o.validated and o.id <= $5
   and (o.absence_confirmed_at is null or o.absence_confirmed_at < tributary.now() - ${absentFor})
   and not exists (select 1 from ${assumedNewTable} a where a.id = o.id)`

export const unknownStatement = Statement.make({
  name: "find new rows of",
  params: [...scopeParams, "int8", "int8"],
  columns: rowColumns,
  text: `select ${selectedColumns} from tributary.outbox o where ${isUnknown} order by o.id limit $6`
})

/** Assumes the unknown creates to be new, before the scan that must prove it: it does not show later creates. */
export const assumeStatement = Statement.make({
  name: "assume new the rows of",
  params: [...scopeParams, "int8"],
  text: `insert into ${assumedNewTable} (id, externalid) select o.id, o.externalid from tributary.outbox o where ${isUnknown}`
})

export const clearStatement = Statement.make({ name: "forget the new rows of", text: `truncate ${assumedNewTable}` })

/** Drops the assumptions that no scan has proved. */
export const clearAssumedNew = (run: RunSql) => rowsOf(run, clearStatement, [])

const possibleDuplicatesSql = (table: Table) => `
  with found as (
    select a.id from ${assumedNewTable} a join ${table.current} t
        on ${foldExternalidSql(`t.${keySql(table)}`)} = ${foldExternalidSql("a.externalid")} and t."_company_id" = $4 and t."_deleted_at" is null
    union
    select a.id from tributary.quarantine q join ${assumedNewTable} a on position(a.externalid in q.bytes) > 0
     where q.company_id = $4 and q.resource = $2 and q.resolved_at is null
  ), duplicate as (
    delete from ${assumedNewTable} a using found f where a.id = f.id
  )
  select ${selectedColumns} from tributary.outbox o join found f on f.id = o.id
   where o.company = $1 and o.state = 'pending' order by o.id`

/** Removes creates whose record may be in the warehouse or in quarantine from those assumed new, and returns them. */
export const possibleDuplicates = Effect.fnUntraced(function* (
  run: RunSql,
  { company, resource, push }: OutboxScope,
  table: Table,
  companyId: bigint
) {
  yield* run("analyze the new rows of", `analyze ${assumedNewTable}; ${planForAll}`)
  const values = [company, resource, push, companyId]
  return (yield* run<OutboxRow>("compare with the warehouse the new rows of", possibleDuplicatesSql(table), values))
    .rows
})

/** A record with another spelling of an externalid. */
export interface OtherSpelling {
  readonly id: string
  readonly externalid: string
}

const otherSpellingsSql = (table: Table) => `
  select a.externalid, min(t."id")::text as id, min(t.${keySql(table)}) as other
    from unnest($2::text[]) a (externalid)
    join ${table.current} t on ${foldExternalidSql(`t.${keySql(table)}`)} = ${foldExternalidSql("a.externalid")}
   where t."_company_id" = $1 and t."_deleted_at" is null
   group by 1 having bool_and(t.${keySql(table)} <> a.externalid)`

/** Records that the warehouse holds under other spellings of these externalids only, by the given externalid. */
export const otherSpellings = (run: RunSql, table: Table, companyId: bigint, externalids: ReadonlyArray<string>) =>
  Effect.map(
    run<{ externalid: string; id: string; other: string }>("find other spellings in", otherSpellingsSql(table), [
      companyId,
      externalids
    ]),
    ({ rows }): ReadonlyMap<string, OtherSpelling> =>
      new Map(rows.map(({ externalid, id, other }) => [externalid, { id, externalid: other }]))
  )
