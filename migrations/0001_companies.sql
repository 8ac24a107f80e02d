-- The control plane: the clock, the identity of the database, the companies and their sources. Records are in the datasets
-- of the catalogue (erp, erp_history), never here.

comment on schema tributary is 'The control plane of Tributary: runs, checkpoints, quarantine, events, records to be written, tasks, alerts and the change feed.';

comment on column tributary.migrations.id is 'The number of the migration.';
comment on column tributary.migrations.name is 'The name of its file.';
comment on column tributary.migrations.checksum is 'A hash of its file.';
comment on column tributary.migrations.applied_at is 'When it was applied.';

create function tributary.now() returns timestamptz language sql volatile parallel safe as 'select clock_timestamp()';
comment on function tributary.now() is 'The warehouse''s clock. It orders the reads of all processes.';

-- The first process that reads a company stores its row.
create table tributary.companies (
  company_id bigint primary key,
  company text not null unique,
  source_number bigint,
  address text,
  address_since timestamptz,
  installation text,
  budget text,
  seen_at timestamptz not null default tributary.now()
);
comment on table tributary.companies is 'The companies whose rows this warehouse has, with the source of each. A process with another address writes nothing (sync --accept-new-source changes it).';
comment on column tributary.companies.company_id is 'The number of the company in this warehouse, as in _company_id: its number at the source, or, where another company has that, its warehouse_number. It never changes.';
comment on column tributary.companies.company is 'The name of the company in the configuration; with its number in brackets where the company of this name is another one since.';
comment on column tributary.companies.source_number is 'The number of the company at the source; null where it is company_id.';
comment on column tributary.companies.address is 'Scheme, host, port and path of the base address of the source; never a credential. Null before a run has stored it.';
comment on column tributary.companies.address_since is 'Since when it is the source of these rows.';
comment on column tributary.companies.installation is 'The name of its installation, or the host of its address; null until a process of tributary serve has it.';
comment on column tributary.companies.budget is 'The fingerprint of its token in tributary.budgets; null until a process of tributary serve has it.';
comment on column tributary.companies.seen_at is 'When the source last answered the number.';
create unique index companies_of_source on tributary.companies (address, coalesce(source_number, company_id));

-- The identity of the database. A restored, copied or promoted database may lack push requests that were sent, so that
-- pushes pause until a person confirms (tributary push release).
create function tributary.database_identity() returns text language plpgsql volatile as $$
declare
  identity text;
begin
  select concat_ws(' ', 'database=' || d.oid, 'warehouse=' || 'tributary.warehouse'::regclass::oid)
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
comment on function tributary.database_identity() is 'The database by its oid, the oid of tributary.warehouse, the system identifier of the server and its timeline.';

-- Settings of the whole warehouse. They change rarely, so that one row locks no writer out for long. What is written or
-- locked often is apart: tributary.change_feed and tributary.evaluations.
create table tributary.warehouse (
  is_this boolean primary key default true check (is_this),
  -- The confirmation of the outbox.
  identity text not null,
  pause_reason text,
  confirmed_at timestamptz not null,
  -- The number by which processes notice a change of the companies.
  company_revision bigint not null default 0,
  -- Access to the dashboard: what signs its sessions and forms, and what proves its password.
  session_key bytea check (octet_length(session_key) = 32),
  password_generation text,
  password_salt bytea,
  password_hash bytea,
  password_set_at timestamptz,
  check (num_nulls(password_generation, password_salt, password_hash, password_set_at) in (0, 4))
);
comment on table tributary.warehouse is 'One row: the settings that its processes share.';
comment on column tributary.warehouse.is_this is 'Always true: the table has one row.';
comment on column tributary.warehouse.identity is 'tributary.database_identity() when a person, or the migration, last confirmed that the outbox is complete. While it differs, pushes pause.';
comment on column tributary.warehouse.pause_reason is 'Why pushes pause although the database is the same; null when they do not.';
comment on column tributary.warehouse.confirmed_at is 'When the outbox was last confirmed as complete.';
comment on column tributary.warehouse.company_revision is 'Rises with each change of tributary.company_settings and tributary.installation_settings.';
comment on column tributary.warehouse.session_key is 'A random key that signs sessions and forms of the dashboard; it is not derived from the password. Null before the first start.';
comment on column tributary.warehouse.password_generation is 'Another text for each password of the dashboard: a changed password ends all sessions. Null without a password, like the other columns of the password.';
comment on column tributary.warehouse.password_salt is 'The random salt.';
comment on column tributary.warehouse.password_hash is 'The result of scrypt over the password and the salt.';
comment on column tributary.warehouse.password_set_at is 'When the password was set.';
insert into tributary.warehouse (identity, confirmed_at) values (tributary.database_identity(), tributary.now());

