-- One rate budget per token for all processes of this warehouse. The rule is written twice, here and in
-- src/budget/PermitPolicy.ts (for programs without a warehouse); a test runs both side by side on random histories.

create table tributary.budgets (
  fingerprint text primary key check (fingerprint ~ '^[0-9a-f]{64}$'),
  requests_per_minute integer check (requests_per_minute > 0),
  effective_per_minute double precision,
  lowered_to double precision,
  lowered_at timestamptz,
  last_429_at timestamptz,
  rate_limited_count bigint not null default 0,
  retry_after_at timestamptz,
  paced_at timestamptz,
  urgent_waiter_until timestamptz,
  live_waiter_until timestamptz,
  backfill_waiter_until timestamptz,
  updated_at timestamptz not null,
  paused_at timestamptz,
  pause_origin text check (pause_origin in ('source', 'intermediary')),
  pause_status integer,
  pause_request text,
  pause_stated_ms double precision,
  shortened_pauses integer not null default 0,
  probe_until timestamptz,
  exempt_request text,
  releases bigint not null default 0
) with (fillfactor = 50);
comment on table tributary.budgets is 'The rate budget of each token, for all processes together.';
comment on column tributary.budgets.fingerprint is 'SHA-256 of base address and token; no table holds the token itself.';
comment on column tributary.budgets.requests_per_minute is 'The limit of the process that wrote last; null without a limit.';
comment on column tributary.budgets.effective_per_minute is 'The limit at present: lower than configured while another program uses the same token.';
comment on column tributary.budgets.lowered_to is 'The effective rate after the last 429; it rises again from lowered_at on.';
comment on column tributary.budgets.lowered_at is 'When lowered_to was set: the time of the last 429 that lowered the limit.';
comment on column tributary.budgets.last_429_at is 'When the source last answered 429.';
comment on column tributary.budgets.rate_limited_count is 'How often the source answered 429.';
comment on column tributary.budgets.retry_after_at is 'The end of the pause: no process sends before it. A pause that ends before its Retry-After is followed by one probe.';
comment on column tributary.budgets.paced_at is 'The time up to which the even pace is used.';
comment on column tributary.budgets.urgent_waiter_until is 'Urgent work waits for a permit until this time, unless its process requests again; live and backfill likewise.';
comment on column tributary.budgets.live_waiter_until is 'As urgent_waiter_until, for live work.';
comment on column tributary.budgets.backfill_waiter_until is 'As urgent_waiter_until, for backfills.';
comment on column tributary.budgets.updated_at is 'When the row last changed.';
comment on column tributary.budgets.paused_at is 'When the answer arrived that requested the last pause.';
comment on column tributary.budgets.pause_origin is 'The sender of that answer: source (it had the error body of the API) or intermediary (it had none: a proxy, a firewall, a captive portal).';
comment on column tributary.budgets.pause_status is 'The status code of that answer.';
comment on column tributary.budgets.pause_request is 'Method and path of the request that it answered.';
comment on column tributary.budgets.pause_stated_ms is 'The Retry-After of that answer, in milliseconds.';
comment on column tributary.budgets.shortened_pauses is 'Pauses in a row that ended before their Retry-After. Above 0, the next permit after the pause is a probe.';
comment on column tributary.budgets.probe_until is 'A probe is under way; another one is sent after this time.';
comment on column tributary.budgets.exempt_request is 'A request whose long Retry-After pauses no other request: others were answered when this one was not.';
comment on column tributary.budgets.releases is 'How often a person ended a pause (tributary budget release).';

create table tributary.budget_leases (
  id bigint generated always as identity primary key,
  fingerprint text not null references tributary.budgets on delete cascade,
  permits integer not null check (permits > 0),
  backfill integer not null check (backfill between 0 and permits),
  granted_at timestamptz not null,
  counted_until timestamptz not null
);
comment on table tributary.budget_leases is 'Permits that a process has and that still count. Permits of a killed process count as used until they expire.';
comment on column tributary.budget_leases.id is 'The number of the lease.';
comment on column tributary.budget_leases.fingerprint is 'The token, as in tributary.budgets.';
comment on column tributary.budget_leases.permits is 'The permits of the lease.';
comment on column tributary.budget_leases.backfill is 'The permits for backfills among them.';
comment on column tributary.budget_leases.granted_at is 'When the permits were granted.';
comment on column tributary.budget_leases.counted_until is 'Until when the permits count as used.';
create index budget_leases_by_budget on tributary.budget_leases (fingerprint, counted_until);

