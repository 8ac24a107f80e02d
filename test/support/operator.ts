/**
 * The environment of an operator: the reference server with two companies, a warehouse with a history, and `tributary
 * serve` with its page, all of them real processes.
 *
 * Promise: {@link Operator.close} ends everything that is started here, and removes its folder and database.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:https"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { until } from "./browser.ts"
import { certificate } from "./certificate.ts"
import { signatureOf } from "./deliveries.ts"
import { freePort } from "./freePort.ts"
import { type CommandRun, firstLine, type ReferenceProcess, startCommand, startReference } from "./reference.ts"

/** A running `tributary serve`. */
export interface ServeProcess {
  /** The page's address. */
  readonly url: string
  /** Makes an address that opens a session, for twelve hours of the clock; the page's address where there is a password. */
  readonly link: () => Promise<string>
  /** The address that receives deliveries, and the CA of its certificate. */
  readonly hooks: string
  readonly ca: string
  readonly pid: number
  /** The standard error so far. */
  readonly stderr: () => string
  /** Stops it and returns its exit code. */
  readonly stop: () => Promise<number | null>
  readonly kill: () => Promise<void>
}

export interface Operator {
  readonly reference: ReferenceProcess
  readonly databaseUrl: string
  readonly folder: string
  readonly query: <Row extends object>(text: string, values?: ReadonlyArray<unknown>) => Promise<Array<Row>>
  readonly run: (args: ReadonlyArray<string>) => Promise<Awaited<CommandRun["done"]>>
  /** Starts `serve`. Its page is on a free port unless `dashboard` is given. It receives at the configured address. */
  readonly serve: (more?: {
    readonly dashboard?: string
    readonly listen?: string
    readonly env?: Readonly<Record<string, string>>
  }) => Promise<ServeProcess>
  /** Creates a customer at the source and returns its id. */
  readonly customer: (name: string) => Promise<number>
  readonly close: () => Promise<void>
}

/** A record that cannot be landed: Postgres stores no NUL. */
export const oddCustomer = { id: 9_001, name: "Odd \u0000 <script>Ltd.</script>" }
/** The resource that fails, and the one that the token may not read; both of `south`. */
const failing = "vendors"
const barred = "employees"
/** An event signed with a configured secret, about a resource that the token may not read. */
export const deadEvent = "evt_dead_1"

const broken = { kind: "status", status: 500, path: `/${failing}`, body: "<script>alert('no')</script> is broken" }

/** Records that the source rejects: one was pushed from a file, the other inserted by SQL. */
export const pushedExternalId = "T-2"
export const insertedExternalId = "S-1"

const southSecret = "whsec_operator_south"

const configuration = (port: number): string => `companies:
  - name: north
    token_env: NORTH
    resources: [customers, items, orders, orderlines, invoices, invoicelines, payments, zones]
  - name: south
    token_env: SOUTH
    resources: [customers, items, orders, ${failing}, ${barred}]
    webhook_secrets_env: [SOUTH_SECRET]
budget: { requests_per_minute: 3000 }
requests: { attempts_max: 2, timeout_seconds: 10 }
freshness: { default_minutes: 120, resources: { zones: 60 } }
schedule:
  default: { every: 80m }
  resources:
    zones: "off"
    items: { cron: "0 3 * * *", time_zone: Europe/Berlin }
webhooks:
  listen: 127.0.0.1:${port}
  public_url: https://localhost:${port}
  certificate: cert.pem
  key: key.pem
  events: [customers.created, customers.updated, orders.created, orders.updated]
dashboard: { listen: "127.0.0.1:0" }
`

const json = (value: unknown) => JSON.stringify(value)

const southScopes = [
  "customers:read",
  "items:read",
  "orders:read",
  "vendors:read",
  "reference:read",
  "setup:read",
  "setup:write"
]

/** Creates everything except `serve`. `postgresUrl` is that of the server's superuser. */
const openOperator = async (postgresUrl: string): Promise<Operator> => {
  const ends: Array<() => Promise<unknown>> = []
  const close = async () => {
    for (const end of ends.toReversed()) await end()
  }
  try {
    return { ...(await open(postgresUrl, ends)), close }
  } catch (error) {
    await close()
    throw error
  }
}

