/**
 * The cost of size in one `serve`: 10,000 companies with 86 resources as rows of the warehouse, of which nothing is due
 * and nothing is new; and 100 requests by people while a few companies sync.
 *
 * Promise: the processor time is that of the process, user and system, over a minute that begins when the process rests. Statements are the transactions that Postgres counts (`pg_stat_database`), without
 * those of the measurement: each statement of an idle process is a transaction of its own. Its advisory locks and the
 * maintenance of Postgres count too. The source is a process that answers every list with nothing
 * (`quiet-source.ts`). The companies have no webhooks (`webhooks.check_minutes: off`).
 */
import { setTimeout as sleep } from "node:timers/promises"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { requestSyncStatement } from "../../src/tasks/TaskQueue.ts"
import { until } from "../support/browser.ts"
import { quantile, secondsSince } from "./measuring.ts"
import { firstLineOf, startProgram } from "../support/servers.ts"
import { type Figure, figure } from "./Figures.ts"
import { cpuOf, idleShares, peakMbOf, rssMbOf } from "./Processes.ts"
import type { Stand, Warehouse } from "./Stand.ts"

interface Fleet {
  readonly companies: number
  readonly resources: number
}

const requests = 100
const requestsWithinMs = 2_000
/** Companies that sync while people request. */
const active = 20
const idleMs = 60_000
/** The process rests when it uses less than this share of a core for some seconds. */
const restShare = 0.1
const restMs = 5_000
const startMaxSeconds = 300

const key = "0123456789abcdef0123456789abcdef"
const configuration = `schedule: { default: { every: 6h } }
webhooks: { listen: "127.0.0.1:0", check_minutes: "off" }
dashboard: { listen: "127.0.0.1:0" }
`

const quietSource = async () => {
  const child = startProgram(new URL("./quiet-source.ts", import.meta.url), [])
  return { baseUrl: await firstLineOf(child), pid: child.pid!, stop: () => void child.kill("SIGTERM") }
}

