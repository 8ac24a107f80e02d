/** Files that the program generates, and the parts of Markdown that their generators use. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { root } from "../support/reference.ts"

/** Text in which Markdown finds no tag. */
export const prose = (text: string): string => text.replace(/`[^`]*`|<(?=\w)/g, (part) => (part === "<" ? "\\<" : part))

const row = (cells: ReadonlyArray<string>) =>
  `| ${cells.map((cell) => prose(cell).replaceAll("|", "\\|")).join(" | ")} |\n`

export const tableText = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  rows.length === 0 ? "" : row(head) + row(head.map(() => "---")) + rows.map(row).join("")

export const code = (names: ReadonlyArray<string>): string => names.map((name) => `\`${name}\``).join(", ")

/** Text without its layout, which the formatter changes. */
const withoutLayout = (text: string) =>
  text
    .replace(/-{3,}/g, "---")
    .replace(/\s+/g, "")
    .replace(/([:<])\|/g, "$1")

/** Compares a file of the repository with its text; `npm run docs` writes the file instead. */
export const assertGenerated = (path: string, textOf: (written: string) => string): void => {
  const file = join(root, path)
  const isWriting = process.env["DOCS"] === "write"
  const written = readFileSync(file, { encoding: "utf8", flag: isWriting ? "a+" : "r" })
  const text = textOf(written)
  if (isWriting) writeFileSync(file, text)
  else assert.strictEqual(withoutLayout(written), withoutLayout(text), `${path}: run npm run docs`)
}
