/**
 * The environment of the bench: the reference server in a process of its own without a limit, a Postgres at its default
 * durability, and the commands as a user starts them.
 *
 * Promise: {@link Stand.close} ends everything that is started here, also during work, and deletes its folder.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import { Pool } from "undici"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { datasetsDefault, tableOf } from "../../src/warehouse/Table.ts"
import { start } from "../../src/postgres/EmbeddedPostgres.ts"
import { type ReferenceProcess, startCommand, startReference } from "../support/reference.ts"
import { startServer } from "../postgres/server.ts"
import { type Cost, cpuOf, cpuOfFamily, watch } from "./Processes.ts"

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
export interface ServedSource {
  readonly reference: Pick<ReferenceProcess, "baseUrl" | "pid">
  readonly token: string
}

/** The cost of a program: its own, and that of the server and Postgres for it. */
export interface WholeCost extends Cost {
  readonly serverCpuSeconds: number | null
  readonly postgresCpuSeconds: number | null
}

export interface Run extends WholeCost {
  /** The whole command, from its start to its end. */
  readonly wholeSeconds: number
}

interface Totals {
  readonly pages: number
  readonly requests: number
  readonly records: number
  readonly inserted: number
  readonly updated: number
  readonly deleted: number
}

export interface SyncRun extends Run {
  readonly totals: Totals
  /** The time of the resource alone. */
  readonly seconds: number
}

export interface MinimalRun extends Run {
  readonly rows: number
  readonly seconds: number
}

export interface PushRun extends Run {
  readonly counts: Readonly<Record<string, number>>
  readonly calls: { readonly sent: number; readonly batches: number }
  /** The time of pushing alone: from the outbox to the last recorded answer. */
  readonly seconds: number
}

export interface PostRun extends Run {
  readonly calls: number
  readonly seconds: number
}

/** The input and settings of a push. */
export interface PushOptions {
  /** An NDJSON file in the folder of {@link Stand.write}. */
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
  readonly url: string
  /** The path of deliveries to the company. */
  readonly path: string
  /** Stops it and returns its cost. */
  readonly stop: () => Promise<WholeCost>
}

export interface Stand {
  readonly source: (options: ReadonlyArray<string>, settings: { readonly pageSize: number | null }) => Promise<Source>
  /** Creates an empty database. */
  readonly warehouse: () => Promise<Warehouse>
  readonly sync: (
    source: Source,
    warehouse: Warehouse,
    settings: SyncSettings,
    args: ReadonlyArray<string>
  ) => Promise<SyncRun>
  /** Exports the resource as Parquet; returns the rows of its manifest. */
  readonly exportParquet: (
    source: Source,
    warehouse: Warehouse,
    resource: string
  ) => Promise<Run & { readonly rows: number }>
  readonly minimal: (source: Source, warehouse: Warehouse, args: ReadonlyArray<string>) => Promise<MinimalRun>
  /** Writes a file and returns its path. */
  readonly write: (name: string, text: string) => string
  /** Pushes the records of a file to the source, without a request limit. */
  readonly push: (source: Source, warehouse: Warehouse, options: PushOptions) => Promise<PushRun>
  /** Posts the same records by a bare loop. */
  readonly post: (source: Source, warehouse: Warehouse, options: PushOptions) => Promise<PostRun>
  /** Receives events of the resources, without a request limit. */
  readonly serve: (
    source: Source,
    warehouse: Warehouse,
    settings: { readonly secret: string; readonly resources: ReadonlyArray<string> }
  ) => Promise<Serving>
  /** Starts `tributary serve` with a configuration. An empty variable is not set. */
  readonly serving: (
    source: ServedSource,
    warehouse: Warehouse,
    yaml: string,
    env: Readonly<Record<string, string>>
  ) => Promise<{
    readonly pid: number
    /** The line that it prints when it is ready. */
    readonly line: string
    readonly stop: Serving["stop"]
  }>
  /** Seconds of processor time of Postgres so far. */
  readonly postgresCpu: () => number | null
  readonly close: () => Promise<void>
}