-- Installations of the source that are configured in the warehouse, beside those of the configuration file.
create table tributary.installation_settings (
  installation text primary key check (installation ~ '^[A-Za-z0-9_-]{1,64}$'),
  settings json not null default '{}',
  created_at timestamptz not null default tributary.now(),
  updated_at timestamptz not null default tributary.now()
);
comment on table tributary.installation_settings is 'Installations of the source that `tributary installation add` stores. Running processes apply a change within seconds.';
comment on column tributary.installation_settings.installation is 'The name of the installation. No installation of the configuration file has this name.';
comment on column tributary.installation_settings.settings is 'What differs from the top level of the configuration file, by the names of installations there. No credential.';
comment on column tributary.installation_settings.created_at is 'When the installation was added.';
comment on column tributary.installation_settings.updated_at is 'When the row last changed.';

create table tributary.comparisons (
  installation text primary key,
  company text not null,
  compared_at timestamptz not null default tributary.now(),
  differences text[] not null,
  "before" text[],
  recommended json not null
);
comment on table tributary.comparisons is 'The last comparison of each installation with the documentation (tributary radar).';
comment on column tributary.comparisons.installation is 'The name of the installation; empty for the one that the top level of the configuration file describes.';
comment on column tributary.comparisons.company is 'The company whose token was used.';
comment on column tributary.comparisons.compared_at is 'When the installation was compared.';
comment on column tributary.comparisons.differences is 'What differs from the documentation: the check, and where it is of one the resource or field.';
comment on column tributary.comparisons."before" is 'What differed in the comparison before; null for the first one.';
comment on column tributary.comparisons.recommended is 'The recommended settings, as [{"path", "value"}].';

-- Companies that are configured in the warehouse, beside those of the configuration file.
create table tributary.company_settings (
  company text primary key check (company ~ '^[A-Za-z0-9_-]{1,64}$'),
  installation text,
  url text not null check (url <> ''),
  company_id bigint,
  warehouse_number bigint,
  resources text[] check (cardinality(resources) > 0),
  webhook_events text[] check (cardinality(webhook_events) > 0),
  token text check (token <> ''),
  sealed_token bytea,
  paused_at timestamptz,
  paused_by text,
  created_at timestamptz not null default tributary.now(),
  updated_at timestamptz not null default tributary.now(),
  move_id text,
  move_state text check (move_state in ('leaving', 'arriving')),
  exclude_resources text[],
  check (token is not null or sealed_token is not null),
  check ((paused_at is null) = (paused_by is null)),
  constraint company_settings_move check (move_state is null or move_id is not null)
);
comment on table tributary.company_settings is 'Companies that tributary company adds. Other programs may insert rows (company, url, token), with company_id, resources and webhook_events where the defaults do not fit; they may also set paused_at and paused_by, and delete rows. Running processes apply a change within seconds.';
comment on column tributary.company_settings.company is 'The name of the company. No company of the configuration file has this name.';
comment on column tributary.company_settings.installation is 'The installation that the company belongs to, of the configuration file or of tributary.installation_settings; null: the top level of the file describes it.';
comment on column tributary.company_settings.url is 'The base address. The sealed token is bound to it: after a change of the address, set the token again.';
comment on column tributary.company_settings.company_id is 'The company''s number at the source, needed only where the service does not answer /me.';
comment on column tributary.company_settings.warehouse_number is 'The company''s number in this warehouse, needed only where another company has its number.';
comment on column tributary.company_settings.resources is 'The resources to sync; null is every resource of the catalogue.';
comment on column tributary.company_settings.webhook_events is 'The events that the company subscribes to; null is those of the configuration.';
comment on column tributary.company_settings.token is 'A token as another program inserted it. The next process that has the key seals it and sets this column to null. Until then it is readable here, and it stays in backups and in the log of the server: prefer tributary company add.';
comment on column tributary.company_settings.sealed_token is 'The token, encrypted with TRIBUTARY_COMPANIES_KEY for this company and address.';
comment on column tributary.company_settings.paused_at is 'Since when the company is paused: its deliveries are stored, and nothing else runs. Null while it is active.';
comment on column tributary.company_settings.paused_by is 'The person or program that paused the company; null while it is not paused.';
comment on column tributary.company_settings.created_at is 'When the company was added.';
comment on column tributary.company_settings.updated_at is 'When the row last changed.';
comment on column tributary.company_settings.move_id is 'The move of the company to another warehouse, the same in both; null before the first attempt.';
comment on column tributary.company_settings.move_state is 'leaving: its rows are copied to another warehouse; arriving: its rows were copied, and the other warehouse still has the company. In both states no process works for it, and its deliveries are refused. Null while it does not move.';
comment on column tributary.company_settings.exclude_resources is 'The resources (paths, or patterns with *) that the company does not read, beside those of the configuration; null is none.';

-- The rights of the owner: other programs need no right on the table of the number.
create function tributary.raise_company_revision() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  update tributary.warehouse set company_revision = company_revision + 1;
  return null;
end $$;
comment on function tributary.raise_company_revision() is 'Raises the number that processes compare to notice a change of the companies.';
create trigger raise_company_revision after insert or update or delete or truncate on tributary.company_settings
  for each statement execute function tributary.raise_company_revision();
