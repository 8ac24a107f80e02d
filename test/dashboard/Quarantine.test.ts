/** The quarantine pages and the retry of a record, against Postgres and the reference server. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { saveCompany } from "../support/companies.ts"
import { routes } from "../../src/dashboard/pages/Quarantine.ts"
import { address } from "../../src/web/Escape.ts"
import * as TaskQueue from "../../src/tasks/TaskQueue.ts"
import { clockIs, pagesNow } from "../support/postgres.ts"
import { ask, holdsHostile, hostile, unconnected } from "./asking.ts"
import { partsOf } from "./markup.ts"
import { makeStand, stand } from "./quarantined.ts"
import { suite } from "../support/suite.ts"
import { cellsOf, valuesOf } from "../support/rows.ts"
import { assertEach } from "../support/assertions.ts"

suite("the quarantine page", stand, (test) => {
  test("resolves an entry by its button once the record is repaired", function* () {
    const { company, put, entry, post, rows } = yield* makeStand()
    const page = yield* ask(routes, [company], `/quarantine/${entry}`)
    assert.include(page.read, "salesmen 2 in quarantine")
    assert.include(page.text, `href="/confirm/retry?id=${entry}"`)
    assert.include(page.read, "a NUL \\u0000 inside")
    const confirm = yield* ask(routes, [company], `/confirm/retry?id=${entry}`)
    assert.isFalse(confirm.isLive)
    assert.include(confirm.text, `<input type="hidden" name="id" value="${entry}" />`)
    assert.include(confirm.text, `name="form_token" value="token-of-the-form"`)

    const still = yield* ask(routes, [company], "/do/retry", post)
    assert.strictEqual(still.to, `/quarantine/${entry}`)
    assert.match(still.said!, /^It was read again and is still refused: name: /)
    assert.lengthOf(yield* rows, 1)

    yield* put("salesmen", [{ id: 2, name: "repaired" }])
    const retried = yield* ask(routes, [company], "/do/retry", post)
    assert.strictEqual(retried.said, "It was read again and landed; it has left quarantine.")
    assert.deepStrictEqual(valuesOf(yield* rows, "name"), ["Ada", "repaired"])
    const after = yield* ask(routes, [company], `/quarantine/${entry}`)
    assert.include(after.read, "resolved")
    assert.notInclude(after.text, "/confirm/retry")
    const again = yield* ask(routes, [company], "/do/retry", post)
    assert.strictEqual(again.said, "It has left quarantine already; nothing was done.")
  })

  test("reports a deleted record, a changed record, and a source that does not respond", function* () {
    const { id, company, put, control, post, sql } = yield* makeStand()
    yield* put("salesmen", [{ id: 2, name: "another NUL \u0000 inside" }])
    const changed = yield* ask(routes, [company], "/do/retry", post)
    assert.match(changed.said!, /still refused.* It has the number \d+ now, since its bytes have changed\.$/)
    yield* control("POST", "/faults", { rules: [{ kind: "status", status: 500, path: "/salesmen/2" }] })
    const failed = yield* ask(routes, [company], "/do/retry", post)
    yield* control("DELETE", "/faults")
    assert.match(failed.said!, /^It could not be read: .*500.* What to do: .+\.$/)
    yield* control("POST", "/remove", { company: id, resource: "salesmen", id: 2 })
    const gone = yield* ask(routes, [company], "/do/retry", post)
    assert.match(gone.said!, /^It was read again: the source has no such record any more/)
    assert.lengthOf(
      yield* sql`select 1 from tributary.quarantine where company_id = ${id} and resolved_at is null`,
      0,
      gone.said!
    )
  })

  test("offers a sync if the record has no id or cannot be fetched alone", function* () {
    const { id, name, company, sql, sync } = yield* makeStand()
    const add = (resource: string, record: string | null, bytes = "{}") =>
      Effect.map(
        sql<{ id: bigint }>`
            insert into tributary.quarantine (company_id, resource, record_id, field, reason, bytes, run_id, source,
              first_seen_at, last_seen_at)
            values (${id}, ${resource}, ${record}, 'id', 'no number', ${bytes}, 1, 'GET /x', tributary.now(), tributary.now())
            returning id`,
        (rows) => ({ id: String(rows[0]!.id) })
      )
    const numberless = yield* add("salesmen", null)
    const without = yield* ask(routes, [company], "/do/retry", numberless)
    assert.match(without.said!, /^Its number cannot be read, so a full scan of salesmen was requested/)
    const list = yield* ask(routes, [company], "/do/retry", yield* add("orderdeposits", "7"))
    assert.match(list.said!, /^The source does not offer single records of this resource/)
    const unknown = yield* ask(routes, [company], "/do/retry", yield* add("nothing", "7"))
    assert.match(unknown.said!, /^nothing is not among the resources that are synced/)
    const tasks = (yield* TaskQueue.readTasks).filter((task) => task.company === name)
    assert.deepStrictEqual(cellsOf(tasks, "resource", "askedFull", "askedBy"), [
      ["orderdeposits", true, "the page"],
      ["salesmen", true, "the page"]
    ])
    // A full scan resolves entries that it did not see, but no later ones.
    yield* sql.unsafe(clockIs(`timestamptz ''${pagesNow}'' + interval ''1 minute''`))
    assert.strictEqual((yield* sync(true)).status, "quarantined")
    const after = yield* add("salesmen", null, "another")
    const gone = yield* ask(routes, [company], "/do/retry", numberless)
    assert.strictEqual(gone.said, "It has left quarantine already; nothing was done.")
    assert.match(
      (yield* ask(routes, [company], "/do/retry", after)).said!,
      /^Its number cannot be read, so a full scan/
    )
    const noCompany = yield* ask(routes, [], "/do/retry", yield* add("salesmen", "9"))
    assert.match(noCompany.said!, /^No configured company is known to have the number/)
  })

  test("pages by state, company and resource, and shows foreign text escaped", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* saveCompany(hostile, 900n)
    yield* sql`
        insert into tributary.quarantine (company_id, resource, record_id, field, reason, bytes, run_id, source,
          first_seen_at, last_seen_at, resolved_at)
        select 900, case when n % 2 = 0 then ${hostile} else 'other' end, n::text, ${hostile}, ${hostile},
               json_build_object('id', n, 'price', 1e400::numeric, 'a', ${hostile}::text)::text, 1, ${hostile}, tributary.now(), tributary.now(),
               case when n > 120 then tributary.now() end
          from generate_series(1, 130) n`
    const company = unconnected(hostile)
    const show = (query: Record<string, string>) => ask(routes, [company], address("/quarantine", query))
    const entries = (text: string) => [...text.matchAll(/href="\/quarantine\/(\d+)"/g)].map((match) => Number(match[1]))
    const parts = yield* partsOf(address("/quarantine", { company: hostile }), (path) => ask(routes, [company], path))
    assert.isFalse(parts.some(holdsHostile))
    assertEach(parts, (text) => entries(text).length, [50, 50, 20])
    const shownEntries = parts.flatMap(entries)
    assert.strictEqual(new Set(shownEntries).size, 120)
    assert.lengthOf(entries((yield* show({ company: hostile, state: "resolved" })).text), 10)
    assert.lengthOf(entries((yield* show({ company: hostile, resource: "other", state: "resolved" })).text), 5)
    const one = yield* ask(routes, [company], `/quarantine/${shownEntries[0]}`)
    assert.isFalse(holdsHostile(one.text))
    // Every digit, pretty-printed.
    assert.include(one.text, `&quot;price&quot;: 1${"0".repeat(400)},\n`)
    assert.include(one.text, "\\u{202e}")
  })
})
