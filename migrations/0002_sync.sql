-- Syncing: runs, checkpoints, refetch requests, quarantine, and what full scans and counts found.

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
  note text,
  quiet_runs integer not null default 0,
  quiet_since timestamptz,
  phases json
);
comment on table tributary.runs is 'One execution for one resource and lane. Its counts change in the transactions that land its pages.';
comment on column tributary.runs.id is 'The number of the run.';
comment on column tributary.runs.company_id is 'The number of the company in this warehouse.';
comment on column tributary.runs.resource is 'The path of the resource.';
comment on column tributary.runs.kind is 'full; incremental; children (of changed parents); fetch (single records by number); push (written records)';
comment on column tributary.runs.status is 'running; done; quarantined (done, but some records could not be landed); failed; abandoned (its process was interrupted or lost)';
comment on column tributary.runs.fence is 'The fence of the run.';
comment on column tributary.runs.resumed is 'Whether the run continued the scan of an earlier one.';
comment on column tributary.runs.started_at is 'When the run started.';
comment on column tributary.runs.finished_at is 'When the run ended; null while it runs.';
comment on column tributary.runs.cursor_from is 'The cursor that the run began with.';
comment on column tributary.runs.cursor_to is 'The cursor that the run reached.';
comment on column tributary.runs.pages is 'Pages that landed.';
comment on column tributary.runs.requests is 'Requests that were sent.';
comment on column tributary.runs.retries is 'Requests that were repeated, among them.';
comment on column tributary.runs.bytes is 'Bytes that were received.';
comment on column tributary.runs.records is 'Records that were read.';
comment on column tributary.runs.inserted is 'Records that were new.';
comment on column tributary.runs.updated is 'Rows that changed.';
comment on column tributary.runs.unchanged is 'Records whose row was equal or newer.';
comment on column tributary.runs.deleted is 'Rows that were soft-deleted.';
comment on column tributary.runs.quarantined is 'Records that could not be landed.';
comment on column tributary.runs.error_kind is 'The kind of the error; null without one.';
comment on column tributary.runs.error is 'What failed; null without an error.';
comment on column tributary.runs.remedy is 'What a person can do about it.';
comment on column tributary.runs.lane is 'live follows the source; backfill reads a past range; records fetches single records; push writes.';
comment on column tributary.runs.late_rows is 'Rows that became visible late: their own stamp is older than the cursor of an earlier scan.';
comment on column tributary.runs.max_lateness_ms is 'The longest time between the own stamp of a row and the run that first showed it, in milliseconds.';
comment on column tributary.runs.stale_records is 'Records that the source returned in an older version than the row. The row was kept.';
comment on column tributary.runs.note is 'Remarks for a person about a run that did not fail.';
comment on column tributary.runs.quiet_runs is 'How many runs in a row found nothing; this row stands for all of them. 0: the row of a single run. Pages, requests and bytes are sums, and the other columns those of the last run.';
comment on column tributary.runs.quiet_since is 'The start of the first of them.';
comment on column tributary.runs.phases is 'Where the time of the run went, written at its end: took_ms; for budget (waiting for a permit), request, retry (the pause before one) and landing the ms, times and longest_ms, and the ms in each slot of slot_ms; and the answers of the source by kind with their requests, retries and retry_ms. Null for a run whose process was killed, and for quiet runs.';
create index runs_by_resource on tributary.runs (company_id, resource, id desc);
create index runs_by_status on tributary.runs (status, id desc);
create index runs_ended on tributary.runs (finished_at) where finished_at is not null;
-- For the newest runs of a lane, and for the last complete read of a resource.
create index runs_by_lane on tributary.runs (company_id, resource, lane, id desc);
create index runs_read_well on tributary.runs (company_id, resource, id desc)
  where lane = 'live' and kind in ('full', 'incremental') and status in ('done', 'quarantined');
create index runs_full_scans on tributary.runs (company_id, resource, id desc)
  where lane = 'live' and kind = 'full' and status in ('done', 'quarantined');

