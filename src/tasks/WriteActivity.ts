/**
 * The data of charts by minute, hour and day: `tributary.activity`.
 *
 * Promise: each row is derived from the runs, samples, gaps and processes of the warehouse, so that a repeated write makes
 * the same rows, and a time in which no process ran is written later. The number of rows of a resource and its ages were
 * measured at their time; a repeated write keeps that number, and the highest age. The watermark of a resolution divides the
 * rows that do not change any more from the current ones. One transaction writes rows and watermark. The rows are bounded
 * ({@link seriesMax}), and the work is a small share of one core.
 */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { transaction } from "../postgres/Transaction.ts"
import { makesFresh } from "../warehouse/RunConditions.ts"
import { repeatResting } from "../time/Resting.ts"

export type Resolution = "minute" | "hour" | "day"

/** How long the rows of a resolution are kept. */
export const kept: Readonly<Record<Resolution, string>> = { minute: "1 day", hour: "31 days", day: "731 days" }

/** How far back a missed time is written. Hours that are older than they are kept make the rows of their days. */
const reach: Readonly<Record<Resolution, string>> = { ...kept, hour: "100 days" }

/**
 * More resources than this have rows for each company, and more companies than this only rows for all of them. This
 * makes at most 432,000 rows of minutes and 1,475,000 of hours and days, beside those of companies.
 */
export const seriesMax: Readonly<Record<Resolution, number>> = { minute: 300, hour: 1_000, day: 1_000 }

/** What one transaction writes at most. */
const chunks: Readonly<Record<Resolution, string>> = { minute: "2 hours", hour: "12 hours", day: "7 days" }

/** A run may be committed this long after its end. */
const settle = "1 minute"

/** The companies of the process, with the keys of their rate budgets. */
export type Budgets = () => ReadonlyArray<{ readonly company: string; readonly fingerprint: string }>

export const beginStatement = Statement.make({
  name: "begin the activity",
  params: ["text"],
  text: `insert into tributary.activity_watermarks (resolution, through)
    select $1::text, date_trunc($1::text, coalesce(least(min(finished_at), min(quiet_since)), tributary.now()), 'UTC')
      from tributary.runs where not exists (select from tributary.activity_watermarks where resolution = $1)
    having not exists (select from tributary.activity_watermarks where resolution = $1)
    on conflict do nothing`
})

/** Locks the watermark, so that two processes never write the same rows. */
export const rangeStatement = Statement.make({
  name: "find the activity to write",
  params: ["text", "text", "text", "int4"],
  columns: {
    /** The times to write. */
    since: "timestamptz",
    until: "timestamptz",
    /** The watermark after that. */
    through: "timestamptz",
    isCurrent: "bool",
    grain: Statement.as<"resource" | "company" | "all">("text")
  },
  text: `with now as materialized (select tributary.now() as at),
    given as (
      select greatest(least(w.through, date_trunc($1, now.at, 'UTC')), date_trunc($1, now.at - $2::text::interval, 'UTC')) as since,
             date_trunc($1, now.at, 'UTC') + ('1 ' || $1)::interval as next_at,
             date_trunc($1, case when $1 = 'day' then coalesce(
                 (select through from tributary.activity_watermarks where resolution = 'hour'), now.at)
               else now.at - interval '${settle}' end, 'UTC') as settled
        from tributary.activity_watermarks w cross join now where w.resolution = $1 for update of w),
    range as (select *, least(next_at, since + $3::text::interval) as until from given)
    select since, until, greatest(since, least(until, settled)) as through, until = next_at as "isCurrent",
           case when (select count(*) from (select from tributary.checkpoints where lane = 'live' limit $4 + 1) r) <= $4 then 'resource'
                when (select count(*) from (select from tributary.companies limit $4 + 1) c) <= $4 then 'company'
                else 'all' end as grain
      from range`
})

