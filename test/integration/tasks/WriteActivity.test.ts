/** The activity: its figures are those of the runs, however often and late it is written; its rows are bounded. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Activity from "../../../src/status/Activity.ts"
import * as WriteActivity from "../../../src/tasks/WriteActivity.ts"
import { clockIs, execute, layerWarehouse } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

/** Sets the clock to so many minutes after midnight of 2026-03-01 UTC. */
const setClock = (minutes: number) =>
  execute(clockIs(`timestamptz ''2026-03-01T00:00:00Z'' + interval ''${minutes} minutes''`))
const north = "1".repeat(64)
const write = WriteActivity.writeActivity(() => [{ company: "north", fingerprint: north }])
/** Writes it at a minute. */
const writeAt = (minutes: number) => Effect.andThen(setClock(minutes), write)
/** Writes it from the beginning. */
const writeAnew = Effect.andThen(execute("truncate tributary.activity, tributary.activity_watermarks"), write)
const startMs = Date.parse("2026-03-01T00:00:00Z")
const instant = (minutes: number) => new Date(startMs + minutes * 60_000).toISOString()

const empty =
  execute(`truncate tributary.runs, tributary.checkpoints, tributary.companies, tributary.tasks, tributary.activity,
  tributary.activity_watermarks, tributary.delivery_gaps, tributary.processes, tributary.budget_usage, tributary.row_counts cascade`)
const rowsOf = (resolution: string) =>
  execute<Record<string, unknown>>(
    `select resolution, at, company, resource, rows, runs, quarantined_runs, failed_runs, abandoned_runs, inserted, updated, deleted,
            quarantined, requests, retries, run_ms, run_ms_max, age_ms_max, round(lateness_max::numeric, 9)::text as lateness,
            budget_share_max, paused_ms, gaps, process_starts
       from tributary.activity where resolution = $1 order by at, company, resource`,
    [resolution]
  )
const all = Effect.all([rowsOf("minute"), rowsOf("hour"), rowsOf("day")])

/** A run of north that began and ended at a minute. */
const addRun = (minutes: number) =>
  execute(
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, inserted)
     values (1, 'a', 'full', 'live', 'done', 1, $1::timestamptz, $1::timestamptz, 3)`,
    [instant(minutes)]
  )

/** Companies north and south with three resources each, and what they need beside runs. */
const setUp = Effect.gen(function* () {
  yield* setClock(0)
  yield* empty
  yield* execute("insert into tributary.companies (company, company_id) values ('north', 1), ('south', 2)")
  yield* execute(`insert into tributary.checkpoints (company_id, resource, updated_at)
    select c, r, tributary.now() from generate_series(1, 2) c, unnest(array['a', 'b', 'c']) r`)
  yield* execute(`insert into tributary.tasks (company, resource, kind, freshness_target_ms)
    select c, r, 'sync', 1800000 from unnest(array['north', 'south']) c, unnest(array['a', 'b', 'c']) r`)
})

/** Runs from a minute until another: of each kind, lane and status, by a seed. */
const addRuns = (from: number, until: number, number: number) =>
  execute(
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, inserted, updated, deleted,
            quarantined, requests, retries)
     select 1 + (h >> 3) % 2, (array['a', 'b', 'c'])[1 + (h >> 5) % 3], case when (h >> 7) % 5 = 0 then 'full' else 'incremental' end,
            case when (h >> 9) % 7 = 0 then 'backfill' else 'live' end,
            (array['done', 'done', 'done', 'failed', 'quarantined', 'abandoned'])[1 + (h >> 11) % 6], 1,
            s.at - make_interval(secs => (h >> 13) % 90), s.at, (h >> 2) % 40, (h >> 4) % 30, (h >> 6) % 5, (h >> 8) % 2,
            1 + (h >> 10) % 9, (h >> 12) % 2
       from (select i, abs(hashint4(i + $1::int)) as h, timestamptz '2026-03-01T00:00:00Z'
               + make_interval(secs => 60 * ($1::float8 + i * ($2 - $1)::float8 / $3)) as at from generate_series(0, $3::int - 1) i) s
      order by s.at`,
    [from, until, number]
  )

