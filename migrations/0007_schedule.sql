-- What tributary serve runs by the clock or on request.

create table tributary.schedule (
  company text not null,
  resource text not null,
  kind text not null check (kind in ('sync', 'backfill')),
  schedule text,
  promise_ms bigint,
  next_at timestamptz,
  paused_at timestamptz,
  paused_by text,
  asked_at timestamptz,
  asked_by text,
  asked_full boolean not null default false,
  since text,
  until text,
  owner text,
  lease_until timestamptz,
  fence bigint not null default 0,
  began_at timestamptz,
  ended_at timestamptz,
  status text check (status in ('done', 'quarantined', 'failed', 'skipped', 'stopped')),
  run_id bigint,
  failures integer not null default 0,
  error text,
  remedy text,
  updated_at timestamptz not null default tributary.now(),
  primary key (company, resource, kind)
);
comment on table tributary.schedule is 'What tributary serve runs: each resource of each company by its schedule, and backfills that were asked for. Any serve process may take one whose lease is free.';
comment on column tributary.schedule.schedule is 'As the configuration says it, in words; null when it runs only if asked.';
comment on column tributary.schedule.promise_ms is 'How old the resource may be at most.';
comment on column tributary.schedule.next_at is 'When it runs next; null when nothing says so.';
comment on column tributary.schedule.paused_at is 'Since when it is not run by its schedule.';
comment on column tributary.schedule.asked_at is 'When somebody asked for it to run now; null once a run began after that.';
comment on column tributary.schedule.since is 'What a backfill reads, RFC 3339 in UTC; null from the beginning. Until likewise.';
comment on column tributary.schedule.owner is 'The process that runs it, for as long as lease_until lies ahead.';
comment on column tributary.schedule.fence is 'Grows each time it is taken; who holds a smaller number no longer says how it ended.';
comment on column tributary.schedule.began_at is 'When it last began; ended_at, status, run_id, error and remedy tell how that ended.';
comment on column tributary.schedule.status is 'done; quarantined (some records could not be landed); failed; skipped (the token may not read it); stopped (the process was told to end)';
comment on column tributary.schedule.failures is 'Failures in a row.';
