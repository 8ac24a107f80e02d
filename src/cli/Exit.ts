/** Exit codes, one meaning each, and the failure of a command. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import * as Struct from "effect/Struct"
import type { SourceError } from "../connector/SourceError.ts"
import type { Failure } from "../sync/Outcome.ts"
import type { SyncReport } from "../sync/Sync.ts"

export const exitCode = {
  ok: 0,
  usage: 1,
  configuration: 2,
  refused: 3,
  incomplete: 4,
  fault: 5,
  interrupted: 130
} as const

export type ExitCode = (typeof exitCode)[keyof typeof exitCode]

const texts: Readonly<Record<keyof typeof exitCode, { readonly meaning: string; readonly remedy: string }>> = {
  ok: { meaning: "The command did everything that was requested.", remedy: "Nothing." },
  usage: {
    meaning: "The command line has a mistake, or names something that does not exist.",
    remedy: "Correct the command line; --help lists the flags."
  },
  configuration: {
    meaning: "The configuration, an input file, the database or a table must be changed first.",
    remedy: "Follow the message; tributary doctor checks everything."
  },
  refused: {
    meaning: "The source refused the token, or the token lacks a scope or module.",
    remedy: "Replace the token, or grant the rights at the source."
  },
  incomplete: {
    meaning: "The command finished with records in quarantine, rejected records, or differences.",
    remedy: "Follow the message: it lists them, or has the query that does."
  },
  fault: {
    meaning: "The command gave up on a fault of the network, the source, the database server or the program.",
    remedy: "Run the same command again; it continues."
  },
  interrupted: {
    meaning:
      "A signal stopped the command; serve and reference-server end with 0 then. A second SIGTERM ends any command with 143.",
    remedy: "Run the same command again; it continues."
  }
}

/** The table of exit codes, for the help and the documents. */
export const exitCodes: ReadonlyArray<{
  readonly code: ExitCode
  readonly name: string
  readonly meaning: string
  readonly remedy: string
}> = Struct.keys(exitCode).map((name) => ({ code: exitCode[name], name, ...texts[name] }))

/** The failure of a command, with its exit code. Its message is shown on standard error. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly code: ExitCode
  /** Empty when the command has printed everything. */
  readonly message: string
}> {
  override get [Runtime.errorExitCode](): number {
    return this.code
  }
}

export const usageError = (message: string) => new CommandFailed({ code: exitCode.usage, message })

/** Ends a command that has printed everything. */
export const endWith = (code: ExitCode): Effect.Effect<void, CommandFailed> =>
  code === exitCode.ok ? Effect.void : Effect.fail(new CommandFailed({ code, message: "" }))

/** Failures by their remedy: change the configuration, grant rights at the source, or wait and check the network. */
export type FailureKind = "configuration" | "refused" | "unreachable"

/** In the order in which a person resolves them. */
export const exitCodeOfKind: Readonly<Record<FailureKind, ExitCode>> = {
  configuration: exitCode.configuration,
  refused: exitCode.refused,
  unreachable: exitCode.fault
}

export const failureKindOf = ({ reason }: SourceError): FailureKind => {
  switch (reason._tag) {
    case "Unauthorized":
    case "Forbidden":
      return "refused"
    case "NotFound":
    case "NotImplemented":
    case "Malformed":
    case "Redirected":
    case "SourceChanged":
    case "Refused":
      return "configuration"
    default:
      return "unreachable"
  }
}

export const exitCodeOfSource = (error: SourceError): ExitCode => exitCodeOfKind[failureKindOf(error)]

/** The exit code of the failures that a person resolves first; null when there is none. */
export const codeOfFailures = (failures: ReadonlyArray<Pick<Failure, "disposition">>): ExitCode | null => {
  if (failures.some(({ disposition }) => disposition === "configuration")) return exitCode.configuration
  if (failures.some(({ disposition }) => disposition === "refused" || disposition === "blocked"))
    return exitCode.refused
  return failures.length > 0 ? exitCode.fault : null
}

/** The exit code of a sync. */
export const codeOf = (report: SyncReport): ExitCode => {
  const failures = report.companies.flatMap((company) => [
    ...(company.failure === null ? [] : [company.failure]),
    // A resource that was not named and that the token may not read is no failure of the sync.
    ...company.outcomes.flatMap(({ status, failure }) => (failure === null || status === "skipped" ? [] : [failure]))
  ])
  const failed = codeOfFailures(failures)
  if (failed !== null) return failed
  const incomplete = report.companies.some((company) =>
    company.outcomes.some((outcome) => outcome.status === "quarantined")
  )
  return incomplete ? exitCode.incomplete : exitCode.ok
}
