-- Companies that are configured in the warehouse, beside those of the configuration file.
create table tributary.company_settings (
  company text primary key check (company ~ '^[A-Za-z0-9_-]{1,64}$'),
  url text not null check (url <> ''),
  company_id bigint,
  resources text[] check (cardinality(resources) > 0),
  webhook_events text[] check (cardinality(webhook_events) > 0),
  token text check (token <> ''),
  sealed_token bytea,
  paused_at timestamptz,
  paused_by text,
  created_at timestamptz not null default tributary.now(),
  updated_at timestamptz not null default tributary.now(),
  check (token is not null or sealed_token is not null),
  check ((paused_at is null) = (paused_by is null))
);
comment on table tributary.company_settings is 'Companies that tributary company adds. Other programs may insert rows (company, url, token), with company_id, resources and webhook_events where the defaults do not fit; they may also set paused_at and paused_by, and delete rows. Running processes apply a change within seconds.';
comment on column tributary.company_settings.company is 'The name of the company. No company of the configuration file has this name.';
comment on column tributary.company_settings.url is 'The base address. The sealed token is bound to it: after a change of the address, set the token again.';
comment on column tributary.company_settings.company_id is 'The company''s number, needed only where the service does not answer /me.';
comment on column tributary.company_settings.resources is 'The resources to sync; null is every resource of the catalogue.';
comment on column tributary.company_settings.webhook_events is 'The events that the company subscribes to; null is those of the configuration.';
comment on column tributary.company_settings.token is 'A token as another program inserted it. The next process that has the key seals it and sets this column to null. Until then it is readable here, and it stays in backups and in the log of the server: prefer tributary company add.';
comment on column tributary.company_settings.sealed_token is 'The token, encrypted with TRIBUTARY_COMPANIES_KEY for this company and address.';
comment on column tributary.company_settings.paused_at is 'Since when the company is paused: its deliveries are stored, and nothing else runs. Null while it is active.';

-- Processes compare one number to notice a change.
create table tributary.company_revision (
  single boolean primary key default true check (single),
  revision bigint not null
);
comment on table tributary.company_revision is 'One row: a number that rises with each change of tributary.company_settings.';
insert into tributary.company_revision (revision) values (0);

-- The rights of the owner: other programs need no right on the table of the number.
create function tributary.raise_company_revision() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  update tributary.company_revision set revision = revision + 1;
  return null;
end $$;
comment on function tributary.raise_company_revision() is 'Raises the number that processes compare to notice a change of the companies.';
create trigger raise_company_revision after insert or update or delete or truncate on tributary.company_settings
  for each statement execute function tributary.raise_company_revision();

alter table tributary.processes add column company_revision bigint;
comment on column tributary.processes.company_revision is 'The number in tributary.company_revision whose companies the process has applied; null before the first.';
create or replace view tributary.processes_alive as
  select process_id, companies, started_at, heartbeat_at, host, pid, company_revision from tributary.processes
   where stopped_at is null and heartbeat_at > (select tributary.now() - interval '60 seconds');

create table tributary.company_receipts (
  id bigint generated always as identity primary key,
  company text not null,
  company_id bigint,
  action text not null check (action in ('detach', 'erase')),
  performed_by text not null,
  performed_at timestamptz not null default tributary.now(),
  row_counts json not null
);
comment on table tributary.company_receipts is 'What tributary company remove did: who, when, and how many rows of each table were deleted.';
comment on column tributary.company_receipts.action is 'detach: the company is no longer configured, and its rows stay; erase: its rows were deleted';
comment on column tributary.company_receipts.row_counts is 'Deleted rows by table, as {"dataset.table": rows}; tables without a row of the company are left out.';

-- Deletes the rows of a company from these tables, and answers how many.
create function tributary.delete_company_rows(for_company text, for_company_id bigint, relations text[])
  returns table (relation text, deleted bigint) language plpgsql as $$
declare
  condition text;
begin
  foreach relation in array relations loop
    select string_agg(format('%I = %s', a.attname, case a.attname when 'company' then '$1' else '$2' end), ' or ' order by a.attname)
      into condition from pg_attribute a
     where a.attrelid = relation::regclass and a.attname in ('company', 'company_id', '_company_id') and not a.attisdropped;
    if condition is null then
      raise exception 'the table % has no column of a company', relation;
    end if;
    execute format('delete from %s where %s', relation::regclass, condition) using for_company, for_company_id;
    get diagnostics deleted = row_count;
    if deleted > 0 then return next; end if;
  end loop;
end $$;
comment on function tributary.delete_company_rows(text, bigint, text[]) is 'Deletes the rows of a company, by its name or its number, from these tables.';
