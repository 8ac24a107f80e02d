-- The outbox: records to be written to the source, the requests that carry them, and what became of each.

create table tributary.pushes (
  id bigint generated always as identity primary key,
  company text not null,
  resource text not null,
  operation text not null check (operation in ('create', 'update', 'cancel')),
  source text not null,
  content_hash text not null,
  record_count bigint not null,
  duplicates bigint not null default 0,
  created_at timestamptz not null default tributary.now(),
  finished_at timestamptz
);
comment on table tributary.pushes is 'Inputs of tributary push: a file, or the rows of a query.';
comment on column tributary.pushes.id is 'The number of the push.';
comment on column tributary.pushes.company is 'The name of the company in the configuration.';
comment on column tributary.pushes.resource is 'The path of the resource.';
comment on column tributary.pushes.operation is 'create, update or cancel.';
comment on column tributary.pushes.source is 'Where the records came from, for people.';
comment on column tributary.pushes.content_hash is 'SHA-256 of the input. While a push is not finished, the same input continues it.';
comment on column tributary.pushes.record_count is 'Records of the input.';
comment on column tributary.pushes.duplicates is 'Records of the input that an earlier push has with the same values: they belong to that push.';
comment on column tributary.pushes.created_at is 'When the records were enqueued.';
comment on column tributary.pushes.finished_at is 'When the last record was resolved; null before.';
create unique index pushes_open on tributary.pushes (company, resource, operation, content_hash) where finished_at is null;
create index pushes_finished on tributary.pushes (finished_at) where finished_at is not null;

create table tributary.push_requests (
  id bigint generated always as identity primary key,
  company text not null,
  resource text not null,
  operation text not null check (operation in ('create', 'batch', 'update', 'cancel')),
  record_id text,
  if_match text,
  idempotency_key text not null unique,
  idempotency_key_scope text,
  body text,
  record_count integer not null,
  state text not null default 'open' check (state in ('open', 'completed', 'rejected', 'abandoned')),
  created_at timestamptz not null default tributary.now(),
  failed_attempts integer not null default 0,
  status integer,
  reason text,
  source text,
  closed_at timestamptz
);
comment on table tributary.push_requests is 'Requests that write. A request is stored with its idempotency key and its exact bytes before its first send. It is sent again with this key and these bytes only.';
comment on column tributary.push_requests.id is 'The number of the request.';
comment on column tributary.push_requests.company is 'The name of the company in the configuration.';
comment on column tributary.push_requests.resource is 'The path of the resource.';
comment on column tributary.push_requests.operation is 'create, batch, update or cancel.';
comment on column tributary.push_requests.record_id is 'The record of an update or cancel; null for others.';
comment on column tributary.push_requests.if_match is 'The header If-Match; null without it.';
comment on column tributary.push_requests.idempotency_key is 'The header Idempotency-Key.';
comment on column tributary.push_requests.idempotency_key_scope is 'A fingerprint of the token. The source does not know the key under another token.';
comment on column tributary.push_requests.body is 'The bytes, as UTF-8. Null for a cancel, and once the request is closed.';
comment on column tributary.push_requests.record_count is 'The number of records in the request.';
comment on column tributary.push_requests.state is 'open: it may have been sent, and its outcome is not known; completed: the source answered for each record; rejected: the source rejected it as a whole; abandoned: it is not sent again, and its records were looked up';
comment on column tributary.push_requests.created_at is 'Not after the first send. The age of the key counts from here.';
comment on column tributary.push_requests.failed_attempts is 'Rounds of retries that ended without an outcome.';
comment on column tributary.push_requests.status is 'The HTTP status of the answer that closed it.';
comment on column tributary.push_requests.reason is 'Why the request was rejected or abandoned.';
comment on column tributary.push_requests.source is 'The request as people know it: its method, path and number at the source.';
comment on column tributary.push_requests.closed_at is 'When the outcome was stored; null while it is open.';
create index push_requests_open on tributary.push_requests (company, resource, id) where state = 'open';
create index push_requests_closed on tributary.push_requests (closed_at) where closed_at is not null;