create trigger raise_company_revision after insert or update or delete or truncate on tributary.installation_settings
  for each statement execute function tributary.raise_company_revision();

-- What a person removed. The values are not in it.
create table tributary.receipts (
  id bigint generated always as identity primary key,
  action text not null check (action in ('detach', 'erase', 'move', 'forget')),
  company text not null,
  company_id bigint,
  resource text,
  record_id bigint,
  performed_by text not null,
  performed_at timestamptz not null default tributary.now(),
  row_counts json not null,
  move_id text,
  check (num_nulls(resource, record_id) = case action when 'forget' then 0 else 2 end)
);
comment on table tributary.receipts is 'What tributary company remove, company move and forget removed: who, when, and how many rows of each table.';
comment on column tributary.receipts.id is 'The number of the receipt.';
comment on column tributary.receipts.action is 'detach: the company is no longer configured, and its rows stay; erase: its rows were deleted; move: its rows are in another warehouse, and were deleted here; forget: the values of a record were removed';
comment on column tributary.receipts.company is 'The name of the company in the configuration.';
comment on column tributary.receipts.company_id is 'The number of the company in this warehouse.';
comment on column tributary.receipts.resource is 'forget: the path of the resource; null otherwise.';
comment on column tributary.receipts.record_id is 'forget: the number of the record; null otherwise.';
comment on column tributary.receipts.performed_by is 'Who did it: the database role; for forget the user and the machine of the command.';
comment on column tributary.receipts.performed_at is 'When it was done.';
comment on column tributary.receipts.row_counts is 'Deleted or changed rows by table, as {"dataset.table": rows}.';
comment on column tributary.receipts.move_id is 'The move: from the commit of this row on, the company belongs to the other warehouse.';
create index receipts_of_record on tributary.receipts (resource, record_id) where action = 'forget';

-- In a table of records only _company_id is of the company: a record may have a field that is called company.
create function tributary.delete_company_rows(for_company text, for_company_id bigint, relations text[])
  returns table (relation text, deleted bigint) language plpgsql as $$
declare
  condition text;
begin
  -- The triggers of the records keep no version of these rows.
  perform set_config('tributary.removes_company', 'on', true);
  -- A landing in flight finishes before. A run that began earlier then finds no checkpoint.
  if 'tributary.checkpoints' = any(relations) then
    perform from tributary.checkpoints where company_id = for_company_id for update;
  end if;
  foreach relation in array relations loop
    select string_agg(format('%I = %s', a.attname, case a.attname when 'company' then '$1' else '$2' end), ' or ' order by a.attname)
      into condition from pg_attribute a
     where a.attrelid = relation::regclass and not a.attisdropped
       and a.attname = any(case when relation like 'tributary.%' then array['company', 'company_id', 'company_number'] else array['_company_id'] end);
    if condition is null then
      raise exception 'the table % has no column of a company', relation;
    end if;
    -- A session that is writing such rows finishes before; the next one finds no company.
    case relation
      when 'tributary.activity' then perform from tributary.activity_watermarks for update;
      when 'tributary.alert_conditions' then perform from tributary.evaluations where kind = 'alerts' for update;
      when 'tributary.invariant_states' then perform from tributary.evaluations where kind = 'invariants' for update;
      else
    end case;
    execute format('delete from %s where %s', relation::regclass, condition) using for_company, for_company_id;
    get diagnostics deleted = row_count;
    if deleted > 0 then return next; end if;
  end loop;
  perform set_config('tributary.removes_company', '', true);
end $$;
comment on function tributary.delete_company_rows(text, bigint, text[]) is 'Deletes the rows of a company, by its name or its number, from these tables.';

-- The work of a company is known by its name: it may be older than the first answer of the source.
create function tributary.rename_work(old_name text, new_name text) returns void language plpgsql as $$
declare
  relation text;
begin
  -- Processes have made the tasks of the new name. A pause and what a person requested come with the old ones.
  update tributary.tasks t set paused_at = o.paused_at, paused_by = o.paused_by
    from tributary.tasks o
   where o.company = old_name and t.company = new_name and t.resource = o.resource and t.kind = o.kind and o.paused_at is not null;
  update tributary.tasks o set company = new_name
   where o.company = old_name
     and not exists (select from tributary.tasks t where t.company = new_name and t.resource = o.resource and t.kind = o.kind);
  delete from tributary.tasks where company = old_name;
  foreach relation in array array['inbox', 'webhook_secrets', 'subscriptions', 'delivery_gaps', 'event_checks', 'pushes', 'push_requests', 'outbox', 'activity'] loop
    begin
      execute format('update tributary.%I set company = $2 where company = $1', relation) using old_name, new_name;
    -- Two programs use both names: the rows of the old one stay.
    exception when unique_violation then null;
    end;
  end loop;
end $$;
comment on function tributary.rename_work(text, text) is 'Gives the work of a company (events, subscriptions, records to be written, tasks, charts) its new name.';
