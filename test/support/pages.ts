/**
 * The pages on a warehouse of their own, for tests: a real listener, a real Postgres, and a source that receives no
 * request.
 */
import * as http from "node:http"
import { Duration, Effect, Redacted } from "effect"
import * as Dashboard from "../../src/dashboard/Dashboard.ts"
import type { ShownCompany } from "../../src/dashboard/Page.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import { engineDefault } from "../../src/sync/EngineSettings.ts"
import { scripted } from "./tiny.ts"
import { sql } from "./postgres.ts"

/** A company with the fields that the pages use. */
export const shownCompany = (name: string, number: bigint): ShownCompany => ({
  name,
  connector: scripted(number, () => ({ records: [], next: null })).connector,
  tables: Effect.succeed(new Map()),
  engine: engineDefault,
  batchRecordsMax: 100,
  events: [],
  installation: "one",
  fingerprint: "0".repeat(64),
  receivesAt: null,
  push: { batchRecordsMax: 200, useBatch: true, keyAgeMax: Duration.hours(20), concurrency: 2 }
})

export interface Reply {
  readonly status: number
  readonly text: string
  readonly headers: http.IncomingHttpHeaders
}

export interface RequestOptions {
  readonly method?: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: string
}

/** Sends one request with exactly these headers and Host. */
export const ask = (url: string, { method = "GET", headers = {}, body }: RequestOptions = {}): Effect.Effect<Reply> =>
  Effect.callback((resume) => {
    const request = http.request(url, { method, headers, agent: false }, (response) => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => (text += chunk))
      response.on("end", () =>
        resume(Effect.succeed({ status: response.statusCode ?? 0, text, headers: response.headers }))
      )
    })
    request.on("error", (error) => resume(Effect.die(error)))
    request.end(body)
    return Effect.sync(() => request.destroy())
  })

/** Sends a form as a browser does from one of our pages. */
export const post = (url: string, fields: Readonly<Record<string, string>>, headers: http.OutgoingHttpHeaders = {}) =>
  ask(url, {
    method: "POST",
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      origin: new URL(url).origin,
      "sec-fetch-site": "same-origin",
      ...headers
    },
    body: new URLSearchParams(fields).toString()
  })

export const tokenOf = (text: string): string => /name="form_token" value="([^"]+)"/.exec(text)?.[1] ?? ""

export const cookieOf = ({ headers }: Reply, name: string): string | undefined =>
  headers["set-cookie"]?.map((cookie) => cookie.split(";")[0] ?? "").find((cookie) => cookie.startsWith(`${name}=`))

export const password = "correct horse battery"

/** Listens on a free port of loopback. */
export const listening = (options: Partial<Dashboard.DashboardOptions> = {}) =>
  Dashboard.start({
    host: "127.0.0.1",
    port: 0,
    tls: null,
    password: null,
    publicUrl: null,
    datasets: datasetsDefault,
    version: "1.2.3",
    assistant: null,
    ...options
  })

export const withPassword = { password: Redacted.make(password) }

/** Listens, and shows these companies of the current warehouse. */
export const showing = Effect.fnUntraced(function* (
  companies: ReadonlyArray<ShownCompany>,
  options: Partial<Dashboard.DashboardOptions> = {}
) {
  const dashboard = yield* listening(options)
  yield* Effect.forkScoped(dashboard.connect(() => companies))
  return dashboard.url
})

/** {@link showing} with a session, opened by the link that `serve` prints. The headers contain its cookie. */
export const acting = Effect.fnUntraced(function* (companies: ReadonlyArray<ShownCompany>) {
  const dashboard = yield* listening()
  yield* Effect.forkScoped(dashboard.connect(() => companies))
  const cookie = yield* dashboard.link.pipe(
    Effect.flatMap((link) => Effect.orDie(ask(link ?? `${dashboard.url}/open`))),
    Effect.flatMap((reply) => Effect.fromNullishOr(cookieOf(reply, "tributary_session"))),
    Effect.retry({ times: 500 }),
    Effect.orDie
  )
  return { url: dashboard.url, headers: { cookie } }
})

