/**
 * The `tributary` program: its commands, and the run of one command line.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import { CommandFailed, exitCode, exitCodes } from "./Exit.ts"
import { type CommandName, descriptions } from "./Descriptions.ts"
import { CommandLine, commandLineOf } from "./Invocation.ts"
import * as Output from "./Output.ts"
import { Version } from "./Version.ts"

/** A command that is loaded only when it is requested. */
const lazy =
  <Name extends string, Input, ContextInput, E, R>(
    name: CommandName,
    load: () => Promise<{ readonly command: Command.Command<Name, Input, ContextInput, E, R> }>
  ) =>
  async () =>
    (await load()).command.pipe(Command.withDescription(descriptions[name]))

/** The commands, in the order of their descriptions. */
const commands = {
  demo: lazy("demo", () => import("./demo.ts")),
  init: lazy("init", () => import("./init.ts")),
  doctor: lazy("doctor", () => import("./doctor.ts")),
  radar: lazy("radar", () => import("./radar.ts")),
  plan: lazy("plan", () => import("./plan.ts")),
  sync: lazy("sync", () => import("./sync.ts")),
  backfill: lazy("backfill", () => import("./backfill.ts")),
  status: lazy("status", () => import("./status.ts")),
  verify: lazy("verify", () => import("./verify.ts")),
  explain: lazy("explain", () => import("./explain.ts")),
  forget: lazy("forget", () => import("./forget.ts")),
  budget: lazy("budget", () => import("./budget.ts")),
  alerts: lazy("alerts", () => import("./alerts.ts")),
  company: lazy("company", () => import("./company.ts")),
  installation: lazy("installation", () => import("./installation.ts")),
  processes: lazy("processes", () => import("./processes.ts")),
  query: lazy("query", () => import("./query.ts")),
  psql: lazy("psql", () => import("./psql.ts")),
  postgres: lazy("postgres", () => import("./postgres.ts")),
  mcp: lazy("mcp", () => import("./mcp.ts")),
  changes: lazy("changes", () => import("./changes.ts")),
  export: lazy("export", () => import("./export.ts")),
  close: lazy("close", () => import("./close.ts")),
  schema: lazy("schema", () => import("./schema.ts")),
  serve: lazy("serve", () => import("./serve.ts")),
  webhooks: lazy("webhooks", () => import("./webhooks.ts")),
  push: lazy("push", () => import("./push.ts")),
  "reference-server": lazy("reference-server", () => import("./referenceServer.ts")),
  completions: lazy("completions", () => import("./completions.ts"))
} satisfies Readonly<Record<CommandName, unknown>>

const isName = (word: string | undefined): word is CommandName => word !== undefined && Object.hasOwn(commands, word)

/** Flags that need every command, at any place of the line. */
const asksAboutAll = /^--(?:completions|wizard)\b/

/** Flags that need only the list of the commands. */
const asksForLittle = /^(?:--help|-h)$/

/** The command at the start of the line; else all commands, to suggest one for a misspelt name. */
const namesFor = (args: ReadonlyArray<string>): ReadonlyArray<CommandName> => {
  const first = args[0]
  return isName(first) && !args.some((word) => asksAboutAll.test(word))
    ? [first]
    : (Object.keys(commands) as Array<CommandName>)
}

/** The program with the commands that the line needs; all commands for an empty line. */
export const rootFor = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const root = Command.make("tributary").pipe(Command.withDescription("Keeps a Postgres warehouse equal to an ERP"))
  if (args.length === 1 && asksForLittle.test(args[0]!)) {
    const listed = Object.entries(descriptions).map(([name, description]) =>
      Command.make(name).pipe(Command.withDescription(description))
    )
    return root.pipe(Command.withSubcommands(listed))
  }
  const loaded = yield* Effect.promise(() => Promise.all(namesFor(args).map((name) => commands[name]())))
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
