-- Serving: the tasks, the processes that run them, how fresh the resources are, what charts show, and access to the pages.

-- Ends with the work queue.
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
  started_at timestamptz,
  finished_at timestamptz,
  status text check (status in ('done', 'quarantined', 'failed', 'skipped')),
  run_id bigint,
  failures integer not null default 0,
  error text,
  remedy text,
  updated_at timestamptz not null default tributary.now(),
  parent text,
  deferred_from timestamptz,
  failure_kind text,
  primary key (company, resource, kind)
);
comment on table tributary.tasks is 'The tasks of tributary serve: a sync of each resource of each company by its schedule, and requested backfills. The process that owns the company runs them.';
comment on column tributary.tasks.company is 'The name of the company in the configuration.';
comment on column tributary.tasks.resource is 'The path of the resource.';
comment on column tributary.tasks.kind is 'sync or backfill.';
comment on column tributary.tasks.schedule is 'The configured schedule in words; null for a task that runs only on request.';
comment on column tributary.tasks.freshness_target_ms is 'The maximum age of the data.';
comment on column tributary.tasks.next_run_at is 'When it runs next; null when no time is set.';
comment on column tributary.tasks.paused_at is 'When its schedule was paused.';
comment on column tributary.tasks.paused_by is 'The person or program that paused the schedule.';
comment on column tributary.tasks.requested_at is 'When a person requested a run; null once a run that began after that has ended.';
comment on column tributary.tasks.requested_by is 'The person or program that requested the run.';
comment on column tributary.tasks.full_requested is 'Whether the requested run is a full scan.';
comment on column tributary.tasks.since is 'The start of a backfill''s range, RFC 3339 in UTC; null from the beginning. Until likewise.';
comment on column tributary.tasks.until is 'The end of a backfill range, RFC 3339 in UTC; null for no end.';
comment on column tributary.tasks.started_at is 'The start of the last run that ended; finished_at, status, run_id, error and remedy are its result.';
comment on column tributary.tasks.finished_at is 'The end of the last run.';
comment on column tributary.tasks.status is 'done; quarantined (some records could not be landed); failed; skipped (the token may not read it)';
comment on column tributary.tasks.run_id is 'The last run.';
comment on column tributary.tasks.failures is 'Failures in a row.';
comment on column tributary.tasks.error is 'What failed in the last run; null without an error.';
comment on column tributary.tasks.remedy is 'What a person can do about it.';
comment on column tributary.tasks.updated_at is 'When the row last changed.';
comment on column tributary.tasks.parent is 'The resource that is synced before it; null where there is none.';
comment on column tributary.tasks.deferred_from is 'When it would run by its schedule, while events prove that the resource is fresh and its poll is deferred to next_run_at; null otherwise.';
comment on column tributary.tasks.failure_kind is 'The kind of the failure, as in tributary.runs.error_kind; null unless the status is failed.';
-- A poll looks for the due tasks among all.
create index tasks_due on tributary.tasks (next_run_at) where paused_at is null;
create index tasks_requested on tributary.tasks (company) where requested_at is not null;
-- Tasks that changed to the worse, for the count of their companies.
create index tasks_troubled on tributary.tasks (company, updated_at)
  where failures > 0 or paused_at is not null;
create index tasks_deferred on tributary.tasks (company) where deferred_from is not null;
create index tasks_failed on tributary.tasks (company) where failure_kind is not null;

create table tributary.processes (
  process_id text primary key,
  companies text[] not null,
  started_at timestamptz not null default tributary.now(),
  heartbeat_at timestamptz not null default tributary.now(),
  stopped_at timestamptz,
  host text,
  pid integer,
  company_revision bigint,
  observed jsonb not null default '[]' check (jsonb_typeof(observed) = 'array')
);
comment on table tributary.processes is 'Processes of tributary serve. A heartbeat proves that the process can store deliveries.';
comment on column tributary.processes.process_id is 'The random id of the process.';
comment on column tributary.processes.companies is 'The companies whose deliveries it receives.';
comment on column tributary.processes.started_at is 'When the process started.';
comment on column tributary.processes.heartbeat_at is 'The last heartbeat.';
comment on column tributary.processes.stopped_at is 'When it stopped on purpose; null while it is alive, and after a kill.';
comment on column tributary.processes.host is 'The machine that it runs on, and pid its number there.';
comment on column tributary.processes.pid is 'The number of the process on its machine.';
comment on column tributary.processes.company_revision is 'The company_revision of tributary.warehouse whose companies the process has applied; null before the first.';
comment on column tributary.processes.observed is 'Problems that only the process can see, such as a full disk, as tributary.problems shows them while it is alive.';
create index processes_by_heartbeat on tributary.processes (heartbeat_at);

