/**
 * What needs a person beside the resources: dead letters, delivery gaps, rejected rows, subscriptions, receivers and pauses
 * of the source, by company; endpoints of the whole warehouse.
 *
 * Promise: each statement reads only open problems, by an index, whatever the number of events, rows and runs.
 */
import * as Statement from "../postgres/Statement.ts"
import type { Cause } from "../reconcile/DeliveryGaps.ts"
import { readToEnd } from "../warehouse/RunConditions.ts"
import type { ResourceState, ShownCompany } from "./Resources.ts"

export const attentionStatement = Statement.make({
  name: "read what needs attention",
  params: ["jsonb"],
  columns: {
    company: "text",
    /** Dead letters of the inbox; the newest one, its error, and when the oldest one was received. */
    dead: "float8",
    ...Statement.columns("text?", "deadEvent", "deadReason"),
    deadSince: "timestamptz?",
    /**
     * Delivery gaps that have not ended, the cause of the newest one, and when the first one began or was found. One that has
     * ended needs no person: the next scan that reads it to the end closes it.
     */
    gaps: "float8",
    /** Open delivery gaps, also those that have ended. */
    openGaps: "float8",
    gapCause: Statement.as<Cause | null>("text?"),
    gapResource: "text?",
    gapSince: "timestamptz?",
    /** Rejected rows of the outbox; the newest one, its reason, and when the oldest one was rejected. */
    rejected: "float8",
    rejectedRow: "int8?",
    rejectedReason: "text?",
    rejectedSince: "timestamptz?",
    /** When the oldest open entry of its quarantine was first seen. */
    quarantinedSince: "timestamptz?",
    /** Subscriptions that do not deliver, and why the last check of one failed. */
    down: "float8",
    downReason: "text?",
    hasSubscription: "bool",
    /** Live processes that receive its events. */
    receivers: "float8",
    /** Until when the source has paused its requests; null while it has not. */
    pausedUntil: "timestamptz?"
  },
  text: `select c.name as company,
         d.dead, i.event_id as "deadEvent", i.last_error as "deadReason", di.received_at as "deadSince",
         g.gaps, g.open_gaps as "openGaps", n.cause as "gapCause", n.resource as "gapResource", g.since as "gapSince",
         r.rejected, o.id as "rejectedRow", coalesce(o.reason, o.code) as "rejectedReason", ro.resolved_at as "rejectedSince",
         q.since as "quarantinedSince",
         s.down, s.reason as "downReason", s.has as "hasSubscription",
         (select count(*) from tributary.processes_alive p where c.name = any(p.companies))::float8 as receivers,
         (select b.retry_after_at from tributary.budgets b
           where b.fingerprint = c.fingerprint and b.retry_after_at > tributary.now()) as "pausedUntil"
    from jsonb_to_recordset($1::jsonb) as c(name text, fingerprint text)
    cross join lateral (
      select count(*)::float8 as dead, max(id) as newest, min(id) as oldest
        from tributary.inbox where company = c.name and state = 'dead_letter') d
    left join tributary.inbox i on i.id = d.newest
    left join tributary.inbox di on di.id = d.oldest
    cross join lateral (
      select count(*) filter (where ended_at is null)::float8 as gaps, count(*)::float8 as open_gaps,
             max(id) filter (where ended_at is null) as newest,
             min(coalesce(began_at, detected_at)) filter (where ended_at is null) as since
        from tributary.delivery_gaps where company = c.name and closed_at is null) g
    left join tributary.delivery_gaps n on n.id = g.newest
    cross join lateral (
      select count(*)::float8 as rejected, max(id) as newest, min(id) as oldest
        from tributary.outbox where company = c.name and state = 'rejected') r
    left join tributary.outbox o on o.id = r.newest
    left join tributary.outbox ro on ro.id = r.oldest
    cross join lateral (
      select min(q.first_seen_at) as since from tributary.companies k join tributary.quarantine q using (company_id)
       where k.company = c.name and q.resolved_at is null) q
    cross join lateral (
      select count(*) filter (where state in ('paused', 'disabled'))::float8 as down,
             max(last_error) filter (where state in ('paused', 'disabled')) as reason, count(*) > 0 as has
        from tributary.subscriptions where company = c.name and state <> 'deleted') s`
})
export type Attention = Statement.RowOf<typeof attentionStatement>

