-- Webhooks: accepted events, subscriptions with their secrets, and what may have been missed. Companies have the names
-- of the configuration here: a delivery is accepted before the source is asked which company a token belongs to.

-- Webhooks: events accepted and not yet acted on, what is subscribed to and with which secrets, and what may have been
-- missed. Companies stand here under the names that the configuration gives them: a delivery is accepted before anybody
-- asks the source which company a token belongs to.
create table tributary.inbox (
  id bigint generated always as identity primary key,
  company text not null,
  event_id text not null,
  event_type text not null,
  resource text,
  record_id text,
  stamp text,
  occurred_at timestamptz,
  sent_at timestamptz not null,
  received_at timestamptz not null default tributary.now(),
  body bytea not null,
  state text not null default 'waiting' check (state in ('waiting', 'done', 'dead', 'ignored')),
  attempts integer not null default 0,
  due_at timestamptz not null default tributary.now(),
  settled_at timestamptz,
  run_id bigint,
  reason text
);
comment on table tributary.inbox is 'Events accepted. A delivery is answered 2xx only after its event stands here; acting on it may be repeated without harm.';
comment on column tributary.inbox.resource is 'The path of the resource that the type names; null when it names none that is known.';
comment on column tributary.inbox.record_id is 'The record to read again; null reads what changed in the whole resource.';
comment on column tributary.inbox.stamp is 'The record''s own time of change as the event shows it: a hint, never loaded.';
comment on column tributary.inbox.occurred_at is 'When it fired, by the source''s clock.';
comment on column tributary.inbox.sent_at is 'The time that the accepted attempt was signed with.';
comment on column tributary.inbox.state is 'waiting; done; dead (given up after bounded attempts, kept for a person: tributary webhooks replay); ignored (asks for nothing that is synced)';
comment on column tributary.inbox.due_at is 'Not tried before this.';
comment on column tributary.inbox.run_id is 'The run that read what it asked for.';
comment on column tributary.inbox.reason is 'Why it is dead or ignored, why the last attempt failed, or how it was settled without a read of its own.';
create unique index inbox_once on tributary.inbox (company, event_id);
create index inbox_dead on tributary.inbox (company, id) where state = 'dead';
create index inbox_put_off on tributary.inbox (company, resource, record_id) where state = 'waiting' and reason is not null;
create index inbox_settled on tributary.inbox (settled_at) where state in ('done', 'ignored');
-- Events that are due are found by their time, in the index that every insert pays for already: however many are put off,
-- or wait, a look meets only what it takes.
create index inbox_due on tributary.inbox (company, resource, due_at, id) where state = 'waiting';

create table tributary.inbox_claims (
  company text not null,
  resource text not null,
  owner text not null,
  until timestamptz not null,
  primary key (company, resource)
);
comment on table tributary.inbox_claims is 'Which process works on the events of a resource, until when unless it says so again. A courtesy: the fence is the guarantee.';

create table tributary.webhook_secrets (
  id bigint generated always as identity primary key,
  company text not null,
  subscription_id text,
  sealed bytea not null,
  state text not null check (state in ('next', 'current', 'previous')),
  created_at timestamptz not null default tributary.now(),
  accepted_until timestamptz
);
comment on table tributary.webhook_secrets is 'Signing secrets, encrypted with a key that is derived from the company''s token: of no use to whoever reads this table.';
comment on column tributary.webhook_secrets.state is 'next: stored before the source is told, so that no delivery signed with it is refused; current; previous: accepted until accepted_until';
create index webhook_secrets_by_company on tributary.webhook_secrets (company, subscription_id);

