/** The page of a run, and the parts of a resource's page over time, against independent queries. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import { routes as resourceRoutes } from "../../src/dashboard/pages/Resource.ts"
import { routes } from "../../src/dashboard/pages/Runs.ts"
import { resourceAddress } from "../../src/dashboard/Addresses.ts"
import { RunPhases } from "../../src/sync/RunPhases.ts"
import { duration } from "../../src/web/Components.ts"
import { ask, hostile, holdsHostile } from "./asking.ts"
import { seed, shownCompany } from "../support/pages.ts"
import { stopClock } from "../support/postgres.ts"
import { makeStand, stand } from "./quarantined.ts"

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
        cell!
          .replace(/<[^>]+>/g, "")
          .replace(/\s+/g, " ")
          .trim()
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

layer(stand, { excludeTestServices: true, timeout: "60 seconds" })("the page of a run", (it) => {
  it.effect("shows the phases, the answers and the changes that are stored", () =>
    Effect.gen(function* () {
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
      assert.deepStrictEqual(
        answers.map(({ answer, requests, retries }) => [answer, requests, retries]),
        [
          ["ServerFault 503", 1, 1],
          ["200", Number(run.requests) - 1, 0]
        ]
      )
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
      assert.deepStrictEqual(
        cellsOf(text, "Answers by kind").map(([answer, requests, retries]) => [answer, requests, retries]),
        [
          ["503: the service failed", "1", "1"],
          ["200", String(Number(run.requests) - 1), "0"]
        ]
      )
      // The lane of the retries says why, and the figures of the lanes stand in no sentence.
      const lane = /<span class="name"\s*>Waiting before a retry[\s\S]*?<\/li>/.exec(text)![0]
      assert.isAtLeast(lane.match(/503: the service failed, 1 retry/g)!.length, 4)
      assert.match(read, /Phases of [^:]*: The longest phase: [a-z ]+\./)
      assert.notMatch(read, /waiting for the resource, \d/)
      assert.include(read, `Requests ${run.requests} (1 retry)`)
      assert.include(read.slice(read.indexOf("Requests"), read.indexOf("Requests") + 80), "Pages 1 page, 3 records")
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
  )

  it.effect("says why there are no phases, and shows no foreign markup", () =>
    Effect.gen(function* () {
      const { id, company, sql } = yield* makeStand()
      const { id: run } = yield* newestRun(id)
      const of = () => ask(routes, [company], `/runs/${run}`)
      yield* sql`update tributary.runs set phases = '{"newer": true}'::json where id = ${run}`
      assert.include((yield* of()).read, "No phases are stored for this run")
      yield* sql`update tributary.runs set phases = null, status = 'running', finished_at = null where id = ${run}`
      assert.include((yield* of()).read, "The phases are stored when the run ends.")
      const phase = { ms: 1, times: 1, longest_ms: 1, slots: [1] }
      const foreign = {
        took_ms: 1,
        slot_ms: 5,
        phases: { budget: phase, request: phase, retry: phase, landing: phase },
        answers: [{ answer: hostile, requests: 1, retries: 0, retry_ms: 0 }]
      }
      yield* sql`update tributary.runs set phases = ${JSON.stringify(foreign)}::json where id = ${run}`
      const { text } = yield* of()
      assert.isFalse(holdsHostile(text))
      assert.include(text, "1 ms")
    })
  )
})

layer(stand, { excludeTestServices: true, timeout: "60 seconds" })("the page of a resource", (it) => {
  it.effect("shows hours, changes, runs and fields as they are stored", () =>
    Effect.gen(function* () {
      const { id, name, sql, company, put, sync } = yield* makeStand()
      yield* put("salesmen", [{ id: 1, name: "Ada L." }])
      yield* sync(true)
      yield* sql`insert into tributary.activity (resolution, at, company, resource, runs, inserted, updated, deleted, gaps, age_ms_max, lateness_max, rows)
        values ('hour', date_trunc('hour', tributary.now() - interval '3 hours', 'UTC'), ${name}, 'salesmen', 4, 1000, 20, 3, 1, 5400000, 1.5, 2345),
               ('hour', date_trunc('hour', tributary.now() - interval '2 hours', 'UTC'), ${name}, 'salesmen', 2, 0, 0, 0, 0, 600000, 0.25, null),
               ('hour', date_trunc('hour', tributary.now() - interval '2 hours', 'UTC'), ${name}, 'orders', 99, 0, 0, 0, 0, null, null, null),
               ('hour', date_trunc('hour', tributary.now() - interval '90 hours', 'UTC'), ${name}, 'salesmen', 77, 0, 0, 0, 0, null, null, null)`
      yield* sql`insert into tributary.unknown_fields (company_id, resource, field, first_seen_at, last_seen_at, times, sample_types, run_id)
        values (${id}, 'salesmen', ${hostile}, tributary.now(), tributary.now(), 1234, '{text,integer}', 1)`
      yield* sql`analyze erp.salesmen`
      const { text, read } = yield* ask(resourceRoutes, [company], resourceAddress(name, "salesmen"))
      assert.isFalse(holdsHostile(text))
      assert.deepStrictEqual(
        cellsOf(text, "The last two days by hour").map((cells) => cells.slice(1)),
        [
          ["10 min", "25 %", "2", "not counted", "0", "0", "0", "0"],
          ["90 min", "150 %", "4", "2,345", "1,000", "20", "3", "1"].map((cell) =>
            cell === "90 min" ? duration(5_400_000) : cell
          )
        ]
      )
      assert.include(read, "late in 1 of 2 hours in two days, at most ")
      assert.match(read, /Rows: 2,345 now, as many as at \d{4}-\d\d-\d\d \d\d:00\./)
      const runs = yield* sql<{ id: bigint; requests: bigint; status: string }>`
        select id, requests, status from tributary.runs where company_id = ${id} and resource = 'salesmen' order by id`
      assert.deepStrictEqual(
        cellsOf(text, "The last runs of salesmen").map(([run, status, , , , requests]) => [run, status, requests]),
        runs.map(({ id: run, status, requests }) => [String(run), status, String(requests)]).toReversed()
      )
      const changes = yield* sql<{ id: bigint; version: bigint; run: bigint }>`
        select id, _version as version, _run_id as run from erp_history.salesmen where _company_id = ${id}
         order by _version desc, id desc`
      assert.sameDeepMembers(
        cellsOf(text, "The latest changes").map(([record, , , version, run]) => [record, version, run]),
        changes.map(({ id: record, version, run }) => [`${record} · Ada L.`, String(version), String(run)])
      )
      const columns = yield* sql<{ name: string; unused: boolean }>`
        select a.attname as name, coalesce(s.null_frac = 1, false) as unused
          from pg_attribute a left join pg_stats s on s.schemaname = 'erp' and s.tablename = 'salesmen' and s.attname = a.attname
         where a.attrelid = 'erp.salesmen'::regclass and a.attnum > 0 and not a.attisdropped and a.attname not like '\\_%' order by a.attnum`
      assert.deepStrictEqual(
        cellsOf(text, "Columns of the table").map(([column, , values]) => [column, values === "unused"]),
        columns.map(({ name: column, unused }) => [column, unused])
      )
      const unused = columns.filter(({ unused: isUnused }) => isUnused).length
      assert.include(read, `${columns.length} columns, ${unused} of them unused`)
      assert.deepStrictEqual(
        cellsOf(text, "New fields").map((cells) => cells.slice(1, 4)),
        [["new", "text, integer", "1,234"]]
      )
    })
  )
})

layer(stand, { excludeTestServices: true, timeout: "120 seconds" })("with 100 resources and 10,000 runs", (it) => {
  it.effect("both pages stay small and quick", () =>
    Effect.gen(function* () {
      const resources = Array.from({ length: 100 }, (_, index) => `widgets${index}`)
      yield* seed([["north", 1]], resources, 10_000)
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into tributary.activity (resolution, at, company, resource, runs, age_ms_max, lateness_max)
        select 'hour', date_trunc('hour', tributary.now(), 'UTC') - hour * interval '1 hour', 'north', 'widgets' || n, 15, 300000, 0.3
          from generate_series(0, 200) as hour, generate_series(0, 99) as n`
      yield* sql`insert into tributary.change_batches (company_id, resource, history, ids, changes, began, landed_at, last_position, token)
        select company_id, resource, 'erp_history.salesmen', '{1,2,3}', 3, started_at, finished_at, 3 * row_number() over (order by id), 1
          from tributary.runs order by id`
      yield* sql`update tributary.change_feed set last_position = (select max(last_position) from tributary.change_batches)`
      yield* sql.unsafe("analyze")
      const companies = [shownCompany("north", 1n)]
      const [run] = yield* sql<{
        id: bigint
      }>`select percentile_disc(0.5) within group (order by id) as id from tributary.runs`
      for (const [of, path] of [
        [resourceRoutes, resourceAddress("north", "widgets5")],
        [routes, `/runs/${run!.id}`]
      ] as const) {
        const times: Array<number> = []
        for (let round = 0; round < 5; round++) {
          const began = performance.now()
          const { text } = yield* ask(of, companies, path)
          times.push(performance.now() - began)
          assert.isBelow(Buffer.byteLength(text), 200_000)
          if (round === 0) yield* Effect.logInfo(`${path}: ${Buffer.byteLength(text)} bytes`)
        }
        yield* Effect.logInfo(`${path}: ${times.map((time) => time.toFixed(0)).join(", ")} ms`)
        // The quickest of five, because other work may share the machine.
        assert.isBelow(Math.min(...times), 150)
      }
    })
  )
})

layer(stand, { excludeTestServices: true, timeout: "60 seconds" })("runs that share a row", (it) => {
  it.effect("count the same in the sentences and bars of a resource: each bar is one run", () =>
    Effect.gen(function* () {
      const { id, name, sql, company } = yield* makeStand()
      yield* sql`delete from tributary.runs where company_id = ${id}`
      // Single runs with 3 requests, and 31 runs with 2 each in one row.
      yield* sql`
        insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, requests, quiet_runs, quiet_since)
        select ${id}, 'salesmen', 'incremental', 'live', 'done', 1, tributary.now() - n * interval '1 hour', tributary.now() - n * interval '1 hour' + interval '2 seconds',
               case when n = 2 then 62 else 3 end, case when n = 2 then 31 else 0 end, case when n = 2 then tributary.now() - interval '3 hours' end
          from generate_series(1, 5) n order by n desc`
      yield* sql`update tributary.runs set status = 'failed' where company_id = ${id} and started_at < tributary.now() - interval '4 hours 30 minutes'`
      const { text, read } = yield* ask(resourceRoutes, [company], resourceAddress(name, "salesmen"))
      // The axis has no date, so that the sentences have it.
      const since = "since \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d"
      assert.match(read, new RegExp(`74 requests in the last 35 runs, in 5 rows, ${since}; at most 3 in a run\\.`))
      assert.match(read, new RegExp(`at most 2 s in the last 35 runs, in 5 rows, ${since}\\.`))
      const bars = [...text.matchAll(/<title>([^<]*): (\d+) sent, (?:done|failed)<\/title>/g)].map(
        ([, words, requests]) => {
          const members = Number(/^The mean of (\d+) runs without a change, run /.exec(words!)?.[1] ?? 1)
          return [members, Number(requests)] as const
        }
      )
      assert.deepStrictEqual(bars, [
        [1, 3],
        [1, 3],
        [1, 3],
        [31, 2],
        [1, 3]
      ])
      assert.strictEqual(
        bars.reduce((sum, [members, requests]) => sum + members * requests, 0),
        74
      )
      // The legend has no sum of means.
      assert.notMatch(read, /sent, done \d/)
      assert.match(text, /<title>The last of 31 runs without a change, run [^<]*: 2 s done<\/title>/)
      // No activity is stored.
      assert.include(read, "Changes: nothing is recorded for the last two days.")
    })
  )

  it.effect("stand in the hour of the last of them, and an hour without a record is no hour without a run", () =>
    Effect.gen(function* () {
      const { id, name, sql, company } = yield* makeStand()
      yield* sql`
        insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, quiet_runs, quiet_since)
        values (${id}, 'things', 'incremental', 'live', 'done', 1, tributary.now(), tributary.now(), 31, tributary.now() - interval '5 hours')`
      const [at] = yield* sql<{ hour: string }>`
        select to_char((tributary.now() - interval '3 hours') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:00"Z"') as hour`
      const of = `/runs?company=${encodeURIComponent(name)}&resource=things`
      const hour = yield* ask(routes, [company], `${of}&hour=${at!.hour}`)
      assert.include(hour.read, "A row that stands for several runs is in the hour of the last of them.")
      assert.include(hour.read, "There is no row of such a run.")
      const { read } = yield* ask(routes, [company], of)
      assert.notMatch(read, /\b0 runs/)
      assert.include(read, "No such run is recorded in the last day. Of more than 1,000 resources")
    })
  )

  it.effect("that failed are counted as far as they are read", () =>
    Effect.gen(function* () {
      const { id, name, sql, company } = yield* makeStand()
      const fail = (runs: number) => sql`
        insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, error_kind, error)
        select ${id}, 'salesmen', 'incremental', 'live', 'failed', 1, tributary.now(), tributary.now(), 'ServerFault', 'no' from generate_series(1, ${runs}::int)`
      const words = Effect.map(ask(resourceRoutes, [company], resourceAddress(name, "salesmen")), ({ read }) =>
        /[A-Za-z ]*\d+ runs in a row did not succeed, [a-z ]+/.exec(read)![0].trim()
      )
      yield* fail(40)
      assert.match(yield* words, /^40 runs in a row did not succeed, the first/)
      yield* fail(20)
      assert.match(yield* words, /^At least 50 runs in a row did not succeed, one of them/)
    })
  )
})

layer(stand, { excludeTestServices: true, timeout: "60 seconds" })("the list of runs", (it) => {
  it.effect("says of a run whose process was stopped, and of a failed one, only what happened", () =>
    Effect.gen(function* () {
      const { id, name, sql, company } = yield* makeStand()
      yield* sql`delete from tributary.runs where company_id = ${id}`
      yield* sql`
        insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, cursor_from)
        select ${id}, 'things' || n, 'incremental', 'live', 'abandoned', 1, tributary.now() - interval '1 minute', tributary.now(), '2026-11-20T08:15:30Z'
          from generate_series(1, 2) n`
      const write = () =>
        Effect.andThen(
          sql`delete from tributary.activity where company = ${name}`,
          sql`insert into tributary.activity (resolution, at, company, resource, runs, failed_runs, abandoned_runs)
              select 'hour', date_trunc('hour', tributary.now(), 'UTC'), ${name}, resource, 1, count(*) filter (where status = 'failed'), count(*) filter (where status = 'abandoned')
                from tributary.runs where company_id = ${id} group by resource`
        )
      yield* write()
      const list = () => ask(routes, [company], `/runs?company=${encodeURIComponent(name)}`)
      const stopped = (yield* list()).read
      assert.match(stopped, /runs abandoned 2 runs in the last day, 2 failed or abandoned\./)
      assert.include(stopped, "None of the 2 with the most runs failed.")
      yield* sql`update tributary.runs set status = 'failed', error = 'it broke' where company_id = ${id} and resource = 'things1'`
      yield* write()
      const failed = (yield* list()).read
      assert.match(failed, /runs fail 2 runs in the last day, 2 failed or abandoned\./)
      assert.include(failed, "things1 failed in 1 hour.")

      const [run] = yield* sql<{ id: bigint }>`
        select id from tributary.runs where company_id = ${id} and status = 'failed'`
      const { read } = yield* ask(routes, [company], `/runs/${run!.id}`)
      assert.match(read, /Cursor 2026-11-20 08:15:30 ?, not moved/)
    })
  )

  it.effect("has the last run to end first, also where a row stands for several, and every run once on its pages", () =>
    Effect.gen(function* () {
      const { id, name, sql, company } = yield* makeStand()
      yield* stopClock
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
      const shown: Array<string> = []
      let path: string | undefined = `/runs?company=${encodeURIComponent(name)}`
      while (path !== undefined) {
        const { text, read }: Effect.Success<ReturnType<typeof ask>> = yield* ask(routes, [company], path)
        const rows = cellsOf(text, "Runs, the last to end first")
        if (shown.length === 0) {
          assert.include(rows[0]!.join(" "), "running")
          assert.match(read, /last 1 s ago .* 31 runs without a change/)
        }
        shown.push(...rows.map(([run]) => run!))
        path = /href="([^"]*)" rel="next"/.exec(text)?.[1]?.replaceAll("&amp;", "&")
      }
      assert.deepStrictEqual(
        shown,
        expected.map((one) => String(one.id))
      )
    })
  )

  it.effect("links to a company by its last name", () =>
    Effect.gen(function* () {
      const { id, name, sql, company } = yield* makeStand()
      yield* sql`insert into tributary.companies (company, company_id, seen_at) values (${`a former ${name}`}, ${id}, tributary.now() - interval '1 day')`
      const { text } = yield* ask(routes, [company], `/runs?company=${encodeURIComponent(name)}`)
      assert.include(text, `href="${resourceAddress(name, "salesmen")}"`)
      assert.notInclude(text, "a former company")
    })
  )

  it.effect("has every run once, also where more runs are in progress than a page has", () =>
    Effect.gen(function* () {
      const { id, name, sql, company } = yield* makeStand()
      yield* sql`
        insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
        select ${id}, 'things', 'full', 'live', case when n > 10 then 'running' else 'done' end, 1, tributary.now(), case when n <= 10 then tributary.now() end
          from generate_series(1, 130) n`
      const expected = yield* sql<{ id: bigint }>`
        select id from tributary.runs where company_id = ${id} order by finished_at desc nulls first, id desc`
      const shown: Array<string> = []
      let path: string | undefined = `/runs?company=${encodeURIComponent(name)}`
      while (path !== undefined) {
        const { text }: Effect.Success<ReturnType<typeof ask>> = yield* ask(routes, [company], path)
        shown.push(...cellsOf(text, "Runs, the last to end first").map(([run]) => run!))
        path = /href="([^"]*)" rel="next"/.exec(text)?.[1]?.replaceAll("&amp;", "&")
      }
      assert.deepStrictEqual(
        shown,
        expected.map((one) => String(one.id))
      )
    })
  )
})
