/** The report on one resource of one company, as `tributary verify` prints it. */
import type { SourceDisposition, SourceError } from "../connector/SourceError.ts"
import type { FieldDifference } from "./Compare.ts"

/** A record that is not the same on both sides, after the second comparison. */
export interface Mismatch {
  readonly id: string
  readonly kind: "missing" | "surplus" | "different"
  /** The source's version is newer than the last sync, or a refetch request names it: the next sync reads it. */
  readonly notYetSynced: boolean
  /** The warehouse has the record, as a tombstone. */
  readonly isDeleted: boolean
  /** Why it could not be landed, when it is in quarantine. */
  readonly quarantined: string | null
  readonly fields: ReadonlyArray<FieldDifference>
}

export interface RepairReport {
  readonly asked: number
  readonly mended: number
  /** What still differs. */
  readonly left: number
  /** Why the records could not be read again; null when they were. */
  readonly failure: string | null
}

export interface SampleReport {
  readonly seed: number
  /** Rows drawn from the warehouse, tombstones among them. */
  readonly rows: number
  /** Requested numbers that have no row in the warehouse. */
  readonly gaps: number
  /** Records of the source that were compared. */
  readonly records: number
  /** The probability that this sample finds a fault that one of a hundred rows has. */
  readonly chance: number
}

export interface VerifyFailure {
  readonly message: string
  readonly remedy: string
  readonly disposition: SourceDisposition
}

export interface ResourceReport {
  readonly companyId: bigint
  readonly resource: string
  /** `waiting`: all differences are not yet synced. `failed`: could not be compared to the end. */
  readonly status: "equal" | "waiting" | "unequal" | "failed" | "skipped"
  /** Null when everything was compared. */
  readonly sample: SampleReport | null
  /** Different records at the source; in a sample those that were compared. */
  readonly source: number
  /** Rows in the warehouse that are not deleted. */
  readonly warehouse: number
  /** Records of the resource in quarantine. */
  readonly quarantined: number
  readonly missing: number
  readonly surplus: number
  readonly different: number
  /** How many of the three are not yet synced. */
  readonly notYetSynced: number
  /** Records of the source without a number that a row could have. */
  readonly unreadable: number
  /** Records that the source showed more than once. */
  readonly repeated: number
  /** Differences that the second comparison did not find again: the source or the warehouse had changed. */
  readonly moved: number
  readonly requests: number
  readonly findings: ReadonlyArray<Mismatch>
  /** Differences beyond those in `findings`; they were compared once only. */
  readonly more: number
  readonly repair: RepairReport | null
  readonly remarks: ReadonlyArray<string>
  readonly failure: VerifyFailure | null
}

export const failureOf = (error: SourceError): VerifyFailure => ({
  message: error.message,
  remedy: error.remedy,
  disposition: error.disposition
})
