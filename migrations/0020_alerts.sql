-- Alerts: the conditions that a person has to know, the messages about them, and the silences.

alter table tributary.tasks add column failure_kind text;
comment on column tributary.tasks.failure_kind is 'The kind of the failure, as in tributary.runs.error_kind; null unless the status is failed.';
-- short: no row is in it at first
create index tasks_failed on tributary.tasks (company) where failure_kind is not null;

create table tributary.alert_evaluations (
  is_this boolean primary key default true check (is_this),
  evaluated_at timestamptz
);
comment on table tributary.alert_evaluations is 'One row: the last evaluation of the conditions. Its lock admits one evaluation at a time.';
comment on column tributary.alert_evaluations.evaluated_at is 'Null before the first.';
insert into tributary.alert_evaluations (evaluated_at) values (null);

create table tributary.alert_conditions (
  id bigint generated always as identity primary key,
  kind text not null
    check (kind in ('late', 'failing', 'token', 'quarantine', 'gap', 'endpoint', 'budget', 'disk', 'restore')),
  company text not null,
  subject text not null,
  level integer not null check (level >= 0),
  since timestamptz not null,
  observed_at timestamptz not null,
  started_at timestamptz,
  absent_at timestamptz,
  what text not null,
  remedy text not null,
  unique (kind, company, subject)
);
comment on table tributary.alert_conditions is 'Conditions that are observed, or were until a moment ago. A row is deleted when its condition ends.';
comment on column tributary.alert_conditions.company is 'The company; empty for a condition of the whole installation.';
comment on column tributary.alert_conditions.subject is 'The resource or endpoint; empty where the kind and the company say it all.';
comment on column tributary.alert_conditions.level is 'The size of the condition in classes, from 0. Its kind decides from which level on it is critical.';
comment on column tributary.alert_conditions.since is 'When it began, as far as it is known; else when it was first observed.';
comment on column tributary.alert_conditions.observed_at is 'When it was first observed without a break. It starts when it has been observed for long enough.';
comment on column tributary.alert_conditions.started_at is 'When it started; null before.';
comment on column tributary.alert_conditions.absent_at is 'Since when it is no longer observed; null while it is. It ends when it has been absent for long enough.';
comment on column tributary.alert_conditions.what is 'What happened, as a sentence without its full stop; remedy is what to do.';

create table tributary.alert_messages (
  id bigint generated always as identity primary key,
  condition bigint not null,
  route text not null,
  event text not null check (event in ('start', 'worse', 'end')),
  kind text not null,
  company text not null,
  subject text not null,
  level integer not null,
  severity text not null check (severity in ('warning', 'critical')),
  since timestamptz not null,
  at timestamptz not null,
  what text not null,
  remedy text not null,
  state text not null default 'pending' check (state in ('pending', 'sending', 'sent', 'failed', 'uncertain')),
  due_at timestamptz not null,
  batch bigint,
  lease_owner text,
  lease_expires_at timestamptz,
  sending_at timestamptz,
  first_attempt_at timestamptz,
  attempts integer not null default 0,
  resolved_at timestamptz,
  last_error text,
  unique (condition, route, event, level)
);
comment on table tributary.alert_messages is 'The messages about conditions, for each route: those that wait, and those that were sent. The evaluation writes them in the transaction that changes the condition.';
comment on column tributary.alert_messages.condition is 'The condition, whose row may be gone. It has one message of each event and level on a route.';
comment on column tributary.alert_messages.route is 'The name of the route in the configuration.';
comment on column tributary.alert_messages.state is 'pending; sending (a process has a lease); sent; failed (given up after a day); uncertain (the receiver may have it, so that it is not sent again).';
comment on column tributary.alert_messages.due_at is 'When it is sent, or tried again.';
comment on column tributary.alert_messages.batch is 'The messages that are sent together have the id of the first of them, which is also the idempotency key; null before the first attempt.';
comment on column tributary.alert_messages.lease_owner is 'The process that sends it until lease_expires_at.';
comment on column tributary.alert_messages.sending_at is 'When the request began whose outcome is not known; null while no request is under way.';
comment on column tributary.alert_messages.resolved_at is 'When it was sent, or given up; null before.';
create index alert_messages_open on tributary.alert_messages (route, due_at) where state in ('pending', 'sending');
create index alert_messages_resolved on tributary.alert_messages (resolved_at) where resolved_at is not null;

create table tributary.alert_silences (
  id bigint generated always as identity primary key,
  kind text,
  only_company text,
  subject text,
  until timestamptz not null,
  reason text,
  created_by text not null,
  created_at timestamptz not null default tributary.now()
);
comment on table tributary.alert_silences is 'Silences of conditions (tributary alerts silence). A silenced condition sends nothing; if it still holds at the end, it starts then.';
comment on column tributary.alert_silences.kind is 'Null for every kind; only_company and subject likewise.';
