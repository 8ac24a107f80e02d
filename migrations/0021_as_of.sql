-- The moment of as-of queries: the settings tributary.as_of and tributary.as_of_mode of a session.

alter table tributary.change_feed add column history_from timestamptz;
comment on column tributary.change_feed.history_from is 'Versions that were replaced before this time were removed with the history; null: none was.';

-- As their owner: a reader of one company has no right on the control plane.
create function tributary.as_of_mode() returns text language plpgsql stable security definer set search_path = pg_catalog as $$
declare
  moment text := coalesce(current_setting('tributary.as_of', true), '');
  mode text := coalesce(nullif(current_setting('tributary.as_of_mode', true), ''), 'warehouse');
begin
  if moment = '' then
    raise exception 'tributary.as_of is not set' using errcode = 'TB004', detail =
      'Set a moment (set tributary.as_of = ''2026-10-31 23:59:59+00'') or a position of the change feed (''position 12345''), or read the current records.';
  elsif mode not in ('warehouse', 'source') then
    raise exception 'tributary.as_of_mode is "%"', mode using errcode = 'TB004', detail = 'Set it to warehouse or source.';
  elsif moment !~ '^\s*position\y' then
    perform tributary.as_of_time();
    return mode;
  elsif mode = 'source' then
    raise exception 'the source has no positions of the change feed' using errcode = 'TB004', detail =
      'Set tributary.as_of to a moment, or tributary.as_of_mode to warehouse.';
  end if;
  perform tributary.as_of_position();
  return 'position';
end $$;
comment on function tributary.as_of_mode() is 'How as-of queries of the session choose versions: warehouse, source, or position where tributary.as_of is a position of the change feed.';

create function tributary.as_of_time() returns timestamptz language plpgsql stable security definer set search_path = pg_catalog as $$
declare
  moment timestamptz;
  kept timestamptz;
begin
  begin
    moment := current_setting('tributary.as_of')::timestamptz;
  exception when data_exception then
    raise exception 'tributary.as_of is "%"', current_setting('tributary.as_of') using errcode = 'TB004', detail =
      'Set it to a moment (2026-10-31 23:59:59+00) or to a position of the change feed (position 12345).';
  end;
  select f.history_from into kept from tributary.change_feed f;
  if moment < kept then
    raise exception 'versions that were replaced before % were removed with the history', kept
      using errcode = 'TB001', detail = 'Choose a later moment.';
  end if;
  return moment;
end $$;
comment on function tributary.as_of_time() is 'The moment of tributary.as_of. Error TB001: the history of that time was removed.';

create function tributary.as_of_position() returns bigint language plpgsql stable security definer set search_path = pg_catalog as $$
declare
  parts text[] := regexp_match(current_setting('tributary.as_of'), '^\s*position\s+(\d{1,18})(?:-([0-9a-f]{1,8}))?\s*$');
  chosen bigint := parts[1]::bigint;
  feed tributary.change_feed;
begin
  if parts is null then
    raise exception 'tributary.as_of is "%"', current_setting('tributary.as_of') using errcode = 'TB004', detail =
      'Set it to a moment (2026-10-31 23:59:59+00) or to a position of the change feed (position 12345).';
  end if;
  select * into feed from tributary.change_feed;
  if chosen < feed.removed_through then
    raise exception 'changes after position % were removed with the history', chosen
      using errcode = 'TB001', detail = 'Choose a later position.';
  elsif chosen > feed.last_position or exists (
      select from (select w.* from tributary.change_batches w where w.last_position >= chosen order by w.last_position limit 1) b
       where b.last_position - b.changes < chosen and to_hex(b.token) <> parts[2]) then
    raise exception 'position % was not given by this feed: the warehouse was restored', chosen
      using errcode = 'TB002', detail = 'Choose a moment instead.';
  end if;
  return chosen;
end $$;
comment on function tributary.as_of_position() is 'The position of tributary.as_of. Errors: TB001 later changes were removed, TB002 the position is not of this feed.';

create function tributary.as_of_landed() returns timestamptz language sql stable security definer set search_path = pg_catalog as $$
  select b.landed_at from tributary.change_batches b
   where b.last_position >= tributary.as_of_position() order by b.last_position limit 1
$$;
comment on function tributary.as_of_landed() is 'When the change at the position of tributary.as_of landed.';
