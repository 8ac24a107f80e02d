/**
 * Deferral of the polls of resources that events prove to be fresh (`tributary.event_proofs`).
 *
 * Promise: a poll is deferred only while events prove the resource fresh within its target, and at most for the configured
 * time after the last poll. Within seconds after a proof ended, the poll is due as if it had never been deferred. One
 * statement every 15 s does both for all companies, and reads only polls that are about to be due and what ended a proof.
 * If no process runs it, polls that are not deferred run by their schedule.
 */
import { firstPendingSql } from "../inbox/InboxStore.ts"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

/** The time between two polls of a proven resource, without configuration. */
export const provenPollIntervalDefault = Duration.hours(6)

const updateEvery = Duration.seconds(15)
/** An event that is pending for so long is late. */
const lateEvent = "interval '10 minutes'"

/** How long a withdrawn resource is looked for: longer than no process may update the deferrals. */
const withdrawnFor = "interval '1 hour'"

/** SQL: the assignments that end a deferral. */
const endsDeferral =
  "next_run_at = least(t.next_run_at, t.deferred_from), deferred_from = null, updated_at = tributary.now()"

/** SQL: the share of the interval at which a resource is polled, so that the polls of all resources are spread over it. */
const phase = "(hashtextextended(t.company || ' ' || t.resource, 0) & 2147483647) / 2147483648.0"

export const updateStatement = Statement.make({
  name: "update the deferral of polls",
  params: ["float8"],
  columns: { deferred: "int4", ended: "int4" },
  text: `with recursive clock as materialized (select tributary.now() as now),
     ${firstPendingSql("oldest")},
     unproven as (
       select company, resource from tributary.delivery_gaps where closed_at is null
       union select company, resource from tributary.inbox where state = 'dead_letter'
       union select company, resource from oldest, clock where next_attempt_at < now - ${lateEvent}
       union select company, resource from tributary.inbox, clock
              where state = 'pending' and last_error is not null and received_at < now - ${lateEvent}
       union select c.company, q.resource from tributary.quarantine q join tributary.companies c using (company_id)
              where q.resolved_at is null
       union select c.company, k.resource from tributary.checkpoints k join tributary.companies c using (company_id)
              where k.lane = 'live' and k.full_scan_reason is not null),
     unannounced as (
       select e.company, case when e.expires_at <= now or e.checked_at > now then '{}' else e.resources end as resources
         from tributary.event_checks e, clock
        where e.expires_at <= now or e.checked_at > now or e.withdrawn_at > now - ${withdrawnFor}),
     ending as (
       select t.company, t.resource from tributary.tasks t join unproven u on u.company = t.company and u.resource = t.resource
        where t.kind = 'sync' and t.deferred_from is not null
       union
       select u.company, t.resource from unannounced u cross join lateral (
         select resource from tributary.tasks
          where company = u.company and kind = 'sync' and deferred_from is not null and resource <> all (u.resources)
         offset 0) t),
     ended as (
       update tributary.tasks t set ${endsDeferral} from ending e
        where t.company = e.company and t.resource = e.resource and t.kind = 'sync' and t.deferred_from is not null
       returning 1),
     due as materialized (
       select t.company, t.resource, t.freshness_target_ms * interval '1 millisecond' as target
         from clock, tributary.tasks t join tributary.event_checks e on e.company = t.company and t.resource = any (e.resources)
        where t.next_run_at <= clock.now + interval '20 seconds' and t.paused_at is null
          and t.kind = 'sync' and t.deferred_from is null and t.requested_at is null
          and t.status = 'done' and t.schedule like 'every %'
          and not exists (select from unproven u where u.company = t.company and u.resource = t.resource)
        order by t.next_run_at limit 20000),
     proven as (
       select d.company, d.resource from due d cross join lateral (
         select p.age_max, p.proven_at from tributary.event_proofs p
          where p.company = d.company and p.resource = d.resource offset 0) p
        where p.age_max <= d.target and p.proven_at >= (select now from clock) - d.target),
     later as (
       select t.company, t.resource, to_timestamp(
                $1::float8 * (floor(extract(epoch from t.started_at) / $1::float8 - ${phase}) + 1 + ${phase})) as at
         from tributary.tasks t join proven p on p.company = t.company and p.resource = t.resource where t.kind = 'sync'),
     deferred as (
       update tributary.tasks t set next_run_at = l.at, deferred_from = t.next_run_at, updated_at = tributary.now()
         from later l
        where t.company = l.company and t.resource = l.resource and t.kind = 'sync' and l.at > t.next_run_at
          and t.deferred_from is null and t.requested_at is null
       returning 1)
     select (select count(*) from deferred)::int as deferred, (select count(*) from ended)::int as ended`
})

/** Defers the polls that are about to be due and need not be made, and ends deferrals whose proof has ended. */
export const update = (interval: Duration.Duration) =>
  Effect.map(Statement.run(updateStatement, [Duration.toSeconds(interval)]), ([row]) => row!)

export const endStatement = Statement.make({
  name: "end deferrals of polls",
  columns: { company: "text" },
  text: `update tributary.tasks t set ${endsDeferral}
          where (t.company, t.resource, t.kind) in (
            select company, resource, kind from tributary.tasks where deferred_from is not null limit 5000)
         returning t.company`
})

/** Ends all deferrals, some at a time. */
const endAll: Sql.Query<void> = Effect.gen(function* () {
  while ((yield* Statement.run(endStatement)).length > 0) yield* Effect.yieldNow
})

/** Updates the deferral of polls until it is interrupted. An interval of zero ends all deferrals. */
export const updateForever = (interval: Duration.Duration): Sql.Query<never> =>
  Duration.isZero(interval)
    ? Effect.andThen(endAll, Effect.never)
    : Effect.forever(Effect.andThen(update(interval), Effect.sleep(updateEvery)))
