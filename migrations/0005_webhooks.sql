-- Webhooks: accepted events, subscriptions with their secrets, and what may have been missed. Companies have the names
-- of the configuration here: a delivery is accepted before the source is asked which company a token belongs to.

create table tributary.inbox (
  id bigint generated always as identity primary key,
  company text not null,
  event_id text not null,
  event_type text not null,
  resource text,
  record_id text,
  record_modified_at text,
  occurred_at timestamptz,
  sent_at timestamptz not null,
  received_at timestamptz not null default tributary.now(),
  body bytea not null,
  state text not null default 'pending' check (state in ('pending', 'done', 'dead_letter', 'skipped')),
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default tributary.now(),
  resolved_at timestamptz,
  run_id bigint,
  resolution text,
  last_error text
);
comment on table tributary.inbox is 'Accepted events. A delivery is answered 2xx only after its event is stored here. To process an event again does no harm.';
comment on column tributary.inbox.resource is 'The path of the resource that the type names; null when it names no known one.';
comment on column tributary.inbox.record_id is 'The record to fetch; null reads what changed in the whole resource.';
comment on column tributary.inbox.record_modified_at is 'The record''s time of change as the event shows it: a hint, never loaded.';
comment on column tributary.inbox.occurred_at is 'When it fired, by the source''s clock.';
comment on column tributary.inbox.sent_at is 'The time that the accepted attempt was signed with.';
comment on column tributary.inbox.state is 'pending; done; dead_letter (it failed too often: tributary webhooks replay); skipped (it names nothing that is synced)';
comment on column tributary.inbox.next_attempt_at is 'The earliest time of the next attempt.';
comment on column tributary.inbox.run_id is 'The run that read its record.';
comment on column tributary.inbox.resolution is 'How it was resolved without a read of its own, or why it was skipped.';
comment on column tributary.inbox.last_error is 'Why the last attempt failed, why it is postponed, or why it is a dead letter.';
create unique index inbox_once on tributary.inbox (company, event_id);
create index inbox_dead_letters on tributary.inbox (company, id) where state = 'dead_letter';
create index inbox_postponed on tributary.inbox (company, resource, record_id) where state = 'pending' and last_error is not null;
create index inbox_resolved on tributary.inbox (resolved_at) where state in ('done', 'skipped');
-- Due events are found by their time. A look meets only what it fetches, however many events wait.
create index inbox_due on tributary.inbox (company, resource, next_attempt_at, id) where state = 'pending';

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
  state text not null check (state in ('active', 'paused', 'disabled', 'deleted')),
  paused boolean not null default false,
  failure_count bigint,
  last_delivery_at timestamptz,
  disabled_at timestamptz,
  unknown_events text[] not null default '{}',
  first_seen_at timestamptz not null default tributary.now(),
  checked_at timestamptz not null,
  healthy_at timestamptz,
  unhealthy_reason text check (unhealthy_reason in ('paused', 'disabled', 'missing')),
  gaps_evaluated_at timestamptz,
  log_cursor_at text,
  log_cursor_event text,
  log_read_at timestamptz,
  log_head_pending_since timestamptz,
  last_error text,
  remedy text,
  reenable_attempts integer not null default 0,
  reenable_last_attempt_at timestamptz,
  reenable_next_attempt_at timestamptz,
  primary key (company, subscription_id)
);
comment on table tributary.subscriptions is 'The subscriptions that deliver to us, as the last check saw them.';
comment on column tributary.subscriptions.state is 'deleted: the source no longer has it, or it was cancelled';
comment on column tributary.subscriptions.paused is 'Whether a person paused it. A disabled subscription may be paused as well.';
comment on column tributary.subscriptions.unknown_events is 'Wanted events that the source does not know.';
comment on column tributary.subscriptions.checked_at is 'When the source was last asked.';
comment on column tributary.subscriptions.healthy_at is 'When it was last seen active with every wanted event. It dropped no event that fired before this.';
comment on column tributary.subscriptions.unhealthy_reason is 'Why events may have been dropped since healthy_at: the first reason. It stays until the delivery gap is stored, also after a repair.';
comment on column tributary.subscriptions.gaps_evaluated_at is 'The snapshot whose delivery gaps were last stored; null before the first.';
comment on column tributary.subscriptions.log_cursor_at is 'The newest entry of the delivery log that was read, by the source''s own time, byte for byte.';
comment on column tributary.subscriptions.log_cursor_event is 'The event of that entry. Older entries are known.';
comment on column tributary.subscriptions.log_read_at is 'When the delivery log was last read.';
comment on column tributary.subscriptions.log_head_pending_since is 'Since when that entry is the newest, of an event with attempts to come; null otherwise.';
comment on column tributary.subscriptions.last_error is 'Why the last check of it or of its delivery log failed, with the remedy; null after a success.';
comment on column tributary.subscriptions.reenable_next_attempt_at is 'The earliest time of the next test delivery while it is disabled; null is at once.';

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

create view tributary.inbox_status as
  select company, resource, 'pending'::text as state, count(*) as events, min(received_at) as oldest_at
    from tributary.inbox where state = 'pending' group by 1, 2
  union all
  select company, resource, 'dead_letter', count(*), min(received_at)
    from tributary.inbox where state = 'dead_letter' group by 1, 2
  union all
  select company, resource, 'done', count(*), min(received_at)
    from tributary.inbox where state = 'done' and resolved_at > (select tributary.now() - interval '1 day') group by 1, 2
  union all
  select company, resource, 'skipped', count(*), min(received_at)
    from tributary.inbox where state = 'skipped' and resolved_at > (select tributary.now() - interval '1 day') group by 1, 2;
comment on view tributary.inbox_status is 'Events of the inbox by company, resource and state: pending ones, dead letters, and events that were resolved within a day.';
comment on column tributary.inbox_status.resource is 'Null for events that name no known resource.';
comment on column tributary.inbox_status.oldest_at is 'When the oldest of the events was received.';

create view tributary.processes_alive as
  select process_id, companies, started_at, heartbeat_at from tributary.processes
   where stopped_at is null and heartbeat_at > (select tributary.now() - interval '60 seconds');
comment on view tributary.processes_alive is 'Processes of tributary serve that are alive. Each sends a heartbeat every 20 seconds.';