interface StoredRun {
  readonly company: string
  readonly resource: string
  readonly isFresh: boolean
  readonly began: number
  readonly ended: number
}

/** The highest age in each hour until a moment, computed moment by moment. */
const agesByHour = Effect.fnUntraced(function* (untilMs: number) {
  const runs = yield* execute<StoredRun>(
    `select case company_id when 1 then 'north' else 'south' end as company, resource,
            lane = 'live' and kind in ('full', 'incremental') and status = 'done' as "isFresh",
            (extract(epoch from started_at) * 1000)::float8 as began, (extract(epoch from finished_at) * 1000)::float8 as ended
       from tributary.runs`
  )
  const ages = new Map<string, number>()
  for (const [key, own] of Map.groupBy(runs, ({ company, resource }) => `${company} ${resource}`)) {
    const fresh = own.filter(({ isFresh }) => isFresh)
    const hours = Array.from(
      { length: Math.ceil((untilMs - startMs) / 3_600_000) },
      (_, hour) => startMs + hour * 3_600_000
    )
    for (const hour of hours) {
      const end = Math.min(untilMs, hour + 3_600_000)
      const moments = [...fresh.map(({ ended }) => ended).filter((ended) => ended >= hour && ended < end), end]
      const found = moments.flatMap((moment) => {
        const before = fresh.filter(({ ended }) => ended < moment).map(({ began }) => began)
        return before.length === 0 ? [] : [moment - Math.max(...before)]
      })
      if (found.length > 0) ages.set(`${key} ${hour}`, Math.round(Math.max(...found)))
    }
  }
  return ages
})

