/**
 * The SQL of `history.ts`: rows of the last two days, and the tasks and checkpoints that follow from the runs.
 *
 * Hours before the present are counted on the machine's clock, since the warehouse's is in the past meanwhile.
 */

/** The first sync was this many hours ago. */
export const pastHours = 47

const now = "clock_timestamp()"
const ago = (hours: number) => `${now} - interval '${hours} hours'`

/** When what happened, in hours before the present. */
export const times = {
  /** The source of `south` answered 503 for an hour. */
  failedHour: [14, 13],
  /** The source paused `north` for 36 minutes. */
  pause: [22, 21.4],
  /** A delivery gap of `north`. */
  gap: [20, 18.5],
  /** The process was lost, and another one started. */
  restart: [8.75, 8.6],
  /** A resource of `south` fails since then, and the invoices of `north`. */
  broken: 9,
  brokenInvoices: 3.5,
  /** The last run of the resource that runs only on request. */
  onRequest: 5
} as const

/** Real runs may be made at these times: a row of quiet runs ends there. */
export const stepHours = [34, 30, 28, 26, 25, 21, 12, 11, 9, 8, 6, 3.5, 3, 2, 1]

const between = ([from, until]: readonly [number, number], at = "at") => `${at} between ${ago(from)} and ${ago(until)}`

/** Resources that run every 15 minutes. */
export const hourly = ["customers", "orders", "orderlines", "shipments", "invoices", "invoicelines", "payments"]

/** Other resources with new records in the last two days. */
const steady = [
  "shiptos",
  "shipmentlines",
  "vouchers",
  "purchaseorders",
  "purchaseorderlines",
  "apbills",
  "apbilllines"
]

/** A moment as a cursor of the source. */
const cursorOf = (at: string) => `to_char((${at}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`

/** The phases of an inserted run: a wait for the budget, requests, pauses before retries, and landings. */
const phases = (() => {
  const phase = (name: string, from: number, until: number, share: string) =>
    `'${name}', jsonb_build_object('ms', round(took_ms * ${(until - from).toFixed(2)} * ${share}), 'times', case when ${share} = 0 then 0 else pages end,
       'longest_ms', round(took_ms * ${((until - from) / 2).toFixed(2)} * ${share}),
       'slots', (select coalesce(jsonb_agg(case when i >= slots * ${from} and i < slots * ${until} then round(slot_ms * ${share}) else 0 end), '[]')
                   from generate_series(0, slots - 1) i))`
  return `jsonb_build_object('took_ms', round(took_ms), 'slot_ms', slot_ms, 'phases', jsonb_build_object(
      ${phase("budget", 0, 0.12, "0.6")}, ${phase("request", 0.1, 0.8, "0.9")},
      ${phase("retry", 0.3, 0.6, "least(retries, 1)")}, ${phase("landing", 0.55, 1, "case when error is null then 0.5 else 0 end")}),
      'answers', case when error is null and retries = 0 then jsonb_build_array(jsonb_build_object('answer', '200', 'requests', pages, 'retries', 0, 'retry_ms', 0))
                      else jsonb_build_array(jsonb_build_object('answer', coalesce(answer, 'RateLimited'), 'requests', retries + 1, 'retries', retries, 'retry_ms', round(took_ms * 0.3))) end)`
})()

/** The last time at which the items were read: 03:00 in Berlin. */
const lastItems = `(date_trunc('day', (${now} at time zone 'Europe/Berlin') - interval '3 hours') + interval '3 hours') at time zone 'Europe/Berlin'`

/**
 * The runs between the first sync and the present, in `inserted_runs`. Load and changes follow the hours of a working
 * day. Quiet runs in a row share a row. What they change is a share: `historyChanges.ts` makes the changes. Numbers leave
 * room for the real runs between them.
 */
