/** The page of the invariants, on Postgres. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { routes } from "../../src/dashboard/pages/Invariants.ts"
import { address } from "../../src/web/Escape.ts"
import { ask, holdsHostile, hostile, warehouse } from "./asking.ts"

layer(warehouse, { excludeTestServices: true, timeout: "30 seconds" })("the page of the invariants", (it) => {
  it.effect("shows each rule with its state, and the records that violate one", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      assert.include((yield* ask(routes, [], "/invariants")).read, "None was evaluated yet.")
      yield* sql`insert into tributary.companies (company, company_id) values ('north', 1), (${hostile}, 2)`
      yield* sql`
        insert into tributary.invariants (name, severity, statement, comment, resources, query)
        values ('broken', 'warning', 'It works.', 'It works.', '{things}', ''),
               ('priced', 'critical', ${hostile}, ${hostile}, '{things}', ''),
               ('sound', 'warning', 'All is well.', 'All is well.', '{things}', '')`
      yield* sql`
        insert into tributary.invariant_states (invariant, company_id, state, error, violations, open_violations, evaluated_at)
        values ('broken', 1, 'failed', ${hostile}, 0, 0, tributary.now()), ('priced', 1, 'violated', null, 3, 2, tributary.now()),
               ('priced', 2, 'violated', null, 1, 1, tributary.now()), ('sound', 1, 'holds', null, 0, 0, tributary.now())`
      yield* sql`
        insert into tributary.violations (invariant, company_id, resource, record_id, detail, opened_at, ended_at)
        values ('priced', 1, 'things', 7, 'the price is -1', tributary.now(), null), ('priced', 1, 'things', 8, ${hostile}, null, null),
               ('priced', 2, 'things', 9, ${hostile}, tributary.now(), null),
               ('priced', 1, 'things', 10, 'the price was -2', tributary.now(), tributary.now())`
      const all = yield* ask(routes, [], "/invariants")
      assert.match(all.read, /priced .* violated confirmed after the next scan of things critical 3 1 2 /)
      assert.match(all.read, /broken .* failed for 1 company/)
      assert.match(all.read, /sound .* holds warning 0 0 1 /)
      assert.match(all.read, /Evaluated priced .* broken .* sound/)
      const one = yield* ask(routes, [], "/invariants?invariant=priced")
      assert.match(one.read, /things 7 north open .*the price is -1/)
      assert.include(one.text, 'href="/records?company=north&amp;resource=things&amp;id=7"')
      assert.match(one.read, /things 8 north unconfirmed/)
      assert.notInclude(one.read, "things 10")
      const ended = yield* ask(routes, [], "/invariants?invariant=priced&state=ended")
      assert.match(ended.read, /things 10 north ended .*the price was -2/)
      const other = yield* ask(routes, [], address("/invariants", { invariant: "priced", company: hostile }))
      assert.include(other.read, "things 9")
      assert.notInclude(other.read, "things 7")
      for (const { text } of [all, one, ended, other]) assert.isFalse(holdsHostile(text))
      for (const query of ["invariant=nothing", "invariant=priced&company=nowhere"]) {
        assert.deepInclude(yield* Effect.flip(ask(routes, [], `/invariants?${query}`)), { status: 404 })
      }
      assert.deepInclude(yield* Effect.flip(ask(routes, [], "/invariants?invariant=priced&state=odd")), { status: 400 })
    })
  )
})
