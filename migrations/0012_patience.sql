-- Bounded patience: how long a Retry-After is believed, the probe after a longer one, and who asked for the pause.
-- The rule is written twice, here and in src/budget/PermitPolicy.ts; the test that holds them equal covers these functions too.

alter table tributary.budgets
  add column held_at timestamptz,
  add column held_origin text check (held_origin in ('source', 'intermediary')),
  add column held_status integer,
  add column held_request text,
  add column held_stated_ms double precision,
  add column cut_holds integer not null default 0,
  add column probe_until timestamptz,
  add column exempt_request text,
  add column releases bigint not null default 0;
comment on column tributary.budgets.held_until is 'No process sends before this time. A longer Retry-After than is believed ends here all the same; one probe follows.';
comment on column tributary.budgets.held_at is 'When the answer arrived that requested the last pause.';
comment on column tributary.budgets.held_origin is 'Who requested it: source (the answer had the error body of the API) or intermediary (it had none: a proxy, a firewall, a captive portal).';
comment on column tributary.budgets.held_status is 'The status code of that answer.';
comment on column tributary.budgets.held_request is 'Method and path of the request that it answered.';
comment on column tributary.budgets.held_stated_ms is 'The Retry-After of that answer, in milliseconds.';
comment on column tributary.budgets.cut_holds is 'Pauses in a row that ended before their Retry-After. Above 0, the next permit after the pause is a probe.';
comment on column tributary.budgets.probe_until is 'A probe is under way; another one is sent after this time.';
comment on column tributary.budgets.exempt_request is 'A request whose long Retry-After pauses no other request: others were answered when this one was not.';
comment on column tributary.budgets.releases is 'How often a person ended a pause (tributary budget release).';

-- A pause that an earlier version stored without a bound.
-- short: a row per token
update tributary.budgets set held_until = least(held_until, tributary.now() + interval '24 hours');

-- The longest Retry-After that is believed.
create function tributary.budget_believed_ms(origin text, limited boolean, level integer) returns double precision
  language sql immutable parallel safe as $$
  select case
    when origin = 'source' then 86400000
    when limited then 3600000
    else least(3600000, 60000 * power(4, least(level, 10))) end::double precision
$$;

-- An answer with a Retry-After. Returns how long no process may send.
create function tributary.report_hold(
  token_fingerprint text,
  per_minute integer,
  span_ms double precision,
  hold_ms double precision,
  limited boolean,
  origin text,
  status integer,
  request text
) returns double precision language plpgsql as $$
declare
  budget tributary.budgets;
  now_at timestamptz;
  now_ms double precision;
  stated double precision := least(greatest(hold_ms, 0), 1e12);
  believed double precision;
  news boolean;
  until_at timestamptz;
begin
  insert into tributary.budgets (fingerprint, requests_per_minute, updated_at)
    values (token_fingerprint, per_minute, tributary.now()) on conflict do nothing;
  select * into budget from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  now_at := tributary.now();
  now_ms := tributary.budget_ms(now_at);
  -- Requests that were under way together are one sign.
  news := coalesce(now_at >= budget.held_until, true);
  believed := tributary.budget_believed_ms(
    origin, limited, case when news then budget.cut_holds else greatest(0, budget.cut_holds - 1) end);
  if stated > believed and origin = 'intermediary' and not limited and request = budget.exempt_request then
    return greatest(0, coalesce(tributary.budget_ms(budget.held_until), 0) - now_ms);
  end if;
  until_at := to_timestamp((now_ms + least(stated, believed)) / 1000);
  if budget.held_until >= until_at then
    until_at := budget.held_until;
  else
    budget.held_at := now_at;
    budget.held_origin := origin;
    budget.held_status := status;
    budget.held_request := request;
    budget.held_stated_ms := stated;
  end if;
  if stated > believed then
    budget.cut_holds := case when news then budget.cut_holds + 1 else greatest(1, budget.cut_holds) end;
  end if;
  if limited then
    budget.refusals := budget.refusals + 1;
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
    set held_until = until_at, held_at = budget.held_at, held_origin = budget.held_origin,
        held_status = budget.held_status, held_request = budget.held_request, held_stated_ms = budget.held_stated_ms,
        cut_holds = budget.cut_holds, probe_until = null, refusals = budget.refusals,
        lowered_to = budget.lowered_to, lowered_at = budget.lowered_at,
        effective_per_minute = budget.effective_per_minute, last_429_at = budget.last_429_at, updated_at = now_at
    where b.fingerprint = token_fingerprint;
  return greatest(0, tributary.budget_ms(until_at) - now_ms);
end
$$;

