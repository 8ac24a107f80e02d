-- The task queue of tributary serve.

create table tributary.tasks (
  company text not null,
  resource text not null,
  kind text not null check (kind in ('sync', 'backfill')),
  schedule text,
  freshness_target_ms bigint,
  next_run_at timestamptz,
  paused_at timestamptz,
  paused_by text,
  requested_at timestamptz,
  requested_by text,
  full_requested boolean not null default false,
  since text,
  until text,
  lease_owner text,
  lease_expires_at timestamptz,
  fence bigint not null default 0,
  started_at timestamptz,
  finished_at timestamptz,
  status text check (status in ('done', 'quarantined', 'failed', 'skipped', 'interrupted')),
  run_id bigint,
  failures integer not null default 0,
  error text,
  remedy text,
  updated_at timestamptz not null default tributary.now(),
  primary key (company, resource, kind)
);
comment on table tributary.tasks is 'The task queue of tributary serve: a sync of each resource of each company by its schedule, and requested backfills. Any process of serve may claim a task whose lease is free.';
comment on column tributary.tasks.schedule is 'The configured schedule in words; null for a task that runs only on request.';
comment on column tributary.tasks.freshness_target_ms is 'The maximum age of the data.';
comment on column tributary.tasks.next_run_at is 'When it runs next; null when no time is set.';
comment on column tributary.tasks.paused_at is 'When its schedule was paused.';
comment on column tributary.tasks.requested_at is 'When a person requested a run; null once a run started after that.';
comment on column tributary.tasks.since is 'The start of a backfill''s range, RFC 3339 in UTC; null from the beginning. Until likewise.';
comment on column tributary.tasks.lease_owner is 'The process that runs it until lease_expires_at.';
comment on column tributary.tasks.fence is 'Rises with each claim. A process with a smaller fence writes no result.';
comment on column tributary.tasks.started_at is 'The start of the last run; finished_at, status, run_id, error and remedy are its result.';
comment on column tributary.tasks.status is 'done; quarantined (some records could not be landed); failed; skipped (the token may not read it); interrupted (the process was stopped)';
comment on column tributary.tasks.failures is 'Failures in a row.';

create view tributary.freshness as
select r.company, r.company_id, r.resource, run.id as run_id, run.started_at as fresh_at,
       tributary.now() - run.started_at as age, t.freshness_target_ms * interval '1 millisecond' as target,
       t.status is distinct from 'skipped'
         and coalesce(tributary.now() - run.started_at > t.freshness_target_ms * interval '1 millisecond',
                      t.freshness_target_ms is not null) as is_late
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
     order by u.id desc limit 1) run on true;
comment on view tributary.freshness is 'The freshness of each resource of each company. A resource is as fresh as the start of the last run that read every change and landed every record.';
comment on column tributary.freshness.company is 'The configured name; null where no program has stored it.';
comment on column tributary.freshness.company_id is 'The source''s number of the company; null until the source has answered it.';
comment on column tributary.freshness.fresh_at is 'The start of that run; null before the first.';
comment on column tributary.freshness.target is 'The configured maximum age; null without a task.';
comment on column tributary.freshness.is_late is 'Whether the age exceeds the target, or no run made the resource fresh. A resource that the token may not read is not late; a paused one is.';
