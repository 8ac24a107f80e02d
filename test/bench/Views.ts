/** Measurements of the dashboard's pages, for the benchmark. */

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
