-- Syncing: runs, checkpoints, refetch requests and quarantine.

create table tributary.runs (
  id bigint generated always as identity primary key,
  company_id bigint not null,
  resource text not null,
  kind text not null check (kind in ('full', 'incremental', 'children', 'fetch', 'push')),
  status text not null default 'running'
    check (status in ('running', 'done', 'quarantined', 'failed', 'abandoned')),
  fence bigint not null,
  resumed boolean not null default false,
  started_at timestamptz not null,
  finished_at timestamptz,
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
  remedy text,
  lane text not null default 'live' check (lane in ('live', 'backfill', 'records', 'push')),
  late_rows bigint not null default 0,
  max_lateness_ms bigint not null default 0,
  stale_records bigint not null default 0,
  note text
);
comment on table tributary.runs is 'One execution for one resource and lane. Its counts change in the transactions that land its pages.';
comment on column tributary.runs.kind is 'full; incremental; children (of changed parents); fetch (single records by number); push (written records)';
comment on column tributary.runs.status is 'running; done; quarantined (done, but some records could not be landed); failed; abandoned (its process was interrupted or lost)';
comment on column tributary.runs.unchanged is 'Records whose row was equal or newer.';
comment on column tributary.runs.late_rows is 'Rows that became visible late: their own stamp is older than the cursor of an earlier scan.';
comment on column tributary.runs.stale_records is 'Records that the source returned in an older version than the row. The row was kept.';
comment on column tributary.runs.note is 'Remarks for a person about a run that did not fail.';
create index runs_by_resource on tributary.runs (company_id, resource, id desc);
create index runs_by_status on tributary.runs (status, id desc);
create index runs_ended on tributary.runs (finished_at) where finished_at is not null;
-- For the newest runs of a lane, and for the last complete read of a resource.
create index runs_by_lane on tributary.runs (company_id, resource, lane, id desc);
create index runs_read_well on tributary.runs (company_id, resource, id desc)
  where lane = 'live' and kind in ('full', 'incremental') and status in ('done', 'quarantined');

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
  scan_started_at timestamptz,
  updated_at timestamptz not null,
  lane text not null default 'live' check (lane in ('live', 'backfill', 'records', 'push')),
  cursor_read_at timestamptz,
  learned_overlap_ms bigint not null default 0,
  max_lateness_ms bigint not null default 0,
  full_scan_reason text,
  scan_until text,
  identity_fence bigint,
  table_identity text,
  shape text,
  adopts_source boolean not null default false,
  overlap_learned_at timestamptz default tributary.now(),
  primary key (company_id, resource, lane)
);
comment on table tributary.checkpoints is 'A durable cursor of one resource and lane. It changes only in the transaction that lands what it covers.';
comment on column tributary.checkpoints.fence is 'Rises with every run that acquires the resource. A run with a smaller fence writes nothing.';
comment on column tributary.checkpoints.cursor is 'synced_through of the last completed scan, byte for byte as the source sent it.';
comment on column tributary.checkpoints.full_scan_at is 'When the last completed full scan began.';
comment on column tributary.checkpoints.scan_token is 'The next page of the scan in progress; null with scan_kind set means its first page.';
comment on column tributary.checkpoints.lane is 'live follows the source; backfill reads a past range; records fetches single records; push writes records and lands the answers.';
comment on column tributary.checkpoints.cursor_read_at is 'When the scan that proved the cursor began.';
comment on column tributary.checkpoints.learned_overlap_ms is 'The learned overlap: how far before the cursor incremental scans begin, because rows became visible late.';
comment on column tributary.checkpoints.max_lateness_ms is 'The longest time between a row''s own stamp and the scan that first showed it.';
comment on column tributary.checkpoints.full_scan_reason is 'Why the next run is a full scan; null when it need not be.';
comment on column tributary.checkpoints.scan_until is 'The latest lastchangedate that the backfill in progress lands; null for all.';
comment on column tributary.checkpoints.identity_fence is 'The fence at which a process last confirmed table_identity and shape. Another fence means that a release without this check has written since. Then the next run is a full scan.';
comment on column tributary.checkpoints.table_identity is 'Lane live: the database, tributary.checkpoints and the table that the cursor belongs to, by their oids, and the table''s file. Truncate, vacuum full and cluster change the file.';
comment on column tributary.checkpoints.shape is 'Lane live: the catalogue generation, its fields and the settings under which the rows were read.';
comment on column tributary.checkpoints.adopts_source is 'Lane live: rows may come from an earlier source. The version read last wins until a full scan completes (sync --accept-new-source).';
comment on column tributary.checkpoints.overlap_learned_at is 'When a late row last required learned_overlap_ms. The overlap halves for each week since.';

create table tributary.scan_ids (
  company_id bigint not null,
  resource text not null,
  page bigint not null,
  ids bigint[] not null,
  lane text not null default 'live' check (lane in ('live', 'backfill', 'records', 'push')),
  primary key (company_id, resource, lane, page)
);
comment on table tributary.scan_ids is 'Ids that the full scan in progress returned, so that absence means deleted even when a later run completes the scan.';

create table tributary.refetch_requests (
  company_id bigint not null,
  resource text not null,
  field text not null,
  value text not null,
  generation bigint not null default 1,
  requested_at timestamptz not null,
  primary key (company_id, resource, field, value)
);
comment on table tributary.refetch_requests is 'Records to be read again: those whose field has this value (children of a changed parent), or one record (field id). The transaction that lands the cause inserts the request. The one that lands the answer deletes it.';
comment on column tributary.refetch_requests.generation is 'Rises when the request is repeated, so that an earlier answer does not delete the later request.';

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
create index quarantine_resolved on tributary.quarantine (resolved_at) where resolved_at is not null;
create index quarantine_open_by_run on tributary.quarantine (run_id) where resolved_at is null;
-- For the lists of the pages: the newest entries, of a resource or of all, and the entries of one record.
create index quarantine_by_resource on tributary.quarantine (company_id, resource, id);
create index quarantine_open_newest on tributary.quarantine (id) where resolved_at is null;
create index quarantine_of_record on tributary.quarantine (resource, record_id);

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
comment on table tributary.row_counts is 'The number of rows of a resource, counted from time to time.';
comment on column tributary.row_counts.deleted is 'Tombstones; rows does not include them.';
comment on column tributary.row_counts.is_exact is 'False where counting took too long. Then rows is the estimate of Postgres.';
comment on column tributary.row_counts.run_id is 'The last finished run when the rows were counted.';

create table tributary.field_findings (
  company_id bigint not null,
  resource text not null,
  field text not null,
  kind text not null check (kind in ('volatile', 'absent')),
  runs integer not null default 1,
  rows bigint not null,
  first_run_id bigint not null,
  last_run_id bigint not null,
  found_at timestamptz not null,
  primary key (company_id, resource, kind, field)
);
comment on table tributary.field_findings is 'Fields that a completed full scan found volatile (they changed in most records although the stamps did not) or absent (in no record, although rows have values). A full scan that finds otherwise deletes the finding.';
comment on column tributary.field_findings.runs is 'Full scans in a row that found it.';
comment on column tributary.field_findings.rows is 'volatile: records that changed in the last of them; absent: rows that still hold a value.';
