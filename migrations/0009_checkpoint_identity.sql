-- What a checkpoint belongs to: its table, its source, and what shapes a record. A cursor says nothing about another
-- table or another source. All columns may be null, so that an earlier version of the program keeps running.

alter table tributary.checkpoints
  add column identity_fence bigint,
  add column table_identity text,
  add column shape text,
  add column adopts_source boolean not null default false;
comment on column tributary.checkpoints.identity_fence is 'The fence at which a program last confirmed table_identity and shape. Another fence means that a version of the program without this check has written since: the next run reads every record.';
comment on column tributary.checkpoints.table_identity is 'Lane live: the database, tributary.checkpoints and the table that the cursor belongs to, by their oids, and the table''s file. Truncate, vacuum full and cluster change the file.';
comment on column tributary.checkpoints.shape is 'Lane live: the catalogue generation, its fields and the settings under which the rows were read.';
comment on column tributary.checkpoints.adopts_source is 'Lane live: rows may still come from an earlier source, so that what is read wins, until a full scan has completed (sync --accept-new-source).';

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
