/** The blocks of the pages that the README links. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, it } from "@effect/vitest"
import { root } from "../support/reference.ts"
import { readPage } from "./Reader.ts"

const pages = [
  ...readdirSync(join(root, "connectors/service-v2/docs"))
    // test/integration/models/Questions.long.test.ts runs the questions, and compares the answers.
    .filter((name) => name !== "questions.md")
    .map((name) => `connectors/service-v2/docs/${name}`),
  "connectors/service-v2/models/README.md",
  "connectors/service-v2/radar/README.md",
  "connectors/service-v2/reference-server/README.md"
]

describe("the documents", () => {
  for (const page of pages)
    it.live(`have blocks that work as shown: ${page}`, () => readPage(page), { timeout: 300_000 })
})
