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
comment on column tributary.inbox.id is 'The number of the event in this warehouse.';
comment on column tributary.inbox.company is 'The name of the company in the configuration.';
comment on column tributary.inbox.event_id is 'The id of the event at the source.';
comment on column tributary.inbox.event_type is 'The type of the event: resource and verb.';
comment on column tributary.inbox.resource is 'The path of the resource that the type names; null when it names no known one.';
comment on column tributary.inbox.record_id is 'The record to fetch; null reads what changed in the whole resource.';
comment on column tributary.inbox.record_modified_at is 'The record''s time of change as the event shows it: a hint, never loaded.';
comment on column tributary.inbox.occurred_at is 'When it fired, by the source''s clock.';
comment on column tributary.inbox.sent_at is 'The time that the accepted attempt was signed with.';
comment on column tributary.inbox.received_at is 'When the event was stored.';
comment on column tributary.inbox.body is 'The body of the delivery, byte for byte.';
comment on column tributary.inbox.state is 'pending; done; dead_letter (it failed too often: tributary webhooks replay); skipped (it names nothing that is synced)';
comment on column tributary.inbox.attempts is 'Failed attempts to process the event.';
comment on column tributary.inbox.next_attempt_at is 'The earliest time of the next attempt.';
comment on column tributary.inbox.resolved_at is 'When the event was done, skipped or given up; null before.';
comment on column tributary.inbox.run_id is 'The run that read its record, or failed to; null where none did.';
comment on column tributary.inbox.resolution is 'How it was resolved without a read of its own, or why it was skipped.';
comment on column tributary.inbox.last_error is 'Why the last attempt failed, why it is postponed, or why it is a dead letter.';
create unique index inbox_once on tributary.inbox (company, event_id);
create index inbox_dead_letters on tributary.inbox (company, id) where state = 'dead_letter';
create index inbox_postponed on tributary.inbox (company, resource, record_id) where state = 'pending' and last_error is not null;
create index inbox_resolved on tributary.inbox (resolved_at) where state in ('done', 'skipped');
-- Due events are found by their time. A look meets only what it fetches, however many events wait.
create index inbox_due on tributary.inbox (company, resource, next_attempt_at, id) where state = 'pending';

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
comment on column tributary.inbox_status.company is 'The name of the company in the configuration.';
comment on column tributary.inbox_status.resource is 'Null for events that name no known resource.';
comment on column tributary.inbox_status.state is 'The state, as in tributary.inbox.';
comment on column tributary.inbox_status.events is 'The number of events.';
comment on column tributary.inbox_status.oldest_at is 'When the oldest of the events was received.';

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
comment on column tributary.webhook_secrets.id is 'The number of the secret.';
comment on column tributary.webhook_secrets.company is 'The name of the company in the configuration.';
comment on column tributary.webhook_secrets.subscription_id is 'The subscription whose deliveries it signs; null before the source has answered.';
comment on column tributary.webhook_secrets.sealed is 'The encrypted secret.';
comment on column tributary.webhook_secrets.state is 'next: stored before the source is told, so that no delivery signed with it is refused; current; previous: accepted until accepted_until';
comment on column tributary.webhook_secrets.created_at is 'When the secret was stored.';
comment on column tributary.webhook_secrets.accepted_until is 'Until when deliveries with an earlier secret are accepted; null without an end.';
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
  delayed_at timestamptz,
  tested_at timestamptz,
  test_error text,
  tested_after timestamptz,
  primary key (company, subscription_id)
);
comment on table tributary.subscriptions is 'The subscriptions that deliver to us, as the last check saw them.';
comment on column tributary.subscriptions.company is 'The name of the company in the configuration.';
comment on column tributary.subscriptions.subscription_id is 'The id of the subscription at the source.';
comment on column tributary.subscriptions.url is 'The address that it delivers to.';
comment on column tributary.subscriptions.events is 'The events that it delivers.';
comment on column tributary.subscriptions.description is 'The description at the source.';
comment on column tributary.subscriptions.state is 'deleted: the source no longer has it, or it was cancelled';
comment on column tributary.subscriptions.paused is 'Whether a person paused it. A disabled subscription may be paused as well.';
comment on column tributary.subscriptions.failure_count is 'Failed attempts in a row, as the source counts them.';
comment on column tributary.subscriptions.last_delivery_at is 'The last delivery, as the source states it.';
comment on column tributary.subscriptions.disabled_at is 'When the source disabled it; null while it is enabled.';
comment on column tributary.subscriptions.unknown_events is 'Wanted events that the source does not know.';
comment on column tributary.subscriptions.first_seen_at is 'When a check first found it.';
comment on column tributary.subscriptions.checked_at is 'When the source was last asked.';
comment on column tributary.subscriptions.healthy_at is 'When it was last seen active with every wanted event. It dropped no event that fired before this.';
comment on column tributary.subscriptions.unhealthy_reason is 'Why events may have been dropped since healthy_at: the first reason. It stays until the delivery gap is stored, also after a repair.';
comment on column tributary.subscriptions.gaps_evaluated_at is 'The snapshot whose delivery gaps were last stored; null before the first.';
comment on column tributary.subscriptions.log_cursor_at is 'The newest entry of the delivery log that was read, by the source''s own time, byte for byte.';
comment on column tributary.subscriptions.log_cursor_event is 'The event of that entry. Older entries are known.';
comment on column tributary.subscriptions.log_read_at is 'When the delivery log was last read.';
comment on column tributary.subscriptions.log_head_pending_since is 'Since when that entry is the newest, of an event with attempts to come; null otherwise.';
comment on column tributary.subscriptions.last_error is 'Why the last check of it or of its delivery log failed, with the remedy; null after a success.';
comment on column tributary.subscriptions.remedy is 'What a person can do about last_error.';
comment on column tributary.subscriptions.reenable_attempts is 'Test deliveries since it was disabled.';
comment on column tributary.subscriptions.reenable_last_attempt_at is 'The last of them.';
comment on column tributary.subscriptions.reenable_next_attempt_at is 'The earliest time of the next test delivery while it is disabled; null is at once.';
comment on column tributary.subscriptions.delayed_at is 'When a check last saw a failed, repeated or slow delivery. Events behind it may be late.';
comment on column tributary.subscriptions.tested_at is 'When its last test delivery was sent; null before the first.';
comment on column tributary.subscriptions.test_error is 'Why the last test delivery did not arrive; null where it arrived.';
comment on column tributary.subscriptions.tested_after is 'The last delivery before that test, by the source''s clock. A later one proves that deliveries arrive again.';

