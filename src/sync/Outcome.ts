/**
 * The outcome of a run: status, totals and failure, for people and programs.
 *
 * Promise: the status is `done` only when every record of the scan was landed. Anything less has its own status and a
 * remedy.
 */
import type { SourceDisposition, SourceError, SourceReason } from "../connector/SourceError.ts"
import type { SourceClockRegressed } from "../extract/Scan.ts"
import { type LandingResult, type MassDeleteBlocked, nothingLanded } from "../land/Landing.ts"
import type { LandingError } from "../land/LandingError.ts"
import type { AcquireError } from "../land/ResourceLock.ts"
import type { Lane, RunKind } from "../land/Checkpoint.ts"
import * as Remedy from "../postgres/Remedy.ts"

/** The consequence of a failure for later runs. */
export type Disposition =
  | SourceDisposition
  /** Another run has the resource, or its table or a clock has just changed: a later run succeeds without a repair. */
  | "contended"
  /** The source is older than what was read from it: the next run reads every record. */
  | "regressed"
  /** The warehouse failed. */
  | "warehouse"
  /** A fault of the program. */
  | "defect"

/** The kind of a failure: the tag of an error, or a finding before a request was sent. */
export type FailureKind =
  | SourceReason["_tag"]
  | Exclude<SourceClockRegressed | LandingError | AcquireError, SourceError>["_tag"]
  | "AnotherToken"
  | "CompanyUnknown"
  | "FailsEveryWrite"
  | "PartOfResource"
  | "PushesPaused"
  | "NotInScope"
  | "NotLicensed"
  | "Stuck"

/** Why a run failed, and what to do next. */
export interface Failure {
  readonly kind: FailureKind
  readonly message: string
  readonly remedy: string
  readonly disposition: Disposition
  /** Whether other resources of the company must stop as well. */
  readonly stops: "resource" | "company"
  /** Requests that were sent without a page to land. */
  readonly requests?: number
}

export interface RunTotals extends Omit<LandingResult, "massDeleteBlocked" | "drift"> {
  readonly pages: number
  readonly requests: number
  readonly bytes: number
}

const { drift: _drift, massDeleteBlocked: _blocked, ...nothing } = nothingLanded

export const noTotals: RunTotals = { pages: 0, requests: 0, bytes: 0, ...nothing }

/** The totals of both. */
export const sum = (one: RunTotals, other: RunTotals): RunTotals => {
  const totals: Record<keyof RunTotals, number> = { ...noTotals }
  for (const name of Object.keys(noTotals) as ReadonlyArray<keyof RunTotals>)
    totals[name] = name === "lateMs" ? Math.max(one[name], other[name]) : one[name] + other[name]
  return totals
}

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

/** The failure of a run, with its remedy. */
export const failureOf = (error: SourceError | SourceClockRegressed | LandingError | AcquireError): Failure => {
  if (error._tag === "SourceError") {
    const { message, reason, remedy, request } = error
    return {
      kind: reason._tag,
      message,
      remedy,
      disposition: error.disposition,
      stops: error.stops === "company" ? "company" : "resource",
      requests: request.attempts ?? 0
    }
  }
  const failure = (disposition: Disposition, remedy: string): Failure => ({
    kind: error._tag,
    message: error.message,
    remedy,
    disposition,
    stops: "resource"
  })
  switch (error._tag) {
    case "NewerCatalogue":
      return failure(
        "configuration",
        `upgrade this program; to go back to the older catalogue on purpose, run tributary sync ${error.resource} --full`
      )
    case "TableDamaged":
    case "RulesChanged":
      return failure("configuration", error.remedy)
    case "TableReplaced":
      return failure("contended", "run again: the next run reads every record")
    case "WarehouseClockStepped":
      return failure(
        "contended",
        "run again: the next run goes on from the cursor, or reads every record where the clock was set back"
      )
    case "TableChanged":
      return failure("contended", "run again: the next run knows the new columns")
    case "FenceLost":
    case "AlreadyRunning":
      return failure("contended", "nothing is lost: the other run continues")
    case "SourceClockRegressed":
      return failure(
        "regressed",
        "the next run reads every record; if the source was restored, run tributary sync --accept-restored"
      )
    case "DatabaseError": {
      const remedy = Remedy.remedyOf(error) ?? Remedy.readLog
      return Remedy.isDamage(error)
        ? failure("configuration", remedy)
        : failure("warehouse", `${remedy}; no part of the page was written, and the next run goes on before it`)
    }
  }
}