create table tributary.budget_usage (
  fingerprint text not null,
  at timestamptz not null,
  used integer not null,
  allowed integer,
  configured integer,
  rate_limited_count bigint not null,
  is_paused boolean not null,
  primary key (fingerprint, at)
);
comment on table tributary.budget_usage is 'The use of each token''s budget, every fifteen seconds while tributary serve runs; kept for a day.';
comment on column tributary.budget_usage.fingerprint is 'The token, as in tributary.budgets.';
comment on column tributary.budget_usage.at is 'The time of the sample.';
comment on column tributary.budget_usage.used is 'Requests of the last minute.';
comment on column tributary.budget_usage.allowed is 'The limit at that time: lower than configured after a 429.';
comment on column tributary.budget_usage.configured is 'The configured limit at that time, in requests a minute.';
comment on column tributary.budget_usage.rate_limited_count is 'How often the source had answered 429 by then.';
comment on column tributary.budget_usage.is_paused is 'Whether requests were paused (Retry-After).';

-- Postgres inserts the text of a function into a query only where the function is not declared more constant than its
-- text. `extract` of a time is stable. A lease computes one time for each lease of the last minute.
create function tributary.budget_ms(at timestamptz) returns double precision language sql stable parallel safe as
  'select (extract(epoch from at) * 1000)::double precision';
comment on function tributary.budget_ms is 'A time as milliseconds since 1970.';

-- The effective rate: after a 429 it rises by a twentieth of what is allowed in every window.
create function tributary.budget_effective(
  per_minute integer, lowered_to double precision, lowered_ms double precision, now_ms double precision,
  span_ms double precision
) returns double precision language sql immutable parallel safe as $$
  select case when lowered_to is null then per_minute
    else least(per_minute, lowered_to + per_minute * 0.05 * greatest(0, now_ms - lowered_ms) / span_ms) end
$$;
comment on function tributary.budget_effective is 'The limit of a token at present: after a 429 it rises by a twentieth of what is allowed in each minute.';

-- The longest pause that an answer may cause, whatever its Retry-After.
create function tributary.budget_pause_max_ms(origin text, limited boolean, level integer) returns double precision
  language sql immutable parallel safe as $$
  select case
    when origin = 'source' then 86400000
    when limited then 3600000
    else least(3600000, 60000 * power(4, least(level, 10))) end::double precision
$$;
comment on function tributary.budget_pause_max_ms is 'The longest pause that an answer may cause, whatever its Retry-After, in milliseconds.';

-- Grants as many of the wanted permits as may be used now, and takes back the unused ones of an earlier lease. One
-- transaction with the row of the token locked: processes take turns here.
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
  paused_ms double precision,
  effective double precision
) language plpgsql as $$
declare
  budget tributary.budgets;
  now_at timestamptz;
  now_ms double precision;
  counted integer;
  low integer;
  next_free double precision;
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
  waiter_until timestamptz;
  new_id bigint;
begin
  select * into budget from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  if not found then
    insert into tributary.budgets (fingerprint, requests_per_minute, updated_at)
      values (token_fingerprint, per_minute, tributary.now()) on conflict do nothing;
    -- Budgets of tokens that are no longer used are removed.
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
  -- After the clock was set back, permits would count for too long.
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
  paused_ms := greatest(0, coalesce(tributary.budget_ms(budget.retry_after_at), 0) - now_ms);
  if paused_ms > 0 or want_urgent + want_live + want_backfill = 0 then
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

  yields := want_urgent = 0 and coalesce(budget.urgent_waiter_until > now_at, false)
    and budget.urgent_waiter_until <= to_timestamp((now_ms + 3 * beat_ms) / 1000);
  kept := case
    when low * 10 < allowed
      and (want_backfill > 0 or coalesce(budget.backfill_waiter_until > now_at, false)) then 1 else 0 end;
  free_live := case when slowed then 0 else greatest(0, (allowed + 1) / 2 - counted - granted_urgent) end;
  if not yields then
    granted_live := greatest(0, least(want_live, room - kept, free_live + greatest(0, credits - kept)));
    credits := credits - greatest(0, granted_live - free_live);
    paced := paced + greatest(0, granted_live - free_live) * every_ms;
    room := room - granted_live;
  end if;

  yields := yields or granted_live < want_live
    or (want_live = 0 and coalesce(budget.live_waiter_until > now_at, false)
      and budget.live_waiter_until <= to_timestamp((now_ms + 3 * beat_ms) / 1000));
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
  waiter_until := to_timestamp((now_ms + wait_ms + beat_ms) / 1000);
  update tributary.budgets b
    set requests_per_minute = per_minute,
        effective_per_minute = effective,
        paced_at = to_timestamp(paced / 1000),
        urgent_waiter_until = case
          when want_urgent = 0 then b.urgent_waiter_until when granted_urgent < want_urgent then waiter_until end,
        live_waiter_until = case
          when want_live = 0 then b.live_waiter_until when granted_live < want_live then waiter_until end,
        backfill_waiter_until = case
          when want_backfill = 0 then b.backfill_waiter_until when granted_backfill < want_backfill then waiter_until end,
        updated_at = now_at
    where b.fingerprint = token_fingerprint;
  return next;
