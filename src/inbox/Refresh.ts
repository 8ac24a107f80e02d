/**
 * One immediate run of the live lane, which reads what changed in a whole resource.
 *
 * Promise: a complete refresh began after its request, so it lands everything that the source showed by then. It follows
 * the rules of every sync. It never fails: the outcome says how it went.
 */
import type * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Table } from "../warehouse/Table.ts"
import type { Outcome } from "../sync/Outcome.ts"
import { syncResource } from "../sync/SyncResource.ts"
import type { Database } from "../postgres/Database.ts"
import type { Company } from "../sync/Company.ts"
import { childrenOf } from "../warehouse/Table.ts"

export interface RefreshOptions {
  readonly company: Company
  readonly companyId: bigint
  /** From {@link Company.tables}, read shortly before. */
  readonly tables: ReadonlyMap<string, Table>
  readonly table: Table
  /**
   * `changes`: from the cursor on, or every record of a resource without a cursor.
   * `children`: the children of changed parents, or every record before the first full scan.
   * `everything`: every record, so that missing ones are soft-deleted.
   */
  readonly reads: "changes" | "children" | "everything"
  /** Whether it waits for a moment for another run of the resource, which may be about to end; default true. */
  readonly waits?: boolean
}

/** An interval that never ends. */
const never = Number.MAX_SAFE_INTEGER

/**
 * Whether a refresh has read everything that was requested. Records that cannot be landed are in quarantine. A full scan
 * that the mass-delete guard has blocked is not complete.
 */
export const isComplete = ({ status, massDeleteBlocked }: Outcome): boolean =>
  (status === "done" || status === "quarantined") && massDeleteBlocked === null

/** Reads what changed in a resource now, with the priority of the fiber. */
export const refresh = (options: RefreshOptions): Effect.Effect<Outcome, never, Database | SqlClient.SqlClient> => {
  const { company, companyId, tables, table, reads } = options
  return syncResource({
    companyId,
    connector: company.connector,
    table,
    full: reads === "everything",
    acceptDeletions: false,
    batchRecordsMax: company.batchRecordsMax,
    // Only scheduled runs decide that a full scan is due.
    engine: { ...company.engine, fullScanEveryMs: null, cursorlessScanEveryMs: reads === "children" ? never : 0 },
    children: childrenOf(tables, table.resource.path),
    waitForHolder: options.waits ?? true
  })
}