const open = async (postgresUrl: string, ends: Array<() => Promise<unknown>>): Promise<Omit<Operator, "close">> => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-operator-"))
  ends.push(async () => rmSync(folder, { recursive: true, force: true }))
  const administrator = new pg.Client({ connectionString: postgresUrl })
  await administrator.connect()
  const name = `operator_${process.pid}_${Math.floor(performance.now() * 1000)}`
  await administrator.query(`create database ${name}`)
  ends.push(async () => {
    await administrator.query(`drop database if exists ${name} with (force)`)
    await administrator.end()
  })
  const url = new URL(postgresUrl)
  url.pathname = `/${name}`
  const databaseUrl = url.href
  const client = new pg.Client({ connectionString: databaseUrl })
  client.on("error", () => {})
  await client.connect()
  ends.push(() => client.end())
  const query: Operator["query"] = async <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
    (await client.query<Row>(text, [...values])).rows

  const reference = await startReference(["--data", "demo"])
  ends.push(() => reference.stop())
  await reference.control("PUT", "/limits", { requestsPerMinute: 1_000_000, allowPrivateReceivers: true })
  const north = await reference.token(1)
  const south = await reference.token(2, southScopes)
  const port = await freePort()
  const { cert, key } = certificate(["localhost"])
  mkdirSync(join(folder, "config"))
  writeFileSync(join(folder, "config", "tributary.yaml"), configuration(port))
  writeFileSync(join(folder, "cert.pem"), cert)
  writeFileSync(join(folder, "key.pem"), key)
  await reference.control("POST", "/trust", { caPem: cert })

  const env = {
    DATABASE_URL: databaseUrl,
    SERVICE_API_URL: reference.baseUrl,
    NORTH: north,
    SOUTH: south,
    SOUTH_SECRET: southSecret
  }
  const command = (args: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) =>
    startCommand(args, { cwd: folder, env: { ...env, ...more } })
  const run: Operator["run"] = (args) => command(args).done

  const served: Array<ServeProcess> = []
  ends.push(async () => {
    for (const one of served) await one.kill()
  })
  const serve: Operator["serve"] = async ({ dashboard, listen, env: more = {} } = {}) => {
    const started = command(
      [
        "serve",
        "--json",
        ...(dashboard === undefined ? [] : ["--dashboard", dashboard]),
        ...(listen === undefined ? [] : ["--listen", listen])
      ],
      more
    )
    const { child, done } = started
    let errorOutput = ""
    child.stderr?.on("data", (chunk: Buffer) => (errorOutput += chunk.toString()))
    const one = {
      pid: child.pid!,
      stderr: () => errorOutput,
      stop: async () => {
        child.kill("SIGTERM")
        return (await done).code
      },
      kill: async () => {
        child.kill("SIGKILL")
        await done
      }
    }
    const line = await firstLine(started)
    const ready = JSON.parse(line) as {
      readonly listening: string
      readonly dashboard?: string
    }
    if (ready.dashboard === undefined) throw new Error(`serve shows no page: ${line}`)
    const url = ready.dashboard
    const whole = {
      ...one,
      url,
      link: async () => {
        if (more["TRIBUTARY_DASHBOARD_PASSWORD"] !== undefined) return url
        const { stdout } = await command(["serve", "link", "--json", "--dashboard", new URL(url).host], more).done
        return (JSON.parse(stdout) as { readonly link: string }).link
      },
      hooks: ready.listening,
      ca: cert
    }
    served.push(whole)
    return whole
  }

  let customers = 0
  const customer: Operator["customer"] = async (name) => {
    const key = `OP${(customers += 1)}`
    const response = await fetch(`${reference.baseUrl}/customers`, {
      method: "POST",
      headers: { Authorization: `Bearer ${north}`, "Content-Type": "application/json", "Idempotency-Key": key },
      body: json({ name, customercode: key })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`POST /customers: ${response.status} ${text}`)
    return (JSON.parse(text) as { readonly id: number }).id
  }
  return { reference, databaseUrl, folder, query, run, serve, customer }
}

// -------------------------------------------------------------------------------------------- the past and the present

/**
 * The state before `serve` starts: everything was synced once, with a failure and with a record that could not be
 * landed.
 */
