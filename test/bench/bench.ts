/**
 * `npm run bench [-- --rows 200000 --page-size 250]`: a full sync beside the ceilings of the same work, in one run.
 *
 * The server runs in another process without a limit; the embedded Postgres at its default durability. Raw fetch reads
 * the bytes of the same pages and drops them; COPY writes the same rows, rendered beforehand, into a table with the same
 * columns and key; the sync is the command itself, in a process of its own.
 */
import { mkdtempSync, chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import { from as copyFrom, to as copyTo } from "pg-copy-streams"
import { pipeline } from "node:stream/promises"
import { Readable } from "node:stream"
import { Pool } from "undici"
import { start } from "../../src/postgres/EmbeddedPostgres.ts"
import * as Output from "../../src/cli/Output.ts"
import { startCommand, startReference } from "../support/reference.ts"

const { values } = parseArgs({
  options: { rows: { type: "string", default: "200000" }, "page-size": { type: "string", default: "250" } }
})
const rows = Number(values.rows)
const pageSize = Number(values["page-size"])
const resource = "invoicelines"

const folder = mkdtempSync(join(tmpdir(), "tributary-bench-"))
chmodSync(folder, 0o755)
const scope = Scope.makeUnsafe()
const say = (line: string) => process.stdout.write(`${line}\n`)

interface Measured {
  readonly what: string
  readonly rows: number
  readonly seconds: number
  readonly note: string
}
const results: Array<Measured> = []
const seconds = async (work: () => Promise<number>): Promise<{ count: number; seconds: number }> => {
  const began = process.hrtime.bigint()
  const count = await work()
  return { count, seconds: Number(process.hrtime.bigint() - began) / 1e9 }
}

/** Runs a sync and watches its peak resident memory. */
const sync = async (env: Readonly<Record<string, string>>) => {
  const began = process.hrtime.bigint()
  const command = startCommand(["sync", resource, "--json"], { cwd: folder, env })
  let peakKb = 0
  const watch = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${command.child.pid}/status`, "utf8")
      peakKb = Math.max(peakKb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0))
    } catch {
      // Between the end of the process and the end of the watch.
    }
  }, 20)
  const { code, stdout, stderr } = await command.done
  clearInterval(watch)
  if (code !== 0) throw new Error(`sync ended with ${code}: ${stderr}`)
  const report = JSON.parse(stdout) as {
    companies: ReadonlyArray<{
      outcomes: ReadonlyArray<{
        durationMs: number
        totals: { records: number; inserted: number; updated: number; requests: number }
      }>
    }>
  }
  const outcome = report.companies[0]!.outcomes[0]!
  return { outcome, peakMb: Math.round(peakKb / 1024), wholeSeconds: Number(process.hrtime.bigint() - began) / 1e9 }
}

say(
  `${rows} ${resource}, pages of ${pageSize}, ${cpus().length} cores (${cpus()[0]?.model ?? "unknown"}), Node ${process.version}`
)
const reference = await startReference(["--data", "scale", "--rows", String(rows)])
const server = await Effect.runPromise(
  start({ root: join(folder, "postgres"), port: 0 }).pipe(Effect.provideService(Scope.Scope, scope))
)
try {
  await reference.control("PUT", "/limits", { requestsPerMinute: 10_000_000 })
  if (pageSize > 250) await reference.control("PUT", "/dialect", { pageMax: pageSize })
  const token = await reference.token(1)
  const { host, port, user, password, database } = server.endpoint
  const url = `postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  mkdirSync(join(folder, "config"))
  writeFileSync(
    join(folder, "config", "tributary.yaml"),
    `budget: { requests_per_minute: unlimited }\npaging: { page_size: ${pageSize} }\n`
  )
  const env = { DATABASE_URL: url, SERVICE_API_URL: reference.baseUrl, SERVICE_API_TOKEN: token }

  const rawFetch = async () => {
    const { origin, pathname } = new URL(reference.baseUrl)
    const pool = new Pool(origin, { connections: 1 })
    let cursor: string | null = null
    let bytes = 0
    const fetched = await seconds(async () => {
      do {
        const query: string = `limit=${pageSize}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`
        const { body } = await pool.request({
          method: "GET",
          path: `${pathname}/${resource}?${query}`,
          headers: { authorization: `Bearer ${token}` }
        })
        const page = Buffer.from(await body.arrayBuffer())
        bytes += page.length
        // The mark of the next page, without parsing the records: it stands behind them.
        const mark = /"next_cursor":\s*(?:null|"([^"]*)")/.exec(
          page.toString("latin1", Math.max(0, page.length - 2000))
        )
        cursor = mark?.[1] ?? null
      } while (cursor !== null)
      return rows
    })
    await pool.close()
    return { ...fetched, bytes }
  }
  await rawFetch() // The server renders each record once; from then on both readers get it for the same price.
  const fetched = await rawFetch()
  results.push({
    what: "raw fetch of the same pages",
    rows,
    seconds: fetched.seconds,
    note: `${Math.round(fetched.bytes / rows)} bytes a record`
  })

  const full = await sync(env)
  results.push({
    what: "full sync",
    rows: full.outcome.totals.records,
    seconds: full.outcome.durationMs / 1000,
    note: `peak RSS ${full.peakMb} MB, ${full.outcome.totals.requests} requests, whole command ${full.wholeSeconds.toFixed(1)} s`
  })
  const held = await client.query<{ n: string }>(`select count(*) as n from erp.${resource}`)
  if (Number(held.rows[0]!.n) !== rows)
    throw new Error(`the warehouse holds ${held.rows[0]!.n} rows instead of ${rows}`)

  const chunks: Array<Buffer> = []
  await pipeline(client.query(copyTo(`copy erp.${resource} to stdout`)), async (source) => {
    for await (const chunk of source) chunks.push(chunk as Buffer)
  })
  await client.query(`create table erp.copied (like erp.${resource} including all)`)
  const copied = await seconds(async () => {
    await pipeline(Readable.from(chunks), client.query(copyFrom("copy erp.copied from stdin")))
    return rows
  })
  results.push({ what: "COPY of the same rows, with their key", rows, seconds: copied.seconds, note: "" })
  await client.query("drop table erp.copied")

  const quiet = await sync(env)
  results.push({
    what: "sync with nothing changed",
    rows: quiet.outcome.totals.records,
    seconds: quiet.outcome.durationMs / 1000,
    note: `${quiet.outcome.totals.requests} request, ${quiet.outcome.totals.inserted + quiet.outcome.totals.updated} rows written, whole command ${quiet.wholeSeconds.toFixed(2)} s`
  })
  await client.end()

  say("")
  say(
    Output.table(
      ["what", "rows", "seconds", "rows/s", ""],
      results.map((result) => [
        result.what,
        Output.count(result.rows),
        result.seconds.toFixed(2),
        result.seconds === 0 ? "" : Output.count(Math.round(result.rows / result.seconds)),
        result.note
      ]),
      ["left", "right", "right", "right"]
    )
  )
} finally {
  await reference.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true, force: true })
}
