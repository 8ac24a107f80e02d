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
