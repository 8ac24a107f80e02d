/**
 * The `tributary` program: its commands, and the run of one command line.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import { CommandFailed, exitCode, exitCodes } from "./Exit.ts"
import { CommandLine, type CommandName, commandLineOf } from "./Invocation.ts"
import * as Output from "./Output.ts"
import { Version } from "./Version.ts"

/** A command that is loaded only when it is requested; the help lists its description without loading it. */
const lazy = <Name extends string, Input, ContextInput, E, R>(
  description: string,
  load: () => Promise<{ readonly command: Command.Command<Name, Input, ContextInput, E, R> }>
) => ({
  description,
  load: async () => (await load()).command.pipe(Command.withDescription(description))
})

/** The commands in the order of the help. */
const commands = {
  demo: lazy("Run everything end to end on this machine: no account, nothing to install", () => import("./demo.ts")),
  init: lazy(
    "Prompt for the service, its token and the warehouse, check them, and write the configuration",
    () => import("./init.ts")
  ),
  doctor: lazy(
    "Check everything that sync and serve need, each problem with its remedy; exit code 2: configuration or database, " +
      "3: refused by the source, 5: unreachable",
    () => import("./doctor.ts")
  ),
  radar: lazy(
    "Compare an installation with the documentation by reading only, and recommend settings; exit code 4: differences, " +
      "3: refused by the source, 5: unreachable",
    () => import("./radar.ts")
  ),
  plan: lazy("Estimate the requests and minutes of a sync or a backfill at the rate budget", () => import("./plan.ts")),
  sync: lazy(
    "Bring the warehouse up to date: read the changes of every resource since the last sync",
    () => import("./sync.ts")
  ),
  backfill: lazy(
    "Read a past range, or everything, again beside live syncing; resumable, safe to repeat",
    () => import("./backfill.ts")
  ),
  status: lazy("Show the content of the warehouse, its freshness, and the last errors", () => import("./status.ts")),
  verify: lazy(
    "Compare the warehouse with the source, row by row and value by value; exit code 0: equal, 4: unequal",
    () => import("./verify.ts")
  ),
  explain: lazy(
    "Show every version of a record, with the run and the request or event that it came from",
    () => import("./explain.ts")
  ),
  forget: lazy(
    "Remove the values of one record from its earlier versions and from what else is kept of it; keys stay",
    () => import("./forget.ts")
  ),
  budget: lazy("Show the rate budget of each company, and the end of its pause", () => import("./budget.ts")),
  alerts: lazy(
    "Show the conditions of alerts and their messages, silence them, and test a route",
    () => import("./alerts.ts")
  ),
  company: lazy(
    "Add, list, pause, resume, move and remove companies of the warehouse; running processes apply it within seconds",
    () => import("./company.ts")
  ),
  installation: lazy(
    "Add, list, show, change and remove installations of the service, each with its own readings, limits and way there",
    () => import("./installation.ts")
  ),
  processes: lazy("Show the live processes of serve, and the companies that each owns", () => import("./processes.ts")),
  query: lazy(
    "Query the warehouse in SQL (the datasets are erp, erp_history and tributary)",
    () => import("./query.ts")
  ),
  psql: lazy("Open psql on the warehouse, as a login that may only read", () => import("./psql.ts")),
  postgres: lazy(
    "Keep the embedded Postgres running for other programs, stop it, and show its state",
    () => import("./postgres.ts")
  ),
  mcp: lazy(
    "Answer an assistant's questions about the warehouse over the Model Context Protocol; it never writes",
    () => import("./mcp.ts")
  ),
  changes: lazy(
    "Print every change of every record as lines of JSON, and send changes to endpoints",
    () => import("./changes.ts")
  ),
  export: lazy(
    "Write the tables of the warehouse to files, as of one moment: Parquet, CSV or NDJSON",
    () => import("./export.ts")
  ),
  close: lazy(
    "Close a month: a signed file and a PDF of what was verified, with counts, sums and digests; and what changed it since",
    () => import("./close.ts")
  ),
  schema: lazy(
    "Plan and apply the warehouse's tables, columns and views; print rights and dbt sources",
    () => import("./schema.ts")
  ),
  serve: lazy(
    "Sync by schedule, receive webhook deliveries, push, and serve the dashboard, until stopped",
    () => import("./serve.ts")
  ),
  webhooks: lazy(
    "Show and change the webhook subscriptions at the source, and replay events",
    () => import("./webhooks.ts")
  ),
  push: lazy(
    "Write records to the source, each at most once, also when the command is interrupted or repeated",
    () => import("./push.ts")
  ),
  "reference-server": lazy(
    "Serve the API on loopback for tests and demos; prints one JSON line when it is ready",
    () => import("./referenceServer.ts")
  ),
  completions: lazy(
    "Print the script by which a shell completes commands, flags, resources and companies",
    () => import("./completions.ts")
  )
} satisfies Readonly<Record<CommandName, unknown>>