create table tributary.checkpoints (
  company_id bigint not null,
  resource text not null,
  fence bigint not null default 0,
  cursor text,
  full_scan_at timestamptz,
  updated_at timestamptz not null,
  lane text not null default 'live' check (lane in ('live', 'backfill', 'records', 'push')),
  cursor_read_at timestamptz,
  learned_overlap_ms bigint not null default 0,
  max_lateness_ms bigint not null default 0,
  full_scan_reason text,
  table_identity text,
  shape text,
  adopts_source boolean not null default false,
  overlap_learned_at timestamptz default tributary.now(),
  past_from timestamptz,
  past_batch bigint,
  past_until timestamptz,
  past_unfed_from timestamptz,
  past_reason text,
  primary key (company_id, resource, lane)
);
comment on table tributary.checkpoints is 'A durable cursor of one resource and lane. It changes only in the transaction that lands what it covers.';
comment on column tributary.checkpoints.company_id is 'The number of the company in this warehouse.';
comment on column tributary.checkpoints.resource is 'The path of the resource.';
comment on column tributary.checkpoints.fence is 'Rises with every run that acquires the resource. A run with a smaller fence writes nothing.';
comment on column tributary.checkpoints.cursor is 'synced_through of the last completed scan, byte for byte as the source sent it.';
comment on column tributary.checkpoints.full_scan_at is 'When the last completed full scan began.';
comment on column tributary.checkpoints.updated_at is 'When the row last changed.';
comment on column tributary.checkpoints.lane is 'live follows the source; backfill reads a past range; records fetches single records; push writes records and lands the answers.';
comment on column tributary.checkpoints.cursor_read_at is 'When the scan that proved the cursor began.';
comment on column tributary.checkpoints.learned_overlap_ms is 'The learned overlap: how far before the cursor incremental scans begin, because rows became visible late.';
comment on column tributary.checkpoints.max_lateness_ms is 'The longest time between a row''s own stamp and the scan that first showed it.';
comment on column tributary.checkpoints.full_scan_reason is 'Why the next run is a full scan; null when it need not be.';
comment on column tributary.checkpoints.table_identity is 'Lane live: the database, tributary.checkpoints, the table that the cursor was stored for, and its history. null: the table may have had records before its first checkpoint, and the next run begins it in the change feed.';
comment on column tributary.checkpoints.shape is 'Lane live: the catalogue generation, its fields and the settings under which the rows were read.';
comment on column tributary.checkpoints.adopts_source is 'Lane live: rows may come from an earlier source. The version read last wins until a full scan completes (sync --accept-new-source).';
comment on column tributary.checkpoints.overlap_learned_at is 'When a late row last required learned_overlap_ms. The overlap halves for each week since.';
comment on column tributary.checkpoints.past_from is 'Lane live: as-of queries of a time before this one fail, since versions were lost; infinity: until the next full scan has completed; null: none was lost.';
comment on column tributary.checkpoints.past_batch is 'Lane live: as-of queries of a position before this batch of the change feed fail; null: none does because of past_from.';
comment on column tributary.checkpoints.past_until is 'Lane live: the past is complete up to this time too; null: only from past_from on.';
comment on column tributary.checkpoints.past_unfed_from is 'Lane live: the earliest read of the versions that a restored change feed lacks. As-of queries of a position before past_batch fail only if the time of the position is not before this one; null: all of them fail.';
comment on column tributary.checkpoints.past_reason is 'Lane live: why the past before past_from is not complete.';
create index checkpoints_unproven on tributary.checkpoints (company_id, resource) where lane = 'live' and full_scan_reason is not null;
create index checkpoints_of_resource on tributary.checkpoints (resource) where lane = 'live';

create function tributary.table_identity(of_table regclass, of_history regclass) returns text
  language sql stable parallel safe set search_path = pg_catalog as $$
  select concat_ws(' ', 'database=' || (select d.oid from pg_database d where d.datname = current_database()),
    'checkpoints=' || c.oid, 'control=' || pg_relation_filenode(c.oid),
    'table=' || of_table::oid, 'file=' || pg_relation_filenode(of_table),
    'history=' || of_history::oid, 'historyfile=' || pg_relation_filenode(of_history),
    case when (select count(*) from pg_index i
                where i.indrelid in (of_table, of_history) and i.indisprimary and i.indisvalid and i.indimmediate) < 2
         then 'keys=missing' end)
    from (select 'tributary.checkpoints'::regclass::oid as oid) c
