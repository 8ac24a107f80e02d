/**
 * An operator whose last two days look like those of a real installation: three companies with every resource, load by
 * day, an hour in which a source failed, a pause, a delivery gap that closed, a restart, pushes and events.
 *
 * The reference server, `serve` and the commands do what `operator.ts` does, and more of it, each at its time: the test
 * moves one clock, which all of them and the warehouse use. Runs of the time between are rows that SQL inserts
 * (`historyRows.ts`), with their changes in the warehouse and at the source (`historyChanges.ts`);
 * `src/tasks/WriteActivity.ts` makes the data of the charts. `historyChecks.ts` states what must agree.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { inject } from "vitest"
import { areas } from "../../connectors/service-v2/catalogue/areas.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import { lockStatement } from "../../src/reconcile/DeliveryGaps.ts"
import { writeActivity } from "../../src/tasks/WriteActivity.ts"
import { isHeldSql } from "../../src/warehouse/LaneLock.ts"
import { until } from "./browser.ts"
import { writeChanges } from "./historyChanges.ts"
import {
  endStatements,
  hourly,
  meanwhileStatements,
  pastHours,
  planStatements,
  rowCountStatement,
  sampleStatement,
  surroundingStatements,
  times
} from "./historyRows.ts"
import {
  failing,
  oddCustomer,
  openOperator,
  present,
  subscribe,
  type Operator,
  type OperatorSetup,
  type ServeProcess
} from "./operator.ts"
import { clockIs } from "./postgres.ts"

const everything: OperatorSetup = {
  configuration: (port) => `companies:
  - { name: north, token_env: NORTH }
  - { name: south, token_env: SOUTH, webhook_secrets_env: [SOUTH_SECRET] }
  - { name: west, token_env: WEST }
budget: { requests_per_minute: 3000 }
requests: { attempts_max: 2, timeout_seconds: 10 }
freshness:
  default_minutes: 180
  resources: { zones: 60, items: 1560, ${hourly.map((one) => `${one}: 60`).join(", ")} }
schedule:
  default: { every: 90m }
  resources:
    zones: "off"
    items: { cron: "0 3 * * *", time_zone: Europe/Berlin }
${hourly.map((one) => `    ${one}: { every: 15m }`).join("\n")}
webhooks:
  listen: 127.0.0.1:${port}
  public_url: https://localhost:${port}
  certificate: cert.pem
  key: key.pem
  events: [customers.created, customers.updated, orders.created, orders.updated, payments.created]
dashboard: { listen: "127.0.0.1:0" }
`,
  southScopes: areas.filter(({ name }) => name !== "payroll").flatMap(({ name }) => [`${name}:read`, `${name}:write`]),
  env: (folder) => {
    writeOffset(folder, pastHours)
    return {
      CLOCK_OFFSET_FILE: offsetFile(folder),
      NODE_OPTIONS: `--import ${new URL("movedClock.ts", import.meta.url).href}`
    }
  }
}

/** Records of `north` that `west` has too. */
const shared = [
  "customers",
  "items",
  "orders",
  "orderlines",
  "shipments",
  "vouchers",
  "invoices",
  "invoicelines",
  "payments"
]

/** Numbers of records of `west` begin here, so that a number or code belongs to one company. */
const westIds = 500_000
const references = ["id", "customerid", "itemid", "orderid", "orderlineid", "shipmentid", "voucherid", "invoiceid"]
const keys = ["customercode", "itemcode", "invoicenumber", "externalid"]

/** A record of `north` as one of `west`. */
const ofWest = (line: string): unknown =>
  Object.fromEntries(
    Object.entries(JSON.parse(line) as Record<string, unknown>).map(([field, value]) => [
      field,
      references.includes(field) && typeof value === "number"
        ? value + westIds
        : keys.includes(field) && typeof value === "string" && value !== ""
          ? `W${value}`
          : value
    ])
  )

