/**
 * The comparison of a stored checkpoint with the process that acquires it.
 *
 * Promise: when the rows do not match the cursor, every lane is fenced off, scans in progress are forgotten, and the next
 * live run reads every record. Where rows or versions may be lost, the past is complete only from that read on
 * (`past_from`), unless every version that the change feed tells is still there. Positions at which a version that a
 * restored feed lacks may or may not have been shown are refused (`past_unfed_from`). No two versions of a record are valid at
 * one moment. That is one transaction: a crash leaves either all of it or the same differences.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import type { SourceError } from "../connector/SourceError.ts"
import { type CheckpointRow, checkpointColumns, checkpointColumnTypes, type Lane } from "./Checkpoint.ts"
import * as CheckpointIdentity from "./CheckpointIdentity.ts"
import type { LandingConnection } from "./LandingConnection.ts"
import { lockCheckpointsStatement } from "../warehouse/Altered.ts"
import type { Table } from "../warehouse/Table.ts"
import { clockStepMsMax } from "./WarehouseClock.ts"

type Connection = Pick<LandingConnection, "run" | "runStatement">

export const identityColumns = "table_identity, shape"

/** The columns of the identity that a checkpoint has stored. */
export const identityColumnTypes = { table_identity: "text?", shape: "text?" } as const

export type LiveRow = CheckpointRow & Statement.RowOf<Statement.Statement<[], typeof identityColumnTypes>>

/** A checkpoint whose fence was just raised. */
export interface AcquiredRow extends LiveRow {
  /** The identity of the table as it is now. */
  readonly current: string
  /** Milliseconds by which the warehouse's clock is behind the last landing; negative: ahead. */
  readonly behind_ms: number | null
}

export const readSourceStatement = Statement.make({
  name: "look at the source of",
  params: ["int8"],
  columns: { address: "text?" },
  text: "select address from tributary.companies where company_id = $1"
})

export const storeSourceStatement = Statement.make({
  name: "store the source of",
  params: ["int8", "text"],
  columns: { address: "text?" },
  text: `update tributary.companies set address = coalesce(address, $2), address_since = coalesce(address_since, tributary.now())
      where company_id = $1 returning address`
})

/** Fails for another source than that of the stored rows; the first process that reads a company stores its source. */
export const confirmSource = Effect.fnUntraced(function* (
  { runStatement }: Connection,
  companyId: bigint,
  address: string | null
): Effect.fn.Return<void, DatabaseError | SourceError> {
  if (address === null) return
  const { rows: known } = yield* runStatement(readSourceStatement, [companyId])
  if (known[0]?.address === address) return
  const { rows } = yield* runStatement(storeSourceStatement, [companyId, address])
  const stored = rows[0]?.address ?? address
  if (stored !== address) return yield* CheckpointIdentity.otherAddress(companyId, stored, address)
})

export const replaceSourceStatement = Statement.make({
  name: "replace the source of a company",
  params: ["int8", "text"],
  text: "update tributary.companies set address = $2, address_since = tributary.now() where company_id = $1"
})

export const adoptStatement = Statement.make({
  name: "let checkpoints adopt a source",
  params: ["int8", "text"],
  text: `update tributary.checkpoints set adopts_source = lane = 'live', fence = fence + 1,
      full_scan_reason = case when lane = 'live' then $2 else full_scan_reason end, updated_at = tributary.now()
    where company_id = $1`
})

export const forgetCompanyScansStatement = Statement.make({
  name: "forget the scans of a company",
  params: ["int8"],
  text: "delete from tributary.scans where company_id = $1"
})

/** Stores another source of a company, as a person has confirmed it; the caller's transaction contains all of it. */
export const adoptSource = Effect.fnUntraced(function* (companyId: bigint, address: string) {
  yield* Statement.run(lockCheckpointsStatement, [String(companyId)])
  yield* Statement.run(replaceSourceStatement, [companyId, address])
  yield* Statement.run(adoptStatement, [companyId, `its source is now ${address}`])
  yield* Statement.run(forgetCompanyScansStatement, [companyId])
})

export interface IdentityDifferences {
  /** How the table or its history is another one; null when both are those that were filled. */
  readonly replaced: CheckpointIdentity.TableDifference | null
  /** Every reason to read the resource again, for people. */
  readonly all: ReadonlyArray<string>
}

/** Compares the raised checkpoint, and the live lane's, with the table and the process. */
export const differencesOf = (
  table: Table,
  identity: CheckpointIdentity.Identity,
  own: AcquiredRow,
  live: LiveRow
): IdentityDifferences => {
  const replaced =
    live.table_identity === null
      ? null
      : CheckpointIdentity.tableDifference(table.current, table.superseded, live.table_identity, own.current)
  const all = [
    replaced?.text ?? null,
    own.behind_ms !== null && own.behind_ms > clockStepMsMax
      ? `the warehouse's clock is ${Math.round(own.behind_ms / 1000)} s behind its last landing`
      : null,
    live.shape === null ? null : CheckpointIdentity.shapeDifference(live.shape, identity.shape)
  ].filter((difference) => difference !== null)
  return { replaced, all }
}