suite("the activity", layerWarehouse, (test) => {
  test("has the figures of the runs, also where it is written late", function* () {
    yield* setUp
    const total = 40 * 60
    for (let minute = 0; minute < total; minute += 300) yield* addRuns(minute, minute + 300, 111)
    yield* setClock(total - 7)
    yield* execute(
      `insert into tributary.processes (process_id, companies, started_at) values ('p', '{north}', $1::timestamptz), ('q', '{north}', $2::timestamptz)`,
      [instant(61), instant(total - 30)]
    )
    yield* execute(
      `insert into tributary.delivery_gaps (company, resource, cause, detail, detected_at, closed_at)
         values ('north', 'a', 'event_lost', '', $1::timestamptz, $2::timestamptz)`,
      [instant(130), instant(250)]
    )
    yield* execute(
      `insert into tributary.budget_usage (fingerprint, at, used, allowed, configured, rate_limited_count, is_paused)
         select $1, $2::timestamptz + make_interval(secs => 15 * i), i, 100, 100, 0, i >= 30 from generate_series(0, 49) i`,
      [north, instant(total - 60)]
    )
    yield* write

    const now = startMs + (total - 7) * 60_000
    for (const [resolution, since] of [
      ["minute", total - 7 - 1_440],
      ["hour", 0],
      ["day", 0]
    ] as const) {
      const [expected, got] = yield* Effect.all([
        execute(
          `select date_trunc($1, finished_at, 'UTC') as at, case company_id when 1 then 'north' else 'south' end as company, resource,
                    count(*) as runs, count(*) filter (where status = 'failed') as failed_runs, sum(inserted)::bigint as inserted,
                    sum(updated)::bigint as updated, sum(deleted)::bigint as deleted, sum(quarantined)::bigint as quarantined,
                    sum(requests)::bigint as requests, sum(retries)::bigint as retries,
                    round(1000 * sum(extract(epoch from finished_at - started_at)))::bigint as run_ms
               from tributary.runs where finished_at >= $2::timestamptz and finished_at < date_trunc($1, $3::timestamptz, 'UTC') + ('1 ' || $1)::interval
              group by 1, 2, 3 order by 1, 2, 3`,
          [resolution, instant(since), new Date(now)]
        ),
        execute(
          `select at, company, resource, runs, failed_runs, inserted, updated, deleted, quarantined, requests, retries, run_ms
               from tributary.activity where resolution = $1 and runs > 0 order by 1, 2, 3`,
          [resolution]
        )
      ])
      assert.isNotEmpty(expected)
      assert.deepStrictEqual(got, expected, resolution)
    }

    const hours = (yield* rowsOf("hour")).filter(({ resource }) => resource !== null)
    const ages = yield* agesByHour(now)
    assert.deepStrictEqual(
      new Map(
        hours.flatMap(({ at, company, resource, age_ms_max: age }) =>
          age === null
            ? []
            : [[`${String(company)} ${String(resource)} ${(at as Date).getTime()}`, Number(age)] as const]
        )
      ),
      ages
    )
    assert.isAbove(Math.max(...ages.values()), 1_800_000, "some resource is late")

    const some = yield* execute(
      `select (select array_agg(extract(hour from at at time zone 'UTC')::int order by at) from tributary.activity
                  where resolution = 'hour' and gaps > 0) as gaps,
                (select array_agg(process_starts order by at)::int[] from tributary.activity where resolution = 'hour' and process_starts > 0) as starts,
                (select sum(paused_ms)::int from tributary.activity where resolution = 'hour') as paused,
                (select max(budget_share_max) from tributary.activity where resolution = 'hour' and resource is null and company = 'north') as share`
    )
    assert.deepStrictEqual(some, [{ gaps: [2, 3, 4], starts: [1, 1], paused: 300_000, share: 0.49 }])

    // The same rows, when they are written again: by several processes at once, and from the beginning.
    const before = yield* all
    yield* Effect.all([write, write, write], { concurrency: "unbounded" })
    assert.deepStrictEqual(yield* all, before)
    yield* writeAnew
    assert.deepStrictEqual(yield* all, before)
  })

  test("is complete after a time without a process, and as if it was written all the time", function* () {
    yield* setUp
    yield* addRuns(0, 600, 800)
    // Written every 97 minutes, with a pause of five hours.
    for (const minute of [0, 97, 194, 291, 591, 600]) {
      yield* writeAt(minute)
    }
    const often = yield* all
    yield* writeAnew
    assert.deepStrictEqual(yield* all, often)
    const [counted] = yield* execute("select sum(runs)::int as runs from tributary.activity where resolution = 'hour'")
    assert.deepStrictEqual(counted, { runs: 800 })
    const total = (yield* Activity.readTotals).reduce((sum, { inserted }) => sum + inserted, 0)
    const [stored] = yield* execute<{ inserted: number }>(
      "select sum(inserted)::float8 as inserted from tributary.runs"
    )
    assert.strictEqual(total, stored!.inserted)
    const south = yield* Activity.readDay(["south"])
    assert.deepStrictEqual([...new Set(south.map(({ company }) => company))], ["south"])
  })

  test("keeps the number of rows as it was measured, and knows none after a change without a count", function* () {
    yield* setUp
    const count = (rows: number, minutes: number) =>
      execute(
        `insert into tributary.row_counts (company_id, resource, rows, deleted, is_exact, run_id, counted_at)
           values (1, 'a', $1, 0, true, (select coalesce(max(id), 0) from tributary.runs), $2::timestamptz)
           on conflict (company_id, resource) do update set rows = excluded.rows, run_id = excluded.run_id, counted_at = excluded.counted_at`,
        [rows, instant(minutes)]
      )
    const rowsBy = (resolution: string) =>
      Effect.map(
        execute<{ hour: number; rows: number | null }>(
          `select extract(hour from at at time zone 'UTC')::int as hour, rows::int as rows from tributary.activity
              where resolution = $1 and company = 'north' and resource = 'a' order by at`,
          [resolution]
        ),
        (found) => found.map(({ hour, rows }) => `${hour}: ${rows}`)
      )
    yield* addRun(1)
    yield* count(10, 2)
    yield* writeAt(50)
    assert.deepStrictEqual(yield* rowsBy("hour"), ["0: 10"])
    // The count of the next hour does not change the hour before, whose row is written once more.
    yield* addRun(60)
    yield* count(13, 60)
    yield* writeAt(60.5)
    assert.deepStrictEqual(yield* rowsBy("hour"), ["0: 10", "1: 13"])
    // No process runs for three hours. A sync changes rows in the second of them.
    yield* addRun(150)
    yield* writeAt(245)
    const expected = ["0: 10", "1: 13", "2: null", "3: null", "4: 13"]
    assert.deepStrictEqual(yield* rowsBy("hour"), expected)
    yield* count(16, 245)
    yield* writeAt(246)
    assert.deepStrictEqual(yield* rowsBy("hour"), [...expected.slice(0, 4), "4: 16"])
    assert.deepStrictEqual(yield* rowsBy("day"), ["0: 16"])
    assert.strictEqual((yield* Activity.readDay(["north"]).pipe(Effect.map((hours) => hours.slice(-1))))[0]!.rows, 16)
  })

  test("keeps the highest age where a quiet run shares a row later, or a proof begins", function* () {
    yield* setUp
    // A quiet run each minute until minute 10, and the next one at minute 50; the target is half an hour.
    yield* execute(
      `insert into tributary.runs (company_id, resource, kind, lane, status, fence, quiet_since, started_at, finished_at, quiet_runs)
         select 1, r, 'incremental', 'live', 'done', 1, $1::timestamptz, $2::timestamptz, $2::timestamptz, 11 from unnest('{a,b}'::text[]) r`,
      [instant(0), instant(10)]
    )
    yield* writeAt(50)
    yield* execute(
      "update tributary.runs set quiet_runs = 12, started_at = $1::timestamptz, finished_at = $1::timestamptz where resource = 'a'",
      [instant(50)]
    )
    yield* execute(
      `insert into tributary.event_checks (company, checked_at, delay, age_max, expires_at, resources)
         values ('north', tributary.now(), '1 min', '2 min', tributary.now() + interval '15 min', '{b}')`
    )
    yield* execute("update tributary.checkpoints set cursor = 'c'")
    yield* writeAt(51)
    const ages = Effect.map(
      execute<{ at: Date; resource: string; age: number }>(
        `select at, resource, (age_ms_max / 60000)::int as age from tributary.activity
            where resolution = 'hour' and age_ms_max is not null order by at, resource`
      ),
      (rows) => rows.map(({ at, resource, age }) => `${(at.getTime() - startMs) / 3_600_000} ${resource} ${age}`)
    )
    const first = ["0 a 40", "0 b 40"]
    assert.deepStrictEqual(yield* ages, first)
    // What a clock that was set forward measured is not that of the hours to come.
    yield* writeAt(310)
    yield* writeAt(52)
    yield* execute(
      "update tributary.runs set started_at = $1::timestamptz, finished_at = $1::timestamptz, quiet_since = $1::timestamptz, quiet_runs = 1",
      [instant(299)]
    )
    yield* execute("truncate tributary.event_checks")
    yield* writeAt(310)
    assert.deepStrictEqual(
      (yield* ages).filter((age) => age.startsWith("5 ")),
      ["5 a 11", "5 b 11"]
    )
  })

  test("counts quiet runs that share a row, spread evenly", function* () {
    yield* setUp
    yield* execute(
      `insert into tributary.runs (company_id, resource, kind, lane, status, fence, quiet_since, started_at, finished_at, quiet_runs, requests)
         values (1, 'a', 'incremental', 'live', 'done', 1, $1::timestamptz, $2::timestamptz, $2::timestamptz + interval '1 second', 121, 122)`,
      [instant(0), instant(600)]
    )
    yield* writeAt(601)
    const hours = yield* Activity.readHours(["north"])
    assert.deepStrictEqual(valuesOf(hours, "runs"), [...Array.from({ length: 10 }, () => 12), 1])
    assert.strictEqual(
      hours.reduce((sum, { requests }) => sum + requests, 0),
      122
    )
    assert.deepStrictEqual([...new Set(hours.slice(0, -1).map(({ age_ms_max: age }) => age))], [301_000])
  })

  test("ends after a day, a month and two years, and knows how late a resource became meanwhile", function* () {
    yield* setUp
    yield* addRun(0)
    const counts = execute<{ resolution: string; rows: number }>(
      "select resolution, count(*)::int as rows from tributary.activity group by 1 order by 1"
    )
    yield* writeAt(60 * 24 * 2)
    assert.deepStrictEqual(yield* counts, [
      { resolution: "day", rows: 3 },
      { resolution: "hour", rows: 49 },
      // Each minute of the last day is late.
      { resolution: "minute", rows: 1_441 }
    ])
    const [last] = yield* execute(
      "select lateness_max as late from tributary.activity where resolution = 'hour' order by at desc limit 1"
    )
    assert.deepStrictEqual(last, { late: 96 })
    yield* writeAt(60 * 24 * 50)
    assert.deepStrictEqual(valuesOf(yield* counts, "rows"), [51, 31 * 24 + 1, 1_441])
    yield* execute("delete from tributary.checkpoints")
    yield* writeAt(60 * 24 * 740)
    const [oldest] = yield* execute(
      "select min(at) >= tributary.now() - interval '731 days' as recent from tributary.activity"
    )
    assert.deepStrictEqual(oldest, { recent: true })
  })

  test("has rows for companies where there are many resources, and for all where there are many companies", function* () {
    yield* setClock(0)
    yield* empty
    const grains = execute<{ resolution: string; companies: number; resources: number; rows: number; runs: number }>(
      `select resolution, count(distinct company)::int as companies, count(distinct resource)::int as resources,
                count(*)::int as rows, sum(runs)::int as runs from tributary.activity group by 1 order by 1`
    )
    const add = (companies: number, resources: number) =>
      execute(
        `with k as (insert into tributary.companies (company, company_id) select 'c' || i, i from generate_series(1, $1::int) i on conflict do nothing),
           p as (insert into tributary.checkpoints (company_id, resource, updated_at)
                 select i, 'r' || r, tributary.now() from generate_series(1, $1::int) i, generate_series(1, $2::int) r on conflict do nothing)
           insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
           select i, 'r' || r, 'full', 'live', 'done', 1, tributary.now(), tributary.now() from generate_series(1, $1::int) i, generate_series(1, $2::int) r`,
        [companies, resources]
      )
    yield* add(2, 400)
    yield* write
    assert.deepStrictEqual(yield* grains, [
      { resolution: "day", companies: 2, resources: 400, rows: 800, runs: 800 },
      { resolution: "hour", companies: 2, resources: 400, rows: 800, runs: 800 },
      { resolution: "minute", companies: 2, resources: 0, rows: 2, runs: 800 }
    ])
    yield* empty
    yield* add(900, 2)
    yield* write
    assertEach(yield* grains, ({ companies, rows, runs }) => `${companies} ${rows} ${runs}`, [
      "900 900 1800",
      "900 900 1800",
      "0 1 1800"
    ])
    yield* empty
    yield* add(1_001, 1)
    yield* execute(
      "insert into tributary.row_counts (company_id, resource, rows, deleted, is_exact, run_id, counted_at) values (1, 'r1', 5, 0, true, 0, tributary.now()) on conflict do nothing"
    )
    yield* write
    assert.isEmpty(yield* execute("select from tributary.activity where rows is not null"))
    assertEach(yield* grains, ({ companies, rows, runs }) => `${companies} ${rows} ${runs}`, [
      "0 1 1001",
      "0 1 1001",
      "0 1 1001"
    ])
  })
})
