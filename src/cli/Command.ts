/**
 * The parts that all commands share: common flags, the configuration, and failures. A failure becomes one sentence on
 * standard error and an exit code.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as StoredCompanies from "../companies/StoredCompanies.ts"
import * as Configuration from "../configuration/Configuration.ts"
import type { ConfigurationError } from "../configuration/ConfigurationError.ts"
import type { FileProblem } from "../files/ReadFile.ts"
import type { RulesChanged } from "../warehouse/RulesChanged.ts"
import type { TableDamaged } from "../warehouse/TableDamage.ts"
import type { TableConflict } from "../warehouse/TablePlan.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Remedy from "../postgres/Remedy.ts"
import { CommandFailed, endWith, type ExitCode, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import type { ReferenceFailed } from "../connector/Demo.ts"
import { describe, exists, locationOf, provide, requireServer, type WarehouseError } from "./Warehouse.ts"

/** A flag that is off unless it is given. */
export const switchFlag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** A flag with a text, which may be absent. */
export const textFlag = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.withMetavar(metavar), Flag.optional)

/** A flag with a text that has a default. */
export const defaultFlag = (name: string, metavar: string, description: string, fallback: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${description} (default: ${fallback})`),
    Flag.withMetavar(metavar),
    Flag.withDefault(fallback)
  )

/** A flag that may be given several times. */
export const repeatedFlag = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.withMetavar(metavar), Flag.between(0, 1000))

/** Command lines for the help, each with what it does. */
export const withExamples = (examples: Readonly<Record<string, string>>) =>
  Command.withExamples(Object.entries(examples).map(([command, description]) => ({ command, description })))

export const verbose = switchFlag("verbose", "Print a line for each resource, also without a terminal")

export const json = switchFlag("json", "Print JSON, for programs")

export const config = textFlag("config", "FILE", "Configuration file (default: config/tributary.yaml)")

/** Names of resources; none means all that are configured. `what` is the verb of the description. */
export const resources = (what: string) =>
  Argument.String("resource").pipe(
    Argument.withDescription(`Resources to ${what} (default: all that are configured)`),
    Argument.variadic()
  )

export const company = repeatedFlag("company", "NAME", "Only this company (may be repeated)")

export const url = textFlag("url", "URL", "Base address of the service (default: SERVICE_API_URL)")

export const demoWarehouse = switchFlag("demo", "Use the warehouse of the demo")

/** Reads the configuration: flags, environment, `.env` and file. */
export const configuration = (file: Option.Option<string>, flags: { readonly url?: string | undefined } = {}) =>
  Configuration.load({ config: Option.getOrUndefined(file), url: flags.url }, process.env)

export type Failure =
  | ConfigurationError
  | FileProblem
  | WarehouseError
  | TableConflict
  | TableDamaged
  | RulesChanged
  | DatabaseError
  | CommandFailed
  | ReferenceFailed

/** The exit code and the sentence of a failure. */
export const commandFailed = (error: Failure): CommandFailed => {
  switch (error._tag) {
    case "CommandFailed":
      return error
    case "TableConflict":
      return new CommandFailed({
        code: error.isRetryable === true ? exitCode.fault : exitCode.configuration,
        message: error.message
      })
    case "TableDamaged":
    case "RulesChanged":
      return new CommandFailed({
        code: exitCode.configuration,
        message: `${error.message}\n  what to do: ${error.remedy}`
      })
    case "ConfigurationError":
    case "FileProblem":
      return new CommandFailed({ code: exitCode.configuration, message: error.message })
    case "DatabaseError": {
      // The sentence of a connection that fails has its remedy.
      const remedy = error.operation === "connect" ? null : Remedy.remedyOf(error)
      return new CommandFailed({
        code: error.isRetryable || Remedy.isServerFault(error) ? exitCode.fault : exitCode.configuration,
        message: remedy === null ? error.message : `${error.message}\n  what to do: ${remedy}`
      })
    }
    case "EmbeddedPostgresError": {
      const isSetting = error.step === "folder" || error.step === "binaries"
      return new CommandFailed({ code: isSetting ? exitCode.configuration : exitCode.fault, message: describe(error) })
    }
    case "MigrationError":
      return new CommandFailed({ code: exitCode.configuration, message: error.message })
    case "ReferenceFailed":
      return new CommandFailed({ code: exitCode.fault, message: error.message })
  }
}

/** Fails where there is no warehouse. */
export const requireWarehouse = Effect.fnUntraced(function* (location: ReturnType<typeof locationOf>, demo = false) {
  if (yield* exists(location)) return
  yield* requireServer(location)
  return yield* new CommandFailed({
    code: exitCode.configuration,
    message: demo
      ? "the demo has no warehouse yet: tributary demo makes it"
      : "there is no warehouse here yet: tributary init prepares one, and tributary sync fills it; to try it: tributary demo"
  })
})

type WarehouseFlags = { readonly config: Option.Option<string>; readonly demo?: boolean }

const run = <A, E extends Failure, R>(
  { config: file, demo = false }: WarehouseFlags,
  body: (settings: Configuration.Configuration) => Effect.Effect<A, E, R>,
  mustExist: boolean
) =>
  Effect.gen(function* () {
    const settings = yield* configuration(file)
    const location = locationOf(settings, demo)
    if (mustExist) yield* requireWarehouse(location, demo)
    const extended = demo ? Effect.succeed(settings) : StoredCompanies.extend(settings)
    // The embedded server is our own: a person who started it may open it before the first sync.
    const isForeign = location.databaseUrl !== null
    return yield* provide(Effect.flatMap(extended, body), { ...location, mustExist: mustExist && isForeign })
  })

/**
 * Runs the body on the warehouse that the configuration or `--demo` names. The settings have the companies of the
 * warehouse too. Where there is no warehouse, that is the failure, and none is made.
 */
export const onWarehouse = <A, E extends Failure, R>(
  flags: WarehouseFlags,
  body: (settings: Configuration.Configuration) => Effect.Effect<A, E, R>
) => run(flags, body, true)

/** {@link onWarehouse}, for commands that make the warehouse where there is none. */
export const onWarehouseOrNew = <A, E extends Failure, R>(
  flags: WarehouseFlags,
  body: (settings: Configuration.Configuration) => Effect.Effect<A, E, R>
) => run(flags, body, false)

/** A command as data: its help, its flags beside `--config` and `--json`, and the forms of its result. */
interface CommandData<Name extends string, Flags extends Command.Command.Config, A> {
  readonly name: Name
  /** A command of the program itself has its description in the list of the program. */
  readonly description?: string
  /** Command lines for the help, each with what it does. */
  readonly examples: Readonly<Record<string, string>>
  readonly flags: Flags
  /** The result for programs; default: as it is. */
  readonly json?: (result: A) => unknown
  /** The result for people. */
  readonly lines: (result: A, flags: Command.Command.Config.InferValue<Flags>) => ReadonlyArray<string>
  /** Lines for standard error, with and without `--json`. */
  readonly notes?: (result: A) => ReadonlyArray<string>
  readonly code?: (result: A) => ExitCode
}

interface ResultCommand<Name extends string, Flags extends Command.Command.Config, A, E, R> extends CommandData<
  Name,
  Flags,
  A
> {
  readonly run: (flags: Command.Command.Config.InferValue<Flags>, file: Option.Option<string>) => Effect.Effect<A, E, R>
}

/** A command that prints its result. */
export const resultCommand = <
  const Name extends string,
  const Flags extends Command.Command.Config,
  A,
  E extends Failure,
  R
>(
  one: ResultCommand<Name, Flags, A, E, R>
) =>
  Command.make(
    one.name,
    { own: one.flags, common: { config, json } },
    Effect.fnUntraced(function* ({ own, common }) {
      const result = yield* one.run(own, common.config)
      yield* common.json
        ? Output.print(Output.toJson(one.json?.(result) ?? result))
        : Output.printLines(one.lines(result, own))
      for (const line of one.notes?.(result) ?? []) yield* Output.note(line, "Warn")
      yield* endWith(one.code?.(result) ?? exitCode.ok)
    })
  ).pipe(Command.withDescription(one.description ?? ""), withExamples(one.examples))

interface WarehouseCommand<Name extends string, Flags extends Command.Command.Config, A, E, R> extends CommandData<
  Name,
  Flags,
  A
> {
  /** Whether the warehouse is made where there is none. */
  readonly makesWarehouse?: boolean
  readonly run: (
    settings: Configuration.Configuration,
    flags: Command.Command.Config.InferValue<Flags>,
    file: Option.Option<string>
  ) => Effect.Effect<A, E, R>
}

/** {@link resultCommand}, on the warehouse. */
export const warehouseCommand = <
  const Name extends string,
  const Flags extends Command.Command.Config,
  A,
  E extends Failure,
  R
>(
  one: WarehouseCommand<Name, Flags, A, E, R>
) =>
  resultCommand({
    ...one,
    run: (flags: Command.Command.Config.InferValue<Flags>, file) =>
      run({ config: file }, (settings) => one.run(settings, flags, file), one.makesWarehouse !== true)
  })
