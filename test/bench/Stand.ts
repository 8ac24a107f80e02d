/**
 * The environment of the bench: the reference server in a process of its own without a limit, a Postgres at its default
 * durability, and the commands as a user starts them.
 *
 * Promise: `close` ends everything that is started here, also during work, and deletes its folder.
 */
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import pg from "pg"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { datasetsDefault, tableOf } from "../../src/warehouse/Table.ts"
import { startServer } from "../postgres/server.ts"
import { commandsIn, firstLine, type ReferenceProcess, startReference } from "../support/reference.ts"
import { secondsSince } from "./measuring.ts"
import {
  closing,
  databaseAt,
  firstLineOf,
  makeFolder,
  type Postgres,
  startPostgres,
  startProgram
} from "../support/servers.ts"
import { type List, openPages } from "./pages.ts"
import { type Cost, cpuOf, cpuOfFamily, difference, watch } from "./Processes.ts"

export interface Warehouse {
  readonly url: string
  readonly query: <Row extends pg.QueryResultRow>(text: string, values?: ReadonlyArray<unknown>) => Promise<Array<Row>>
  readonly client: pg.Client
  readonly close: () => Promise<void>
}

export interface Source {
  readonly reference: ReferenceProcess
  readonly token: string
}

/** A source as `serve` uses it. */
interface ServedSource {
  readonly reference: Pick<ReferenceProcess, "baseUrl" | "pid">
  readonly token: string
}

/** The cost of a program: its own, and that of the server and Postgres for it. */
interface WholeCost extends Cost {
  readonly serverCpuSeconds: number | null
  readonly postgresCpuSeconds: number | null
}

export interface Run extends WholeCost {
  /** The whole command, from its start to its end. */
  readonly wholeSeconds: number
}

/** A run, and the time of its work alone. */
interface TimedRun extends Run {
  readonly seconds: number
}

const totalNames = ["pages", "requests", "records", "inserted", "updated", "deleted"] as const
type Totals = Readonly<Record<(typeof totalNames)[number], number>>

export interface SyncRun extends TimedRun {
  readonly totals: Totals
}

export interface MinimalRun extends TimedRun {
  readonly rows: number
}

/** `seconds` is from the outbox to the last recorded answer. */
export interface PushRun extends TimedRun {
  readonly counts: Readonly<Record<string, number>>
  readonly calls: { readonly sent: number; readonly batches: number }
}

/** The input and settings of a push. */
export interface PushOptions {
  /** An NDJSON file in the folder of the stand. */
  readonly file: string
  readonly resource: string
  readonly batchSize: number
  /** Maximum number of concurrent requests. */
  readonly concurrency: number
}

export interface SyncSettings {
  /** Null means no limit. */
  readonly requestsPerMinute: number | null
  /** Null requests none. */
  readonly pageSize: number | null
}

/** A running `tributary serve`. */
export interface Serving {
  readonly pid: number
  /** The line that it prints when it is ready. */
  readonly line: string
  /** Stops it and returns its cost. */
  readonly stop: () => Promise<WholeCost>
}

export type Stand = Awaited<ReturnType<typeof open>>

/** The records in the heap of the reference server need more than Node's default. */
const serverHeapMb = 12_000

/** A server of another version (test/postgres/server.ts) with its own settings. */
const installed = async (version: string): Promise<Postgres> => {
  const { url, pid, stop } = await startServer(version, [])
  return { url, pid: () => pid, stop }
}

