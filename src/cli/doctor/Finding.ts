/**
 * The finding of a check: a state, and the remedy where it is not good.
 *
 * Promise: every warning and failure has a remedy. A check that times out or breaks is a finding and hides no other.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import { damageRemedy, DatabaseError } from "../../postgres/DatabaseError.ts"
import { type ExitCode, exitCode, exitCodeOfKind, type FailureKind } from "../Exit.ts"
import * as Output from "../Output.ts"

export interface Finding {
  readonly check: string
  /** A company or an address; null for the whole installation. */
  readonly subject: string | null
  readonly status: "ok" | "warning" | "failed" | "skipped"
  readonly message: string
  /** Null where no action is needed. */
  readonly remedy: string | null
  /** Null unless it failed. */
  readonly kind: FailureKind | null
}

export type Findings = ReadonlyArray<Finding>

/** Findings of one check about one subject. */
export interface About {
  readonly ok: (message: string) => Finding
  readonly warning: (message: string, remedy: string) => Finding
  readonly failed: (kind: FailureKind, message: string, remedy: string) => Finding
  /** `message` is the reason. */
  readonly skipped: (message: string) => Finding
}

export const about = (check: string, subject: string | null = null): About => ({
  ok: (message) => ({ check, subject, status: "ok", message, remedy: null, kind: null }),
  warning: (message, remedy) => ({ check, subject, status: "warning", message, remedy, kind: null }),
  failed: (kind, message, remedy) => ({ check, subject, status: "failed", message, remedy, kind }),
  skipped: (message) => ({ check, subject, status: "skipped", message, remedy: null, kind: null })
})

/** A number with the words for one or for many. */
export const counted = (number: number, one: string, many: string): string =>
  `${Output.count(number)} ${number === 1 ? one : many}`

/** The time limit of one check. */
export const checkTimeout = Duration.seconds(10)

/** The result of a check within its time limit. `broken` makes a result of the finding that the check failed. */
export const within = <A, R>(
  { failed }: About,
  check: Effect.Effect<A, never, R>,
  broken: (finding: Finding) => A,
  timeout = checkTimeout
): Effect.Effect<A, never, R> =>
  check.pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () =>
        Effect.sync(() =>
          broken(
            failed(
              "unreachable",
              `no answer within ${Duration.toSeconds(timeout)} s`,
              "find out why it does not answer, then run this again"
            )
          )
        )
    }),
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterruptsOnly(cause),
      (cause) =>
        Effect.sync(() =>
          broken(
            failed(
              "unreachable",
              `the check itself failed: ${Cause.prettyErrors(cause)[0]?.message ?? "unknown"}`,
              "please report this"
            )
          )
        )
    )
  )

/** {@link within} for a check whose result is findings. */
export const bounded = <R>(
  subject: About,
  check: Effect.Effect<Findings, never, R>,
  timeout = checkTimeout
): Effect.Effect<Findings, never, R> => within(subject, check, (finding) => [finding], timeout)

/** A {@link bounded} check of the warehouse, whose errors are findings too. */
export const boundedQuery = <E extends { readonly message: string }, R>(
  subject: About,
  check: Effect.Effect<Findings, E, R>
): Effect.Effect<Findings, never, R> =>
  bounded(
    subject,
    check.pipe(
      Effect.catch((error) => {
        const database = isSqlError(error) ? DatabaseError.from("ask")(error) : null
        const damaged = database === null ? null : damageRemedy(database)
        return Effect.succeed([
          subject.failed(
            damaged === null ? "unreachable" : "configuration",
            (database ?? error).message,
            damaged ?? "read the log of the database server, then run this again"
          )
        ])
      })
    )
  )

const kinds = Object.keys(exitCodeOfKind) as ReadonlyArray<FailureKind>

/** The code of the failure to resolve first; 0 when nothing failed. */
export const codeOf = (findings: Findings): ExitCode => {
  const first = kinds.find((kind) => findings.some((finding) => finding.kind === kind))
  return first === undefined ? exitCode.ok : exitCodeOfKind[first]
}

const marks = { ok: "ok", warning: "WARNING", failed: "FAILED", skipped: "skipped" } as const

/** A line for each finding and one for each remedy, then the counts. */
export const lines = (findings: Findings): ReadonlyArray<string> => {
  const checkWidth = Math.max(0, ...findings.map(({ check }) => check.length))
  const indent = " ".repeat(marks.warning.length + 2 + checkWidth + 2)
  const numberOf = (status: Finding["status"]) => findings.filter((finding) => finding.status === status).length
  const counts = (["ok", "warning", "failed", "skipped"] as const)
    .map((status) => [numberOf(status), status] as const)
    .filter(([number]) => number > 0)
    .map(([number, status]) => `${number} ${status === "warning" && number > 1 ? "warnings" : status}`)
  return [
    ...findings.flatMap(({ check, subject, status, message, remedy }) => [
      `${marks[status].padEnd(marks.warning.length)}  ${check.padEnd(checkWidth)}  ${subject === null ? "" : `${subject}: `}${message}`,
      ...(remedy === null ? [] : [`${indent}-> ${remedy}`])
    ]),
    "",
    `${findings.length} checks: ${counts.join(", ")}`
  ]
}
