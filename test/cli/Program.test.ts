/** The list of commands that the help of the program prints without loading them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { rootFor } from "../../src/cli/Program.ts"

const listed = (args: ReadonlyArray<string>) =>
  Effect.map(rootFor(args), ({ subcommands }) =>
    subcommands.flatMap(({ commands }) => commands.map(({ name, description }) => ({ name, description })))
  )

describe("the help of the program", () => {
  it.effect("says of each command what the command says of itself", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* listed(["--help"]), yield* listed([]))
    })
  )
})
