/** The page with the history of a record, on Postgres. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { saveCompany } from "../support/companies.ts"
import { routes } from "../../src/dashboard/pages/Records.ts"
import { tableOf } from "../../src/warehouse/Table.ts"
import * as TablePlan from "../../src/warehouse/TablePlan.ts"
import { syncResource } from "../../src/sync/SyncResource.ts"
import { pages, record, scripted, things } from "../support/tiny.ts"
import { address } from "../../src/web/Escape.ts"
import { ask, holdsHostile, hostile, unconnected, warehouse } from "./asking.ts"
import { partsOf } from "./markup.ts"
import { suite } from "../support/suite.ts"
import { sql } from "../support/postgres.ts"

const table = tableOf(things)
const stand = Layer.effectDiscard(Effect.andThen(TablePlan.apply([table]), saveCompany("main", 1n))).pipe(
  Layer.provideMerge(warehouse)
)
const companies = [unconnected("main")]
const show = (query: Record<string, string>) => ask(routes, companies, address("/records", query))

const textOf = (markup: string): string | null => {
  const inner = /<pre[^>]*>(.*?)<\/pre>/s.exec(markup)?.[1] ?? markup
  if (inner.includes('class="none"')) return null
  const signs: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', "#39": "'" }
  return inner
    .replaceAll(/<[^>]+>/g, "")
    .trim()
    .replaceAll(/&(lt|gt|amp|quot|#39);/g, (_, name: string) => signs[name]!)
}

/** Every changed field of the page, as `version field from → to`. */
const changesOf = (text: string): ReadonlyArray<string> =>
  text.split("<caption>").flatMap((part) => {
    const version = /^\s*Version (\d+): \d+ changed/.exec(part)?.[1]
    return version === undefined
      ? []
      : [...part.matchAll(/<code>(\w+)<\/code>.*?<del>(.*?)<\/del>.*?<ins>(.*?)<\/ins>/gs)].map(
          ([, field, from, to]) => `${version} ${field} ${textOf(from!)} → ${textOf(to!)}`
        )
  })

/** The same from the history by SQL. */
const changesBySql = (id: number) =>
  Effect.gen(function* () {
    const rows = yield* sql<{ change: string }>`
      select concat(v._version, ' ', e.key, ' ', coalesce(v.before ->> e.key, 'null'), ' → ', coalesce(v.record ->> e.key, 'null')) as change
        from (select _version, record, lag(record) over (order by _version) as before
                from erp_history.things where _company_id = 1 and id = ${id}) v
       cross join lateral jsonb_object_keys(v.record) e (key)
       where v.before is not null and v.before -> e.key is distinct from v.record -> e.key`
    return rows.map(({ change }) => change)
  })

