-- What interfaces show: the state of each resource, and every problem that needs a person. Nothing else derives either.

create view tributary.resource_states as
select f.company, f.company_id, f.resource,
       case when s.is_failing then 'failing' when s.is_late then 'late' when s.is_blocked then 'blocked' when s.is_paused then 'paused'
            when f.fresh_at is null then 'never-synced' when q.records > 0 then 'quarantine' else 'fresh' end as state,
       s.is_failing, s.is_late, s.is_blocked, s.is_paused, coalesce(r.status = 'running', false) as is_running,
       f.fresh_at, coalesce(f.proven_at = f.fresh_at, false) as is_proven,
       case when f.fresh_at is not null then greatest(f.age, interval '0') end as age, f.target,
       coalesce(extract(epoch from f.age) / nullif(extract(epoch from f.target), 0), 0)::float8 as lateness,
       q.records as quarantined, r.id as last_run_id, r.status as last_run_status, r.kind as last_run_kind,
       r.started_at as last_run_started_at, r.finished_at as last_run_finished_at,
       failure.kind as failure_kind, failure.at as failed_at, failure.error, failure.remedy, coalesce(t.failures, 0) as failures,
       greatest(case when not coalesce(f.proven_at = f.fresh_at, false) then f.fresh_at end,
                case when t.status in ('done', 'quarantined') then t.finished_at end) as succeeded_at,
       case when t.paused_at is null then t.next_run_at end as next_run_at
  from tributary.freshness f
  left join tributary.tasks t on t.company = f.company and t.resource = f.resource and t.kind = 'sync'
  left join lateral (
    select id, status, kind, started_at, finished_at, error_kind, error, remedy from tributary.runs
     where company_id = f.company_id and resource = f.resource and lane = 'live' order by id desc limit 1) r on true
  cross join lateral (
    select count(*) as records from tributary.quarantine
     where company_id = f.company_id and resource = f.resource and resolved_at is null) q
  -- A run of a command may have succeeded after the task failed.
  cross join lateral (
    select coalesce(t.status = 'skipped', false) as is_blocked, t.paused_at is not null as is_paused,
           t.status is distinct from 'skipped' and (coalesce(r.status = 'failed', false)
             or coalesce(t.status = 'failed' and (f.fresh_at is null or t.finished_at > f.fresh_at), false)) as is_failing,
           f.is_late and t.paused_at is null and not (f.fresh_at is null and coalesce(r.status = 'running', false)) as is_late) s
  -- The last failure, of its task or of a run that a command made.
  left join lateral (
    select o.kind, o.at, o.error, o.remedy from (values
      (t.failure_kind, t.finished_at, t.error, t.remedy, coalesce(t.status in ('failed', 'skipped'), false)),
      (r.error_kind, r.finished_at, r.error, r.remedy, coalesce(r.status = 'failed', false))) o(kind, at, error, remedy, holds)
     where o.holds and (s.is_failing or s.is_blocked) order by o.at desc nulls last limit 1) failure on true;
comment on view tributary.resource_states is 'The state of each resource of each company. For many companies, select some of them, or read tributary.problems.';
comment on column tributary.resource_states.company is 'The configured name; null where no program has stored it.';
comment on column tributary.resource_states.company_id is 'The number of the company in this warehouse; null until the source has answered it.';
comment on column tributary.resource_states.resource is 'The path of the resource.';
comment on column tributary.resource_states.state is 'The worst that holds: failing, late, blocked (the token may not read it), paused, never-synced, quarantine or fresh.';
comment on column tributary.resource_states.is_failing is 'Whether its last run failed, and none has succeeded since.';
comment on column tributary.resource_states.is_late is 'Whether its age exceeds its target, or no run made it fresh. A paused or blocked resource is not late, and neither is one whose first run is in progress.';
comment on column tributary.resource_states.is_blocked is 'Whether the token may not read it.';
comment on column tributary.resource_states.is_paused is 'Whether a person paused its schedule.';
comment on column tributary.resource_states.is_running is 'Whether a run is in progress.';
comment on column tributary.resource_states.fresh_at is 'The time before which every change is in the warehouse, as in tributary.freshness.';
comment on column tributary.resource_states.is_proven is 'Whether events prove that.';
comment on column tributary.resource_states.age is 'The time since fresh_at.';
comment on column tributary.resource_states.target is 'The configured maximum age; null without a task.';
comment on column tributary.resource_states.lateness is 'The age divided by the target; 0 without either.';
comment on column tributary.resource_states.quarantined is 'Its records that could not be landed and are not resolved.';
comment on column tributary.resource_states.last_run_id is 'Its last run of the live lane, with the four columns that follow; null before the first.';
comment on column tributary.resource_states.last_run_status is 'The status of that run, as in tributary.runs.';
comment on column tributary.resource_states.last_run_kind is 'The kind of that run, as in tributary.runs.';
comment on column tributary.resource_states.last_run_started_at is 'When that run began.';
comment on column tributary.resource_states.last_run_finished_at is 'When that run ended; null while it is in progress.';
comment on column tributary.resource_states.failure_kind is 'The kind of the failure of a failing or blocked resource, as in tributary.runs.error_kind.';
comment on column tributary.resource_states.failed_at is 'When it failed at last.';
comment on column tributary.resource_states.error is 'Why it failed at last.';
comment on column tributary.resource_states.remedy is 'What a person can do about it.';
comment on column tributary.resource_states.failures is 'Failures of its task in a row.';
comment on column tributary.resource_states.succeeded_at is 'When a run succeeded at last. A proof by events is no run.';
comment on column tributary.resource_states.next_run_at is 'When it runs next by its schedule; null when no time is set, or its schedule is paused.';