const minimalProgram = fileURLToPath(new URL("./minimal.ts", import.meta.url))
const posterProgram = fileURLToPath(new URL("./poster.ts", import.meta.url))

/** The records in the heap of the reference server need more than Node's default. */
const serverHeapMb = 12_000

/** The Postgres of a stand. */
interface Postgres {
  /** Of the database `postgres`. */
  readonly url: string
  readonly pid: () => number
  readonly stop: () => Promise<void>
}

const embedded = async (folder: string): Promise<Postgres> => {
  const scope = Scope.makeUnsafe()
  const { endpoint, pid } = await Effect.runPromise(
    start({ root: join(folder, "postgres"), port: 0 }).pipe(Effect.provideService(Scope.Scope, scope))
  )
  const { host, port, user, password } = endpoint
  return {
    url: `postgres://${user}:${Redacted.value(password)}@${host}:${port}/postgres`,
    pid,
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

/** A server of another version (test/postgres/server.ts) with its own settings. */
const installed = async (version: string): Promise<Postgres> => {
  const { url, pid, stop } = await startServer(version, [])
  return { url, pid: () => pid, stop }
}

/** Starts Postgres: the embedded one, or one of another version. Servers and databases start on request. */
export const open = async (version: string | null = null): Promise<Stand> => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-bench-"))
  // mkdtemp makes it private. As root, Postgres runs as another user, who needs access.
  chmodSync(folder, 0o755)
  const references: Array<ReferenceProcess> = []
  const clients: Array<pg.Client> = []
  /** The running child processes. */
  const children = new Set<ChildProcess>()
  const close = async () => {
    for (const child of children) child.kill("SIGKILL")
    for (const client of clients) await client.end().catch(() => undefined)
    for (const reference of references) await reference.stop()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  let closing: Promise<void> | undefined
  const closeAll = () => (closing ??= close())
  const postgres = await (version === null ? embedded(folder) : installed(version))
  const urlOf = (database: string) => postgres.url.replace(/\/postgres(?=$|\?)/, `/${database}`)
  const connect = async (database: string) => {
    const client = new pg.Client({ connectionString: urlOf(database) })
    client.on("error", () => {})
    await client.connect()
    clients.push(client)
    return client
  }
  const administrator = await connect("postgres")

  const source: Stand["source"] = async (options, { pageSize }) => {
    const before = process.env["NODE_OPTIONS"]
    process.env["NODE_OPTIONS"] = `${before ?? ""} --max-old-space-size=${serverHeapMb}`
    const reference = await startReference(options).finally(() => {
      if (before === undefined) delete process.env["NODE_OPTIONS"]
      else process.env["NODE_OPTIONS"] = before
    })
    references.push(reference)
    await reference.control("PUT", "/limits", { requestsPerMinute: null })
    if (pageSize !== null && pageSize > 250) await reference.control("PUT", "/dialect", { pageMax: pageSize })
    return { reference, token: await reference.token(1) }
  }

  let databases = 0
  const warehouse: Stand["warehouse"] = async () => {
    const name = `bench_${(databases += 1)}`
    await administrator.query(`create database ${name}`)
    const client = await connect(name)
    return {
      url: urlOf(name),
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
    const since = (before: number | null, now: number | null) => (before === null || now === null ? null : now - before)
    return () => ({
      serverCpuSeconds: since(serverBefore, cpuOf(reference.pid)),
      postgresCpuSeconds: since(postgresBefore, cpuOfFamily(postgres.pid()))
    })
  }

  /** Runs a program after a checkpoint of Postgres, and measures its cost. */
  const counted = async <A>(
    from: Source,
    program: () => { readonly child: ChildProcess; readonly done: Promise<A> }
  ): Promise<Run & { readonly result: A }> => {
    await administrator.query("checkpoint")
    const work = others(from)
    const began = process.hrtime.bigint()
    const { child, done } = program()
    children.add(child)
    const watched = watch(child.pid!)
    const result = await done.finally(() => {
      children.delete(child)
      watched()
    })
    const wholeSeconds = Number(process.hrtime.bigint() - began) / 1e9
    return { result, ...watched(), wholeSeconds, ...work() }
  }

  const sync: Stand["sync"] = async (from, to, settings, args) => {
    mkdirSync(join(folder, "config"), { recursive: true })
    writeFileSync(
      join(folder, "config", "tributary.yaml"),
      `budget: { requests_per_minute: ${settings.requestsPerMinute ?? "unlimited"} }\n` +
        (settings.pageSize === null ? "" : `paging: { page_size: ${settings.pageSize} }\n`)
    )
    const { result, ...run } = await counted(from, () =>
      startCommand(["sync", ...args, "--json"], { cwd: folder, env: environment(from, to) })
    )
    if (result.code !== 0) throw new Error(`sync ended with ${result.code}: ${result.stderr}`)
    const report = JSON.parse(result.stdout) as {
      readonly companies: ReadonlyArray<{
        readonly outcomes: ReadonlyArray<{ readonly durationMs: number; readonly totals: Totals }>
      }>
    }
    const outcomes = report.companies.flatMap((company) => company.outcomes)
    const sum = (of: keyof Totals) => outcomes.reduce((total, { totals }) => total + totals[of], 0)
    return {
      ...run,
      seconds: Math.max(...outcomes.map(({ durationMs }) => durationMs)) / 1000,
      totals: {
        pages: sum("pages"),
        requests: sum("requests"),
        records: sum("records"),
        inserted: sum("inserted"),
        updated: sum("updated"),
        deleted: sum("deleted")
      }
    }
  }

  /** Runs one of the baselines to its end. Returns the line that it prints. */
  const baseline = (from: Source, to: Warehouse, program: string, args: ReadonlyArray<string>) =>
    counted(from, () => {
      const child = spawn(process.execPath, [program, ...args], {
        env: { PATH: process.env["PATH"], ...environment(from, to) },
        stdio: ["ignore", "pipe", "inherit"]
      })
      let stdout = ""
      child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()))
      const done = new Promise<string>((resolve, reject) => {
        child.once("close", (code) =>
          code === 0 ? resolve(stdout) : reject(new Error(`the baseline ended with ${code}`))
        )
      })
      return { child, done }
    })

  const minimal: Stand["minimal"] = async (from, to, args) => {
    const { result, ...run } = await baseline(from, to, minimalProgram, args)
    const { rows, seconds, peakKb } = JSON.parse(result) as { rows: number; seconds: number; peakKb: number }
    return { ...run, rows, seconds, peakMb: run.peakMb ?? peakKb / 1024 }
  }

  const exportParquet: Stand["exportParquet"] = async (from, to, resource) => {
    const files = join(folder, "export")
    const { result, ...run } = await counted(from, () =>
      startCommand(["export", resource, "--to", files, "--json"], { cwd: folder, env: environment(from, to) })
    )
    rmSync(files, { recursive: true, force: true })
    if (result.code !== 0) throw new Error(`export ended with ${result.code}: ${result.stderr}`)
    const { tables } = JSON.parse(result.stdout) as { readonly tables: ReadonlyArray<{ readonly rows: number }> }
    return { ...run, rows: tables.reduce((sum, { rows }) => sum + rows, 0) }
  }

  const write: Stand["write"] = (name, text) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return path
  }

  const post: Stand["post"] = async (from, to, { file, resource, batchSize, concurrency }) => {
    const { result, ...run } = await baseline(from, to, posterProgram, [
      file,
      resource,
      String(batchSize),
      String(concurrency)
    ])
    return { ...run, ...(JSON.parse(result) as { calls: number; seconds: number }) }
  }

  const push: Stand["push"] = async (from, to, { file, resource, batchSize, concurrency }) => {
    const config = write(
      "push.yaml",
      `budget: { requests_per_minute: unlimited }
push: { batch_size: ${batchSize}, concurrency: ${concurrency} }
`
    )
    const { result, ...run } = await counted(from, () =>
      startCommand(["push", resource, "--from", file, "--config", config, "--json"], {
        cwd: folder,
        env: environment(from, to)
      })
    )
    if (result.code !== 0) throw new Error(`push ended with ${result.code}: ${result.stderr}`)
    const { counts, calls, durationMs } = JSON.parse(result.stdout) as Pick<PushRun, "counts" | "calls"> & {
      readonly durationMs: number
    }
    return { ...run, counts, calls, seconds: durationMs / 1000 }
  }

  const serving: Stand["serving"] = async (from, to, yaml, env) => {
    const config = write("serve.yaml", yaml)
    const { child, done } = startCommand(["serve", "--json", "--config", config], {
      cwd: folder,
      env: Object.fromEntries(Object.entries({ ...environment(from, to), ...env }).filter(([, value]) => value !== ""))
    })
    children.add(child)
    const watched = watch(child.pid!)
    const work = others(from)
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout! }).once("line", resolve)
      const ended = async () => {
        const { code, stderr } = await done
        children.delete(child)
        reject(new Error(`serve ended with ${code}: ${stderr}`))
      }
      void ended()
    })
    return {
      pid: child.pid!,
      line,
      stop: async () => {
        child.kill("SIGTERM")
        const { code, stderr } = await done
        const cost = { ...watched(), ...work() }
        if (code !== 0) throw new Error(`serve ended with ${code}: ${stderr}`)
        return cost
      }
    }
  }

  const serve: Stand["serve"] = async (from, to, { secret, resources }) => {
    const company = "bench"
    const { line, stop } = await serving(
      from,
      to,
      `companies: [{ name: ${company}, token_env: SERVICE_API_TOKEN, webhook_secrets_env: [SECRET], resources: [${resources.join(", ")}] }]
budget: { requests_per_minute: unlimited }
webhooks: { listen: "127.0.0.1:0" }
schedule: { default: off }
dashboard: { listen: off }
`,
      { SECRET: secret }
    )
    const { listening } = JSON.parse(line) as { readonly listening: string }
    return { url: listening, path: `/hooks/${company}`, stop }
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
    serve,
    serving,
    postgresCpu: () => cpuOfFamily(postgres.pid()),
    close: closeAll
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
  list: { readonly resource: string; readonly pageSize: number; readonly since?: string; readonly parse: boolean }
): Promise<FetchResult> => {
  const { origin, pathname } = new URL(reference.baseUrl)
  const pool = new Pool(origin, { connections: 2 })
  const ask = async (cursor: string | null) => {
    const parameters = new URLSearchParams({
      limit: String(list.pageSize),
      ...(list.since === undefined ? {} : { modifiedsince: list.since }),
      ...(cursor === null ? {} : { cursor })
    })
    const { body, statusCode } = await pool.request({
      method: "GET",
      path: `${pathname}/${list.resource}?${parameters.toString()}`,
      headers: { authorization: `Bearer ${token}` }
    })
    if (statusCode !== 200) throw new Error(`${list.resource}: ${statusCode} ${await body.text()}`)
    return Buffer.from(await body.arrayBuffer())
  }
  const began = process.hrtime.bigint()
  let [rows, bytes] = [0, 0]
  for (let next: Promise<Buffer> | null = ask(null); next !== null;) {
    const page: Buffer = await next
    bytes += page.length
    // The token of the next page is behind the records: it is known before they are parsed.
    const cursor = /"next_cursor":"([^"]*)"/.exec(page.toString("latin1", Math.max(0, page.length - 2000)))?.[1]
    next = cursor === undefined ? null : ask(cursor)
    next?.catch(() => undefined)
    if (list.parse) rows += (JSON.parse(page.toString("utf8")) as { data: ReadonlyArray<unknown> }).data.length
  }
  const seconds = Number(process.hrtime.bigint() - began) / 1e9
  await pool.close()
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
