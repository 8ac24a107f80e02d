-- Serving: what runs by the clock or because somebody asked, and what the operator's page shows beside the ledger.
-- Companies stand here under the names that the configuration gives them.

create table tributary.companies (
  company text primary key,
  company_id bigint not null,
  seen_at timestamptz not null default tributary.now()
);
comment on table tributary.companies is 'Which number the source gives a configured company, as it was last told.';

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

create table tributary.row_counts (
  company_id bigint not null,
  resource text not null,
  rows bigint not null,
  deleted bigint not null,
  is_exact boolean not null default true,
  run_id bigint not null default 0,
  counted_at timestamptz not null default tributary.now(),
  primary key (company_id, resource)
);
comment on table tributary.row_counts is 'How many rows a resource has, counted now and then.';
comment on column tributary.row_counts.deleted is 'Tombstones, which rows does not include.';
comment on column tributary.row_counts.is_exact is 'False where counting took too long and Postgres'' own estimate stands in.';
comment on column tributary.row_counts.run_id is 'The last run that had ended when it was counted.';

create table tributary.budget_samples (
  fingerprint text not null,
  at timestamptz not null,
  used integer not null,
  allowed integer,
  configured integer,
  refusals bigint not null,
  held boolean not null,
  primary key (fingerprint, at)
);
comment on table tributary.budget_samples is 'How much of each token''s budget was in use, every fifteen seconds while tributary serve runs; kept for a day.';
comment on column tributary.budget_samples.used is 'Requests of the last minute.';
comment on column tributary.budget_samples.allowed is 'What could be used at most at that time: less than configured after a 429.';
comment on column tributary.budget_samples.refusals is 'How often the source had answered 429 by then.';
comment on column tributary.budget_samples.held is 'Whether the source had asked to wait (Retry-After).';

create index runs_by_status on tributary.runs (status, id desc);
create index runs_ended on tributary.runs (ended_at) where ended_at is not null;
create index quarantine_resolved on tributary.quarantine (resolved_at) where resolved_at is not null;

-- What looks up the newest runs of a lane, the last one that read a resource well, and what is old enough to go.
create index runs_by_lane on tributary.runs (company_id, resource, lane, id desc);
create index runs_read_well on tributary.runs (company_id, resource, id desc)
  where lane = 'live' and kind in ('full', 'incremental') and status in ('done', 'quarantined');
create index quarantine_open_by_run on tributary.quarantine (run_id) where resolved_at is null;
create index pushes_finished on tributary.pushes (finished_at) where finished_at is not null;
create index outbox_free_settled on tributary.outbox (settled_at) where push_id is null and state = 'done';
create index outbox_refused_by_call on tributary.outbox (call_id) where state = 'refused';
create index push_calls_settled on tributary.push_calls (settled_at) where settled_at is not null;

-- What a person leafs through: the newest in quarantine, of a resource or of all, and what is known of one record.
create index quarantine_by_resource on tributary.quarantine (company_id, resource, id);
create index quarantine_open_newest on tributary.quarantine (id) where resolved_at is null;
create index quarantine_of_record on tributary.quarantine (resource, record_id);