/** Starts Postgres: the embedded one, or one of another version. Servers and databases start on request. */
export const open = async (version: string | null = null) => {
  const folder = makeFolder("bench")
  const references: Array<ReferenceProcess> = []
  const clients: Array<pg.Client> = []
  const commands = commandsIn(folder)
  const postgres = await (version === null ? startPostgres(makeFolder("bench-postgres")) : installed(version))
  const connect = async (url: string) => {
    const client = new pg.Client({ connectionString: url })
    client.on("error", () => {})
    await client.connect()
    clients.push(client)
    return client
  }
  const administrator = await connect(postgres.url)

  const source = async (
    options: ReadonlyArray<string>,
    { pageSize }: Pick<SyncSettings, "pageSize">
  ): Promise<Source> => {
    const reference = await startReference(options, {
      NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --max-old-space-size=${serverHeapMb}`
    })
    references.push(reference)
    await reference.control("PUT", "/limits", { requestsPerMinute: null })
    if (pageSize !== null && pageSize > 250) await reference.control("PUT", "/dialect", { pageMax: pageSize })
    return { reference, token: await reference.token(1) }
  }

  let databases = 0
  /** Creates an empty database. */
  const warehouse = async (): Promise<Warehouse> => {
    const name = `bench_${(databases += 1)}`
    await administrator.query(`create database ${name}`)
    const url = databaseAt(postgres.url, name)
    const client = await connect(url)
    return {
      url,
      client,
      query: async (text, values) => (await client.query(text, values === undefined ? undefined : [...values])).rows,
      close: async () => {
        await client.end()
        clients.splice(clients.indexOf(client), 1)
        await administrator.query(`drop database ${name} with (force)`)
      }
    }
  }

  const environment = ({ reference, token }: ServedSource, { url }: Warehouse) => ({
    DATABASE_URL: url,
    SERVICE_API_URL: reference.baseUrl,
    SERVICE_API_TOKEN: token
  })

  /** Measures the cost of the server and Postgres from now on. */
  const others = ({ reference }: ServedSource) => {
    const [serverBefore, postgresBefore] = [cpuOf(reference.pid), cpuOfFamily(postgres.pid())]
    return () => ({
      serverCpuSeconds: difference(cpuOf(reference.pid), serverBefore),
      postgresCpuSeconds: difference(cpuOfFamily(postgres.pid()), postgresBefore)
    })
  }

  /** Runs a program after a checkpoint of Postgres, and measures its cost. */
  const counted = async <A>(
    from: Source,
    program: () => { readonly child: ChildProcess; readonly done: Promise<A> }
  ): Promise<Run & { readonly result: A }> => {
    await administrator.query("checkpoint")
    const work = others(from)
    const began = performance.now()
    const { child, done } = program()
    const watched = watch(child.pid!)
    const result = await done.finally(watched)
    return { result, wholeSeconds: secondsSince(began), ...watched(), ...work() }
  }

  /** Runs a command to its end. Returns its report and its cost. */
  const command = async <Report>(from: Source, to: Warehouse, args: ReadonlyArray<string>) => {
    const env = environment(from, to)
    const { result, ...run } = await counted(from, () => commands.start([...args, "--json"], env))
    if (result.code !== 0) throw new Error(`${args[0]} ended with ${result.code}: ${result.stderr}`)
    return { report: JSON.parse(result.stdout) as Report, run }
  }

  /** Runs one of the baselines to its end. Returns what it prints and its cost. */
  const baseline = async <Report>(from: Source, to: Warehouse, module: string, args: ReadonlyArray<string>) => {
    const { result, ...run } = await counted(from, () => {
      const child = startProgram(new URL(module, import.meta.url), args, environment(from, to))
      return { child, done: Promise.all([firstLineOf(child), once(child, "close")]).then(([line]) => line) }
    })
    return { report: JSON.parse(result) as Report, run }
  }

  /** Writes a file and returns its path. */
  const write = (name: string, text: string): string => {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    return path
  }

  const sync = async (
    from: Source,
    to: Warehouse,
    { requestsPerMinute, pageSize }: SyncSettings,
    args: ReadonlyArray<string>
  ): Promise<SyncRun> => {
    write(
      "config/tributary.yaml",
      `budget: { requests_per_minute: ${requestsPerMinute ?? "unlimited"} }\n` +
        (pageSize === null ? "" : `paging: { page_size: ${pageSize} }\n`)
    )
    interface Report {
      readonly companies: ReadonlyArray<{
        readonly outcomes: ReadonlyArray<{ readonly durationMs: number; readonly totals: Totals }>
      }>
    }
    const { report, run } = await command<Report>(from, to, ["sync", ...args])
    const outcomes = report.companies.flatMap((company) => company.outcomes)
    const totals = Object.fromEntries(
      totalNames.map((name) => [name, outcomes.reduce((sum, one) => sum + one.totals[name], 0)])
    ) as Totals
    return { ...run, seconds: Math.max(...outcomes.map(({ durationMs }) => durationMs)) / 1000, totals }
  }

  const minimal = async (from: Source, to: Warehouse, args: ReadonlyArray<string>): Promise<MinimalRun> => {
    type Report = Pick<MinimalRun, "rows" | "seconds"> & { readonly peakKb: number }
    const { report, run } = await baseline<Report>(from, to, "./minimal.ts", args)
    return { ...run, ...report, peakMb: run.peakMb ?? report.peakKb / 1024 }
  }

  /** Exports the resource as Parquet; returns the rows of its manifest. */
  const exportParquet = async (from: Source, to: Warehouse, resource: string) => {
    const files = join(folder, "export")
    interface Report {
      readonly tables: ReadonlyArray<{ readonly rows: number }>
    }
    const { report, run } = await command<Report>(from, to, ["export", resource, "--to", files])
    rmSync(files, { recursive: true, force: true })
    return { ...run, rows: report.tables.reduce((sum, { rows }) => sum + rows, 0) }
  }

  /** Posts records by a bare loop. */
  const post = async (from: Source, to: Warehouse, { file, resource, batchSize, concurrency }: PushOptions) => {
    const args = [file, resource, String(batchSize), String(concurrency)]
    const { report, run } = await baseline<{ calls: number; seconds: number }>(from, to, "./poster.ts", args)
    return { ...run, ...report }
  }

  /** Pushes the same records, without a request limit. */
  const push = async (
    from: Source,
    to: Warehouse,
    { file, resource, batchSize, concurrency }: PushOptions
  ): Promise<PushRun> => {
    const config = write(
      "push.yaml",
      `budget: { requests_per_minute: unlimited }
push: { batch_size: ${batchSize}, concurrency: ${concurrency} }
`
    )
    type Report = Pick<PushRun, "counts" | "calls"> & { readonly durationMs: number }
    const { report, run } = await command<Report>(from, to, ["push", resource, "--from", file, "--config", config])
    return { ...run, counts: report.counts, calls: report.calls, seconds: report.durationMs / 1000 }
  }

  /** Starts `tributary serve` with a configuration. An empty variable is not set. */
  const serving = async (
    from: ServedSource,
    to: Warehouse,
    yaml: string,
    env: Readonly<Record<string, string>>
  ): Promise<Serving> => {
    const all = Object.entries({ ...environment(from, to), ...env }).filter(([, value]) => value !== "")
    const run = commands.start(["serve", "--json", "--config", write("serve.yaml", yaml)], Object.fromEntries(all))
    const watched = watch(run.child.pid!)
    const work = others(from)
    return {
      pid: run.child.pid!,
      line: await firstLine(run),
      stop: async () => {
        run.child.kill("SIGTERM")
        const { code, stderr } = await run.done
        const cost = { ...watched(), ...work() }
        if (code !== 0) throw new Error(`serve ended with ${code}: ${stderr}`)
        return cost
      }
    }
  }

  return {
    source,
    warehouse,
    sync,
    minimal,
    exportParquet,
    write,
    push,
    post,
    serving,
    /** Seconds of processor time of Postgres so far. */
    postgresCpu: () => cpuOfFamily(postgres.pid()),
    close: closing(async () => {
      await commands.close()
      for (const client of clients) await client.end().catch(() => undefined)
      for (const reference of references) await reference.stop()
      await postgres.stop()
      rmSync(folder, { recursive: true, force: true })
    })
  }
}

export interface FetchResult {
  readonly seconds: number
  readonly rows: number
  readonly bytes: number
}

/** Reads every page of a list: the bytes alone, or also parsed with `JSON.parse`. */
export const fetchAll = async (
  { reference, token }: Source,
  { parse, ...list }: List & { readonly parse: boolean }
): Promise<FetchResult> => {
  const pages = openPages(reference.baseUrl, token)
  const began = performance.now()
  let [rows, bytes] = [0, 0]
  for await (const { page } of pages.read(list)) {
    bytes += page.length
    if (parse) rows += (JSON.parse(page.toString("utf8")) as { data: ReadonlyArray<unknown> }).data.length
  }
  const seconds = secondsSince(began)
  await pages.close()
  return { seconds, rows, bytes }
}

/** A table of the minimal pipeline. */
export interface BareTable {
  readonly table: string
  readonly columns: ReadonlyArray<string>
  readonly create: string
}

/** A table as the product creates it for a resource, without the columns that only the product's promises need. */
export const bareTable = (resource: string, table: string): BareTable => {
  const { columns } = tableOf(serviceV2.resources.get(resource)!, datasetsDefault)
  return {
    table,
    columns: columns.map((column) => column.name),
    create:
      `create table ${table} ("_company_id" bigint not null, ` +
      columns.map((column) => `${column.sql} ${column.sqlType}`).join(", ") +
      `, primary key ("_company_id", "id"))`
  }
}

/** Rows written so far to the tables of the warehouse and to their history, as Postgres counts them. */
export const rowsWritten = async (warehouse: Warehouse): Promise<number> => {
  // Postgres counts the rows of a connection that has just ended when its process is gone.
  for (let left = 200; left > 0; left--) {
    const [others] = await warehouse.query<{ n: string }>(
      `select count(*) as n from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
    )
    if (others?.n === "0") break
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await warehouse.query("select pg_stat_clear_snapshot()")
  const [row] = await warehouse.query<{ n: string | null }>(
    `select sum(n_tup_ins + n_tup_upd + n_tup_del) as n from pg_stat_user_tables where schemaname in ('erp', 'erp_history')`
  )
  return Number(row?.n ?? 0)
}