-- Ends with the work queue.
create table tributary.delivery_gaps (
  id bigint generated always as identity primary key,
  company text not null,
  subscription_id text,
  resource text not null,
  cause text not null check (cause in ('event_lost', 'subscription_inactive', 'unobserved')),
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
comment on column tributary.delivery_gaps.id is 'The number of the gap.';
comment on column tributary.delivery_gaps.company is 'The name of the company in the configuration.';
comment on column tributary.delivery_gaps.subscription_id is 'The subscription whose events may have been dropped.';
comment on column tributary.delivery_gaps.resource is 'The path of the resource.';
comment on column tributary.delivery_gaps.cause is 'event_lost: the delivery log has an event that is not in the inbox; subscription_inactive: no active subscription delivered the events; unobserved: the delivery log was not read, or not to its end';
comment on column tributary.delivery_gaps.detail is 'What was observed, for people.';
comment on column tributary.delivery_gaps.began_at is 'By the warehouse''s clock; null when it is unknown.';
comment on column tributary.delivery_gaps.ended_at is 'When the last event fired that it may hide; null while it lasts.';
comment on column tributary.delivery_gaps.detected_at is 'When the gap was found.';
comment on column tributary.delivery_gaps.events is 'Events that are known to be lost. The next checks of the log ignore them.';
comment on column tributary.delivery_gaps.attempts is 'Failed attempts to enable the subscription while the gap lasts, and to read the resource after that.';
comment on column tributary.delivery_gaps.last_attempt_at is 'When the last attempt to close it was made.';
comment on column tributary.delivery_gaps.next_attempt_at is 'The earliest time of the next attempt.';
comment on column tributary.delivery_gaps.last_error is 'Why the last attempt did not close it.';
comment on column tributary.delivery_gaps.closed_at is 'When the gap was closed; null while it is open.';
comment on column tributary.delivery_gaps.closed_by is 'The run that closed it.';
comment on column tributary.delivery_gaps.requires_full_scan is 'Whether it may hide a removal without trace: only a full scan closes it.';
create unique index delivery_gaps_open on tributary.delivery_gaps (company, resource, cause, coalesce(subscription_id, '')) where closed_at is null;
create index delivery_gaps_closed on tributary.delivery_gaps (closed_at) where closed_at is not null;

-- Ends with the work queue.
create table tributary.event_checks (
  company text primary key,
  checked_at timestamptz not null,
  delay interval not null,
  age_max interval not null,
  expires_at timestamptz not null,
  resources text[] not null,
  withdrawn_at timestamptz
);
comment on table tributary.event_checks is 'The last check of a company''s subscriptions that found every delivery on time.';
comment on column tributary.event_checks.company is 'The name of the company in the configuration.';
comment on column tributary.event_checks.checked_at is 'The time from before that check. Every event that fired before checked_at - delay had been delivered.';
comment on column tributary.event_checks.delay is 'The longest time from a change to the delivery of its event.';
comment on column tributary.event_checks.age_max is 'The highest age of the proof while checks are made on time.';
comment on column tributary.event_checks.expires_at is 'When the proof ends unless another check renews it.';
comment on column tributary.event_checks.resources is 'The resources whose every change is announced by events of healthy subscriptions. A later check withdraws those for which that no longer holds.';
comment on column tributary.event_checks.withdrawn_at is 'When a check last withdrew a resource, so that the deferral of its poll has to end; null before.';
