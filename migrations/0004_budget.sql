-- One rate budget per token for all processes of this warehouse.

create table tributary.budgets (
  fingerprint text primary key check (fingerprint ~ '^[0-9a-f]{64}$'),
  version bigint not null default 1,
  requests_per_minute integer check (requests_per_minute > 0),
  used integer[] not null default '{}',
  retry_after_at timestamptz,
  rate_limited_count bigint not null default 0,
  last_429_at timestamptz,
  rule jsonb not null default '{}',
  updated_at timestamptz not null
) with (fillfactor = 50);
comment on table tributary.budgets is 'The rate budget of each token, for all processes together.';
comment on column tributary.budgets.fingerprint is 'SHA-256 of base address and token; no table holds the token itself.';
comment on column tributary.budgets.version is 'Rises with every change: a process stores a change only of the version that it read.';
comment on column tributary.budgets.requests_per_minute is 'The limit of the process that wrote last; null without a limit.';
comment on column tributary.budgets.used is 'Permits by the quarter of a second at whose end they stop counting; the first one is that of updated_at.';
comment on column tributary.budgets.retry_after_at is 'The end of the pause: no process sends before it. A pause that ends before its Retry-After is followed by one probe.';
comment on column tributary.budgets.rate_limited_count is 'How often the source answered 429.';
comment on column tributary.budgets.last_429_at is 'When the source last answered 429.';
comment on column tributary.budgets.rule is 'What src/budget/PermitRule.ts remembers besides: the even pace, the lowered rate, the answer that requested the last pause, the probe.';
comment on column tributary.budgets.updated_at is 'When the row last changed.';

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
comment on table tributary.budget_usage is 'The use of each token''s budget, every fifteen seconds while tributary serve runs; kept for a day. Ends with the read model.';
comment on column tributary.budget_usage.fingerprint is 'The token, as in tributary.budgets.';
comment on column tributary.budget_usage.at is 'The time of the sample.';
comment on column tributary.budget_usage.used is 'Requests of the last minute.';
comment on column tributary.budget_usage.allowed is 'The limit at that time: lower than configured after a 429.';
comment on column tributary.budget_usage.configured is 'The configured limit at that time, in requests a minute.';
comment on column tributary.budget_usage.rate_limited_count is 'How often the source had answered 429 by then.';
comment on column tributary.budget_usage.is_paused is 'Whether requests were paused (Retry-After).';

-- The usual case of `take` in src/budget/PermitRule.ts, in one statement under the lock of the row; a test compares the
-- two. Where the row does not exist, in a pause, before a probe and after the clock was set back it answers no row: the
-- program applies its rule.
create function tributary.take_permits(
  token_fingerprint text,
  per_minute integer,
  want_urgent integer,
  want_live integer,
  want_backfill integer,
  valid_ms double precision
) returns table (urgent integer, live integer, backfill integer, wait_ms double precision) language plpgsql as $$
declare
  span_ms constant double precision := 60500;
  slot_ms constant double precision := 250;
  budget tributary.budgets;
  now_at timestamptz;
  now_ms double precision;
  slot bigint;
  counted integer;
  allowed integer;
  slowed boolean;
  reserved integer;
  every_ms double precision;
  paced double precision;
  room integer;
  credits integer;
  kept integer;
  at_once integer;
  paid integer;
  last integer;
  next_ms double precision;
begin
  select * into budget from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  now_at := date_trunc('milliseconds', tributary.now());
  if budget.fingerprint is null or now_at < budget.updated_at or budget.retry_after_at > now_at
    or (budget.rule ->> 'cappedPauses')::integer > 0
  then
    return;
  end if;
  now_ms := extract(epoch from now_at) * 1000;
  slot := floor(now_ms / slot_ms);
  budget.used := budget.used[slot - floor(extract(epoch from budget.updated_at) * 1000 / slot_ms)::bigint + 1:];
  counted := coalesce((select sum(n) from unnest(budget.used) n), 0);

  allowed := greatest(1, least(per_minute, floor(1e-9 + (budget.rule #>> '{lowered,to}')::double precision
    + per_minute * 0.05 * greatest(0, now_ms - (budget.rule #>> '{lowered,at}')::double precision) / span_ms)));
  slowed := allowed < per_minute;
  reserved := allowed / 200;
  every_ms := span_ms / (allowed - reserved);
  paced := greatest((budget.rule ->> 'pacedAt')::double precision, now_ms - greatest(1000, 2 * every_ms));
  room := allowed - counted;
  credits := floor((now_ms - paced) / every_ms + 1e-3);

  urgent := greatest(0, least(want_urgent, room, case when slowed then credits + 2 end));
  room := room - urgent;
  paid := case when slowed then urgent else 0 end;
  kept := case when want_backfill > 0 and room >= 1 and (not slowed or credits - paid + 2 >= 1)
      and now_ms >= (budget.rule ->> 'backfillAt')::double precision + 10 * every_ms then 1 else 0 end;

  at_once := case when slowed then 0 else greatest(0, (allowed + 1) / 2 - counted - urgent) end;
  live := greatest(0, least(want_live, room - kept - reserved / 2, at_once + greatest(0, credits - paid - kept + 1)));
  room := room - live;
  paid := paid + greatest(0, live - at_once);

  backfill := greatest(0, least(want_backfill, greatest(kept, least(room - reserved, credits - paid))));
  room := room - backfill;
  paced := paced + (paid + backfill) * every_ms;

  last := ceil((now_ms + valid_ms + span_ms) / slot_ms) - slot;
  budget.used := budget.used || array_fill(0, array[greatest(0, last - cardinality(budget.used))]);
  budget.used[last] := budget.used[last] + urgent + live + backfill;
  next_ms := case when room <= reserved
    then (slot + (select min(i) from unnest(budget.used) with ordinality u(n, i) where n > 0)) * slot_ms
    else paced + every_ms end;
  wait_ms := case when urgent < want_urgent or live < want_live or backfill < want_backfill
    then ceil(greatest(1, least(next_ms - now_ms, 1000))) else 0 end;
  if urgent + live + backfill > 0 then
    update tributary.budgets b
      set version = b.version + 1, requests_per_minute = per_minute, used = budget.used, updated_at = now_at,
          rule = b.rule || jsonb_build_object('pacedAt', paced) ||
            case when backfill > 0 then jsonb_build_object('backfillAt', now_ms) else '{}' end
      where b.fingerprint = token_fingerprint;
  end if;
  return next;
end
$$;
comment on function tributary.take_permits is 'Grants as many of the requested permits as may be used now.';
