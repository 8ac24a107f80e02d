/** The pages of the outbox, on Postgres. */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { SourceError, TimedOut } from "../../src/connector/SourceError.ts"
import { routes } from "../../src/dashboard/pages/Outbox.ts"
import * as OutboxRowFlow from "../../src/status/OutboxRowFlow.ts"
import { ask, unconnected, warehouse } from "./asking.ts"
import { nextOf } from "./markup.ts"
import { makeStand, stand } from "./quarantined.ts"
import { suite } from "../support/suite.ts"
import { cellsOf, valuesOf } from "../support/rows.ts"
import { sql } from "../support/postgres.ts"

const noAnswer = Effect.fail(
  new SourceError({
    reason: new TimedOut({ after: Duration.seconds(1) }),
    request: { method: "GET", path: "/me", requestId: null }
  })
)

/** Inserts this number of outbox rows, without a push unless one is given. */
const insert = Effect.fnUntraced(function* (
  company: string,
  resource: string,
  rows: number,
  more: {
    readonly state?: string
    readonly outcome?: string
    readonly push?: bigint
    readonly code?: string
    readonly reason?: string
    readonly settledDaysAgo?: number
  }
) {
  const { state = "pending", outcome = null, push = null, code = null, reason = null, settledDaysAgo = 0 } = more
  yield* sql`
    insert into tributary.outbox (company, resource, operation, record_id, record, push_id, line, state, outcome, code, field, reason, resolved_at)
    select ${company}, ${resource}, 'update', n::text, json_build_object('name', ${reason}::text), ${push}, n, ${state}, ${outcome}, ${code},
           case when ${code}::text is not null then ${reason}::text end, ${reason},
           case when ${state}::text in ('done', 'rejected') then tributary.now() - make_interval(days => ${settledDaysAgo}) end
      from generate_series(1, ${rows}::int) n`
})

const makePush = Effect.fnUntraced(function* (company: string, finished: boolean, source = "orders.csv") {
  const [row] = yield* sql<{ id: bigint }>`
    insert into tributary.pushes (company, resource, operation, source, content_hash, record_count, duplicates, finished_at)
    values (${company}, 'things', 'update', ${source}, md5(random()::text), 130, 10, case when ${finished} then tributary.now() end)
    returning id`
  return row!.id
})

suite("the outbox page", warehouse, (test) => {
  test("retries rejected rows of a service, and shows the command for the others", function* () {
    const company = "second"
    yield* insert(company, "things", 3, { state: "rejected", code: "invalid", reason: "too long" })
    const push = yield* makePush(company, false)
    yield* insert(company, "things", 2, { push, state: "rejected", code: "invalid", reason: "too long" })
    const companies = [unconnected(company)]
    const confirm = yield* ask(routes, companies, `/confirm/push-retry?company=${company}&resource=things`)
    assert.include(confirm.read, "Send the rejected rows of things, company second, again?")
    const fields = { company, resource: "things" }
    const done = yield* ask(routes, companies, "/do/push-retry", fields)
    assert.deepStrictEqual([done.to, done.said], ["/outbox", "3 rows of things wait to be sent again."])
    const again = yield* ask(routes, companies, "/do/push-retry", fields)
    assert.strictEqual(again.said, "No row of things is rejected any more.")
    const left = yield* sql<{ push: bigint | null; state: string; rows: number }>`
        select push_id as push, state, count(*)::int as rows from tributary.outbox where company = ${company} group by 1, 2 order by 1`
    assert.deepStrictEqual(
      [...left],
      [
        { push, state: "rejected", rows: 2 },
        { push: null, state: "pending", rows: 3 }
      ]
    )
    const rejected = yield* ask(routes, companies, `/outbox/rejected?push=${push}`)
    assert.include(rejected.read, `tributary push retry ${push} --rejected`)
    assert.include(rejected.read, "2 records were rejected: invalid")
    assert.include(rejected.text, `href="/confirm/push-retry?push=${push}"`)
    const other = yield* Effect.flip(ask(routes, companies, "/do/push-retry", { ...fields, company: "other" }))
    assert.deepInclude(other, { status: 404 })
  })

  test("finds a rejected row however old it is, and says why", function* () {
    const company = "third"
    const companies = [unconnected(company), unconnected("fourth")]
    yield* insert(company, "things", 1, { state: "rejected", code: "unknown_value", reason: "no such term" })
    yield* insert(company, "things", 1, {})
    yield* insert("fourth", "others", 2_100, { state: "done", outcome: "updated" })
    const rejected = yield* ask(routes, companies, `/outbox/rows?state=rejected&company=${company}`)
    assert.match(rejected.read, /update things 1 rejected unknown_value no such term : no such term .* SQL .* Retry/)
    assert.include(yield* Effect.map(ask(routes, companies, "/outbox"), ({ read }) => read), "no such term")
    yield* insert(company, "others", 1, { state: "in_flight" })
    yield* insert("fourth", "others", 2_100, { state: "done", outcome: "updated" })
    const inFlight = yield* ask(routes, companies, `/outbox/rows?state=in_flight&company=${company}`)
    assert.strictEqual(inFlight.text.match(/href="\/outbox\/rows\/\d+"/g)?.length, 1)
    const pending = yield* ask(routes, companies, `/outbox/rows?state=pending&company=${company}&resource=things`)
    assert.match(pending.read, /update things 1 pending/)
    assert.include(pending.text, `href="/outbox/rows?company=${company}&amp;resource=things"`)
    assert.include(
      (yield* ask(routes, companies, `/outbox/rows?state=done&company=${company}`)).read,
      "The newest 2,000 rows are searched."
    )
    let next: string | undefined = "/outbox/rows?state=done"
    const seen = new Set<string>()
    for (let part = 0; next !== undefined && part < 3; part += 1) {
      const { text }: { text: string } = yield* ask(routes, companies, next)
      for (const [, row] of text.matchAll(/href="\/outbox\/rows\/(\d+)"/g)) seen.add(row!)
      next = nextOf(text)
    }
    assert.strictEqual(seen.size, 150)
  })

  test("reads few of many open rows", function* () {
    yield* insert("fifth", "things", 20_000, { reason: "w".repeat(200) })
    const [size] = yield* sql<{ pages: number }>`
        select (pg_relation_size('tributary.outbox') / current_setting('block_size')::int)::int as pages`
    const [plan] = yield* sql.unsafe<{
      "QUERY PLAN": ReadonlyArray<{ Plan: { "Shared Hit Blocks": number; "Shared Read Blocks": number } }>
    }>(`explain (analyze, buffers, format json) ${OutboxRowFlow.pendingStatement.text}`, [null, null, null, 51])
    const { "Shared Hit Blocks": hit, "Shared Read Blocks": read } = plan!["QUERY PLAN"][0]!.Plan
    assert.isBelow(hit + read, size!.pages / 2)
    const { text } = yield* ask(routes, [unconnected("fifth")], "/outbox/rows?state=pending")
    assert.strictEqual(text.match(/href="\/outbox\/rows\/\d+"/g)?.length, 50)
    yield* sql`delete from tributary.outbox where company = 'fifth'`
  })
})