create view tributary.processes_alive as
  select process_id, companies, started_at, heartbeat_at, host, pid, company_revision, observed from tributary.processes
   where stopped_at is null and heartbeat_at > (select tributary.now() - interval '60 seconds');
comment on view tributary.processes_alive is 'Processes of tributary serve that are alive. Each sends a heartbeat every 20 seconds.';
comment on column tributary.processes_alive.process_id is 'The random id of the process.';
comment on column tributary.processes_alive.companies is 'The companies whose deliveries it receives.';
comment on column tributary.processes_alive.started_at is 'When the process started.';
comment on column tributary.processes_alive.heartbeat_at is 'The last heartbeat.';
comment on column tributary.processes_alive.host is 'The machine that it runs on.';
comment on column tributary.processes_alive.pid is 'The number of the process on its machine.';
comment on column tributary.processes_alive.observed is 'Problems that only the process can see.';
comment on column tributary.processes_alive.company_revision is 'The company_revision of tributary.warehouse whose companies it has applied.';

-- Ends with the work queue.
create table tributary.bucket_owners (
  bucket integer primary key,
  process_id text not null,
  since timestamptz not null default tributary.now()
);
comment on table tributary.bucket_owners is 'Which process owns which bucket of companies, for people; each process writes it within seconds. The engine''s advisory locks decide.';
comment on column tributary.bucket_owners.bucket is 'The number of the bucket.';
comment on column tributary.bucket_owners.process_id is 'The process that owns the bucket.';
comment on column tributary.bucket_owners.since is 'When the owner stored it first.';

-- The registered processes of effect/cluster.
create table tributary.cluster_runners (
  machine_id serial primary key,
  address varchar(255) not null unique,
  runner text not null,
  healthy boolean not null default true,
  last_heartbeat timestamp not null default now()
);
comment on table tributary.cluster_runners is 'Processes of tributary serve, as effect/cluster stores them; a killed one stays until another one ends in order.';
comment on column tributary.cluster_runners.machine_id is 'The number of the process in effect/cluster.';
comment on column tributary.cluster_runners.address is 'The name of the process in effect/cluster.';
comment on column tributary.cluster_runners.runner is 'The process as JSON, as effect/cluster stores it.';
comment on column tributary.cluster_runners.healthy is 'Whether effect/cluster counts the process as healthy.';
comment on column tributary.cluster_runners.last_heartbeat is 'The last heartbeat of the process in effect/cluster.';

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
comment on column tributary.event_proofs.company is 'The name of the company in the configuration.';
comment on column tributary.event_proofs.company_id is 'The number of the company in this warehouse.';
comment on column tributary.event_proofs.resource is 'The path of the resource.';
comment on column tributary.event_proofs.proven_at is 'The last check less the longest delay of a delivery; earlier where an event is not processed yet.';
comment on column tributary.event_proofs.age_max is 'The highest age of the proof while checks are made on time.';

create view tributary.freshness as
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
comment on column tributary.freshness.company is 'The configured name; null where no program has stored it.';
comment on column tributary.freshness.company_id is 'The source''s number of the company; null until the source has answered it.';
comment on column tributary.freshness.resource is 'The path of the resource.';
comment on column tributary.freshness.run_id is 'That run; null where there is none.';
comment on column tributary.freshness.fresh_at is 'The start of that run; null before the first.';
comment on column tributary.freshness.age is 'The time since fresh_at.';
comment on column tributary.freshness.target is 'The configured maximum age; null without a task.';
comment on column tributary.freshness.is_late is 'Whether the age exceeds the target, or no run made the resource fresh. A resource that the token may not read is not late; a paused one is.';
comment on column tributary.freshness.proven_at is 'Events prove that every change before this is in the warehouse; null while they prove nothing.';