end
$$;
comment on function tributary.lease_permits is 'Grants as many of the requested permits as may be used now, and takes back the unused ones of an earlier lease.';

-- Pauses the budget after an answer with a Retry-After. Returns the length of the pause.
create function tributary.report_pause(
  token_fingerprint text,
  per_minute integer,
  span_ms double precision,
  requested_ms double precision,
  limited boolean,
  origin text,
  status integer,
  request text
) returns double precision language plpgsql as $$
declare
  budget tributary.budgets;
  now_at timestamptz;
  now_ms double precision;
  stated double precision := least(greatest(requested_ms, 0), 1e12);
  pause_max double precision;
  news boolean;
  until_at timestamptz;
begin
  insert into tributary.budgets (fingerprint, requests_per_minute, updated_at)
    values (token_fingerprint, per_minute, tributary.now()) on conflict do nothing;
  select * into budget from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  now_at := tributary.now();
  now_ms := tributary.budget_ms(now_at);
  -- Answers to requests in flight together count once.
  news := coalesce(now_at >= budget.retry_after_at, true);
  pause_max := tributary.budget_pause_max_ms(
    origin, limited, case when news then budget.shortened_pauses else greatest(0, budget.shortened_pauses - 1) end);
  if stated > pause_max and origin = 'intermediary' and not limited and request = budget.exempt_request then
    return greatest(0, coalesce(tributary.budget_ms(budget.retry_after_at), 0) - now_ms);
  end if;
  until_at := to_timestamp((now_ms + least(stated, pause_max)) / 1000);
  if budget.retry_after_at >= until_at then
    until_at := budget.retry_after_at;
  else
    budget.paused_at := now_at;
    budget.pause_origin := origin;
    budget.pause_status := status;
    budget.pause_request := request;
    budget.pause_stated_ms := stated;
  end if;
  if stated > pause_max then
    budget.shortened_pauses := case when news then budget.shortened_pauses + 1 else greatest(1, budget.shortened_pauses) end;
  end if;
  if limited then
    budget.rate_limited_count := budget.rate_limited_count + 1;
    if per_minute is not null and news
      and coalesce(now_ms >= tributary.budget_ms(budget.lowered_at) + span_ms / 6, true)
    then
      budget.lowered_to := greatest(ceil(per_minute / 10.0), 0.75 * tributary.budget_effective(
        per_minute, budget.lowered_to, tributary.budget_ms(budget.lowered_at), now_ms, span_ms));
      budget.lowered_at := until_at;
      budget.effective_per_minute := budget.lowered_to;
    end if;
    budget.last_429_at := now_at;
  end if;
  update tributary.budgets b
    set retry_after_at = until_at, paused_at = budget.paused_at, pause_origin = budget.pause_origin,
        pause_status = budget.pause_status, pause_request = budget.pause_request, pause_stated_ms = budget.pause_stated_ms,
        shortened_pauses = budget.shortened_pauses, probe_until = null, rate_limited_count = budget.rate_limited_count,
        lowered_to = budget.lowered_to, lowered_at = budget.lowered_at,
        effective_per_minute = budget.effective_per_minute, last_429_at = budget.last_429_at, updated_at = now_at
    where b.fingerprint = token_fingerprint;
  return greatest(0, tributary.budget_ms(until_at) - now_ms);
end
$$;
comment on function tributary.report_pause is 'Pauses a budget after an answer with a Retry-After. Returns the length of the pause in milliseconds.';

-- Permits as by lease_permits, and by its rule. After a pause that ended before its Retry-After one permit is granted,
-- the probe; the others wait for its result. Without a limit every wanted permit is granted.
create function tributary.lease_budget(
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
  paused_ms double precision,
  effective double precision,
  is_probe boolean,
  release_count bigint,
  by_origin text,
  by_status integer,
  by_request text,
  by_stated_ms double precision,
  by_ago_ms double precision
) language plpgsql as $$
declare
  budget tributary.budgets;
  now_at timestamptz;
  longest interval;
  probing boolean := false;
  probe_out boolean := false;
  urgent integer := want_urgent;
  live integer := want_live;
  low integer := want_backfill;
