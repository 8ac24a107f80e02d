/** The generated pages of `docs/reference` and the JSON Schema of the settings: each is what the program would write. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { variableEntries } from "../../src/configuration/EnvironmentVariables.ts"
import { jsonSchema } from "../../src/configuration/Settings.ts"
import { configurationPage, settings } from "./configuration.ts"
import { commandsPage, helpOfAll } from "./commands.ts"
import { environmentPage } from "./environment.ts"
import { assertGenerated } from "./generated.ts"
import { problemsPage } from "./problems.ts"
import { pages } from "../readme/Blocks.ts"
import { root } from "../support/reference.ts"
import { assertNone } from "../support/assertions.ts"

/** The modules of the program, without the table of the variables itself. */
const modules = ["src", "connectors"].flatMap((folder) =>
  readdirSync(join(root, folder), { encoding: "utf8", recursive: true })
    .filter((name) => /\.[jt]s$/.test(name) && !/\bexamples\b|EnvironmentVariables\.ts$/.test(name))
    .map((name) => readFileSync(join(root, folder, name), "utf8"))
)

/** Names that modules read from the environment, or that have the form of a variable's name. */
const readNames = new Set(
  modules.flatMap((text) =>
    [
      ...text.matchAll(/\b(?:process\.env\.|process\.env\["|environment\[")(\w+)|"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"/g)
    ].map(([, read, name]) => read ?? name!)
  )
)
/** Codes of errors, and a file of Postgres. */
const noVariable = /^(?:CERT|CSV|EAI|ERR|HPE|INVALID|PG|UND)_/
/** Variables that Node and effect read. */
const readByOthers = /^(?:OTEL_.*|NODE_EXTRA_CA_CERTS|NO_COLOR|FORCE_COLOR)$/

describe("the generated reference", () => {
  it("has the kinds of problems", () => {
    assertGenerated("docs/reference/problems.md", problemsPage)
  })

  it("has the settings", () => {
    assertNone(settings, ({ meaning }) => meaning === "")
    assertGenerated("docs/reference/configuration.md", configurationPage)
    assertGenerated("config/tributary.schema.json", () => `${JSON.stringify(jsonSchema(), null, 2)}\n`)
  })

  it("has the environment variables", () => {
    assertGenerated("docs/reference/environment.md", environmentPage)
    const names = variableEntries.map(([name]) => name)
    const variables = [...readNames].filter((name) => !noVariable.test(name))
    assertNone(variables, (name) => !names.includes(name), "src/configuration/EnvironmentVariables.ts lacks variables")
    assertNone(names, (name) => !readNames.has(name) && !readByOthers.test(name), "no module reads these variables")
  })

  it.effect("has the commands", () =>
    Effect.map(commandsPage, (page) => assertGenerated("docs/reference/commands.md", () => page))
  )

  it.effect("has every command and flag that a sentence or table of a page names", () =>
    Effect.map(helpOfAll, (helps) => {
      const flagsOf = new Map(
        helps.map(({ commandPath = [], flags, globalFlags = [], inheritedFlags = [] }) => [
          commandPath.join(" "),
          new Set([...flags, ...globalFlags, ...inheritedFlags].map(({ name }) => `--${name}`))
        ])
      )
      const problems = pages.flatMap((page) =>
        [...readFileSync(join(root, page), "utf8").matchAll(/`(?:npx )?(tributary [a-z][^`\n]*)`/g)].flatMap(
          ([, line]) => {
            const words = line!.split(/ (?:[|<>]|--) /)[0]!.split(" ")
            const command = [4, 3, 2].map((count) => words.slice(0, count).join(" ")).find((path) => flagsOf.has(path))
            const unknown = words.filter(
              (word) => /^--\w/.test(word) && !flagsOf.get(command ?? "")?.has(word.split("=")[0]!)
            )
            return command === undefined || unknown.length > 0 ? [`${page}: ${line}`] : []
          }
        )
      )
      assert.deepStrictEqual(problems, [])
    })
  )
})
