/** The context that the parts of a write session share: its lock, its run and its memory between landings. */
import type { RunKind } from "./Checkpoint.ts"
import type { ConflictPolicy, MergeSql } from "./MergeSql.ts"
import type { ResourceLock } from "./ResourceLock.ts"

/** The rule that recognizes late rows. */
export interface LateArrival {
  /** The cursor as an instant, in milliseconds since 1970: the position of the last completed scan. */
  readonly cursorMs: number
  /** The overlap of a full scan, which reads everything: only rows beyond it are late. */
  readonly toleratedMs: number
}

/** The run that a session begins. */
export interface NewRun {
  readonly kind: RunKind
  /** Whether it goes on with a scan that an earlier run began; default false. */
  readonly resumed?: boolean
  /** The cursor that it reads from; default null. */
  readonly cursorFrom?: string | null
  /** Null or absent recognises no late rows. */
  readonly lateness?: LateArrival | null
  /** How long after its own stamp a record may become visible, in milliseconds; default 0. */
  readonly overlapMs?: number
}

export interface OpenOptions {
  readonly run: NewRun
  /** Written into `_origin`. */
  readonly origin: "scan" | "webhook" | "push"
  readonly authority: ConflictPolicy
  /** Whether a completed full scan may delete more than {@link OpenOptions.deletionsShareMax} of the rows. */
  readonly acceptDeletions: boolean
  /** From 0 to 1. */
  readonly deletionsShareMax: number
  /** Resources whose records are read again when a row changes here. */
  readonly children: ReadonlyArray<{ readonly resource: string; readonly field: string }>
}

/** The memory of a session between landings. */
export interface SessionState {
  /** Whether a landed record may have an open quarantine. */
  hasQuarantine: boolean
  /** Whether the run reads, from its first page, a table that was empty when it began. */
  isFirstLoad: boolean
  /** Whether the run has read the scan from its first page: only then it has read every record. */
  isWholeScan: boolean
  /** The checkpoint's `full_scan_reason` as last read or written: a reason that was added since stays. */
  knownFullScanReason: string | null
  /** Set when a landing of this run read older versions than the warehouse has. */
  staleReason: string | null
}

export interface SessionContext {
  readonly lock: ResourceLock
  readonly sql: MergeSql
  readonly options: OpenOptions
  readonly runId: bigint
  /** Whether the mass-delete guard is off. */
  readonly acceptsDeletions: boolean
  /** Whether no scan of the live lane was ever completed. */
  readonly wasNeverLoaded: boolean
  /** The newest refetch request when the scan began: a completed full scan fulfils the requests up to it. */
  readonly refetchGeneration: bigint
  readonly state: SessionState
}
