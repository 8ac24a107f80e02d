/** The help: every command has an example with its own flags and arguments, and is listed with its own description. */
import { assert, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import * as Command from "effect/cli/Command"
import { rootFor } from "../../src/cli/Program.ts"
import { commandsOf, quietly } from "../docs/commands.ts"
import { test } from "../support/suite.ts"
import { valuesOf } from "../support/rows.ts"

/** The words of a line of shell, up to a pipe or a redirection. */
const wordsOf = (line: string): ReadonlyArray<string> =>
  [...line.replace(/ [|<>] .*$/, "").matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!)

/** The words after the name of the command, parsed without running it. */
const parse = (command: Command.Command.Any, words: ReadonlyArray<string>) =>
  Command.runWith(
    Command.withHandler(command as Command.Command<string, unknown, unknown, unknown>, () => Effect.void),
    { version: "0" }
  )(words)

it.effect("every command has an example in its help, which it accepts", () =>
  Effect.gen(function* () {
    const commands = commandsOf(yield* rootFor([]))
    const without = commands.filter(({ command, isGroup }) => !isGroup && command.examples.length === 0)
    assert.deepStrictEqual(valuesOf(without, "path"), [])
    const problems: Array<string> = []
    for (const { command, path } of commands) {
      for (const { command: example } of command.examples) {
        const words = wordsOf(example)
        const depth = path.split(" ").length
        assert.strictEqual(words.slice(0, depth).join(" "), path, example)
        yield* parse(command, words.slice(depth)).pipe(
          Effect.catchCause((cause) => Effect.sync(() => problems.push(`${example}: ${String(cause)}`)))
        )
      }
    }
    assert.deepStrictEqual(problems, [])
  }).pipe(quietly, Effect.provide(NodeServices.layer))
)

test("--help lists each command with the description that the command itself has", function* () {
  const listed = (args: ReadonlyArray<string>) =>
    Effect.map(rootFor(args), ({ subcommands }) =>
      subcommands.flatMap(({ commands }) => commands.map(({ name, description }) => ({ name, description })))
    )
  assert.deepStrictEqual(yield* listed(["--help"]), yield* listed([]))
})
