/**
 * The cost of an idle `tributary serve`, and the time until its page responds.
 *
 * Promise: the warehouse has a company with 100 resources and 10,000 runs. `serve` itself synced everything that the
 * source has, its schedules are on and it receives. No task is due during the measurement.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { until } from "../support/browser.ts"
import { quantile, secondsSince } from "./measuring.ts"
import { type Figure, figure } from "./Figures.ts"
import { cpuOf, difference, idleShares, rssMbOf } from "./Processes.ts"
import type { Stand, Warehouse } from "./Stand.ts"

const resourcesShown = 100
const runs = 10_000
const rounds = 40
const idleMs = 60_000
/** Time from the last run, or from opening the page, until the process is idle. */
const settleMs = 20_000

/** Resources beyond the catalogue's, which only run on request. */
const real = [...serviceV2.resources.keys()]
const others = Array.from({ length: Math.max(0, resourcesShown - real.length) }, (_, number) => `widgets${number + 1}`)
const resources = [...real, ...others]

const configuration = `companies:
  - { name: north, token_env: NORTH, resources: [${resources.join(", ")}] }
resources:
${others.map((path) => `  ${path}: { modifiedsince: true }`).join("\n")}
budget: { requests_per_minute: 1000000 }
schedule:
  default: { every: 6h }
  resources:
${others.map((path) => `    ${path}: "off"`).join("\n")}
webhooks: { listen: "127.0.0.1:0" }
dashboard: { listen: "127.0.0.1:0" }
`

/** Adds runs that ended more than a day ago, as a few weeks would. */
const remember = ({ query }: Warehouse) =>
  query(
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, cursor_to, pages,
            requests, bytes, records, inserted, updated, unchanged, error, remedy)
     select 1, ($1::text[])[1 + number % array_length($1::text[], 1)], 'incremental', 'live',
            case when number % 50 = 0 then 'failed' else 'done' end, 1,
            tributary.now() - interval '1 day' - number * interval '5 minutes',
            tributary.now() - interval '1 day' - number * interval '5 minutes' + interval '2 seconds',
            '2026-01-01T00:00:00Z', 1, 1, 20000, 40, 1, 2, 37,
            case when number % 50 = 0 then 'the service failed (500)' end,
            case when number % 50 = 0 then 'the next run goes on' end
       from generate_series(1, $2::int) number order by number desc`,
    [resources, runs]
  )

/** The times of views over HTTP in milliseconds, from the request to the last byte, and the text of the last one. */
const viewTimes = async (url: string, views: number) => {
  const took: Array<number> = []
  let text = ""
  for (let view = 0; view < views; view += 1) {
    const from = performance.now()
    const response = await fetch(url)
    text = await response.text()
    if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 400)}`)
    took.push(performance.now() - from)
  }
  return { took, text }
}

export const serving = async (stand: Stand, say: (line: string) => void): Promise<ReadonlyArray<Figure>> => {
  const figures: Array<Figure> = []
  const source = await stand.source(["--data", "demo"], { pageSize: null })
  const warehouse = await stand.warehouse()
  await stand.sync(source, warehouse, { requestsPerMinute: null, pageSize: null }, [real[0]!])
  await remember(warehouse)
  const began = performance.now()
  const serve = await stand.serving(source, warehouse, configuration, { NORTH: source.token })
  const { dashboard } = JSON.parse(serve.line) as { readonly dashboard?: string }
  if (dashboard === undefined) throw new Error(`serve shows no page: ${serve.line}`)
  await until(
    "the first syncs",
    () =>
      warehouse.query<{ all: number; open: number }>(
        `select count(*)::int as all, count(*) filter (where schedule <> 'off' and finished_at is null)::int as open
           from tributary.tasks where kind = 'sync'`
      ),
    ([row]) => row !== undefined && row.all >= resources.length && row.open === 0,
    180
  )
  say(`serving: ${real.length} resources synced in ${secondsSince(began).toFixed(1)} s; idle from here on`)
  await sleep(settleMs)

  // ------------------------------------------------------------------------------------------------------------ idle
  const { share, note } = await idleShares(serve.pid, stand.postgresCpu, idleMs)
  figures.push(
    figure("serve idle: CPU of a core", "share", share, { atMost: 0.01, note }),
    figure("serve idle: memory", "MB", rssMbOf(serve.pid), {
      atMost: 200,
      note: "resident, after the first syncs of everything"
    })
  )

  // ------------------------------------------------------------------------------------------------------------- views
  /** Views of a page over HTTP, which must contain these resources. */
  const views = async (name: string, path: string, contained: ReadonlyArray<string>) => {
    const cpuBefore = cpuOf(serve.pid)
    const { took, text } = await viewTimes(new URL(path, dashboard).href, rounds + 1)
    for (const resource of contained) {
      if (!text.includes(resource)) throw new Error(`the page does not show ${resource}`)
    }
    const viewCpuMs = cpuBefore === null ? null : (1000 * ((cpuOf(serve.pid) ?? 0) - cpuBefore)) / took.length
    const [first = 0, ...later] = took
    figures.push(
      figure(`${name}: first view over HTTP, p95`, "ms", quantile(later, 0.95), {
        atMost: 300,
        note: `${resources.length} resources, ${runs.toLocaleString("en-US")} runs; p50 ${quantile(later, 0.5).toFixed(0)} ms, the very first ${first.toFixed(0)} ms, ${(text.length / 1024).toFixed(0)} KB, ${viewCpuMs?.toFixed(0) ?? "?"} ms of CPU each`
      })
    )
  }
  await views("page", "/", [real[0]!, others.at(-1)!])
  await views("table of resources", "/resources?order=resource", [real[0]!])
  // A refresh of an open page that did not change, as the script of the page requests it.
  const etag = (await fetch(dashboard)).headers.get("etag") ?? ""
  const [refreshCpu, refreshPostgres] = [cpuOf(serve.pid), stand.postgresCpu()]
  let [unchanged, intervalMs] = [0, 0]
  for (let round = 0; round < rounds; round += 1) {
    const response = await fetch(dashboard, { headers: { "hx-request": "true", "if-none-match": etag } })
    await response.text()
    if (response.status === 304) unchanged += 1
    intervalMs += Number(response.headers.get("tributary-refresh-ms")) / rounds
  }
  const [ofServe, ofPostgres] = [
    difference(cpuOf(serve.pid), refreshCpu),
    difference(stand.postgresCpu(), refreshPostgres)
  ]
  const refreshSeconds = ofServe === null || ofPostgres === null ? null : (ofServe + ofPostgres) / rounds
  figures.push(
    figure(
      "page open: CPU of a core, of serve and Postgres",
      "share",
      refreshSeconds === null ? null : (1000 * refreshSeconds) / intervalMs,
      {
        atMost: 0.005,
        note: `${((refreshSeconds ?? 0) * 1000).toFixed(0)} ms a refresh, one in ${(intervalMs / 1000).toFixed(1)} s; ${unchanged} of ${rounds} without a change`
      }
    )
  )

  const cost = await serve.stop()
  say(`serving: ${cost.peakMb?.toFixed(0) ?? "?"} MB at most, ${cost.cpuSeconds?.toFixed(1) ?? "?"} s of CPU in all`)
  await warehouse.close()
  await source.reference.stop()
  return figures
}