-- Interfaces of warehouses with many companies: the counted state of each company, and the indexes that find it.
-- Ends with the read model.
create table tributary.company_states (
  company text primary key,
  counted_at timestamptz not null default tributary.now(),
  late_at timestamptz,
  state text not null
    check (state in ('failing', 'late', 'attention', 'never-synced', 'blocked', 'paused', 'fresh')),
  severity double precision not null,
  resources integer not null,
  failing integer not null,
  late integer not null,
  never_synced integer not null,
  blocked integer not null,
  paused integer not null,
  fresh integer not null,
  lateness double precision not null,
  quarantined bigint not null,
  dead_letters bigint not null,
  gaps bigint not null,
  rejected bigint not null,
  subscriptions_down bigint not null,
  worst_resource text,
  error text,
  remedy text
);
comment on table tributary.company_states is 'The state of each company, counted by one process of tributary serve: within seconds after a change to the worse, and when a resource may have become late. Interfaces read it where there are too many companies to read every resource.';
comment on column tributary.company_states.company is 'The name of the company in the configuration.';
comment on column tributary.company_states.counted_at is 'When the resources were counted.';
comment on column tributary.company_states.late_at is 'The earliest time at which a resource that is fresh exceeds its target; null when none can. The company is counted again then.';
comment on column tributary.company_states.state is 'The worst state of its resources; attention: it has records in quarantine, dead letters, delivery gaps, rejected rows or a subscription that is not active.';
comment on column tributary.company_states.severity is 'Orders companies by state and then by lateness; the highest is the worst.';
comment on column tributary.company_states.resources is 'The number of resources.';
comment on column tributary.company_states.failing is 'Resources whose last run failed. Late, never_synced, blocked, paused and fresh likewise count resources; a resource counts once, by its worst state.';
comment on column tributary.company_states.late is 'Resources that are older than their freshness target.';
comment on column tributary.company_states.never_synced is 'Resources that no run has read completely.';
comment on column tributary.company_states.blocked is 'Resources that the token may not read.';
comment on column tributary.company_states.paused is 'Resources whose schedule is paused.';
comment on column tributary.company_states.fresh is 'Resources that are fresh.';
comment on column tributary.company_states.lateness is 'The highest age of a late or failing resource divided by its target; 0 without one.';
comment on column tributary.company_states.quarantined is 'Open quarantine entries.';
comment on column tributary.company_states.dead_letters is 'Events that failed too often.';
comment on column tributary.company_states.gaps is 'Open delivery gaps.';
comment on column tributary.company_states.rejected is 'Rows of the outbox that the source or the validation rejected.';
comment on column tributary.company_states.subscriptions_down is 'Subscriptions that are paused, disabled or deleted.';
comment on column tributary.company_states.worst_resource is 'The failing or late resource with the highest lateness; error and remedy are those of its last run.';
comment on column tributary.company_states.error is 'The error of worst_resource.';
comment on column tributary.company_states.remedy is 'What a person can do about it.';
create index company_states_worst on tributary.company_states (severity desc, company);

