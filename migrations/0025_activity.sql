-- The data of charts: what each company's work was, by minute, hour and day.
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
  process_starts bigint not null default 0
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
create unique index activity_by_time on tributary.activity (resolution, at, coalesce(company, ''), coalesce(resource, ''));

create table tributary.activity_watermarks (
  resolution text primary key check (resolution in ('minute', 'hour', 'day')),
  through timestamptz not null
);
comment on table tributary.activity_watermarks is 'How far tributary.activity is complete. What was missed while no process ran is written by the next one.';
comment on column tributary.activity_watermarks.resolution is 'minute, hour or day.';
comment on column tributary.activity_watermarks.through is 'Rows that start before this do not change any more.';
