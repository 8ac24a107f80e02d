/**
 * The first load of 300 companies with 8 resources each by one `serve`: whether it progresses steadily, fairly and within
 * its connections.
 *
 * Promise: the companies are inserted as rows while `serve` runs. One of them has as many records as fifty others. The
 * connections are those that Postgres shows (`pg_stat_activity`), sampled four times a second.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { type Figure, figure } from "./Figures.ts"
import { cpuOf } from "./Processes.ts"
import type { Source, Stand, Warehouse } from "./Stand.ts"

const resources = ["areas", "salesmen", "customers", "vendors", "items", "jobs", "departments", "carriers"]
const companies = 300
const recordsEach = 100
/** The company with much work, and its records of each resource. */
const large = 1
const recordsOfLarge = 50 * recordsEach
const batch = 1_000
const loadMaxSeconds = 900
const connectionsMax = 60

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

export const firstLoad = async (stand: Stand, say: (line: string) => void): Promise<ReadonlyArray<Figure>> => {
  const source = await stand.source(["--data", "empty"], { pageSize: null })
  for (let company = 1; company <= companies; company += 1) {
    await fill(source, company, company === large ? recordsOfLarge : recordsEach)
  }
  const warehouse = await stand.warehouse()
  const serve = await stand.serving(source, warehouse, configuration, {
    TRIBUTARY_COMPANIES_KEY: "0123456789abcdef0123456789abcdef",
    SERVICE_API_TOKEN: ""
  })
  const add = await addCompanies(warehouse, source)
  const all = companies * resources.length
  say(`first load: ${companies} companies with ${resources.length} resources`)
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
  // The start of the last first run of each company, after the start of all.
  const [others] = await warehouse.query<{ last: number; large: number; rows: number }>(
    `select max(extract(epoch from t.finished_at - s.created_at)) filter (where t.company <> $1)::float8 as last,
            max(extract(epoch from t.finished_at - s.created_at)) filter (where t.company = $1)::float8 as large,
            (select sum(inserted)::int from tributary.runs) as rows
       from tributary.tasks t join tributary.company_settings s using (company)`,
    [`c${large}`]
  )
  await serve.stop()
  await warehouse.close()
  await source.reference.stop()
  const missing = all - samples.at(-1)!.done
  const connections = Math.max(...samples.map((sample) => sample.connections))
  const cpuSeconds = cpu === null || cpuBefore === null ? "?" : (cpu - cpuBefore).toFixed(1)
  return [
    figure(`first load: ${companies} companies`, "s", seconds, {
      note: `${samples.at(-1)!.done} of ${all} resources, ${others!.rows} rows; ${cpuSeconds} s of CPU`
    }),
    figure("first load: resources not loaded", "rows", missing, { atMost: 0 }),
    figure("first load: failed runs", "rows", samples.at(-1)!.failed, { atMost: 0 }),
    figure("first load: connections of the process", "requests", connections, {
      atMost: connectionsMax,
      note: `of 100; ${samples.length} samples`
    }),
    figure("first load: longest time without a finished resource", "s", longestPause(samples) / 1000, { atMost: 10 }),
    figure("first load: the other companies are complete", "s", others!.last, {
      note: `the one with fifty times their records after ${others!.large.toFixed(1)} s`
    })
  ]
}
