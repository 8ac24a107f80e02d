/** The page of a run, and the parts of a resource's page over time, against independent queries. */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { routes } from "../../src/dashboard/pages/Runs.ts"
import { RunPhases } from "../../src/sync/RunPhases.ts"
import { duration } from "../../src/web/Components.ts"
import { ask } from "./asking.ts"
import { partsOf, plain } from "./markup.ts"
import { makeStand, stand } from "./quarantined.ts"
import { suite } from "../support/suite.ts"
import { assertEach } from "../support/assertions.ts"

const decode = Schema.decodeUnknownSync(RunPhases)

/** The cells of the table with this caption, by row. */
const cellsOf = (text: string, caption: string): ReadonlyArray<ReadonlyArray<string>> => {
  const table =
    text
      .split("<caption>")
      .slice(1)
      .find((part) => part.split("</caption>")[0]!.includes(caption)) ?? ""
  return table
    .split("<tr")
    .slice(2)
    .map((row) =>
      [...row.matchAll(/<t[hd] (?:scope="row"|role="cell")[^>]*>([\s\S]*?)<\/t[hd]>/g)].map(([, cell]) =>
        plain(cell!.replaceAll(/<[^>]*>/g, ""))
      )
    )
}

const newestRun = (company: number) =>
  Effect.map(
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql<{
        id: bigint
        phases: unknown
        requests: bigint
        retries: bigint
        inserted: bigint
        updated: bigint
      }>`
        select * from tributary.runs where company_id = ${company} and resource = 'salesmen' and lane = 'live' order by id desc limit 1`
    ),
    ([run]) => run!
  )

suite("the page of a run", stand, (test) => {
  test("shows the phases, the answers and the changes that are stored", function* () {
    const { id, name, sql, company, control, put, sync } = yield* makeStand()
    yield* put("salesmen", [
      { id: 1, name: "Ada L." },
      { id: 3, name: "Grace" }
    ])
    yield* control("POST", "/faults", { rules: [{ path: "/salesmen", kind: "status", status: 503, times: 1 }] })
    yield* sync(true)
    const run = yield* newestRun(id)
    const { phases, answers, took_ms: tookMs } = decode(run.phases)
    // The run sent one request again after a 503, and landed every page.
    assert.strictEqual(phases.request.times, Number(run.requests))
    assert.strictEqual(phases.budget.times, Number(run.requests))
    assert.strictEqual(phases.retry.times, 1)
    assert.strictEqual(Number(run.retries), 1)
    assert.isAtLeast(phases.landing.times, 1)
    assertEach(answers, ({ answer, requests, retries }) => [answer, requests, retries], [
      ["ServerFault 503", 1, 1],
      ["200", Number(run.requests) - 1, 0]
    ])
    assert.isAtLeast(tookMs, phases.landing.ms)
    const { text, read } = yield* ask(routes, [company], `/runs/${run.id}`)
    assert.deepStrictEqual(
      cellsOf(text, "The phases as figures")
        .slice(0, 4)
        .map(([phase, time, , times, longest]) => [phase, time, times, longest]),
      [
        ["Waiting for the rate budget", phases.budget],
        ["Requests in flight", phases.request],
        ["Waiting before a retry", phases.retry],
        ["Landing", phases.landing]
      ].map(([phase, one]) => {
        const { ms, times, longest_ms: longestMs } = one as typeof phases.budget
        return [phase, duration(ms), String(times), duration(longestMs)]
      })
    )
    assertEach(cellsOf(text, "Answers by kind"), ([answer, requests, retries]) => [answer, requests, retries], [
      ["503: the service failed", "1", "1"],
      ["200", String(Number(run.requests) - 1), "0"]
    ])
    assert.include(read, `Requests ${run.requests} (1 retry)`)
    const versions = yield* sql<{ id: bigint; op: string; version: bigint }>`
        select id, _op as op, _version as version from erp_history.salesmen
         where _company_id = ${id} and _run_id = ${run.id} order by id`
    assert.lengthOf(versions, 2)
    assert.sameDeepMembers(
      cellsOf(text, "The changes of this run").map(([record, op, fields, version]) => [record, op, fields, version]),
      [
        ["1 · Ada L.", "update", "name: Ada → Ada L.", "2"],
        ["3 · Grace", "insert", "", "1"]
      ]
    )
    assert.strictEqual(Number(run.inserted) + Number(run.updated), versions.length)
    assert.include(read, `where "_run_id" = ${run.id}`)
    assert.include(
      text,
      `href="/records?company=${encodeURIComponent(name).replace(/%20/g, "+")}&amp;resource=salesmen&amp;id=1"`
    )
  })
})

suite("the list of runs", stand, (test) => {
  test("has the last run to end first, also where a row stands for several, and every run once on its pages", function* () {
    const { id, name, sql, company } = yield* makeStand()
    // Equal ends at the border of a page, and a row that was begun first and used again last.
    yield* sql`
        insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, quiet_runs, quiet_since)
        select ${id}, 'things', 'incremental', 'live', 'done', 1, tributary.now() - interval '2 hours',
               tributary.now() - case when n = 1 then interval '1 second' else make_interval(mins => 200 - n / 30) end,
               case when n = 1 then 31 else 0 end, case when n = 1 then tributary.now() - interval '3 hours' end
          from generate_series(1, 120) n`
    yield* sql`
        insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at)
        values (${id}, 'things', 'full', 'live', 'running', 1, tributary.now() - interval '4 hours')`
    const expected = yield* sql<{ id: bigint }>`
        select id from tributary.runs where company_id = ${id} order by finished_at desc nulls first, id desc`
    const path = `/runs?company=${encodeURIComponent(name)}`
    const parts = yield* partsOf(path, (next) => ask(routes, [company], next))
    assert.match(plain(parts[0]!), /last 1 s ago .* 31 runs without a change/)
    const rows = parts.flatMap((text) => cellsOf(text, "Runs, the last to end first"))
    assert.include(rows[0]!.join(" "), "running")
    const shown = rows.map(([run]) => run!)
    assert.deepStrictEqual(
      shown,
      expected.map((one) => String(one.id))
    )
  })
})