create table tributary.subscriptions (
  company text not null,
  subscription_id text not null,
  url text not null,
  events text[] not null,
  description text,
  state text not null check (state in ('active', 'paused', 'disabled', 'gone')),
  failcount bigint,
  last_delivery_at timestamptz,
  disabled_at timestamptz,
  first_seen_at timestamptz not null default tributary.now(),
  checked_at timestamptz not null,
  sound_at timestamptz,
  unsound text check (unsound in ('paused', 'disabled', 'missing')),
  refused text[] not null default '{}',
  judged_at timestamptz,
  log_read_to text,
  log_read_at timestamptz,
  paused boolean not null default false,
  log_read_event text,
  log_waits_at timestamptz,
  problem text,
  remedy text,
  revive_tries integer not null default 0,
  revive_tried_at timestamptz,
  revive_due_at timestamptz,
  primary key (company, subscription_id)
);
comment on table tributary.subscriptions is 'The subscriptions that deliver to us, as they were when last looked at.';
comment on column tributary.subscriptions.state is 'gone: the source no longer has it, or it was cancelled';
comment on column tributary.subscriptions.checked_at is 'When the source was last asked.';
comment on column tributary.subscriptions.sound_at is 'When it was last seen active with every event that is wanted: nothing fired before this was dropped by it.';
comment on column tributary.subscriptions.unsound is 'Why events may have been dropped since sound_at: the first reason that was seen. Stays until the gap is written down, although the subscription may have been mended.';
comment on column tributary.subscriptions.refused is 'Events that are wanted and that the source says it does not know.';
comment on column tributary.subscriptions.judged_at is 'The look after which it was last written down what it may have dropped; null before the first.';
comment on column tributary.subscriptions.log_read_to is 'The newest entry of the delivery log that was looked at, by the source''s own time, byte for byte.';
comment on column tributary.subscriptions.log_read_at is 'When the delivery log was last read: down to what an earlier look had seen, or as far as a look goes.';
comment on column tributary.subscriptions.paused is 'Whether a person paused it, whatever its state is: one that is disabled may be paused as well.';
comment on column tributary.subscriptions.log_read_event is 'The event of the newest entry of the delivery log that was looked at: what is older is known.';
comment on column tributary.subscriptions.log_waits_at is 'Since when the newest entry of the delivery log is this one, and of an event whose attempts have not ended; null when it is of another.';
comment on column tributary.subscriptions.problem is 'Why the last look at it or at its delivery log failed, and in remedy what to do; null while looks succeed.';
comment on column tributary.subscriptions.revive_due_at is 'Disabled, it is not tested again before this; null is at once. revive_tries and revive_tried_at tell of the tests that failed.';

create table tributary.receivers (
  instance text primary key,
  companies text[] not null,
  began_at timestamptz not null default tributary.now(),
  alive_at timestamptz not null default tributary.now(),
  ended_at timestamptz
);
comment on table tributary.receivers is 'Processes that receive deliveries, and when each last proved that it can store them: between these times nothing was received.';

create table tributary.gaps (
  id bigint generated always as identity primary key,
  company text not null,
  subscription_id text,
  resource text not null,
  cause text not null check (cause in ('abandoned', 'lost', 'disabled', 'paused', 'missing', 'down', 'dropped', 'overflow')),
  detail text not null,
  began_at timestamptz,
  ended_at timestamptz,
  found_at timestamptz not null default tributary.now(),
  events text[] not null default '{}',
  tries integer not null default 0,
  tried_at timestamptz,
  due_at timestamptz not null default tributary.now(),
  reason text,
  closed_at timestamptz,
  closed_by text,
  needs_full boolean not null default false
);
comment on table tributary.gaps is 'Times in which events of a resource may have been dropped. Closed by a read of the resource that began after the gap had ended.';
comment on column tributary.gaps.cause is 'abandoned: the source gave an event up; lost: it delivered one that is not in the inbox; disabled, paused: the subscription was; missing: there was no subscription for the resource; down: nobody could look at the subscription for long; dropped: the log shows that what waited was dropped; overflow: more was delivered than a look goes through';
comment on column tributary.gaps.began_at is 'By the warehouse''s clock; null when nobody knows.';
comment on column tributary.gaps.ended_at is 'Null while it lasts.';
comment on column tributary.gaps.events is 'The events that are known to be lost, so that the log does not show them as news again.';
comment on column tributary.gaps.due_at is 'Not tried before this: to revive the subscription while it lasts, to read the resource again after that.';
comment on column tributary.gaps.reason is 'Why the last try did not help.';
comment on column tributary.gaps.closed_by is 'What proved it closed.';
comment on column tributary.gaps.needs_full is 'Whether it may hide a record that was removed without trace: only a run that read every record proves it closed.';
create unique index gaps_open on tributary.gaps (company, resource, cause, coalesce(subscription_id, '')) where closed_at is null;
create index gaps_closed on tributary.gaps (closed_at) where closed_at is not null;
