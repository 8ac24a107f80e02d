/** The SQL of `history.ts`: rows of the last two days, and the move of what just happened into the past. */
import type { Operator } from "./operator.ts"

/** The first sync was this many hours ago. */
export const pastHours = 47

const now = "tributary.now()"
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

const between = ([from, until]: readonly [number, number], at = "at") => `${at} between ${ago(from)} and ${ago(until)}`

/** Moves what {@link movePast} does not: the first sync of everything. */
export const firstSyncStatements: ReadonlyArray<string> = [
  ...(
    [
      ["runs", "started_at", "finished_at"],
      ["checkpoints", "full_scan_at"],
      ["change_batches", "began", "landed_at"],
      ["quarantine", "first_seen_at"]
    ] as const
  ).map(
    ([table, ...columns]) =>
      `update tributary.${table} set ${columns.map((one) => `${one} = ${one} - interval '${pastHours} hours'`).join(", ")}`
  ),
  `do $$ declare t record; begin
    for t in select table_schema as s, table_name as n from information_schema.columns c join information_schema.tables using (table_schema, table_name)
              where table_schema = 'erp' and column_name = '_observed_at' and table_type = 'BASE TABLE' loop
      execute format('update %I.%I set _observed_at = _observed_at - interval ''${pastHours} hours''', t.s, t.n);
    end loop; end $$`
]

/** Resources that run every 15 minutes. */
export const hourly = ["customers", "orders", "orderlines", "shipments", "invoices", "invoicelines", "payments"]

