/**
 * The cost of an idle `tributary serve`, and the time until its page and a command respond.
 *
 * Promise: the warehouse has a company with 100 resources and 10,000 runs. `serve` itself synced everything that the
 * source has, its schedules are on and it receives. No task is due during the measurement.
 */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { until } from "../support/browser.ts"
import { type Figure, figure, median } from "./Figures.ts"
import { cpuOf, rssMbOf } from "./Processes.ts"
import type { Stand } from "./Stand.ts"
import { now, percentile, remember, viewTimes } from "./Views.ts"

const resourcesShown = 100
const runs = 10_000
const rounds = 40
const commandStarts = 7
const idleMs = 60_000
/** Time from the last run, or from opening the page, until the process is idle. */
const settleMs = 20_000

const launcher = fileURLToPath(new URL("../../src/cli/launch.js", import.meta.url))
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

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

/** Seconds from the start of a command to its end. */
const commandSeconds = async (args: ReadonlyArray<string>): Promise<number> => {
  const took: Array<number> = []
  for (let round = 0; round <= commandStarts; round += 1) {
    const began = now()
    await new Promise<void>((resolve, reject) => {
      const child = spawn(process.execPath, [launcher, ...args], { stdio: "ignore" })
      child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${args.join(" ")} ended with ${code}`))))
    })
    // The first one fills the cache of compiled code.
    if (round > 0) took.push((now() - began) / 1000)
  }
  return median(took)
}

export const serving = async (stand: Stand, say: (line: string) => void): Promise<ReadonlyArray<Figure>> => {
  const figures: Array<Figure> = []
  for (const args of [["--version"], ["status", "--help"]]) {
    figures.push(
      figure(`command start: ${args.join(" ")}`, "s", await commandSeconds(args), {
        atMost: 0.6,
        note: `median of ${commandStarts}`
      })
    )
  }

  const source = await stand.source(["--data", "demo"], { pageSize: null })
  const warehouse = await stand.warehouse()
  await stand.sync(source, warehouse, { requestsPerMinute: null, pageSize: null }, [real[0]!])
  await remember((text, values) => warehouse.query(text, values), resources, runs)
  const began = now()
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
  say(`serving: ${real.length} resources synced in ${((now() - began) / 1000).toFixed(1)} s; idle from here on`)
  await sleep(settleMs)

  // ------------------------------------------------------------------------------------------------------------ idle
  const [cpuBefore, postgresBefore, from] = [cpuOf(serve.pid), stand.postgresCpu(), now()]
  await sleep(idleMs)
  const [cpu, postgres, seconds] = [cpuOf(serve.pid), stand.postgresCpu(), (now() - from) / 1000]
  const ofPostgres = postgres === null || postgresBefore === null ? null : (postgres - postgresBefore) / seconds
  figures.push(
    figure(
      "serve idle: CPU of a core",
      "share",
      cpu === null || cpuBefore === null ? null : (cpu - cpuBefore) / seconds,
      {
        atMost: 0.01,
        note: `over ${seconds.toFixed(0)} s; Postgres ${ofPostgres === null ? "?" : (ofPostgres * 100).toFixed(1)} %`
      }
    ),
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
      figure(`${name}: first view over HTTP, p95`, "ms", percentile(later, 0.95), {
        atMost: 300,
        note: `${resources.length} resources, ${runs.toLocaleString("en-US")} runs; p50 ${percentile(later, 0.5).toFixed(0)} ms, the very first ${first.toFixed(0)} ms, ${(text.length / 1024).toFixed(0)} KB, ${viewCpuMs?.toFixed(0) ?? "?"} ms of CPU each`
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
  const refreshSeconds =
    refreshCpu === null || refreshPostgres === null
      ? null
      : ((cpuOf(serve.pid) ?? 0) - refreshCpu + (stand.postgresCpu() ?? 0) - refreshPostgres) / rounds
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
