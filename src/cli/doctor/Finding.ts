/**
 * What a check found: how things stand, and what to do where they do not stand well.
 *
 * Promise: whatever is wrong has a remedy; a check that takes too long or breaks is a finding itself and hides no other.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { type ExitCode, exitCode } from "../Exit.ts"
import * as Output from "../Output.ts"

/** Who can help: whoever configures, whoever grants rights at the source, or time and the network. */
export type Kind = "configuration" | "refused" | "unreachable"

export interface Finding {
  readonly check: string
  /** The company or address that it is about; null when it is about all of it. */
  readonly subject: string | null
  readonly status: "ok" | "warning" | "failed" | "skipped"
  readonly told: string
  /** Null where there is nothing to do. */
  readonly remedy: string | null
  /** Null unless it failed. */
  readonly kind: Kind | null
}

/** Findings of one check about one subject. */
export interface About {
  readonly ok: (told: string) => Finding
  readonly warning: (told: string, remedy: string) => Finding
  readonly failed: (kind: Kind, told: string, remedy: string) => Finding
  /** `told` says why. */
  readonly skipped: (told: string) => Finding
}

export const about = (check: string, subject: string | null = null): About => ({
  ok: (told) => ({ check, subject, status: "ok", told, remedy: null, kind: null }),
  warning: (told, remedy) => ({ check, subject, status: "warning", told, remedy, kind: null }),
  failed: (kind, told, remedy) => ({ check, subject, status: "failed", told, remedy, kind }),
  skipped: (told) => ({ check, subject, status: "skipped", told, remedy: null, kind: null })
})

/** A number with the words for one or for many. */
export const counted = (number: number, one: string, many: string): string =>
  `${Output.count(number)} ${number === 1 ? one : many}`

/** How long a check may take. */
export const checkMaxMs = 10_000

/** What a check comes to within its time; `broken` makes it of a finding that says why it came to nothing. */
export const within = <A, R>(
  { failed }: About,
  check: Effect.Effect<A, never, R>,
  broken: (finding: Finding) => A,
  maxMs = checkMaxMs
): Effect.Effect<A, never, R> =>
  check.pipe(
    Effect.timeoutOrElse({
      duration: maxMs,
      orElse: () =>
        Effect.sync(() =>
          broken(
            failed(
              "unreachable",
              `no answer within ${maxMs / 1000} s`,
              "see what is slow or silent there, then run this again"
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
              `the check itself broke: ${Cause.prettyErrors(cause)[0]?.message ?? "unknown"}`,
              "please report this"
            )
          )
        )
    )
  )

/** {@link within} of a check that comes to findings alone. */
export const bounded = <R>(
  subject: About,
  check: Effect.Effect<ReadonlyArray<Finding>, never, R>,
  maxMs = checkMaxMs
): Effect.Effect<ReadonlyArray<Finding>, never, R> => within(subject, check, (finding) => [finding], maxMs)

const codes: ReadonlyArray<readonly [Kind, ExitCode]> = [
  ["configuration", exitCode.configuration],
  ["refused", exitCode.refused],
  ["unreachable", exitCode.fault]
]

/** The code of the failure that must be mended first; 0 when nothing failed. */
export const codeOf = (findings: ReadonlyArray<Finding>): ExitCode =>
  codes.find(([kind]) => findings.some((finding) => finding.kind === kind))?.[1] ?? exitCode.ok

const marks = { ok: "ok", warning: "WARNING", failed: "FAILED", skipped: "skipped" } as const

/** A line for each finding and one for each remedy, then the sum. */
export const lines = (findings: ReadonlyArray<Finding>): ReadonlyArray<string> => {
  const checkWidth = Math.max(0, ...findings.map(({ check }) => check.length))
  const indent = " ".repeat(marks.warning.length + 2 + checkWidth + 2)
  const numberOf = (status: Finding["status"]) => findings.filter((finding) => finding.status === status).length
  const counted = (["ok", "warning", "failed", "skipped"] as const)
    .map((status) => [numberOf(status), status] as const)
    .filter(([number]) => number > 0)
    .map(([number, status]) => `${number} ${status === "warning" && number > 1 ? "warnings" : status}`)
  return [
    ...findings.flatMap(({ check, subject, status, told, remedy }) => [
      `${marks[status].padEnd(marks.warning.length)}  ${check.padEnd(checkWidth)}  ${subject === null ? "" : `${subject}: `}${told}`,
      ...(remedy === null ? [] : [`${indent}-> ${remedy}`])
    ]),
    "",
    `${findings.length} checks: ${counted.join(", ")}`
  ]
}
