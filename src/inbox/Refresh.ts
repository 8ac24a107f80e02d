/**
 * Reading what changed in a whole resource now: one run of the live lane.
 *
 * Promise: a refresh that ends well began after it was asked for, so that it shows everything that the source showed by
 * then; what it reads and how it lands follows the rules of every sync. It never fails: how it went is in the outcome.
 */
import type * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Table } from "../warehouse/Table.ts"
import type { Outcome } from "../sync/Outcome.ts"
import { syncResource } from "../sync/SyncResource.ts"
import type { Database } from "../postgres/Database.ts"
import { childrenOf, type Company } from "../sync/Company.ts"

export interface RefreshOptions {
  readonly company: Company
  readonly companyId: bigint
  /** From {@link Company.tables}, read just now. */
  readonly tables: ReadonlyMap<string, Table>
  readonly table: Table
  /**
   * `changes`: from the cursor on, or every record of a resource that has none. `children`: the records of the parents
   * that changed, for a resource without a cursor; every record where it was never read in full. `everything`: every
   * record, so that what is gone shows.
   */
  readonly reads: "changes" | "children" | "everything"
  /** Whether it waits for a moment for somebody else's run of the resource that may just be ending; default true. */
  readonly waits?: boolean
}

/** A full scan so long ago that it is never too long. */
const never = Number.MAX_SAFE_INTEGER

/**
 * Whether a refresh has read all that it was to read; what it could not load of it is in quarantine. A full scan whose
 * deletions are not believed has not.
 */
export const isComplete = ({ status, disbelieved }: Outcome): boolean =>
  (status === "done" || status === "quarantined") && disbelieved === null

/** Reads what changed in a resource now. The fiber's priority says how urgent that is. */
export const refresh = (options: RefreshOptions): Effect.Effect<Outcome, never, Database | SqlClient.SqlClient> => {
  const { company, companyId, tables, table, reads } = options
  return syncResource({
    companyId,
    connector: company.connector,
    table,
    full: reads === "everything",
    acceptDeletions: false,
    batchRecordsMax: company.batchRecordsMax,
    // That it is time to read everything again is for scheduled runs to find out.
    engine: { ...company.engine, fullEveryMs: null, sweepEveryMs: reads === "children" ? never : 0 },
    children: childrenOf(tables, table.resource.path),
    waits: options.waits ?? true
  })
}