-- The installations whose source answers to none of several companies, which are at least half of theirs.
create view tributary.installation_outages as
with outages as (
  -- Of each company whose last runs all failed because its source did not answer: when, and why.
  select f.company, f.at, f.error, f.remedy, f.failures
    from (select company, max(finished_at) as at, max(failures) as failures,
                 bool_and(failure_kind in ('Unreachable', 'TimedOut', 'ServerFault', 'Malformed')) as is_outage,
                 (array_agg(error order by finished_at desc nulls last))[1] as error,
                 (array_agg(remedy order by finished_at desc nulls last))[1] as remedy
            from tributary.tasks where failure_kind is not null and kind = 'sync' group by company) f
    -- For each company by the key of the table: all tasks of a large warehouse are many.
    cross join lateral (
      select max(finished_at) filter (where status in ('done', 'quarantined')) as succeeded_at
        from tributary.tasks where company = f.company and kind = 'sync') t
   where f.is_outage and coalesce(t.succeeded_at <= f.at, true))
select c.installation, array_agg(o.company) filter (where o.company is not null) as companies, max(o.failures) as failures,
       (array_agg(o.error order by o.at desc nulls last))[1] as error, (array_agg(o.remedy order by o.at desc nulls last))[1] as remedy
  from tributary.companies c left join outages o using (company) where c.installation is not null
 group by c.installation having count(o.company) >= 2 and count(o.company) * 2 >= count(*);
comment on view tributary.installation_outages is 'Installations of the source that do not answer: the last runs of several companies, which are at least half of theirs, all failed for this reason.';
comment on column tributary.installation_outages.installation is 'The name of the installation, or the host of its address.';
comment on column tributary.installation_outages.companies is 'Its companies that it does not answer.';
comment on column tributary.installation_outages.failures is 'The most failures in a row.';
comment on column tributary.installation_outages.error is 'The last failure.';
comment on column tributary.installation_outages.remedy is 'What a person can do about it.';

-- Problems with resources. For each company in doubt all its resources are read: of many companies, select some.
create view tributary.resource_problems as
with doubt as (
  -- The companies whose counts (tributary.company_states) are bad, missing or out of date. The resources of others are well.
  select c.company
    from (select company from tributary.companies union select company from tributary.tasks where failures > 0 or paused_at is not null) c
    left join tributary.company_states s using (company)
   where s.company is null or s.state in ('failing', 'late') or s.blocked > 0
      -- Either becomes late when its run is abandoned or its pause ends, which no task in trouble shows.
      or s.never_synced > 0 or s.paused > 0
      or s.late_at <= (select tributary.now())
      or exists (select from tributary.tasks t
                  where t.company = c.company and (t.failures > 0 or t.paused_at is not null) and t.updated_at > s.counted_at)
      or c.company in (
           -- A run by a command failed after the count.
           select n.company from (select company_id, finished_at from tributary.runs where status = 'failed' order by id desc limit 1000) f
             join tributary.companies n using (company_id) join tributary.company_states o on o.company = n.company
            where f.finished_at > o.counted_at)),
