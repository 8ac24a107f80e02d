/**
 * The changes of the inserted runs of `historyRows.ts`, in the warehouse and in the change feed, and the past of one
 * demonstration record. So the figures of a run, its changes, the versions of a record and the row counts agree.
 */
import type { Operator } from "./operator.ts"

const now = "tributary.now()"
const ago = (hours: number) => `${now} - interval '${hours} hours'`

/** A column that the inserted runs change, by resource. */
const columns: Readonly<Record<string, string>> = {
  customers: "creditlimit",
  orders: "ordertotal",
  orderlines: "qtyorder",
  shipments: "carrierservice",
  invoices: "invoicetotal",
  invoicelines: "priceach",
  payments: "bankfee_amount"
}

/** An inserted run. Runs that were moved into the past have numbers between those. */
const isInserted = `r.id >= 100000 and mod(r.id, 20) = 0 and r.started_at < ${now} - interval '14 minutes' and r.quiet_runs = 0`

/**
 * The figures of an inserted run say how much it changes in proportion to the others of its resource. The newest quarter
 * of the records was inserted by these runs, and no longer by the first sync; the other records were updated by them.
 */
const changes = `
  create temporary table touched (id bigint, run_id bigint, at timestamptz, is_new boolean, n bigint, m bigint);
  for s in select company_id, resource from tributary.runs r where ${isInserted} group by 1, 2 having sum(inserted + updated) > 0 loop
    current := 'erp.' || quote_ident(s.resource);
    col := names ->> s.resource;
    truncate touched;
    execute format($q$
      insert into touched
      with run as (select * from tributary.runs r where ${isInserted} and company_id = $1 and resource = $2 and status = 'done'),
        place as (
          select id as run_id, started_at as at, is_new, row_number() over (partition by is_new order by id, k) - 1 as j, count(*) over (partition by is_new) as total
            from (select id, started_at, true as is_new, generate_series(1, inserted) as k from run
                  union all select id, started_at, false, generate_series(1, updated) from run) x),
        pool as (
          select id, is_new, row_number() over (partition by is_new order by case when is_new then id else hashtext(id::text) end, id) - 1 as i, count(*) over (partition by is_new) as size
            from (select id, row_number() over (order by id desc) <= count(*) over () / 4 as is_new from %1$s
                   where _company_id = $1 and _version = 1 and _deleted_at is null and _observed_at < ${ago(46.6)}) y),
        picked as (
          select distinct p.id, l.run_id, l.at, p.is_new from pool p join place l using (is_new)
           where case when p.is_new then l.j = p.i * l.total / p.size else $3 is not null and p.i = mod(l.j, p.size) end)
      select *, row_number() over (partition by id order by run_id), count(*) over (partition by id) from picked $q$, current) using s.company_id, s.resource, col;
    if col is not null then
      execute format($q$
        insert into %2$s
        select (jsonb_populate_record(c, jsonb_build_object('_version', u.n, '_op', case when u.n = 1 then 'insert' else 'update' end,
                 '_run_id', coalesce(b.run_id, c._run_id), '_observed_at', coalesce(b.at, c._observed_at), '_source', coalesce(regexp_replace(c._source, 'req_[0-9a-f]+', 'req_' || lpad(to_hex(b.run_id), 12, '0')), c._source), %3$L,
                 case when %3$L = 'carrierservice' then to_jsonb((array['Courier', 'Own truck'])[1 + mod(u.n, 2)]) else to_jsonb(coalesce((to_jsonb(c) ->> %3$L)::numeric, 0) + 5 * (u.m + 1 - u.n)) end))).*, u.at
          from touched u join %1$s c on c._company_id = $1 and c.id = u.id left join touched b on b.id = u.id and b.n = u.n - 1
         where not u.is_new $q$, current, 'erp_history.' || quote_ident(s.resource || '__superseded'), col) using s.company_id;
    end if;
    execute format($q$
      update %1$s c set _run_id = u.run_id, _observed_at = u.at, _version = case when is_new then 1 else m + 1 end, _op = case when is_new then 'insert' else 'update' end, _source = regexp_replace(c._source, 'req_[0-9a-f]+', 'req_' || lpad(to_hex(u.run_id), 12, '0'))
        from touched u where c._company_id = $1 and c.id = u.id and u.n = u.m $q$, current) using s.company_id;
    update tributary.change_batches b set ids = kept.ids, changes = cardinality(kept.ids)
      from (select x.id, array(select i from unnest(x.ids) i where i not in (select id from touched where is_new)) as ids from tributary.change_batches x) kept
     where kept.id = b.id and b.company_id = s.company_id and b.resource = s.resource and b.landed_at < ${ago(46.6)};
    delete from tributary.change_batches where changes = 0;
    insert into tributary.change_batches (company_id, resource, history, ids, versions, changes, began, landed_at)
    select s.company_id, s.resource, 'erp_history.' || quote_ident(s.resource), array_agg(u.id order by u.id),
           array_agg(case when is_new then 1 else n + 1 end order by u.id), count(*), r.started_at, r.finished_at - interval '100 milliseconds'
      from touched u join tributary.runs r on r.id = u.run_id group by r.id;
    update tributary.runs r set inserted = f.inserted, updated = f.updated, records = f.inserted + f.updated + r.unchanged
      from (select x.id, count(u.id) filter (where is_new) as inserted, count(u.id) filter (where not is_new) as updated
              from tributary.runs x left join touched u on u.run_id = x.id where x.company_id = s.company_id and x.resource = s.resource group by 1) f
     where f.id = r.id and ${isInserted};
    update tributary.runs r set inserted = inserted - (select count(*) from touched where is_new), records = records - (select count(*) from touched where is_new)
     where r.id = (select min(x.id) from tributary.runs x where x.company_id = s.company_id and x.resource = s.resource and x.inserted > 0 and x.id < 100000);
  end loop;
  drop table touched;`

