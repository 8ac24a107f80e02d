/** The radar against servers as documented. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { change, compare, installation, journalOf, shown } from "./support.ts"

describe("a comparison with an installation as documented", () => {
  for (const data of ["demo", "empty"] as const) {
    it.effect(`reports no difference: ${data}`, () =>
      Effect.gen(function* () {
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
    )
  }
})
