/**
 * An operator whose last two days look like those of a real installation: three companies with every resource, load by
 * day, an hour in which a source failed, a pause, a delivery gap that closed, a restart, pushes and events.
 *
 * The reference server, `serve` and the commands do what `operator.ts` does, and more of it. What they did is then moved
 * into the past (`historyRows.ts`). Runs of the time between are rows that SQL inserts, with their changes
 * (`historyChanges.ts`); `src/tasks/WriteActivity.ts`
 * makes the data of the charts.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { areas } from "../../connectors/service-v2/catalogue/areas.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import { writeActivity } from "../../src/tasks/WriteActivity.ts"
import { until } from "./browser.ts"
import { writeChanges } from "./historyChanges.ts"
import {
  firstSyncStatements,
  hourly,
  lateInvoiceStatements,
  movePast,
  rowCountStatement,
  runStatements,
  sampleStatement,
  surroundingStatements
} from "./historyRows.ts"
import { openOperator, past, present, type Operator, type OperatorSetup, type ServeProcess } from "./operator.ts"

const everything: OperatorSetup = {
  configuration: (port) => `companies:
  - { name: north, token_env: NORTH }
  - { name: south, token_env: SOUTH, webhook_secrets_env: [SOUTH_SECRET] }
  - { name: west, token_env: WEST }
budget: { requests_per_minute: 3000 }
requests: { attempts_max: 2, timeout_seconds: 10 }
freshness:
  default_minutes: 180
  resources: { zones: 60, ${hourly.map((one) => `${one}: 60`).join(", ")} }
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
  southScopes: areas.filter(({ name }) => name !== "payroll").flatMap(({ name }) => [`${name}:read`, `${name}:write`])
}

/** Records of `north` that `west` has too. */
const shared = ["customers", "items", "orders", "orderlines", "shipments", "invoices", "invoicelines", "payments"]

/** Numbers of records of `west` begin here, so that a number or code belongs to one company. */
const westIds = 500_000
const references = ["id", "customerid", "itemid", "orderid", "orderlineid", "shipmentid", "invoiceid"]
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

/** An invoice with an open amount. */
interface OpenInvoice {
  readonly id: string
  readonly orderid: string
  readonly customerid: string
  readonly open: string
}

/** One part of the past: what happens at the source and by pushes, and how many hours ago. */
interface Step {
  readonly hours: number
  readonly payments: number
  readonly act: (customer: number) => Promise<unknown>
}

