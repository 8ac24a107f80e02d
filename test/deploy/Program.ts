/** What the deployment files may name: the files, commands, flags, variables and settings of the program. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Schema } from "effect"
import { environmentVariables } from "../../src/configuration/EnvironmentVariables.ts"
import { root } from "../support/reference.ts"

export const textOf = (path: string): string => readFileSync(join(root, path), "utf8")
export const linesOf = (path: string): ReadonlyArray<string> => textOf(path).replaceAll("\\\n", " ").split("\n")

export const manifest = Schema.decodeUnknownSync(
  Schema.Struct({
    version: Schema.String,
    license: Schema.String,
    scripts: Schema.Record(Schema.String, Schema.String)
  })
)(JSON.parse(textOf("package.json")))

/** The longest time that the program takes to stop, from its source. */
export const stopSeconds =
  Number(/const stopMaxMs = ([\d_]+)/.exec(textOf("src/cli/serve.ts"))?.[1]?.replaceAll("_", "")) / 1000

/** Variables that the program reads, besides those that a configuration names. */
export const variables = Object.keys(environmentVariables)

/** The file of a command, from the program's list. */
const fileOf = (command: string): string => {
  const match = new RegExp(`^ +"?${command}"?: lazy\\([^]*?\\(\\) => import\\("\\./(\\w+\\.ts)"\\)`, "m").exec(
    textOf("src/cli/Program.ts")
  )
  assert.isNotNull(match, `there is no command ${command}`)
  return `src/cli/${match?.[1]}`
}

/** Flags of a command line that the command does not have. */
export const unknownFlags = ([command, ...line]: ReadonlyArray<string>): ReadonlyArray<string> => {
  const stated = `${textOf(fileOf(command!))}${textOf("src/cli/Command.ts")}`
  return line.filter((word) => word.startsWith("--") && !new RegExp(`\\(\\s*"${word.slice(2)}"`).test(stated))
}

export const healthPaths: ReadonlyArray<string> =
  /path !== "(\/\w+)" && path !== "(\/\w+)" && path !== "(\/\w+)"/.exec(textOf("src/ingest/HttpServer.ts"))?.slice(1) ??
  []
