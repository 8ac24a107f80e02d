/**
 * What the warehouse knows of schedules, runs, rows and budgets, and what the process knows of itself, for `/metrics`;
 * `config/metrics.md` lists every name.
 *
 * Promise: cheap however long the ledger is: what is looked up is found by an index, at most every few seconds. It never
 * fails: what cannot be told is left out. Counters count what ended since this process began and never fall, whatever
 * retention removes. Labels are companies and resources of the configuration and words of this file, nothing that grows.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ConnectorUsage } from "../connector/Connector.ts"
import { cached, type Metric } from "./CachedMetrics.ts"

export interface MetricsCompany {
  /** As the configuration calls it. */
  readonly name: string
  /** What its budget is called in the ledger (src/budget/PostgresPermitStore.ts). */
  readonly fingerprint: string
  /** What its connector has asked so far. */
  readonly usage: Effect.Effect<ConnectorUsage>
}

export interface MetricsOptions {
  readonly companies: ReadonlyArray<MetricsCompany>
  /** How old a resource may be at most, in milliseconds. */
  readonly freshnessOf: (resource: string) => number
}

type Samples = Metric["samples"]

const figure =
  (type: Metric["type"]) =>
  (name: string, help: string, samples: Samples): Metric => ({ name, help, type, samples })
const gauge = figure("gauge")
const counter = figure("counter")

// ------------------------------------------------------------------------------------------------------- by resource

interface ResourceRow {
  readonly company: string
  readonly resource: string
  readonly failures: number
  readonly isSkipped: boolean
  readonly age: number | null
  readonly status: string | null
  readonly endedAt: number | null
  readonly rows: number | null
  readonly deleted: number | null
  readonly quarantined: number
}

const resourceRows = `
  select s.company, s.resource, s.failures, coalesce(s.status = 'skipped', false) as "isSkipped",
         extract(epoch from tributary.now() - well.began_at)::float8 as age,
         last.status, extract(epoch from last.ended_at)::float8 as "endedAt",
         c.rows::float8 as rows, c.deleted::float8 as deleted, q.records as quarantined
    from tributary.schedule s
    left join tributary.companies k on k.company = s.company
    left join tributary.row_counts c on c.company_id = k.company_id and c.resource = s.resource
    left join lateral (
      select r.began_at from tributary.runs r
       where r.company_id = k.company_id and r.resource = s.resource
         and r.lane = 'live' and r.kind in ('full', 'incremental') and r.status = 'done'
       order by r.id desc limit 1) well on true
    left join lateral (
      select r.status, r.ended_at from tributary.runs r
       where r.company_id = k.company_id and r.resource = s.resource and r.lane = 'live' and r.ended_at is not null
       order by r.id desc limit 1) last on true
    cross join lateral (
      select count(*)::float8 as records from tributary.quarantine q
       where q.company_id = k.company_id and q.resource = s.resource and q.resolved_at is null) q
   where s.kind = 'sync' and s.company = any(array(select jsonb_array_elements_text($1::text::jsonb)))
   order by s.company, s.resource`

