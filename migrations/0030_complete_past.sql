-- The part of the past that is complete, and the identity of the history.

alter table tributary.checkpoints
  add column past_from timestamptz,
  add column past_batch bigint,
  add column past_until timestamptz,
  add column past_reason text;
comment on column tributary.checkpoints.past_from is 'Lane live: as-of queries of a time before this one fail, since versions were lost; infinity: until the next full scan has completed; null: none was lost.';
comment on column tributary.checkpoints.past_batch is 'Lane live: as-of queries of a position before this batch of the change feed fail; null: none does because of past_from.';
comment on column tributary.checkpoints.past_until is 'Lane live: the past is complete up to this time too; null: only from past_from on.';
comment on column tributary.checkpoints.past_reason is 'Lane live: why the past before past_from is not complete.';
comment on column tributary.checkpoints.table_identity is 'Lane live: the database, tributary.checkpoints, the table that the cursor was stored for, and its history. null: an earlier version of the program wrote it.';
-- short: a row for each company, resource and lane
create index checkpoints_of_resource on tributary.checkpoints (resource) where lane = 'live';

create function tributary.table_identity(of_table regclass, of_history regclass) returns text
  language sql stable parallel safe set search_path = pg_catalog as $$
  select concat_ws(' ', 'database=' || (select d.oid from pg_database d where d.datname = current_database()),
    'checkpoints=' || c.oid, 'control=' || pg_relation_filenode(c.oid),
    'table=' || of_table::oid, 'file=' || pg_relation_filenode(of_table),
    'history=' || of_history::oid, 'historyfile=' || pg_relation_filenode(of_history))
    from (select 'tributary.checkpoints'::regclass::oid as oid) c
$$;
comment on function tributary.table_identity(regclass, regclass) is 'The identity of a table and its history: oids of the database and the tables, which change with a restore, and files, which change with a truncate or rewrite.';

create function tributary.check_past(of_resource text, of_table regclass, of_history regclass, of_view text) returns boolean
  language plpgsql stable security definer parallel safe set search_path = pg_catalog as $$
declare
  mode text := tributary.as_of_mode();
  chosen bigint;
  moment timestamptz;
  live text := tributary.table_identity(of_table, of_history);
  reader name := coalesce(nullif(current_setting('role'), 'none'), session_user);
  own_views text := (parse_ident(of_view))[1];
  has_any boolean;
  lost record;
begin
  if mode = 'position' then
    chosen := tributary.as_of_position();
  else
    moment := tributary.as_of_time();
  end if;
  for lost in
    select c.company_id, c.past_from, c.past_reason, b.last_position,
           c.feed_fence is distinct from c.fence or c.table_identity is distinct from live as is_other
      from tributary.checkpoints c left join tributary.change_batches b on b.id = c.past_batch
     where c.resource = of_resource and c.lane = 'live'
       and (c.feed_fence is distinct from c.fence or c.table_identity is distinct from live
            or c.past_from = 'infinity'
            or case when chosen is null then moment < c.past_from and (moment <= c.past_until) is not true
                    else b.id is not null and (chosen >= b.last_position) is not true end)
    union all
    select s.company_id, 'infinity', 'no checkpoint tells what was read', null, false
      from tributary.companies s
     where not exists (select from tributary.checkpoints c
                        where c.company_id = s.company_id and c.resource = of_resource and c.lane = 'live')
       and (tributary.has_records(of_table, s.company_id) or tributary.has_records(of_history, s.company_id))
  loop
    -- A role that reads single companies by views of its own is not hindered by the other ones.
    continue when not has_table_privilege(reader, to_regclass(of_view), 'select')
      and to_regnamespace(quote_ident(own_views || '_' || lost.company_id)) is not null
      and not has_schema_privilege(reader, to_regnamespace(quote_ident(own_views || '_' || lost.company_id)), 'usage')
      and exists (select from pg_namespace n where n.nspname like replace(own_views, '_', '\_') || '\_%'
                     and has_schema_privilege(reader, n.oid, 'usage'));
    if lost.is_other then
      raise exception 'the past of % of company % is not known: its tables were replaced, truncated or altered since its last sync', of_resource, lost.company_id
        using errcode = 'TB001', detail = format('Run "tributary sync %s", which reads its records again and says what of the past is complete.', of_resource);
    elsif lost.past_from = 'infinity' then
      raise exception 'the past of % of company % is not complete: %', of_resource, lost.company_id, lost.past_reason
        using errcode = 'TB001', detail = format('Run "tributary sync --full %s", then choose a moment after it.', of_resource);
    elsif chosen is null then
      raise exception 'the past of % of company % is not complete before %: %', of_resource, lost.company_id, lost.past_from, lost.past_reason
        using errcode = 'TB001', detail = 'Choose a later moment.';
    else
      raise exception 'the past of % of company % is not complete before position %: %', of_resource, lost.company_id, coalesce(lost.last_position::text, 'the next one'), lost.past_reason
        using errcode = 'TB001', detail = 'Choose that position or a later one.';
    end if;
  end loop;
  if not exists (select from tributary.checkpoints c where c.resource = of_resource and c.lane = 'live') then
    execute format('select exists (select from %s) or exists (select from %s)', of_table, of_history) into has_any;
    if has_any then
      raise exception 'the past of % is not complete: no checkpoint tells what was read', of_resource
        using errcode = 'TB001', detail = format('Run "tributary sync --full %s", then choose a moment after it.', of_resource);
    end if;
  end if;
  return true;