/** Other resources with new records in the last two days. */
const steady = [
  "items",
  "shiptos",
  "shipmentlines",
  "vouchers",
  "purchaseorders",
  "purchaseorderlines",
  "apbills",
  "apbilllines"
]

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
                      else jsonb_build_array(jsonb_build_object('answer', coalesce(answer, 'rate_limited 429'), 'requests', retries + 1, 'retries', retries, 'retry_ms', round(took_ms * 0.3))) end)`
})()

/**
 * The runs between the first sync and the present. Load and changes follow the hours of a working day. Quiet runs in a row
 * share a row. What they change is a share: `historyChanges.ts` makes the changes. Numbers leave room for runs that are moved between them.
 */
export const runStatements: ReadonlyArray<string> = [
  `create temporary table plan as
   with series as (
     select k.company_id, n.company, k.resource, abs(hashtext(n.company || k.resource)) as seed,
            case when k.resource = any (array['${hourly.join("', '")}']) then 15 when k.resource = 'zones' then 50 else 90 end as minutes
       from tributary.checkpoints k join tributary.companies n using (company_id) where k.lane = 'live'),
   slot as (
     select s.*, abs(hashtext(company || resource || number)) as h,
            ${ago(pastHours - 0.5)} + (number * minutes + seed % minutes) * interval '1 minute'
              + (abs(hashtext(resource || number)) % 50) * interval '1 second' as at
       from series s cross join lateral generate_series(0, ${pastHours * 60} / minutes) number),
   load as (
     select *, extract(hour from at at time zone 'UTC') between 7 and 17 as is_day, minutes = 15 as is_busy, ${between(times.pause)} and company = 'north' as is_paused,
            case when company = 'south' and ${between(times.failedHour)} then 'unavailable 503'
                 when company = 'south' and resource = 'vendors' and at > ${ago(times.broken)} then 'server_error 500'
                 when company = 'north' and resource = 'invoices' and at > ${ago(times.brokenInvoices)} then 'server_error 502' end as answer
       from slot
      where at < ${now} - interval '14 minutes' and not (resource = 'zones' and at > ${ago(times.onRequest)}) and not (${between(times.restart)})),
   figures as (
     select *, case when answer is not null then 0 when is_busy then case when is_day then (h >> 3) % 14 / 9 else (h >> 3) % 40 / 38 end
                    when is_day and resource = any (array['${steady.join("', '")}']) and h % 3 = 0 then 1 else 0 end as inserted,
            case when answer is not null then 0 when is_busy then case when is_day then (h >> 7) % 4 else (h >> 7) % 20 / 19 end else 0 end as updated,
            case when answer is not null then 3 when is_paused then 1 + h % 3 else 0 end as retries
       from load),
   timed as (
     select *, inserted + updated as changes, 1 + (inserted + updated) / 12 as pages,
            case when is_paused then extract(epoch from ${ago(times.pause[1])} - at) * 1000 + h % 9000
                 else 240 + h % 700 + (inserted + updated) * 45 + retries * 2100 + (h >> 9) % 50 / 49 * 9000 end as took_ms
       from figures),
   axis as (
     select *, (5 * power(2, greatest(0, ceil(log(2, greatest(1, took_ms / 200)::numeric)))))::int as slot_ms, replace(answer, '_', ' ') as error,
            answer is null and changes = 0 and not is_paused as is_quiet
       from timed),
   grouped as (
     select *, ceil(took_ms / slot_ms)::int as slots, case when is_quiet then
              row_number() over (partition by company, resource order by at) - row_number() over (partition by company, resource, is_quiet order by at) end as island
       from axis)
   select * from grouped`,
  `insert into tributary.runs (id, company_id, resource, kind, lane, status, fence, started_at, finished_at, cursor_from, cursor_to, pages, requests,
          retries, bytes, records, inserted, updated, unchanged, quiet_runs, quiet_since, error_kind, error, remedy, phases) overriding system value
   select 100000 + 20 * row_number() over (order by ended_at), company_id, resource, 'incremental', 'live', status, 1, began_at, ended_at,
          to_char(began_at - minutes * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), to_char(began_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          pages, pages + retries, retries, 300 + records * 640, records, inserted, updated, records - inserted - updated, quiet_runs, quiet_since,
          error_kind, error, remedy, phases
     from (select company_id, resource, minutes, 'done' as status, max(at) as began_at, max(at) + interval '400 milliseconds' as ended_at, count(*) as pages, 0 as retries,
                  0 as records, 0 as inserted, 0 as updated, count(*) as quiet_runs, min(at) as quiet_since, null as error_kind, null as error, null as remedy, null::json as phases
             from plan where is_quiet group by company_id, resource, minutes, island
           union all
           select company_id, resource, minutes, case when error is not null then 'failed' when company = 'north' and at + took_ms * interval '1 millisecond' > ${ago(times.restart[0])}
                    and at < ${ago(times.restart[0])} then 'abandoned' else 'done' end, at, at + took_ms * interval '1 millisecond', pages, retries,
                  case when error is null then changes + h % 4 else 0 end, inserted, updated, 0, null, failed.kind, replace(replace(failed.reason, '500', right(answer, 3)), 'vendors', resource),
                  failed.next, ${phases}::json
             from plan p left join (select error_kind as kind, error as reason, remedy as next from tributary.runs where resource = 'vendors' and company_id = 2 order by id limit 1) failed
                  on p.error is not null
            where not is_quiet) r`,
  "drop table plan",
  "select setval(pg_get_serial_sequence('tributary.runs', 'id'), (select max(id) + 20 from tributary.runs))"
]

/** The invoices of `north` fail: what `serve` read meanwhile is removed. */
export const lateInvoiceStatements: ReadonlyArray<string> = [
  `delete from tributary.runs where company_id = 1 and resource = 'invoices' and lane = 'live' and started_at > ${now} - interval '14 minutes'`,
  `update tributary.tasks t set status = 'failed', failures = 1, run_id = r.id, error = r.error, remedy = r.remedy, failure_kind = 'failed',
          started_at = r.started_at, finished_at = r.finished_at, next_run_at = ${now} + interval '41 minutes'
     from (select * from tributary.runs where company_id = 1 and resource = 'invoices' and lane = 'live' order by id desc limit 1) r
    where t.company = 'north' and t.resource = 'invoices' and t.kind = 'sync'`
]

/** Processes, a closed delivery gap, next runs, and two days of samples beside those of the last hour. */
export const surroundingStatements: ReadonlyArray<string> = [
  `update tributary.processes set started_at = ${ago(times.restart[1])} where stopped_at is null`,
  `update tributary.bucket_owners set since = ${ago(times.restart[1])}`,
  `insert into tributary.processes (process_id, companies, host, pid, started_at, heartbeat_at, stopped_at)
   select id, array['north', 'south', 'west'], host, pid, ${now} - started * interval '1 hour', ${now} - ended * interval '1 hour', case when stopped then ${now} - ended * interval '1 hour' end
     from (values ('1qm4z0-k2v8d1', 'etl-1', 4127, ${pastHours}, ${times.restart[0]}, false), ('0w8u3c-1h5n7x', 'etl-2', 911, 31, 29.5, true)) p (id, host, pid, started, ended, stopped)`,
  `insert into tributary.delivery_gaps (company, resource, cause, detail, began_at, ended_at, detected_at, attempts, closed_at, closed_by)
   select 'north', resource, 'disabled', 'the source disabled the subscription after 20 failed deliveries', ${ago(times.gap[0])}, ${ago(times.gap[1])},
          ${ago(times.gap[0] - 0.1)}, 1, ${ago(times.gap[1] - 0.1)}, 'run ' || (select max(id) from tributary.runs r where r.company_id = 1 and r.resource = g.resource and started_at < ${ago(times.gap[1] - 0.1)})
     from unnest(array['customers', 'orders', 'payments']) g (resource)`,
  `update tributary.tasks set next_run_at = finished_at + (abs(hashtext(company || resource)) % case when resource = any (array['${hourly.join("', '")}']) then 7 else 80 end + 8) * interval '1 minute'
    where kind = 'sync' and schedule <> 'off' and finished_at is not null and coalesce(status, '') <> 'failed'`,
  `insert into tributary.unknown_fields (company_id, resource, field, first_seen_at, last_seen_at, times, sample_types, run_id)
   values (1, 'customers', 'loyaltytier', ${ago(30)}, ${ago(0.2)}, 212, array['text'], (select max(id) from tributary.runs where company_id = 1 and resource = 'customers'))`
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

const moveStatement = `do $$ declare
  since timestamptz := '%since%'; shift interval := '%hours% hours'; t record;
begin
  create temporary table moved on commit drop as
    select old, (select coalesce(max(n.id), 0) from tributary.runs n where n.started_at < r.began - shift) + row_number() over (order by r.began) as new
      from (select id as old, started_at as began from tributary.runs where started_at >= since and quiet_runs = 0) r;
  create temporary table moved_runs on commit drop as
    select (jsonb_populate_record(r, jsonb_build_object('id', m.new))).* from tributary.runs r join moved m on m.old = r.id;
  delete from tributary.runs where id in (select old from moved);
  update moved_runs set started_at = started_at - shift, finished_at = finished_at - shift, quiet_since = quiet_since - shift;
  insert into tributary.runs overriding system value select * from moved_runs;
  update tributary.tasks x set run_id = m.new from moved m where m.old = x.run_id;
  for t in select distinct on (history) resource, history from tributary.change_batches where began >= since loop
    execute format('update %s set _observed_at = _observed_at - $2, _run_id = coalesce((select new from moved where old = _run_id), _run_id) where _observed_at >= $1', 'erp.' || quote_ident(t.resource)) using since, shift;
    execute format('update %s set _run_id = coalesce((select new from moved where old = _run_id), _run_id), _observed_at = _observed_at - $2 where _observed_at >= $1', 'erp_history.' || quote_ident(t.resource || '__superseded')) using since, shift;
    execute format('update %s set _valid_to = _valid_to - $2 where _valid_to >= $1', 'erp_history.' || quote_ident(t.resource || '__superseded')) using since, shift;
  end loop;
  update tributary.change_batches set began = began - shift, landed_at = landed_at - shift where began >= since;
  update tributary.inbox x set sent_at = sent_at - shift, received_at = received_at - shift, occurred_at = occurred_at - shift,
         resolved_at = resolved_at - shift, run_id = m.new from moved m where m.old = x.run_id and x.received_at >= since;
  update tributary.pushes set created_at = created_at - shift, finished_at = finished_at - shift where created_at >= since;
  update tributary.push_requests set created_at = created_at - shift, closed_at = closed_at - shift where created_at >= since;
  update tributary.outbox set created_at = created_at - shift, resolved_at = resolved_at - shift where created_at >= since;
end $$`

/** Moves what happened since a moment into the past: runs, versions, batches of the feed, events and pushes. */
export const movePast = (query: Operator["query"], since: string, hours: number): Promise<unknown> =>
  query(moveStatement.replace("%since%", since).replace("%hours%", String(hours)))

/** The counts of the past: no process measured them, so that they are those of now without the later changes. */
export const rowCountStatement = `
  update tributary.activity a set rows = past.rows
    from (select a.at, a.company, a.resource, c.rows - sum(a.inserted - a.deleted) over (partition by a.company, a.resource order by a.at desc)
                   + a.inserted - a.deleted as rows
            from tributary.activity a join tributary.companies n using (company) join tributary.row_counts c on c.company_id = n.company_id and c.resource = a.resource
           where a.resolution = 'hour') past
   where a.resolution = 'hour' and a.at = past.at and a.company = past.company and a.resource = past.resource`