/** How the demonstration record changed: hours ago, kind and lane of the run, its change, and the columns that it set. */
const versions = [
  [26, "incremental", "live", "update", "creditlimit = 1250.5000, name = 'Harbour & Daughters'"],
  [21, "fetch", "records", "update", "creditlimit = 1250.5000"],
  [
    12,
    "incremental",
    "live",
    "update",
    "creditlimit = 123456789012.3400, name = repeat('Pays late. Call before the next shipment. ', 12)"
  ],
  [8, "full", "live", "delete", `_deleted_at = ${ago(8)}`],
  [3, "fetch", "records", "insert", "_deleted_at = null, name = '%name%', cancel = true, lastchangedate = '%changed%'"]
] as const

const newRun = (hours: number, kind: string, lane: string, op: string) => `
  insert into tributary.runs overriding system value
  select (jsonb_populate_record(r, jsonb_build_object('id', (select max(x.id) filter (where x.id % 20 = 0 and x.id >= 100000) + 11 from tributary.runs x where x.started_at < ${ago(hours)}),
           'kind', '${kind}', 'lane', '${lane}', 'status', 'done', 'started_at', ${ago(hours)}, 'finished_at', ${ago(hours)} + (r.finished_at - r.started_at), 'pages', 1, 'requests', 1,
           'records', ${op === "delete" ? 61 : 1}, 'unchanged', ${op === "delete" ? 61 : 0}, 'inserted', ${op === "insert" ? 1 : 0}, 'updated', ${op === "update" ? 1 : 0}, 'deleted', ${op === "delete" ? 1 : 0}, 'quarantined', 0))).*
    from tributary.runs r where r.id = ${lane === "records" ? "fetched.id" : "scanned.id"} returning * into made;`

const newEvent = (type: string) => `
    insert into tributary.inbox (company, event_id, event_type, resource, record_id, record_modified_at, occurred_at, sent_at, received_at, body, state, attempts, next_attempt_at, resolved_at, run_id, resolution)
    select company, event_id || '_' || made.id, '${type}', resource, record_id, record_modified_at, made.started_at, made.started_at, made.started_at, body, state, attempts, made.started_at, made.finished_at, made.id, resolution
      from tributary.inbox where id = event.id;`