/** The customer whose credit limit was changed by a person at the source, by a push, and without an event: one with invoices. */
export const creditCustomer = async ({
  query
}: Pick<Operator, "query">): Promise<{ readonly id: string; readonly customercode: string }> => {
  const [row] = await query<{ id: string; customercode: string }>(
    `select c.id::text as id, c.customercode from erp.customers c join erp.invoices i on i.customerid = c.id and i._company_id = c._company_id
      where c._company_id = 1 and not exists (select from erp.customers o where o._company_id <> 1 and o.customercode = c.customercode)
      group by c.id, c.customercode order by count(*) desc, c.id limit 1`
  )
  return row!
}

/** One part of the past: what happens at the source and by pushes, and how many hours ago. */
interface Step {
  readonly hours: number
  readonly payments?: number
  readonly act: () => Promise<unknown>
}

const offsetFile = (folder: string) => join(folder, "clock-offset")

/** As a whole, since processes read it at any time. */
const writeOffset = (folder: string, hours: number) => {
  writeFileSync(`${offsetFile(folder)}.new`, String(-Math.round(hours * 3_600_000)))
  renameSync(`${offsetFile(folder)}.new`, offsetFile(folder))
}

/**
 * What is under way: tasks, and runs of any lane, since children of changed parents are read without a task. A run releases
 * its lane before its row ends.
 */
const underWay = `(select count(*) from tributary.tasks where process_id is not null)
                + (select count(*) from tributary.checkpoints c where ${isHeldSql("c")})
                + (select count(*) from tributary.runs where status = 'running')`
/** Children of changed parents that are read seconds after the event. */
const waiting = "(select count(*) from tributary.refetch_requests)"

/** Begins a transaction in which none of this is left, and no run can begin. */
const beginIdle = ({ query }: Pick<Operator, "query">, left: string): Promise<unknown> =>
  until(
    "no run is under way",
    async () => {
      await query("begin")
      await query("lock table tributary.tasks, tributary.checkpoints in exclusive mode")
      const [row] = await query<{ open: number }>(`select (${left})::int as open`)
      if (row!.open > 0) await query("rollback")
      return row!.open
    },
    (open) => open === 0,
    30
  )

/**
 * Moves the one clock of the processes, the source and the warehouse, between two runs. What happened meanwhile is
 * inserted.
 */
const setClock = async (operator: Pick<Operator, "query" | "folder">, hours: number): Promise<void> => {
  const { query, folder } = operator
  await beginIdle(operator, underWay)
  await query(
    "update tributary.tasks set next_run_at = clock_timestamp() + interval '2 days' where next_run_at is not null"
  )
  await query(clockIs(`clock_timestamp() - interval ''${hours} hours''`))
  for (const statement of meanwhileStatements) await query(statement)
  writeOffset(folder, hours)
  await query("commit")
}

/** Waits until the events that were sent, and the runs that were requested, are processed. */
const isProcessed = ({ query }: Operator, since: string, payments: number) =>
  until(
    "the events and the requested runs are processed",
    () =>
      query<{ waiting: number; arrived: number; running: number; due: number }>(
        `select count(*) filter (where state = 'pending')::int as waiting, count(*) filter (where received_at >= $1 and event_type = 'payments.created')::int as arrived,
                (select count(*) from tributary.runs where status = 'running')::int as running,
                (select count(*) from tributary.tasks where requested_at is not null or process_id is not null)::int as due
           from tributary.inbox`,
        [since]
      ),
    ([row]) => row?.waiting === 0 && row.running === 0 && row.due === 0 && row.arrived >= payments,
    30
  )

/** What a step can do beside the calls of the operator. */
const actionsOf = ({ reference, query, run, folder }: Operator) => ({
  push: async (args: ReadonlyArray<string>, file: string, content: string, expected: number) => {
    writeFileSync(join(folder, file), content)
    const { code, stderr } = await run(["push", "customers", "--from", file, "--company", "north", ...args])
    if (code !== expected) throw new Error(`push ${file}: ${code} ${stderr}`)
  },
  /** Changes a customer of `north` without an event. */
  change: (id: number, values: object) =>
    reference.control("POST", "/records", { company: 1, resource: "customers", records: [{ id, ...values }] }),
  read: (company: string, resource: string, isFull = false) =>
    query(
      `update tributary.tasks set requested_at = tributary.now(), requested_by = 'an operator', full_requested = $3
        where company = $1 and resource = $2 and kind = 'sync'`,
      [company, resource, isFull]
    ),
  /** The next request of the resource, and its retry, fail. */
  fail: (resource: string, status: number) =>
    reference.control("POST", "/faults", {
      rules: [
        { kind: "status", status, path: `/${resource}`, times: 2, body: `<script>alert('no')</script> is broken` }
      ]
    })
})

