/** The input and the result of one landing. */
import type * as Effect from "effect/Effect"
import type { Page } from "../connector/Connector.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { OpenScan } from "./Checkpoint.ts"
import type { RefetchRequest } from "./Refetch.ts"
import type { ResourceLock } from "./ResourceLock.ts"
import { count, plural } from "../text/Count.ts"

/**
 * A page, and the warehouse's time of its content, in milliseconds since 1970. The default is the begin of its read
 * (`page.beganAt`), converted when it lands, since the warehouse's clock may have been corrected after the read.
 */
export interface ObservedPage {
  readonly page: Page
  readonly observedAt?: number
}

/** A record that the source does not have, or that is not kept. */
export interface DeletedRecord {
  readonly id: string
  /** Null where any version of it is meant; else no later one than of this time. */
  readonly changedAt: string | null
  /** As {@link Page.beganAt}. */
  readonly beganAt: number
  readonly source: string
}

/** The input of one landing. */
export interface Landing {
  /** Pages in the order in which they were read. */
  readonly pages: ReadonlyArray<ObservedPage>
  /** The scan after these pages; null when they belong to none (children, single records). */
  readonly scan: OpenScan | null
  /** Whether the last of these pages ends the scan. */
  readonly complete: boolean
  /** Single records that the source does not have. */
  readonly absent?: ReadonlyArray<DeletedRecord>
  /** Refetch requests that these pages fulfil. */
  readonly fulfilled?: ReadonlyArray<RefetchRequest>
  /** Further statements of the same transaction. */
  readonly inTransaction?: (within: InTransaction) => Effect.Effect<unknown, DatabaseError>
}

/** The transaction of a landing, for statements of other folders. */
export interface InTransaction extends Pick<ResourceLock, "run" | "runStatement"> {
  readonly runId: bigint
  /** Numbers of the records of this landing that went to quarantine. */
  readonly quarantined: ReadonlySet<string>
}

/** The mass-delete guard stopped a full scan that missed too many rows; none of them was soft-deleted. */
export interface MassDeleteBlocked {
  readonly live: number
  /** Live rows that the scan did not return. */
  readonly gone: number
}

export const describeBlocked = ({ gone, live }: MassDeleteBlocked): string =>
  `the mass-delete guard stopped the deletion of ${count(gone)} of ${plural(live, "row")}`

/** The result of one landing. */
export interface LandingResult {
  readonly records: number
  readonly inserted: number
  readonly updated: number
  readonly unchanged: number
  readonly deleted: number
  readonly quarantined: number
  /** Rows that an earlier scan should have shown: their own stamp is older than its cursor. */
  readonly late: number
  /** How late the latest of them was, in milliseconds. */
  readonly lateMs: number
  /** Records that the source showed in an older version than the warehouse has. */
  readonly staleVersions: number
  /** New drift, for people; null when there is none. */
  readonly drift: string | null
  readonly massDeleteBlocked: MassDeleteBlocked | null
}

/** Requests and bytes of the answers that pages came in. */
export const transferOf = (pages: Landing["pages"]) => ({
  requests: pages.reduce((sum, { page }) => sum + page.attempts, 0),
  bytes: pages.reduce((sum, { page }) => sum + page.bytes, 0)
})

export const nothingLanded: LandingResult = {
  records: 0,
  inserted: 0,
  updated: 0,
  unchanged: 0,
  deleted: 0,
  quarantined: 0,
  late: 0,
  lateMs: 0,
  staleVersions: 0,
  drift: null,
  massDeleteBlocked: null
}
