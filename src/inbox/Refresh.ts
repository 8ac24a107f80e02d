/**
 * One immediate run of the live lane, which reads the changes of a whole resource.
 *
 * Promise: a complete refresh began after its request, so it lands everything that the source showed by then. It follows
 * the rules of every sync. It never fails: the outcome has the failure.
 */
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { WhenHeld } from "../land/ResourceLock.ts"
import type { Table } from "../warehouse/Table.ts"
import type { Outcome } from "../sync/Outcome.ts"
import { syncResource } from "../sync/SyncResource.ts"
import type { Database } from "../postgres/Database.ts"
import type { Company } from "../sync/Company.ts"
import { childrenOf } from "../warehouse/Table.ts"

export interface RefreshOptions {
  readonly company: Omit<Company, "events">
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
  readonly whenHeld: WhenHeld
}

/**
 * Whether a refresh has read everything that was requested. Records that cannot be landed are in quarantine. A full scan
 * that the mass-delete guard has blocked is not complete.
 */
export const isComplete = ({ status, massDeleteBlocked }: Outcome): boolean =>
  (status === "done" || status === "quarantined") && massDeleteBlocked === null

/** Reads the changes of a resource now, with the priority of the fiber. */
export const refresh = (options: RefreshOptions): Effect.Effect<Outcome, never, Database | SqlClient.SqlClient> => {
  const { company, companyId, tables, table, reads, whenHeld } = options
  const { batchRecordsMax, connector } = company
  // Only scheduled runs decide that a full scan is due.
  const engine = {
    ...company.engine,
    fullScanInterval: Duration.infinity,
    cursorlessScanInterval: reads === "children" ? Duration.infinity : Duration.zero
  }
  return syncResource(
    { companyId, connector, table, children: childrenOf(tables, table.resource.path) },
    { mode: { full: reads === "everything" }, batchRecordsMax, engine, whenHeld }
  )
}
