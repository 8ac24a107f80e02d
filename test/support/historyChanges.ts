/**
 * The changes of the inserted runs of `historyRows.ts`, in the warehouse, in the change feed and at the source. So the
 * figures of a run, its changes, the versions of a record, their times and the row counts agree.
 */
import { pastHours, times } from "./historyRows.ts"
import type { Operator } from "./operator.ts"

/** A column that the inserted runs change, by resource. */
const columns: Readonly<Record<string, string>> = {
  customers: "creditlimit",
  orders: "ordertotal",
  orderlines: "qtyorder",
  shipments: "carrierservice",
  invoices: "invoicetotal",
  invoicelines: "priceach"
}

/** An inserted run that changes something. */
const isInserted = "r.quiet_runs = 0 and exists (select from inserted_runs i where i.id = r.id)"

/** What the first sync landed. */
const isFirst = `landed_at < clock_timestamp() - interval '${pastHours - 0.4} hours'`

/**
 * The figures of an inserted run say how much it changes in proportion to the others of its resource. The newest quarter
 * of the records was entered at the source in the working hours since the first sync, in the order of the orders, and
 * landed by the next run that changes something. It ends before invoices fail: later ones could not be landed. The other
 * records were updated.
 */
const changes = `
  create temporary table touched (id bigint, run_id bigint, at timestamptz, is_new boolean, stamp timestamptz, n bigint, m bigint);
  create temporary table stamps (company_id bigint, resource text, id bigint, lastchangedate timestamptz, entrydate timestamptz, dates jsonb);
  minutes := array(select m from generate_series(date_trunc('minute', clock_timestamp()) - interval '${pastHours - 0.6} hours', clock_timestamp() - interval '${times.brokenInvoices + 0.5} hours', interval '1 minute') m
                    where extract(hour from m at time zone 'UTC') between 7 and 17);
  create temporary table quarter as
    select _company_id, percentile_disc(0.75) within group (order by entrydate) as since, max(entrydate) + interval '1 second' as until from erp.orders where ${isFirst.replace("landed_at", "_observed_at")} group by 1;
  create temporary table sources as
    select id as run_id, 'GET /' || resource || '?limit=250' || coalesce('&modifiedsince=' || replace(cursor_from, ':', '%3A'), '&cancel=any') || ' [request req_' || lpad(to_hex(id), 12, '0') || ']' as source
      from tributary.runs r where ${isInserted};
  create unique index on sources (run_id);
  for s in select company_id, resource from tributary.runs r where ${isInserted} group by 1, 2 having sum(inserted + updated) > 0 loop
    current := 'erp.' || quote_ident(s.resource);
    col := names ->> s.resource;
    select coalesce(array_agg(column_name::text), '{}') into fields from information_schema.columns where table_schema = 'erp' and table_name = s.resource and (data_type = 'date' or column_name in ('lastchangedate', 'entrydate'));
    truncate touched;
    execute format($q$
      insert into touched
      with run as (select * from tributary.runs r where ${isInserted} and company_id = $1 and resource = $2 and status = 'done'),
        place as (select id as run_id, started_at as at, row_number() over (order by id, k) - 1 as j from (select id, started_at, generate_series(1, updated) as k from run) x),
        pool as (
          select *, row_number() over (partition by is_new order by hashtext(id::text), id) - 1 as i, count(*) over (partition by is_new) as size
            from (select y.id, coalesce(y.entered > q.since, false) as is_new,
                         $4[1 + floor(least(0.999, extract(epoch from y.entered - q.since) / extract(epoch from q.until - q.since)) * cardinality($4))::int] + mod(y.id, 60) * interval '1 second' as entered
                    from (select id, _company_id, %2$s as entered from %1$s where _company_id = $1 and _version = 1 and _deleted_at is null and ${isFirst.replace("landed_at", "_observed_at")}) y
                    left join quarter q using (_company_id)) z),
        picked as (
          select distinct p.id, l.run_id, l.at, false as is_new, date_trunc('second', l.at) - (5 + mod(p.id * 7919 + l.run_id, 830)) * interval '1 second' as stamp
            from pool p join place l on p.i = mod(l.j, p.size) where not p.is_new and $3 is not null
          union all
          select p.id, l.id, l.started_at, true, p.entered from pool p
           cross join lateral (select id, started_at from run where started_at > p.entered order by started_at limit 1) l where p.is_new)
      select *, row_number() over (partition by id order by run_id), count(*) over (partition by id) from picked $q$,
      current, case when 'entrydate' = any (fields) then 'entrydate' else 'null::timestamptz' end) using s.company_id, s.resource, col, minutes;
    if col is not null then
      execute format($q$
        insert into %2$s
        select (jsonb_populate_record(c, jsonb_build_object('_version', u.n, '_op', case when u.n = 1 then 'insert' else 'update' end,
                 '_run_id', coalesce(b.run_id, c._run_id), '_observed_at', coalesce(b.at, c._observed_at), 'lastchangedate', coalesce(to_jsonb(b.stamp), to_jsonb(c) -> 'lastchangedate'),
                 '_source', coalesce((select source from sources where run_id = b.run_id), c._source), %3$L,
                 case when %3$L = 'carrierservice' then to_jsonb((array['Courier', 'Own truck'])[1 + mod(u.n, 2)]) else to_jsonb(coalesce((to_jsonb(c) ->> %3$L)::numeric, 0) + 5 * (u.m + 1 - u.n)) end))).*, u.at
          from touched u join %1$s c on c._company_id = $1 and c.id = u.id left join touched b on b.id = u.id and b.n = u.n - 1
         where not u.is_new $q$, current, 'erp_history.' || quote_ident(s.resource || '__superseded'), col) using s.company_id;
    end if;
    execute format($q$
      update %1$s c set _run_id = u.run_id, _observed_at = u.at, _version = case when is_new then 1 else m + 1 end, _op = case when is_new then 'insert' else 'update' end,
             _source = (select source from sources where run_id = u.run_id) %2$s
        from touched u where c._company_id = $1 and c.id = u.id and u.n = u.m $q$, current,
        (select string_agg(case when f = 'lastchangedate' then ', lastchangedate = u.stamp' when f = 'entrydate' then ', entrydate = case when is_new then u.stamp else c.entrydate end'
                                when 'entrydate' = any (fields) then format(', %1$I = case when is_new then c.%1$I + (u.stamp::date - c.entrydate::date) else c.%1$I end', f) else '' end, '') from unnest(fields) f)) using s.company_id;
    execute format($q$
      insert into stamps
      select $1, $2, u.id, case when 'lastchangedate' = any ($3) then u.stamp end, case when is_new then u.stamp end,
             case when is_new then (select jsonb_object_agg(key, value) from jsonb_each(to_jsonb(c)) where key = any ($3) and key not in ('lastchangedate', 'entrydate') and value <> 'null') end
        from touched u join %s c on c._company_id = $1 and c.id = u.id where u.n = u.m and (is_new or 'lastchangedate' = any ($3)) $q$, current) using s.company_id, s.resource, fields;
    update tributary.change_batches b set ids = kept.ids, changes = cardinality(kept.ids)
      from (select x.id, array(select i from unnest(x.ids) i where i not in (select id from touched where is_new)) as ids from tributary.change_batches x) kept
     where kept.id = b.id and b.company_id = s.company_id and b.resource = s.resource and b.${isFirst};
    delete from tributary.change_batches where changes = 0;
    insert into tributary.change_batches (company_id, resource, history, ids, versions, changes, began, landed_at)
    select s.company_id, s.resource, 'erp_history.' || quote_ident(s.resource), array_agg(u.id order by u.id),
           array_agg(case when is_new then 1 else n + 1 end order by u.id), count(*), r.started_at, r.finished_at - interval '100 milliseconds'
      from touched u join tributary.runs r on r.id = u.run_id group by r.id;
    update tributary.runs r set inserted = f.inserted, updated = f.updated, records = f.inserted + f.updated + r.unchanged
      from (select x.id, count(u.id) filter (where is_new) as inserted, count(u.id) filter (where not is_new) as updated
              from tributary.runs x left join touched u on u.run_id = x.id where x.company_id = s.company_id and x.resource = s.resource group by 1) f
     where f.id = r.id and ${isInserted};
    update tributary.runs r set records = records - f.later, inserted = inserted - case when is_first then f.later else 0 end, unchanged = unchanged - case when is_first then 0 else f.later end
      from (select x.id, x.id = min(x.id) over () as is_first, (select count(*) from touched where is_new and at > x.started_at) as later
              from tributary.runs x where x.company_id = s.company_id and x.resource = s.resource and x.lane = 'live' and x.kind = 'full') f where f.id = r.id;
  end loop;
  drop table touched;`

