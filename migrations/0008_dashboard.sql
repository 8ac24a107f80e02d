-- Access to the dashboard: what signs its sessions and forms, what proves its password, and the open sessions.
create table tributary.dashboard_key (
  single boolean primary key default true check (single),
  key bytea not null check (octet_length(key) = 32),
  made_at timestamptz not null default tributary.now()
);
comment on table tributary.dashboard_key is 'A random key of this installation, shared by its processes. It signs sessions and forms of the page; it is not derived from the password.';

create table tributary.dashboard_password (
  single boolean primary key default true check (single),
  generation text not null,
  salt bytea not null,
  hash bytea not null,
  set_at timestamptz not null default tributary.now()
);
comment on table tributary.dashboard_password is 'The verifier of the page''s password: scrypt over a random salt. A changed password has another generation, and ends all sessions.';

create table tributary.dashboard_sessions (
  id bytea primary key,
  generation text not null,
  began_at timestamptz not null default tributary.now(),
  ends_at timestamptz not null
);
comment on table tributary.dashboard_sessions is 'Open sessions of the page. A session whose row is removed has ended.';
comment on column tributary.dashboard_sessions.id is 'SHA-256 of the session: who reads this table has no session.';
create index dashboard_sessions_by_end on tributary.dashboard_sessions (ends_at);