-- For processes of an earlier version, which do not say who answered.
create or replace function tributary.hold_budget(
  token_fingerprint text,
  per_minute integer,
  span_ms double precision,
  hold_ms double precision,
  limited boolean
) returns void language plpgsql as $$
begin
  perform tributary.report_hold(token_fingerprint, per_minute, span_ms, hold_ms, limited, 'source',
    case when limited then 429 else 503 end, null);
end
$$;

-- Permits as by lease_permits, and by its rule. After a pause that ended before its Retry-After one permit is granted,
-- the probe; all others wait for what became of it. Without a limit every wanted permit is granted.
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
  held_ms double precision,
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
    if budget.held_until > now_at + least(interval '24 hours', budget.held_until - budget.held_at) then
      budget.held_until := now_at + least(interval '24 hours', budget.held_until - budget.held_at);
      budget.held_at := now_at;
      update tributary.budgets b set held_until = budget.held_until, held_at = now_at
        where b.fingerprint = token_fingerprint;
    end if;
    probing := budget.cut_holds > 0 and coalesce(budget.held_until <= now_at, true)
      and want_urgent + want_live + want_backfill > 0;
  end if;
  if probing then
    probe_out := coalesce(budget.probe_until > now_at and budget.probe_until <= now_at + interval '60 seconds', false);
    urgent := case when not probe_out and want_urgent > 0 then 1 else 0 end;
    live := case when not probe_out and want_urgent = 0 and want_live > 0 then 1 else 0 end;
    low := case when not probe_out and want_urgent = 0 and want_live = 0 then 1 else 0 end;
  end if;

  if per_minute is null then
    held_ms := greatest(0,
      coalesce(tributary.budget_ms(budget.held_until), 0) - coalesce(tributary.budget_ms(now_at), 0));
    granted_urgent := case when held_ms > 0 then 0 else urgent end;
    granted_live := case when held_ms > 0 then 0 else live end;
    granted_backfill := case when held_ms > 0 then 0 else low end;
    wait_ms := 0;
    effective := 'Infinity';
  else
    select p.lease_id, p.granted_urgent, p.granted_live, p.granted_backfill, p.wait_ms, p.held_ms, p.effective
      into lease_id, granted_urgent, granted_live, granted_backfill, wait_ms, held_ms, effective
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
  if held_ms > 0 then
    by_origin := budget.held_origin;
    by_status := budget.held_status;
    by_request := budget.held_request;
    by_stated_ms := budget.held_stated_ms;
    by_ago_ms := greatest(0, tributary.budget_ms(now_at) - tributary.budget_ms(budget.held_at));
  end if;
  return next;
end
$$;

-- What became of the probe: answered, so that all may send again, or not known, so that another one may be sent.
create function tributary.end_probe(token_fingerprint text, request text, answered boolean) returns void
  language sql as $$
  update tributary.budgets b
    set probe_until = null,
        cut_holds = case when answered then 0 else b.cut_holds end,
        exempt_request = case
          when not answered then b.exempt_request
          when b.held_request = request then null
          when b.held_origin = 'intermediary' and b.held_status <> 429 then b.held_request
          else b.exempt_request end
    where b.fingerprint = token_fingerprint and b.probe_until is not null
$$;

-- A person ends the pause. Returns whether there was one.
create function tributary.release_budget(token_fingerprint text) returns boolean language plpgsql as $$
declare
  was boolean;
begin
  select coalesce(b.held_until > tributary.now(), false) or b.cut_holds > 0 into was
    from tributary.budgets b where b.fingerprint = token_fingerprint for update;
  update tributary.budgets b
    set held_until = null, cut_holds = 0, probe_until = null, exempt_request = null, releases = b.releases + 1
    where b.fingerprint = token_fingerprint;
  return coalesce(was, false);
end
$$;

-- The learned overlap decays: by half for each week since a row was last late.
alter table tributary.checkpoints add column late_at timestamptz default now();
comment on column tributary.checkpoints.late_at is 'When a late row last asked for the overlap of overlap_ms; it counts half as much for each week since.';

-- What full scans found out about fields, for people.
create table tributary.field_findings (
  company_id bigint not null,
  resource text not null,
  field text not null,
  kind text not null check (kind in ('volatile', 'absent')),
  runs integer not null default 1,
  rows bigint not null,
  first_run_id bigint not null,
  last_run_id bigint not null,
  found_at timestamptz not null,
  primary key (company_id, resource, kind, field)
);
comment on table tributary.field_findings is 'Fields that a completed full scan found to be volatile (changed in most records although these did not change) or absent (in no record, although rows hold values). A full scan that finds otherwise removes the finding.';
comment on column tributary.field_findings.runs is 'Full scans in a row that found it.';
comment on column tributary.field_findings.rows is 'volatile: records that changed in the last of them; absent: rows that still hold a value.';
