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
  budget: () => import("./budget.ts"),
  query: () => import("./query.ts"),
  schema: () => import("./schema.ts"),
  serve: () => import("./serve.ts"),
  webhooks: () => import("./webhooks.ts"),
  push: () => import("./push.ts"),
  "reference-server": () => import("./referenceServer.ts"),
  completions: () => import("./completions.ts")
}

type Name = keyof typeof commands

/** What the help of the program says of each, as each says of itself: to list them, none needs to be loaded. */
const descriptions: Readonly<Record<Name, string>> = {
  demo: "See it work end to end on this machine: no account, nothing to install",
  init: "Ask for the service, its token and the warehouse, try them, and write the configuration",
  doctor:
    "Check everything that a sync and serve need, each with its remedy; code 2 is for the configuration or the database, " +
    "3 for what the source refuses, 5 for what cannot be reached",
  plan: "Say beforehand how many requests and minutes a sync or a backfill takes at the budget",
  sync: "Bring the warehouse up to date: what changed since the last sync, of every resource",
  backfill: "Read a past range, or everything, again beside live syncing; resumable, safe to repeat",
  status: "Show the content of the warehouse, its freshness, and the last errors",
  verify: "Compare the warehouse with the source, row by row and value by value; code 0 is equal, 4 is unequal",
  explain: "Tell every version of a record, with the run and the request or event that brought it",
  budget: "Show how many requests each company may make, and until when an answer paused them",
  query: "Ask the warehouse in SQL (the datasets are erp, erp_history and tributary)",
  schema: "Plan and apply the warehouse's tables, columns and views; print rights and dbt sources",
  serve: "Sync by schedule, receive webhook deliveries, push, and show a page about it, until stopped",
  webhooks: "Show and change the webhook subscriptions at the source, and replay events",
  push: "Write records to the source: each at most once, whatever is interrupted or repeated",
  "reference-server": "Serve the API on loopback for tests and demos; prints one JSON line when it is ready",
  completions: "Print what a shell needs to complete commands, flags, resources and companies"
}

const isName = (word: string | undefined): word is Name => word !== undefined && Object.hasOwn(commands, word)

/** What answers about every command, wherever it stands on the line. */
const asksAboutAll = /^--(?:completions|wizard)\b/

/** What answers about the program alone: its version, or the list of its commands. */
const asksForLittle = /^(?:--version|-v|--help|-h)$/

/** The command that the line begins with; else all, as a misspelt name needs them. */
const namesFor = (args: ReadonlyArray<string>): ReadonlyArray<Name> => {
  const first = args[0]
  return isName(first) && !args.some((word) => asksAboutAll.test(word))
    ? [first]
    : (Object.keys(commands) as Array<Name>)
}

/** The program with the commands that the line may mean; without a line, with all of them. */
export const rootFor = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const root = Command.make("tributary").pipe(Command.withDescription("Keeps a Postgres warehouse equal to an ERP"))
  if (args.length === 1 && asksForLittle.test(args[0]!)) {
    const listed = Object.entries(descriptions).map(([name, description]) =>
      Command.make(name).pipe(Command.withDescription(description))
    )
    return root.pipe(Command.withSubcommands(listed))
  }
  const loaded = yield* Effect.promise(() => Promise.all(namesFor(args).map((name) => commands[name]())))
  return root.pipe(Command.withSubcommands(loaded.map(({ command }) => command)))
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
