/** The radar against servers as documented. */
import { assert, describe } from "@effect/vitest"
import { change, compare, installation, journalOf, shown } from "./support.ts"
import { test } from "../support/suite.ts"

describe("a comparison with an installation as documented", () => {
  for (const data of ["demo", "empty"] as const) {
    test(`reports no difference: ${data}`, function* () {
      const one = yield* installation(data)
      change(one, "PUT", "/limits", { requestsPerMinute: null })
      const { report } = yield* compare(one)
      assert.deepStrictEqual(shown(report), [])
      assert.isNull(report.ended)
      const journal = journalOf(one)
      assert.isAtMost(journal.length, 300)
      assert.strictEqual(journal.length, report.requests)
      assert.deepStrictEqual([...new Set(journal.map(({ method }) => method))], ["GET"])
    })
  }
})
