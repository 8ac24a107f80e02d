/** The evaluation of invariants: what makes a rule due, how violations open and end, and rules that misbehave. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import * as Retention from "../../../src/retention/Retention.ts"
import * as Problems from "../../../src/status/Problems.ts"
import { ReaderOptions } from "../../../src/warehouse/Reader.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { databaseUrl } from "../../support/postgres.ts"
import { evaluate, pass, prepare, priced, ruleOf, test } from "./evaluating.ts"
import { changed, current, run, scanned, states } from "./landings.ts"
import { assertCount } from "../../support/assertions.ts"

/** A second later, the resource is read to its end again, with this change. */
const scan = (sql: string | null = null) =>
  Effect.gen(function* () {
    yield* pass(1)
    if (sql !== null) {
      yield* run(sql)
      yield* changed([1], ["things"])
    }
    yield* scanned([1], ["things"])
  })

const observe = Effect.map(Problems.read(["north"]), (all) =>
  all.filter(({ kind }) => kind === "invariant" || kind === "unevaluated")
)

describe("a rule", () => {
  test("is evaluated after a change of its tables only, and waits until changes have stopped", function* () {
    yield* prepare
    assert.strictEqual(yield* evaluate([priced]), 1)
    assert.strictEqual(yield* evaluate([priced]), 0)
    yield* changed([1], ["others"])
    assert.strictEqual(yield* evaluate([priced]), 0)
    yield* changed([1], ["things"])
    assert.strictEqual(yield* evaluate([priced], { isNow: false }), 0, "the changes are gathered")
    yield* pass(40)
    assert.strictEqual(yield* evaluate([priced], { isNow: false }), 1)
    assert.strictEqual(yield* evaluate([{ ...priced, severity: "warning" }]), 0, "its query is the same")
    assert.strictEqual(yield* evaluate([{ ...priced, sql: `${priced.sql} and true` }]), 1)
    assert.strictEqual(yield* evaluate([]), 0)
    assert.deepStrictEqual(yield* states, [], "the rule is gone")
  })

  test("waits until all its resources were read to their end", function* () {
    yield* prepare
    const both = { ...priced, resources: ["gadgets", "things"] }
    assert.strictEqual(yield* evaluate([both]), 0)
    assert.deepStrictEqual(yield* states, ["price_is_positive of 1: waiting (not read to the end yet: gadgets)"])
    yield* scanned([1], ["gadgets"])
    assert.strictEqual(yield* evaluate([both]), 1)
    assert.deepStrictEqual(yield* states, ["price_is_positive of 1: holds"])
  })

  test("is evaluated again where the feed no longer has the changes since", function* () {
    yield* prepare
    yield* evaluate([priced])
    yield* run(
      "update tributary.change_feed set removed_through = last_position + 5, last_position = last_position + 9"
    )
    assert.strictEqual(yield* evaluate([priced]), 1)
  })
})

describe("a violation", () => {
  test("opens when it is still the same after another read, and ends by itself", function* () {
    yield* prepare
    yield* evaluate([priced])
    yield* scan("update erp.things set price = -1 where id = 3")
    yield* evaluate([priced])
    assert.deepStrictEqual(yield* current, ["price_is_positive of 1: things 3 unconfirmed"])
    assert.deepStrictEqual(yield* observe, [])
    // Its figures changed between two reads: it may be a moment between them.
    yield* scan("update erp.things set price = -2 where id = 3")
    yield* evaluate([priced])
    assert.deepStrictEqual(yield* current, ["price_is_positive of 1: things 3 unconfirmed"])
    yield* scan()
    assert.strictEqual(yield* evaluate([priced]), 1, "a read without a change confirms it")
    assert.deepStrictEqual(yield* current, ["price_is_positive of 1: things 3"])
    assert.strictEqual(yield* evaluate([priced]), 0)
    const [alert] = yield* observe
    assert.deepInclude(alert, { company: "north", subject: "price_is_positive", level: 1 })
    assert.strictEqual(alert!.what, "1 record violates it: the price is -2")
    yield* scan("update erp.things set price = -3 where id = 3")
    yield* evaluate([priced])
    assert.deepStrictEqual(yield* current, ["price_is_positive of 1: things 3"], "it stays open")
    yield* scan("update erp.things set price = 3 where id = 3")
    yield* evaluate([priced])
    assert.deepStrictEqual(yield* current, [])
    assert.deepStrictEqual(yield* observe, [])
    const kept = Duration.days(90)
    const retention = { runs: kept, quarantine: kept, outbox: kept, events: kept }
    assert.strictEqual((yield* Retention.pass(retention)).violations, 0)
    yield* pass(91 * 86_400)
    assert.strictEqual((yield* Retention.pass(retention)).violations, 1)
  })

  test("is stored for at most 1,000 records, and all are counted", function* () {
    yield* prepare
    yield* run("insert into erp.things select 1, n, -1 from generate_series(11, 3010) n")
    const counts = run<{ violations: string; open: string; stored: string }>(
      `select violations::text, open_violations::text as open, (select count(*)::text from tributary.violations where ended_at is null) as stored
         from tributary.invariant_states`
    )
    yield* evaluate([priced])
    assert.deepStrictEqual(yield* counts, [{ violations: "3000", open: "0", stored: "1000" }])
    yield* scan()
    yield* evaluate([priced])
    assert.deepStrictEqual(yield* counts, [{ violations: "3000", open: "3000", stored: "1000" }])
    // The first ones are repaired: others take their places, and none ends that is still there.
    yield* scan("update erp.things set price = 1 where id <= 510")
    yield* evaluate([priced])
    assert.deepStrictEqual(yield* counts, [{ violations: "2500", open: "2000", stored: "1000" }])
    assert.deepStrictEqual(
      yield* run("select count(*)::int as ended from tributary.violations where ended_at is not null"),
      [{ ended: 500 }]
    )
    yield* scan("update erp.things set price = 1")
    yield* evaluate([priced])
    assert.deepStrictEqual(yield* counts, [{ violations: "0", open: "0", stored: "0" }])
  })
})

