-- Tokens by which programs read the dashboard.
create table tributary.access_tokens (
  name text primary key,
  digest bytea not null unique check (octet_length(digest) = 32),
  created_at timestamptz not null default tributary.now(),
  created_by text not null,
  used_at timestamptz
);
comment on table tributary.access_tokens is 'Tokens by which programs read the dashboard. A token whose row is removed is revoked.';
comment on column tributary.access_tokens.name is 'Name of the token, for people and for its revocation.';
comment on column tributary.access_tokens.created_at is 'When the token was made.';
comment on column tributary.access_tokens.created_by is 'The user of the system, or the process, that made the token.';
comment on column tributary.access_tokens.digest is 'SHA-256 of the token, which is 32 random bytes: who reads this table has no token.';
comment on column tributary.access_tokens.used_at is 'The last use, to the minute.';
