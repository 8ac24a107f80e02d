/**
 * The outcome of a run: status, totals and failure, for people and programs.
 *
 * Promise: the status is `done` only when every record of the scan was landed. Anything less has its own status and a
 * remedy.
 */
import { SourceError } from "../connector/SourceError.ts"
import type { SourceClockRegressed } from "../extract/Scan.ts"
import { NewerCatalogue } from "../land/CheckpointIdentity.ts"
import type { LandingResult, MassDeleteBlocked } from "../land/Landing.ts"
import {
  AlreadyRunning,
  FenceLost,
  type LandingError,
  TableChanged,
  TableReplaced,
  WarehouseClockStepped
} from "../land/LandingError.ts"
import type { AcquireError } from "../land/ResourceLock.ts"
import type { Lane, RunKind } from "../land/Checkpoint.ts"
import { damageRemedy } from "../postgres/DatabaseError.ts"

/** Why a run failed, and what to do next. */
export interface Failure {
  readonly kind: string
  readonly message: string
  readonly remedy: string
  /** Whether other resources of the company must stop as well. */
  readonly stops: "resource" | "company"
  /** Whether the source refused access (token, scope, licence), so that only a person can help. */
  readonly refused: boolean
  /** Whether the cause is the configuration, not the source. */
  readonly isConfiguration?: boolean
  /** Requests that were sent without a page to land. */
  readonly requests?: number
}

export interface RunTotals extends Omit<LandingResult, "massDeleteBlocked" | "drift"> {
  readonly pages: number
  readonly requests: number
  readonly bytes: number
}

export const noTotals: RunTotals = {
  pages: 0,
  requests: 0,
  bytes: 0,
  records: 0,
  inserted: 0,
  updated: 0,
  unchanged: 0,
  deleted: 0,
  quarantined: 0,
  late: 0,
  lateMs: 0,
  staleVersions: 0
}

/** The totals of both. */
export const sum = (one: RunTotals, other: RunTotals): RunTotals => ({
  pages: one.pages + other.pages,
  requests: one.requests + other.requests,
  bytes: one.bytes + other.bytes,
  records: one.records + other.records,
  inserted: one.inserted + other.inserted,
  updated: one.updated + other.updated,
  unchanged: one.unchanged + other.unchanged,
  deleted: one.deleted + other.deleted,
  quarantined: one.quarantined + other.quarantined,
  late: one.late + other.late,
  lateMs: Math.max(one.lateMs, other.lateMs),
  staleVersions: one.staleVersions + other.staleVersions
})

export interface Outcome {
  readonly companyId: bigint
  readonly resource: string
  readonly status: "done" | "quarantined" | "failed" | "skipped"
  readonly lane: Lane
  readonly kind: RunKind | null
  readonly resumed: boolean
  readonly runId: bigint | null
  readonly cursor: string | null
  readonly durationMs: number
  readonly totals: RunTotals
  /** Set when the mass-delete guard stopped a full scan. */
  readonly massDeleteBlocked: MassDeleteBlocked | null
  /** Remarks for a person, also of a run that succeeded. */
  readonly notes: ReadonlyArray<string>
  readonly failure: Failure | null
}

/** The attributes of the run's span. */
export const attributesOf = (outcome: Outcome): Readonly<Record<string, unknown>> => {
  const { companyId, resource, lane, kind, status, runId, totals, failure } = outcome
  return {
    "tributary.company_id": companyId,
    "tributary.resource": resource,
    "tributary.lane": lane,
    "tributary.kind": kind ?? "none",
    "tributary.status": status,
    ...(runId === null ? {} : { "tributary.run_id": runId }),
    "tributary.requests": totals.requests,
    "tributary.records": totals.records,
    "tributary.inserted": totals.inserted,
    "tributary.updated": totals.updated,
    "tributary.unchanged": totals.unchanged,
    "tributary.deleted": totals.deleted,
    "tributary.quarantined": totals.quarantined,
    ...(failure === null ? {} : { "error.type": failure.kind })
  }
}

/** Describes the failure of a run, with its remedy. */
export const failureOf = (error: SourceError | SourceClockRegressed | LandingError | AcquireError): Failure => {
  if (error instanceof SourceError) {
    const tag = error.reason._tag
    return {
      kind: tag,
      message: error.message,
      remedy: error.remedy,
      stops: error.stops === "company" ? "company" : "resource",
      refused: tag === "Unauthorized" || tag === "Forbidden",
      ...(tag === "SourceChanged" ? { isConfiguration: true } : {}),
      requests: error.request.attempts ?? 0
    }
  }
  if (error instanceof NewerCatalogue) {
    return {
      kind: error._tag,
      message: error.message,
      remedy: `upgrade this program; to go back to the older catalogue on purpose, run npx tributary sync ${error.resource} --full`,
      stops: "resource",
      refused: false,
      isConfiguration: true
    }
  }
  if (error instanceof TableReplaced || error instanceof WarehouseClockStepped) {
    return {
      kind: error._tag,
      message: error.message,
      remedy: "run again: the next run reads every record",
      stops: "resource",
      refused: false
    }
  }
  if (error instanceof TableChanged) {
    return {
      kind: error._tag,
      message: error.message,
      remedy: "run again: the next run knows them",
      stops: "resource",
      refused: false
    }
  }
  if (error instanceof FenceLost || error instanceof AlreadyRunning) {
    return {
      kind: error._tag,
      message: error.message,
      remedy: "nothing is lost: the other run carries on",
      stops: "resource",
      refused: false
    }
  }
  if (error._tag === "SourceClockRegressed") {
    return {
      kind: error._tag,
      message: error.message,
      remedy: "the next run reads every record; if the source was restored, run sync --accept-restored",
      stops: "resource",
      refused: false
    }
  }
  const damaged = damageRemedy(error)
  return {
    kind: error._tag,
    message: error.message,
    remedy:
      damaged ??
      (error.isRetryable
        ? "check the database; the next run goes on where this one stopped"
        : "undo what refuses it (a constraint, a trigger, a missing right) and run again; nothing of the page was written"),
    stops: "resource",
    refused: false,
    ...(damaged === null ? {} : { isConfiguration: true })
  }
}
