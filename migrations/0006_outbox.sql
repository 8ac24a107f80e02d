-- Push: records to be written to the source, the requests that carry them, and what became of each.

create table tributary.pushes (
  id bigint generated always as identity primary key,
  company text not null,
  resource text not null,
  operation text not null check (operation in ('create', 'update', 'cancel')),
  source text not null,
  digest text not null,
  records bigint not null,
  known bigint not null default 0,
  created_at timestamptz not null default tributary.now(),
  finished_at timestamptz
);
comment on table tributary.pushes is 'What was given to be pushed as a whole: a file, or the rows of a query.';
comment on column tributary.pushes.source is 'Where the records came from, for people.';
comment on column tributary.pushes.digest is 'SHA-256 of what was given: while a push is not finished, giving the same again goes on with it.';
comment on column tributary.pushes.records is 'How many records were given.';
comment on column tributary.pushes.known is 'How many of them had been pushed before, with the same values: they belong to the earlier push.';
create unique index pushes_open on tributary.pushes (company, resource, operation, digest) where finished_at is null;
create index pushes_finished on tributary.pushes (finished_at) where finished_at is not null;

create table tributary.push_calls (
  id bigint generated always as identity primary key,
  company text not null,
  resource text not null,
  operation text not null check (operation in ('create', 'batch', 'update', 'cancel')),
  record_id text,
  if_match text,
  key text not null unique,
  key_scope text,
  body text,
  items integer not null,
  state text not null default 'open' check (state in ('open', 'answered', 'refused', 'settled')),
  formed_at timestamptz not null default tributary.now(),
  failures integer not null default 0,
  status integer,
  reason text,
  source text,
  settled_at timestamptz
);
comment on table tributary.push_calls is 'Requests that write. A call stands here, with its key and its exact bytes, before it is sent for the first time; it is sent again with the same key and the same bytes only.';
comment on column tributary.push_calls.key_scope is 'By whom the source knows the key: a fingerprint of the token. With another token it would take the same key for news.';
comment on column tributary.push_calls.body is 'The bytes, as UTF-8; null for a cancel, and once the call is no longer open.';
comment on column tributary.push_calls.state is 'open: it may have been sent, its outcome is not known; answered: the source said what became of each record; refused: the source refused it as a whole; settled: given up, what became of its records was looked up';
comment on column tributary.push_calls.formed_at is 'Not after the first send: the age of the key is counted from here.';
comment on column tributary.push_calls.failures is 'How often all retries ended with an answer that settles nothing.';
create index push_calls_open on tributary.push_calls (company, resource, id) where state = 'open';
create index push_calls_settled on tributary.push_calls (settled_at) where settled_at is not null;

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
  state text not null default 'waiting' check (state in ('waiting', 'sending', 'done', 'refused')),
  outcome text check (outcome in ('created', 'adopted', 'updated', 'cancelled', 'unchanged')),
  checked boolean not null default false,
  looked_up_at timestamptz,
  call_id bigint,
  position integer,
  attempts integer not null default 0,
  merges integer not null default 0,
  base json,
  code text,
  field text,
  reason text,
  problems json,
  differences json,
  created_at timestamptz not null default tributary.now(),
  settled_at timestamptz
);
comment on table tributary.outbox is 'Records to be written to the source. Insert (company, resource, record), or (company, resource, operation, externalid or record_id, record); tributary serve sends them.';
comment on column tributary.outbox.company is 'As the configuration calls it.';
comment on column tributary.outbox.externalid is 'Our own key of the record: taken from the record when it is not given.';
comment on column tributary.outbox.record_id is 'The source''s number of the record: given for an update or cancel, else known once it is done.';
comment on column tributary.outbox.record is 'The fields to write, as the write shape of the resource names them.';
comment on column tributary.outbox.push_id is 'The push it belongs to; null for rows that were inserted by SQL.';
comment on column tributary.outbox.line is 'Where it stands in what was given, from 1.';
comment on column tributary.outbox.state is 'waiting; sending: in a call whose outcome is not known yet; done; refused: for a person, see code, field and reason';
comment on column tributary.outbox.outcome is 'created; adopted (it was there already); updated; cancelled; unchanged (it was so already)';
comment on column tributary.outbox.checked is 'Whether the record was found to fit the write shape.';
comment on column tributary.outbox.looked_up_at is 'When the source was known not to have it yet.';
comment on column tributary.outbox.call_id is 'The call that it is in, or was settled by (tributary.push_calls); null while it waits.';
comment on column tributary.outbox.position is 'Its index in the call.';
comment on column tributary.outbox.attempts is 'How often it was in a call that did not say what became of it, or failed for it alone.';
comment on column tributary.outbox.base is 'The values that an update found when it first looked, to tell what others have changed since.';
comment on column tributary.outbox.differences is 'Fields in which the source holds something else than what was given: [{"field", "given", "held"}].';
create unique index outbox_once on tributary.outbox (company, resource, externalid) where operation = 'create' and externalid is not null;
create index outbox_open on tributary.outbox (company, resource, id) where state in ('waiting', 'sending');
create index outbox_open_of on tributary.outbox (company, resource, externalid)
  where state in ('waiting', 'sending') and operation <> 'create';
create index outbox_open_record on tributary.outbox (company, resource, record_id)
  where state in ('waiting', 'sending') and record_id is not null;
create index outbox_free on tributary.outbox (company, resource) where state in ('waiting', 'sending') and push_id is null;
create index outbox_by_push on tributary.outbox (push_id, state) where push_id is not null;
create index outbox_refused on tributary.outbox (company, resource, id) where state = 'refused';
create index outbox_settled on tributary.outbox using brin (settled_at) with (autosummarize = on);
create index outbox_by_call on tributary.outbox (call_id) where state = 'sending';
create index outbox_free_settled on tributary.outbox (settled_at) where push_id is null and state = 'done';
create index outbox_refused_by_call on tributary.outbox (call_id) where state = 'refused';

create function tributary.outbox_key() returns trigger language plpgsql as $$
begin
  if new.externalid is null and json_typeof(new.record) = 'object' then
    new.externalid := new.record ->> 'externalid';
  end if;
  return new;
end $$;
comment on function tributary.outbox_key is 'The key of a record that brings it along.';

create trigger outbox_key before insert on tributary.outbox for each row execute function tributary.outbox_key();
