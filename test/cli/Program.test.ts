/** The list of commands that `tributary --help` prints without loading them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { rootFor } from "../../src/cli/Program.ts"

const listed = (args: ReadonlyArray<string>) =>
  Effect.map(rootFor(args), ({ subcommands }) =>
    subcommands.flatMap(({ commands }) => commands.map(({ name, description }) => ({ name, description })))
  )

describe("tributary --help", () => {
  it.effect("lists each command with the description that the command itself has", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* listed(["--help"]), yield* listed([]))
    })
  )
})
