-- Indexes for the last full scan of a resource, and for the live processes and those of the last days: pages read them
-- without reading all runs and all former processes.

-- short: half a second for 1,000,000 runs
create index runs_full_scans on tributary.runs (company_id, resource, id desc)
  where lane = 'live' and kind = 'full' and status in ('done', 'quarantined');
-- short: a row for each process of the retention
create index processes_by_heartbeat on tributary.processes (heartbeat_at);