test("a change that has no position yet makes the rule due: its process may have been killed after the landing", function* () {
  yield* prepare
  yield* scan("update erp.things set price = -1 where id = 3")
  yield* evaluate([priced])
  yield* scan()
  yield* evaluate([priced])
  assert.deepStrictEqual(yield* current, ["price_is_positive of 1: things 3"])
  // The landing of a deletion, as an event brings it.
  yield* run("delete from erp.things where id = 3")
  yield* run(
    `insert into tributary.change_batches (company_id, resource, history, ids, changes, began)
       values (1, 'things', 'erp_history.things', '{3}', 1, tributary.now())`
  )
  assert.strictEqual(yield* evaluate([priced]), 1)
  assert.deepStrictEqual(yield* current, [])
})

describe("a rule that misbehaves", () => {
  test("changes nothing, is reported, and stops no other rule", function* () {
    yield* prepare
    yield* run("update erp.things set price = -1 where id = 3")
    const select = "select 1::bigint as company_id, 'things' as resource, 1::bigint as id, 'x' as detail"
    const bad = [
      ruleOf("a_syntax", "select from where {{things}}"),
      ruleOf("b_zero", `${select} from {{things}} where 1 / (price - 5) > 0`),
      ruleOf("c_slow", `${select} from {{things}} where pg_sleep(10) is not null`),
      ruleOf(
        "d_write",
        "with gone as (delete from {{things}} returning *) select _company_id as company_id, 'things' as resource, id, 'x' as detail from gone"
      ),
      ruleOf(
        "e_two",
        `${select} from {{things}}) v) r) w) v; delete from {{things}}; select * from (select * from (select * from (select * from (select 1`
      ),
      ruleOf(
        "f_function",
        `${select} from {{things}} where set_config('transaction_read_only', 'off', false) is not null`
      ),
      ruleOf(
        "g_secret",
        "select 1::bigint as company_id, 'things' as resource, 1::bigint as id, w::text as detail from tributary.webhook_secrets w, {{things}}"
      ),
      ruleOf("h_other", "select _company_id as company_id, 'others' as resource, id, 'x' as detail from {{things}}"),
      ruleOf(
        "i_null",
        "select _company_id as company_id, 'things' as resource, null::bigint as id, 'x' as detail from {{things}}"
      ),
      ruleOf("j_column", "select _company_id as company_id, id from {{things}}"),
      ruleOf(
        "k_huge",
        `select n as company_id, 'things' as resource, n as id, repeat('x', 1000) as detail from {{things}}, generate_series(1, 1000000000) n`
      ),
      ruleOf(
        "l_table",
        "select _company_id as company_id, 'things' as resource, id, 'x' as detail from {{things}} natural join erp.missing"
      )
    ]
    assert.strictEqual(yield* evaluate([...bad, priced], { timeout: Duration.millis(700) }), bad.length + 1)
    const reported = yield* states
    const reasons = [
      "syntax error at or near",
      "division by zero",
      "canceling statement due to statement timeout",
      "WITH clause containing a data-modifying statement must be at the top level",
      "cannot insert multiple commands into a prepared statement",
      "transaction read-write mode must be set before any query",
      "permission denied for table webhook_secrets",
      "it answered the resource others, which it does not read",
      "it answered a row without resource, id or detail",
      "column v.resource does not exist",
      "canceling statement due to statement timeout",
      'relation "erp.missing" does not exist'
    ]
    for (const [index, reason] of reasons.entries()) {
      assert.include(reported[index]!, `${bad[index]!.name} of 1: failed (${reason}`)
    }
    assert.deepStrictEqual(yield* current, ["price_is_positive of 1: things 3 unconfirmed"])
    assert.deepStrictEqual(yield* run("select count(*)::int as things from erp.things"), [{ things: 10 }])
    const alerts = yield* observe
    assert.lengthOf(alerts, bad.length)
    assert.strictEqual(alerts[0]!.subject, "a_syntax")
    assert.match(alerts[0]!.what, /^it cannot be evaluated: syntax error/)
    // It is tried again after a while, and its violations stay until then.
    assert.strictEqual(yield* evaluate([...bad, priced], { isNow: false }), 0)
    yield* pass(130)
    yield* run("delete from erp.things where price = 5")
    assert.strictEqual(yield* evaluate([bad[1]!, priced], { isNow: false }), 1)
    assert.include(yield* states, "b_zero of 1: unconfirmed")
  })

  test("is reported where no reader can log in", function* () {
    yield* prepare
    const url = new URL(Redacted.value(yield* databaseUrl))
    url.username = "missing"
    yield* Effect.provideService(evaluate([priced]), ReaderOptions, {
      url: Redacted.make(url.href),
      datasets: datasetsDefault
    })
    const [reported] = yield* states
    assert.match(reported!, /^price_is_positive of 1: failed \(.*missing/)
    yield* pass(130)
    yield* evaluate([priced], { isNow: false })
    assert.deepStrictEqual(yield* states, ["price_is_positive of 1: holds"])
  })

  test("fails for one company of many alone", function* () {
    yield* prepare
    const companies = Array.from({ length: 60 }, (_one, index) => index + 1)
    yield* run("insert into erp.things select c, 1, 1 from generate_series(2, 60) c")
    yield* run("update erp.things set price = 0 where _company_id = 30")
    yield* scanned(companies, ["things"])
    yield* changed(companies, ["things"])
    const divided = ruleOf(
      "divided",
      "select _company_id as company_id, 'things' as resource, id, 'x' as detail from {{things}} where 1 / price < 0"
    )
    assert.strictEqual(yield* evaluate([divided]), 60)
    assertCount(yield* states, (line) => line.includes("failed"), 50)
    yield* pass(130)
    assert.strictEqual(yield* evaluate([divided], { isNow: false }), 50)
    assert.deepStrictEqual(
      (yield* states).filter((line) => !line.endsWith("holds")),
      ["divided of 30: failed (division by zero)"]
    )
  })
})

test("a company that moves to another warehouse is not evaluated until it is resumed", function* () {
  yield* prepare
  yield* run(
    "insert into tributary.company_settings (company, url, token, move_id, move_state) values ('north', 'https://127.0.0.1:1/v2', 'none', 'm', 'leaving')"
  )
  assert.strictEqual(yield* evaluate([priced]), 0)
  assert.strictEqual(yield* evaluate([priced], { isNow: false }), 0)
  yield* run("update tributary.company_settings set move_state = null, move_id = null")
  assert.strictEqual(yield* evaluate([priced]), 1)
})

test("two evaluations at the same time store one result", function* () {
  yield* prepare
  yield* run("update erp.things set price = -1 where id <= 5")
  yield* Effect.forEach([1, 2, 3, 4], () => evaluate([priced]), { concurrency: "unbounded" })
  assert.lengthOf(yield* current, 5)
  assert.deepStrictEqual(yield* run("select evaluations::int from tributary.invariant_states"), [{ evaluations: 1 }])
  assert.strictEqual(yield* evaluate([priced]), 0)
})

test("300 companies are evaluated by a few statements, and only those that changed", function* () {
  yield* prepare
  const companies = Array.from({ length: 300 }, (_one, index) => index + 1)
  yield* run("insert into erp.things select c, n, n from generate_series(2, 300) c, generate_series(1, 100) n")
  yield* run("analyze erp.things")
  yield* scanned(companies, ["things"])
  yield* changed(companies, ["things"])
  yield* run("update erp.things set price = -1 where id = 7 and _company_id % 100 = 0")
  assert.strictEqual(yield* evaluate([priced]), 300)
  assert.deepStrictEqual(
    yield* current,
    [100, 200, 300].map((company) => `price_is_positive of ${company}: things 7 unconfirmed`)
  )
  yield* changed([250], ["things"])
  assert.strictEqual(yield* evaluate([priced]), 1)
})