/** Returns what was measured: the numbers of rows, which no other table has, and the highest ages. */
export const clearStatement = Statement.make({
  name: "delete the activity to write again",
  params: ["text", "timestamptz"],
  columns: { measured: "text" },
  text: `with cleared as (
      delete from tributary.activity where resolution = $1 and at >= $2::timestamptz returning at, company, resource, rows, age_ms_max, lateness_max)
    select coalesce(jsonb_agg(jsonb_build_object('at', at, 'company', company, 'resource', resource, 'rows', rows,
             'age', age_ms_max, 'lateness', lateness_max)), '[]')::text as measured
      from cleared where rows is not null or age_ms_max is not null`
})

/**
 * The runs that ended from $2 until $3, and of the quiet runs that share a row also the one before. Run number i of such a
 * row ends where the row's runs are spread evenly.
 */
const runs = `
  stored as (
    select n.company, r.*, greatest(1, r.quiet_runs) as members, coalesce(r.quiet_since, r.started_at) as first_at,
           r.finished_at - r.started_at as took,
           case when r.quiet_runs > 1 then (r.started_at - r.quiet_since) / (r.quiet_runs - 1) else interval '0' end as step
      from tributary.runs r join tributary.companies n using (company_id)
     where r.finished_at >= $2::timestamptz and r.status <> 'running' and (r.finished_at < $3::timestamptz or r.quiet_since < $3::timestamptz)),
  placed as (
    select s.*, case when step > interval '0' then extract(epoch from $2::timestamptz - first_at - took) / extract(epoch from step) else 0 end as low,
           case when step > interval '0' then extract(epoch from $3::timestamptz - first_at - took) / extract(epoch from step) else members end as high
      from stored s),
  run as materialized (
    select p.company, p.company_id, p.resource, p.status, ${makesFresh("p")} as is_fresh, i,
           p.first_at + i * step as began_at, p.first_at + i * step + took as ended_at, took,
           p.inserted, p.updated, p.deleted, p.quarantined,
           (i + 1) * p.requests / members - i * p.requests / members as requests,
           (i + 1) * p.retries / members - i * p.retries / members as retries
      from placed p cross join lateral generate_series(
             greatest(0, floor(low) - 1)::bigint, least(members - 1, ceil(high) + 1)::bigint) as i)`

/**
 * The age of each resource just before each run that made it fresh, and at the end of each time: its highest ages. Only a
 * row that is written at its time knows the proofs by events.
 */
const ages = `
  series as materialized (
    select n.company, k.company_id, k.resource, case when t.paused_at is null and t.status is distinct from 'skipped'
             then t.freshness_target_ms end as target_ms
      from tributary.checkpoints k join tributary.companies n using (company_id)
      left join tributary.tasks t on t.company = n.company and t.resource = k.resource and t.kind = 'sync'
     where k.lane = 'live' and ($1::text = 'hour' or $4::text = 'resource')),
  fresh as (
    select company_id, resource, began_at, ended_at from run where is_fresh and ended_at < $3::timestamptz
    union all
    select s.company_id, s.resource, b.started_at, b.finished_at
      from series s cross join lateral (
        select r.started_at, r.finished_at from tributary.runs r
         where r.company_id = s.company_id and r.resource = s.resource and ${makesFresh("r")} and r.finished_at < $2::timestamptz
         order by r.id desc limit 1) b),
  point as (
    select company_id, resource, date_trunc($1::text, ended_at, 'UTC') as at, ended_at as seen_at, began_at from fresh
    union all
    select s.company_id, s.resource, t.at, t.seen_at, null from series s cross join span t),
  aged as (
    select company_id, resource, at, extract(epoch from seen_at - max(began_at) over (
             partition by company_id, resource order by seen_at, began_at nulls first
             rows between unbounded preceding and 1 preceding)) * 1000 as ms
      from point),
  proof as (
    select p.company_id, p.resource, extract(epoch from greatest(p.age_max, now.at - p.proven_at)) * 1000 as ms
      from tributary.event_proofs p cross join now where exists (select from series)),
  age as (
    select s.company, a.resource, a.at, s.target_ms,
           max(case when t.until > now.at - interval '5 minutes' then least(a.ms, p.ms) else a.ms end) as ms
      from aged a join series s using (company_id, resource) join span t using (at) cross join now
      left join proof p using (company_id, resource)
     where a.ms is not null group by 1, 2, 3, 4)`

