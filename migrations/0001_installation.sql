-- Shared by the whole control plane: the clock, the companies, their sources, and the identity of the database.
-- Records are in the datasets of the catalogue (erp, erp_history), never here.

create function tributary.now() returns timestamptz language sql volatile parallel safe as 'select clock_timestamp()';
comment on function tributary.now() is 'The warehouse''s clock. It orders the reads of all processes.';

-- Companies by their names in the configuration.
create table tributary.companies (
  company text primary key,
  company_id bigint not null,
  seen_at timestamptz not null default tributary.now()
);
comment on table tributary.companies is 'The number of each configured company, as the source last answered it.';

-- The source of each company's rows. The first process that reads the company stores it.
create table tributary.sources (
  company_id bigint primary key,
  address text not null,
  since timestamptz not null
);
comment on table tributary.sources is 'The source of each company''s rows. A process with another address writes nothing (sync --accept-new-source changes it).';
comment on column tributary.sources.address is 'Scheme, host, port and path of the base address; never a credential.';

-- The identity of the database. A restored, copied or promoted database may lack push requests that were sent, so that
-- pushes pause until a person confirms (tributary push release).
create function tributary.database_identity() returns text language plpgsql volatile as $$
declare
  identity text;
begin
  select concat_ws(' ', 'database=' || d.oid, 'installation=' || 'tributary.installation'::regclass::oid)
    into identity from pg_database d where d.datname = current_database();
  -- Without the right, the part is left out. A part that one side lacks is not compared.
  begin
    identity := identity || ' system=' || (select system_identifier from pg_control_system());
  exception when insufficient_privilege then null;
  end;
  begin
    identity := identity || ' timeline=' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  exception when insufficient_privilege or object_not_in_prerequisite_state then null;
  end;
  return identity;
end
$$;
comment on function tributary.database_identity() is 'The database by its oid, the oid of tributary.installation, the system identifier of the server and its timeline.';

create table tributary.installation (
  is_this boolean primary key default true check (is_this),
  identity text not null,
  pause_reason text,
  confirmed_at timestamptz not null
);
comment on table tributary.installation is 'One row: the database in which the outbox was last confirmed as complete.';
comment on column tributary.installation.identity is 'tributary.database_identity() when a person, or the migration, last confirmed it. While it differs, pushes pause.';
comment on column tributary.installation.pause_reason is 'Why pushes pause although the database is the same; null when they do not.';

insert into tributary.installation (identity, confirmed_at) values (tributary.database_identity(), tributary.now());
