/**
 * The `tributary` program: its commands, and what its exit code and output streams promise.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as backfill from "./backfill.ts"
import * as demo from "./demo.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as explain from "./explain.ts"
import * as Output from "./Output.ts"
import * as plan from "./plan.ts"
import * as query from "./query.ts"
import * as referenceServer from "./referenceServer.ts"
import * as schema from "./schema.ts"
import * as status from "./status.ts"
import * as sync from "./sync.ts"
import * as verify from "./verify.ts"

const root = Command.make("tributary").pipe(
  Command.withDescription("Keeps a Postgres warehouse equal to an ERP"),
  Command.withSubcommands([
    demo.command,
    plan.command,
    sync.command,
    backfill.command,
    status.command,
    verify.command,
    explain.command,
    query.command,
    schema.command,
    referenceServer.command
  ])
)

/** Runs a command line. Help goes to standard output; the help that comes with a mistake goes to standard error. */
export const run = (version: string, args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const printed: Array<string> = []
    const console = yield* Console.Console
    const keep = (...parts: ReadonlyArray<unknown>) => {
      printed.push(parts.map(String).join(" "))
    }
    const result = yield* Command.runWith(root, { version, renderErrors: false })(args).pipe(
      Effect.provideService(
        Console.Console,
        Object.assign(Object.create(console) as Console.Console, { log: keep, error: keep })
      ),
      Effect.result
    )
    const mistakes =
      result._tag === "Failure" && CliError.isCliError(result.failure) && result.failure._tag === "ShowHelp"
        ? result.failure.errors
        : []
    for (const text of printed) yield* mistakes.length > 0 ? Output.note(text) : Output.print(text)
    for (const mistake of mistakes) yield* Output.note(`tributary: ${mistake.message}`)
    if (result._tag === "Success") return
    const error = result.failure
    if (!CliError.isCliError(error)) return yield* error
    if (error._tag === "ShowHelp" && mistakes.length === 0) return
    return yield* new CommandFailed({ code: exitCode.usage, message: "" })
  })
