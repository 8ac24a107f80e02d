/** The pictures of the overview: their figures are those of the runs, and the page stays small and fast. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { ask, shownCompany, showing } from "../support/pages.ts"
import { layerPages } from "../support/postgres.ts"

const run = <Row extends object>(text: string) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text))

layer(layerPages, { timeout: "60 seconds" })("the pictures of the overview", (it) => {
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
})