/**
 * The rows of each resource at the end of each hour. The last count is that of the current hour. It is that of an earlier
 * hour too, where no run changed the resource between the count and the end of that hour.
 */
const counts = `
  measured as (
    select t.at, n.company, c.resource, c.rows
      from tributary.row_counts c join tributary.companies n using (company_id) cross join span t cross join now
     where $1::text = 'hour' and $4::text = 'resource' and c.counted_at < t.until
       and (t.until > now.at or not exists (
             select from tributary.runs r where r.company_id = c.company_id and r.resource = c.resource and r.id > c.run_id
                and r.finished_at < t.until and r.inserted + r.updated + r.deleted > 0))),
  counted as (
    select at, company, resource, coalesce(m.rows, k.rows) as rows
      from measured m
      full join (select * from former where rows is not null) k using (at, company, resource))`

/** Writes minutes or hours from the tables that say what happened. */
export const writeStatement = Statement.make({
  name: "write activity",
  params: ["text", "timestamptz", "timestamptz", "text", "jsonb", "jsonb"],
  text: `with now as materialized (select tributary.now() as at),
  span as materialized (
    select p.at, p.at + ('1 ' || $1::text)::interval as until, least(p.at + ('1 ' || $1::text)::interval, now.at) as seen_at
      from now cross join generate_series($2::timestamptz, $3::timestamptz - interval '1 microsecond', ('1 ' || $1::text)::interval) as p(at)),
  former as (
    select * from jsonb_to_recordset($6::jsonb) as f(at timestamptz, company text, resource text, rows bigint, age numeric, lateness double precision)),
  ${runs},
  ${ages},
  ${counts},
  figure as (
    select date_trunc($1::text, ended_at, 'UTC') as at, company, resource, count(*) as runs,
           count(*) filter (where status = 'quarantined') as quarantined_runs, count(*) filter (where status = 'failed') as failed_runs,
           count(*) filter (where status = 'abandoned') as abandoned_runs, sum(inserted) filter (where i = 0) as inserted,
           sum(updated) filter (where i = 0) as updated, sum(deleted) filter (where i = 0) as deleted,
           sum(quarantined) filter (where i = 0) as quarantined, sum(requests) as requests, sum(retries) as retries,
           sum(extract(epoch from took) * 1000) as run_ms, max(extract(epoch from took) * 1000) as run_ms_max,
           null::numeric as age_ms, null::double precision as lateness, null::double precision as budget_share, 0::bigint as paused_ms,
           0::bigint as gaps, 0::bigint as process_starts, null::bigint as rows
      from run where ended_at >= $2::timestamptz and ended_at < $3::timestamptz group by 1, 2, 3
    union all
    select at, company, resource, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ms, (ms / target_ms)::double precision, null, 0, 0, 0, null from age
    union all
    select at, company, resource, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null, null, 0, 0, 0, rows from counted
    union all
    -- The highest age so far, which a later quiet run of the same row or a proof hides; not of hours that a clock left again.
    select f.at, company, resource, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, age, lateness, null, 0, 0, 0, null
      from former f cross join now where age is not null and f.at <= now.at
    union all
    select date_trunc($1::text, u.at, 'UTC'), b.company, null, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null,
           max(u.used::double precision / u.allowed), 15000 * count(*) filter (where u.is_paused), 0, 0, null
      from jsonb_to_recordset($5::jsonb) as b(company text, fingerprint text) join tributary.budget_usage u using (fingerprint)
     where u.at >= $2::timestamptz and u.at < $3::timestamptz group by 1, 2
    union all
    select t.at, g.company, g.resource, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null, null, 0, count(*), 0, null
      from tributary.delivery_gaps g join span t on g.detected_at < t.seen_at and coalesce(g.closed_at, 'infinity') >= t.at group by 1, 2, 3
    union all
    select date_trunc($1::text, started_at, 'UTC'), null, null, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null, null, 0, 0, count(*), null
      from tributary.processes where started_at >= $2::timestamptz and started_at < $3::timestamptz group by 1)
  insert into tributary.activity (resolution, at, company, resource, runs, quarantined_runs, failed_runs, abandoned_runs, inserted,
         updated, deleted, quarantined, requests, retries, run_ms, run_ms_max, age_ms_max, lateness_max, budget_share_max, paused_ms,
         gaps, process_starts, rows)
  select $1::text, at, case when $4::text <> 'all' then company end, case when $4::text = 'resource' then resource end, sum(runs), sum(quarantined_runs),
         sum(failed_runs), sum(abandoned_runs), coalesce(sum(inserted), 0), coalesce(sum(updated), 0), coalesce(sum(deleted), 0),
         coalesce(sum(quarantined), 0), sum(requests), sum(retries), round(sum(run_ms)), round(max(run_ms_max)), round(max(age_ms)),
         max(lateness), max(budget_share), max(paused_ms), sum(gaps), sum(process_starts), max(rows)
    from figure group by 1, 2, 3, 4
  having $1::text = 'hour' or max(lateness) > 1
      or sum(runs) + max(paused_ms) + sum(gaps) + sum(process_starts) > 0 or max(budget_share) > 0`
})

