/** The pages that follow one event and one row of the outbox, on Postgres; their figures are compared with plain SQL. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { routes as outboxRoutes } from "../../src/dashboard/pages/Outbox.ts"
import { routes as runRoutes } from "../../src/dashboard/pages/Runs.ts"
import { routes as webhookRoutes } from "../../src/dashboard/pages/Webhooks.ts"
import { address } from "../../src/web/Escape.ts"
import { ask, holdsHostile, hostile, unconnected, warehouse } from "./asking.ts"

const weightMax = 200_000
const eventPath = (company: string, event: string) => address("/webhooks/event", { company, event })

/** A history of `things`: record 7 of company 1 has three versions, the second by run 5 and the third by a push. */
const history = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create schema if not exists erp_history`
  yield* sql`insert into tributary.companies (company, company_id) values ('north', 1)`
  yield* sql`insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
    overriding system value values (1, 'things', 'fetch', 'records', 'done', 1, tributary.now(), tributary.now())`
  const [run] = yield* sql<{ id: bigint }>`select max(id) as id from tributary.runs`
  yield* sql.unsafe(
    `create view erp_history.things as
      select 1::bigint as "_company_id", 7::bigint as id, v.* from (values
        (1::bigint, tributary.now() - interval '3 hours', tributary.now() - interval '2 hours', 'insert', 'scan', 1::bigint, 'GET /things?page=1 (req-1)'),
        (2, tributary.now() - interval '2 hours', tributary.now() - interval '1 hour', 'update', 'webhook', ${run!.id}, 'GET /things/7 (req-2)'),
        (3, tributary.now() - interval '1 hour', null, 'update', 'push', 99, 'PATCH /things/7 (req-3)')
      ) v ("_version", "_valid_from", "_valid_to", "_op", "_origin", "_run_id", "_source")`
  )
  return run!.id
})

interface GivenEvent {
  readonly id: string
  readonly company?: string
  readonly state?: string
  readonly error?: string | null
  readonly resolution?: string | null
  readonly run?: bigint | null
  readonly attempts?: number
}

const putEvent = Effect.fnUntraced(function* (given: GivenEvent) {
  const sql = yield* SqlClient.SqlClient
  const { id, company = "north", state = "done", error = null, resolution = null, run = null, attempts = 0 } = given
  yield* sql`
    insert into tributary.inbox (company, event_id, event_type, resource, record_id, occurred_at, sent_at, received_at, body, state,
      last_error, resolution, run_id, attempts, resolved_at, next_attempt_at)
    values (${company}, ${id}, 'things.updated', 'things', '7', tributary.now() - interval '100 minutes', tributary.now() - interval '99 minutes',
      tributary.now() - interval '98 minutes', convert_to(${`{"id":"${id}","data":{"name":"<script>"}}`}, 'UTF8'), ${state}, ${error},
      ${resolution}, ${run}, ${attempts},
      case when ${state}::text <> 'pending' then tributary.now() - interval '97 minutes' end, tributary.now() + interval '5 minutes')`
})

layer(warehouse, { excludeTestServices: true, timeout: "30 seconds" })("the pages of the flows", (it) => {
  it.effect("follows an event from its delivery to the version, or states why there is none", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const run = yield* history
      const companies = [unconnected("north"), unconnected(hostile)]
      const shown = (event: string, company = "north") => ask(webhookRoutes, companies, eventPath(company, event))
      yield* sql`
        insert into tributary.subscriptions (company, subscription_id, url, events, state, checked_at)
        values ('north', 'sub-1', 'https://hooks.example.com/north', '{things.updated}', 'active', tributary.now()),
               ('north', 'sub-2', 'https://hooks.example.com/other', '{others.updated}', 'active', tributary.now())`
      yield* putEvent({ id: "evt_landed", run })
      yield* putEvent({ id: "evt_known", resolution: "the row is as new" })
      yield* putEvent({
        id: "evt_early",
        state: "pending",
        error: "the source does not show the record yet",
        attempts: 0
      })
      yield* putEvent({ id: "evt_dead", state: "dead_letter", error: "HTTP 500", attempts: 6, run })

      const landed = yield* shown("evt_landed")
      const [row] = yield* sql<{ id: bigint; late: number }>`
        select id, (extract(epoch from received_at - sent_at) / 60)::int as late from tributary.inbox where event_id = 'evt_landed'`
      assert.include(landed.read, `From signature to receipt ${row!.late * 60} s`)
      assert.include(landed.read, `Row of tributary.inbox ${row!.id}`)
      assert.include(landed.text, `href="/webhooks/north/sub-1/deliveries"`)
      assert.notInclude(landed.read, "sub-2")
      assert.include(landed.text, `href="/runs/${run}"`)
      assert.match(landed.read, /version 2 .*brought a version/)
      assert.include(landed.read, "GET /things/7 (req-2)")
      assert.notInclude(landed.read, "req-3")
      assert.include(landed.text, `href="/records?company=north&amp;resource=things&amp;id=7"`)
      assert.isFalse(landed.isLive)

      const known = yield* shown("evt_known")
      assert.match(known.read, /nothing new .*another run or event brought it/)
      assert.include(known.read, "the row is as new")
      const early = yield* shown("evt_early")
      assert.isTrue(early.isLive)
      assert.match(early.read, /not yet .*Not yet\. The source does not show the record yet\./)
      const dead = yield* shown("evt_dead")
      assert.include(dead.text, `href="/confirm/replay?company=north&amp;event=evt_dead"`)
      assert.match(dead.read, /after 6 failed attempts/)
      assert.match(dead.read, /Last error: HTTP 500\. What to do: remove the cause; then replay/)
      assert.notInclude(dead.read, "req-2")

      yield* sql`
        insert into tributary.delivery_gaps (company, resource, cause, detail, began_at, ended_at, events)
        values ('north', 'things', 'acknowledged_not_stored', 'evt_lost is not in the inbox', tributary.now() - interval '2 hours',
                tributary.now() - interval '90 minutes', '{evt_lost}')`
      assert.include((yield* shown("evt_landed")).read, "The event fired during this gap of things")
      assert.match(
        (yield* shown("evt_lost")).read,
        /lost The inbox does not have this event .*evt_lost is not in the inbox/
      )
      assert.deepInclude(yield* Effect.flip(shown("evt_none")), { status: 404 })
      assert.deepInclude(yield* Effect.flip(shown("evt_landed", "nowhere")), { status: 404 })
      assert.deepInclude(yield* Effect.flip(ask(webhookRoutes, companies, "/webhooks/event?company=north")), {
        status: 400
      })

      yield* putEvent({ id: hostile, company: hostile, state: "dead_letter", error: hostile })
      const odd = yield* shown(hostile, hostile)
      for (const { text } of [landed, known, early, dead, odd]) {
        assert.isFalse(holdsHostile(text))
        assert.isBelow(text.length, weightMax)
      }
    })
  )

  it.effect("links a dead letter and the run that failed to read it, which is no success", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const companies = [unconnected("west")]
      yield* sql`insert into tributary.companies (company, company_id) values ('west', 3)`
      const runs = yield* sql<{ id: bigint }>`
        insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
        select 3, 'things', 'fetch', 'records', 'done', 1, tributary.now() - interval '2 hours', tributary.now() from generate_series(1, 3) returning id`
      const [failed, read, unnamed] = runs.map(({ id }) => id)
      yield* putEvent({
        id: "evt_403",
        company: "west",
        state: "dead_letter",
        error: "GET /things/7: the token may not do this (403) [request req_9]; give the token the scope",
        run: failed!
      })
      yield* putEvent({ id: "evt_lost_run", company: "west", state: "dead_letter", error: "HTTP 500" })
      yield* putEvent({ id: "evt_read", company: "west", run: read! })
      const event = (id: string) => ask(webhookRoutes, companies, eventPath("west", id))
      const run = (id: bigint | undefined) => ask(runRoutes, companies, `/runs/${id}`)

      const dead = yield* event("evt_403")
      assert.include(dead.text, `href="/runs/${failed}"`)
      assert.match(
        dead.read,
        new RegExp(`Failed in run ${failed} ✕ 1 dead letter|Failed in run ${failed} 1 dead letter`)
      )
      assert.match(dead.read, /Last error: The token may not do this \(HTTP 403\)\. GET \/things\/7 \[request req_9\]/)
      assert.match(dead.read, /What to do: give the token the scope ?; then replay/)
      // Without a stored run the page names none.
      assert.include((yield* event("evt_lost_run")).read, "Failed in its run is not stored")

      const page = yield* run(failed)
      assert.match(page.read, /1 dead letter company west/)
      assert.notMatch(page.read, /done company/)
      assert.include(page.text, `href="${eventPath("west", "evt_403").replace("&", "&amp;")}"`)
      assert.notInclude(page.text, "evt_lost_run")
      assert.match(page.read, /did not read the record of 1 event : it is a dead letter\. What to do:/)
      const good = yield* run(read)
      assert.match(good.read, /done company west/)
      assert.include(good.text, `href="${eventPath("west", "evt_read").replace("&", "&amp;")}"`)
      assert.notInclude(good.read, "dead letter")
      assert.include((yield* run(unnamed)).read, "No stored event names this run.")

      const list = yield* ask(runRoutes, companies, "/runs?company=west")
      assert.match(list.read, new RegExp(`${failed} 1 dead letter `))
      assert.match(list.read, new RegExp(`${read} done `))
      yield* sql`delete from tributary.inbox where company = 'west'`
    })
  )

  it.effect(
    "follows a row of the outbox from its insert to the answer, and states the next step of a refused one",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const companies = [unconnected("north")]
        const shown = (id: bigint) => ask(outboxRoutes, companies, `/outbox/rows/${id}`)
        const key = "0d5e4b1c-0000-4000-8000-00000000beef"
        const [push] = yield* sql<{ id: bigint }>`
        insert into tributary.pushes (company, resource, operation, source, content_hash, record_count)
        values ('north', 'things', 'update', 'things.csv', 'x', 3) returning id`
        const [request] = yield* sql<{ id: bigint }>`
        insert into tributary.push_requests (company, resource, operation, record_id, idempotency_key, record_count, state, status,
          source, created_at, closed_at, failed_attempts)
        values ('north', 'things', 'update', '7', ${key}, 1, 'completed', 200, 'PATCH /things/7 (req-3)', tributary.now() - interval '31 minutes',
          tributary.now() - interval '30 minutes', 2) returning id`
        const [done] = yield* sql<{ id: bigint }>`
        insert into tributary.outbox (company, resource, operation, record_id, record, push_id, line, state, outcome, validated, request_id,
          request_index, differences, expected_values, resolved_at)
        values ('north', 'things', 'update', '7', '{"name":"<script>"}', ${push!.id}, 3, 'done', 'updated', true, ${request!.id}, 0,
          '[{"field":"name","given":"A","current":"B"}]', '{}', tributary.now() - interval '30 minutes') returning id`
        const [refused] = yield* sql<{ id: bigint }>`
        insert into tributary.outbox (company, resource, operation, record, state, code, field, reason, problems, resolved_at)
        values ('north', 'things', 'create', '{"externalid":"T-9"}', 'rejected', 'unknown_value', 'term', 'no such term',
          '[{"field":"term","message":"no such term"}]', tributary.now()) returning id`
        const [waiting] = yield* sql<{ id: bigint }>`
        insert into tributary.outbox (company, resource, record) values ('north', 'things', '{}') returning id`

        const page = yield* shown(done!.id)
        assert.notInclude(page.text, key)
        assert.match(page.read, new RegExp(`push ${push!.id} , line 3 of things.csv`))
        assert.match(page.read, /Rounds without an outcome 2/)
        assert.match(page.read, /HTTP 200/)
        assert.match(page.read, /name A B/)
        assert.match(page.read, /version 3 /)
        assert.include(page.read, "PATCH /things/7 (req-3)")
        assert.isFalse(page.isLive)

        const one = yield* shown(refused!.id)
        assert.match(one.read, /Validated refused .*does not fit the write shape/)
        assert.match(one.read, /unknown_value no such term What to do: .* Code unknown_value Field term/)
        assert.match(one.read, new RegExp(`update tributary.outbox set record = .* where id = ${refused!.id} `))
        assert.include(one.text, `href="/confirm/push-retry?company=north&amp;resource=things"`)
        const open = yield* shown(waiting!.id)
        assert.isTrue(open.isLive)
        assert.include(open.read, "tributary serve sends it")
        for (const { text } of [page, one, open]) {
          assert.isFalse(holdsHostile(text))
          assert.isBelow(text.length, weightMax)
        }
        assert.deepInclude(yield* Effect.flip(shown(999_999n)), { status: 404 })

        const list = yield* ask(outboxRoutes, companies, "/outbox/rows?company=north&state=rejected")
        assert.include(list.text, `href="/outbox/rows/${refused!.id}"`)
        assert.notInclude(list.text, `href="/outbox/rows/${done!.id}"`)
        assert.deepInclude(yield* Effect.flip(ask(outboxRoutes, companies, "/outbox/rows?state=odd")), { status: 400 })
      })
  )

  it.effect("states counts and the trend of the last day as plain SQL counts them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const companies = [unconnected("north"), unconnected("south")]
      yield* sql`
        insert into tributary.inbox (company, event_id, event_type, sent_at, received_at, body, state)
        select 'south', 'evt_s' || n, 'things.updated', tributary.now(), tributary.now() - make_interval(mins => n * 41), '', 'done'
          from generate_series(1, 50) n`
      const [events] = yield* sql<{ done: number; dead: number; all: number }>`
        select count(*) filter (where state = 'done' and received_at >= date_trunc('hour', tributary.now(), 'UTC') - interval '23 hours')::int as done,
               count(*) filter (where state = 'dead_letter')::int as dead, count(*)::int as all from tributary.inbox`
      assert.isBelow(events!.done, events!.all)
      const webhooks = yield* ask(webhookRoutes, companies, "/webhooks")
      assert.include(webhooks.read, `Events received in the last 24 hours: ${events!.done} done`)
      const [north] = yield* sql<{ dead: number; gaps: number }>`
        select (select count(*)::int from tributary.inbox where company in ('north', 'south') and state = 'dead_letter') as dead,
               (select count(*)::int from tributary.delivery_gaps where closed_at is null) as gaps`
      assert.include(webhooks.read, `${north!.dead} dead letter, ${north!.gaps} open gap`)
      // Each of both has as many.
      assert.notInclude(webhooks.read, "The most: ")
      const dead = yield* ask(webhookRoutes, companies, "/webhooks/events?state=dead_letter")
      assert.strictEqual(dead.text.match(/<tr role="row">/g)?.length, events!.dead + 1)

      const [rows] = yield* sql<{ waiting: number; refused: number; done: number }>`
        select count(*) filter (where state in ('pending', 'in_flight'))::int as waiting,
               count(*) filter (where state = 'rejected')::int as refused, count(*) filter (where state = 'done')::int as done
          from tributary.outbox`
      const outbox = yield* ask(outboxRoutes, companies, "/outbox")
      assert.include(
        outbox.read,
        `${rows!.waiting} row to be sent, ${rows!.refused} refused, 0 requests without a known outcome.`
      )
      assert.include(
        outbox.read,
        `Rows inserted in the last 24 hours: ${rows!.done} done, ${rows!.waiting} pending, ${rows!.refused} refused.`
      )
      for (const { text } of [webhooks, outbox]) assert.isBelow(text.length, weightMax)
    })
  )
})
