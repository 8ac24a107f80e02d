-- One request budget per token for every process that shares this warehouse. The rule is written twice, here and in
-- src/budget/PermitPolicy.ts (for programs without a warehouse); a test runs both side by side on random histories.

create table tributary.budgets (
  fingerprint text primary key check (fingerprint ~ '^[0-9a-f]{64}$'),
  requests_per_minute integer check (requests_per_minute > 0),
  effective_per_minute double precision,
  lowered_to double precision,
  lowered_at timestamptz,
  last_429_at timestamptz,
  refusals bigint not null default 0,
  held_until timestamptz,
  paced_at timestamptz,
  urgent_waits_until timestamptz,
  live_waits_until timestamptz,
  backfill_waits_until timestamptz,
  updated_at timestamptz not null
) with (fillfactor = 50);
comment on table tributary.budgets is 'What a token may still ask of its source, for all processes together.';
comment on column tributary.budgets.fingerprint is 'SHA-256 of base address and token; the token itself stands nowhere in this database.';
comment on column tributary.budgets.requests_per_minute is 'What the configuration allows, as the last process was told; null without a limit.';
comment on column tributary.budgets.effective_per_minute is 'What is used at most at present: less than allowed while another program uses the same token.';
comment on column tributary.budgets.lowered_to is 'What the last 429 made of the effective rate; it rises again from lowered_at on.';
comment on column tributary.budgets.refusals is 'How often the source answered 429.';
comment on column tributary.budgets.held_until is 'Nobody sends before this time: the source said so (Retry-After).';
comment on column tributary.budgets.paced_at is 'Up to when the even pace has been used.';
comment on column tributary.budgets.urgent_waits_until is 'Somebody waits with urgent work, and will ask again before this time; likewise the two beside it.';

create table tributary.budget_leases (
  id bigint generated always as identity primary key,
  fingerprint text not null references tributary.budgets on delete cascade,
  permits integer not null check (permits > 0),
  backfill integer not null check (backfill between 0 and permits),
  granted_at timestamptz not null,
  counted_until timestamptz not null
);
comment on table tributary.budget_leases is 'Permits that were given to a process and still count. What a killed process held counts until its time is over, as if it had been used.';
comment on column tributary.budget_leases.backfill is 'How many of the permits were for backfills.';
create index budget_leases_by_budget on tributary.budget_leases (fingerprint, counted_until);

-- The effective rate: after a 429 it rises by a twentieth of what is allowed in every window.
create function tributary.budget_effective(
  per_minute integer, lowered_to double precision, lowered_ms double precision, now_ms double precision,
  span_ms double precision
) returns double precision language sql immutable parallel safe as $$
  select case when lowered_to is null then per_minute
    else least(per_minute, lowered_to + per_minute * 0.05 * greatest(0, now_ms - lowered_ms) / span_ms) end
$$;

create function tributary.budget_ms(at timestamptz) returns double precision language sql immutable parallel safe as
  'select (extract(epoch from at) * 1000)::double precision';

-- Gives as many of the wanted permits as may be used now, and takes back what a lease before it did not use. One
-- transaction with the row of the token locked: processes stand in line here.
create function tributary.lease_permits(
  token_fingerprint text,
  per_minute integer,
  span_ms double precision,
  valid_ms double precision,
  want_urgent integer,
  want_live integer,
  want_backfill integer,
  settled_id bigint,
  settled_used integer,
  settled_age_ms double precision
) returns table (
  lease_id bigint,
  granted_urgent integer,
  granted_live integer,
  granted_backfill integer,
  wait_ms double precision,
  held_ms double precision,
  effective double precision
) language plpgsql as $$
declare
  budget tributary.budgets;
  now_at timestamptz;
  now_ms double precision;
  counted integer;
  low integer;
  next_free double precision;
  held double precision;
  allowed integer;
  urgent_share integer;
  every_ms double precision;
  beat_ms double precision := span_ms / 60;
  depth_ms double precision;
  paced double precision;
  credits integer;
  slowed boolean;
  room integer;
  kept integer;
  free_live integer;
  yields boolean;
  top_room integer;
  top_paced boolean;
  by_window double precision;
  by_pace double precision;
  waits_until timestamptz;
  new_id bigint;
