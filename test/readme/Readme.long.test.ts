/** The blocks of every page of `docs` and of the connectors. The gate runs those of README.md. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, it } from "@effect/vitest"
import { root } from "../support/reference.ts"
import { blocksOf } from "./Blocks.ts"
import { readPage } from "./Reader.ts"

/** The kinds of blocks that other tests run, or that nothing can run. */
const elsewhere = new Set(["package", "picture", "foreign"])

const pages = ["docs", "connectors"]
  .flatMap((folder) =>
    readdirSync(join(root, folder), { encoding: "utf8", recursive: true }).map((name) => join(folder, name))
  )
  .filter((page) => page.endsWith(".md") && blocksOf(page).some(({ kind }) => !elsewhere.has(kind)))
  // test/integration/models/Questions.long.test.ts runs the questions, and compares the answers.
  .filter((page) => page !== join("docs", "how-to", "questions.md"))
  // test/package/Package.process.test.ts follows the tutorial, at a terminal.
  .filter((page) => !page.startsWith(join("docs", "tutorials")))

describe("the documents", () => {
  for (const page of pages)
    it.live(`have blocks that work as shown: ${page}`, () => readPage(page), { timeout: 300_000 })
})