$$;
comment on function tributary.table_identity(regclass, regclass) is 'The identity of a table and its history: oids of the database and the tables, which change with a restore, files, which change with a truncate or rewrite, and whether a primary key is missing.';

create table tributary.scans (
  company_id bigint not null,
  resource text not null,
  lane text not null,
  run_id bigint not null,
  kind text not null check (kind in ('full', 'incremental')),
  since text,
  until text,
  token text,
  pages bigint not null,
  synced_through text,
  started_at timestamptz not null,
  refetch_generation bigint not null,
  primary key (company_id, resource, lane),
  foreign key (company_id, resource, lane) references tributary.checkpoints on delete cascade
);
comment on table tributary.scans is 'The scan in progress of a checkpoint: the next run resumes it. It changes only in the transaction that lands its pages.';
comment on column tributary.scans.company_id is 'The number of the company in this warehouse.';
comment on column tributary.scans.resource is 'The path of the resource.';
comment on column tributary.scans.lane is 'The lane of the checkpoint.';
comment on column tributary.scans.run_id is 'The run that landed its last page.';
comment on column tributary.scans.kind is 'full or incremental.';
comment on column tributary.scans.since is 'The modifiedsince that is sent; null: everything is read.';
comment on column tributary.scans.until is 'The latest lastchangedate that a backfill lands; null for all.';
comment on column tributary.scans.token is 'The next page; null means the first one.';
comment on column tributary.scans.pages is 'Pages that have landed.';
comment on column tributary.scans.synced_through is 'The cursor when the scan completes.';
comment on column tributary.scans.started_at is 'When its first page was read.';
comment on column tributary.scans.refetch_generation is 'The highest generation of tributary.refetch_requests when the scan began: a completed full scan fulfils the requests up to it.';

-- A statement that waited for a checkpoint sees the other tables as they were before it waited. This function is volatile,
-- so that it sees the scan as the checkpoint's last writer left it.
create function tributary.open_scan(of_company bigint, of_resource text, of_lane text) returns json language plpgsql volatile as $$
begin
  return (
    select json_build_object('refetchGeneration', s.refetch_generation::text, 'open', json_build_object(
             'kind', s.kind, 'since', s.since, 'until', s.until, 'token', s.token, 'pages', s.pages,
             'syncedThrough', s.synced_through, 'beganAt', floor(extract(epoch from s.started_at) * 1000)))
      from tributary.scans s where s.company_id = of_company and s.resource = of_resource and s.lane = of_lane);
end $$;
comment on function tributary.open_scan(bigint, text, text) is 'The scan in progress of a checkpoint, as of the call and not of the statement; null without one.';

create table tributary.scan_ids (
  company_id bigint not null,
  resource text not null,
  lane text not null,
  page bigint not null,
  ids bigint[] not null,
  primary key (company_id, resource, lane, page),
  foreign key (company_id, resource, lane) references tributary.scans on delete cascade
);
comment on table tributary.scan_ids is 'Ids that the full scan in progress returned, so that absence means deleted even when a later run completes the scan.';
comment on column tributary.scan_ids.company_id is 'The number of the company in this warehouse.';
comment on column tributary.scan_ids.resource is 'The path of the resource.';
comment on column tributary.scan_ids.lane is 'The lane of the scan.';
comment on column tributary.scan_ids.page is 'The number of the page.';
comment on column tributary.scan_ids.ids is 'The ids of the page.';