export const planStatements: ReadonlyArray<string> = [
  `create temporary table plan as
   with series as (
     select k.company_id, n.company, k.resource, abs(hashtext(n.company || k.resource)) as seed,
            case when k.resource = any (array['${hourly.join("', '")}']) then 15 when k.resource = 'zones' then 50 when k.resource = 'items' then 1440 else 90 end as minutes,
            k.cursor is not null as has_cursor, (select max(records) from tributary.runs r where r.company_id = k.company_id and r.resource = k.resource) as size
       from tributary.checkpoints k join tributary.companies n using (company_id) where k.lane = 'live'),
   slot as (
     select s.*, number, abs(hashtext(company || resource || number)) as h,
            case when resource = 'items' then ${lastItems} - number * interval '1 day' + seed % 20 * interval '1 second'
                 else ${now} - (1 + number * minutes + seed % (minutes / 2)) * interval '1 minute'
                             - (abs(hashtext(resource || number)) % 50) * interval '1 second' end as at
       from series s cross join lateral generate_series(0, ${pastHours * 60} / minutes) number),
   load as (
     select *, extract(hour from at at time zone 'UTC') between 7 and 17 as is_day, minutes = 15 as is_busy, ${between(times.pause)} and company = 'north' as is_paused,
            case when company = 'south' and minutes < 1440 and ${between(times.failedHour)} then 'ServerFault 503'
                 when company = 'south' and resource = 'vendors' and at > ${ago(times.broken)} then 'ServerFault 500'
                 when company = 'north' and resource = 'invoices' and at > ${ago(times.brokenInvoices)} then 'ServerFault 502' end as answer
       from slot
      where at > ${ago(pastHours - 0.5)} and not (${between([times.pause[0] - 0.25, times.pause[1]])} and company = 'north' and minutes < 30) and not (resource = 'zones' and at > ${ago(times.onRequest)})
        -- A run that failed is made again after a longer time.
        and not (company = 'north' and resource = 'invoices' and at > ${ago(times.brokenInvoices)} and number % 3 <> 0)
        -- A run of the day that fails or is missing changes the state of its resource for a day.
        and not (minutes < 1440 and ${between(times.restart)})),
   figures as (
     select *, case when answer is not null or not (has_cursor or is_busy) then 0
                    -- Lands what is entered last (historyChanges.ts), whatever the time of day.
                    when is_busy and ${between([times.brokenInvoices + 0.5, times.brokenInvoices])} then 1
                    when is_busy then case when is_day then (h >> 3) % 14 / 9 else (h >> 3) % 40 / 38 end
                    when is_day and resource = any (array['${steady.join("', '")}']) and h % 3 = 0 then 1 else 0 end as inserted,
            case when answer is not null then 0 when is_busy then case when is_day then (h >> 7) % 4 else (h >> 7) % 20 / 19 end else 0 end as updated,
            case when answer is not null then 1 when is_paused then 1 else 0 end as retries
       from load),
   timed as (
     select *, inserted + updated as changes, case when answer is null then 1 + (inserted + updated) / 12 else 0 end as pages,
            case when is_paused then extract(epoch from ${ago(times.pause[1])} - at) * 1000 + h % 9000
                 else 240 + h % 700 + (inserted + updated) * 45 + retries * 2100 + (h >> 9) % 50 / 49 * 9000 end as took_ms
       from figures),
   axis as (
     select *, (5 * power(2, greatest(0, ceil(log(2, greatest(1, took_ms / 200)::numeric)))))::int as slot_ms, answer as error,
            answer is null and has_cursor and changes = 0 and not is_paused as is_quiet
       from timed),
   grouped as (
     select *, ceil(took_ms / slot_ms)::int as slots, case when is_quiet then
              row_number() over (partition by company, resource order by at) - row_number() over (partition by company, resource, is_quiet order by at)
                + (select count(*) * 100000 from unnest(array[${stepHours.join(", ")}]) hours where at > ${now} - hours * interval '1 hour') end as island
       from axis)
   select * from grouped`,
  "create temporary table inserted_runs (like tributary.runs including defaults)",
  `insert into inserted_runs (id, company_id, resource, kind, lane, status, fence, started_at, finished_at, cursor_from, cursor_to, pages, requests,
          retries, bytes, records, inserted, updated, unchanged, quiet_runs, quiet_since, error, phases)
   select 100000 + 20 * row_number() over (order by ended_at), company_id, resource, case when has_cursor then 'incremental' else 'full' end, 'live', status, 1, began_at, ended_at,
          case when has_cursor then ${cursorOf("began_at - (minutes + 5) * interval '1 minute'")} end, case when has_cursor and error is null then ${cursorOf("began_at")} end,
          pages, greatest(1, pages) + retries, retries, 300 + records * 640, records, inserted, updated, records - inserted - updated, quiet_runs, quiet_since,
          error, phases
     from (select company_id, resource, minutes, has_cursor, 'done' as status, max(at) as began_at, max(at) + interval '400 milliseconds' as ended_at, count(*) as pages, 0 as retries,
                  0 as records, 0 as inserted, 0 as updated, count(*) as quiet_runs, min(at) as quiet_since, null as error, null::json as phases
             from plan where is_quiet group by company_id, resource, minutes, has_cursor, island
           union all
           select company_id, resource, minutes, has_cursor, case when error is not null then 'failed' when company = 'north' and at + took_ms * interval '1 millisecond' > ${ago(times.restart[0])}
                    and at < ${ago(times.restart[0])} then 'abandoned' else 'done' end, at, at + took_ms * interval '1 millisecond', pages, retries,
                  case when error is not null then 0 when has_cursor then changes + h % 4 else size end, inserted, updated, 0, null, right(answer, 3), ${phases}::json
             from plan
            where not is_quiet) r`,
  "drop table plan",
  "alter table inserted_runs add primary key (id)",
  "analyze inserted_runs"
]

