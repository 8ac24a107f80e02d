/**
 * The result of each record of a write, as the answer states it.
 *
 * Promise: an outcome is known only where the answer states it. An unclear outcome is a {@link WriteUncertain}: the record
 * may have been written or not, and must be looked up, never assumed.
 */
import type { Problem, RefusalKind } from "./SourceError.ts"
import type { Rejected, SourceRecord } from "./SourceRecord.ts"

/** The record was written. */
export interface WriteSucceeded {
  readonly _tag: "WriteSucceeded"
  /** Place of the record in what was sent, from 0. */
  readonly index: number
  /** The record's number; null when the answer does not name it. */
  readonly id: string | null
  /** The written record; null when the answer does not show all of it, or it does not fit the catalogue. */
  readonly record: SourceRecord | null
  readonly rejected: Rejected | null
}

/** The source refused this record. The same record is refused again, unless `isRetryable`. */
export interface WriteRejected {
  readonly _tag: "WriteRejected"
  readonly kind: RefusalKind
  readonly index: number
  readonly status: number | null
  readonly code: string
  readonly field: string | null
  readonly detail: string
  readonly problems: ReadonlyArray<Problem>
  /** It failed for a reason that may pass (429, 5xx, still in progress). */
  readonly isRetryable: boolean
}

/** The answer does not say whether the record was written. */
export interface WriteUncertain {
  readonly _tag: "WriteUncertain"
  readonly index: number
  readonly detail: string
}

export type WriteResult = WriteSucceeded | WriteRejected | WriteUncertain
