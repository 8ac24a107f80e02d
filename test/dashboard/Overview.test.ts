/** The overview: every kind of problem is listed with its next step, and all links lead to pages. */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as WriteActivity from "../../src/tasks/WriteActivity.ts"
import { ask, seed, shownCompany, showing } from "../support/pages.ts"
import { execute as run, layerPages } from "../support/postgres.ts"
import { plain } from "./markup.ts"
import { testWith } from "../support/suite.ts"
import { assertEach } from "../support/assertions.ts"

const test = testWith(layerPages)
const write = WriteActivity.writeActivity(() => [{ company: "north", fingerprint: "0".repeat(64) }])
const companies = [shownCompany("north", 1n), shownCompany("south", 2n)]
const resources = Array.from({ length: 30 }, (_, index) => `things${index + 1}`)

/** The problems of a page in their order: badge, words, and the address of the next step. */
const needsOf = (text: string) =>
  [...text.matchAll(/<li class="(?:bad|warn|quiet)">\s*<span class="badge [\s\S]*?<\/li>/g)].map(([item]) => ({
    badge: plain(/<span class="badge [^>]*>([\s\S]*?)<\/span>/.exec(item)![1]!),
    words: plain(item),
    to: /<a class="button" href="([^"]*)"/.exec(item)![1]!.replaceAll("&amp;", "&")
  }))
