/** The list of events by time, state, company and resource, on Postgres; what it finds is compared with plain SQL. */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { routes } from "../../src/dashboard/pages/Webhooks.ts"
import * as WebhookDetails from "../../src/status/WebhookDetails.ts"
import { address } from "../../src/web/Escape.ts"
import { ask as request, shownCompany, showing } from "../support/pages.ts"
import { clockIs, sql } from "../support/postgres.ts"
import { ask, holdsHostile, hostile, unconnected, warehouse } from "./asking.ts"
import { partsOf } from "./markup.ts"
import { testWith } from "../support/suite.ts"
import { valuesOf } from "../support/rows.ts"

const test = testWith(warehouse)
const companies = [unconnected("north"), unconnected("south")]

/** The records of the table of a page, in its order. */
const recordsIn = (text: string): ReadonlyArray<string> =>
  [
    ...text.replaceAll(/\s+/g, " ").matchAll(/href="\/records\?company=\w+&amp;resource=\w+&amp;id=\d+" ?>(\w+ \d+)</g)
  ].map(([, name]) => name!)

describe("the list of events", () => {
  test("finds the events of a time as plain SQL does, whatever numbers are missing", function* () {
    const range = (since: Date, until: Date) =>
      Effect.gen(function* () {
        const search = { since, until, company: null, state: null }
        const found = yield* WebhookDetails.events(search, null, null, 10_000)
        const expected = yield* sql<{ id: bigint }>`
            select id from tributary.inbox where received_at >= ${since} and received_at < ${until} order by id desc`
        assert.deepStrictEqual(valuesOf(found, "id"), valuesOf(expected, "id"))
        const { rows } = yield* WebhookDetails.resources(search)
        const counted = yield* sql<{ resource: string | null; events: number; records: number }>`
            select resource, count(*)::int as events, count(distinct (company, record_id))::int as records from tributary.inbox
             where received_at >= ${since} and received_at < ${until} group by 1 order by 2 desc, 1`
        assert.deepStrictEqual(
          rows.map(({ resource, events, records }) => ({ resource, events, records })),
          counted.map((row) => ({ ...row }))
        )
        return found.length
      })
    const [clock] = yield* sql<{ now: Date }>`select tributary.now() as now`
    const now = clock!.now.getTime()
    assert.strictEqual(yield* range(new Date(0), new Date(now + 1)), 0)
    // Processes store at the same time: a few seconds of disorder. Two thirds of the numbers are missing.
    yield* sql`
        insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, received_at, body, state, resolved_at)
        select case when n % 3 = 0 then 'south' else 'north' end, 'evt_' || n, 'x.updated',
               case when n % 7 = 0 then null when n % 2 = 0 then 'payments' else 'orders' end, (n % 40)::text, tributary.now(),
               tributary.now() - (4000 - n) * interval '3 minutes' + (n % 5) * interval '1 second', '', 'done', tributary.now()
          from generate_series(1, 4000) n`
    yield* sql`delete from tributary.inbox where id % 3 > 0`
    const hours = (n: number) => new Date(now - n * 3_600_000)
    assert.isAbove(yield* range(new Date(0), new Date(now + 86_400_000)), 1_000)
    assert.isAbove(yield* range(hours(24), hours(0)), 100)
    assert.isAbove(yield* range(hours(50), hours(49)), 3)
    assert.strictEqual(yield* range(hours(500), hours(400)), 0)
    assert.strictEqual(yield* range(hours(-1), hours(-2)), 0)
  })

  test("answers which records yesterday's events brought, with a link to each", function* () {
    const put = (id: string, resource: string, record: string, at: string, company = "north", state = "done") =>
      sql.unsafe(
        `insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, received_at, body, state, resolved_at)
           values ($1, $2, $3, $4, $5, tributary.now(), ${at}, '', $6, case when $6 = 'done' then tributary.now() end)`,
        [company, id, `${resource}.created`, resource, record, state]
      )
    const today = "date_trunc('day', tributary.now(), 'UTC')"
    yield* put("a", "payments", "1", `${today} - interval '25 hours'`)
    yield* put("b", "payments", "2", `${today} - interval '23 hours'`)
    yield* put("c", "orders", "3", `${today} - interval '12 hours'`)
    yield* put("d", "payments", "4", `${today} - interval '1 hour'`, "south")
    yield* put("e", "payments", "5", today)
    yield* put("f", "orders", "6", "tributary.now()", "north", "dead_letter")

    const first = yield* ask(routes, companies, "/webhooks")
    const [days] = yield* sql<{ yesterday: string }>`
        select to_char(tributary.now() at time zone 'UTC' - interval '1 day', 'YYYY-MM-DD') as yesterday`
    const time = `${days!.yesterday}%40UTC`
    assert.include(first.text, `href="/webhooks/events?time=${time}"`)
    const yesterday = yield* ask(routes, companies, "/webhooks/events?time=yesterday")
    assert.include(yesterday.read, `3 events about 3 records on ${days!.yesterday} (UTC).`)
    assert.include(yesterday.text, `href="/webhooks/events?time=${time}&amp;resource=payments"`)
    assert.match(yesterday.read, /payments 2 /)
    const payments = yield* ask(routes, companies, "/webhooks/events?time=yesterday&resource=payments")
    assert.deepStrictEqual(recordsIn(payments.text), ["payments 4", "payments 2"])
    const north = yield* ask(routes, companies, "/webhooks/events?time=yesterday&resource=payments&company=north")
    assert.deepStrictEqual(recordsIn(north.text), ["payments 2"])

    const dead = yield* ask(routes, companies, "/webhooks/events?state=dead_letter")
    assert.deepStrictEqual(recordsIn(dead.text), ["orders 6"])
    assert.include(dead.text, 'href="/confirm/replay?company=north&amp;event=f"')
    const none = yield* ask(routes, companies, "/webhooks/events?time=hour&state=skipped&resource=odd")
    assert.match(none.read, /No event matches/)
    const odd = address("/webhooks/events", { resource: hostile, company: hostile })
    assert.isFalse(holdsHostile((yield* ask(routes, companies, odd)).text))
  })

  test("has the days of the reader's zone, with 23 and 25 hours, at an address that keeps its meaning", function* () {
    const clock = (time: string) => sql.unsafe(clockIs(`timestamptz ''${time}''`))
    const put = (id: number, at: string) => sql`
        insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, received_at, body, state)
        values ('north', ${`day${id}`}, 'x.updated', 'payments', ${String(id)}, ${at}, ${at}, '', 'pending')`
    const ofZone = (path: string, zone: string) => ask(routes, companies, path, undefined, zone)
    for (const [now, day, first, after, hours] of [
      ["2026-03-30T10:00:00Z", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", 23],
      ["2026-10-26T10:00:00Z", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", 25]
    ] as const) {
      yield* clock(now)
      const before = new Date(Date.parse(first) - 1).toISOString()
      const last = new Date(Date.parse(after) - 1).toISOString()
      for (const [index, at] of [before, first, last, after].entries()) yield* put(index + 1, at)
      const { text, read } = yield* ofZone("/webhooks/events?time=yesterday", "Europe/Berlin")
      assert.deepStrictEqual(recordsIn(text), ["payments 3", "payments 2"], `${hours} hours`)
      assert.include(read, `2 events about 2 records on ${day} (Europe/Berlin).`)
      const link = `/webhooks/events?time=${day}%40Europe%2FBerlin`
      assert.include(
        text.replaceAll(/\s+/g, " ").replaceAll(" >", ">"),
        `href="${link}" aria-current="true">Yesterday</a`
      )
      // The same later, and for a reader of another zone, where the choice has its name.
      yield* clock("2026-12-24T10:00:00Z")
      const later = yield* ofZone(link, "Asia/Kolkata")
      assert.deepStrictEqual(recordsIn(later.text), ["payments 3", "payments 2"])
      assert.match(later.text, new RegExp(`aria-current="true"\\s*>${day} \\(Europe/Berlin\\)</a`))
      yield* sql`truncate tributary.inbox`
    }
    // 20:00 UTC is the next day in Kolkata.
    yield* clock("2026-11-27T20:00:00Z")
    const url = yield* showing([shownCompany("north", 1n)])
    const inKolkata = yield* request(`${url}/webhooks/events`, { headers: { cookie: "tributary_zone=Asia/Kolkata" } })
    assert.match(inKolkata.text, /href="[^"]*time=2026-11-28%40Asia%2FKolkata"\s*>Today<\/a/)
    const withoutScript = yield* request(`${url}/webhooks/events`)
    assert.match(withoutScript.text, /href="[^"]*time=2026-11-27%40UTC"\s*>Today \(UTC\)<\/a/)
  })

  test("continues part by part", function* () {
    yield* sql`
        insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, body, state)
        select 'north', 'evt_' || n, 'x.updated', 'payments', n::text, tributary.now(), '', 'pending' from generate_series(1, 120) n`
    const parts = yield* partsOf("/webhooks/events?time=day&company=north", (path) => ask(routes, companies, path))
    const seen = parts.flatMap(recordsIn)
    assert.deepStrictEqual(
      seen,
      Array.from({ length: 120 }, (_, n) => `payments ${120 - n}`)
    )
  })
})