begin
  select * into budget from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  is_probe := false;
  release_count := coalesce(budget.releases, 0);
  if budget.fingerprint is not null then
    now_at := tributary.now();
    -- A clock that was set back would make the pause longer by its step.
    longest := least(interval '24 hours', budget.retry_after_at - budget.paused_at);
    if budget.retry_after_at > now_at + longest then
      budget.retry_after_at := now_at + longest;
      budget.paused_at := now_at;
      update tributary.budgets b set retry_after_at = budget.retry_after_at, paused_at = now_at
        where b.fingerprint = token_fingerprint;
    end if;
    probing := budget.shortened_pauses > 0 and coalesce(budget.retry_after_at <= now_at, true)
      and want_urgent + want_live + want_backfill > 0;
  end if;
  if probing then
    probe_out := coalesce(budget.probe_until > now_at and budget.probe_until <= now_at + interval '60 seconds', false);
    urgent := case when not probe_out and want_urgent > 0 then 1 else 0 end;
    live := case when not probe_out and want_urgent = 0 and want_live > 0 then 1 else 0 end;
    low := case when not probe_out and want_urgent = 0 and want_live = 0 then 1 else 0 end;
  end if;

  if per_minute is null then
    paused_ms := greatest(0,
      coalesce(tributary.budget_ms(budget.retry_after_at), 0) - coalesce(tributary.budget_ms(now_at), 0));
    granted_urgent := case when paused_ms > 0 then 0 else urgent end;
    granted_live := case when paused_ms > 0 then 0 else live end;
    granted_backfill := case when paused_ms > 0 then 0 else low end;
    wait_ms := 0;
    effective := 'Infinity';
  else
    select p.lease_id, p.granted_urgent, p.granted_live, p.granted_backfill, p.wait_ms, p.paused_ms, p.effective
      into lease_id, granted_urgent, granted_live, granted_backfill, wait_ms, paused_ms, effective
      from tributary.lease_permits(token_fingerprint, per_minute, span_ms, valid_ms, urgent, live, low,
        settled_id, settled_used, settled_age_ms) p;
  end if;
  if probing then
    is_probe := granted_urgent + granted_live + granted_backfill > 0;
    if is_probe then
      update tributary.budgets b set probe_until = now_at + interval '60 seconds'
        where b.fingerprint = token_fingerprint;
    end if;
    if probe_out or is_probe then wait_ms := 1000; end if;
  end if;
  if paused_ms > 0 then
    by_origin := budget.pause_origin;
    by_status := budget.pause_status;
    by_request := budget.pause_request;
    by_stated_ms := budget.pause_stated_ms;
    by_ago_ms := greatest(0, tributary.budget_ms(now_at) - tributary.budget_ms(budget.paused_at));
  end if;
  return next;
end
$$;
comment on function tributary.lease_budget is 'Grants permits as tributary.lease_permits does; after a shortened pause one permit, the probe.';

-- Ends a probe: after an answer all processes send again, else another probe may be sent.
create function tributary.end_probe(token_fingerprint text, request text, answered boolean) returns void
  language sql as $$
  update tributary.budgets b
    set probe_until = null,
        shortened_pauses = case when answered then 0 else b.shortened_pauses end,
        exempt_request = case
          when not answered then b.exempt_request
          when b.pause_request = request then null
          when b.pause_origin = 'intermediary' and b.pause_status <> 429 then b.pause_request
          else b.exempt_request end
    where b.fingerprint = token_fingerprint and b.probe_until is not null
$$;
comment on function tributary.end_probe is 'Ends a probe: after an answer all processes send again, else another probe may be sent.';

-- A person ends the pause. Returns whether there was one.
create function tributary.release_budget(token_fingerprint text) returns boolean language plpgsql as $$
declare
  was boolean;
begin
  select coalesce(b.retry_after_at > tributary.now(), false) or b.shortened_pauses > 0 into was
    from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  update tributary.budgets b
    set retry_after_at = null, shortened_pauses = 0, probe_until = null, exempt_request = null, releases = b.releases + 1
    where b.fingerprint = token_fingerprint;
  return coalesce(was, false);
end
$$;
comment on function tributary.release_budget is 'Ends the pause of a budget. Returns whether there was one.';
