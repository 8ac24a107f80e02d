/** The blocks of the pages for users: each has a kind, which states how it is tested. */
import { assert, it } from "vitest"
import { blocksOf, linesOf, pages } from "./Blocks.ts"

it("every block has a kind, and every block of shell has lines that can be run", () => {
  const problems = pages.flatMap((page) => {
    try {
      for (const { kind, text } of blocksOf(page)) if (kind === "shell") linesOf(text)
      return []
    } catch (error) {
      return [`${page}: ${String(error)}`]
    }
  })
  assert.deepStrictEqual(problems, [])
})
