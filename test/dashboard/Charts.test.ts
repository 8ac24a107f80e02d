/**
 * The figures of every chart, against SQL on the base tables that shares no statement with the pages.
 *
 * The warehouse has a fixed time and a day of runs, events, rows and samples. A case reads the texts of the bars of one
 * chart, and compares them with the texts that its query makes. A trend has a table with the same figures.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { routes } from "../../src/dashboard/Routes.ts"
import * as WriteActivity from "../../src/tasks/WriteActivity.ts"
import { clockIs, execute as run } from "../support/postgres.ts"
import { ask, unconnected, warehouse } from "./asking.ts"
import { plain } from "./markup.ts"
import { suite } from "../support/suite.ts"

const now = "2026-11-28T09:37:12Z"
const fingerprint = "a".repeat(64)
const companies = [
  unconnected("north", { fingerprint, requestsPerMinute: 400 }),
  unconnected("south", { fingerprint: "b".repeat(64) })
]

/** Runs of two days, samples, events and rows, all at or before the fixed time. */
const seed = Effect.forEach(
  [
    clockIs(`timestamptz ''${now}''`),
    // The formats of the pages, written again.
    `create function public.ms(length interval) returns numeric language sql immutable as $f$ select extract(epoch from length) * 1000 $f$`,
    `create function public.length(ms numeric) returns text language sql immutable as $f$ select case when ms < 1000 then round(ms) || ' ms'
       when ms < 90000 then round(ms / 1000) || ' s' when ms < 5400000 then round(ms / 60000) || ' min'
       when ms < 129600000 then round(ms / 3600000) || ' h' else round(ms / 86400000) || ' d' end $f$`,
    `create function public.clock(at timestamptz) returns text language sql immutable as $f$ select to_char(at at time zone 'UTC', 'HH24:MI') $f$`,
    `create function public.minute(at timestamptz) returns text language sql immutable as $f$ select to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI') $f$`,
    `create function public.number(amount numeric) returns text language sql immutable as $f$ select to_char(amount, 'FM999,999,990') $f$`,
    `create function public.hour(at timestamptz) returns timestamptz language sql immutable as $f$ select date_trunc('hour', at, 'UTC') $f$`,
    `create view public.day as select generate_series(public.hour(timestamptz '${now}') - interval '23 hours', public.hour(timestamptz '${now}'), '1 hour') as at`,
    `insert into tributary.companies (company, company_id) values ('north', 1), ('south', 2)`,
    `insert into tributary.checkpoints (company_id, resource, updated_at)
     select c, 'widgets' || r, tributary.now() from generate_series(1, 2) c, generate_series(0, 2) r`,
    `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, status)
     select c, 'widgets' || r, 'sync', 'every 10 min', 2400000 + 600000 * r, 'done' from unnest('{north,south}'::text[]) c, generate_series(0, 2) r`,
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, requests, retries, records, inserted,
            updated, deleted, error)
     select case when n % 5 = 0 then 2 else 1 end, 'widgets' || n % 3, 'incremental', case when n % 17 = 0 then 'backfill' else 'live' end,
            case when n % 11 = 0 then 'failed' when n % 13 = 0 then 'quarantined' when n % 19 = 0 then 'abandoned' else 'done' end, 1,
            at, at + interval '1 ms' * (300 + n * 617 % 9000), 1 + n % 4, n % 2, 40, n % 7 * 200, n % 3, n % 9 / 8,
            case when n % 11 = 0 then 'the service failed (500)' end
       from (select n, tributary.now() - n * interval '7 minutes' as at from generate_series(1, 380) n) x order by at`,
    `insert into tributary.budget_usage (fingerprint, at, used, allowed, configured, rate_limited_count, is_paused)
     select '${fingerprint}', to_timestamp(floor(extract(epoch from tributary.now()) / 15) * 15) - n * interval '15 s', n * 7 % 380, 400, 400,
            case when n < 40 then 5 when n < 90 then 3 else 1 end, n between 30 and 35 or n between 700 and 703 or n between 1500 and 1520
       from generate_series(0, 6000) n where n not between 60 and 79`,
    `insert into tributary.budgets (fingerprint, requests_per_minute, updated_at) values ('${fingerprint}', 400, tributary.now())`,
    `insert into tributary.delivery_gaps (company, resource, cause, detail, detected_at, closed_at)
     values ('north', 'widgets0', 'subscription_inactive', 'x', tributary.now() - interval '7 hours', tributary.now() - interval '4 hours'),
            ('south', 'widgets1', 'subscription_inactive', 'x', tributary.now() - interval '90 minutes', null)`,
    `insert into tributary.processes (process_id, companies, started_at, heartbeat_at, stopped_at)
     select 'process ' || n, '{north}', tributary.now() - n * n * interval '50 minutes',
            case when n < 3 then tributary.now() else tributary.now() - n * n * interval '49 minutes' end,
            case when n = 4 then tributary.now() - n * n * interval '49 minutes' end
       from generate_series(1, 5) n`,
    `insert into tributary.inbox (company, event_id, event_type, sent_at, received_at, body, state)
     select 'north', 'evt_' || n, 'things.updated', tributary.now(), tributary.now() - n * interval '13 minutes', '',
            (array['done', 'done', 'skipped', 'pending', 'dead_letter'])[1 + n % 5] from generate_series(1, 150) n order by n desc`,
    `insert into tributary.outbox (company, resource, operation, state, created_at, resolved_at)
     select 'north', 'things', 'create', (array['done', 'in_flight', 'pending', 'rejected'])[1 + n % 4], tributary.now() - n * interval '17 minutes',
            case when n % 4 in (0, 3) then tributary.now() end from generate_series(1, 120) n order by n desc`,
    `insert into tributary.quarantine (company_id, resource, record_id, reason, bytes, run_id, source, first_seen_at, last_seen_at, resolved_at)
     select 1, 'widgets0', n, 'odd', '{}', 1, 'GET /x', tributary.now() - n * interval '40 minutes', tributary.now(),
            case when n % 3 = 0 then tributary.now() end from generate_series(1, 60) n order by n desc`,
    `insert into tributary.invariants (name, severity, statement, comment, resources, query) values ('priced', 'critical', 'x', 'x', '{things}', '')`,
    `insert into tributary.invariant_states (invariant, company_id, state, violations, open_violations, evaluated_at) values ('priced', 1, 'violated', 1, 1, tributary.now())`,
    `insert into tributary.violations (invariant, company_id, resource, record_id, detail, first_seen_at, opened_at, ended_at)
     select 'priced', 1, 'things', n, 'x', tributary.now() - n * interval '35 minutes', case when n % 3 < 2 then tributary.now() end,
            case when n % 3 = 0 then tributary.now() end from generate_series(1, 60) n order by n desc`,
    `insert into tributary.change_batches (company_id, resource, history, ids, changes, began, landed_at)
     select 1, 'things', 'erp_history.things', '{1}', 90 * n, tributary.now(), tributary.now() - n * interval '55 minutes' from generate_series(1, 40) n order by n desc`,
    `update tributary.runs set phases = '{"took_ms": 10000, "slot_ms": 1000, "answers": [{"answer": "ServerFault 503", "requests": 1, "retries": 1, "retry_ms": 700}],
       "phases": {"budget": {"ms": 1300, "times": 2, "longest_ms": 900, "slots": [400, 900]}, "request": {"ms": 4650, "times": 4, "longest_ms": 2000, "slots": [0, 100, 1000, 950, 800, 700, 600, 500]},
                  "retry": {"ms": 700, "times": 1, "longest_ms": 700, "slots": [0, 0, 0, 700]}, "landing": {"ms": 1500, "times": 3, "longest_ms": 600, "slots": [0, 0, 0, 0, 0, 0, 0, 600, 0, 900]}}}'
      where id = 300`,
    `update tributary.runs set started_at = finished_at - interval '7 seconds' where id = 300`
  ],
  (text) => run(text)
)

// The runs of the two companies by hour; the last day has 24 hours of the clock, the current one included.
const sumOf = (what: string, where = "true") =>
  `select hour(finished_at) as at, ${what} as n from tributary.runs where ${where} group by 1`
/** The text of a bar for each hour of the last day. */
const hourly = (what: string, words: string, where?: string) =>
  `select clock(d.at) || ': ' || ${words} as text from day d join (${sumOf(what, where)}) x using (at) where x.n > 0`

const failed = "status in ('failed', 'abandoned')"
const plural = (one: string) => `number(n) || case when n = 1 then ' ${one}' else ' ${one}s' end`

/** The highest age of each resource in each hour, at any end of a run or of the hour. */
const ages = (hours: number) => `with hour as (
    select c as company, 'widgets' || r as resource, h as at
      from generate_series(hour(timestamptz '${now}') - interval '${hours} hours', hour(timestamptz '${now}'), '1 hour') h, generate_series(1, 2) c, generate_series(0, 2) r
     where h >= (select hour(min(finished_at)) from tributary.runs)),
  fresh as (select company_id as company, resource, started_at, finished_at from tributary.runs where lane = 'live' and status = 'done'),
  moment as (select company, resource, at, least(at + interval '1 hour', timestamptz '${now}') as m from hour
             union all select company, resource, hour(finished_at), finished_at from fresh),
  aged as (select company, resource, at, ms(max(m - (select max(f.started_at) from fresh f where f.company = moment.company and f.resource = moment.resource and f.finished_at < m))) as age
             from moment group by 1, 2, 3),
  late as (select a.*, a.age / t.freshness_target_ms as share from aged a join tributary.tasks t
             on t.company = (array['north', 'south'])[a.company] and t.resource = a.resource where a.age is not null)`

/** The text of a bar for each hour of the clock and kind. */
const trend = (table: string, at: string, kinds: Readonly<Record<string, string>>, amount = "count(*)") =>
  Object.entries(kinds)
    .map(
      ([word, where]) => `select clock(h) || ': ' || number(n) || ' ${word}' as text
        from (select h, ${amount} as n from (select at as h from day) d join ${table} x
                on x.${at} >= h and x.${at} < h + interval '1 hour' and x.${at} <= timestamptz '${now}'
               where ${where} group by h) y`
    )
    .join(" union all ")

/** A kind for each state, by the word of the page. */
const byState = (...states: ReadonlyArray<string>) =>
  Object.fromEntries(states.map((state) => [state.replace("_", " "), `state = '${state}'`]))

const ofRun = (word: string) => `'Run ' || id || ', ' || minute(started_at) || ': ' || ${word} || status as text
  from (select * from tributary.runs where company_id = 1 and resource = 'widgets0' order by id desc limit 50) x`

interface Case {
  readonly chart: string
  readonly page: string
  readonly id: string
  /** The texts of the bars in any order. */
  readonly sql: string
  /** The total of the sentence, where it is not the sum of the numbers in the texts: durations are rounded there. */
  readonly total?: string
}

const resource = "/companies/north/widgets0"
const overview = (id: string, chart: string, sql: string): Case => ({ chart: `overview: ${chart}`, page: "/", id, sql })

/** The charts of what is first seen in each hour, by its state now. */
const trends: ReadonlyArray<readonly [chart: string, page: string, ...of: Parameters<typeof trend>]> = [
  [
    "events received",
    "/webhooks",
    "tributary.inbox",
    "received_at",
    byState("done", "skipped", "pending", "dead_letter")
  ],
  ["rows inserted", "/outbox", "tributary.outbox", "created_at", byState("done", "in_flight", "pending", "rejected")],
  [
    "entries first seen",
    "/quarantine",
    "tributary.quarantine",
    "first_seen_at",
    { open: "resolved_at is null", resolved: "resolved_at is not null" }
  ],
  [
    "violations first seen",
    "/invariants",
    "tributary.violations",
    "first_seen_at",
    {
      ended: "ended_at is not null",
      unconfirmed: "ended_at is null and opened_at is null",
      open: "ended_at is null and opened_at is not null"
    }
  ],
  ["changes landed", "/endpoints", "tributary.change_batches", "landed_at", { changes: "true" }, "sum(changes)"]
]
const cases: ReadonlyArray<Case> = [
  overview(
    "timeline",
    "what happened",
    [
      `select clock(d.at) || ': ' || case when exists (select from tributary.runs r where hour(r.finished_at) = d.at and r.status = 'failed') then 'a run failed'
          when (select max(share) from late l where l.at = d.at) > 1 then 'late' else 'fresh' end as text from day d`,
      hourly("count(*)", plural("run")),
      hourly("count(*)", `${plural("run")} || ' failed or abandoned'`, failed),
      `select clock(d.at) || ': ' || ${plural("delivery gap")} from (
         select d.at, count(*) as n from day d join tributary.delivery_gaps g on g.detected_at < least(d.at + interval '1 hour', timestamptz '${now}')
            and (g.closed_at is null or g.closed_at >= d.at) group by 1) d`,
      `select clock(d.at) || ': paused for ' || length(15000 * n) from day d
         join (select hour(at) as at, count(*) as n from tributary.budget_usage where is_paused group by 1) x using (at)`,
      `select clock(d.at) || ': ' || ${plural("process start")} from day d
         join (select hour(started_at) as at, count(*) as n from tributary.processes group by 1) x using (at)`
    ]
      .map((text, index) => (index === 0 ? `${ages(23)} ${text}` : text))
      .join(" union all ")
  ),
  overview(
    "landed",
    "records landed",
    ["inserted", "updated", "deleted"]
      .map((kind) => hourly(`sum(${kind})`, `number(n) || ' ${kind}'`))
      .join(" union all ")
  ),
  overview(
    "lateness",
    "freshness",
    `${ages(23)} select clock(at) || ': ' || number(floor(share::float8 * 100 + 0.5)::numeric) || ' % of the target' || case when share > 1 then ': late' else '' end as text
       from (select d.at, max(share) as share from day d join late using (at) group by 1) x`
  ),
  overview(
    "budget-share",
    "rate budget",
    `select clock(d.at) || ': ' || number(round(100 * n)) || ' % of the rate budget' as text from day d
       join (select hour(at) as at, max(used / allowed::numeric) as n from tributary.budget_usage group by 1) x using (at)`
  ),
  ...trends.map(([chart, page, table, at, kinds, amount]): Case => ({
    chart,
    page,
    id: "trend",
    sql: trend(table, at, kinds, amount)
  })),
  {
    chart: "processes: lifetimes",
    page: "/processes",
    id: "lives",
    sql: `select process_id || ': ' || state || ', from ' || clock(started_at) || ' for ' || length(ms(until - started_at)) as text
       from (select *, case when stopped_at is not null then 'stopped' when heartbeat_at = timestamptz '${now}' then 'running' else 'lost' end as state,
                    coalesce(stopped_at, heartbeat_at) as until from tributary.processes) x where until > timestamptz '${now}' - interval '1 day'`
  },
  {
    chart: "budget: pauses",
    page: "/budget",
    id: "trend",
    sql: `select clock(at) || ': ' || length(15000 * n) || ' paused' as text
       from (select hour(at) as at, count(*) as n from tributary.budget_usage where is_paused group by 1) x
      where at > hour(timestamptz '${now}') - interval '24 hours'`,
    total: `select length(15000 * count(*)) || ' in all' as text from tributary.budget_usage
             where is_paused and at >= hour(timestamptz '${now}') - interval '23 hours'`
  },
  ...[
    { page: "/runs", where: "true" },
    { page: "/runs?company=north&resource=widgets1", where: "company_id = 1 and resource = 'widgets1'" }
  ].map(({ page, where }): Case => ({
    chart: `runs by hour: ${page}`,
    page,
    id: "trend",
    sql: ["done", "quarantined", "abandoned", "failed"]
      .map((status) => hourly("count(*)", `number(n) || ' ${status}'`, `status = '${status}' and ${where}`))
      .join(" union all ")
  })),
  {
    chart: "runs: runs by resource",
    page: "/runs",
    id: "lanes",
    sql: `select clock(at) || ': ' || string_agg(number(n) || ' ' || status, ', ' order by array_position('{done,quarantined,abandoned,failed}'::text[], status)) as text
       from (select hour(finished_at) as at, company_id, resource, status, count(*) as n from tributary.runs group by 1, 2, 3, 4) x join day using (at)
      group by at, company_id, resource`
  },
  {
    chart: "resource: freshness",
    page: resource,
    id: "ages",
    sql: `${ages(47)} select minute(at) || ': ' || length(age) || ' old at most' || case when share > 1 then ': late' else '' end as text
            from late where company = 1 and resource = 'widgets0'`
  },
  {
    chart: "resource: rows",
    page: resource,
    id: "rows",
    sql: `select minute(h) || ': ' || number(n) || ' rows' as text from (
            select h, (select count(*) from public.truth where born < least(h + interval '1 hour', timestamptz '${now}')
                          and coalesce(died, 'infinity') >= least(h + interval '1 hour', timestamptz '${now}')) as n
              from generate_series(hour(timestamptz '${now}') - interval '10 hours', timestamptz '${now}', '1 hour') h) x
           where h <> hour(timestamptz '${now}' - interval '4 hours')`
  },
  {
    chart: "resource: changes",
    page: resource,
    id: "changed",
    sql: [
      ["new", "inserted"],
      ["changed", "updated"],
      ["deleted", "deleted"]
    ]
      .map(
        ([word, column]) => `select minute(at) || ': ' || number(n) || ' ${word}' as text from (
          ${sumOf(`sum(${column})`, "company_id = 1 and resource = 'widgets0'")}) x where n > 0 and at >= hour(timestamptz '${now}') - interval '47 hours'`
      )
      .join(" union all ")
  },
  {
    chart: "resource: duration of runs",
    page: resource,
    id: "durations",
    sql: `select ${ofRun("length(ms(finished_at - started_at)) || ' '")}`
  },
  {
    chart: "resource: requests of runs",
    page: resource,
    id: "requests",
    sql: `select ${ofRun("number(requests) || ' sent, '")}`
  },
  {
    chart: "run: phases",
    page: "/runs/300",
    id: "phase",
    sql: `select length(1000 * (i - 1)) || ' to ' || length(1000 * i) || ' after the start: ' || words || ', ' || ms::int / 10 || ' % of the time'
                || case when name = 'retry' then ' (503: the service failed, 1 retry)' else '' end as text
       from tributary.runs r, (values ('budget', 'waiting for the rate budget'), ('request', 'requests in flight'), ('retry', 'waiting before a retry'),
              ('landing', 'landing')) p(name, words), json_array_elements_text(phases -> 'phases' -> name -> 'slots') with ordinality s(ms, i)
      where r.id = 300 and ms <> '0'
      union all select 'Waiting for the resource: ' || length((phases ->> 'took_ms')::numeric - ms(finished_at - started_at)) from tributary.runs where id = 300`
  },
  {
    chart: "budget: pauses and refusals",
    page: "/budget?company=north",
    id: "budget",
    sql: `with sample as (
        select *, rate_limited_count - lag(rate_limited_count) over (order by at) as refused, is_paused and not lag(is_paused) over (order by at) as begins
          from tributary.budget_usage where at >= timestamptz '${now}' - interval '1 hour')
      select refused || ' refused (429) at ' || clock(at) as text from sample where refused > 0
      union all select 'The source requested a pause, ' || clock(at) || ' to ' || clock((select max(b.at) from sample b where b.is_paused)) from sample where begins`
  }
]

const at = (hours: number, ending: string) =>
  new Date(Date.parse(`${now.slice(0, 13)}:${ending}Z`) - hours * 3_600_000).toISOString()
const setClock = (time: string) => run(clockIs(`timestamptz ''${time}''`))
const write = WriteActivity.writeActivity(() => [{ company: "north", fingerprint }])

/**
 * Lives of the rows of one resource: 120 since long ago, 40 of them deleted, 25 of these created again, 30 new. They are
 * counted and written near the end of each of the last hours, except for one hour in which no process ran.
 */
const countHourByHour = Effect.gen(function* () {
  yield* run("create table public.truth (id int, born timestamptz, died timestamptz)")
  yield* run(
    `insert into public.truth
     select n, timestamptz '${now}' - interval '3 days', case when n <= 40 then timestamptz '${at(8, "20:00")}' end from generate_series(1, 120) n
     union all select n, '${at(6, "10:00")}', null from generate_series(1, 25) n
     union all select n, '${at(3, "40:00")}', null from generate_series(121, 150) n`
  )
  for (const hours of [10, 9, 8, 7, 6, 5, 3, 2, 1, 0]) {
    const time = hours === 0 ? now : at(hours, "59:50")
    yield* setClock(time)
    yield* run(
      `insert into tributary.row_counts (company_id, resource, rows, deleted, is_exact, run_id, counted_at)
       select 1, 'widgets0', count(*), 0, true, (select coalesce(max(id), 0) from tributary.runs where company_id = 1 and resource = 'widgets0' and finished_at <= '${time}'), '${time}'
         from public.truth where born < '${time}' and coalesce(died, 'infinity') >= '${time}'
       on conflict (company_id, resource) do update set rows = excluded.rows, run_id = excluded.run_id, counted_at = excluded.counted_at`
    )
    yield* write
  }
})

/** The drawn chart, from its title to its end. */
const chartOf = (text: string, id: string): string => {
  const [, part = ""] = text.split(`<strong id="${id}-title">`)
  return part.split("</figure>")[0]!
}
/** The texts of its bars, without the shades of places without data and of notes. */
const barsOf = (chart: string): ReadonlyArray<string> =>
  [...chart.matchAll(/<title>([^<]*)<\/title>/g)]
    .map(([, text]) => text!)
    .filter((text) => !/: no data$|delivery gaps? open$|: lost after its heartbeat at /.test(text))

/** Charts whose sentence has the sum of each kind. */
const summed = new Set(["trend", "landed", "changed"])

const findingOf = (chart: string): string => plain(/<span class="finding">[\s\S]*?<\/span>/.exec(chart)?.[0] ?? "")

/** The sums of the bars that the sentence of the chart does not have. */
const sumsOf = (bars: ReadonlyArray<string>, chart: string): ReadonlyArray<string> => {
  const finding = findingOf(chart)
  const figures = bars.map((bar) => /: ([\d,]+) ([^:]+)$/.exec(bar)!)
  return [...Map.groupBy(figures, ([, , word]) => word!)]
    .map(([word, own]) => {
      const total = own.reduce((sum, [, value]) => sum + Number(value!.replaceAll(",", "")), 0)
      return `${total.toLocaleString("en-US")} ${word}`
    })
    .filter((words) => !new RegExp(`(^|\\D)${words}`).test(finding))
    .map((words) => `the sentence has no ${words}: ${finding}`)
}

/** The figures of the table as texts of bars. */
const tableOf = (chart: string): ReadonlyArray<string> => {
  const cells = (row: string) => [...row.matchAll(/<t[hd][^>]*>([\s\S]*?)<\/t[hd]>/g)].map(([, cell]) => plain(cell!))
  const [head = [], ...rows] = chart.split("<tr").slice(1).map(cells)
  return rows.flatMap(([words, ...figures]) =>
    figures.flatMap((figure, index) => (figure === "0" ? [] : [`${words}: ${figure} ${head[index + 1]}`]))
  )
}

suite("the figures of the charts", warehouse, (test) => {
  test("are those of independent SQL, in bars and tables", function* () {
    yield* seed
    yield* countHourByHour
    // The same figures, when they are written again.
    yield* write
    const wrong: Array<string> = []
    for (const { chart, page, id, sql, total } of cases) {
      const { text } = yield* ask(routes, companies, page)
      const drawn = chartOf(text, id)
      const expected = (yield* run<{ text: string }>(sql)).map((row) => row.text).toSorted()
      const bars = barsOf(drawn).toSorted()
      if (expected.length < 3) wrong.push(`${chart}: only ${expected.length} figures`)
      const missing = expected.filter((one) => !bars.includes(one))
      const further = bars.filter((one) => !expected.includes(one))
      if (bars.length !== expected.length || missing.length + further.length > 0)
        wrong.push(
          `${chart}: ${bars.length} of ${expected.length}; missing ${missing.slice(0, 4).join("; ")}; further ${further.slice(0, 4).join("; ")}`
        )
      if (id === "trend" && tableOf(drawn).toSorted().join() !== bars.join())
        wrong.push(`${chart}: the table differs: ${tableOf(drawn).slice(0, 4).join("; ")}`)
      if (!/<desc id="[^"]+">[^<]{5,}<\/desc>/.test(drawn)) wrong.push(`${chart}: no description`)
      const [whole] = total === undefined ? [] : yield* run<{ text: string }>(total)
      if (whole !== undefined) {
        if (!findingOf(drawn).includes(whole.text)) wrong.push(`${chart}: the sentence has no ${whole.text}`)
      } else if (summed.has(id)) wrong.push(...sumsOf(bars, drawn).map((one) => `${chart}: ${one}`))
    }
    assert.deepStrictEqual(wrong, [])
  })
})
