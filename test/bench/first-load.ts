/**
 * The first load of 300 companies with 8 resources each by one `serve`: whether it progresses steadily, fairly and within
 * its connections. Once they are of one installation, and once of 100 whose company numbers are the same.
 *
 * Promise: the companies are inserted as rows while `serve` runs. One of them has as many records as fifty others. The
 * connections are those that Postgres shows (`pg_stat_activity`), sampled four times a second.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { type Figure, figure } from "./Figures.ts"
import { cpuOf } from "./Processes.ts"
import { firstLineOf, startProgram } from "../support/servers.ts"
import type { Serving, Source, Stand, Warehouse } from "./Stand.ts"

const resources = ["areas", "salesmen", "customers", "vendors", "items", "jobs", "departments", "carriers"]
const companies = 300
const recordsEach = 100
/** The company with much work, and its records of each resource. */
const large = 1
const recordsOfLarge = 50 * recordsEach
const batch = 1_000
const loadMaxSeconds = 900
const connectionsMax = 60
const installations = 100

const configuration = `budget: { requests_per_minute: unlimited }
schedule: { default: { every: 6h } }
webhooks: { listen: "127.0.0.1:0" }
dashboard: { listen: off }
`

const fill = async ({ reference }: Source, company: number, count: number) => {
  for (const resource of resources) {
    for (let first = 1; first <= count; first += batch) {
      const records = Array.from({ length: Math.min(batch, count - first + 1) }, (_, at) => ({
        id: first + at,
        name: `${resource} ${first + at} of company ${company}`
      }))
      await reference.control("POST", "/records", { company, resource, records })
    }
  }
}

const addCompanies = async ({ query }: Warehouse, { reference }: Source) => {
  const tokens: Array<string> = []
  for (let company = 1; company <= companies; company += 1) tokens.push(await reference.token(company))
  return () =>
    query(
      `insert into tributary.company_settings (company, url, token, resources)
       select 'c' || n, $1, token, $2::text[] from unnest($3::text[]) with ordinality as t(token, n)`,
      [reference.baseUrl, resources, tokens]
    )
}

interface Sample {
  readonly atMs: number
  readonly connections: number
  readonly done: number
  readonly failed: number
}

const sampleOf = async ({ query }: Warehouse, beganMs: number): Promise<Sample> => {
  const [row] = await query<Omit<Sample, "atMs">>(
    `select (select count(*)::int from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
              and backend_type = 'client backend') as connections,
            (select count(*)::int from tributary.tasks where status = 'done') as done,
            (select count(*)::int from tributary.runs where status in ('failed', 'abandoned')) as failed`
  )
  return { ...row!, atMs: performance.now() - beganMs }
}

/** The longest time in which no resource was completed, in milliseconds. */
const longestPause = (samples: ReadonlyArray<Sample>): number => {
  let [longest, last] = [0, samples[0]!]
  for (const sample of samples) {
    longest = Math.max(longest, sample.atMs - last.atMs)
    if (sample.done > last.done) last = sample
  }
  return longest
}

const env = { TRIBUTARY_COMPANIES_KEY: "0123456789abcdef0123456789abcdef", SERVICE_API_TOKEN: "" }
const all = companies * resources.length

/** Adds the companies, and waits until all of their resources are done. */
const measure = async (name: string, warehouse: Warehouse, serve: Serving, add: () => Promise<unknown>) => {
  const [beganMs, cpuBefore] = [performance.now(), cpuOf(serve.pid)]
  await add()
  const samples: Array<Sample> = []
  while ((samples.at(-1)?.done ?? 0) < all) {
    await sleep(250)
    samples.push(await sampleOf(warehouse, beganMs))
    if (performance.now() - beganMs > loadMaxSeconds * 1000) break
  }
  const seconds = samples.at(-1)!.atMs / 1000
  const cpu = cpuOf(serve.pid)
  const [rows] = await warehouse.query<{ n: number }>("select sum(inserted)::int as n from tributary.runs")
  const missing = all - samples.at(-1)!.done
  const connections = Math.max(...samples.map((sample) => sample.connections))
  const cpuSeconds = cpu === null || cpuBefore === null ? "?" : (cpu - cpuBefore).toFixed(1)
  return [
    figure(`${name}: ${companies} companies`, "s", seconds, {
      note: `${samples.at(-1)!.done} of ${all} resources, ${rows!.n} rows; ${cpuSeconds} s of CPU`
    }),
    figure(`${name}: resources not loaded`, "rows", missing, { atMost: 0 }),
    figure(`${name}: failed runs`, "rows", samples.at(-1)!.failed, { atMost: 0 }),
    figure(`${name}: connections of the process`, "requests", connections, {
      atMost: connectionsMax,
      note: `of 100; ${samples.length} samples`
    }),
    figure(`${name}: longest time without a finished resource`, "s", longestPause(samples) / 1000, { atMost: 10 })
  ]
}

export const firstLoad = async (stand: Stand, say: (line: string) => void): Promise<ReadonlyArray<Figure>> => {
  const source = await stand.source(["--data", "empty"], { pageSize: null })
  for (let company = 1; company <= companies; company += 1) {
    await fill(source, company, company === large ? recordsOfLarge : recordsEach)
  }
  const warehouse = await stand.warehouse()
  const serve = await stand.serving(source, warehouse, configuration, env)
  say(`first load: ${companies} companies with ${resources.length} resources`)
  const figures = await measure("first load", warehouse, serve, await addCompanies(warehouse, source))
  // The start of the last first run of each company, after the start of all.
  const [others] = await warehouse.query<{ last: number; large: number }>(
    `select max(extract(epoch from t.finished_at - s.created_at)) filter (where t.company <> $1)::float8 as last,
            max(extract(epoch from t.finished_at - s.created_at)) filter (where t.company = $1)::float8 as large
       from tributary.tasks t join tributary.company_settings s using (company)`,
    [`c${large}`]
  )
  await serve.stop()
  await warehouse.close()
  await source.reference.stop()
  return [
    ...figures,
    figure("first load: the other companies are complete", "s", others!.last, {
      note: `the one with fifty times their records after ${others!.large.toFixed(1)} s`
    }),
    ...(await manyInstallations(stand, say))
  ]
}

/** Three companies of each installation: everywhere 1, 2 and 3. */
const manyInstallations = async (stand: Stand, say: (line: string) => void): Promise<ReadonlyArray<Figure>> => {
  const sources = startProgram(new URL("./quiet-source.ts", import.meta.url), [String(installations), "100"])
  const addresses = (await firstLineOf(sources)).split(" ")
  const [source, warehouse] = [await stand.source(["--data", "empty"], { pageSize: null }), await stand.warehouse()]
  const serve = await stand.serving(source, warehouse, configuration, env)
  say(`first load: ${companies} companies of ${installations} installations`)
  const figures = await measure("first load, many installations", warehouse, serve, async () => {
    await warehouse.query(
      `insert into tributary.installation_settings (installation, settings)
       select 'i' || n, json_build_object('url', url) from unnest($1::text[]) with ordinality as t(url, n)`,
      [addresses]
    )
    await warehouse.query(
      `insert into tributary.company_settings (company, installation, url, token, warehouse_number, resources)
       select 'c' || (3 * n + c), 'i' || n, url, 'token-' || c, 3 * n + c, $2::text[]
         from unnest($1::text[]) with ordinality as t(url, n), generate_series(1, 3) c`,
      [addresses, resources]
    )
  })
  await serve.stop()
  await warehouse.close()
  await source.reference.stop()
  sources.kill("SIGTERM")
  return figures
}
