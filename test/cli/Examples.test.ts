/** The examples in the help: every command has one, and each has an expected result. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Command from "effect/cli/Command"
import { rootFor } from "../../src/cli/Program.ts"
import { examples } from "./examples.ts"

interface Shown {
  readonly of: string
  readonly examples: ReadonlyArray<string>
  readonly isGroup: boolean
}

/** Every command with the examples of its help. Subcommands follow their parent command. */
const commandsOf = (command: Command.Command.Any, path: string): ReadonlyArray<Shown> => {
  const subcommands = command.subcommands.flatMap(({ commands }) => commands)
  return [
    { of: path, examples: command.examples.map((one) => one.command), isGroup: subcommands.length > 0 },
    ...subcommands.flatMap((one) => commandsOf(one, `${path} ${one.name}`))
  ]
}

it.effect("every command has an example in its help, and each example an expected result", () =>
  Effect.gen(function* () {
    const commands = commandsOf(yield* rootFor([]), "tributary")
    const without = commands.filter((one) => !one.isGroup && one.examples.length === 0)
    assert.deepStrictEqual(
      without.map(({ of }) => of),
      []
    )
    const shown = commands.flatMap((one) => one.examples)
    assert.sameMembers(Object.keys(examples), shown)
  })
)
