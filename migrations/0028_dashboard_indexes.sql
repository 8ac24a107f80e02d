-- Indexes for the last full scan of a resource, for the live processes and those of the last days, and for violated
-- invariants: pages read them without reading all runs, all former processes and all evaluations.

-- short: half a second for 1,000,000 runs
create index runs_full_scans on tributary.runs (company_id, resource, id desc)
  where lane = 'live' and kind = 'full' and status in ('done', 'quarantined');
-- short: a row for each process of the retention
create index processes_by_heartbeat on tributary.processes (heartbeat_at);
-- short: a row for each invariant of each company
create index invariant_states_violated on tributary.invariant_states (invariant, company_id) where state = 'violated';
