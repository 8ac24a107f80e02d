-- Addresses to which the changes of the feed are sent, what waits for them, and the latest attempts.

create table tributary.change_endpoints (
  name text primary key,
  url text not null,
  origin text not null check (origin in ('file', 'command')),
  only_company text,
  resources text[],
  operations text[],
  fields text[],
  batch_max integer not null default 1 check (batch_max between 1 and 200),
  allow_private boolean not null default false,
  retry_hours integer not null default 72 check (retry_hours > 0),
  secret bytea,
  previous_secret bytea,
  previous_until timestamptz,
  state text not null default 'active' check (state in ('active', 'paused', 'dead')),
  state_since timestamptz not null default tributary.now(),
  reason text,
  last_position bigint not null,
  last_token text,
  process_id text,
  leased_until timestamptz,
  fence bigint not null default 0,
  failing_since timestamptz,
  failures integer not null default 0,
  next_attempt_at timestamptz,
  succeeded_at timestamptz,
  attempts bigint not null default 0,
  delivered bigint not null default 0,
  created_at timestamptz not null default tributary.now()
);
comment on table tributary.change_endpoints is 'Addresses to which the changes of the feed are sent as signed webhooks.';
comment on column tributary.change_endpoints.origin is 'file: the configuration file states it, and its secrets are in the environment. command: tributary changes endpoints add made it.';
comment on column tributary.change_endpoints.only_company is 'The company whose changes are sent; null: of all.';
comment on column tributary.change_endpoints.resources is 'The resources whose changes are sent; null: all.';
comment on column tributary.change_endpoints.operations is 'The operations that are sent; null: all.';
comment on column tributary.change_endpoints.fields is 'An update is sent only if one of these fields changed; null: every update.';
comment on column tributary.change_endpoints.batch_max is 'Changes of one message at most; 1: a message for each change.';
comment on column tributary.change_endpoints.allow_private is 'Whether it may have a private address, and plain http.';
comment on column tributary.change_endpoints.retry_hours is 'How long a failed change, or an endpoint without any success, is tried again.';
comment on column tributary.change_endpoints.secret is 'The signing secret, sealed with the key of the installation; null where the environment has it.';
comment on column tributary.change_endpoints.previous_secret is 'The earlier signing secret, which signs too until previous_until.';
comment on column tributary.change_endpoints.state is 'active: changes are sent. paused: a person stopped it. dead: it failed for too long, or cannot be read on for. Changes wait in the feed.';
comment on column tributary.change_endpoints.reason is 'Why it is paused or dead.';
comment on column tributary.change_endpoints.last_position is 'Every change up to this position of the feed is delivered, not meant for the endpoint, or in change_retries.';
comment on column tributary.change_endpoints.last_token is 'The token of the position, as hexadecimal digits.';
comment on column tributary.change_endpoints.process_id is 'The process that sends.';
comment on column tributary.change_endpoints.leased_until is 'Another process may send after this time.';
comment on column tributary.change_endpoints.fence is 'Rises with each process that starts sending, and with each change of the position by a person.';
comment on column tributary.change_endpoints.failing_since is 'The first failure after the last success.';
comment on column tributary.change_endpoints.failures is 'Rounds in a row without a success.';
comment on column tributary.change_endpoints.next_attempt_at is 'Nothing is sent before this time.';
comment on column tributary.change_endpoints.succeeded_at is 'The last success.';
comment on column tributary.change_endpoints.attempts is 'Messages sent so far, with those that failed.';
comment on column tributary.change_endpoints.delivered is 'Changes delivered so far.';

create table tributary.change_retries (
  endpoint text not null references tributary.change_endpoints (name) on delete cascade,
  "position" bigint not null,
  company_number bigint not null,
  resource text not null,
  record_id bigint,
  state text not null default 'waiting' check (state in ('waiting', 'dead')),
  attempts integer not null default 0,
  failed_at timestamptz,
  next_attempt_at timestamptz not null,
  error text,
  primary key (endpoint, "position")
);
create index change_retries_state on tributary.change_retries (endpoint, state, "position");
comment on table tributary.change_retries is 'Changes that an endpoint has not accepted. The feed and the history have their contents.';
comment on column tributary.change_retries."position" is 'The position in the feed.';
comment on column tributary.change_retries.company_number is 'The number of the company.';
comment on column tributary.change_retries.record_id is 'The record; null for a truncate, before which no later change of the resource is sent.';
comment on column tributary.change_retries.state is 'waiting: it is sent again, and later changes of the record after it. dead: it is sent again only on request.';
comment on column tributary.change_retries.attempts is 'Failed attempts; 0 where it waits for an earlier change.';
comment on column tributary.change_retries.failed_at is 'The first failed attempt.';

create table tributary.change_attempts (
  endpoint text not null references tributary.change_endpoints (name) on delete cascade,
  slot integer not null,
  number bigint not null,
  message_id text not null,
  first_position bigint not null,
  changes integer not null,
  result text not null check (result in ('delivered', 'failed', 'dead', 'obsolete')),
  status integer,
  error text,
  duration_ms integer not null,
  at timestamptz not null default tributary.now(),
  primary key (endpoint, slot)
) with (fillfactor = 50);
comment on table tributary.change_attempts is 'The delivery log: the latest attempts of each endpoint, which replace the oldest ones.';
comment on column tributary.change_attempts.slot is 'The number modulo the length of the log.';
comment on column tributary.change_attempts.number is 'Counts the attempts of the endpoint.';
comment on column tributary.change_attempts.message_id is 'The header webhook-id.';
comment on column tributary.change_attempts.first_position is 'The position of the first change of the message.';
comment on column tributary.change_attempts.changes is 'The number of changes of the message.';
comment on column tributary.change_attempts.result is 'delivered, failed (it is sent again), dead (it is not), obsolete (a truncate made it void before it was sent).';
comment on column tributary.change_attempts.status is 'The status of the answer; null without one.';
