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

create table tributary.inbox_leases (
  company text not null,
  resource text not null,
  owner text not null,
  expires_at timestamptz not null,
  primary key (company, resource)
);
comment on table tributary.inbox_leases is 'The process that processes the events of a resource. A courtesy: the fence is the guarantee.';

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

create table tributary.processes (
  process_id text primary key,
  companies text[] not null,
  started_at timestamptz not null default tributary.now(),
  heartbeat_at timestamptz not null default tributary.now(),
  stopped_at timestamptz
);
comment on table tributary.processes is 'Processes of tributary serve. A heartbeat proves that the process can store deliveries.';
comment on column tributary.processes.companies is 'The companies whose deliveries it receives.';
comment on column tributary.processes.stopped_at is 'When it stopped on purpose; null while it is alive, and after a kill.';

create table tributary.delivery_gaps (
  id bigint generated always as identity primary key,
  company text not null,
  subscription_id text,
  resource text not null,
  cause text not null check (cause in ('abandoned', 'acknowledged_not_stored', 'disabled', 'paused', 'missing',
    'unobserved', 'dropped', 'overflow')),
  detail text not null,
  began_at timestamptz,
  ended_at timestamptz,
  detected_at timestamptz not null default tributary.now(),
  events text[] not null default '{}',
  attempts integer not null default 0,
  last_attempt_at timestamptz,
  next_attempt_at timestamptz not null default tributary.now(),
  last_error text,
  closed_at timestamptz,
  closed_by text,
  requires_full_scan boolean not null default false
);
comment on table tributary.delivery_gaps is 'Periods in which events of a resource may have been dropped. A run that began after the end of a gap closes it.';
comment on column tributary.delivery_gaps.cause is 'abandoned: the source gave an event up; acknowledged_not_stored: it delivered one that is not in the inbox; disabled, paused: the subscription was; missing: no subscription listed the events; unobserved: the subscription was not checked for long; dropped: the delivery log shows that waiting events were dropped; overflow: the log was longer than a check reads';
comment on column tributary.delivery_gaps.began_at is 'By the warehouse''s clock; null when it is unknown.';
comment on column tributary.delivery_gaps.ended_at is 'Null while it lasts.';
comment on column tributary.delivery_gaps.events is 'Events that are known to be lost. The next checks of the log ignore them.';
comment on column tributary.delivery_gaps.attempts is 'Failed attempts to enable the subscription while the gap lasts, and to read the resource after that.';
comment on column tributary.delivery_gaps.next_attempt_at is 'The earliest time of the next attempt.';
comment on column tributary.delivery_gaps.last_error is 'Why the last attempt did not close it.';
comment on column tributary.delivery_gaps.closed_by is 'The run that closed it.';
comment on column tributary.delivery_gaps.requires_full_scan is 'Whether it may hide a removal without trace: only a full scan closes it.';
create unique index delivery_gaps_open on tributary.delivery_gaps (company, resource, cause, coalesce(subscription_id, '')) where closed_at is null;
create index delivery_gaps_closed on tributary.delivery_gaps (closed_at) where closed_at is not null;
