-- The process that owns a company runs its tasks. Leases of single tasks are gone.
alter table tributary.tasks rename column lease_owner to process_id;
alter table tributary.tasks drop column lease_expires_at, add column abandoned_at timestamptz, add column parent text;
comment on table tributary.tasks is 'The tasks of tributary serve: a sync of each resource of each company by its schedule, and requested backfills. The process that owns the company runs them.';
comment on column tributary.tasks.process_id is 'The process that runs it; null while it does not run.';
comment on column tributary.tasks.abandoned_at is 'When the owner found that a former owner had not finished it; null once it started again.';
comment on column tributary.tasks.parent is 'The resource that is synced before it; null where there is none.';

-- The owner also processes the events.
drop table tributary.inbox_leases;

-- A poll looks for the due tasks among all.
-- short: a task for each company and resource
create index tasks_due on tributary.tasks (next_run_at) where process_id is null and paused_at is null;
-- short: a task for each company and resource
create index tasks_urgent on tributary.tasks (company) where process_id is null and (requested_at is not null or abandoned_at is not null);

alter table tributary.processes add column host text, add column pid integer;
comment on column tributary.processes.host is 'The machine that it runs on, and pid its number there.';
create or replace view tributary.processes_alive as
  select process_id, companies, started_at, heartbeat_at, host, pid from tributary.processes
   where stopped_at is null and heartbeat_at > (select tributary.now() - interval '60 seconds');

create table tributary.bucket_owners (
  bucket integer primary key,
  process_id text not null,
  since timestamptz not null default tributary.now()
);
comment on table tributary.bucket_owners is 'Which process owns which bucket of companies, for people; each process writes it within seconds. The engine''s advisory locks decide.';
comment on column tributary.bucket_owners.since is 'When the owner stored it first.';

-- The tables of effect/cluster, as it would create them. Created here, so that a loader without the right to create can serve.
create table tributary.cluster_runners (
  machine_id serial primary key,
  address varchar(255) not null unique,
  runner text not null,
  healthy boolean not null default true,
  last_heartbeat timestamp not null default now()
);
comment on table tributary.cluster_runners is 'Processes of tributary serve, as effect/cluster stores them; a killed one stays until another one ends in order.';
create table tributary.cluster_locks (
  shard_id varchar(50) primary key,
  address varchar(255) not null,
  acquired_at timestamp not null
);
comment on table tributary.cluster_locks is 'A table of effect/cluster, which stays empty: the buckets are locked by advisory locks.';