/** Does each step, waits until it is in the warehouse, and moves it into the past. */
const addSteps = async ({ reference, source, query, run, folder }: Operator): Promise<void> => {
  const { id } = await creditCustomer({ query })
  const customer = Number(id)
  const limit = (creditlimit: string) => source("PATCH", `/customers/${customer}`, { creditlimit })
  const push = async (args: ReadonlyArray<string>, file: string, content: string, expected: number) => {
    writeFileSync(join(folder, file), content)
    const { code, stderr } = await run(["push", "customers", "--from", file, "--company", "north", ...args])
    if (code !== expected) throw new Error(`push ${file}: ${code} ${stderr}`)
  }
  const steps: ReadonlyArray<Step> = [
    { hours: 34, payments: 4, act: () => limit("10000") },
    { hours: 28, payments: 6, act: () => limit("15000") },
    {
      hours: 25,
      payments: 3,
      act: () => push(["--update"], "limits.csv", `id,creditlimit\n${customer},12500.50\n`, 0)
    },
    {
      hours: 11,
      payments: 0,
      act: () =>
        push(
          [],
          "leads.csv",
          `externalid,customercode,name,creditlimit,invoiceterm\n${Array.from({ length: 24 }, (_, at) => `L-${at},LEAD${at},Lead ${at},${at * 250}.00,${at % 9 === 4 ? "Net 3O" : ""}`).join("\n")}\n`,
          4
        )
    },
    {
      hours: 6,
      payments: 5,
      act: async () => {
        const [state] = (await reference.lines("/state?company=1&resource=customers"))
          .map((line) => JSON.parse(line) as { readonly id: number })
          .filter(({ id }) => id === customer)
        await reference.control("POST", "/records", {
          company: 1,
          resource: "customers",
          records: [{ ...state, creditlimit: "20000.0000" }]
        })
        const { code, stderr } = await run(["sync", "customers", "--company", "north"])
        if (code !== 0 && code !== 4) throw new Error(`sync: ${code} ${stderr}`)
      }
    },
    { hours: 2, payments: 4, act: () => limit("18000") }
  ]
  const open = await query<OpenInvoice>(
    `select id::text as id, orderid::text as orderid, customerid::text as customerid, (invoicetotal - coalesce(invoicepaid, 0))::text as open
       from erp.invoices where _company_id = 1 and voucherid is not null and not cancel and invoicetotal > coalesce(invoicepaid, 0) + 20
      order by id desc limit 40`
  )
  for (const { hours, payments, act } of steps) {
    const [{ since } = { since: "" }] = await query<{ since: string }>("select tributary.now()::text as since")
    for (const [at, { id }] of open.splice(0, payments).entries()) {
      await source("POST", "/payments", {
        invoiceid: Number(id),
        amount: `${10 + at}.50`,
        method: 2,
        reference: `CHK ${4200 + at}`
      })
    }
    await act(customer)
    await reference.control("POST", "/cycle")
    await until(
      "the events have arrived and are processed",
      () =>
        query<{ waiting: number; arrived: number; running: number }>(
          `select count(*) filter (where state = 'pending')::int as waiting, count(*) filter (where received_at >= $1 and event_type = 'payments.created')::int as arrived,
                  (select count(*) from tributary.runs where status = 'running')::int as running
             from tributary.inbox`,
          [since]
        ),
      ([row]) => row?.waiting === 0 && row.running === 0 && row.arrived >= payments,
      30
    )
    await movePast(query, since, hours)
  }
}

const isIdle = (operator: Operator) =>
  until(
    "every due task has run",
    () =>
      operator.query<{ all: number; due: number }>(
        `select count(*)::int as all, count(*) filter (where process_id is not null or (next_run_at <= tributary.now() and paused_at is null))::int as due
           from tributary.tasks where schedule <> 'off'`
      ),
    ([row]) => row !== undefined && row.all > 200 && row.due === 0,
    90
  )

/** Writes the data of the charts anew. */
const writeCharts = async ({ query, databaseUrl, budgets }: Operator): Promise<void> => {
  await query("truncate tributary.activity, tributary.activity_watermarks")
  await Effect.runPromise(
    Effect.provide(
      writeActivity(() => budgets),
      Layer.provideMerge(sqlLayer, Database.layerUrl(Redacted.make(databaseUrl)))
    )
  )
  await query(rowCountStatement)
}

/** An operator with two days of history, and a running `serve`. */
export const openOperatorWithHistory = async (
  postgresUrl: string
): Promise<{ readonly operator: Operator; readonly served: ServeProcess }> => {
  const operator = await openOperator(postgresUrl, everything)
  const { reference, query, run } = operator
  try {
    await Promise.all(
      shared.map(async (resource) => {
        const records = (await reference.lines(`/state?company=1&resource=${resource}`)).map(ofWest)
        await reference.control("POST", "/records", { company: 3, resource, records })
      })
    )
    await past(operator)
    for (const statement of [...firstSyncStatements, ...runStatements]) await query(statement)
    const served = await operator.serve()
    const ensured = await run(["webhooks", "ensure", "--company", "north"])
    if (ensured.code !== 0) throw new Error(`webhooks ensure: ${ensured.stderr}`)
    await isIdle(operator)
    await addSteps(operator)
    await present(operator, served)
    for (const statement of lateInvoiceStatements) await query(statement)
    await writeChanges(operator)
    for (const statement of surroundingStatements) await query(statement)
    await query(sampleStatement, [JSON.stringify(operator.budgets)])
    await writeCharts(operator)
    await query("analyze")
    return { operator, served }
  } catch (error) {
    await operator.close()
    throw error
  }
}
