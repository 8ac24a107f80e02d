-- Webhooks: what a look at a subscription met, and what proves a gap closed.

alter table tributary.subscriptions
  add column paused boolean not null default false,
  add column log_read_event text,
  add column log_waits_at timestamptz,
  add column problem text,
  add column remedy text,
  add column revive_tries integer not null default 0,
  add column revive_tried_at timestamptz,
  add column revive_due_at timestamptz;
comment on column tributary.subscriptions.paused is 'Whether a person paused it, whatever its state is: one that is disabled may be paused as well.';
comment on column tributary.subscriptions.log_read_at is 'When the delivery log was last read: down to what an earlier look had seen, or as far as a look goes.';
comment on column tributary.subscriptions.log_read_event is 'The event of the newest entry of the delivery log that was looked at: what is older is known.';
comment on column tributary.subscriptions.log_waits_at is 'Since when the newest entry of the delivery log is this one, and of an event whose attempts have not ended; null when it is of another.';
comment on column tributary.subscriptions.problem is 'Why the last look at it or at its delivery log failed, and in remedy what to do; null while looks succeed.';
comment on column tributary.subscriptions.revive_due_at is 'Disabled, it is not tested again before this; null is at once. revive_tries and revive_tried_at tell of the tests that failed.';

alter table tributary.gaps
  add column needs_full boolean not null default false,
  drop constraint gaps_cause_check,
  add constraint gaps_cause_check
    check (cause in ('abandoned', 'lost', 'disabled', 'paused', 'missing', 'down', 'dropped', 'overflow'));
comment on column tributary.gaps.cause is 'abandoned: the source gave an event up; lost: it delivered one that is not in the inbox; disabled, paused: the subscription was; missing: there was no subscription for the resource; down: nobody could look at the subscription for long; dropped: the log shows that what waited was dropped; overflow: more was delivered than a look goes through';
comment on column tributary.gaps.needs_full is 'Whether it may hide a record that was removed without trace: only a run that read every record proves it closed.';

-- Events that are due are found by their time, in the index that every insert pays for already: however many are put off,
-- or wait, a look meets only what it takes.
create index inbox_due on tributary.inbox (company, resource, due_at, id) where state = 'waiting';
drop index tributary.inbox_waiting;
