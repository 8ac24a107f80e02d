/** The size of an explanation of a record. */
import { assert, describe, it } from "@effect/vitest"
import { explainedOf, fitting } from "../../src/mcp/Record.ts"
import type { Explanation } from "../../src/verify/Explanation.ts"
import { valuesOf } from "../support/rows.ts"

const long = "x".repeat(3_000_000)

const explanation: Explanation = {
  companyId: 1n,
  resource: "things",
  id: "1",
  state: "exists",
  versions: Array.from({ length: 60 }, (_one, index) => ({
    version: BigInt(index + 1),
    validFrom: null,
    validTo: null,
    op: "update",
    origin: "scan",
    source: null,
    runId: null,
    run: null,
    changes: [{ field: "name", from: long, to: null }],
    record: long
  })),
  quarantine: [
    {
      field: null,
      reason: long,
      bytes: long,
      source: "GET /things",
      runId: 1n,
      times: 1n,
      firstSeenAt: null,
      lastSeenAt: null,
      resolvedAt: null
    }
  ],
  rereads: [{ field: "id", value: long, askedAt: null }],
  fullScan: null,
  checkpoints: []
}

describe("an explanation of a record", () => {
  it("has its last versions, and texts of the documented size", () => {
    const explained = explainedOf(explanation)
    assert.deepStrictEqual(
      valuesOf(explained.versions, "version"),
      Array.from({ length: 50 }, (_one, index) => index + 11)
    )
    assert.strictEqual(explained.record, `${"x".repeat(20_000)}… (3000000 characters)`)
    for (const text of [
      explained.versions[0]!.changes[0]!.from,
      explained.quarantine[0]!.reason,
      explained.quarantine[0]!.bytes,
      explained.to_be_read_again[0]!.value
    ]) {
      assert.strictEqual(text, `${"x".repeat(2_000)}… (3000000 characters)`)
    }
  })

  it("is left out where the others fill the answer, and the first never is", () => {
    const one = explainedOf(explanation)
    const shown = fitting(Array.from({ length: 30 }, () => one))
    assert.isAtLeast(shown.length, 1)
    assert.isBelow(shown.length, 30)
    assert.isBelow(JSON.stringify(shown).length, 1_000_100)
    const first = { ...one, cursors: [{ lane: "live", cursor: long, updated_at: null }] }
    assert.deepStrictEqual(fitting([first, one]), [first])
  })
})
