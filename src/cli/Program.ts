/**
 * The `tributary` program: its commands, and what its exit code and output streams promise.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import { Version } from "./Version.ts"

/** The commands in the order of the help. A command that is not asked for is not loaded. */
const commands = {
  demo: () => import("./demo.ts"),
  init: () => import("./init.ts"),
  doctor: () => import("./doctor.ts"),
  plan: () => import("./plan.ts"),
  sync: () => import("./sync.ts"),
  backfill: () => import("./backfill.ts"),
  status: () => import("./status.ts"),
  verify: () => import("./verify.ts"),
  explain: () => import("./explain.ts"),
  query: () => import("./query.ts"),
  schema: () => import("./schema.ts"),
  serve: () => import("./serve.ts"),
  webhooks: () => import("./webhooks.ts"),
  push: () => import("./push.ts"),
  "reference-server": () => import("./referenceServer.ts"),
  completions: () => import("./completions.ts")
}

type Name = keyof typeof commands

const isName = (word: string | undefined): word is Name => word !== undefined && Object.hasOwn(commands, word)

/** What answers about every command, wherever it stands on the line. */
const asksAboutAll = /^--(?:completions|wizard)\b/

/** The command that the line begins with, none for the version; else all, as help and a misspelt name need them. */
const namesFor = (args: ReadonlyArray<string>): ReadonlyArray<Name> => {
  const first = args[0]
  if (args.length === 1 && (first === "--version" || first === "-v")) return []
  return isName(first) && !args.some((word) => asksAboutAll.test(word))
    ? [first]
    : (Object.keys(commands) as Array<Name>)
}

/** The program with the commands that the line may mean; without a line, with all of them. */
export const rootFor = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const loaded = yield* Effect.promise(() => Promise.all(namesFor(args).map((name) => commands[name]())))
  return Command.make("tributary").pipe(
    Command.withDescription("Keeps a Postgres warehouse equal to an ERP"),
    Command.withSubcommands(loaded.map(({ command }) => command))
  )
})

/** Runs a command line. Help goes to standard output; the help that comes with a mistake goes to standard error. */
export const run = (version: string, args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const printed: Array<string> = []
    const console = yield* Console.Console
    const keep = (...parts: ReadonlyArray<unknown>) => {
      printed.push(parts.map(String).join(" "))
    }
    const root = yield* rootFor(args)
    const result = yield* Command.runWith(root, { version, renderErrors: false })(args).pipe(
      Effect.provideService(
        Console.Console,
        Object.assign(Object.create(console) as Console.Console, { log: keep, error: keep })
      ),
      Effect.provideService(Version, version),
      Effect.result
    )
    const mistakes =
      result._tag === "Failure" && CliError.isCliError(result.failure) && result.failure._tag === "ShowHelp"
        ? result.failure.errors
        : []
    for (const text of printed) yield* mistakes.length > 0 ? Output.note(text) : Output.print(text)
    for (const mistake of mistakes) yield* Output.note(`tributary: ${mistake.message}`, "Error")
    if (result._tag === "Success") return
    const error = result.failure
    if (!CliError.isCliError(error)) return yield* error
    if (error._tag === "ShowHelp" && mistakes.length === 0) return
    return yield* new CommandFailed({ code: exitCode.usage, message: "" })
  })