const ofResources = (rows: ReadonlyArray<ResourceRow>, freshnessOf: MetricsOptions["freshnessOf"]) => {
  const each = (of: (row: ResourceRow) => number | null): Samples =>
    rows.flatMap((row) => {
      const value = of(row)
      return value === null ? [] : [{ labels: { company: row.company, resource: row.resource }, value }]
    })
  const promise = ({ resource }: ResourceRow) => freshnessOf(resource) / 1000
  const isLate = (row: ResourceRow) => !row.isSkipped && (row.age === null || row.age > promise(row))
  return [
    gauge(
      "tributary_freshness_age_seconds",
      "Time since the last run that read the resource well began; absent before the first.",
      each(({ age }) => age)
    ),
    gauge("tributary_freshness_promise_seconds", "How old the resource may be at most.", each(promise)),
    gauge(
      "tributary_freshness_late",
      "1 while the resource is older than promised or was never read well, 0 otherwise.",
      each((row) => (isLate(row) ? 1 : 0))
    ),
    gauge(
      "tributary_run_last_end_timestamp_seconds",
      "When the last run that follows the source ended.",
      each(({ endedAt }) => endedAt)
    ),
    gauge(
      "tributary_run_last_status",
      "1, with how the last run that follows the source ended as a label.",
      rows.flatMap(({ company, resource, status }) =>
        status === null ? [] : [{ labels: { company, resource, status }, value: 1 }]
      )
    ),
    gauge(
      "tributary_task_failures",
      "Failures of the scheduled sync in a row; absent where the token may not read the resource.",
      each(({ failures, isSkipped }) => (isSkipped ? null : failures))
    ),
    gauge(
      "tributary_rows",
      "Rows, tombstones not included, as last counted.",
      each(({ rows }) => rows)
    ),
    gauge(
      "tributary_rows_deleted",
      "Tombstones, as last counted.",
      each(({ deleted }) => deleted)
    ),
    gauge(
      "tributary_quarantine_open",
      "Records that could not be landed and wait for a person.",
      each(({ quarantined }) => quarantined)
    )
  ]
}

// -------------------------------------------------------------------------------------------------------- by company

const taskStates = ["running", "paused", "due", "waiting"] as const

interface TaskRow {
  readonly company: string
  readonly states: Readonly<Record<string, number>>
  readonly oldest: number
  readonly alive: number
}

/** A process that says nothing for longer has ended; it says so every 20 s. */
const aliveSeconds = 60

const taskRows = `
  with task as (
    select company, next_at, asked_at, case
             when lease_until > now.at then 'running'
             when asked_at is not null then 'due'
             when paused_at is not null then 'paused'
             when next_at <= now.at then 'due'
             else 'waiting' end as state, now.at
      from tributary.schedule, (select tributary.now() as at) now)
  select c.company,
         coalesce((select json_object_agg(state, tasks) from (
           select state, count(*)::float8 as tasks from task t where t.company = c.company group by state) g), '{}') as states,
         coalesce((select extract(epoch from max(t.at - least(t.next_at, t.asked_at))) from task t
                    where t.company = c.company and t.state = 'due'), 0)::float8 as oldest,
         (select count(*) from tributary.receivers r
           where c.company = any(r.companies) and r.ended_at is null
             and r.alive_at > tributary.now() - interval '${aliveSeconds} seconds')::float8 as alive
    from jsonb_array_elements_text($1::text::jsonb) as c(company)`

const ofTasks = (rows: ReadonlyArray<TaskRow>) => [
  gauge(
    "tributary_tasks",
    "Tasks of the schedule by state: running, paused, due (and nobody runs it yet) or waiting for its time.",
    rows.flatMap(({ company, states }) =>
      taskStates.map((state) => ({ labels: { company, state }, value: states[state] ?? 0 }))
    )
  ),
  gauge(
    "tributary_tasks_oldest_due_seconds",
    "How long the task that is due longest has waited for a process to run it.",
    rows.map(({ company, oldest }) => ({ labels: { company }, value: oldest }))
  ),
  gauge(
    "tributary_serve_alive",
    "Processes of tributary serve that said within the last minute that they serve the company.",
    rows.map(({ company, alive }) => ({ labels: { company }, value: alive }))
  )
]

interface BudgetRow {
  readonly fingerprint: string
  readonly used: number
  readonly allowed: number | null
  readonly configured: number | null
  readonly refusals: number
  readonly held: number
  readonly origin: string | null
  readonly status: number | null
}

const budgetRows = `
  select b.fingerprint, b.requests_per_minute::float8 as configured, b.effective_per_minute as allowed,
         b.refusals::float8 as refusals,
         greatest(0, coalesce(extract(epoch from b.held_until - tributary.now()), 0))::float8 as held,
         b.held_origin as origin, b.held_status as status,
         coalesce((select sum(permits) from tributary.budget_leases l
                    where l.fingerprint = b.fingerprint and l.counted_until > tributary.now()), 0)::float8 as used
    from tributary.budgets b where b.fingerprint = any(array(select jsonb_array_elements_text($1::text::jsonb)))`