const overallState = (text: string): string => plain(/<p class="overall[\s\S]*?<\/p>/.exec(text)![0])

/** One problem of each kind beside those of the resources. */
const problems: ReadonlyArray<string> = [
  `update tributary.tasks set status = 'skipped', error = 'GET /things3: the token may not do this (403)', remedy = 'give the token the scope'
    where company = 'south' and resource = 'things3'`,
  `insert into tributary.subscriptions (company, subscription_id, url, events, state, checked_at, healthy_at, log_read_at, last_error)
   values ('north', 's1', 'https://hooks.example/north', '{a.b}', 'disabled', tributary.now(), tributary.now(), tributary.now(), 'it was disabled'),
          ('south', 's2', 'https://hooks.example/south', '{a.b}', 'active', tributary.now(), tributary.now(), tributary.now(), null)`,
  `insert into tributary.processes (process_id, companies) values ('p1', '{north}')`,
  `insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, body, state, last_error, received_at)
   values ('north', 'e1', 'things1.updated', 'things1', '1', tributary.now(), '\\x7b7d', 'dead_letter', 'the record is unreadable', tributary.now() - interval '9 days')`,
  `insert into tributary.delivery_gaps (company, subscription_id, resource, cause, detail, began_at)
   select 'south', 's2', r, 'subscription_inactive', 'no subscription', tributary.now() - interval '1 hour' from unnest(array['things1', 'things2']) r`,
  // It has ended, and needs no person.
  `insert into tributary.delivery_gaps (company, subscription_id, resource, cause, detail, began_at, ended_at)
   values ('north', 's1', 'things1', 'subscription_inactive', 'no subscription', tributary.now() - interval '2 hours', tributary.now())`,
  `insert into tributary.outbox (company, resource, operation, externalid, record, state, code, reason, resolved_at)
   values ('north', 'things1', 'create', 'x1', '{}', 'rejected', 'invalid', 'a field is missing', tributary.now())`,
  `insert into tributary.invariants (name, severity, statement, comment, resources, query)
   values ('sums', 'critical', 'lines add up', '', '{things1}', 'select 1'), ('names', 'warning', 'names are unique', '', '{things1}', 'select 1'),
          ('broken', 'warning', 'never', '', '{things1}', 'select 1'), ('broken_too', 'warning', 'never', '', '{things1}', 'select 1')`,
  `insert into tributary.invariant_states (invariant, company_id, state, violations, open_violations, error)
   values ('sums', 1, 'violated', 2, 2, null), ('names', 2, 'violated', 1, 1, null), ('broken', 1, 'failed', 0, 0, 'no such column'),
          ('broken_too', 1, 'failed', 0, 0, 'no such column')`,
  `insert into tributary.violations (invariant, company_id, resource, record_id, detail, opened_at)
   values ('sums', 1, 'things1', 7, 'off by 1.00', tributary.now() - interval '1 hour'), ('names', 2, 'things1', 8, 'twice', tributary.now())`,
  `insert into tributary.change_endpoints (name, url, origin, state, reason, last_position) values ('partner', 'https://partner.example', 'command', 'dead', 'HTTP 410', 0)`
]

describe("the overview", () => {
  test("says that all is well, and since when", function* () {
    const url = yield* showing([companies[0]!])
    yield* run("insert into tributary.companies (company, company_id) values ('north', 1)")
    assert.match((yield* ask(url)).text, /No resource is known yet/)
    yield* run(
      `insert into tributary.checkpoints (company_id, resource, updated_at) values (1, 'things', tributary.now())`
    )
    yield* run(`insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, next_run_at)
        values ('north', 'things', 'sync', 'every 10 min', 3600000, tributary.now() + interval '5 minutes')`)
    const runs = (status: string, from: number, until: number) =>
      run(
        `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
           select 1, 'things', 'incremental', 'live', '${status}', 1, tributary.now() - at * interval '1 minute', tributary.now() - at * interval '1 minute'
             from generate_series(${from}, ${until}, -10) at order by at desc`
      )
    yield* runs("done", 1_500, 200)
    yield* write
    const well = yield* ask(url)
    assert.match(overallState(well.text), /Not all is well/, "late since 140 minutes")
    assert.match(plain(well.text), /late things of company north ?: it is as of /)

    yield* runs("done", 5, 5)
    yield* run("delete from tributary.activity_watermarks")
    yield* run("delete from tributary.activity")
    yield* write
    const since = yield* ask(url)
    assert.match(
      overallState(since.text),
      /^All is well The last late resource, failed run or open gap was [45] min ago ?\. 1 resource of 1 company$/
    )
    assert.match(plain(since.text), /What needs a person Nothing\./)
    assert.deepStrictEqual(needsOf(since.text), [])
  })

  test("lists each problem once, the worst first, with the page where it is solved", function* () {
    yield* seed(Object.entries({ north: 1, south: 2 }), resources, 600)
    for (const statement of problems) yield* run(statement)
    yield* write
    const url = yield* showing(companies)
    const { text } = yield* ask(url)
    assert.notInclude(text, "<script>alert")
    const needs = needsOf(text)
    const steps = needs.map(({ badge, to }) => [badge, to])
    assert.deepStrictEqual(steps, [
      ["failing", "/resources?state=failing"],
      ["not receiving", "/webhooks?company=south"],
      ["dead letters", "/webhooks/events?company=north&state=dead_letter"],
      ["rejected", "/outbox/rows?company=north&resource=things1&state=rejected"],
      ["not delivered", "/endpoints?endpoint=partner"],
      ["violated", "/invariants?invariant=sums"],
      ["violated", "/invariants?invariant=names"],
      ["late", "/resources?state=late"],
      ["gap lasts", "/webhooks?company=south"],
      ["gap lasts", "/webhooks?company=south"],
      ["not delivering", "/webhooks?company=north"],
      ["quarantine", "/quarantine?resource=things17"],
      ["not evaluated", "/invariants?invariant=broken"],
      ["not evaluated", "/invariants?invariant=broken_too"],
      ["blocked", "/companies/south/things3"]
    ])
    assert.match(needs[0]!.words, /things(11|22) of 2 companies and 3 others ?: the service failed \(HTTP 500\)/)
    assert.match(
      plain(text),
      /Webhooks 5 5 to resolve Outbox 1 1 to resolve Change feed 1 1 to resolve Quarantine 2 2 to resolve Invariants 5 5 to resolve /
    )
    assert.match(needs[7]!.words, /of 2 companies and 7 others ?: it is as of .*; it is not scheduled/)
    assert.include(plain(text), "7 further problems")
    for (const { to } of needs) assert.strictEqual((yield* ask(`${url}${to}`)).status, 200, to)
    // The oldest problem is the dead letter.
    assert.match(
      overallState(text),
      /^Not all is well since \d{4}-\d\d-\d\d \d\d:\d\d \(9 d\)\. 60 resources of 2 companies$/
    )

    const north = yield* ask(`${url}/companies/north`)
    assert.notMatch(plain(north.text), /of south|partner/)
    assert.match(plain(north.text), / 2 violations /)
    yield* run("update tributary.invariant_states set open_violations = 0")
    assert.match(plain((yield* ask(`${url}/companies/north`)).text), / 2 violations not confirmed yet/)
    assert.isBelow(text.length, 80_000)
  })
})

describe("the state of the overview", () => {
  test("lists push requests that no process resolves, and says that all pushes are paused", function* () {
    yield* run("insert into tributary.companies (company, company_id) values ('pushing', 77), ('calm', 78)")
    yield* run(
      "insert into tributary.tasks (company, resource, kind) values ('pushing', 'things', 'sync'), ('calm', 'things', 'sync')"
    )
    const [push] = yield* run<{ id: bigint }>(
      `insert into tributary.pushes (company, resource, operation, source, content_hash, record_count) values ('pushing', 'things', 'create', 'new.csv', 'c', 2) returning id`
    )
    yield* run(
      `with request as (
           insert into tributary.push_requests (company, resource, operation, idempotency_key, body, record_count, created_at)
           select 'pushing', 'things', 'create', 'k' || i, '{}', 1, tributary.now() - i * interval '1 hour' from generate_series(1, 2) i returning id)
         insert into tributary.outbox (company, resource, operation, record, state, push_id, line, request_id, request_index)
         select 'pushing', 'things', 'create', '{}', 'in_flight', $1, id, id, 0 from request`,
      [push!.id]
    )
    const url = yield* showing([shownCompany("pushing", 77n), shownCompany("calm", 78n)])
    for (const path of ["/", "/companies/pushing"]) {
      const { text } = yield* ask(`${url}${path}`)
      assert.match(overallState(text), /^Not all is well since .* \(2 h\)/, path)
      const [need, ...others] = needsOf(text)
      assert.match(
        need!.words,
        /^unresolved things of company pushing ?: the push ended before the answer began 2 h ago /
      )
      assert.include(need!.words, `continue the push: tributary push retry ${push!.id}`)
      assert.strictEqual(need!.to, "/outbox#calls")
      assert.deepStrictEqual(others, [], path)
    }
    assert.deepStrictEqual(needsOf((yield* ask(`${url}/companies/calm`)).text), [])
    const outbox = (yield* ask(`${url}/outbox`)).text
    assert.match(outbox, /<h2 id="calls">/)
    assert.include(plain(outbox), `continue the push: tributary push retry ${push!.id}`)

    yield* run("update tributary.warehouse set pause_reason = 'the source is a new one'")
    for (const path of ["/", "/companies/pushing"]) {
      const [need, ...others] = needsOf((yield* ask(`${url}${path}`)).text)
      assert.match(
        need!.words,
        /^pushes paused pause of all pushes ?: pushes are paused: the source is a new one/,
        path
      )
      assert.deepStrictEqual(others, [], path)
    }
  })
})

describe("the pictures of the overview", () => {
  test("lead from failed and abandoned runs of an hour to a list that has both", function* () {
    yield* run(`insert into tributary.activity (resolution, at, company, resource, runs, failed_runs, abandoned_runs)
        select 'hour', date_trunc('hour', tributary.now(), 'UTC') - h * interval '1 hour', 'both', 'orders', 9, f, a
          from (values (1, 2, 1), (2, 2, 0), (3, 0, 1)) v(h, f, a)`)
    const { text } = yield* ask(`${yield* showing([shownCompany("both", 940n)])}/companies/both`)
    const links = [...text.matchAll(/href="\/runs\?([^"]*)"\s+aria-label="[^"]*: (\d) runs? failed or abandoned"/g)]
    assertEach(links, ([, query, runs]) => [runs, new URLSearchParams(query!.replaceAll("&amp;", "&")).get("status")], [
      ["1", "abandoned"],
      ["2", "failed"],
      ["3", null]
    ])
  })

  test("do not end the last trouble with the last failed minute where minutes have no ages", function* () {
    yield* run(`insert into tributary.tasks (company, resource, kind, schedule, status, freshness_target_ms, next_run_at)
                  values ('aged', 'orders', 'sync', 'every 10 min', 'done', 9000000, tributary.now() + interval '1 minute')`)
    yield* run("insert into tributary.companies (company, company_id) values ('aged', 950)")
    yield* run(`insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
                  values (950, 'orders', 'full', 'live', 'done', 1, tributary.now(), tributary.now())`)
    const hour = "date_trunc('hour', tributary.now(), 'UTC') - interval '2 hours'"
    yield* run(`insert into tributary.activity (resolution, at, company, resource, runs, failed_runs, lateness_max)
                  values ('hour', ${hour}, 'aged', 'orders', 5, 1, 2), ('minute', ${hour} + interval '5 minutes', 'aged', null, 1, 1, null)`)
    const url = yield* showing([shownCompany("aged", 950n)])
    const ended = Effect.map(
      ask(`${url}/companies/aged`),
      ({ text }) => /The last late resource, failed run or open gap was\s*<time datetime="([^"]*)"/.exec(text)?.[1]
    )
    const minutes = (after: string) =>
      Effect.map(run<{ at: Date }>(`select ${hour} + interval '${after}' as at`), ([row]) => row!.at.toISOString())
    assert.strictEqual(yield* ended, yield* minutes("1 hour"))
    // A resource was late in that minute, so that minutes have what was late.
    yield* run("update tributary.activity set lateness_max = 2 where resolution = 'minute' and company = 'aged'")
    assert.strictEqual(yield* ended, yield* minutes("6 minutes"))
  })
})