begin
  select * into budget from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  if not found then
    insert into tributary.budgets (fingerprint, requests_per_minute, updated_at)
      values (token_fingerprint, per_minute, tributary.now()) on conflict do nothing;
    -- Tokens that are no longer used leave nothing behind.
    delete from tributary.budgets b where b.updated_at < tributary.now() - interval '30 days';
    select * into budget from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  end if;
  now_at := tributary.now();
  now_ms := tributary.budget_ms(now_at);

  if settled_id is not null then
    if settled_used <= 0 then
      delete from tributary.budget_leases l where l.id = settled_id and l.fingerprint = token_fingerprint;
    else
      update tributary.budget_leases l
        set permits = least(l.permits, settled_used),
            backfill = least(l.backfill, settled_used),
            counted_until = least(l.counted_until, to_timestamp((now_ms - settled_age_ms + span_ms) / 1000))
        where l.id = settled_id and l.fingerprint = token_fingerprint;
    end if;
  end if;
  delete from tributary.budget_leases l where l.fingerprint = token_fingerprint and l.counted_until <= now_at;
  -- A clock that was set back would keep permits counted for as long.
  update tributary.budget_leases l set counted_until = to_timestamp((now_ms + span_ms) / 1000)
    where l.fingerprint = token_fingerprint and l.counted_until > to_timestamp((now_ms + span_ms + 20000) / 1000);
  select coalesce(sum(l.permits), 0), coalesce(sum(l.backfill), 0), min(tributary.budget_ms(l.counted_until))
    into counted, low, next_free
    from tributary.budget_leases l where l.fingerprint = token_fingerprint;

  effective := tributary.budget_effective(
    per_minute, budget.lowered_to, tributary.budget_ms(budget.lowered_at), now_ms, span_ms);
  granted_urgent := 0;
  granted_live := 0;
  granted_backfill := 0;
  wait_ms := 0;
  held := greatest(0, coalesce(tributary.budget_ms(budget.held_until), 0) - now_ms);
  held_ms := held;
  if held > 0 or want_urgent + want_live + want_backfill = 0 then
    update tributary.budgets b
      set requests_per_minute = per_minute, effective_per_minute = effective, updated_at = now_at
      where b.fingerprint = token_fingerprint;
    return next;
    return;
  end if;

  allowed := greatest(1, floor(effective + 1e-9)::integer);
  slowed := allowed < per_minute;
  urgent_share := allowed / 200;
  every_ms := span_ms / (allowed - urgent_share);
  depth_ms := greatest(beat_ms, 2 * every_ms);
  paced := least(now_ms, greatest(coalesce(tributary.budget_ms(budget.paced_at), now_ms - depth_ms), now_ms - depth_ms));
  credits := floor((now_ms - paced) / every_ms + 1e-3)::integer;
  room := allowed - counted;

  granted_urgent := greatest(0, least(want_urgent, room));
  if slowed then
    granted_urgent := least(granted_urgent, credits);
    credits := credits - granted_urgent;
    paced := paced + granted_urgent * every_ms;
  end if;
  room := room - granted_urgent - urgent_share;

  yields := want_urgent = 0 and coalesce(budget.urgent_waits_until > now_at, false)
    and budget.urgent_waits_until <= to_timestamp((now_ms + 3 * beat_ms) / 1000);
  kept := case
    when low * 10 < allowed
      and (want_backfill > 0 or coalesce(budget.backfill_waits_until > now_at, false)) then 1 else 0 end;
  free_live := case when slowed then 0 else greatest(0, (allowed + 1) / 2 - counted - granted_urgent) end;
  if not yields then
    granted_live := greatest(0, least(want_live, room - kept, free_live + greatest(0, credits - kept)));
    credits := credits - greatest(0, granted_live - free_live);
    paced := paced + greatest(0, granted_live - free_live) * every_ms;
    room := room - granted_live;
  end if;

  yields := yields or granted_live < want_live
    or (want_live = 0 and coalesce(budget.live_waits_until > now_at, false)
      and budget.live_waits_until <= to_timestamp((now_ms + 3 * beat_ms) / 1000));
  granted_backfill := greatest(0, least(want_backfill, room, credits));
  if yields then granted_backfill := least(granted_backfill, kept); end if;
  credits := credits - granted_backfill;
  paced := paced + granted_backfill * every_ms;
  room := room - granted_backfill;

  if granted_urgent < want_urgent or granted_live < want_live or granted_backfill < want_backfill then
    top_room := room;
    top_paced := true;
    if granted_urgent < want_urgent then
      top_room := room + urgent_share;
      top_paced := slowed;
    elsif granted_live < want_live then
      top_paced := granted_live >= free_live;
    end if;
    by_window := case when top_room >= 1 then 0 else coalesce(next_free, now_ms + span_ms) - now_ms end;
    by_pace := case when not top_paced or credits >= 1 then 0 else paced + every_ms - now_ms end;
    wait_ms := greatest(by_window, by_pace);
    if wait_ms <= 0 then wait_ms := every_ms; end if;
    wait_ms := ceil(greatest(1, least(wait_ms, beat_ms)));
  end if;

  if granted_urgent + granted_live + granted_backfill > 0 then
    insert into tributary.budget_leases (fingerprint, permits, backfill, granted_at, counted_until)
      values (token_fingerprint, granted_urgent + granted_live + granted_backfill, granted_backfill, now_at,
        to_timestamp((now_ms + valid_ms + span_ms) / 1000))
      returning id into new_id;
    lease_id := new_id;
  end if;
  waits_until := to_timestamp((now_ms + wait_ms + beat_ms) / 1000);
  update tributary.budgets b
    set requests_per_minute = per_minute,
        effective_per_minute = effective,
        paced_at = to_timestamp(paced / 1000),
        urgent_waits_until = case
          when want_urgent = 0 then b.urgent_waits_until when granted_urgent < want_urgent then waits_until end,
        live_waits_until = case
          when want_live = 0 then b.live_waits_until when granted_live < want_live then waits_until end,
        backfill_waits_until = case
          when want_backfill = 0 then b.backfill_waits_until when granted_backfill < want_backfill then waits_until end,
        updated_at = now_at
    where b.fingerprint = token_fingerprint;
  return next;