const ofBudgets = (companies: ReadonlyArray<MetricsCompany>, rows: ReadonlyArray<BudgetRow>) => {
  const each = (of: (row: BudgetRow) => number | null): Samples =>
    companies.flatMap(({ name, fingerprint }) => {
      const row = rows.find((one) => one.fingerprint === fingerprint)
      const value = row === undefined ? null : of(row)
      return value === null ? [] : [{ labels: { company: name }, value }]
    })
  return [
    gauge(
      "tributary_budget_used_requests",
      "Requests of the last minute that count against the company's budget, of all processes; absent without a limit.",
      each(({ used, configured }) => (configured === null ? null : used))
    ),
    gauge(
      "tributary_budget_allowed_requests",
      "Requests per minute that may be used at present: fewer than configured after a 429.",
      each(({ allowed }) => allowed)
    ),
    gauge(
      "tributary_budget_configured_requests",
      "Requests per minute that the configuration allows.",
      each(({ configured }) => configured)
    ),
    gauge(
      "tributary_budget_held_seconds",
      "How long nobody sends still, because an answer asked to wait.",
      each(({ held }) => held)
    ),
    gauge(
      "tributary_budget_held_by",
      "1 while nobody sends, with who asked for it: source (the error body of the API) or intermediary, and the status.",
      companies.flatMap(({ name, fingerprint }) =>
        rows
          .filter((one) => one.fingerprint === fingerprint && one.held > 0 && one.origin !== null)
          .map(({ origin, status }) => ({ labels: { company: name, by: origin!, status: String(status) }, value: 1 }))
      )
    ),
    counter(
      "tributary_budget_refusals_total",
      "Answers 429 of the source.",
      each(({ refusals }) => refusals)
    )
  ]
}

const ofUsage = (usage: ReadonlyArray<readonly [company: string, usage: ConnectorUsage]>) => {
  const each = (of: (usage: ConnectorUsage) => number): Samples =>
    usage.map(([company, one]) => ({ labels: { company }, value: of(one) }))
  return [
    counter(
      "tributary_source_requests_total",
      "Requests that this process sent to the source.",
      each(({ requests }) => requests)
    ),
    counter(
      "tributary_source_retries_total",
      "Those of them that repeat one which failed or was refused.",
      each(({ retries }) => retries)
    ),
    counter(
      "tributary_source_rate_limited_total",
      "Answers 429 to this process.",
      each(({ rateLimited }) => rateLimited)
    ),
    counter(
      "tributary_source_received_bytes_total",
      "Bytes of the answers' bodies.",
      each(({ bytes }) => bytes)
    )
  ]
}

// ---------------------------------------------------------------------------------------------------- runs that ended

const runStatuses = ["done", "quarantined", "failed", "abandoned"] as const
const changes = ["inserted", "updated", "unchanged", "deleted", "quarantined"] as const

interface EndedRow extends Readonly<Record<(typeof changes)[number], number>> {
  readonly company: string
  readonly status: string
  readonly runs: number
}

/** Runs are counted so long after they ended, so that none is missed whose end was still to be committed. */
const settleSeconds = 2

const settledNow = `select (tributary.now() - interval '${settleSeconds} seconds')::text as at`

const endedRows = `
  select k.company, r.status, count(*)::float8 as runs,
         ${changes.map((change) => `sum(r.${change})::float8 as ${change}`).join(", ")}
    from tributary.runs r join tributary.companies k on k.company_id = r.company_id
   where r.ended_at > $1::timestamptz and r.ended_at <= $2::timestamptz
   group by 1, 2`