/** Writes days from their hours. */
export const writeDaysStatement = Statement.make({
  name: "write the activity of days",
  params: ["timestamptz", "timestamptz"],
  text: `insert into tributary.activity (resolution, at, company, resource, runs, quarantined_runs, failed_runs, abandoned_runs, inserted,
         updated, deleted, quarantined, requests, retries, run_ms, run_ms_max, age_ms_max, lateness_max, budget_share_max, paused_ms,
         gaps, process_starts, rows)
  select 'day', date_trunc('day', at, 'UTC'), company, resource, sum(runs), sum(quarantined_runs), sum(failed_runs), sum(abandoned_runs),
         sum(inserted), sum(updated), sum(deleted), sum(quarantined), sum(requests), sum(retries), sum(run_ms), max(run_ms_max),
         max(age_ms_max), max(lateness_max), max(budget_share_max), sum(paused_ms), max(gaps), sum(process_starts),
         (array_agg(rows order by at desc) filter (where rows is not null))[1]
    from tributary.activity where resolution = 'hour' and at >= $1 and at < $2 group by 1, 2, 3, 4`
})

export const removeStatement = Statement.make({
  name: "delete old activity",
  text: `delete from tributary.activity a using (select tributary.now() as at) now
    where ${Object.entries(kept)
      .map(
        ([resolution, age]) =>
          `(resolution = '${resolution}' and a.at < date_trunc('${resolution}', now.at - interval '${age}', 'UTC'))`
      )
      .join(" or ")}`
})

/** Writes the next part of a resolution. Returns whether it reaches the present. */
const writePart = (resolution: Resolution, budgets: Budgets) =>
  transaction(
    Effect.gen(function* () {
      yield* Query.withoutCompilation
      yield* Statement.run(beginStatement, [resolution])
      const [range] = yield* Statement.run(rangeStatement, [
        resolution,
        reach[resolution],
        chunks[resolution],
        seriesMax[resolution]
      ])
      const { since, until, through, isCurrent, grain } = range!
      const [cleared] = yield* Statement.run(clearStatement, [resolution, since])
      yield* resolution === "day"
        ? Statement.run(writeDaysStatement, [since, until])
        : Statement.run(writeStatement, [resolution, since, until, grain, JSON.stringify(budgets()), cleared!.measured])
      yield* Query.run(
        control.updateTable("tributary.activity_watermarks").set({ through }).where("resolution", "=", resolution)
      )
      return isCurrent
    })
  )

/** Writes everything until the present, and deletes what is too old. */
export const writeActivity = Effect.fnUntraced(function* (budgets: Budgets) {
  for (const resolution of ["minute", "hour", "day"] as const) {
    while (!(yield* writePart(resolution, budgets)));
  }
  yield* Statement.run(removeStatement)
})

const everyMs = 60_000
/** The rest after a write, as a multiple of its time. */
const restShare = 50

/** Writes the activity until it is interrupted. */
export const writeForever = (budgets: Budgets): Sql.Query<never> =>
  repeatResting(writeActivity(budgets), () => ({ times: restShare, leastMs: everyMs }))
