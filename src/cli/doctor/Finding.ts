/**
 * The finding of a check: a state, and the remedy where it is not good.
 *
 * Promise: every warning and failure has a remedy. A check that times out or breaks is a finding and hides no other.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Database } from "../../postgres/Database.ts"
import { DatabaseError } from "../../postgres/DatabaseError.ts"
import * as Remedy from "../../postgres/Remedy.ts"
import { type ExitCode, exitCode, exitCodeOfKind, type FailureKind } from "../Exit.ts"
import * as Output from "../Output.ts"

export interface Finding {
  readonly check: string
  /** A company or an address; null for the whole warehouse. */
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

/** The time limit of one check. */
export const checkTimeout = Duration.seconds(10)

/** The findings of a check, and the value that further checks need; null where it is not known. */
export interface Checked<A> {
  readonly findings: Findings
  readonly value: A | null
}

/** The finding for an error of the warehouse. */
const failedBy = ({ failed }: About, error: { readonly message: string }): Finding => {
  const database = error instanceof DatabaseError ? error : null
  const remedy = database === null ? null : Remedy.remedyOf(database)
  const isSetting = database !== null && remedy !== null && !database.isRetryable && !Remedy.isServerFault(database)
  return failed(isSetting ? "configuration" : "unreachable", (database ?? error).message, remedy ?? Remedy.readLog)
}

/** The result of a check within its time limit. A check that fails, breaks or times out has a finding and no value. */
export const within = <A, E extends { readonly message: string }, R>(
  subject: About,
  run: Effect.Effect<Checked<A>, E, R>,
  timeout = checkTimeout
): Effect.Effect<Checked<A>, never, R> => {
  const unknown = (finding: Finding): Checked<A> => ({ findings: [finding], value: null })
  const late = subject.failed(
    "unreachable",
    `no answer within ${Duration.toSeconds(timeout)} s`,
    "find out why it does not answer, then run this again"
  )
  return run.pipe(
    Effect.catch((error: E) => Effect.succeed(unknown(failedBy(subject, error)))),
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed(unknown(late)) }),
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterruptsOnly(cause),
      (cause) => {
        const message = `the check itself failed: ${Cause.prettyErrors(cause)[0]?.message ?? "unknown"}`
        return Effect.succeed(unknown(subject.failed("unreachable", message, "please report this")))
      }
    )
  )
}

/** One check: {@link within}, for the findings alone. */
export const check = <E extends { readonly message: string }, R>(
  name: string,
  subject: string | null,
  run: (about: About) => Effect.Effect<Findings, E, R>
): Effect.Effect<Findings, never, R> => {
  const its = about(name, subject)
  const checked = Effect.map(run(its), (findings) => ({ findings, value: null }))
  return Effect.map(within(its, checked), ({ findings }) => findings)
}

/** The tables of the warehouse. */
export class Tables extends Context.Service<
  Tables,
  {
    /** Null where they cannot be queried. */
    readonly context: Context.Context<Database | SqlClient.SqlClient> | null
    /** Why they cannot be queried; empty where they can. */
    readonly reason: string
  }
>()("tributary/cli/doctor/Tables") {}

type TableServices = Database | SqlClient.SqlClient

type Run<Input, R> = (its: About, input: Input) => Effect.Effect<Findings, { readonly message: string }, R>

/**
 * A check as data. One with `tables` queries the tables; where that is not possible, it is skipped, or left out of the
 * report.
 */
export type Check<Input, R = never> =
  | { readonly name: string; readonly run: Run<Input, R | Tables> }
  | {
      readonly name: string
      readonly tables: "skipped" | "omitted"
      readonly run: Run<Input, R | Tables | TableServices>
    }

/** Runs checks side by side; their findings stay in this order. */
export const runAll = Effect.fnUntraced(function* <Input, R>(
  checks: ReadonlyArray<Check<Input, R>>,
  subject: string | null,
  input: Input
) {
  const { context, reason } = yield* Tables
  const findings = yield* Effect.forEach(
    checks,
    (one): Effect.Effect<Findings, never, R | Tables> => {
      if (!("tables" in one)) return check(one.name, subject, (its) => one.run(its, input))
      if (context !== null)
        return check(one.name, subject, (its) => Effect.provideContext(one.run(its, input), context))
      return Effect.succeed(one.tables === "omitted" ? [] : [about(one.name, subject).skipped(reason)])
    },
    { concurrency: "unbounded" }
  )
  return findings.flat()
})

/** What the tables answer in time. They may be those of an earlier version, or absent: then `otherwise`. */
export const fromTables = <A>(
  read: Effect.Effect<A, { readonly message: string }, TableServices>,
  otherwise: A
): Effect.Effect<A, never, Tables> =>
  Effect.flatMap(Tables, ({ context }) =>
    context === null
      ? Effect.succeed(otherwise)
      : read.pipe(
          Effect.provideContext(context),
          Effect.timeout(checkTimeout),
          Effect.orElseSucceed(() => otherwise)
        )
  )

const kinds = Object.keys(exitCodeOfKind) as ReadonlyArray<FailureKind>

/** The code of the failure to resolve first; 0 when nothing failed. */
export const codeOf = (findings: Findings): ExitCode => {
  const first = kinds.find((kind) => findings.some((finding) => finding.kind === kind))
  return first === undefined ? exitCode.ok : exitCodeOfKind[first]
}

/** Findings of more companies than this that differ only in the company become one. */
const alikeMax = 3
const namesMax = 5

/**
 * Findings of many companies with the same check, state, message and remedy as one finding, where the first of them
 * stood. Numbers and names of companies may differ; the message is that of the first company.
 */
export const groupAlike = (findings: Findings): Findings => {
  const keyOf = ({ check, subject, status, message }: Finding) =>
    subject === null
      ? `${check} ${status} ${message}`
      : `${check} ${status} of ${message.replaceAll(subject, "*").replaceAll(/\d+/g, "#")}`
  const groups = Map.groupBy(findings, keyOf)
  return findings.flatMap((finding) => {
    const alike = groups.get(keyOf(finding)) ?? []
    const names = [...new Set(alike.flatMap(({ subject }) => subject ?? []))]
    if (names.length <= alikeMax) return [finding]
    return finding === alike[0]
      ? [{ ...finding, subject: `${Output.count(names.length)} companies (${Output.firstOf(names, namesMax)})` }]
      : []
  })
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