create table tributary.outbox (
  id bigint generated always as identity primary key,
  company text not null default 'main',
  resource text not null,
  operation text not null default 'create' check (operation in ('create', 'update', 'cancel')),
  externalid text,
  record_id text,
  record json not null default '{}',
  push_id bigint references tributary.pushes (id),
  line bigint,
  state text not null default 'pending' check (state in ('pending', 'in_flight', 'done', 'rejected')),
  outcome text check (outcome in ('created', 'adopted', 'updated', 'cancelled', 'unchanged')),
  validated boolean not null default false,
  absence_confirmed_at timestamptz,
  request_id bigint,
  request_index integer,
  attempts integer not null default 0,
  conflict_retries integer not null default 0,
  expected_values json,
  code text,
  field text,
  reason text,
  problems json,
  differences json,
  created_at timestamptz not null default tributary.now(),
  resolved_at timestamptz
);
comment on table tributary.outbox is 'Records to be written to the source. Insert (company, resource, record), or (company, resource, operation, externalid or record_id, record); tributary serve sends them.';
comment on column tributary.outbox.id is 'The number of the row.';
comment on column tributary.outbox.company is 'The name in the configuration.';
comment on column tributary.outbox.resource is 'The path of the resource.';
comment on column tributary.outbox.operation is 'create, update or cancel.';
comment on column tributary.outbox.externalid is 'Our own key of the record. Taken from the record when it is not given.';
comment on column tributary.outbox.record_id is 'The source''s number of the record: given for an update or cancel, else known once the row is done.';
comment on column tributary.outbox.record is 'The fields to write, as the write shape of the resource names them.';
comment on column tributary.outbox.push_id is 'The push of the row. Null for rows that were inserted by SQL.';
comment on column tributary.outbox.line is 'The line of the record in the input, from 1.';
comment on column tributary.outbox.state is 'pending; in_flight: in a request whose outcome is not known yet; done; rejected: a person decides, see code, field and reason';
comment on column tributary.outbox.outcome is 'created; adopted: the source had the record already; updated; cancelled; unchanged: the record had the values already';
comment on column tributary.outbox.validated is 'Whether the record fits the write shape.';
comment on column tributary.outbox.absence_confirmed_at is 'When a read last showed that the source does not have the record.';
comment on column tributary.outbox.request_id is 'The request that has the row, or that resolved it (tributary.push_requests). Null for a pending row.';
comment on column tributary.outbox.request_index is 'The index of the row in the request.';
comment on column tributary.outbox.attempts is 'Requests whose outcome was not known for this row, or that failed for it alone.';
comment on column tributary.outbox.conflict_retries is 'Sends of an update after the record had changed between the read and the write.';
comment on column tributary.outbox.expected_values is 'The values of the record when an update first read it. They show which fields another person has changed since.';
comment on column tributary.outbox.code is 'The error code of the rejection.';
comment on column tributary.outbox.field is 'The field that the rejection names.';
comment on column tributary.outbox.reason is 'Why the record was rejected.';
comment on column tributary.outbox.problems is 'All problems of a rejected record.';
comment on column tributary.outbox.differences is 'Fields of which the source has another value than was given: [{"field", "given", "held"}].';
comment on column tributary.outbox.created_at is 'When the row was inserted.';
comment on column tributary.outbox.resolved_at is 'When the row was done or rejected; null before.';
create unique index outbox_once on tributary.outbox (company, resource, externalid) where operation = 'create' and externalid is not null;
create index outbox_open on tributary.outbox (company, resource, id) where state in ('pending', 'in_flight');
create index outbox_open_externalid on tributary.outbox (company, resource, externalid)
  where state in ('pending', 'in_flight') and operation <> 'create';
