-- Interfaces of installations with many companies: the counted state of each company, and the indexes that find it.
create table tributary.company_states (
  company text primary key,
  counted_at timestamptz not null default tributary.now(),
  late_at timestamptz,
  state text not null
    check (state in ('failing', 'late', 'attention', 'never-synced', 'blocked', 'paused', 'fresh')),
  severity double precision not null,
  resources integer not null,
  failing integer not null,
  late integer not null,
  never_synced integer not null,
  blocked integer not null,
  paused integer not null,
  fresh integer not null,
  lateness double precision not null,
  quarantined bigint not null,
  dead_letters bigint not null,
  gaps bigint not null,
  rejected bigint not null,
  subscriptions_down bigint not null,
  worst_resource text,
  error text,
  remedy text
);
comment on table tributary.company_states is 'The state of each company, counted by one process of tributary serve: within seconds after a change to the worse, and when a resource may have become late. Interfaces read it where there are too many companies to read every resource.';
comment on column tributary.company_states.late_at is 'The earliest time at which a resource that is fresh exceeds its target; null when none can. The company is counted again then.';
comment on column tributary.company_states.state is 'The worst state of its resources; attention: it has records in quarantine, dead letters, delivery gaps, rejected rows or a subscription that is not active.';
comment on column tributary.company_states.severity is 'Orders companies by state and then by lateness; the highest is the worst.';
comment on column tributary.company_states.failing is 'Resources whose last run failed. Late, never_synced, blocked, paused and fresh likewise count resources; a resource counts once, by its worst state.';
comment on column tributary.company_states.lateness is 'The highest age of a late or failing resource divided by its target; 0 without one.';
comment on column tributary.company_states.quarantined is 'Open quarantine entries.';
comment on column tributary.company_states.rejected is 'Rows of the outbox that the source or the validation rejected.';
comment on column tributary.company_states.subscriptions_down is 'Subscriptions that are paused, disabled or deleted.';
comment on column tributary.company_states.worst_resource is 'The failing or late resource with the highest lateness; error and remedy are those of its last run.';
create index company_states_worst on tributary.company_states (severity desc, company);

-- Names of runs and quarantine entries.
-- short: a row for each company
create index companies_by_id on tributary.companies (company_id);

-- Tasks that changed to the worse, for the count of their companies.
-- short: a task for each company and resource
create index tasks_troubled on tributary.tasks (company, updated_at)
  where failures > 0 or paused_at is not null;
