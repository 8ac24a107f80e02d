/** The explanation of a record: its versions and their origin, quarantine entries, refetch requests and checkpoints. */
export interface RunSummary {
  readonly id: bigint
  readonly kind: string
  readonly lane: string
  readonly status: string
  readonly beganAt: string | null
  readonly endedAt: string | null
}

/** A field that a version changed, as JSON text; null where the version has no such field. */
export interface FieldChange {
  readonly field: string
  readonly from: string | null
  readonly to: string | null
}

export interface Version {
  readonly version: bigint
  readonly validFrom: string | null
  readonly validTo: string | null
  readonly op: string
  readonly origin: string
  /** The request or event that brought it. */
  readonly source: string | null
  readonly runId: bigint | null
  /** Null when the run is no longer stored. */
  readonly run: RunSummary | null
  /** Against the version before; empty for the first one. */
  readonly changes: ReadonlyArray<FieldChange>
  /** The record as JSON text, every digit kept. */
  readonly record: string
}

export interface QuarantineEntry {
  readonly field: string | null
  readonly reason: string
  readonly bytes: string
  readonly source: string
  readonly runId: bigint
  readonly times: bigint
  readonly firstSeenAt: string | null
  readonly lastSeenAt: string | null
  /** Null while it is open. */
  readonly resolvedAt: string | null
}

export interface Explanation {
  readonly companyId: bigint
  readonly resource: string
  readonly id: string
  /** `unknown`: there is no version of it. */
  readonly state: "exists" | "deleted" | "unknown"
  /** From the first to the current one. */
  readonly versions: ReadonlyArray<Version>
  readonly quarantine: ReadonlyArray<QuarantineEntry>
  /** Its refetch requests: for the record itself (field id), or for all records that share a value. */
  readonly rereads: ReadonlyArray<{ readonly field: string; readonly value: string; readonly askedAt: string | null }>
  /** The last completed full scan. It confirmed this version if it ended after the version was landed. */
  readonly fullScan: (RunSummary & { readonly confirmed: boolean }) | null
  readonly checkpoints: ReadonlyArray<{
    readonly lane: string
    readonly cursor: string | null
    readonly fullScanAt: string | null
    /** The scan in progress. */
    readonly scan: string | null
    readonly updatedAt: string | null
  }>
}
