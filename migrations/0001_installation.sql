-- What all parts of the control plane share: the clock, the companies, their sources, and which database this is.
-- Records are in datasets that are derived from the catalogue (erp, erp_history), never here.

-- What the sync engine needs beyond one scan at a time: lanes, overlap, re-reads, and one clock for everybody.
create function tributary.now() returns timestamptz language sql volatile parallel safe as 'select clock_timestamp()';
comment on function tributary.now() is 'The one clock by which reads are ordered, whatever the clocks of the programs say.';

-- Serving: what runs by the clock or because somebody asked, and what the operator's page shows beside the ledger.
-- Companies stand here under the names that the configuration gives them.
create table tributary.companies (
  company text primary key,
  company_id bigint not null,
  seen_at timestamptz not null default tributary.now()
);
comment on table tributary.companies is 'Which number the source gives a configured company, as it was last told.';

-- Which source the rows of a company come from. The first program that reads the company writes it.
create table tributary.sources (
  company_id bigint primary key,
  address text not null,
  since timestamptz not null
);
comment on table tributary.sources is 'The source of each company''s rows. A program that is configured for another address writes nothing (sync --accept-new-source changes it).';
comment on column tributary.sources.address is 'Scheme, host, port and path of the base address; never a credential.';

-- Which database this is. A restored or copied database, and one that was promoted from a standby, may have forgotten
-- what was sent: pushes wait until a person has looked (tributary push release).
create function tributary.database_identity() returns text language plpgsql volatile as $$
declare
  identity text;
begin
  select concat_ws(' ', 'database=' || d.oid, 'installation=' || 'tributary.installation'::regclass::oid)
    into identity from pg_database d where d.datname = current_database();
  -- A role that may not ask leaves the part out; a part that one side lacks is not compared.
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
  held_because text,
  confirmed_at timestamptz not null
);
comment on table tributary.installation is 'The one row says in which database the outbox was last known to be whole.';
comment on column tributary.installation.identity is 'tributary.database_identity() when a person, or the migration, last confirmed it. While it differs, nothing is pushed.';
comment on column tributary.installation.held_because is 'Why nothing is pushed although the database is the same; null when nothing holds pushes.';

insert into tributary.installation (identity, confirmed_at) values (tributary.database_identity(), tributary.now());
