-- Event-proven freshness: resources whose every change is announced by events that provably arrived.

alter table tributary.subscriptions add column delayed_at timestamptz;
comment on column tributary.subscriptions.delayed_at is 'When a check last saw a failed, repeated or slow delivery. Events behind it may be late.';

create table tributary.event_checks (
  company text primary key,
  checked_at timestamptz not null,
  delay interval not null,
  age_max interval not null,
  expires_at timestamptz not null,
  resources text[] not null,
  withdrawn_at timestamptz
);
comment on table tributary.event_checks is 'The last check of a company''s subscriptions that found every delivery on time.';
comment on column tributary.event_checks.checked_at is 'The time from before that check. Every event that fired before checked_at - delay had been delivered.';
comment on column tributary.event_checks.delay is 'The longest time from a change to the delivery of its event.';
comment on column tributary.event_checks.age_max is 'The highest age of the proof while checks are made on time.';
comment on column tributary.event_checks.expires_at is 'When the proof ends unless another check renews it.';
comment on column tributary.event_checks.resources is 'The resources whose every change is announced by events of healthy subscriptions. A later check withdraws those for which that no longer holds.';
comment on column tributary.event_checks.withdrawn_at is 'When a check last withdrew a resource, so that the deferral of its poll has to end; null before.';

alter table tributary.tasks add column deferred_from timestamptz;
comment on column tributary.tasks.deferred_from is 'When it would run by its schedule, while events prove that the resource is fresh and its poll is deferred to next_run_at; null otherwise.';
-- short: no row is in it at first
create index tasks_deferred on tributary.tasks (company) where deferred_from is not null;
-- short: a checkpoint for each company and resource
create index checkpoints_unproven on tributary.checkpoints (company_id, resource) where lane = 'live' and full_scan_reason is not null;

create view tributary.event_proofs as
select c.company, n.company_id, k.resource,
       least(c.checked_at - c.delay, pending.fired_at, dead.fired_at) as proven_at, c.age_max
  from tributary.event_checks c
  join tributary.companies n on n.company = c.company
  join tributary.checkpoints k on k.company_id = n.company_id and k.lane = 'live' and k.resource = any (c.resources)
  cross join lateral (
    select min(least(i.received_at - c.delay, i.occurred_at)) as fired_at from tributary.inbox i
     where i.company = c.company and i.resource = k.resource and i.state = 'pending') pending
  cross join lateral (
    select min(least(i.received_at - c.delay, i.occurred_at)) as fired_at from tributary.inbox i
     where i.company = c.company and i.resource = k.resource and i.state = 'dead_letter') dead
 where c.expires_at > (select tributary.now()) and c.checked_at <= (select tributary.now())
   and k.full_scan_reason is null and (k.cursor is not null or k.full_scan_at is not null)
   and not exists (select from tributary.delivery_gaps g
                    where g.company = c.company and g.resource = k.resource and g.closed_at is null)
   and not exists (select from tributary.quarantine q
                    where q.company_id = k.company_id and q.resource = k.resource and q.resolved_at is null)
   and not exists (select from tributary.tasks t
                    where t.company = c.company and t.resource = k.resource and t.kind = 'sync' and t.status in ('failed', 'skipped'));
comment on view tributary.event_proofs is 'Resources that events prove to be fresh: every change before proven_at is in the warehouse. The subscription is healthy, its delivery log was read, and no delivery gap, failed event or quarantine entry of the resource is open.';
comment on column tributary.event_proofs.proven_at is 'The last check less the longest delay of a delivery; earlier where an event is not processed yet.';
comment on column tributary.event_proofs.age_max is 'The highest age of the proof while checks are made on time.';

create or replace view tributary.freshness as
select r.company, r.company_id, r.resource, run.id as run_id, fresh.at as fresh_at,
       tributary.now() - fresh.at as age, t.freshness_target_ms * interval '1 millisecond' as target,
       t.status is distinct from 'skipped'
         and coalesce(tributary.now() - fresh.at > t.freshness_target_ms * interval '1 millisecond',
                      t.freshness_target_ms is not null) as is_late,
       proof.proven_at
  from (select t.company, c.company_id, t.resource
          from tributary.tasks t left join tributary.companies c using (company) where t.kind = 'sync'
         union
        select c.company, k.company_id, k.resource
          from tributary.checkpoints k left join tributary.companies c using (company_id) where k.lane = 'live') r
  left join tributary.tasks t on t.company = r.company and t.resource = r.resource and t.kind = 'sync'
  left join lateral (
    select u.id, u.started_at from tributary.runs u
     where u.company_id = r.company_id and u.resource = r.resource
       and u.lane = 'live' and u.kind in ('full', 'incremental') and u.status = 'done'
     order by u.id desc limit 1) run on true
  left join tributary.event_proofs proof on proof.company = r.company and proof.resource = r.resource
  cross join lateral (select greatest(run.started_at, proof.proven_at) as at) fresh;
comment on view tributary.freshness is 'The freshness of each resource of each company. A resource is as fresh as the start of the last run that read every change and landed every record, or as the proof by events (tributary.event_proofs), whichever is later.';
comment on column tributary.freshness.run_id is 'That run; null where there is none.';
comment on column tributary.freshness.proven_at is 'Events prove that every change before this is in the warehouse; null while they prove nothing.';