/** What happened between the first sync and the present, in the order of its times. */
const stepsOf = (operator: Operator, creditId: number): ReadonlyArray<Step> => {
  const { reference, source, query, customer } = operator
  const { push, change, read, fail } = actionsOf(operator)
  const limit = (id: number, creditlimit: string) => source("PATCH", `/customers/${id}`, { creditlimit })
  /** The customer that is created, changed, deleted and created again. */
  const demonstration = { id: 0, creditlimit: "123456789012.3400" }
  const leads = Array.from(
    { length: 24 },
    (_, at) => `L-${at},LEAD${at},Lead ${at},${at * 250}.00,${at % 9 === 4 ? "Net 3O" : ""}\n`
  )
  return [
    { hours: 34, payments: 4, act: () => limit(creditId, "10000") },
    { hours: 30, act: async () => (demonstration.id = await customer("Harbour & Sons")) },
    { hours: 28, payments: 6, act: () => limit(creditId, "15000") },
    {
      hours: 26,
      act: async () => {
        await change(demonstration.id, { creditlimit: "1250.5000", name: "Harbour & Daughters" })
        await read("north", "customers")
      }
    },
    {
      hours: 25,
      payments: 3,
      act: () => push(["--update"], "limits.csv", `id,creditlimit\n${creditId},12500.50\n`, 0)
    },
    { hours: 21, act: () => limit(demonstration.id, "2500") },
    {
      hours: 12,
      act: async () => {
        const name = "Pays late. Call before the next shipment. ".repeat(12)
        await change(demonstration.id, { creditlimit: demonstration.creditlimit, name })
        await read("north", "customers")
      }
    },
    {
      hours: 11,
      act: () => push([], "leads.csv", `externalid,customercode,name,creditlimit,invoiceterm\n${leads.join("")}`, 4)
    },
    {
      hours: times.broken,
      act: async () => {
        await fail(failing, 500)
        await read("south", failing)
      }
    },
    {
      hours: 8,
      act: async () => {
        await reference.control("POST", "/remove", { company: 1, resource: "customers", id: demonstration.id })
        await read("north", "customers", true)
      }
    },
    {
      hours: 6,
      payments: 5,
      act: async () => {
        await change(creditId, { creditlimit: "20000.0000" })
        await read("north", "customers")
      }
    },
    {
      hours: times.brokenInvoices,
      act: async () => {
        await fail("invoices", 502)
        await read("north", "invoices")
      }
    },
    {
      hours: 3,
      act: async () => {
        const [last] = await query<{ customercode: string }>(
          `select customercode from erp.customers where _company_id = 1 and id = ${demonstration.id}`
        )
        await change(demonstration.id, { ...demonstration, ...last, name: "<b>Back</b> again", cancel: true })
        await read("north", "customers")
      }
    },
    { hours: 2, payments: 4, act: () => limit(creditId, "18000") },
    {
      hours: 1,
      // What the token of south may not read is tried again.
      act: () =>
        query(
          `update tributary.tasks t set requested_at = tributary.now(), requested_by = 'an operator' where company = 'south' and kind = 'sync'
              and not exists (select from tributary.checkpoints c where c.company_id = 2 and c.resource = t.resource and c.lane = 'live' and c.full_scan_at is not null)`
        )
    }
  ]
}

