-- As-of queries in parallel plans, and positions of the change feed by times of reads.

-- Without a subtransaction, which a parallel query cannot begin.
create or replace function tributary.as_of_time() returns timestamptz language plpgsql stable security definer parallel safe set search_path = pg_catalog as $$
declare
  moment timestamptz;
  kept timestamptz;
begin
  if current_setting('tributary.as_of') !~* '^\s*(\d{4,6}-\d\d?-\d\d?(\D.*)?|now|today|yesterday|tomorrow|-?infinity)\s*$' then
    raise exception 'tributary.as_of is "%"', current_setting('tributary.as_of') using errcode = 'TB004', detail =
      'Set it to a moment (2026-10-31 23:59:59+00) or to a position of the change feed (position 12345).';
  end if;
  moment := current_setting('tributary.as_of')::timestamptz;
  select f.history_from into kept from tributary.change_feed f;
  if moment < kept then
    raise exception 'versions that were replaced before % were removed with the history', kept
      using errcode = 'TB001', detail = 'Choose a later moment.';
  end if;
  return moment;
end $$;

alter function tributary.as_of_mode() parallel safe;
alter function tributary.as_of_position() parallel safe;
alter function tributary.as_of_landed() parallel safe;

create function tributary.as_of_position_time() returns timestamptz language sql stable security definer parallel safe set search_path = pg_catalog as $$
  -- All earlier batches: those of a company that moved here landed long before their position, and a clock can be set back.
  select case when at.last_position is null then 'infinity' else (
    select greatest(max(b.landed_at), max(b.began)) from tributary.change_batches b where b.last_position <= at.last_position) end
    from (select min(b.last_position) as last_position from tributary.change_batches b
           where b.last_position >= tributary.as_of_position()) at
$$;
comment on function tributary.as_of_position_time() is 'A time by which every read had begun whose changes are at or before the position of tributary.as_of. Later positions may have changes of earlier reads.';

create function tributary.landed_later(of_history text) returns table (company_id bigint, id bigint, version bigint)
  language sql stable security definer parallel safe rows 100 set search_path = pg_catalog as $$
  with at as materialized (select tributary.as_of_position() as position, tributary.as_of_position_time() as began)
  select b.company_id, u.id, coalesce(u.version, 1)
    from at join tributary.change_batches b on b.began <= at.began and (b.last_position is null or b.last_position > at.position)
    cross join unnest(b.ids, b.versions) with ordinality u(id, version, place)
   where b.history = of_history and b.kind = 'versions'
     and (b.last_position is null or b.last_position - b.changes + u.place > at.position)
$$;
comment on function tributary.landed_later(text) is 'Versions in a history whose reads had begun by the time of the position of tributary.as_of, and which landed after it: those of the few reads in progress then.';
