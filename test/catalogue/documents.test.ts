/** The facts and decisions that the server shows, against the ledger of the wire tests. */
import { assert, describe, it } from "vitest"
import { documents, familyOf } from "../../connectors/service-v2/catalogue/documents.ts"
import { errorCodes } from "../../connectors/service-v2/catalogue/errors.ts"
import { ERROR_CODES, FACTS, readLedger, REFUSED } from "../conformance/facts.ts"
import { assertNone } from "../support/assertions.ts"

describe("the documents", () => {
  const ledger = readLedger()
  const { facts, decisions, sections, topics } = documents()

  it("have every fact of the ledger, in its order, word by word", () => {
    assert.lengthOf(facts, 832)
    assert.deepStrictEqual(
      facts.map(({ id, text, source }) => ({ id, text: `${text} [${source}]` })),
      Object.entries(FACTS).map(([id, text]) => ({ id, text }))
    )
  })

  it("call a fact implemented where a wire test names it, and refuse the others with a reason", () => {
    assert.deepStrictEqual([ledger.untested, ledger.unknown, ledger.both], [[], [], []])
    const refused = facts.filter((fact) => fact.refused !== null).map((fact) => [fact.id, fact.refused])
    assert.deepStrictEqual(Object.fromEntries(refused), REFUSED)
  })

  it("state 50 error codes, each with one status", () => {
    assert.lengthOf([...ERROR_CODES], 50)
    assert.sameDeepMembers(
      errorCodes.map(({ code, status }) => [code, status]),
      [...ERROR_CODES].map(([code, { status }]) => [code, status])
    )
  })

  it("have a title for each section and topic, and every decision once", () => {
    assertNone(facts, ({ id }) => sections[familyOf(id)] === undefined)
    assertNone(decisions, ({ id }) => topics[familyOf(id)] === undefined)
    assert.strictEqual(new Set(decisions.map(({ id }) => id)).size, decisions.length)
    assertNone(decisions, ({ point, decision }) => point === "" || decision === "")
  })
})
