/** The files of invariants. */
import { assert, describe, test } from "@effect/vitest"
import { invariantOf, queryOf } from "../../src/invariants/Invariant.ts"

const file = (text: string) => () => invariantOf("bad", text)
const comment = "-- A price is positive.\n--\n-- Severity: critical\n-- Counts: all.\n"

describe("the file of an invariant", () => {
  test("has the rule, its severity and its resources", () => {
    const sql = "select company_id, 'things' as resource, id, 'x' as detail from {{things}} join {{gadgets}} using (id)"
    const invariant = invariantOf("priced", comment + sql)
    assert.deepStrictEqual(invariant, {
      name: "priced",
      severity: "critical",
      statement: "A price is positive.",
      comment: "A price is positive.\n\nCounts: all.",
      resources: ["gadgets", "things"],
      sql
    })
    assert.include(queryOf(invariant, { current: "erp_asof" }), '"erp_asof"."things" join "erp_asof"."gadgets"')
  })

  test("is rejected without one of them, and where it depends on the day", () => {
    assert.throws(file("select 1 from {{things}}"), /Severity: warning\|critical/)
    assert.throws(file("-- A price is positive.\n--\nselect 1 from {{things}}"), /Severity/)
    assert.throws(file("-- Severity: critical\n-- A price\n--\nselect 1 from {{things}}"), /the rule in one line/)
    assert.throws(file(`${comment}select 1`), /names no table/)
    assert.throws(file(`${comment}select {{as_of}} from {{things}}`), /may not depend on the day/)
    assert.throws(file(comment), /names no table/)
  })
})
