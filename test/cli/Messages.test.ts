/** Every command and flag that a message of the program names exists. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { helpOfAll } from "../docs/commands.ts"
import { root } from "../support/reference.ts"
import { test } from "../support/suite.ts"

/** The modules of the program, with their comments left out. */
const modules = ["src", "connectors", "migrations"].flatMap((folder) =>
  readdirSync(join(root, folder), { encoding: "utf8", recursive: true })
    .filter((name) => /\.(?:[jt]s|sql)$/.test(name) && !name.includes("reference-server/examples"))
    .map((name) => ({
      file: `${folder}/${name}`,
      code: readFileSync(join(root, folder, name), "utf8")
        .replace(/\/\*[\s\S]*?\*\//g, "")
        .replace(/(^|[^:"'`])\/\/.*$/gm, "$1")
    }))
)

/** A command with what follows it: words, values, numbers and placeholders. */
const mention =
  /(?<![\w./@-]|the package )tributary((?: (?:--?[a-z][\w-]*|[a-z][\w-]*|[A-Z][A-Z_|]*|\d+|\$\{[^}]*\}))+)/g

/** What follows the name where it is no command: labels of keys, and sentences about the program. */
const noCommand = new Set([
  "cascade",
  "company adds",
  "company token 1",
  "count",
  "endpoint secret 1",
  "for its own read-only sessions",
  "is",
  "needs N",
  "process",
  "reader 1",
  "tributary",
  "v",
  "webhook secret 1",
  "whole from a backup"
])

/** Flags of other programs, and a variable of the code. */
const foreign = /^--(?:omit|csv|depth|semi-space-growth-factor|heap-growing-percent)$/
/** A module that starts initdb and Postgres. */
const startsPostgres = /Postmaster\.ts$/

test("name a command that exists, with flags that it has", function* () {
  const docs = yield* helpOfAll
  const [top] = docs
  const globals = top!.globalFlags?.map(({ name }) => name) ?? []
  const commands = new Map(
    docs.map(({ args = [], commandPath = [], flags, inheritedFlags = [], subcommands = [] }) => [
      commandPath.join(" "),
      {
        flags: new Set([...globals, ...[...flags, ...inheritedFlags].map(({ name }) => name)]),
        isGroup: subcommands.length > 0 && flags.length + args.length === 0
      }
    ])
  )
  const every = new Set([...commands.values()].flatMap(({ flags }) => [...flags]))
  const problems = modules.flatMap(({ file, code }) => {
    const ofCommands = [...code.matchAll(mention)].flatMap(([text, tail]) => {
      const words = tail!.trim().split(" ")
      let path = "tributary"
      while (commands.has(`${path} ${words[0]}`)) path = `${path} ${words.shift()!}`
      if (noCommand.has(tail!.trim()) || words[0]?.startsWith("${") === true) return []
      if (path === "tributary") return [`${file}: ${text}`]
      const { flags, isGroup } = commands.get(path)!
      const unknown = words.filter((word) => word.startsWith("--") && !flags.has(word.slice(2)))
      return unknown.length > 0 || (isGroup && /^[a-z]/.test(words[0] ?? "")) ? [`${file}: ${text}`] : []
    })
    const ofFlags = [...code.matchAll(/(?<=["'`(\s])--[a-z][a-z-]*[a-z]\b/g)].flatMap(([flag]) =>
      every.has(flag.slice(2)) || foreign.test(flag) || startsPostgres.test(file) ? [] : [`${file}: ${flag}`]
    )
    return [...ofCommands, ...ofFlags]
  })
  assert.deepStrictEqual(problems, [])
})
