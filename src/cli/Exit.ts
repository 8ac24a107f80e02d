/**
 * Exit codes, one meaning each: 0 ok, 1 usage, 2 configuration, 3 the source refused, 4 finished with quarantine or
 * unequal, 5 gave up on a fault.
 */
import * as Data from "effect/Data"
import * as Runtime from "effect/Runtime"
import type { Failure } from "../sync/Outcome.ts"
import type { SyncReport } from "../sync/Sync.ts"

export const exitCode = { ok: 0, usage: 1, configuration: 2, refused: 3, incomplete: 4, fault: 5 } as const

export type ExitCode = (typeof exitCode)[keyof typeof exitCode]

/** A command that ends with another code than 0; its message has been or will be shown on standard error. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly code: ExitCode
  /** Empty when everything has been said. */
  readonly message: string
}> {
  override get [Runtime.errorExitCode](): number {
    return this.code
  }
}

/** What failures mean for the exit code: the one that a person has to act on first; null when there is none. */
export const codeOfFailures = (
  failures: ReadonlyArray<Pick<Failure, "refused" | "isConfiguration">>
): ExitCode | null => {
  if (failures.some(({ isConfiguration }) => isConfiguration === true)) return exitCode.configuration
  if (failures.some(({ refused }) => refused)) return exitCode.refused
  return failures.length > 0 ? exitCode.fault : null
}

/** What a sync's report means for the exit code. */
export const codeOf = (report: SyncReport): ExitCode => {
  const failures = report.companies.flatMap((company) => [
    ...(company.failure === null ? [] : [company.failure]),
    // A resource that nobody asked for by name and that the token may not read is no failure of the sync.
    ...company.outcomes.flatMap(({ status, failure }) => (failure === null || status === "skipped" ? [] : [failure]))
  ])
  const failed = codeOfFailures(failures)
  if (failed !== null) return failed
  const incomplete = report.companies.some((company) =>
    company.outcomes.some((outcome) => outcome.status === "quarantined")
  )
  return incomplete ? exitCode.incomplete : exitCode.ok
}
