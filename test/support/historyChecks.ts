/** What must agree in the history of `history.ts`: each check returns the contradictions, which a page would show. */
import type { Operator } from "./operator.ts"

export interface HistoryCheck {
  readonly name: string
  readonly contradictions: (operator: Operator) => Promise<ReadonlyArray<object>>
}

const bySql =
  (text: string): HistoryCheck["contradictions"] =>
  ({ query }) =>
    query(`${text} limit 10`)

/** A query of every table of records that has these columns, and of its earlier versions. `%s` is the table. */
const ofTables =
  (columns: ReadonlyArray<string>, text: string): HistoryCheck["contradictions"] =>
  async ({ query }) => {
    const tables = await query<{ resource: string }>(
      `select table_name as resource from information_schema.columns join information_schema.tables using (table_schema, table_name)
        where table_schema = 'erp' and table_type = 'BASE TABLE' and column_name = any ($1) group by 1 having count(*) = cardinality($1)`,
      [columns]
    )
    const versions = tables.flatMap(({ resource }) => [`erp.${resource}`, `erp_history.${resource}__superseded`])
    return query(`${versions.map((one) => `(${text.replaceAll("%s", one)})`).join(" union all ")} limit 10`)
  }

/** A run's begin is measured (`WarehouseClock.ts`), and earlier than its time by the delay of an answer. */
const measured = "interval '1 second'"

const runs = "tributary.runs r join tributary.companies n using (company_id)"