/** Counts runs as they end, from now on. */
const endedCounter = (names: ReadonlyArray<string>) => {
  const totals = new Map(
    names.map((name) => [
      name,
      { runs: new Map<string, number>(), records: new Map<(typeof changes)[number], number>() }
    ])
  )
  let since: string | null = null
  const add = <Key>(to: Map<Key, number>, key: Key, value: number) => to.set(key, (to.get(key) ?? 0) + value)
  const figures = () => [
    counter(
      "tributary_runs_ended_total",
      "Runs of all processes that ended since this one began, by how they ended.",
      [...totals].flatMap(([company, { runs }]) =>
        runStatuses.map((status) => ({ labels: { company, status }, value: runs.get(status) ?? 0 }))
      )
    ),
    counter(
      "tributary_records_total",
      "Records of those runs, by what became of them.",
      [...totals].flatMap(([company, { records }]) =>
        changes.map((change) => ({ labels: { company, change }, value: records.get(change) ?? 0 }))
      )
    )
  ]
  return Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [now] = yield* sql.unsafe<{ at: string }>(settledNow)
    const until = now!.at
    const rows = since === null ? [] : yield* sql.unsafe<EndedRow>(endedRows, [since, until])
    since = until
    for (const row of rows) {
      const total = totals.get(row.company)
      if (total === undefined) continue
      add(total.runs, row.status, row.runs)
      for (const change of changes) add(total.records, change, row[change])
    }
    return figures()
  })
}

// ----------------------------------------------------------------------------------------------------------- together

/** Of these companies. */
export const make = Effect.fnUntraced(function* ({
  companies,
  freshnessOf
}: MetricsOptions): Effect.fn.Return<Effect.Effect<ReadonlyArray<Metric>>, never, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const names = companies.map(({ name }) => name)
  const ended = endedCounter(names)
  const inJson = JSON.stringify(names)
  const question: Effect.Effect<ReadonlyArray<Metric>, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
    const resources = yield* sql.unsafe<ResourceRow>(resourceRows, [inJson])
    const tasks = yield* sql.unsafe<TaskRow>(taskRows, [inJson])
    const budgets = yield* sql.unsafe<BudgetRow>(budgetRows, [
      JSON.stringify(companies.map(({ fingerprint }) => fingerprint))
    ])
    return [
      ...ofResources(resources, freshnessOf),
      ...ofTasks(tasks),
      ...ofBudgets(companies, budgets),
      ...(yield* ended)
    ]
  })
  const known = yield* cached(question)
  const usage = Effect.forEach(companies, (company) =>
    Effect.map(company.usage, (used) => [company.name, used] as const)
  )
  // From now on runs are counted, not from the first time that somebody asks.
  yield* known
  return Effect.map(Effect.all([known, usage]), ([figures, used]) => [...figures, ...ofUsage(used)])
})

const lagEveryMs = 100

/** Of this process and its version; also while the warehouse is away. */
export const ofProcess = Effect.fnUntraced(function* (
  version: string
): Effect.fn.Return<Effect.Effect<ReadonlyArray<Metric>>> {
  const beganAt = (yield* Clock.currentTimeMillis) / 1000 - process.uptime()
  const lag = monitorEventLoopDelay({ resolution: lagEveryMs })
  lag.enable()
  return Effect.sync(() => {
    const { user, system } = process.cpuUsage()
    const { rss, heapUsed } = process.memoryUsage()
    // The histogram holds how far two looks lie apart.
    const lagMs = lag.count === 0 ? 0 : Math.max(0, lag.percentile(99) / 1e6 - lagEveryMs)
    lag.reset()
    return [
      gauge("tributary_build_info", "1, with the version as a label.", [
        { labels: { version, node: process.versions.node }, value: 1 }
      ]),
      counter("process_cpu_seconds_total", "CPU time of the process.", [{ value: (user + system) / 1e6 }]),
      gauge("process_resident_memory_bytes", "Memory of the process.", [{ value: rss }]),
      gauge("process_start_time_seconds", "When the process began.", [{ value: beganAt }]),
      gauge("nodejs_heap_size_used_bytes", "Memory in use by JavaScript objects.", [{ value: heapUsed }]),
      gauge(
        "nodejs_eventloop_lag_p99_seconds",
        "How late the process got to its work at most, 99 times of 100, since it was last asked.",
        [{ value: lagMs / 1000 }]
      )
    ]
  })
})