create index outbox_open_record on tributary.outbox (company, resource, record_id)
  where state in ('pending', 'in_flight') and record_id is not null;
create index outbox_open_inserted on tributary.outbox (company, resource) where state in ('pending', 'in_flight') and push_id is null;
create index outbox_push on tributary.outbox (push_id, state) where push_id is not null;
create index outbox_rejected on tributary.outbox (company, resource, id) where state = 'rejected';
create index outbox_resolved on tributary.outbox using brin (resolved_at) with (autosummarize = on);
create index outbox_request on tributary.outbox (request_id) where state = 'in_flight';
create index outbox_inserted_done on tributary.outbox (resolved_at) where push_id is null and state = 'done';
create index outbox_rejected_request on tributary.outbox (request_id) where state = 'rejected';

create view tributary.outbox_status as
  select company, resource, push_id is null as is_inserted, state, null as outcome,
         count(*) as records, min(created_at) as oldest_at
    from tributary.outbox where state in ('pending', 'in_flight') group by 1, 2, 3, 4
  union all
  select company, resource, push_id is null, state, coalesce(code, 'unknown'), count(*), min(created_at)
    from tributary.outbox where state = 'rejected' group by 1, 2, 3, 4, 5
  union all
  select company, resource, push_id is null, 'done', outcome, count(*), min(created_at)
    from tributary.outbox where state = 'done' and resolved_at > (select tributary.now() - interval '1 day') group by 1, 2, 3, 5;
comment on view tributary.outbox_status is 'Rows of the outbox by company, resource and state: open rows, rejected rows, and rows that were done within a day.';
comment on column tributary.outbox_status.company is 'The name of the company in the configuration.';
comment on column tributary.outbox_status.resource is 'The path of the resource.';
comment on column tributary.outbox_status.is_inserted is 'Whether the rows were inserted by SQL; false for rows of a push.';
comment on column tributary.outbox_status.state is 'The state, as in tributary.outbox.';
comment on column tributary.outbox_status.outcome is 'The outcome of rows that are done; the code of rejected rows.';
comment on column tributary.outbox_status.records is 'The number of rows.';
comment on column tributary.outbox_status.oldest_at is 'When the oldest of the rows was inserted.';

create function tributary.outbox_key() returns trigger language plpgsql as $$
begin
  if new.externalid is null and json_typeof(new.record) = 'object' then
    new.externalid := new.record ->> 'externalid';
  end if;
  return new;
end $$;
comment on function tributary.outbox_key is 'Takes the externalid of a row from its record.';
create trigger outbox_key before insert on tributary.outbox for each row execute function tributary.outbox_key();

-- Why pushes are paused, as a sentence without its full stop; null where they are not. A part of the identity that one side
-- lacks is not compared.
create function tributary.push_pause_reason() returns text language plpgsql stable set search_path = pg_catalog as $$
declare
  confirmed record;
  differing text[];
begin
  -- A reader has no right to the other columns.
  select identity, pause_reason into confirmed from tributary.warehouse;
  if not found then return 'the row of tributary.warehouse is missing'; end if;
  if confirmed.pause_reason is not null then return confirmed.pause_reason; end if;
  select array_agg(split_part(o.part, '=', 1)) into differing
    from unnest(string_to_array(confirmed.identity, ' ')) as o(part)
    join unnest(string_to_array(tributary.database_identity(), ' ')) as n(part) on split_part(n.part, '=', 1) = split_part(o.part, '=', 1)
   where n.part <> o.part;
  if differing && array['database', 'warehouse', 'system'] then
    return 'the database was restored or copied, so the outbox may have forgotten what was sent';
  elsif differing && array['timeline'] then
    return 'the database was restored to an earlier time or failed over to a standby, so the outbox may have forgotten what was sent';
  end if;
  return null;
end
$$;
comment on function tributary.push_pause_reason() is 'Why all pushes are paused, as a sentence without its full stop; null where they are not.';