export const historyChecks: ReadonlyArray<HistoryCheck> = [
  {
    name: "no version was changed at the source after it had landed",
    contradictions: ofTables(
      ["lastchangedate", "_observed_at"],
      "select '%s' as of, id, _version, lastchangedate, _observed_at from %s where lastchangedate > _observed_at + interval '1 second'"
    )
  },
  {
    name: "no record is older at the source than the one that it belongs to",
    contradictions: bySql(
      `select * from (
          select 'invoice' as of, i.id, i.entrydate, o.entrydate as of_order, i.invoicedate as day, o.orderdate as order_day from erp.invoices i join erp.orders o on o._company_id = i._company_id and o.id = i.orderid
          union all select 'shipment', s.id, s.entrydate, o.entrydate, s.shipdate, o.orderdate from erp.shipments s join erp.orders o on o._company_id = s._company_id and o.id = s.orderid
          union all select 'payment', p.id, p.entrydate, i.entrydate, p.datereceived, i.invoicedate from erp.payments p join erp.invoices i on i._company_id = p._company_id and i.id = p.invoiceid) x
        where entrydate < of_order - interval '1 minute' or day < order_day`
    )
  },
  {
    name: "each version was landed by a run of its time",
    contradictions: ofTables(
      ["_run_id", "_observed_at"],
      `select '%s' as of, v.id, v._version, v._run_id, v._observed_at, r.started_at, r.finished_at
         from %s v left join tributary.runs r on r.id = v._run_id
        where r.id is null or v._observed_at not between r.started_at and coalesce(r.finished_at, tributary.now())`
    )
  },
  {
    name: "each last full scan has its run, and no full scan is later",
    contradictions: bySql(
      `select c.company_id, c.resource, c.full_scan_at, r.started_at, r.finished_at from tributary.checkpoints c
         left join lateral (select started_at, finished_at from tributary.runs r where r.company_id = c.company_id and r.resource = c.resource and r.lane = c.lane
                               and kind = 'full' and status in ('done', 'quarantined') order by started_at desc limit 1) r on true
        where c.lane = 'live' and (c.full_scan_at is not null) is distinct from (r.started_at is not null)
           or c.full_scan_at not between r.started_at and r.finished_at`
    )
  },
  {
    name: "no run has a cursor of the time after it",
    contradictions: bySql(
      "select id, resource, cursor_to, finished_at from tributary.runs where cursor_to::timestamptz > finished_at or cursor_from::timestamptz > started_at"
    )
  },
  {
    name: "each cursor is that of the newest run",
    contradictions: bySql(
      `select c.company_id, c.resource, c.cursor, r.id, r.cursor_to from tributary.checkpoints c
         join lateral (select id, cursor_to from tributary.runs r where r.company_id = c.company_id and r.resource = c.resource and r.lane = 'live'
                          and status in ('done', 'quarantined') and cursor_to is not null order by started_at desc limit 1) r on true
        where c.lane = 'live' and c.cursor is distinct from r.cursor_to`
    )
  },
  {
    // A run counts a record that is created again as updated.
    name: "the rows are those that the runs inserted and did not delete",
    contradictions: bySql(
      `select k.company_id, k.resource, k.rows, r.rows as of_runs from tributary.row_counts k
         join (select company_id, resource, sum(inserted) - sum(deleted) as rows from tributary.runs group by 1, 2) r using (company_id, resource)
        cross join lateral (select count(*) as again from erp.customers c where c._company_id = k.company_id and k.resource = 'customers' and _op = 'insert' and _version > 1) c
        where k.rows <> r.rows + c.again`
    )
  },
  {
    name: "a full scan read the rows that there were",
    contradictions: bySql(
      `select f.id, f.company_id, f.resource, f.records, f.deleted, e.rows from tributary.runs f
        cross join lateral (select sum(inserted) - sum(deleted) as rows from tributary.runs r
                             where r.company_id = f.company_id and r.resource = f.resource and r.started_at <= f.started_at) e
        where f.kind = 'full' and f.lane = 'live' and f.status in ('done', 'quarantined') and f.records <> e.rows`
    )
  },
  {
    name: "a resource that was read has a cursor or no need of one, a full scan and a count",
    contradictions: bySql(
      `select r.company_id, r.resource, c.cursor, c.full_scan_at, k.rows
         from (select distinct company_id, resource from tributary.runs where lane = 'live' and status in ('done', 'quarantined')) r
         left join tributary.checkpoints c on c.company_id = r.company_id and c.resource = r.resource and c.lane = 'live'
         left join tributary.row_counts k on k.company_id = r.company_id and k.resource = r.resource
        where c.full_scan_at is null or k.rows is null or (c.cursor is null and exists (select from tributary.runs i where i.company_id = r.company_id
                and i.resource = r.resource and i.kind = 'incremental'))`
    )
  },
  {
    name: "the newest run of a resource is that of its task, which has the same failures",
    contradictions: bySql(
      `select t.company, t.resource, t.run_id, t.failures, r.id, r.status, r.started_at, t.started_at as task_started_at from tributary.tasks t
         join lateral (select r.* from ${runs} where n.company = t.company and r.resource = t.resource and r.lane = 'live' order by r.started_at desc limit 1) r on true
        where t.kind = 'sync' and t.process_id is null and (t.run_id <> r.id or (t.failures > 0) <> (r.status in ('failed', 'abandoned')))`
    )
  },
  {
    name: "a scheduled run is neither due for long nor later than its schedule",
    contradictions: bySql(
      `select company, resource, schedule, started_at, next_run_at from tributary.tasks
        where kind = 'sync' and paused_at is null and (next_run_at < tributary.now() - interval '1 minute' or next_run_at > tributary.now() + case when resource = 'items' then interval '25 hours' else interval '91 minutes' end)`
    )
  },
  {
    name: "each run reads from the overlap before the cursor of the run before it",
    contradictions: bySql(
      `select * from (select id, company_id, resource, cursor_from, quiet_runs,
                              max(cursor_to) over (partition by company_id, resource order by started_at rows between unbounded preceding and 1 preceding) as before
                        from tributary.runs where lane = 'live') r
        where date_trunc('second', cursor_from::timestamptz) <> date_trunc('second', before::timestamptz) - interval '5 minutes' and quiet_runs <= 1`
    )
  },
  {
    name: "runs have numbers in the order of their times",
    contradictions: bySql(
      `select * from (select id, company_id, resource, lane, started_at, lag(started_at) over (partition by company_id, resource, lane order by id) as before from tributary.runs) r
        where started_at < before - ${measured}`
    )
  },
  {
    name: "no two runs of a resource and lane were at the same time",
    contradictions: bySql(
      `select * from (select id, company_id, resource, lane, coalesce(quiet_since, started_at) as began, lag(finished_at) over (partition by company_id, resource, lane order by started_at) as before from tributary.runs) r
        where began < before - ${measured}`
    )
  },
  {
    name: "an event was made, sent, received and processed in this order, by a run of that time",
    contradictions: bySql(
      `select i.id, i.event_id, occurred_at, sent_at, received_at, resolved_at, r.started_at, r.finished_at from tributary.inbox i left join tributary.runs r on r.id = i.run_id
        where occurred_at > sent_at + interval '1 second' or sent_at > received_at + interval '1 second' or received_at > resolved_at
           or received_at - occurred_at > interval '2 minutes' or r.finished_at < received_at or r.started_at > resolved_at`
    )
  },
  {
    name: "the delivery log of the source has the events at the times of the inbox",
    contradictions: async ({ reference, query }) => {
      const [answer = ""] = await reference.lines("/deliveries")
      const { deliveries } = JSON.parse(answer) as {
        readonly deliveries: ReadonlyArray<{ readonly eventid: string; readonly at: string }>
      }
      const stored = await query<{ event_id: string; received_at: Date }>(
        "select event_id, received_at from tributary.inbox where company = 'north'"
      )
      return stored.filter(
        ({ event_id, received_at }) =>
          !deliveries.some(
            ({ eventid, at }) => eventid === event_id && Math.abs(Date.parse(at) - received_at.getTime()) < 60_000
          )
      )
    }
  },
  {
    name: "a delivery gap was found after it began, before the events that it lacked, and closed by a run after it",
    contradictions: bySql(
      `select g.company, g.resource, g.cause, g.began_at, g.ended_at, g.detected_at, g.closed_at, g.closed_by from tributary.delivery_gaps g
         left join tributary.runs r on 'run ' || r.id = g.closed_by
        where g.detected_at < g.began_at or g.closed_at < g.ended_at or (g.closed_at is not null and (r.id is null or r.started_at < g.ended_at))
           or exists (select from tributary.inbox i where i.company = g.company and i.resource = g.resource and i.received_at > coalesce(g.began_at, i.received_at)
                         and i.received_at < coalesce(g.ended_at, g.detected_at) - interval '1 second')`
    )
  },
  {
    name: "a push has its requests and rows in its own time",
    contradictions: bySql(
      `select p.id, p.created_at, p.finished_at, o.created_at as row_at, o.resolved_at from tributary.pushes p join tributary.outbox o on o.push_id = p.id
        where o.created_at < p.created_at - interval '1 second' or o.resolved_at > coalesce(p.finished_at, o.resolved_at)`
    )
  },
  {
    name: "nothing is later than the present",
    contradictions: bySql(
      `select * from (select 'run' as of, id::text, coalesce(finished_at, started_at) as at from tributary.runs
          union all select 'event', event_id, coalesce(resolved_at, received_at) from tributary.inbox
          union all select 'cursor', resource, cursor::timestamptz from tributary.checkpoints
          union all select 'change', id::text, landed_at from tributary.change_batches
          union all select 'process', process_id, coalesce(stopped_at, heartbeat_at) from tributary.processes
          union all select 'task', resource, finished_at from tributary.tasks) x where at > tributary.now()`
    )
  }
]
