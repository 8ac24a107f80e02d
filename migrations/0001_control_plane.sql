-- The control plane: what the pipeline knows about its own work. The records themselves stand in the datasets that are
-- derived from the catalogue (erp, erp_history), never here.

create table tributary.runs (
  id bigint generated always as identity primary key,
  company_id bigint not null,
  resource text not null,
  kind text not null check (kind in ('full', 'incremental')),
  status text not null default 'running'
    check (status in ('running', 'done', 'quarantined', 'failed', 'abandoned')),
  fence bigint not null,
  resumed boolean not null default false,
  began_at timestamptz not null,
  ended_at timestamptz,
  cursor_from text,
  cursor_to text,
  pages bigint not null default 0,
  requests bigint not null default 0,
  retries bigint not null default 0,
  bytes bigint not null default 0,
  records bigint not null default 0,
  inserted bigint not null default 0,
  updated bigint not null default 0,
  unchanged bigint not null default 0,
  deleted bigint not null default 0,
  quarantined bigint not null default 0,
  error_kind text,
  error text,
  remedy text
);
comment on table tributary.runs is 'One execution for one resource of one company, counted in the transactions that landed its pages.';
comment on column tributary.runs.status is 'running; done; quarantined (done, but some records could not be landed); failed; abandoned (its process ended without a word)';
comment on column tributary.runs.unchanged is 'Records read that the warehouse already held, or held in a newer version.';
create index runs_by_resource on tributary.runs (company_id, resource, id desc);

create table tributary.checkpoints (
  company_id bigint not null,
  resource text not null,
  fence bigint not null default 0,
  cursor text,
  full_scan_at timestamptz,
  scan_run_id bigint,
  scan_kind text check (scan_kind in ('full', 'incremental')),
  scan_since text,
  scan_token text,
  scan_pages bigint,
  scan_synced_through text,
  scan_began_at timestamptz,
  updated_at timestamptz not null,
  primary key (company_id, resource)
);
comment on table tributary.checkpoints is 'How far a resource has been read. Changed only in the transaction that landed what it covers.';
comment on column tributary.checkpoints.fence is 'Grows with every run that takes the resource over; a run with a smaller number can no longer write.';
comment on column tributary.checkpoints.cursor is 'synced_through of the last completed scan, byte for byte as the source sent it.';
comment on column tributary.checkpoints.full_scan_at is 'When the last completed full scan began.';
comment on column tributary.checkpoints.scan_token is 'The next page of the scan in progress; null with scan_kind set means its first page.';

create table tributary.scan_seen (
  company_id bigint not null,
  resource text not null,
  page bigint not null,
  ids bigint[] not null,
  primary key (company_id, resource, page)
);
comment on table tributary.scan_seen is 'Ids that the full scan in progress has met, so that absence means deleted even when the scan is resumed.';

create table tributary.quarantine (
  id bigint generated always as identity primary key,
  company_id bigint not null,
  resource text not null,
  record_id text,
  field text,
  reason text not null,
  bytes text not null,
  run_id bigint not null,
  source text not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  times bigint not null default 1,
  resolved_at timestamptz
);
comment on table tributary.quarantine is 'Records that could not be landed, with the reason and the bytes exactly as sent. Open while resolved_at is null.';
create unique index quarantine_open on tributary.quarantine (company_id, resource, coalesce(record_id, ''), md5(bytes))
  where resolved_at is null;