-- The data of charts: what each company's work was, by minute, hour and day.
-- Ends with the read model.
create table tributary.activity (
  resolution text not null check (resolution in ('minute', 'hour', 'day')),
  at timestamptz not null,
  company text,
  resource text,
  runs bigint not null default 0,
  quarantined_runs bigint not null default 0,
  failed_runs bigint not null default 0,
  abandoned_runs bigint not null default 0,
  inserted bigint not null default 0,
  updated bigint not null default 0,
  deleted bigint not null default 0,
  quarantined bigint not null default 0,
  requests bigint not null default 0,
  retries bigint not null default 0,
  run_ms bigint not null default 0,
  run_ms_max bigint not null default 0,
  age_ms_max bigint,
  lateness_max double precision,
  budget_share_max double precision,
  paused_ms bigint not null default 0,
  gaps bigint not null default 0,
  process_starts bigint not null default 0,
  rows bigint
);
comment on table tributary.activity is 'The activity of each resource by minute (for a day), hour (for 31 days) and day (for two years), written about once a minute by one process of tributary serve. Each run is in one row of a resolution, so that sums count nothing twice. Minutes have rows for each resource up to 300 resources of all companies together, else for each company up to 300, else for all companies; hours and days do so up to 1,000.';
comment on column tributary.activity.resolution is 'The length of the time that the row describes: minute, hour or day. Choose one; each has all runs.';
comment on column tributary.activity.at is 'The start of that time, in UTC. The current hour and day have rows too, which are written again until they are over. A minute in which nothing happened has no row.';
comment on column tributary.activity.company is 'Null: all companies together, and the process starts.';
comment on column tributary.activity.resource is 'Null: the whole company, and what concerns all its resources, such as its rate budget.';
comment on column tributary.activity.runs is 'Runs that ended, of all lanes. Quiet runs that share a row of tributary.runs count as spread evenly between the first and the last of them.';
comment on column tributary.activity.quarantined_runs is 'Those with records that could not be landed; the other runs are done, failed or abandoned.';
comment on column tributary.activity.failed_runs is 'Those that failed.';
comment on column tributary.activity.abandoned_runs is 'Those whose process was interrupted or lost.';
comment on column tributary.activity.inserted is 'Records that these runs inserted.';
comment on column tributary.activity.updated is 'Records that they updated.';
comment on column tributary.activity.deleted is 'Records that they soft-deleted.';
comment on column tributary.activity.quarantined is 'Records that they could not land.';
comment on column tributary.activity.requests is 'Requests that these runs sent.';
comment on column tributary.activity.retries is 'Requests that they sent again.';
comment on column tributary.activity.run_ms is 'The sum of the times that these runs took.';
comment on column tributary.activity.run_ms_max is 'The time that the longest of them took.';
comment on column tributary.activity.age_ms_max is 'The highest age of the data of a resource at any moment of that time; null where no run has made it fresh. Where events prove a resource fresh when the row is written, the age is that of the proof.';
comment on column tributary.activity.lateness_max is 'The highest age divided by its target: above 1 the resource was late. Null without a target, and for paused or blocked resources.';
comment on column tributary.activity.budget_share_max is 'The highest share of the rate budget that was in use, of samples every 15 s; null without a limit or sample.';
comment on column tributary.activity.paused_ms is 'Time in which a source paused the requests of the company, by the samples; in a row of all companies the longest.';
comment on column tributary.activity.gaps is 'Delivery gaps that were open; in a row of a day the most of one hour.';
comment on column tributary.activity.process_starts is 'Starts of processes of tributary serve, in rows without a company.';
comment on column tributary.activity.rows is 'Rows of the resource at the end of that time without tombstones, as tributary.row_counts last had them; of a current hour or day, at present. Only in rows of a resource by hour and day. Null: not known, as of a time without a process, or before the first count.';
create unique index activity_by_time on tributary.activity (resolution, at, coalesce(company, ''), coalesce(resource, ''));

-- Ends with the read model.
create table tributary.activity_watermarks (
  resolution text primary key check (resolution in ('minute', 'hour', 'day')),
  through timestamptz not null
);
comment on table tributary.activity_watermarks is 'How far tributary.activity is complete. What was missed while no process ran is written by the next one.';
comment on column tributary.activity_watermarks.resolution is 'minute, hour or day.';
comment on column tributary.activity_watermarks.through is 'Rows that start before this do not change any more.';

-- Access to the dashboard.
create table tributary.dashboard_sessions (
  id bytea primary key,
  generation text not null,
  began_at timestamptz not null default tributary.now(),
  ends_at timestamptz not null
);
comment on table tributary.dashboard_sessions is 'Open sessions of the page. A session whose row is removed has ended.';
comment on column tributary.dashboard_sessions.id is 'SHA-256 of the session: who reads this table has no session.';
comment on column tributary.dashboard_sessions.generation is 'The generation of the password with which the session began.';
comment on column tributary.dashboard_sessions.began_at is 'When the session began.';
comment on column tributary.dashboard_sessions.ends_at is 'When the session ends.';
create index dashboard_sessions_by_end on tributary.dashboard_sessions (ends_at);

-- Tokens by which programs read the dashboard.
create table tributary.access_tokens (
  name text primary key,
  digest bytea not null unique check (octet_length(digest) = 32),
  created_at timestamptz not null default tributary.now(),
  created_by text not null,
  used_at timestamptz
);
comment on table tributary.access_tokens is 'Tokens by which programs read the dashboard. A token whose row is removed is revoked.';
comment on column tributary.access_tokens.name is 'Name of the token, for people and for its revocation.';
comment on column tributary.access_tokens.digest is 'SHA-256 of the token, which is 32 random bytes: who reads this table has no token.';
comment on column tributary.access_tokens.created_at is 'When the token was made.';
comment on column tributary.access_tokens.created_by is 'The user of the system, or the process, that made the token.';
comment on column tributary.access_tokens.used_at is 'The last use, to the minute.';
