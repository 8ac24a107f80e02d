/** The blocks of every page of `docs` and of the connectors. The gate runs those of README.md. */
import { join } from "node:path"
import { describe, it } from "@effect/vitest"
import { blocksOf, pages } from "./Blocks.ts"
import { readPage } from "./Reader.ts"

/** The kinds of blocks that other tests run, or that nothing can run. */
const elsewhere = new Set(["package", "picture", "foreign"])
const others = new Set([
  "README.md",
  // test/integration/models/Questions.long.test.ts runs the questions, and compares the answers.
  join("docs", "how-to", "questions.md"),
  // test/package/Package.process.test.ts follows the tutorial, at a terminal.
  join("docs", "tutorials", "first-day.md")
])

describe("the documents", () => {
  for (const page of pages) {
    if (others.has(page) || blocksOf(page).every(({ kind }) => elsewhere.has(kind))) continue
    it.live(`have blocks that work as shown: ${page}`, () => readPage(page), { timeout: 300_000 })
  }
})
