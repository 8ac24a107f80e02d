/** The facts and decisions that the server shows, against the ledger of the wire tests. */
import { assert, describe, it } from "vitest"
import { documents, familyOf } from "../../connectors/service-v2/catalogue/documents.ts"
import { readLedger } from "../conformance/ledger.ts"

describe("the documents", () => {
  const ledger = readLedger()
  const { facts, decisions, sections, topics } = documents()

  it("have every fact of the ledger, in its order, word by word", () => {
    assert.lengthOf(facts, 832)
    assert.deepStrictEqual(
      facts.map(({ id, text, source }) => ({ id, text: `${text} [${source}]` })),
      ledger.facts.map(({ id, text }) => ({ id, text }))
    )
  })

  it("call a fact implemented only if a wire test names it", () => {
    const claimed = facts.filter(({ refused }) => refused === null).map(({ id }) => id)
    assert.deepStrictEqual(
      claimed.filter((id) => !ledger.named.has(id)),
      []
    )
    const refused = facts.filter((fact) => fact.refused !== null).map((fact) => [fact.id, fact.refused])
    assert.deepStrictEqual(Object.fromEntries(refused), ledger.refused)
  })

  it("have a title for each section and topic, and every decision once", () => {
    assert.deepStrictEqual(
      facts.filter(({ id }) => sections[familyOf(id)] === undefined),
      []
    )
    assert.deepStrictEqual(
      decisions.filter(({ id }) => topics[familyOf(id)] === undefined),
      []
    )
    assert.strictEqual(new Set(decisions.map(({ id }) => id)).size, decisions.length)
    assert.deepStrictEqual(
      decisions.filter(({ point, decision }) => point === "" || decision === ""),
      []
    )
  })
})
