/**
 * The generation of the catalogue, which rises with its fields. Two programs with different fields and the same
 * generation would alternate in full scans, and each would lose the other's fields.
 */
import { createHash } from "node:crypto"
import { assert, it } from "vitest"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { fieldsHash } from "../../src/land/CheckpointIdentity.ts"

/** The fields of all resources by generation. A changed field needs a new generation and a new line. */
const generations: Readonly<Record<number, string>> = {
  1: "0e4b9735907029bc"
}

it("the catalogue has a new generation after a field changed", () => {
  const fields = [...serviceV2.resources.values()].map((resource) => `${resource.path} ${fieldsHash(resource)}`).sort()
  const hash = createHash("sha256").update(fields.join("\n")).digest("hex").slice(0, 16)
  assert.strictEqual(
    generations[serviceV2.generation!],
    hash,
    "fields changed: raise `generation` in connectors/service-v2/catalogue/index.ts and add a line here"
  )
  assert.strictEqual(Math.max(...Object.keys(generations).map(Number)), serviceV2.generation)
})