type Name = keyof typeof commands

const isName = (word: string | undefined): word is Name => word !== undefined && Object.hasOwn(commands, word)

/** Flags that need every command, at any place of the line. */
const asksAboutAll = /^--(?:completions|wizard)\b/

/** Flags that need only the list of the commands. */
const asksForLittle = /^(?:--help|-h)$/

/** The command at the start of the line; else all commands, to suggest one for a misspelt name. */
const namesFor = (args: ReadonlyArray<string>): ReadonlyArray<Name> => {
  const first = args[0]
  return isName(first) && !args.some((word) => asksAboutAll.test(word))
    ? [first]
    : (Object.keys(commands) as Array<Name>)
}

/** The program with the commands that the line needs; all commands for an empty line. */
export const rootFor = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const root = Command.make("tributary").pipe(Command.withDescription("Keeps a Postgres warehouse equal to an ERP"))
  if (args.length === 1 && asksForLittle.test(args[0]!)) {
    const listed = Object.entries(commands).map(([name, { description }]) =>
      Command.make(name).pipe(Command.withDescription(description))
    )
    return root.pipe(Command.withSubcommands(listed))
  }
  const loaded = yield* Effect.promise(() => Promise.all(namesFor(args).map((name) => commands[name].load())))
  return root.pipe(Command.withSubcommands(loaded))
})

/** The section of the program's help that has the meaning of each exit code. */
const exitCodeHelp = [
  "",
  "EXIT CODES",
  ...exitCodes.map(({ code, meaning }) => `  ${String(code).padEnd(3)}  ${meaning}`)
]

/**
 * Runs a command line. Requested help goes to standard output. A usage error, and the failure of a command, is a sentence on
 * standard error and an exit code.
 */
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
      Effect.provideService(CommandLine, commandLineOf(args)),
      Effect.result
    )
    const help =
      result._tag === "Failure" && CliError.isCliError(result.failure) && result.failure._tag === "ShowHelp"
        ? result.failure
        : null
    const mistakes = help?.errors ?? []
    // Forty lines of help would hide the one that tells the mistake.
    if (mistakes.length === 0) for (const text of printed) yield* Output.print(text)
    if (args.every((word) => word === "--help" || word === "-h")) {
      for (const line of exitCodeHelp) yield* Output.print(line)
    }
    for (const mistake of mistakes) {
      yield* Output.note(
        `tributary: ${mistake.message
          .trim()
          .replaceAll(/\n\s*/g, " ")
          .replace(/Expected: Schema validation failed: (?:Expected )?/, "Expected ")}`,
        "Error"
      )
    }
    if (help !== null && mistakes.length > 0) {
      yield* Output.note(`  see ${help.commandPath.join(" ")} --help`, "Error")
    }
    if (result._tag === "Success") return
    const error = result.failure
    if (!CliError.isCliError(error)) {
      const { commandFailed } = yield* Effect.promise(() => import("./Command.ts"))
      const failed = commandFailed(error)
      if (failed.message !== "") yield* Output.note(`tributary: ${failed.message}`, "Error")
      return yield* failed
    }
    if (error._tag === "ShowHelp" && mistakes.length === 0) return
    return yield* new CommandFailed({ code: exitCode.usage, message: "" })
  })