suite("the retry of a push", stand, (test) => {
  test("sends the rejected rows again, after the source has said which company it is", function* () {
    const { name, company, sql } = yield* makeStand()
    const [push] = yield* sql<{ id: bigint }>`
        insert into tributary.pushes (company, resource, operation, source, content_hash, record_count, finished_at)
        values (${name}, 'salesmen', 'create', 'people.csv', 'hash', 2, tributary.now()) returning id`
    yield* sql`
        insert into tributary.outbox (company, resource, operation, externalid, record, push_id, line, state, code, reason, resolved_at)
        select ${name}, 'salesmen', 'create', e, json_build_object('externalid', e, 'name', case when n = 1 then 'Ann' else '' end, 'commissionrate', case when n = 2 then 'none' end), ${push!.id}, n, 'rejected', 'conflict',
               'there is one', tributary.now() from (values (1, 'p-1'), (2, 'p-2')) v (n, e)`
    const fields = { push: String(push!.id) }
    const confirm = yield* ask(routes, [company], `/confirm/push-retry?push=${push!.id}`)
    assert.include(confirm.read, `Send the rejected rows of push ${push!.id} again?`)
    assert.include(confirm.text, `<input type="hidden" name="push" value="${push!.id}" />`)
    // Without an answer of the source, or without the company, nothing changes.
    const down = { ...company, connector: { ...company.connector, identify: noAnswer } }
    assert.deepInclude(yield* Effect.flip(ask(routes, [down], "/do/push-retry", fields)), { status: 409 })
    assert.deepInclude(yield* Effect.flip(ask(routes, [unconnected("other")], "/do/push-retry", fields)), {
      status: 404
    })
    assert.deepInclude(yield* Effect.flip(ask(routes, [unconnected(name)], "/do/push-retry", fields)), {
      status: 409
    })
    const states = sql<{ state: string; outcome: string | null }>`
        select state, outcome from tributary.outbox where push_id = ${push!.id} order by line`
    assert.deepStrictEqual(valuesOf(yield* states, "state"), ["rejected", "rejected"])
    const done = yield* ask(routes, [company], "/do/push-retry", fields)
    assert.strictEqual(done.to, `/outbox/pushes/${push!.id}`)
    assert.match(done.said!, /^2 rows of push \d+ are sent again/)
    const finished = sql<{ at: Date | null }>`select finished_at as at from tributary.pushes where id = ${push!.id}`
    yield* finished.pipe(Effect.repeat({ until: ([row]) => row!.at !== null, times: 50_000 }))
    // The wrong one is rejected again.
    assert.deepStrictEqual(cellsOf(yield* states, "state", "outcome"), [
      ["done", "created"],
      ["rejected", null]
    ])
  })
})