/** A customer that `present` created: created 30 hours ago, changed, deleted, and created again. */
const demonstration = `
  select * into event from tributary.inbox i where company = 'north' and event_type = 'customers.created'
     and record_id in (select id::text from erp.customers where _company_id = 1 and name like 'Harbour%');
  select * into fetched from tributary.runs where id = event.run_id;
  select r.* into scanned from tributary.runs r where ${isInserted} and company_id = 1 and resource = 'customers' and status = 'done' and pages = 1 order by id desc limit 1;
  customer := event.record_id::bigint;
  update tributary.runs set inserted = inserted - 1, records = records - 1 where id = fetched.id;
  ${newRun(30, "fetch", "records", "insert")}
  update tributary.inbox set occurred_at = made.started_at, sent_at = made.started_at, received_at = made.started_at, resolved_at = made.finished_at, run_id = made.id where id = event.id;
  update erp.customers set _run_id = made.id, _observed_at = made.started_at where _company_id = 1 and id = customer;
  update tributary.change_batches set began = made.started_at, landed_at = made.finished_at - interval '10 milliseconds' where company_id = 1 and resource = 'customers' and ids = array[customer];
  ${versions
    .map(
      ([hours, kind, lane, op, set]) => `
  ${newRun(hours, kind, lane, op)}
  ${lane === "records" ? newEvent("customers.updated") : ""}
  insert into erp_history.customers__superseded select c.*, made.started_at from erp.customers c where _company_id = 1 and id = customer;
  update erp.customers set ${set}, _version = _version + 1, _op = '${op}', _run_id = made.id, _observed_at = made.started_at, _origin = '${lane === "records" ? "webhook" : "scan"}',
         _source = 'GET /customers${lane === "records" ? "/' || customer || '" : "?limit=250&cancel=any"} [request req_' || lpad(to_hex(made.id), 12, '0') || ']'
   where _company_id = 1 and id = customer;
  insert into tributary.change_batches (company_id, resource, history, ids, versions, changes, began, landed_at)
  select 1, 'customers', 'erp_history.customers', array[customer], array[_version], 1, made.started_at, made.finished_at - interval '10 milliseconds' from erp.customers where _company_id = 1 and id = customer;`
    )
    .join("")}`

/** The feed and the inbox in the order of their times. */
const order = `
  perform from tributary.change_feed for update;
  update tributary.change_batches set last_position = null;
  update tributary.change_batches b set last_position = o.until, token = coalesce(token, (random() * 2147483647)::int)
    from (select id, sum(changes) over (order by landed_at, id) as until from tributary.change_batches) o where o.id = b.id;
  update tributary.change_feed set last_position = (select max(last_position) from tributary.change_batches);
  create temporary table events as select * from tributary.inbox;
  delete from tributary.inbox;
  update events e set id = o.place from (select id, row_number() over (order by received_at, id) as place from events) o where o.id = e.id;
  insert into tributary.inbox overriding system value select * from events;
  drop table events;`

/** In one transaction, so that a running `serve` sees all or nothing. */
const changeStatement = `do $$ declare
  s record; current text; col text; names jsonb := '${JSON.stringify(columns)}';
  event record; made record; fetched record; scanned record; customer bigint;
begin ${changes} ${demonstration} ${order} end $$`

/** The count of failures of each failing resource is that of its runs. */
const failureStatement = `
  update tributary.tasks t set failures = f.n
    from (select n.company, r.resource, count(*) as n from tributary.runs r join tributary.companies n using (company_id)
           where r.lane = 'live' and r.status in ('failed', 'abandoned') and r.id > coalesce((select max(d.id) from tributary.runs d where d.company_id = r.company_id
                   and d.resource = r.resource and d.lane = 'live' and d.status in ('done', 'quarantined')), 0) group by 1, 2) f
   where t.company = f.company and t.resource = f.resource and t.kind = 'sync' and t.failures > 0`

/** Writes the changes. The source has the last version of the demonstration record, so that a scan finds no difference. */
export const writeChanges = async ({ reference, query }: Pick<Operator, "reference" | "query">): Promise<void> => {
  const find = async (name: string) =>
    (await reference.lines("/state?company=1&resource=customers"))
      .map((line) => JSON.parse(line) as { readonly name: string; readonly lastchangedate: string })
      .find((record) => record.name === name)!
  const name = "<b>Back</b> again"
  await reference.control("POST", "/records", {
    company: 1,
    resource: "customers",
    records: [{ ...(await find("Harbour & Sons")), name, cancel: true, creditlimit: "123456789012.3400" }]
  })
  const { lastchangedate } = await find(name)
  await query(changeStatement.replace("%name%", name).replace("%changed%", lastchangedate))
  await query(failureStatement)
}
