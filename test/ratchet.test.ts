/**
 * Counts that may only fall: long files, long functions, import circles, SQL outside named statements, tables that
 * several folders write, and words that `src/GLOSSARY.md` replaces.
 *
 * `ratchet.json` holds the counts of each file. `npm run ratchet` writes the counts that were reached.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path/posix"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"

const root = fileURLToPath(new URL("..", import.meta.url))
const recordFile = fileURLToPath(new URL("ratchet.json", import.meta.url))

type Counts = Readonly<Record<string, number>>
type Ratchet = Readonly<
  Record<"longFiles" | "longFunctions" | "circles" | "unnamedSql" | "sharedTables" | "words", Counts>
>

/** The TypeScript files below these folders, by path. */
const textsBelow = (...folders: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const args = ["ls-files", "--cached", "--others", "--exclude-standard", ...folders]
  const paths = execFileSync("git", args, { cwd: root, encoding: "utf8" }).split("\n")
  return new Map(
    // A file that was deleted without staging is still listed.
    paths
      .filter((path) => path.endsWith(".ts") && existsSync(join(root, path)))
      .map((path) => [path, readFileSync(join(root, path), "utf8")])
  )
}

const texts = textsBelow("src", "connectors")

const sorted = (counts: Counts): Counts =>
  Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)))

/** The sum of the lines of files above 400 lines, and of functions above 100, for each file. */
const tooLong = (rule: string): Counts => {
  const oxlint = join(root, "node_modules/.bin/oxlint")
  const args = ["--config", "config/oxlint.ratchet.json", "-f", "json", "src", "connectors"]
  let report: string
  try {
    report = execFileSync(oxlint, args, { cwd: root, encoding: "utf8", maxBuffer: 1e8 })
  } catch (error) {
    report = (error as { readonly stdout: string }).stdout
  }
  const { diagnostics } = JSON.parse(report) as {
    readonly diagnostics: ReadonlyArray<{ readonly code: string; readonly filename: string; readonly message: string }>
  }
  const counts: Record<string, number> = {}
  for (const { code, filename, message } of diagnostics)
    if (code === `eslint(${rule})`) counts[filename] = (counts[filename] ?? 0) + Number(/\((\d+)\)/.exec(message)![1])
  return sorted(counts)
}

/** Files that import themselves through other files. Type imports count, dynamic imports do not. */
const inCircles = (): Counts => {
  const targets = new Map(
    [...texts].map(([path, text]) => [
      path,
      [...text.matchAll(/^(?:import|export)[^"]*? from "(\.[^"]+)"/gm)]
        .map(([, specifier]) => normalize(join(dirname(path), specifier!)))
        .filter((target) => texts.has(target))
    ])
  )
  const reaches = (from: string): boolean => {
    const open = [...targets.get(from)!]
    const seen = new Set<string>()
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next === from) return true
      if (seen.has(next)) continue
      seen.add(next)
      open.push(...targets.get(next)!)
    }
    return false
  }
  return sorted(Object.fromEntries([...texts.keys()].filter(reaches).map((path) => [path, 1])))
}

/** The number of queries in each file that are not statements of `src/postgres/Statement.ts`. */
const unnamedSql = (): Counts => {
  const use = /\bsql\.unsafe\b|\bSql\.rows\b|\bsql(?:<[^`]*?>)?`|\b(?:inboxQuery|run)(?:<[^;]*?>)?\(\s*["`][a-z]/g
  return sorted(
    Object.fromEntries(
      [...texts].flatMap(([path, text]) => {
        const count = path.startsWith("src/") ? (text.match(use)?.length ?? 0) : 0
        return count === 0 ? [] : [[path, count]]
      })
    )
  )
}

/** Tables that more than one folder writes, with the number of folders. Deletes by retention do not count. */
const sharedTables = (): Counts => {
  const writers = new Map<string, Set<string>>()
  for (const [path, text] of texts) {
    if (!path.startsWith("src/") || path.endsWith("Retention.ts")) continue
    for (const [, table] of text.matchAll(/(?:insert into|update|delete from)\s+tributary\.(\w+)/g))
      writers.set(table!, (writers.get(table!) ?? new Set()).add(path.split("/")[1]!))
  }
  return sorted(Object.fromEntries([...writers].flatMap(([table, { size }]) => (size > 1 ? [[table, size]] : []))))
}

/** The words of the glossary's last table, and how often the code and its tests use each. */
const replacedWords = (): Counts => {
  const glossary = readFileSync(join(root, "src/GLOSSARY.md"), "utf8")
  const words = [
    ...glossary.slice(glossary.indexOf("## Words that are replaced")).matchAll(/^\| ([a-z][a-z ]*?) +\|/gm)
  ]
  const text = [...texts.values(), ...textsBelow("test").values()].join("\n")
  return Object.fromEntries(
    words
      .map(([, word]) => [word!, text.match(new RegExp(`\\b${word}\\b`, "gi"))?.length ?? 0] as const)
      .filter(([word]) => word !== "word")
  )
}

const actual: Ratchet = {
  longFiles: tooLong("max-lines"),
  longFunctions: tooLong("max-lines-per-function"),
  circles: inCircles(),
  unnamedSql: unnamedSql(),
  sharedTables: sharedTables(),
  words: replacedWords()
}

if (process.env["RATCHET"] === "write") writeFileSync(recordFile, `${JSON.stringify(actual, null, 2)}\n`)

const recorded = JSON.parse(readFileSync(recordFile, "utf8")) as Ratchet

describe("a count of the ratchet", () => {
  for (const kind of ["longFiles", "longFunctions", "circles", "unnamedSql", "sharedTables", "words"] as const)
    it(`does not rise: ${kind}`, () => {
      const grown = Object.entries(actual[kind]).filter(([name, count]) => count > (recorded[kind][name] ?? 0))
      assert.deepStrictEqual(grown, [], "split it, name its SQL, or use the words of src/GLOSSARY.md")
    })
})