/** The feed in the order of its times, and the counts of all rows. */
const order = `
  perform from tributary.change_feed for update;
  update tributary.change_batches set last_position = null;
  update tributary.change_batches b set last_position = o.until, token = coalesce(token, (random() * 2147483647)::int)
    from (select id, sum(changes) over (order by landed_at, id) as until from tributary.change_batches) o where o.id = b.id;
  update tributary.change_feed set last_position = (select max(last_position) from tributary.change_batches);
  -- The process counts rows, too; a busy machine estimates some.
  lock table tributary.row_counts;
  for s in select distinct resource from tributary.row_counts loop
    execute format('update tributary.row_counts k set is_exact = true, run_id = (select max(id) from tributary.runs), counted_at = tributary.now(),
      (rows, deleted) = (select count(*) filter (where _deleted_at is null), count(*) filter (where _deleted_at is not null) from erp.%I where _company_id = k.company_id)
      where k.resource = %L', s.resource, s.resource);
  end loop;`

/** In one transaction, so that a running `serve` sees all or nothing. */
const changeStatement = `do $$ declare
  s record; current text; col text; fields text[]; minutes timestamptz[]; names jsonb := '${JSON.stringify(columns)}';
begin ${changes} ${order} end $$`

const instant = (of: string) => `to_char(${of} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** Writes the changes. The source has the same times of them, so that a scan finds no difference. */
export const writeChanges = async ({ reference, query }: Pick<Operator, "reference" | "query">): Promise<void> => {
  await query(changeStatement)
  const records = await query<{ company: number; resource: string; records: ReadonlyArray<unknown> }>(
    `select company_id::int as company, resource,
            jsonb_agg(jsonb_strip_nulls(jsonb_build_object('id', id, 'lastchangedate', ${instant("lastchangedate")}, 'entrydate', ${instant("entrydate")})) || coalesce(dates, '{}')) as records
       from stamps group by 1, 2`
  )
  for (const one of records) await reference.control("POST", "/records", one)
}
