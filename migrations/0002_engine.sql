-- What the sync engine needs beyond one scan at a time: lanes, overlap, re-reads, and one clock for everybody.

-- Programs on several machines disagree about the time; the database is the one that all of them ask. A function, so
-- that a test may own the time.
create function tributary.now() returns timestamptz language sql volatile parallel safe as 'select clock_timestamp()';
comment on function tributary.now() is 'The one clock by which reads are ordered, whatever the clocks of the programs say.';

-- live follows the source; backfill reads a past range beside it; records reads single ones. All land in turns.
alter table tributary.checkpoints
  add column lane text not null default 'live' check (lane in ('live', 'backfill', 'records')),
  add column cursor_at timestamptz,
  add column overlap_ms bigint not null default 0,
  add column late_ms bigint not null default 0,
  add column full_wanted text,
  add column scan_until text,
  drop constraint checkpoints_pkey,
  add primary key (company_id, resource, lane);
comment on column tributary.checkpoints.lane is 'live follows the source; backfill reads a past range beside it; records reads single records.';
comment on column tributary.checkpoints.cursor_at is 'When the scan that gave the cursor began, by tributary.now().';
comment on column tributary.checkpoints.overlap_ms is 'How far before the cursor incremental scans begin, beyond what is configured: learnt from rows that became visible late.';
comment on column tributary.checkpoints.late_ms is 'The latest that a row was seen to become visible after its own stamp.';
comment on column tributary.checkpoints.full_wanted is 'Why the next run must read every record; null when it need not.';
comment on column tributary.checkpoints.scan_until is 'The latest lastchangedate that the backfill in progress lands; null for all.';

alter table tributary.scan_seen
  add column lane text not null default 'live',
  drop constraint scan_seen_pkey,
  add primary key (company_id, resource, lane, page);

alter table tributary.runs
  add column lane text not null default 'live',
  add column late bigint not null default 0,
  add column late_ms bigint not null default 0,
  add column went_back bigint not null default 0,
  add column note text,
  drop constraint runs_kind_check,
  add constraint runs_kind_check check (kind in ('full', 'incremental', 'children', 'records'));
comment on column tributary.runs.kind is 'full; incremental; children (of parents that changed); records (one by one, by their numbers)';
comment on column tributary.runs.late is 'Rows that an earlier scan should have shown: their own stamp is older than its cursor.';
comment on column tributary.runs.went_back is 'Records that the source showed in an older version than the warehouse holds; the newer was kept.';
comment on column tributary.runs.note is 'What a person should know about the run although it did not fail.';

create table tributary.rereads (
  company_id bigint not null,
  resource text not null,
  field text not null,
  value text not null,
  asks bigint not null default 1,
  asked_at timestamptz not null,
  primary key (company_id, resource, field, value)
);
comment on table tributary.rereads is 'What must be read again: the records of a resource whose field has this value (children of a parent that changed), or the record itself (field id). Asked in the transaction that landed the cause, removed in the one that landed the answer.';
comment on column tributary.rereads.asks is 'Grows when it is asked again, so that an answer read before does not remove the later question.';