/** One row for each of these companies. */
export const read = (companies: ReadonlyArray<Pick<ShownCompany, "name" | "fingerprint">>) =>
  Statement.run(attentionStatement, [JSON.stringify(companies.map(({ name, fingerprint }) => ({ name, fingerprint })))])

export const endpointsStatement = Statement.make({
  name: "find endpoints that need attention",
  columns: { name: "text", isDead: "bool", reason: "text?", since: "timestamptz?", lost: "float8" },
  text: `select e.name, e.state = 'dead' as "isDead", e.reason, case when e.state = 'dead' then e.state_since else r.since end as since,
         r.lost from tributary.change_endpoints e
    cross join lateral (
      select count(*)::float8 as lost, min(failed_at) as since
        from tributary.change_retries where endpoint = e.name and state = 'dead') r
   where e.state = 'dead' or r.lost > 0 order by e.state = 'dead' desc, e.name`
})
export type TroubledEndpoint = Statement.RowOf<typeof endpointsStatement>

/** Endpoints that are dead or have dead letters. */
export const readEndpoints = Statement.run(endpointsStatement)

/** The newest runs of a resource among which a good one of any kind is looked for. */
const recentMax = 500

export const failingSinceStatement = Statement.make({
  name: "find when resources began to fail",
  params: ["jsonb"],
  columns: { company: "text", resource: "text", since: "timestamptz?" },
  text: `select k.company, k.resource, f.finished_at as since
    from jsonb_to_recordset($1::jsonb) as k(company text, id bigint, resource text)
    cross join lateral (
      select greatest(
        (select max(n.id) from (
           select id, status from tributary.runs where company_id = k.id and resource = k.resource and lane = 'live'
            order by id desc limit ${recentMax}) n where n.status in ('done', 'quarantined')),
        (select max(r.id) from tributary.runs r where r.company_id = k.id and r.resource = k.resource and ${readToEnd("r")}),
        0) as id) g
    cross join lateral (
      select finished_at from tributary.runs
       where company_id = k.id and resource = k.resource and lane = 'live' and status = 'failed' and id > g.id
       order by id limit 1) f`
})

/**
 * When the first failed run after the last good one of each of these resources ended. Runs that do not read to the end, such
 * as those of children, count as good among the newest {@link recentMax} runs.
 */
export const readFailingSince = (states: ReadonlyArray<Pick<ResourceState, "company" | "companyId" | "resource">>) =>
  Statement.run(failingSinceStatement, [
    JSON.stringify(
      states.flatMap(({ company, companyId, resource }) =>
        companyId === null ? [] : [{ company, id: companyId.toString(), resource }]
      )
    )
  ])

export const lastTroubleStatement = Statement.make({
  name: "find the last trouble of an hour",
  params: ["text[]", "timestamptz"],
  columns: { at: "timestamptz?", isLate: "bool" },
  text: `select max(at) as at, coalesce(bool_or(lateness_max > 1), false) as "isLate" from tributary.activity
   where resolution = 'minute' and at >= $2::timestamptz and at < $2::timestamptz + interval '1 hour'
     and company in (select unnest($1::text[])) and (lateness_max > 1 or failed_runs > 0 or gaps > 0)`
})

/**
 * The last minute of this hour in which a run of these companies failed, a resource was late or a gap was open; and whether
 * a resource was late in one of them. Of more than 300 resources, minutes do not have what was late.
 */
export const readLastTrouble = (names: ReadonlyArray<string>, hour: Date) =>
  Statement.run(lastTroubleStatement, [names, hour])
