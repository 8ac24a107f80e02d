/** The pages of an installation with many companies: totals, search and parts instead of every resource. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as CompanyStates from "../../src/status/CompanyStates.ts"
import { kindTraits } from "../../src/status/ProblemKinds.ts"
import * as CountCompanies from "../../src/tasks/CountCompanies.ts"
import { companyName, fillFleet, fingerprintOf } from "../support/fleet.ts"
import { ask, shownCompany, showing } from "../support/pages.ts"
import { layerPages } from "../support/postgres.ts"
import { nextOf, partsOf } from "./markup.ts"
import { suite } from "../support/suite.ts"

const many = 120
const companies = Array.from({ length: many }, (_, index) => ({
  ...shownCompany(companyName(index + 1), BigInt(index + 1)),
  fingerprint: fingerprintOf(index + 1)
}))

/** The companies of the table of a page, in its order. */
const namesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/<th scope="row"[^>]*> ?<a href="[^"]*" ?>(c\d{5})<\/a/g)].map(([, name]) => name!)

const counted = Layer.effectDiscard(Effect.andThen(fillFleet(many, 6), CountCompanies.countDue())).pipe(
  Layer.provideMerge(layerPages)
)

suite("the pages of many companies", counted, (test) => {
  test("show totals and the worst companies first, and find the others by name and part by part", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`delete from tributary.company_states`
    const url = yield* showing(companies)
    const page = (path: string) => Effect.map(ask(`${url}${path}`), ({ text }) => text.replaceAll(/\s+/g, " "))

    assert.include(yield* page("/"), "120 companies were not counted yet")
    yield* CountCompanies.countDue()
    const first = yield* page("/")
    assert.match(first, /720 resources of 120 companies: 1 failing, 1 late, 717 fresh, 1 paused/)
    assert.deepStrictEqual(namesIn(first).slice(0, 2), ["c00100", "c00050"])
    assert.include(first, "the service failed (500)")
    const second = namesIn(yield* page(nextOf(first)!))
    assert.lengthOf(new Set([...namesIn(first), ...second]), 100)
    assert.deepStrictEqual(namesIn(yield* page("/?state=late")), ["c00050"])
    const tens = Array.from({ length: 10 }, (_, index) => companyName(110 + index))
    assert.deepStrictEqual(namesIn(yield* page("/?text=C0011")), tens)
    assert.include(yield* page("/?after=nothing"), "not a place in the list")

    const one = yield* page("/companies/c00100")
    assert.include(one, "Not all is well")
    assert.include(one, '"/resources?company=c00100"')
    assert.notInclude(one, "c00101")
    assert.include(yield* page("/companies/none"), "and 100 more")
  })

  test("state problems with the numbers of plain SQL, each a link to the companies that it counts", function* () {
    const sql = yield* SqlClient.SqlClient
    const url = yield* showing(companies)
    const page = (path: string) => Effect.map(ask(`${url}${path}`), ({ text }) => text.replaceAll(/\s+/g, " "))
    const first = yield* page("/")
    const countOf = (query: string) => Effect.map(sql.unsafe<{ n: number }>(query), ([row]) => row!.n)
    const signs = {
      quarantined: "select count(*)::int as n from tributary.quarantine where resolved_at is null",
      dead_letters: "select count(*)::int as n from tributary.inbox where state = 'dead_letter'",
      gaps: "select count(*)::int as n from tributary.delivery_gaps where closed_at is null",
      rejected: "select count(*)::int as n from tributary.outbox where state = 'rejected'",
      subscriptions_down: "select count(*)::int as n from tributary.subscriptions where state <> 'active'"
    } as const
    const kindOf = {
      quarantined: "quarantine",
      dead_letters: "dead_letters",
      gaps: "gap",
      rejected: "rejected",
      subscriptions_down: "subscription"
    } as const
    for (const sign of CompanyStates.signs) {
      const amount = yield* countOf(signs[sign])
      const { unit } = kindTraits[kindOf[sign]]
      const shown = new RegExp(`<strong>(\\d+)</strong> ${unit[amount === 1 ? 0 : 1]}</a>`).exec(first)
      // The subscription of the fleet has a gap, and is a consequence of it.
      assert.strictEqual(shown === null ? null : Number(shown[1]), sign === "subscriptions_down" ? null : amount, sign)
      const [listed] = yield* sql<{ names: ReadonlyArray<string> }>`
          select array_agg(company order by severity desc, company) as names from tributary.company_states
           where ${sql(sign)} > 0`
      assert.deepStrictEqual(namesIn(yield* page(`/?sign=${sign}`)), listed!.names, sign)
    }
    const parts = [...first.matchAll(/<a href="\/\?state=([a-z-]+)" aria-label="(\d+) [a-z ]+"/g)]
    const states = yield* sql<{ state: string; n: number }>`
        select state, count(*)::int as n from tributary.company_states group by 1`
    assert.deepStrictEqual(
      Object.fromEntries(parts.map(([, state, n]) => [state!, Number(n)])),
      Object.fromEntries(states.map(({ state, n }) => [state, n]))
    )
    assert.include(first, 'id="last-day"')
    assert.notInclude(yield* page("/?state=late"), 'id="last-day"')
  })

  test("list every company once in each order, part by part", function* () {
    const url = yield* showing(companies)
    // Failing companies whose data is young: a share with many digits, or with an exponent.
    const sql = yield* SqlClient.SqlClient
    yield* sql`update tributary.company_states set lateness = right(company, 5)::int / case when company < 'c00060' then 3e9 else 3e4 end
        where lateness = 0`
    for (const order of CompanyStates.orders) {
      const parts = yield* partsOf(`/?order=${order}`, (path) =>
        Effect.map(ask(`${url}${path}`), ({ text }) => ({ text: text.replaceAll(/\s+/g, " ") }))
      )
      const seen = parts.flatMap(namesIn)
      assert.lengthOf(seen, many, order)
      assert.strictEqual(new Set(seen).size, many, order)
      if (order === "name")
        assert.deepStrictEqual(
          seen,
          companies.map(({ name }) => name)
        )
      if (order === "lateness") assert.strictEqual(seen[0], "c00050")
    }
  })
})
