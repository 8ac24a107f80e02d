-- Runs that find nothing share a row with the ones before them.

alter table tributary.runs
  add column quiet_runs integer not null default 0,
  add column quiet_since timestamptz;
comment on column tributary.runs.quiet_runs is 'How many runs in a row found nothing; this row stands for all of them. 0: the row of a single run. Pages, requests and bytes are sums, and the other columns those of the last run.';
comment on column tributary.runs.quiet_since is 'The start of the first of them.';