end
$$;

-- Nobody sends for this long. A 429 beside that lowers the effective rate by a quarter, once for all requests that
-- were on their way together, and never below a tenth of what is allowed.
create function tributary.hold_budget(
  token_fingerprint text,
  per_minute integer,
  span_ms double precision,
  hold_ms double precision,
  limited boolean
) returns void language plpgsql as $$
declare
  budget tributary.budgets;
  now_at timestamptz;
  now_ms double precision;
  until_at timestamptz;
begin
  insert into tributary.budgets (fingerprint, requests_per_minute, updated_at)
    values (token_fingerprint, per_minute, tributary.now()) on conflict do nothing;
  select * into budget from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  now_at := tributary.now();
  now_ms := tributary.budget_ms(now_at);
  until_at := greatest(budget.held_until, to_timestamp((now_ms + hold_ms) / 1000));
  if limited then
    budget.refusals := budget.refusals + 1;
    if per_minute is not null
      and coalesce(now_ms >= tributary.budget_ms(budget.lowered_at) + span_ms / 6, true)
      and coalesce(now_at >= budget.held_until, true)
    then
      budget.lowered_to := greatest(ceil(per_minute / 10.0), 0.75 * tributary.budget_effective(
        per_minute, budget.lowered_to, tributary.budget_ms(budget.lowered_at), now_ms, span_ms));
      budget.lowered_at := until_at;
      budget.effective_per_minute := budget.lowered_to;
    end if;
    budget.last_429_at := now_at;
  end if;
  update tributary.budgets b
    set held_until = until_at, refusals = budget.refusals, lowered_to = budget.lowered_to,
        lowered_at = budget.lowered_at, effective_per_minute = budget.effective_per_minute,
        last_429_at = budget.last_429_at, updated_at = now_at
    where b.fingerprint = token_fingerprint;
end
$$;