/** Does each step at its time, and waits until it is in the warehouse. */
const addSteps = async (operator: Operator): Promise<void> => {
  const { reference, source, query } = operator
  const { read } = actionsOf(operator)
  const { id } = await creditCustomer({ query })
  // Old ones: the newest are entered while the steps are done.
  const open = await query<{ id: string }>(
    `select id::text as id from erp.invoices where _company_id = 1 and voucherid is not null and not cancel and invoicetotal > coalesce(invoicepaid, 0) + 60
        and entrydate < (select percentile_disc(0.7) within group (order by entrydate) from erp.orders where _company_id = 1) order by id desc`
  )
  let paid = 0
  for (const { hours, payments = 0, act } of stepsOf(operator, Number(id))) {
    await setClock(operator, hours)
    const [{ since } = { since: "" }] = await query<{ since: string }>("select tributary.now()::text as since")
    for (let at = 0; at < payments; at += 1) {
      await source("POST", "/payments", {
        invoiceid: Number(open[(paid += 1) % open.length]!.id),
        amount: `${10 + at}.50`,
        method: 2,
        reference: `CHK ${4200 + at}`
      })
    }
    // What a payment changes beside itself.
    if (payments > 0) await read("north", "vouchers")
    if (payments > 0 && hours > times.brokenInvoices) await read("north", "invoices")
    await act()
    await reference.control("POST", "/cycle")
    await isProcessed(operator, since, payments)
  }
}

const isIdle = (operator: Operator) =>
  until(
    "every due task has run",
    () =>
      operator.query<{ all: number; due: number }>(
        `select count(*)::int as all, count(*) filter (where process_id is not null or requested_at is not null or (next_run_at <= tributary.now() and paused_at is null))::int as due
           from tributary.tasks where schedule <> 'off'`
      ),
    ([row]) => row !== undefined && row.all > 200 && row.due === 0,
    90
  )

/** The first sync of everything, with a record that could not be landed. */
const firstSync = async ({ reference, run }: Operator): Promise<void> => {
  await reference.control("POST", "/records", { company: 1, resource: "customers", records: [oddCustomer] })
  const { code, stderr } = await run(["sync"])
  if (code === null || code === 1 || code === 2) throw new Error(`sync ended with ${code}: ${stderr}`)
}

/**
 * Writes the data of the charts anew. Its locks, as those below, are in the order of `serve`, which writes the same rows:
 * otherwise the two can wait for each other.
 */
const writeCharts = async ({ query, databaseUrl, budgets }: Operator): Promise<void> => {
  await query("truncate tributary.activity_watermarks, tributary.activity")
  await Effect.runPromise(
    Effect.provide(
      writeActivity(() => budgets),
      Layer.provideMerge(sqlLayer, Database.layerUrl(Redacted.make(databaseUrl)))
    )
  )
  // Statistics of the empty table would make this take minutes.
  await query("analyze tributary.activity")
  await query(`begin; lock table tributary.activity_watermarks; ${rowCountStatement}; commit`)
}

/** Inserts what was beside the runs. */
const addSurroundings = async ({ query, budgets }: Operator): Promise<void> => {
  await query("begin")
  await query(lockStatement.text, ["north"])
  await query("lock table tributary.bucket_owners")
  for (const statement of surroundingStatements) await query(statement)
  await query("commit")
  await query(sampleStatement, [JSON.stringify(budgets)])
}

/** An operator with two days of history, and a running `serve`. */
export const openOperatorWithHistory = async (
  postgresUrl: string
): Promise<{ readonly operator: Operator; readonly served: ServeProcess }> => {
  const operator = await openOperator(postgresUrl, { ...everything, template: inject("migratedDatabase") })
  const { reference, query } = operator
  try {
    await query(clockIs(`clock_timestamp() - interval ''${pastHours} hours''`))
    await Promise.all(
      shared.map(async (resource) => {
        const records = (await reference.lines(`/state?company=1&resource=${resource}`)).map(ofWest)
        await reference.control("POST", "/records", { company: 3, resource, records })
      })
    )
    await firstSync(operator)
    for (const statement of planStatements) await query(statement)
    await subscribe(operator)

    const served = await operator.serve()
    await isIdle(operator)
    await addSteps(operator)
    await setClock(operator, 0)
    await present(operator, served)

    // A later run would not be that of its task.
    await beginIdle(operator, `${underWay} + ${waiting}`)
    for (const statement of endStatements) await query(statement)
    await query("commit")
    await writeChanges(operator)
    await addSurroundings(operator)
    await writeCharts(operator)
    await query("analyze")
    return { operator, served }
  } catch (error) {
    await operator.close()
    throw error
  }
}