-- Ends with the work queue.
create table tributary.refetch_requests (
  company_id bigint not null,
  resource text not null,
  field text not null,
  value text not null,
  generation bigint generated by default as identity,
  requested_at timestamptz not null,
  primary key (company_id, resource, field, value)
);
comment on table tributary.refetch_requests is 'Records to be read again: those whose field has this value (children of a changed parent), or one record (field id). The transaction that lands the cause inserts the request. The one that lands the answer deletes it.';
comment on column tributary.refetch_requests.company_id is 'The number of the company in this warehouse.';
comment on column tributary.refetch_requests.resource is 'The path of the resource.';
comment on column tributary.refetch_requests.field is 'The field that identifies the records: id, or the reference to the parent.';
comment on column tributary.refetch_requests.value is 'The value of that field.';
comment on column tributary.refetch_requests.generation is 'Rises over all requests, and when a request is repeated, so that an earlier answer does not delete the later request.';
comment on column tributary.refetch_requests.requested_at is 'When it was requested.';

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
comment on column tributary.quarantine.id is 'The number of the entry.';
comment on column tributary.quarantine.company_id is 'The number of the company in this warehouse.';
comment on column tributary.quarantine.resource is 'The path of the resource.';
comment on column tributary.quarantine.record_id is 'The id of the record; null where it has none that can be read.';
comment on column tributary.quarantine.field is 'The field that does not fit; null where it is the whole record.';
comment on column tributary.quarantine.reason is 'Why the record does not fit.';
comment on column tributary.quarantine.bytes is 'The record exactly as it was sent.';
comment on column tributary.quarantine.run_id is 'The run that last found it.';
comment on column tributary.quarantine.source is 'The request that returned the record.';
comment on column tributary.quarantine.first_seen_at is 'When it was first found.';
comment on column tributary.quarantine.last_seen_at is 'When it was last found.';
comment on column tributary.quarantine.times is 'How often it was found.';
comment on column tributary.quarantine.resolved_at is 'When the record landed or was found to be gone; null while the entry is open.';
create unique index quarantine_open on tributary.quarantine (company_id, resource, coalesce(record_id, ''), md5(bytes))
  where resolved_at is null;
create index quarantine_resolved on tributary.quarantine (resolved_at) where resolved_at is not null;
create index quarantine_open_by_run on tributary.quarantine (run_id) where resolved_at is null;
-- For the lists of the pages: the newest entries, of a resource or of all, and the entries of one record.
create index quarantine_by_resource on tributary.quarantine (company_id, resource, id);
create index quarantine_open_newest on tributary.quarantine (id) where resolved_at is null;
create index quarantine_of_record on tributary.quarantine (resource, record_id);

-- Ends with the read model.
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
comment on column tributary.row_counts.company_id is 'The number of the company in this warehouse.';
comment on column tributary.row_counts.resource is 'The path of the resource.';
comment on column tributary.row_counts.rows is 'Rows without tombstones.';
comment on column tributary.row_counts.deleted is 'Tombstones; rows does not include them.';
comment on column tributary.row_counts.is_exact is 'False where counting took too long. Then rows is the estimate of Postgres.';
comment on column tributary.row_counts.run_id is 'The last finished run when the rows were counted.';
comment on column tributary.row_counts.counted_at is 'When the rows were counted.';

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
comment on column tributary.field_findings.company_id is 'The number of the company in this warehouse.';
comment on column tributary.field_findings.resource is 'The path of the resource.';
comment on column tributary.field_findings.field is 'The name of the field in the API.';
comment on column tributary.field_findings.kind is 'volatile or absent.';
comment on column tributary.field_findings.runs is 'Full scans in a row that found it.';
comment on column tributary.field_findings.rows is 'volatile: records that changed in the last of them; absent: rows that still hold a value.';
comment on column tributary.field_findings.first_run_id is 'The first run in a row that found it.';
comment on column tributary.field_findings.last_run_id is 'The last run that found it.';
comment on column tributary.field_findings.found_at is 'When it was last found.';

create table tributary.page_sizes (
  source text not null,
  resource text not null,
  accepted integer,
  refused integer,
  tried_at timestamptz not null,
  primary key (source, resource)
);
comment on table tributary.page_sizes is 'The page size of each source, where none is configured: the client requests larger pages and stores the result.';
comment on column tributary.page_sizes.source is 'The address of the source.';
comment on column tributary.page_sizes.resource is 'Empty for all resources; the path of a resource that differs.';
comment on column tributary.page_sizes.accepted is 'Records per page that are requested; null where the source accepts no size.';
comment on column tributary.page_sizes.refused is 'The smallest size that the source refused, shortened or answered too slowly; null where none.';
comment on column tributary.page_sizes.tried_at is 'When a larger size was last tried.';