/**
 * Fills the ledger as a few weeks would: the given number of resources for each company, with runs, tasks, checkpoints,
 * counts and quarantine. Every seventh resource is late, every eleventh fails, every thirteenth is paused, every
 * seventeenth has quarantine.
 */
export const seed = Effect.fnUntraced(function* (
  companies: ReadonlyArray<readonly [name: string, number: number]>,
  resources: ReadonlyArray<string>,
  runs: number
) {
  const of = JSON.stringify(companies.map(([name, number]) => ({ name, number })))
  const from = `(select c.name, c.number, r.resource, r.position
     from jsonb_to_recordset($1::jsonb) as c(name text, number bigint),
          jsonb_array_elements_text($2::jsonb) with ordinality as r(resource, position)) as x`
  const parameters = [of, JSON.stringify(resources)]
  yield* sql.unsafe(
    `insert into tributary.companies (company, company_id)
     select name, number from jsonb_to_recordset($1::jsonb) as c(name text, number bigint)`,
    [of]
  )
  yield* sql.unsafe(
    `insert into tributary.checkpoints (company_id, resource, cursor, cursor_read_at, full_scan_at, learned_overlap_ms, updated_at, full_scan_reason)
     select number, resource, '2026-11-20T08:15:30.123456Z', tributary.now(), tributary.now() - interval '3 days', 300000,
            tributary.now(), case when position % 19 = 0 then 'a column was added' end from ${from}`,
    parameters
  )
  yield* sql.unsafe(
    `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, next_run_at, paused_at, paused_by, started_at,
            finished_at, status, failures, error, remedy)
     select name, resource, 'sync', case when position % 7 = 0 then 'off' else 'every 10 min' end, 900000,
            case when position % 7 <> 0 then tributary.now() + interval '6 minutes' end,
            case when position % 13 = 0 then tributary.now() - interval '2 hours' end,
            case when position % 13 = 0 then 'the page' end,
            tributary.now() - interval '4 minutes', tributary.now() - interval '4 minutes',
            case when position % 11 = 0 then 'failed' else 'done' end, case when position % 11 = 0 then 3 else 0 end,
            case when position % 11 = 0 then 'the service failed (500) <script>alert(1)</script>' end,
            case when position % 11 = 0 then 'report the request id' end
       from ${from}`,
    parameters
  )
  yield* sql.unsafe(
    `insert into tributary.row_counts (company_id, resource, rows, deleted) select number, resource, position * 1234, position from ${from}`,
    parameters
  )
  yield* sql.unsafe(
    `insert into tributary.quarantine (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
     select number, resource, '77', 'name', 'a NUL <b>cannot</b> be stored', '{}', 1, 'GET /x', tributary.now(), tributary.now()
       from ${from} where position % 17 = 0`,
    parameters
  )
  const pairs = companies.length * resources.length
  yield* sql.unsafe(
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, cursor_from, cursor_to,
            pages, requests, retries, bytes, records, inserted, updated, unchanged, error, remedy)
     select number, resource, 'incremental', 'live', case when is_last and position % 11 = 0 then 'failed' else 'done' end, 1,
            at, at + interval '2 seconds', '2026-11-20T08:00:00Z', '2026-11-20T08:15:30.123456Z', 1, 3, 1, 204800, 40, 1, 2, 37,
            case when is_last and position % 11 = 0 then 'the service failed (500) <script>alert(1)</script>' end,
            case when is_last and position % 11 = 0 then 'report the request id' end
       from (select x.*, round = 1 as is_last,
                    tributary.now() - round * interval '4 minutes' - case when position % 7 = 0 then interval '2 hours' else interval '0' end as at
               from generate_series(1, $3::int) as round, ${from}) as every
      order by at`,
    [...parameters, Math.max(1, Math.ceil(runs / pairs))]
  )
  yield* sql.unsafe("analyze")
})
