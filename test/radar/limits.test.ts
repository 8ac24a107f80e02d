/** Limits, rights and faults: the radar stays polite, and says what it could not compare. */
import { assert, describe } from "@effect/vitest"
import { change, compare, installation, journalOf, shown, variantsOf } from "./support.ts"
import { test } from "../support/suite.ts"

describe("the limits of an installation", () => {
  for (const form of ["seconds", "date"]) {
    test(`are met without a request before Retry-After: ${form}`, function* () {
      const one = yield* installation("empty")
      change(one, "PUT", "/limits", { requestsPerMinute: 50 })
      change(one, "PUT", "/dialect", { retryAfter: form })
      const { report } = yield* compare(one)
      assert.isNull(report.ended)
      assert.deepStrictEqual(variantsOf(report), [
        "requestsPerMinute=50",
        ...(form === "date" ? ["retryAfter=date"] : [])
      ])
      assert.deepStrictEqual(report.settings, [{ path: "budget.requests_per_minute", value: 40 }])
      const journal = journalOf(one)
      assert.isAtMost(journal.length, 300)
      const refused = journal.filter(({ status }) => status === 429).length
      // One 429 for each minute.
      assert.isAtMost(refused, Math.ceil(journal.length / 50), `${refused} of ${journal.length}`)
      assert.strictEqual(report.rateLimited, refused)
    })
  }

  test("are not met at a lower rate", function* () {
    const one = yield* installation("empty")
    change(one, "PUT", "/limits", { requestsPerMinute: 50 })
    assert.deepStrictEqual(shown((yield* compare(one, { requestsPerMinute: 45 })).report), [])
    assert.isTrue(journalOf(one).every(({ status }) => status !== 429))
  })

  test("of the comparison itself are kept, and what is missing is named", function* () {
    const one = yield* installation("demo")
    const { report } = yield* compare(one, { requestsMax: 40 })
    assert.strictEqual(journalOf(one).length, 40)
    assert.deepStrictEqual(shown(report), [])
    const reasons = report.coverage
      .filter(({ check }) => check === "modifiedsince.offered")
      .flatMap(({ unchecked }) => unchecked)
    assert.deepStrictEqual(reasons, ["the bound of 40 requests was reached"])
  })

  test("include no difference where another program changes the record that a filter looks for", function* () {
    const one = yield* installation("demo")
    let changes = 0
    const { report } = yield* compare(one, {
      intercept: (path) => {
        if (!/\/customers\?/.test(path) || !path.includes("name=")) return null
        changes += 1
        const records = Array.from({ length: 60 }, (_, at) => ({ id: at + 1, name: `Renamed ${changes}` }))
        change(one, "POST", "/records", { company: 1, resource: "customers", records })
        return null
      }
    })
    assert.isAbove(changes, 1)
    assert.deepStrictEqual(shown(report), [])
    assert.include(report.coverage.find(({ check }) => check === "filters")!.unchecked, "records changed meanwhile")
  })

  test("count repeated requests too", function* () {
    const one = yield* installation("empty")
    change(one, "POST", "/faults", { rules: [{ kind: "status", status: 503, rate: 0.3 }], seed: 3 })
    const { report } = yield* compare(one, { requestsMax: 120 })
    const journal = journalOf(one)
    assert.strictEqual(journal.length, 120)
    assert.isTrue(journal.some(({ status }) => status === 503))
    assert.deepStrictEqual(shown(report), [])
  })
})

describe("the rights of a token", () => {
  test("limit what is compared, and are no difference", function* () {
    const one = yield* installation("demo")
    change(one, "PUT", "/companies/1", { features: { estimating: false } })
    const { report } = yield* compare(one, { scopes: ["customers:read", "estimating:read"] })
    assert.deepStrictEqual(shown(report), [])
    const { access } = report
    assert.deepInclude(access.refused, {
      reason: "the module estimating is not licensed",
      resources: ["estquotepricelists", "estquotes"]
    })
    assert.isTrue(
      access.refused.some(
        ({ reason, resources }) => reason === "the token lacks the scope orders:read" && resources.includes("orders")
      )
    )
    const sized = report.coverage.filter(({ check }) => ["list.key", "page.limit", "page.maximum"].includes(check))
    assert.isTrue(sized.every(({ checked }) => checked > 0))
    assert.isTrue(report.coverage.some(({ check, unchecked }) => check === "access.resource" && unchecked.length > 3))
  })

  test("that end everything end the comparison after one request", function* () {
    const one = yield* installation("demo")
    const { report } = yield* compare(one, {
      intercept: (path) =>
        path.endsWith("/me")
          ? { status: 401, headers: {}, body: '{"error":{"code":"token_revoked","message":"no"}}' }
          : null
    })
    assert.strictEqual(report.ended?.reason._tag, "Unauthorized")
    assert.strictEqual(report.requests, 1)
  })

  test("and a service that is down end it early", function* () {
    const one = yield* installation("demo")
    change(one, "POST", "/faults", { rules: [{ kind: "html", status: 503 }] })
    const { report } = yield* compare(one)
    assert.strictEqual(report.ended?.reason._tag, "ServerFault")
    assert.isAtMost(report.requests, 15)
  })
})
