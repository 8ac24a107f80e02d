/** Measurements of the dashboard's pages, for the benchmark and for the tests of their bounds. */
import type { Browser } from "playwright-core"
import { until, visit } from "../support/browser.ts"

export const now = () => Number(process.hrtime.bigint()) / 1e6

export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}

/** Adds runs that ended more than a day ago, as a few weeks would. */
export const remember = (
  query: (text: string, values: ReadonlyArray<unknown>) => Promise<unknown>,
  resources: ReadonlyArray<string>,
  runs: number
) =>
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
export const viewTimes = async (url: string, views: number) => {
  const took: Array<number> = []
  let text = ""
  for (let view = 0; view < views; view += 1) {
    const from = now()
    const response = await fetch(url)
    text = await response.text()
    if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 400)}`)
    took.push(now() - from)
  }
  return { took, text }
}

/** One visit with an empty cache: milliseconds until the first contentful paint, and bytes as transferred. */
const paintOf = async (browser: Browser, url: string, path: string) => {
  const look = await visit(browser, url)
  await look.go(path)
  const ms = await until(
    "the first paint",
    () =>
      look.page.evaluate<number | null>(`performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null`),
    (at) => at !== null
  )
  const bytes = await look.page.evaluate<number>(
    `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((sum, { transferSize }) => sum + transferSize, 0)`
  )
  await look.close()
  return { ms: ms!, bytes }
}

/** Several visits, each with an empty cache. The address is one that needs no session. */
export const paints = async (browser: Browser, url: string, path: string, visits: number) => {
  const all: Array<Awaited<ReturnType<typeof paintOf>>> = []
  for (let round = 0; round < visits; round += 1) all.push(await paintOf(browser, url, path))
  return { ms: all.map(({ ms }) => ms), bytes: Math.max(...all.map(({ bytes }) => bytes)) }
}
