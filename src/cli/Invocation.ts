/**
 * How the program was started, for hints.
 *
 * Promise: a hint is a command that starts this program and no other: the package `tributary` of the public registry is of
 * someone else. Messages name a command as `tributary sync`, which is also what tables keep; output for people has the
 * command as it was started, or as `TRIBUTARY_COMMAND` says.
 */
import * as Context from "effect/Context"
import { existsSync, realpathSync } from "node:fs"
import { basename, dirname, join, sep } from "node:path"
import { descriptions } from "./Descriptions.ts"

/** The name of the package in the public registry. */
export const packageName = "tributary-sync"

const realOf = (path: string): string | null => {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

/** Whether npx finds this program in the project of a folder. */
const isLocal = (folder: string, root: string): boolean => {
  if (existsSync(join(folder, "package.json")) || existsSync(join(folder, "node_modules"))) {
    return (
      realOf(folder) === root ||
      realOf(join(folder, "node_modules", ".bin", "tributary"))?.startsWith(root + sep) === true
    )
  }
  const parent = dirname(folder)
  return parent !== folder && isLocal(parent, root)
}

/** `program` is the path of `src/cli/launch.js`, by which the program was started, or a link to it. */
export const invocationOf = (program: string, folder: string, isNpx: boolean): string => {
  const file = realOf(program)
  if (file !== null && basename(file) === "launch.js" && isLocal(folder, dirname(dirname(dirname(file)))))
    return "npx tributary"
  return isNpx ? `npx ${packageName}` : "tributary"
}

/** The command line of this run, as a shell reads it. */
export const CommandLine = Context.Reference<string>("tributary/cli/CommandLine", { defaultValue: () => "tributary" })

/** The command line of these words. */
export const commandLineOf = (words: ReadonlyArray<string>): string =>
  [
    "tributary",
    ...words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
  ].join(" ")

/** In a container only its operator knows how a command is started from outside: `docker compose exec tributary tributary`. */
const invocation =
  process.env["TRIBUTARY_COMMAND"] ??
  invocationOf(process.argv[1] ?? "", process.cwd(), process.env["npm_command"] === "exec")
const mention = new RegExp(`(?<![\\w./@-]|npx )tributary (?=(?:${Object.keys(descriptions).join("|")})\\b)`, "g")

/** The text with its commands as this program was started. */
export const withInvocation = (text: string, as = invocation): string =>
  as === "tributary" ? text : text.replace(mention, `${as} `)
