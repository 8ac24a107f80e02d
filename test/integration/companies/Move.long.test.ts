/** The refusals of the move of a company between two warehouses, with the real commands and the reference server. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWarehouses, move, otherKey, rowsBehind, succeed } from "./warehouses.ts"
import { liveTest } from "../../support/live.ts"

liveTest(
  "tributary company move is refused with the reason where the target does not fit, and changes nothing",
  function* () {
    const { from, to, run, add } = yield* makeWarehouses
    const refused = Effect.fnUntraced(function* (
      reason: string,
      args: ReadonlyArray<string> = move,
      more: Readonly<Record<string, string>> = {}
    ) {
      const { code, stderr } = yield* run(from, args, more)
      assert.strictEqual(code, 2, stderr)
      assert.include(stderr, reason)
    })
    yield* refused("already", ["company", "move", "south", "--to-env", "DATABASE_URL"])
    yield* refused("has no company west", ["company", "move", "west", "--to-env", "OTHER"])
    yield* refused("does not open the token of company south", move, { TRIBUTARY_COMPANIES_KEY: otherKey })
    assert.strictEqual((yield* run(from, ["company", "move", "south"])).code, 1)
    assert.strictEqual(yield* from.count("tributary.company_settings where move_state is not null"), 0)

    yield* from.query("update tributary.warehouse set pause_reason = 'a test'")
    yield* from.query("insert into tributary.outbox (company, resource) values ('south', 'customers')")
    yield* refused("Pushes are paused: a test")
    yield* from.query("update tributary.warehouse set pause_reason = null")
    yield* from.query("delete from tributary.outbox")

    yield* to.query("insert into tributary.migrations (id, name, checksum) values (9999, 'later', '')")
    yield* refused("was applied by a newer version")
    yield* to.query("delete from tributary.migrations where id = 9999")

    // The number of the company has rows there, of another name.
    yield* to.query("insert into tributary.companies (company, company_id) values ('other', 2)")
    yield* refused("tributary.companies")
    yield* to.query("delete from tributary.companies")

    yield* to.query("create table erp.customers_kept (like erp.customers)")
    yield* to.query("alter table erp.customers add column remark text")
    yield* refused("remark is missing here and text in the target")
    yield* to.query("alter table erp.customers drop column remark")
    assert.deepStrictEqual(yield* rowsBehind(to), [])

    yield* add(to, "south")
    yield* refused("the target has a company south already")
    succeed(yield* run(to, ["company", "remove", "south", "--erase", "--yes"]))
    succeed(yield* run(from, move))
  },
  400_000
)
