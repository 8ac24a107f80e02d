/** The command tree as data, and the page of the commands. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Option } from "effect"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import type { ArgDoc, FlagDoc, HelpDoc } from "effect/cli/HelpDoc"
import { exitCodes } from "../../src/cli/Exit.ts"
import { rootFor } from "../../src/cli/Program.ts"
import { prose, tableText } from "./generated.ts"

export interface ListedCommand {
  readonly command: Command.Command.Any
  /** The names from the root on, with spaces between them. */
  readonly path: string
  readonly isGroup: boolean
}

/** Every command, below the path of its parent. */
export const commandsOf = (command: Command.Command.Any, path = command.name): ReadonlyArray<ListedCommand> => {
  const subcommands = command.subcommands.flatMap(({ commands }) => commands)
  return [
    { command, path, isGroup: subcommands.length > 0 },
    ...subcommands.flatMap((one) => commandsOf(one, `${path} ${one.name}`))
  ]
}

/** Runs command lines without their output. */
export const quietly = Effect.provideService(Console.Console, { ...console, log: () => {}, error: () => {} })

/** The help of every command as data. */
export const helpOfAll = Effect.gen(function* () {
  // A command with --help needs no service.
  const root = (yield* rootFor([])) as Command.Command.Any as Command.Command<string, unknown, unknown, unknown>
  const docs: Array<HelpDoc> = []
  const formatHelpDoc = (doc: HelpDoc) => {
    docs.push(doc)
    return ""
  }
  const collecting = CliOutput.layer(Object.assign(CliOutput.defaultFormatter(), { formatHelpDoc }))
  for (const { path } of commandsOf(root))
    yield* Command.runWith(root, { version: "0" })([...path.split(" ").slice(1), "--help"]).pipe(
      Effect.ignore,
      Effect.provide(collecting)
    )
  return docs
}).pipe(quietly, Effect.provide(NodeServices.layer))

/** The description, and whether a value is required; no repeated flag is. */
const meaningOf = ({ description, required }: ArgDoc | FlagDoc) => {
  const text = Option.getOrElse(description, () => "")
  return required && !/\brepeated\b/.test(text) ? `${text} (required)` : text
}

const flagRows = (flags: ReadonlyArray<FlagDoc> = []) =>
  flags.map((flag) => {
    const names = [`--${flag.name}`, ...flag.aliases].map((name) =>
      flag.type === "boolean" ? name : `${name} ${flag.type}`
    )
    return [names.map((name) => `\`${name}\``).join(", "), meaningOf(flag)]
  })

const section = ({
  args = [],
  commandPath = [],
  description,
  examples = [],
  flags,
  inheritedFlags = [],
  usage
}: HelpDoc) =>
  [
    `${"#".repeat(commandPath.length)} ${commandPath.join(" ")}`,
    `${prose(description)}.`,
    `Usage: \`${usage}\``,
    tableText(
      ["argument", "meaning"],
      args.map((one) => [`\`${one.name}${one.variadic ? "…" : ""}\``, meaningOf(one)])
    ),
    tableText(["flag", "meaning"], flagRows([...flags, ...inheritedFlags])),
    examples.length === 0 ? "" : "Examples:",
    examples.map((one) => `- \`${one.command}\`: ${prose(one.description ?? "")}\n`).join("")
  ]
    .filter((part) => part !== "")
    .join("\n\n")

export const commandsPage = Effect.map(
  helpOfAll,
  ([root, ...others]) =>
    `# Commands

Every command of \`tributary\`, as \`--help\` shows it. In a project that has the package, write \`npx tributary\`. \`npm run docs\` generates this page from the program.

Every command accepts:

${tableText(["flag", "meaning"], flagRows(root!.globalFlags))}
${others.map(section).join("\n\n")}

## Exit codes

${tableText(
  ["code", "name", "meaning", "what to do"],
  exitCodes.map(({ code, meaning, name, remedy }) => [String(code), name, meaning, remedy])
)}`
)
