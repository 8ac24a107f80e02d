/** The pictures of the overview: their figures are those of the runs, and the page stays small and fast. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import * as Activity from "../../src/status/Activity.ts"
import * as WriteActivity from "../../src/tasks/WriteActivity.ts"
import { ask, seed, shownCompany, showing } from "../support/pages.ts"
import { layerWarehouse } from "../support/postgres.ts"

const run = <Row extends object>(text: string) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text))
const resources = [...serviceV2.resources.keys(), ...Array.from({ length: 100 }, (_, index) => `own${index}`)].slice(
  0,
  100
)
const write = WriteActivity.writeActivity(() => [{ company: "north", fingerprint: "0".repeat(64) }])
const weightMax = 200_000
const cellsOf = (text: string) =>
  [...text.matchAll(/<t[hd][^>]*>([\s\S]*?)<\/t[hd]>/g)].map(([, cell]) => cell!.replaceAll(/<[^>]*>|\s+/g, " ").trim())

layer(layerWarehouse, { excludeTestServices: true, timeout: "60 seconds" })("the pictures of the overview", (it) => {
  it.effect("show the figures of the runs of 100 resources, in a page of bounded weight", () =>
    Effect.gen(function* () {
      const url = yield* showing([shownCompany("north", 1n)])
      const empty = yield* ask(`${url}/`)
      assert.include(empty.text, "No activity was recorded")

      yield* seed([["north", 1]], resources, 10_000)
      yield* write
      const reply = yield* ask(`${url}/`)
      assert.strictEqual(reply.status, 200)
      assert.notInclude(reply.text, "<script>alert")

      // The table with the figures of the charts, against the runs themselves.
      const part = reply.text.slice(reply.text.indexOf('id="last-day-table"'))
      const cells = cellsOf(part.slice(0, part.indexOf("</table>"))).slice(9)
      const shown = Array.from({ length: cells.length / 9 }, (_, index) => cells.slice(index * 9, index * 9 + 4))
      const expected = yield* run<{ cells: ReadonlyArray<string> }>(
        `select array[to_char(date_trunc('hour', finished_at at time zone 'UTC'), 'HH24:MI'), to_char(count(*), 'FM999,999'),
                to_char(count(*) filter (where status in ('failed', 'abandoned')), 'FM999,990'),
                to_char(sum(inserted), 'FM999,990') || ', ' || to_char(sum(updated), 'FM999,990') || ', ' || to_char(sum(deleted), 'FM999,990')] as cells
           from tributary.runs group by date_trunc('hour', finished_at at time zone 'UTC')
          order by date_trunc('hour', finished_at at time zone 'UTC') desc`
      )
      assert.isAbove(expected.length, 5)
      assert.deepStrictEqual(
        shown.filter(([, runs]) => runs !== "0"),
        expected.map((row) => row.cells)
      )
      const hours = yield* Activity.readHours(["north"])
      const total = hours.reduce((sum, { runs }) => sum + runs, 0)
      assert.strictEqual(total, 10_000)
      assert.include(reply.text, "10,000 runs")

      const tiles = [
        ...reply.text.matchAll(/class="\w+"\s+href="\/companies\/north\/[^"]+"\s+tabindex="-1"\s+title="/g)
      ]
      assert.strictEqual(tiles.length, 100)
      assert.include(reply.text, "What needs a person")
      assert.match(
        reply.text,
        /Next:\s+<a href="\/resources\?company=north&amp;state=failing"\s*>report the request id<\/a/
      )

      const times: Array<number> = []
      for (let round = 0; round < 5; round += 1) {
        const beganMs = performance.now()
        yield* ask(`${url}/`)
        times.push(Math.round(performance.now() - beganMs))
      }
      console.log(`overview of 100 resources with 10,000 runs: ${times.join(", ")} ms, ${reply.text.length} bytes`)
      assert.isBelow(reply.text.length, weightMax)

      const company = yield* ask(`${url}/companies/north`)
      assert.include(company.text, 'id="last-day"')
      assert.match(company.text, /href="\/runs\?company=north&amp;hour=[^"]*"\s+aria-label="[\d:]* ?[^"]*\d+ runs?"/)
      assert.notMatch(company.text, /href="\/runs\?hour=/, "the runs of the hour of every company")
    })
  )

  it.effect("lead from failed and abandoned runs of an hour to a list that has both", () =>
    Effect.gen(function* () {
      yield* run(`insert into tributary.activity (resolution, at, company, resource, runs, failed_runs, abandoned_runs)
        select 'hour', date_trunc('hour', tributary.now(), 'UTC') - h * interval '1 hour', 'both', 'orders', 9, f, a
          from (values (1, 2, 1), (2, 2, 0), (3, 0, 1)) v(h, f, a)`)
      const { text } = yield* ask(`${yield* showing([shownCompany("both", 940n)])}/companies/both`)
      const links = [...text.matchAll(/href="\/runs\?([^"]*)"\s+aria-label="[^"]*: (\d) runs? failed or abandoned"/g)]
      assert.deepStrictEqual(
        links.map(([, query, runs]) => [runs, new URLSearchParams(query!.replaceAll("&amp;", "&")).get("status")]),
        [
          ["1", "abandoned"],
          ["2", "failed"],
          ["3", null]
        ]
      )
    })
  )

  it.effect("do not end the last trouble with the last failed minute where minutes have no ages", () =>
    Effect.gen(function* () {
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
  )

  it.effect("count the time of source pauses as the page of the budgets does", () =>
    Effect.gen(function* () {
      // Both pause in the same hour; of the earlier hour, a quarter of a minute.
      yield* run(`insert into tributary.activity (resolution, at, company, paused_ms)
                  select 'hour', date_trunc('hour', tributary.now(), 'UTC') - h * interval '1 hour', c, ms
                    from (values ('slow', 1, 1200000), ('slower', 1, 1800000), ('slow', 2, 15000)) v(c, h, ms)`)
      yield* run(`insert into tributary.tasks (company, resource, kind) values ('slow', 'orders', 'sync')`)
      const url = yield* showing([
        { ...shownCompany("slow", 961n), fingerprint: "1".repeat(64) },
        { ...shownCompany("slower", 962n), fingerprint: "2".repeat(64) }
      ])
      const words = (text: string) => text.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ")
      const [overview, budget] = [yield* ask(`${url}/`), yield* ask(`${url}/budget`)].map(({ text }) => words(text))
      assert.include(overview!, "Source pauses 30 min")
      assert.match(budget!, /Source pauses in the last 24 hours ?: 30 min in all\./)
      for (const text of [overview!, budget!]) assert.include(text, "Of several budgets, the longest pause counts.")
      const one = words((yield* ask(`${url}/budget?company=slow`)).text)
      assert.match(one, /Source pauses in the last 24 hours ?: 20 min in all\./)
      assert.notInclude(one, "Of several budgets")
      yield* run("delete from tributary.activity where company in ('slow', 'slower')")
    })
  )

  it.effect("are not shown of one company of more than are stored each", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: WriteActivity.seriesMax.hour + 1 }, (_, index) => ({
        ...shownCompany(`m${index}`, BigInt(5_000 + index)),
        fingerprint: String(index).padStart(64, "0")
      }))
      yield* run(`insert into tributary.tasks (company, resource, kind) values ('m1', 'orders', 'sync')`)
      yield* run(`insert into tributary.activity (resolution, at, runs, failed_runs, paused_ms)
                  select 'hour', date_trunc('hour', tributary.now(), 'UTC') - interval '5 hours', 7, 3, 60000`)
      const url = yield* showing(many)
      const { text } = yield* ask(`${url}/companies/m1`)
      assert.match(text, /activity<\/a> is that of all companies together: of more than\s+1,000/)
      assert.notInclude(text, "0 runs, none of them failed")
      assert.notInclude((yield* ask(`${url}/budget?company=m1`)).text, "Source pauses in the last 24 hours")
      const budgets = (yield* ask(`${url}/budget`)).text
      assert.match(budgets, /Source pauses in the last 24 hours[\s\S]{0,300}60 s in all\./)
      assert.match((yield* ask(`${url}/`)).text, /activity is that of all companies together: of more than\s+1,000/)
    })
  )

  it.effect("show shares where there are many companies", () =>
    Effect.gen(function* () {
      const names = Array.from({ length: 30 }, (_, index) => `c${index}`)
      yield* run(
        `insert into tributary.companies (company, company_id) select 'c' || i, 100 + i from generate_series(0, 29) i`
      )
      yield* run(
        `insert into tributary.company_states (company, state, severity, resources, failing, late, never_synced, blocked, paused, fresh,
                lateness, quarantined, dead_letters, gaps, rejected, subscriptions_down)
         select 'c' || i, case when i < 3 then 'failing' else 'fresh' end, i, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0 from generate_series(0, 29) i`
      )
      const url = yield* showing(names.map((name, index) => shownCompany(name, BigInt(100 + index))))
      const { text } = yield* ask(`${url}/`)
      assert.include(text.replace(/<[^>]+>/g, " ").replace(/\s+/g, " "), "30 companies: 3 failing 27 fresh")
      assert.include(text, 'id="last-day"')
      assert.isBelow(text.length, weightMax)
    })
  )

  it.effect("say of a company that was never read neither that it is fresh nor that none was late", () =>
    Effect.gen(function* () {
      yield* run("truncate tributary.activity, tributary.activity_watermarks")
      yield* run(`insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, next_run_at)
                  values ('unread', 'orders', 'sync', 'every 10 min', 60000, tributary.now())`)
      yield* run(`insert into tributary.processes (process_id, companies) values ('p1', '{unread}')`)
      yield* write
      const url = yield* showing([shownCompany("unread", 900n)])
      const { text } = yield* ask(`${url}/companies/unread`)
      assert.match(text, /\d\d:\d\d: 1 process start/, "there is an hour")
      assert.notMatch(text, /\d\d:\d\d: fresh/)
      assert.notInclude(text, "none was late")

      // Another resource has an age; the sentence about it does not hide the one without.
      yield* run(`insert into tributary.companies (company, company_id) values ('unread', 900)`)
      yield* run(`insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
                  values (900, 'orders', 'full', 'live', 'quarantined', 1, tributary.now() - interval '1 hour', tributary.now() - interval '1 hour')`)
      yield* run(`insert into tributary.activity (resolution, at, company, lateness_max)
                  select r, date_trunc(r, tributary.now(), 'UTC'), 'unread', 0.4 from unnest('{minute,hour}'::text[]) r`)
      const later = (yield* ask(`${url}/companies/unread`)).text
      assert.match(later, /\d\d:\d\d: fresh/)
      assert.match(
        later,
        /none was late in 1 hour, at most 40 %\.\s+Without 1 late resource that no run has read completely\./
      )
    })
  )
})