down as (select unnest(companies) as company from tributary.installation_outages)
select kind, company, subject, case when level >= critical_from then 'critical' else 'warning' end as severity, level,
       size::float8 as size, since, what, remedy, command, is_consequence
  from (
select p.kind, d.company, p.subject, p.level, p.critical_from, p.size, p.since, p.what, p.remedy, p.command, p.is_consequence
  from doubt d
  cross join lateral (
    with states as materialized (select * from tributary.resource_states where company = d.company),
    refused as (
      -- Every run fails, and none has succeeded since the token was refused. A refused resource alone is a failing one.
      select failed_at, error, remedy from states s
       where is_failing and failure_kind in ('Unauthorized', 'Forbidden')
         and not exists (select from states o where not (o.is_failing or o.is_blocked or o.is_paused))
         and not exists (select from states o where o.succeeded_at > s.failed_at)
         and failed_at = (select max(o.failed_at) from states o where o.is_failing and o.failure_kind in ('Unauthorized', 'Forbidden'))
       limit 1)
    select 'token' as kind, '' as subject, 0 as level, 0 as critical_from, 1::float8 as size, null::timestamptz as since,
           coalesce(error, 'the reason is not known') as what, coalesce(remedy, 'issue a new token') as remedy,
           'tributary doctor --company ' || d.company as command, false as is_consequence
      from refused
    union all
    select 'failing', s.resource, (s.failures >= 10)::int, 1, greatest(1, s.failures),
           (select finished_at from tributary.runs
             where company_id = s.company_id and resource = s.resource and lane = 'live' and status = 'failed'
               and id > coalesce(greatest(
                     (select max(n.id) from (
                        select id, status from tributary.runs where company_id = s.company_id and resource = s.resource and lane = 'live'
                         order by id desc limit 500) n where n.status in ('done', 'quarantined')),
                     (select max(r.id) from tributary.runs r
                       where r.company_id = s.company_id and r.resource = s.resource and r.lane = 'live'
                         and r.kind in ('full', 'incremental') and r.status in ('done', 'quarantined'))), 0)
             order by id limit 1),
           coalesce(s.error, 'the reason is not known'), coalesce(s.remedy, 'see its last run'),
           'tributary status --company ' || d.company,
           d.company in (select company from down)
             or coalesce(s.failure_kind in ('Unauthorized', 'Forbidden'), false) and exists (select from refused)
      from states s where s.is_failing
    union all
    select 'late', s.resource, case when s.lateness > 1 then floor(log(2, s.lateness::numeric) + 1e-9)::int else 0 end, 2, s.lateness,
           s.fresh_at + s.target,
           case when s.fresh_at is null then 'it was never read to its end'
                else format('it is as of %sZ, and its freshness target is %s min',
                  to_char(s.fresh_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS'), trim_scale(round(extract(epoch from s.target) / 60, 1))) end
           || coalesce('; ' || w.why, ''), w.remedy, format('tributary sync %s --company %s', s.resource, d.company),
           s.is_failing or d.company in (select company from down)
             -- The first sync of a company reads one resource after another.
             or s.fresh_at is null and exists (select from states o where o.is_running)
      from states s
      cross join lateral (
        select * from (values
          (s.is_running, 'its run has not ended yet', 'see how far the run is'),
          (s.last_run_status = 'quarantined', 'its last run left records in quarantine', 'look at its quarantine; the resource is fresh again after a run without quarantine'),
          (s.next_run_at <= tributary.now(), 'it is due, and no process has begun its run yet', 'check that tributary serve runs, and that its rate budget is not used up'),
          (s.next_run_at is null, 'it is not scheduled', 'sync it now, or give it a schedule in the configuration'),
          (true, null, 'see its last run')) w(holds, why, remedy)
         where w.holds limit 1) w
     where s.is_late
    union all
    select 'blocked', s.resource, 0, 1, 1, s.failed_at, coalesce(s.error, 'the token may not read it'),
           coalesce(s.remedy, 'give the token the right to read it'), 'tributary doctor --company ' || d.company, false
      from states s where s.is_blocked) p) found;

-- Problems beside resources: each part reads only what is open, by an index.
create view tributary.other_problems as
with unresolved as (
  -- Push requests without a known outcome. A process of serve sends rows that were inserted by SQL again. It sends no rows of a
  -- push whose command has ended, and none of a paused company or of a resource that is not synced.
  select q.company, q.resource, q.requests, q.since, x.is_paused, v.is_served, coalesce(l.is_refused, false) as is_refused, l.error, l.remedy,
         (select o.push_id from tributary.outbox o
           where o.request_id = q.oldest and o.state = 'in_flight' and o.push_id is not null limit 1) as push
    from (select company, resource, count(*) as requests, min(created_at) as since, min(id) as oldest
            from tributary.push_requests where state = 'open' group by 1, 2) q
    left join tributary.companies k using (company)
    cross join lateral (
      select exists (select from tributary.company_settings c where c.company = q.company and c.paused_at is not null) as is_paused) x
    cross join lateral (
      select not x.is_paused
             -- Hashed once: the arrays have thousands of names.
             and q.company in (select unnest(p.companies) from tributary.processes_alive p)
             and exists (select from tributary.tasks t where t.company = q.company and t.resource = q.resource and t.kind = 'sync')
             and exists (select from tributary.outbox o where o.company = q.company and o.resource = q.resource
                            and o.state in ('pending', 'in_flight') and o.push_id is null) as is_served) v
    -- Where no process pushes, a run that did not end was killed: its lock is free. Other failures end by themselves.
    left join lateral (
      select status = 'failed' and error_kind in ('Unauthorized', 'Forbidden', 'NotFound', 'Refused', 'NotImplemented', 'TooLarge',
               'Redirected', 'PagingBroken', 'SourceChanged', 'NewerCatalogue') as is_refused, error, remedy
        from tributary.runs
       where company_id = k.company_id and resource = q.resource and lane = 'push' and (status <> 'running' or not v.is_served)
       order by id desc limit 1) l on true
   where case when v.is_served then coalesce(l.is_refused, false)
              -- The lock of its push, as in src/warehouse/LaneLock.ts.
              else not exists (
                select from pg_locks
                 where locktype = 'advisory' and objsubid = 1 and granted
                   and database = (select oid from pg_database where datname = current_database())
                   and (classid::bigint << 32 | objid::bigint)
                     = hashtextextended('tributary:' || k.company_id || ':' || q.resource || ':push', 0)) end)
select kind, company, subject, case when level >= critical_from then 'critical' else 'warning' end as severity, level,
       size::float8 as size, since, what, remedy, command, is_consequence
  from (
select 'installation' as kind, null as company, installation as subject, (failures >= 10)::int as level, 1 as critical_from,
       cardinality(companies) as size, null::timestamptz as since, coalesce(error, 'the reason is not known') as what,
       coalesce(remedy, 'see the reason') as remedy, 'tributary status' as command, false as is_consequence
  from tributary.installation_outages
union all
select 'quarantine', c.company, q.resource, floor(log(q.records) + 1e-9)::int, 2, q.records, q.since,
       q.records || case when q.records = 1 then ' record' else ' records' end || ' could not be landed',
       'see the reason, then correct the record at the source',
       format('tributary query "select record_id, field, reason from tributary.quarantine where resource = ''%s'' and resolved_at is null"', q.resource),
       false
  from (select company_id, resource, count(*) as records, min(first_seen_at) as since
          from tributary.quarantine where resolved_at is null group by company_id, resource) q
  join tributary.companies c using (company_id)
union all
-- Of events.
select 'dead_letters', d.company, '', floor(log(d.events) + 1e-9)::int, 0, d.events, o.received_at,
       coalesce(split_part(i.last_error, '; ', 1), 'its processing failed for the last time'), 'remove the cause, then replay them',
       'tributary webhooks replay --dead', false
  from (select company, count(*) as events, max(id) as newest, min(id) as oldest
          from tributary.inbox where state = 'dead_letter' group by company) d
  join tributary.inbox i on i.id = d.newest join tributary.inbox o on o.id = d.oldest
union all
select 'gap', company, resource, 0, 1, count(*), min(coalesce(began_at, detected_at)),
       'events about it may have been dropped: ' || (array_agg(detail order by id desc))[1],
       'let the source deliver again; the gap closes with the next run', 'tributary webhooks ensure --company ' || company, false
  from tributary.delivery_gaps where closed_at is null and ended_at is null group by company, resource
union all
select 'subscription', s.company, '', 0, 1, count(*), min(s.disabled_at),
       coalesce(max(s.last_error), 'the source does not deliver its events'), 'resume it, or create it again',
       'tributary webhooks ensure --company ' || s.company,
       exists (select from tributary.delivery_gaps g where g.company = s.company and g.closed_at is null and g.ended_at is null)
  from tributary.subscriptions s
 where s.state in ('paused', 'disabled') or s.state = 'deleted' and not exists (
         select from tributary.subscriptions o where o.company = s.company and o.state <> 'deleted')
 group by s.company
union all
select 'receiver', s.company, '', 0, 0, 1, null, 'no process receives its events, and the source drops what it cannot deliver',
       'start one', 'tributary serve', false
  from (select distinct company from tributary.subscriptions where state <> 'deleted') s
 where s.company not in (select unnest(companies) from tributary.processes_alive)
union all
-- Of pushes.
select 'rejected', r.company, r.resource, floor(log(r.records) + 1e-9)::int, 0, r.records, o.resolved_at,
       coalesce(n.reason, n.code, 'the source rejected it'), 'correct the record, then try again', 'tributary push status', false
  from (select company, resource, count(*) as records, max(id) as newest, min(id) as oldest
          from tributary.outbox where state = 'rejected' group by company, resource) r
  join tributary.outbox n on n.id = r.newest join tributary.outbox o on o.id = r.oldest
union all
select 'unresolved', u.company, u.resource, 0, 1, u.requests, u.since,
       case when u.is_paused then 'the company is paused' else coalesce(u.error, 'the push ended before the answer') end,
       case when u.is_refused and not u.is_paused and u.remedy is not null then u.remedy || case when u.is_served then '' else '; then continue the push' end
            when u.is_paused then 'resume the company' else 'continue the push' end,
       case when u.is_paused then 'tributary company resume ' || u.company
            when not u.is_served then 'tributary push retry ' || coalesce(u.push::text, format('%s --company %s', u.resource, u.company)) end, false
  from unresolved u where tributary.push_pause_reason() is null
union all
select 'restore', null, '', 0, 0, 1, null, 'pushes are paused: ' || reason,
       'compare the pending records (tributary push status) with the source, then release them', 'tributary push release', false
  from tributary.push_pause_reason() as reason where reason is not null
union all
-- Of the rate budget.
select 'budget', c.company, '', (b.retry_after_at > n.at + interval '1 hour')::int, 1,
       extract(epoch from b.retry_after_at - n.at), to_timestamp((b.rule -> 'pausedBy' ->> 'at')::float8 / 1000),
       format('no request is sent until %sZ', to_char(b.retry_after_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS'))
         || case when jsonb_typeof(b.rule -> 'pausedBy') = 'object' then format(': %s was answered %s by %s, with Retry-After %s s',
              coalesce(b.rule -> 'pausedBy' ->> 'request', 'a request'), b.rule -> 'pausedBy' ->> 'status',
              case when b.rule -> 'pausedBy' ->> 'origin' = 'source' then 'the service'
                   else 'something between here and the service (no error body of the API)' end,
              round((b.rule -> 'pausedBy' ->> 'statedMs')::numeric / 1000)) else '' end,
       'wait, or when the fault is gone, release the budget', 'tributary budget release --company ' || c.company, false
  from tributary.budgets b join tributary.companies c on c.budget = b.fingerprint cross join (select tributary.now() as at) n
 where b.retry_after_at > n.at
union all
-- Of what goes out.
select 'endpoint', null, e.name, 0, 0, 1, e.state_since, 'deliveries have stopped: ' || coalesce(e.reason, 'the reason is not known'),
       'repair the receiver, then resume it', 'tributary changes endpoints resume ' || e.name, false
  from tributary.change_endpoints e where e.state = 'dead'
union all
select 'undelivered', null, e.name, floor(log(r.lost) + 1e-9)::int, 0, r.lost, r.since,
       r.lost || case when e.kind = 'alerts' then ' message' else ' change' end || case when r.lost = 1 then ' was' else 's were' end || ' not accepted',
       'see the log, then replay them', 'tributary changes endpoints replay ' || e.name, false
  from (select endpoint, count(*) as lost, min(failed_at) as since from tributary.change_retries where state = 'dead' group by 1) r
  join tributary.change_endpoints e on e.name = r.endpoint and e.state <> 'dead'
union all
-- Of invariants. A rule that fails for several companies is one problem.
select 'invariant', c.company, s.invariant, (i.severity = 'critical')::int, 1, s.open_violations, v.opened_at,
       s.open_violations || case when s.open_violations = 1 then ' record violates it: ' else ' records violate it: ' end || coalesce(v.detail, i.statement),
       'correct the records at the source',
       format('tributary query "select company_id, resource, record_id, detail from tributary.violations where invariant = ''%s'' and ended_at is null"', s.invariant), false
  from tributary.invariant_states s
  join tributary.invariants i on i.name = s.invariant
  join tributary.companies c on c.company_id = s.company_id
  left join lateral (
    select o.detail, o.opened_at from tributary.violations o
     where o.invariant = s.invariant and o.company_id = s.company_id and o.ended_at is null and o.opened_at is not null
     order by o.opened_at, o.id limit 1) v on true
 where s.open_violations > 0
union all
select 'unevaluated', null, s.invariant, (min(i.severity) = 'critical')::int, 1, count(*), null,
       'it cannot be evaluated: ' || coalesce((array_agg(s.error order by s.error is null, s.company_id))[1], 'the reason is not known'),
       'correct its SQL, or what the reason names', 'tributary status', false
  from tributary.invariant_states s join tributary.invariants i on i.name = s.invariant
 where s.state = 'failed' group by s.invariant
union all
-- Of processes and machines. A lost process counts for a day, until a later one of its machine replaces it.
select 'process', null, coalesce(p.host || coalesce(', pid ' || p.pid, ''), p.process_id), 0, 1, count(*), min(p.heartbeat_at),
       'it sends no heartbeat, and did not stop in order', 'see how it ended, then start it again', 'tributary serve', false
  from (select process_id, host, pid, heartbeat_at, stopped_at,
               max(started_at) over (partition by host rows between unbounded preceding and unbounded following exclude current row) as replaced_at
          from tributary.processes where heartbeat_at > (select tributary.now() - interval '1 day')) p
 where p.stopped_at is null and p.heartbeat_at <= (select tributary.now() - interval '60 seconds')
   and coalesce(p.replaced_at <= p.heartbeat_at, true)
 group by 3
union all
select o.kind, null, o.subject, max(o.level), min(o.critical_from), count(*), null, min(o.what), min(o.remedy), min(o.command), false
  from tributary.processes_alive p
  cross join lateral jsonb_to_recordset(p.observed) as o(kind text, subject text, level int, critical_from int, what text, remedy text, command text)
 group by o.kind, o.subject) found;

create view tributary.problems as
select * from tributary.resource_problems union all select * from tributary.other_problems;
comment on view tributary.problems is 'Every problem that a person may have to resolve, one row each. The overview, status, doctor, alerts, metrics and assistants show these rows; docs/reference/problems.md has the kinds.';
comment on column tributary.problems.kind is 'The kind, such as failing, late, quarantine, dead_letters, rejected, gap or invariant.';
comment on column tributary.problems.company is 'The company; null for a problem of the whole warehouse.';
comment on column tributary.problems.subject is 'The resource, endpoint, invariant, installation or process; empty where the kind and the company say it all.';
comment on column tributary.problems.severity is 'warning or critical.';
comment on column tributary.problems.level is 'The size in classes, from 0. A problem whose level rises is reported again.';
comment on column tributary.problems.size is 'How many records, events, requests or changes it has; of late, the age divided by the target; of failing, the failures in a row.';
comment on column tributary.problems.since is 'When it began; null where that is not known.';
comment on column tributary.problems.what is 'What happened, as a sentence without its full stop.';
comment on column tributary.problems.remedy is 'What a person can do about it, the first step first.';
comment on column tributary.problems.command is 'A command that takes that step, or shows more; null without one.';
comment on column tributary.problems.is_consequence is 'Whether it is the consequence of another problem, such as of a refused token: it ends with that one.';
-- The two parts have the same columns.
comment on view tributary.resource_problems is 'The part of tributary.problems that is about resources. All resources of each company in trouble are read: of many companies, select some.';
comment on view tributary.other_problems is 'The part of tributary.problems that is not about resources.';
do $$
declare
  part text;
  field record;
begin
  foreach part in array array['resource_problems', 'other_problems'] loop
    for field in select attname, col_description(attrelid, attnum) as comment from pg_attribute
                  where attrelid = 'tributary.problems'::regclass and attnum > 0 loop
      execute format('comment on column tributary.%I.%I is %L', part, field.attname, field.comment);
    end loop;
  end loop;
end $$;
