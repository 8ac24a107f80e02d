/**
 * Records that could not be landed, with reason and bytes.
 *
 * Promise: a record leaves quarantine when it lands, when it is deleted, or when a completed full scan did not return it.
 */
import * as Effect from "effect/Effect"
import type { Rejected, SourceRecord } from "../connector/Connector.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Table } from "../warehouse/Table.ts"
import type { OpenScan } from "./Checkpoint.ts"
import { isBefore } from "./MergeSql.ts"
import type { SessionContext } from "./SessionContext.ts"
import { instantText } from "./WarehouseClock.ts"

/** A rejected record and the request that brought it. */
export interface RejectedRecord {
  readonly rejected: Rejected
  readonly source: string
}

/**
 * Whether a full scan did not return a quarantined record. A time in the future was written before the warehouse's clock
 * was set back. No time is compared where the run of the scan wrote the entry: the clock may go back by less than a
 * minute while the run reads. Parameters: scan began ($3), run ($4).
 */
const isUnmet = `(run_id <> $4 and ${isBefore("last_seen_at", "$3::timestamptz")})`

export const quarantineStatement = Statement.make({
  name: "quarantine a record of",
  params: ["int8", "text", "text?", "text?", "text", "text", "int8", "text"],
  text: `insert into tributary.quarantine as q
         (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, tributary.now(), tributary.now())
       on conflict (company_id, resource, coalesce(record_id, ''), md5(bytes)) where resolved_at is null
       do update set last_seen_at = excluded.last_seen_at, times = q.times + 1, run_id = excluded.run_id,
                     reason = excluded.reason, field = excluded.field, source = excluded.source`
})

export const quarantine = Effect.fnUntraced(function* (
  { lock, runId, state }: SessionContext,
  records: ReadonlyArray<RejectedRecord>
) {
  if (records.length === 0) return
  state.hasQuarantine = true
  const { companyId, resource, runStatement } = lock
  for (const { rejected, source } of records) {
    const { id, field, reason, bytes } = rejected
    yield* runStatement(quarantineStatement, [companyId, resource, id, field, reason, bytes, runId, source])
  }
})

export const releaseStatement = Statement.make({
  name: "release quarantine of",
  params: ["int8", "text", "text[]"],
  text: `update tributary.quarantine set resolved_at = tributary.now()
          where company_id = $1 and resource = $2 and resolved_at is null and record_id = any($3::text[])`
})

/** Releases records that were landed or deleted. */
export const release = ({ lock, state }: SessionContext, ids: ReadonlyArray<string>) =>
  state.hasQuarantine && ids.length > 0
    ? lock.runStatement(releaseStatement, [lock.companyId, lock.resource, ids])
    : Effect.void

export const releaseUnmetStatement = Statement.make({
  name: "release absent records from the quarantine of",
  params: ["int8", "text", "timestamptz", "int8"],
  text: `update tributary.quarantine set resolved_at = tributary.now()
          where company_id = $1 and resource = $2 and resolved_at is null and ${isUnmet}`
})

const scanValues = ({ lock, runId }: SessionContext, scan: OpenScan) =>
  [lock.companyId, lock.resource, instantText(scan.beganAt), runId] as const

/** Releases records that a completed full scan did not return. */
export const releaseUnmet = (session: SessionContext, scan: OpenScan) =>
  session.state.hasQuarantine
    ? session.lock.runStatement(releaseUnmetStatement, scanValues(session, scan))
    : Effect.void

export const unreadableStatement = Statement.make({
  name: "look for unreadable records of",
  params: ["int8", "text", "timestamptz", "int8"],
  columns: { id: "int8" },
  text: `select id from tributary.quarantine where company_id = $1 and resource = $2
         and resolved_at is null and record_id is null and not ${isUnmet} limit 1`
})

/** Whether the scan returned a record whose number could not be read. */
export const metUnreadable = (session: SessionContext, scan: OpenScan) =>
  Effect.map(session.lock.runStatement(unreadableStatement, scanValues(session, scan)), ({ rows }) => rows.length > 0)

/** A record that fits the catalogue but that Postgres rejects, kept field by field as it was read. */
export const rejectedByPostgres = (table: Table, record: SourceRecord, error: DatabaseError): Rejected => ({
  id: record.id,
  field: null,
  reason: `Postgres refuses it (${error.code ?? "no code"}): ${error.message}`,
  bytes: JSON.stringify(
    Object.fromEntries([
      ...table.columns.flatMap((column, index) => {
        const value = record.columns[index]
        return value === undefined ? [] : [[column.field, value]]
      }),
      ...(record.customFields === null ? [] : [["custom_fields", record.customFields]]),
      ...(record.extra === null ? [] : [["_extra", record.extra]])
    ])
  )
})