const past = async ({ reference, run }: Operator): Promise<void> => {
  await reference.control("POST", "/records", { company: 1, resource: "customers", records: [oddCustomer] })
  await reference.control("POST", "/faults", { rules: [broken] })
  const { code, stderr } = await run(["sync"])
  if (code === null || code === 1 || code === 2) throw new Error(`sync ended with ${code}: ${stderr}`)
}

/** Creates the subscription of `north`, before a process looks for it: otherwise the next look finds a gap, and reads. */
const subscribe = async ({ run }: Operator): Promise<void> => {
  const { code, stderr } = await run(["webhooks", "ensure", "--company", "north"])
  if (code !== 0) throw new Error(`webhooks ensure: ${stderr}`)
}

/**
 * The state while `serve` runs. Events arrive, one of them as a dead letter. A push is rejected. A resource is paused.
 * `south` has no subscription, which is a gap.
 */
const present = async (
  { reference, run, query, customer, folder }: Operator,
  { hooks, ca }: ServeProcess
): Promise<void> => {
  for (const name of ["Harbour & Sons", "Lighthouse <b>Ltd</b>"]) await customer(name)
  await reference.control("POST", "/cycle")
  const t = Math.floor(Date.now() / 1000)
  const body = json({
    id: deadEvent,
    type: `${barred}.updated`,
    createdate: new Date().toISOString(),
    companyid: 2,
    data: { id: 1, lastchangedate: new Date().toISOString() }
  })
  await post(`${hooks}/hooks/south`, ca, body, {
    "content-type": "application/json",
    "svc-signature": signatureOf(southSecret, t, body),
    "svc-event-id": deadEvent,
    "svc-event-type": `${barred}.updated`,
    "svc-delivery-attempt": "1"
  })
  writeFileSync(
    join(folder, "new.csv"),
    "externalid,customercode,name,creditlimit,invoiceterm\nT-1,TEST01,One,1.50,\nT-2,TEST02,Two,2,Net 3O\n"
  )
  const pushed = await run(["push", "customers", "--from", "new.csv", "--company", "north"])
  if (pushed.code !== 4) throw new Error(`push: ${pushed.code} ${pushed.stderr}`)
  // Otherwise the event of the created record arrives at any time of the next five minutes.
  await reference.control("POST", "/cycle")
  // This row belongs to no push: serve finds it.
  await query("insert into tributary.outbox (company, resource, record) values ('north', 'customers', $1)", [
    json({ externalid: insertedExternalId, customercode: "TEST03", name: "Three", invoiceterm: "Net 3O" })
  ])
  await query(
    `update tributary.tasks set paused_at = tributary.now(), paused_by = 'an operator'
      where company = 'north' and resource = 'payments'`
  )
  await until(
    "all events have arrived",
    () =>
      query<{ waiting: number; dead: number; gaps: number; refused: number; running: number }>(
        `select (select count(*) from tributary.inbox where state = 'pending')::int as waiting,
                (select count(*) from tributary.inbox where state = 'dead_letter')::int as dead,
                (select count(*) from tributary.delivery_gaps where closed_at is null and company = 'south')::int as gaps,
                (select count(*) from tributary.outbox where state = 'rejected' and externalid in ('${pushedExternalId}', '${insertedExternalId}'))::int as refused,
                (select count(*) from tributary.tasks where finished_at is null and schedule <> 'off' and next_run_at <= tributary.now())::int as running`
      ),
    ([row]) => row?.waiting === 0 && row.dead === 1 && row.gaps > 0 && row.refused === 2 && row.running === 0,
    60
  )
}

const post = (url: string, ca: string, body: string, headers: Readonly<Record<string, string>>): Promise<void> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", headers, ca, servername: "localhost" }, (response) => {
      response.resume()
      if (response.statusCode === 204) resolve()
      else reject(new Error(`a delivery was answered ${response.statusCode}`))
    })
    sent.once("error", reject)
    sent.end(body)
  })

/** An operator with past and present state, and a running `serve`. */
export const openOperatorWithServe = async (
  postgresUrl: string
): Promise<{ readonly operator: Operator; readonly served: ServeProcess }> => {
  const operator = await openOperator(postgresUrl)
  try {
    await past(operator)
    await subscribe(operator)
    const served = await operator.serve()
    await present(operator, served)
    return { operator, served }
  } catch (error) {
    await operator.close()
    throw error
  }
}
