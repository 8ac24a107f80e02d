/**
 * The fenced blocks of the documents, each with its kind. A block of an unknown kind is an error, so that every new
 * block states how it is tested.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../support/reference.ts"

export interface Block {
  /** `README.md:21`, a form that editors open. */
  readonly at: string
  readonly kind:
    | "shell"
    /** Commands after `$ `, each with its output. */
    | "session"
    /** The output of the commands in the previous block, shortened. */
    | "output"
    | "sql"
    | "yaml"
    /** The code of a receiver of change webhooks. */
    | "receiver"
    /** A whole program, which runs by itself. */
    | "program"
    /** A drawing. */
    | "picture"
    /** A file of a program that uses the package, or a run of it: `test/package/Modules.long.test.ts` runs it. */
    | "package"
    /** Input for another program, which is not available in the test. */
    | "foreign"
  readonly text: string
  /** The word after the fence. */
  readonly language: string
}

const foreign = new Set(["ini", "nginx", "json"])

/** The name of the file that a block shows: its first line is a comment with it. */
export const fileNameOf = (text: string): string | null => /^\/\/ ([\w.-]+\.ts)\n/.exec(text)?.[1] ?? null

/** The interpreter of each language of a program. */
export const interpreters: Readonly<Record<string, string>> = { ts: "node", python: "python3", ruby: "ruby" }

const kindOf = (language: string, text: string, before: Block | undefined): Block["kind"] | null => {
  // A block that begins with the name of a file is a part of something larger.
  if (Object.hasOwn(interpreters, language) && !text.startsWith("// ")) return "program"
  if (language === "sh") return "shell"
  if (language === "sql" || language === "yaml") return language
  if (language === "js" && text.includes("standardwebhooks")) return "receiver"
  if (language === "ts" && fileNameOf(text) !== null) return "package"
  if (language === "mermaid") return "picture"
  if (foreign.has(language)) return "foreign"
  if (language !== "") return null
  if (/^\$ node /m.test(text)) return "package"
  if (/^\$ /m.test(text)) return "session"
  if (/[►▲▼◄│]/.test(text)) return "picture"
  return before?.kind === "shell" || before?.kind === "program" ? "output" : null
}

/** The blocks of a page, by its path in the checkout. */
export const blocksOf = (page: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let open: { readonly line: number; readonly language: string; readonly text: Array<string> } | null = null
  for (const [index, line] of readFileSync(join(root, page), "utf8").split("\n").entries()) {
    const fence = /^\s*```(\S*)/.exec(line)
    if (fence === null) open?.text.push(line)
    else if (open === null) open = { line: index + 1, language: fence[1]!, text: [] }
    else {
      const text = open.text.join("\n")
      const at = `${page}:${open.line}`
      const kind = kindOf(open.language, text, blocks.at(-1))
      if (kind === null)
        throw new Error(`${at}: a block of an unknown kind ("${open.language}"); state how it is tested`)
      blocks.push({ at, kind, text, language: open.language })
      open = null
    }
  }
  return blocks
}

/** The pages for users, by their path in the checkout: README.md, and those of `docs` and of the connectors. */
export const pages: ReadonlyArray<string> = [
  "README.md",
  ...["docs", "connectors"].flatMap((folder) =>
    readdirSync(join(root, folder), { encoding: "utf8", recursive: true })
      .filter((name) => name.endsWith(".md"))
      .map((name) => join(folder, name))
  )
]

/** Complete lines of shell. A line that ends with a backslash or within quotes continues. */
export const linesOf = (text: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let pending = ""
  for (const line of text.split("\n")) {
    pending += pending === "" ? line : `\n${line}`
    const bare = pending.replace(/\\./g, "").replace(/'[^']*'|"[^"]*"/g, "")
    const code = bare.replace(/(^|\s)#.*$/gm, "$1")
    if (pending.endsWith("\\") || /['"]/.test(code)) continue
    if (code.trim() !== "") lines.push(pending.trim())
    pending = ""
  }
  if (pending.trim() !== "") throw new Error(`unclosed quotes: ${pending}`)
  return lines
}

export interface ShownCommand {
  readonly command: string
  readonly output: string
}

/** The commands of a session, each with its shown output. */
export const sessionOf = (text: string): ReadonlyArray<ShownCommand> =>
  text.split(/^\$ /m).flatMap((part) => {
    const [command = "", ...output] = part.split("\n")
    return command.trim() === "" ? [] : [{ command: command.trim(), output: output.join("\n").trimEnd() }]
  })

/** A line without its figures: all numbers, times and identifiers are equal. */
const shapeOf = (line: string): string =>
  line
    .replace(/\b(?:evt|svct)_\w+/g, "#")
    .replace(/\d{4}-\d\d-\d\d[T ][\d:.]+Z?/g, "#")
    .replace(/[\d][\d.,:]*(?: ms| s| min)?/g, "#")
    .replace(/\s+/g, " ")
    .trim()

/** Lines that a document shows and that were not printed, compared without figures. */
export const unprintedLines = (shown: string, printed: string): ReadonlyArray<string> => {
  const shapes = new Set(printed.split("\n").map(shapeOf))
  return shown.split("\n").filter((line) => {
    const shape = shapeOf(line)
    return shape !== "" && shape !== "…" && !shapes.has(shape)
  })
}