export const confirmStatement = Statement.make({
  name: "confirm the identity of",
  params: ["int8", "text", "text", "text", "text", "text?"],
  text: `update tributary.checkpoints set
       fence = fence + case when lane = $3 then 0 else 1 end, table_identity = $4, shape = $5,
       full_scan_reason = case when lane = 'live' then $6 else full_scan_reason end, updated_at = tributary.now()
     where company_id = $1 and resource = $2`
})

export const forgetScansStatement = Statement.make({
  name: "forget the scans of all lanes of",
  params: ["int8", "text"],
  text: "delete from tributary.scans where company_id = $1 and resource = $2"
})

export const readStatement = Statement.make({
  name: "look at the checkpoints of",
  params: ["int8", "text", "text"],
  columns: { lane: Statement.as<Lane>("text"), ...checkpointColumnTypes, ...identityColumnTypes },
  text: `select lane, ${checkpointColumns}, ${identityColumns} from tributary.checkpoints c
      where company_id = $1 and resource = $2 and lane in ('live', $3)`
})

export const hasAllVersionsStatement = Statement.make({
  name: "look for lost versions of",
  params: ["int8", "text", "text", "text"],
  columns: { has_all: "bool" },
  text: "select tributary.has_all_versions($1, $2, $3::text::regclass, $4::text::regclass) as has_all"
})

/**
 * A restored warehouse knows nothing of the time since its last run. Nor does it know at which positions the versions
 * landed that the restored feed lacks.
 */
export const forgetUnknownTimeStatement = Statement.make({
  name: "forget the time before the restore of",
  params: ["int8", "text", "text", "text", "text"],
  text: `update tributary.checkpoints c set past_reason = $3, past_from = greatest(past_from, tributary.now()),
       past_until = case when past_from is not null then past_until else
         (select max(r.started_at) from tributary.runs r where r.company_id = $1 and r.resource = $2 and r.lane = 'live' and r.status = 'done') end,
       past_unfed_from = case when past_batch is null then unfed.began when unfed.began is not null then '-infinity' end
      from tributary.first_unfed($1, $2, $4::text::regclass, $5::text::regclass) as unfed(began)
     where company_id = $1 and resource = $2 and lane = 'live'`
})

export const losePastStatement = Statement.make({
  name: "lose the past of",
  params: ["int8", "text", "text"],
  text: `update tributary.checkpoints set past_from = 'infinity', past_batch = null, past_until = null, past_unfed_from = null,
       past_reason = $3
      where company_id = $1 and resource = $2 and lane = 'live'`
})

export const loseUnreadPastStatement = Statement.make({
  name: "lose the past that no checkpoint tells of",
  params: ["int8", "text", "text", "text"],
  text: `update tributary.checkpoints set past_from = 'infinity', past_reason = 'its rows are older than its checkpoint'
      where company_id = $1 and resource = $2 and lane = 'live' and cursor is null and full_scan_at is null
        and (tributary.has_records($3::text::regclass, $1) or tributary.has_records($4::text::regclass, $1))`
})

/** Rows and versions without a checkpoint, as after the loss of the control plane: no proof of their past is left. */
export const loseUnreadPast = (
  { runStatement }: Pick<Connection, "runStatement">,
  { companyId, resource }: { readonly companyId: bigint; readonly resource: string },
  { current, superseded }: Table
) => Effect.asVoid(runStatement(loseUnreadPastStatement, [companyId, resource, current, superseded]))

/**
 * Stores the new identity in every lane of the resource. Returns the checkpoints of the lane and of the live one, and
 * whether the change feed still tells what the table has.
 */
export const confirmIdentity = Effect.fnUntraced(function* (
  { run, runStatement }: Connection,
  key: { readonly companyId: bigint; readonly resource: string; readonly lane: Lane },
  confirmed: {
    readonly table: Table
    readonly tableIdentity: string
    readonly shape: string
    readonly continueVersionsSql: string
  },
  { all, replaced }: IdentityDifferences
) {
  const { companyId, resource, lane } = key
  const { table, tableIdentity, shape, continueVersionsSql } = confirmed
  yield* runStatement(confirmStatement, [
    companyId,
    resource,
    lane,
    tableIdentity,
    shape,
    all.length === 0 ? null : all.join("; ")
  ])
  yield* runStatement(forgetScansStatement, [companyId, resource])
  let isFed = replaced === null
  if (replaced?.isLoss === true) {
    const { rows } = yield* runStatement(hasAllVersionsStatement, [
      companyId,
      resource,
      table.current,
      table.superseded
    ])
    isFed = rows[0]!.has_all && replaced.isSameControl
    if (!rows[0]!.has_all) yield* runStatement(losePastStatement, [companyId, resource, replaced.text])
    else if (!replaced.isSameControl)
      yield* runStatement(forgetUnknownTimeStatement, [
        companyId,
        resource,
        replaced.text,
        table.current,
        table.superseded
      ])
  }
  if (replaced !== null) yield* run("continue the versions of", continueVersionsSql, [companyId])
  const { rows } = yield* runStatement(readStatement, [companyId, resource, lane])
  return { rows, isFed }
})