/** The newest run of each resource. */
const newest = (condition: string) =>
  `(select distinct on (company_id, resource) * from tributary.runs join tributary.companies using (company_id) where lane = 'live' and ${condition} order by company_id, resource, started_at desc)`

/**
 * Inserts the planned runs until now, and leaves the warehouse as they would: the next run has a later number and their
 * cursor, the source's subscriptions were checked, and the process sent heartbeats.
 */
export const meanwhileStatements: ReadonlyArray<string> = [
  `insert into tributary.runs overriding system value
   select * from inserted_runs i where finished_at < tributary.now() and not exists (select from tributary.runs r where r.id = i.id)`,
  "select setval(pg_get_serial_sequence('tributary.runs', 'id'), (select max(id) from tributary.runs))",
  `update tributary.checkpoints k set cursor = r.cursor_to, cursor_read_at = r.started_at, updated_at = r.finished_at
     from ${newest("status in ('done', 'quarantined') and cursor_to is not null")} r
    where k.company_id = r.company_id and k.resource = r.resource and k.lane = 'live' and k.cursor_read_at < r.started_at`,
  `update tributary.checkpoints k set full_scan_at = r.started_at, updated_at = r.finished_at
     from ${newest("status = 'done' and kind = 'full'")} r
    where k.company_id = r.company_id and k.resource = r.resource and k.lane = 'live' and k.cursor is null and k.full_scan_at < r.started_at`,
  `update tributary.subscriptions set checked_at = tributary.now(), log_read_at = tributary.now(),
          gaps_evaluated_at = case when gaps_evaluated_at is not null then tributary.now() end where state <> 'deleted'`,
  "update tributary.processes set heartbeat_at = tributary.now() where stopped_at is null"
]

/**
 * Each inserted run reads from the overlap before the cursor of the run before it, and failed as the real one did. Tasks
 * are as the newest runs left them.
 */
export const endStatements: ReadonlyArray<string> = [
  `update tributary.runs r set cursor_from = ${cursorOf("x.cursor::timestamptz - interval '5 minutes'")}
     from (select id, max(cursor_to) over (partition by company_id, resource order by started_at rows between unbounded preceding and 1 preceding) as cursor
             from tributary.runs where lane = 'live') x
    where x.id = r.id and r.quiet_runs <= 1 and r.cursor_from is not null and x.cursor is not null and exists (select from inserted_runs i where i.id = r.id)`,
  `update tributary.runs r set error_kind = f.error_kind, remedy = f.remedy,
          error = regexp_replace(regexp_replace(replace(replace(f.error, '500', r.error), f.resource, r.resource), 'req_[0-9a-f]+', 'req_' || lpad(to_hex(r.id), 12, '0')),
                                 '&modifiedsince=[^:]*', case when r.cursor_from is null then '' else '&modifiedsince=' || replace(r.cursor_from, ':', '%3A') end)
     from (select * from tributary.runs where status = 'failed' and error like 'GET%500%' order by started_at limit 1) f, inserted_runs i
    where i.id = r.id and i.error is not null`,
  `update tributary.tasks t set started_at = r.started_at, finished_at = r.finished_at, run_id = r.id, error = r.error, remedy = r.remedy,
          status = case when r.status = 'abandoned' then 'failed' else r.status end, failure_kind = case when r.status = 'failed' then 'failed' end, failures = 0
     from ${newest("true")} r
    where t.company = r.company and t.resource = r.resource and t.kind = 'sync' and (t.started_at is null or t.started_at < r.started_at)`,
  `update tributary.tasks t set failures = f.n
     from (select n.company, r.resource, count(*) as n from tributary.runs r join tributary.companies n using (company_id)
            where r.lane = 'live' and r.status in ('failed', 'abandoned') and r.started_at > (select max(d.started_at) from tributary.runs d where d.company_id = r.company_id
                    and d.resource = r.resource and d.lane = 'live' and d.status in ('done', 'quarantined')) group by 1, 2) f
    where t.company = f.company and t.resource = f.resource and t.kind = 'sync'`,
  `update tributary.tasks set deferred_from = null, next_run_at =
          case when failures > 0 and resource = 'invoices' then started_at + interval '45 minutes'
               when resource = 'items' then ${lastItems} + interval '1 day'
               when resource = any (array['${hourly.join("', '")}']) then greatest(started_at + interval '15 minutes', ${now} + interval '1 minute')
               else greatest(started_at + interval '90 minutes', ${now} + interval '1 minute') end
    where kind = 'sync' and next_run_at is not null`
]