suite("the record page", stand, (test) => {
  test("shows every version with its source and its changes", function* () {
    const source = scripted(1n, pages({ records: [] }))
    const sync = Effect.fnUntraced(function* (price: string, minute: number) {
      const lastchangedate = `2026-01-01T00:0${minute}:00Z`
      source.script = pages({
        records: [record(things, { id: "7", name: hostile, price, memo: "m", lastchangedate })],
        syncedThrough: lastchangedate
      })
      const { status } = yield* syncResource(
        { companyId: 1n, connector: source.connector, table },
        { batchRecordsMax: 100 }
      )
      assert.strictEqual(status, "done")
    })
    yield* sync("1.0000", 1)
    yield* sync("2.5000", 2)
    const { text } = yield* show({ company: "main", resource: "things", id: "7" })
    assert.isFalse(holdsHostile(text.replaceAll(/value="[^"]*"/g, "")))
    // Of a record that is deleted and created again, with equal versions between.
    const version = (number: number, op: string, price: string) =>
      sql.unsafe(
        `insert into erp_history.things__superseded (_company_id, id, name, price, _version, _op, _origin, _observed_at, _valid_to)
         values (1, 8, $1, $2, $3, $4, 'scan', timestamptz '2026-01-01Z' + $3 * interval '1 hour', timestamptz '2026-01-01Z' + ($3 + 1) * interval '1 hour')`,
        ["x".repeat(500), price, number, op]
      )
    yield* version(3, "update", "1")
    yield* version(4, "update", "1")
    yield* version(5, "update", "1.0000")
    yield* version(6, "delete", "1")
    yield* sql`insert into erp.things (_company_id, id, name, price, _version, _op, _origin, _observed_at)
        values (1, 8, 'y', 1234567890123456.7890, 7, 'insert', 'scan', '2026-01-02Z')`
    const again = yield* show({ company: "main", resource: "things", id: "8" })
    for (const [id, page] of [
      [7, text],
      [8, again.text]
    ] as const) {
      const expected = yield* changesBySql(id)
      assert.isAbove(expected.length, 1)
      assert.sameMembers(
        [...changesOf(page)].map((one) => one.replaceAll("\\u{202e}", "\u202e")),
        expected
      )
    }
    // Many versions, in parts; the oldest of each part shows what it changed.
    yield* sql`
        insert into erp_history.things__superseded (_company_id, id, rank, _version, _op, _origin, _observed_at, _valid_to)
        select 1, 10, n, n, case n when 1 then 'insert' else 'update' end, 'scan', timestamptz '2026-01-01Z' + n * interval '1 hour', timestamptz '2026-01-01Z' + (n + 1) * interval '1 hour'
          from generate_series(1, 119) n`
    yield* sql`insert into erp.things (_company_id, id, rank, _version, _op, _origin, _observed_at) values (1, 10, 120, 120, 'update', 'scan', '2026-02-01Z')`
    const first = "/records?company=main&resource=things&id=10"
    const parts = yield* partsOf(first, (path) => ask(routes, companies, path))
    assert.strictEqual(parts.length, 3)
    assert.sameMembers(parts.flatMap(changesOf), yield* changesBySql(10))
    // The event and the row of the outbox that brought a version, in the time of its run, and no others.
    yield* sql`
        insert into tributary.runs (fence, id, company_id, resource, kind, lane, status, started_at, finished_at) overriding system value
        values (1, 901, 1, 'things', 'fetch', 'records', 'done', '2026-02-01 10:00Z', '2026-02-01 10:01Z'),
               (1, 902, 1, 'things', 'push', 'push', 'done', '2026-02-02 10:00Z', '2026-02-02 10:01Z')`
    yield* sql`
        insert into erp_history.things__superseded (_company_id, id, _version, _op, _origin, _run_id, _source, _observed_at, _valid_to)
        values (1, 9, 1, 'insert', 'webhook', 901, 'GET /things/9', '2026-02-01 10:00:10Z', '2026-02-02 10:00:10Z')`
    yield* sql`
        insert into erp.things (_company_id, id, _version, _op, _origin, _run_id, _observed_at)
        values (1, 9, 2, 'update', 'push', 902, '2026-02-02 10:00:10Z')`
    const event = (id: string, record: string, at: string, state = "done") => sql`
        insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, body, state, resolved_at)
        values ('main', ${id}, 'things.updated', 'things', ${record}, ${at}::timestamptz, '', ${state}, ${at}::timestamptz)`
    yield* event("evt_before", "9", "2026-02-01 10:00:09Z")
    yield* event(`evt_${hostile}`, "9", "2026-02-01 10:00:20Z")
    yield* event("evt_other", "7", "2026-02-01 10:00:20Z")
    yield* event("evt_after", "9", "2026-02-01 10:01:01Z")
    const pushed = (record: string, at: string) => sql<{ id: bigint }>`
        insert into tributary.outbox (company, resource, operation, record_id, state, outcome, resolved_at)
        values ('main', 'things', 'update', ${record}, 'done', 'updated', ${at}::timestamptz) returning id`
    yield* pushed("9", "2026-02-02 10:00:09Z")
    const [row] = yield* pushed("9", "2026-02-02 10:00:30Z")
    const ninth = yield* show({ company: "main", resource: "things", id: "9" })
    assert.include(ninth.read, `update, updated: outbox row ${row!.id} , inserted by SQL`)
    assert.include(ninth.text, `href="/outbox/rows/${row!.id}"`)
    assert.match(ninth.text, /href="\/webhooks\/event\?company=main&amp;event=evt_/)
    assert.match(ninth.read, /By webhook, run 901 .* GET \/things\/9 things\.updated evt_/)
    assert.deepStrictEqual(ninth.read.match(/evt_(?:\w+|&lt;)|outbox row/g), ["outbox row", "evt_&lt;"])
    assert.isFalse(holdsHostile(ninth.text))
    assert.match(ninth.read, /the same values version 2 /)
    // Without a company, and with the number of a company.
    assert.include((yield* show({ resource: "things", id: "7" })).read, "things 7 in company main")
    assert.include((yield* show({ company: "1", resource: "things", id: "7" })).read, "things 7 in company main")
  })

  test("explains an invalid search in a sentence", function* () {
    const problem = (query: Record<string, string>) =>
      Effect.map(show(query), ({ text }) => /<p class="problem" role="alert">([^<]*)/.exec(text)?.[1])
    assert.isUndefined(yield* problem({}))
    const noNumber = /is not the number of a record/
    for (const [query, words] of [
      [{ q: "7".repeat(201) }, /^A text of more than 200 characters/],
      [{ q: "a\0b" }, /^The text has a character/],
      [{ q: "7", company: "x" }, /^No company “x” is known/],
      [{ resource: "things", id: "7 or 1=1" }, noNumber],
      [{ resource: "things", id: "99999999999999999999" }, noNumber],
      [{ resource: "things", id: "9999999999999999999" }, noNumber],
      [{ resource: "things", id: "-9223372036854775807" }, /^The warehouse has nothing about/],
      [{ resource: hostile, id: "7" }, /^The warehouse has no history of/],
      [{ resource: 'things"; drop', id: "7" }, /^The warehouse has no history of/],
      [{ resource: "things", id: "7", company: "x" }, /^No company “x” is known/]
    ] as ReadonlyArray<readonly [query: Record<string, string>, words: RegExp]>) {
      assert.match((yield* problem(query))!, words)
    }
    const { text } = yield* show({ resource: hostile, id: hostile })
    assert.notInclude(text, "<script>")
    const found = yield* show({ q: hostile })
    assert.isFalse(holdsHostile(found.text.replaceAll(/value="[^"]*"/g, "")))
    assert.include(found.read, "No record has the number")
  })
})