end $$;
comment on function tributary.check_past(text, regclass, regclass, text) is 'Fails with TB001 where the past of a resource is not complete at tributary.as_of, as after its table or its history was dropped, truncated or restored. The views of as-of queries call it once.';

create function tributary.has_all_versions(for_company bigint, of_resource text, of_table regclass, of_history regclass)
  returns boolean language plpgsql stable as $$
declare
  has_all boolean;
begin
  -- The feed tells every version only while none of its changes were removed, and each run wrote it. A record that was
  -- read again after a loss has the number of the lost version, but a later time.
  if (select f.removed_through > 0 from tributary.change_feed f)
     or exists (select from tributary.change_batches b
                 where b.company_id = for_company and b.resource = of_resource and b.kind = 'truncate') then
    return false;
  end if;
  execute format($query$
    select not exists (
      select from tributary.change_batches b cross join unnest(b.ids, b.versions) u(id, version)
       where b.company_id = $1 and b.resource = $2
         and not exists (select from %1$s t where t."_company_id" = $1 and t."id" = u.id and t."_version" = coalesce(u.version, 1) and t."_observed_at" <= b.landed_at)
         and not exists (select from %2$s s where s."_company_id" = $1 and s."id" = u.id and s."_version" = coalesce(u.version, 1) and s."_observed_at" <= b.landed_at))
      and not exists (select from %1$s t join %2$s s on s."_company_id" = t."_company_id" and s."id" = t."id" and s."_version" >= t."_version"
                       where t."_company_id" = $1)$query$, of_table, of_history)
    into has_all using for_company, of_resource;
  return has_all;
end $$;
comment on function tributary.has_all_versions(bigint, text, regclass, regclass) is 'Whether a table and its history have every version that the change feed tells of a company. False also where the feed began again or its changes were removed.';

create function tributary.note_removed_rows() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
declare
  of_resource text := tg_argv[0];
  history regclass := to_regclass(tg_argv[1]);
  columns text;
  lost bigint[];
begin
  if current_setting('tributary.removes_company', true) = 'on' or not exists (select from removed) then
    return null;
  end if;
  if history is not null then
    select string_agg(quote_ident(a.attname), ', ') into columns
      from pg_attribute a join pg_attribute h on h.attrelid = history and h.attname = a.attname and h.attnum > 0
     where a.attrelid = tg_relid and a.attnum > 0 and not a.attisdropped;
    -- Versions that the history has already are of a table that was restored.
    execute format('insert into %1$s (%2$s, "_valid_to") select %2$s, greatest(tributary.now(), r."_observed_at") from removed r
                     where not exists (select from %1$s h where h."_company_id" = r."_company_id" and h."id" = r."id"
                                          and (h."_version" >= r."_version" or h."_valid_to" > r."_observed_at"))', history, columns);
    execute format('select array_agg(distinct r."_company_id") from removed r where not exists (
                      select from %s h where h."_company_id" = r."_company_id" and h."id" = r."id" and h."_version" = r."_version"
                         and h."_observed_at" = r."_observed_at")', history) into lost;
  else
    select array_agg(distinct r."_company_id") into lost from removed r;
  end if;
  update tributary.checkpoints c
     set table_identity = concat_ws(' ', c.table_identity, 'altered=' || replace(format('rows of %s were deleted by hand', tg_relid::regclass), ' ', '%20')),
         past_from = case when c.company_id = any(lost) then 'infinity' else c.past_from end,
         past_reason = case when c.company_id = any(lost) then format('rows of %s were deleted by hand', tg_relid::regclass) else c.past_reason end,
         past_until = case when c.company_id = any(lost) then null else c.past_until end
   where c.resource = of_resource and c.lane = 'live' and c.company_id in (select r."_company_id" from removed r);
  return null;
end $$;
comment on function tributary.note_removed_rows() is 'Keeps rows that are deleted by hand as superseded versions, and lets the next run read every record of their companies.';

create function tributary.note_removed_versions() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  if current_setting('tributary.removes_company', true) = 'on' then
    return null;
  end if;
  -- Retention removes only versions that ended before the time from which the history is kept.
  update tributary.checkpoints c
     set table_identity = concat_ws(' ', c.table_identity, 'altered=' || replace(format('versions of %s were deleted by hand', tg_relid::regclass), ' ', '%20')),
         past_from = 'infinity', past_until = null, past_reason = format('versions of %s were deleted by hand', tg_relid::regclass)
   where c.resource = tg_argv[0] and c.lane = 'live'
     and c.company_id in (select r."_company_id" from removed r, tributary.change_feed f where (r."_valid_to" < f.history_from) is not true);
  return null;
end $$;
comment on function tributary.note_removed_versions() is 'Notes that the past is not complete once versions are deleted by hand, and lets the next run read every record.';