/** Processes, a closed delivery gap, next runs, and two days of samples beside those of the last hour. */
export const surroundingStatements: ReadonlyArray<string> = [
  `update tributary.processes set started_at = ${ago(times.restart[1])} where stopped_at is null`,
  `update tributary.bucket_owners set since = ${ago(times.restart[1])}`,
  `insert into tributary.processes (process_id, companies, host, pid, started_at, heartbeat_at, stopped_at)
   select id, array['north', 'south', 'west'], host, pid, ${now} - started * interval '1 hour', ${now} - ended * interval '1 hour', case when stopped then ${now} - ended * interval '1 hour' end
     from (values ('1qm4z0-k2v8d1', 'etl-1', 4127, ${pastHours}, ${times.restart[0]}, false), ('0w8u3c-1h5n7x', 'etl-2', 911, 31, 29.5, true)) p (id, host, pid, started, ended, stopped)`,
  `insert into tributary.delivery_gaps (company, resource, cause, detail, began_at, ended_at, detected_at, attempts)
   select 'north', resource, 'disabled', 'the source disabled the subscription after 20 failed deliveries', ${ago(times.gap[0])}, ${ago(times.gap[1])}, ${ago(times.gap[0] - 0.1)}, 1
     from unnest(array['customers', 'orders', 'payments']) g (resource)`,
  // A full scan read the rows that there were.
  `update tributary.runs r set records = x.rows, unchanged = x.rows - r.inserted - r.updated
     from (select id, sum(inserted - deleted) over (partition by company_id, resource order by started_at) as rows from tributary.runs) x
    where x.id = r.id and r.kind = 'full' and r.status = 'done' and exists (select from inserted_runs i where i.id = r.id)`,
  // The run that proves a gap closed: real checks are made for the times of the real runs only.
  `update tributary.delivery_gaps g set closed_at = r.finished_at, closed_by = 'run ' || r.id, last_error = null
     from tributary.delivery_gaps x cross join lateral (select id, finished_at from tributary.runs r where r.company_id = 1 and r.resource = x.resource and lane = 'live' and status = 'done'
                           and started_at > x.ended_at + interval '5 minutes' order by started_at limit 1) r
    where x.id = g.id and g.company = 'north'`,
  `insert into tributary.unknown_fields (company_id, resource, field, first_seen_at, last_seen_at, times, sample_types, run_id)
   select 1, 'customers', 'loyaltytier', (select min(started_at) from tributary.runs where company_id = 1 and resource = 'customers' and started_at > ${ago(30)}), started_at, 34, array['text'], id
     from tributary.runs where company_id = 1 and resource = 'customers' and lane = 'live' order by started_at desc limit 1`
]

export const sampleStatement = `
  insert into tributary.budget_usage (fingerprint, at, used, allowed, configured, rate_limited_count, is_paused)
  select b.fingerprint, s.at, case when s.is_paused then 0 else round(used) end, 3000, 3000, 0, s.is_paused
    from jsonb_to_recordset($1::jsonb) as b(company text, fingerprint text)
    cross join lateral (
      select at, b.company = 'north' and ${between(times.pause)} as is_paused,
             (case when extract(hour from at at time zone 'UTC') between 7 and 17 then 1100 else 180 end + abs(hashtext(b.company || tick / 40)) % 800)
               * case b.company when 'north' then 1 when 'south' then 0.6 else 0.4 end + abs(hashtext(b.company || tick)) % 120 as used
        from (select to_timestamp(floor(extract(epoch from ${now}) / 15) * 15) - tick * interval '15 seconds' as at, tick
                from generate_series(240, ${pastHours * 240}) tick) t) s
  on conflict do nothing`

/** The counts of the past: no process measured them, so that they are those of now without the later changes. */
export const rowCountStatement = `
  update tributary.activity a set rows = past.rows
    from (select a.at, a.company, a.resource, c.rows - sum(a.inserted - a.deleted) over (partition by a.company, a.resource order by a.at desc)
                   + a.inserted - a.deleted as rows
            from tributary.activity a join tributary.companies n using (company) join tributary.row_counts c on c.company_id = n.company_id and c.resource = a.resource
           where a.resolution = 'hour') past
   where a.resolution = 'hour' and a.at = past.at and a.company = past.company and a.resource = past.resource`