/** Companies that were synced an hour ago, with a token for each as another program inserts it. */
const fill = async ({ query }: Warehouse, { companies, resources }: Fleet, baseUrl: string) => {
  const paths = [...serviceV2.resources.values()].slice(0, resources)
  const values = [paths.map(({ path }) => path), paths.map(({ parent }) => parent?.resource ?? null)]
  const every = `generate_series(1, ${companies}) as n, unnest($1::text[], $2::text[]) as r(path, parent)`
  const hourAgo = "tributary.now() - interval '1 hour'"
  await query(
    `insert into tributary.company_settings (company, url, token, resources)
     select 'c' || n, $1, 'token-' || n, $2::text[] from generate_series(1, ${companies}) as n`,
    [baseUrl, resources < serviceV2.resources.size ? values[0] : null]
  )
  await query(
    `insert into tributary.companies (company, company_id, seen_at)
     select 'c' || n, n, ${hourAgo} from generate_series(1, ${companies}) as n`
  )
  const statements = [
    `insert into tributary.tasks (company, resource, kind, schedule, parent, freshness_target_ms, next_run_at, started_at, finished_at, status)
     select 'c' || n, path, 'sync', 'every 6 h', parent, 43200000, tributary.now() + interval '5 hours', ${hourAgo}, ${hourAgo}, 'done' from ${every}`,
    `insert into tributary.checkpoints (company_id, resource, cursor, cursor_read_at, full_scan_at, updated_at)
     select n, path, '2026-11-20T08:15:30Z', ${hourAgo}, ${hourAgo}, ${hourAgo} from ${every} where $2::text[] is not null`,
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, pages, requests)
     select n, path, 'incremental', 'live', 'done', 1, ${hourAgo}, ${hourAgo}, 1, 1 from ${every} where $2::text[] is not null`,
    `insert into tributary.row_counts (company_id, resource, rows, deleted) select n, path, 0, 0 from ${every} where $2::text[] is not null`
  ]
  for (const statement of statements) await query(statement, values)
  // The first count of all companies takes minutes; a warehouse that was served before has the counts.
  await query(
    `insert into tributary.company_states (company, late_at, state, severity, resources, failing, late, never_synced, blocked,
            paused, fresh, lateness, quarantined, dead_letters, gaps, rejected, subscriptions_down)
     select 'c' || n, tributary.now() + interval '11 hours', 'fresh', 1000000, $1, 0, 0, 0, 0, 0, $1, 0, 0, 0, 0, 0, 0
       from generate_series(1, ${companies}) as n`,
    [resources]
  )
  await query("vacuum analyze")
}

interface Setting {
  readonly stand: Stand
  readonly warehouse: Warehouse
  readonly source: Awaited<ReturnType<typeof quietSource>>
}

/** Starts `serve` with the companies of the warehouse. */
const startServe = ({ stand, warehouse, source }: Setting) =>
  stand.serving({ reference: source, token: "" }, warehouse, configuration, {
    TRIBUTARY_COMPANIES_KEY: key,
    SERVICE_API_URL: "",
    SERVICE_API_TOKEN: ""
  })

const countOf = async ({ query }: Warehouse, text: string): Promise<number> =>
  (await query<{ n: number }>(`select count(*)::int as n from ${text}`))[0]!.n

/** Waits until the process rests. */
const rest = async (pid: number) => {
  for (let calm = 0; calm < 2;) {
    const before = cpuOf(pid) ?? 0
    await sleep(restMs)
    calm = ((cpuOf(pid) ?? 0) - before) / (restMs / 1000) < restShare ? calm + 1 : 0
  }
}

const transactionsOf = async ({ query }: Warehouse): Promise<number> => {
  // Postgres counts what a session did when the session rests.
  const [row] = await query<{ n: string }>(
    "select xact_commit + xact_rollback as n from pg_stat_database where datname = current_database()"
  )
  return Number(row!.n)
}

/** The cost of a minute in which nothing is due. */
const idle = async ({ stand, warehouse }: Setting, pid: number): Promise<ReadonlyArray<Figure>> => {
  const before = await transactionsOf(warehouse)
  const { seconds, share, note } = await idleShares(pid, stand.postgresCpu, idleMs)
  return [
    figure("size, idle: CPU of a core", "share", share, { atMost: 0.05, note }),
    figure("size, idle: statements", "statements/s", ((await transactionsOf(warehouse)) - before - 1) / seconds, {
      atMost: 10,
      note: "transactions that Postgres counted, and those of its maintenance"
    }),
    figure("size, idle: memory", "MB", rssMbOf(pid), {
      atMost: 400,
      note: `resident; at most ${peakMbOf(pid)?.toFixed(0) ?? "?"} MB since the start`
    })
  ]
}

/** People request syncs of single resources while some companies sync everything. */
const requestSyncs = async ({ warehouse: { query } }: Setting, { companies, resources }: Fleet): Promise<Figure> => {
  const paths = [...serviceV2.resources.keys()].slice(0, resources)
  await query(
    "update tributary.tasks set next_run_at = tributary.now() where company = any(select 'c' || n from generate_series(1, $1::int) n)",
    [active]
  )
  const asked = Array.from({ length: requests }, (_, at) => ({
    company: `c${companies - at}`,
    resource: paths[(at * 7) % paths.length]!
  }))
  const askedAt: Array<string> = []
  for (const { company, resource } of asked) {
    const [clock] = await query<{ at: string }>("select tributary.now()::text as at")
    askedAt.push(clock!.at)
    await query(requestSyncStatement.text, [company, resource, "the bench", false])
    await sleep(100)
  }
  const waits = () =>
    query<{ ms: number | null }>(
      `select case when started_at >= a.at then extract(epoch from started_at - a.at)::float8 * 1000 end as ms
         from unnest($1::text[], $2::text[], $3::timestamptz[]) as a(company, resource, at)
         join tributary.tasks t on t.company = a.company and t.resource = a.resource and t.kind = 'sync'`,
      [asked.map(({ company }) => company), asked.map(({ resource }) => resource), askedAt]
    )
  const begun = await until("the requested runs", waits, (rows) => rows.every(({ ms }) => ms !== null), 120)
  const waited = begun.map(({ ms }) => ms!)
  return figure(`size: ${requests} requests by people begin, p99`, "ms", quantile(waited, 0.99), {
    atMost: requestsWithinMs,
    note: `p50 ${quantile(waited, 0.5).toFixed(0)} ms, at most ${Math.max(...waited).toFixed(0)} ms; meanwhile ${active} companies sync all resources`
  })
}

/** Requests a sync, and waits until it begins. */
const beginRequested = async (warehouse: Warehouse, company: string) => {
  const [resource] = [...serviceV2.resources.keys()]
  await warehouse.query(requestSyncStatement.text, [company, resource, "the bench", false])
  const begun = `tributary.tasks where company = '${company}' and started_at > tributary.now() - interval '30 minutes'`
  await until(
    "the first requested run",
    () => countOf(warehouse, begun),
    (n) => n > 0,
    startMaxSeconds
  )
}

/** The figures of one `serve` that has this many companies. */
const scale = async (setting: Setting, fleet: Fleet, say: (line: string) => void): Promise<ReadonlyArray<Figure>> => {
  const { warehouse, source } = setting
  const { companies } = fleet
  // A first process creates the tables of the control plane.
  await (await startServe(setting)).stop()
  await fill(warehouse, fleet, source.baseUrl)
  say(`size: ${companies} companies with ${fleet.resources} resources each are filled in`)
  const began = performance.now()
  // The first process with companies seals their tokens, and creates tables and views.
  const sealing = await startServe(setting)
  say(`size: ready after ${secondsSince(began).toFixed(1)} s, the sealing of tokens included`)
  await beginRequested(warehouse, "c1")
  await sealing.stop()
  await warehouse.query("vacuum analyze tributary.company_settings")

  const startedAt = performance.now()
  const seconds = () => secondsSince(startedAt)
  const serve = await startServe(setting)
  const readySeconds = seconds()
  await until(
    "the buckets",
    () => countOf(warehouse, "tributary.bucket_owners join tributary.processes_alive using (process_id)"),
    (n) => n === 256,
    startMaxSeconds
  )
  const ownedSeconds = seconds()
  const startCpu = cpuOf(serve.pid)
  say(`size: ready after ${readySeconds.toFixed(1)} s, owned after ${ownedSeconds.toFixed(1)} s`)
  // A process runs requested tasks as soon as the schedules of their companies are stored.
  await beginRequested(warehouse, `c${companies}`)
  const scheduledSeconds = seconds()
  say(`size: a requested sync begins after ${scheduledSeconds.toFixed(1)} s`)
  await rest(serve.pid)
  const restedSeconds = seconds()
  say(`size: at rest after ${restedSeconds.toFixed(0)} s`)
  const figures: Array<Figure> = [
    figure("size: start, until everything is owned and a requested sync begins", "s", scheduledSeconds, {
      note: `ready after ${readySeconds.toFixed(1)} s, at rest after ${restedSeconds.toFixed(0)} s; ${startCpu?.toFixed(1) ?? "?"} s of CPU until owned, ${cpuOf(serve.pid)?.toFixed(1) ?? "?"} s until at rest`
    }),
    ...(await idle(setting, serve.pid)),
    await requestSyncs(setting, fleet)
  ]
  await serve.stop()
  return figures
}

/** {@link scale} in the environment of the bench. */
export const atSize = async (
  stand: Stand,
  fleet: Fleet,
  say: (line: string) => void
): Promise<ReadonlyArray<Figure>> => {
  const [source, warehouse] = [await quietSource(), await stand.warehouse()]
  try {
    return await scale({ stand, warehouse, source }, fleet, say)
  } finally {
    source.stop()
    await warehouse.close()
  }
}
