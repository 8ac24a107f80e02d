/** The pages of the dashboard for tests that open every one, with texts that each must contain. */
import { barred, deadEvent, failing, late, oddCustomer, pushedExternalId, type Operator } from "./operator.ts"

const one = async ({ query }: Operator, text: string): Promise<string> => {
  const [row] = await query<{ id: string }>(text)
  if (row === undefined) throw new Error(`no row for ${text}`)
  return row.id
}

/** A page as a test opens it. */
export interface PageCase {
  readonly name: string
  readonly path: (operator: Operator) => Promise<string>
  /** Texts that the page must contain. */
  readonly says: ReadonlyArray<string | RegExp>
  readonly status?: number
}

const at = (path: string) => () => Promise.resolve(path)
const subscription = "select subscription_id as id from tributary.subscriptions where company = 'north'"
const lastRun =
  "select max(id)::text as id from tributary.runs where company_id = 1 and resource = 'customers' and lane = 'live' and quiet_runs = 0"

/** The customer of `historyChanges.ts` that was created, changed, deleted and created again. */
const changedCustomer = (operator: Operator) =>
  one(
    operator,
    "select id::text from erp_history.customers where _company_id = 1 and record ->> 'name' like 'Harbour%' order by id limit 1"
  )

/** Leaves an open request as a push that was killed does, once; then answers the path. */
const afterKilledPush =
  (path: string) =>
  async ({ query }: Operator): Promise<string> => {
    await query(
      `with push as (
         insert into tributary.pushes (company, resource, operation, source, content_hash, record_count)
         select 'south', 'customers', 'create', 'killed.csv', 'killed', 1
          where not exists (select from tributary.pushes where source = 'killed.csv') returning id),
       request as (
         insert into tributary.push_requests (company, resource, operation, idempotency_key, body, record_count)
         select 'south', 'customers', 'create', 'killed', '{}', 1 from push returning id)
       insert into tributary.outbox (company, resource, operation, record, state, push_id, line, request_id, request_index)
       select 'south', 'customers', 'create', '{}', 'in_flight', push.id, 1, request.id, 0 from push, request`
    )
    return path
  }

/** Every page of the dashboard, of the operator of `history.ts`. `Pages.browser.test.ts` checks that none is missing. */
export const pageCases: ReadonlyArray<PageCase> = [
  {
    name: "overview",
    path: at("/"),
    says: [
      "north",
      "south",
      "invoices",
      failing,
      barred,
      /Not all is well/,
      /began .* ago/,
      /2\s+failing/,
      /1\s+paused/,
      /1\s+in quarantine/,
      /5\s+refused rows/,
      /What needs a person/,
      /Next:\s+report the request id/,
      /Health by company/
    ]
  },
  { name: "company", path: at("/companies/south"), says: [failing, barred, /Health by area/, /Pause all/] },
  {
    name: "resources",
    path: at("/resources"),
    says: ["north", "south", failing, /The service failed \(HTTP 500\)/i, late, "Not scheduled.", /of 3 h/, /Sync now/]
  },
  { name: "resources-late", path: at("/resources?state=late"), says: [late, /Late\s+\d/] },
  { name: "resources-company", path: at("/resources?company=north&order=resource"), says: ["customers", /Pause all/] },
  {
    name: "resource",
    path: at("/companies/north/customers"),
    says: [
      "customers",
      "north",
      /every 15 min/,
      /cursor/i,
      /sync now/i,
      /backfill/i,
      /pause/i,
      /columns, \d+ of them unused/
    ]
  },
  {
    name: "resource-failing",
    path: at(`/companies/south/${failing}`),
    says: [failing, /The service failed \(HTTP 500\)/, /report the request id/]
  },
  { name: "resource-paused", path: at("/companies/north/payments"), says: [/paused/i, /an operator/, /resume/i] },
  { name: "runs", path: at("/runs"), says: ["customers", failing, /failed/i] },
  {
    name: "run",
    path: async (operator) => `/runs/${await one(operator, lastRun)}`,
    says: ["customers", /requests/i, /retries/i, /rows|records/i]
  },
  {
    name: "run-full",
    path: async (operator) =>
      `/runs/${await one(operator, "select min(id)::text as id from tributary.runs where company_id = 1 and resource = 'customers' and phases is not null")}`,
    says: ["Requests in flight", "The phases as figures", /200/, "Landing"]
  },
  {
    name: "run-failed",
    path: async (operator) =>
      `/runs/${await one(operator, `select max(id)::text as id from tributary.runs where company_id = 2 and resource = '${failing}'`)}`,
    says: [failing, /The service failed \(HTTP 500\)/, /report the request id/]
  },
  {
    name: "run-dead-letter",
    path: async (operator) =>
      `/runs/${await one(operator, `select run_id::text as id from tributary.inbox where event_id = '${deadEvent}'`)}`,
    says: [/1 dead letter/, "employees.updated", /What to do/]
  },
  { name: "budget", path: at("/budget"), says: ["north", "south", /3,?000/] },
  {
    name: "webhooks",
    path: at("/webhooks"),
    says: [/localhost:\d+\/hooks\/north/, "customers.created", deadEvent, /orders\.updated|missing/]
  },
  {
    name: "deliveries",
    path: async (operator) =>
      `/webhooks/north/${await one(operator, "select subscription_id as id from tributary.subscriptions where company = 'north'")}/deliveries`,
    says: ["customers.created", "204"]
  },
  {
    name: "event",
    path: async (operator) =>
      `/webhooks/event?company=north&event=${await one(operator, "select event_id as id from tributary.inbox where company = 'north' and state = 'done' order by id desc limit 1")}`,
    says: ["signature verified", "tributary.inbox", /version \d|nothing new/, /History of the record/]
  },
  {
    name: "event-dead",
    path: at(`/webhooks/event?company=south&event=${deadEvent}`),
    says: ["dead letter", /Last error/, "Replay"]
  },
  {
    name: "events",
    path: at("/webhooks/events"),
    says: ["Events received", "customers.created", /dead letter/, /Yesterday/, "Replay"]
  },
  {
    name: "outbox-rows-refused",
    path: at("/outbox/rows?state=rejected"),
    says: [/unknown_value/, /refused/, "Retry"]
  },
  { name: "outbox-rows", path: at("/outbox/rows"), says: [pushedExternalId, /refused/, "created"] },
  {
    name: "outbox-row",
    path: async (operator) =>
      `/outbox/rows/${await one(operator, "select min(id)::text as id from tributary.outbox where state = 'done' and push_id in (select id from tributary.pushes where source like '%new.csv')")}`,
    says: ["by a push", "new.csv", /HTTP 20\d/, /version \d/]
  },
  {
    name: "outbox-row-refused",
    path: async (operator) =>
      `/outbox/rows/${await one(operator, "select min(id)::text as id from tributary.outbox where state = 'rejected' and push_id is null")}`,
    says: [/unknown_value/, /invoiceterm/, "What to do:", "Retry"]
  },
  { name: "outbox", path: at("/outbox"), says: ["new.csv", "customers", /1 refused/] },
  {
    name: "outbox-refused",
    path: async (operator) =>
      `/outbox/refused?push=${await one(operator, "select max(id)::text as id from tributary.pushes")}`,
    says: [/unknown_value/, /invoiceterm/, pushedExternalId, /tributary push retry \d+ --refused/]
  },
  {
    name: "outbox-push",
    path: async (operator) =>
      `/outbox/pushes/${await one(operator, "select max(id)::text as id from tributary.pushes")}`,
    says: ["new.csv", "customers", /1 record was refused/, "Retry", /finished, not all/]
  },
  { name: "change-feed", path: at("/endpoints"), says: ["Change feed", "There is none."] },
  {
    name: "processes",
    path: at("/processes"),
    says: ["Processes", "1 process running", /pid \d+/, "owns 3 companies", "work for all", "Runs in progress"]
  },
  {
    name: "process",
    path: async (operator) =>
      `/processes/${await one(operator, "select process_id as id from tributary.processes where stopped_at is null order by heartbeat_at desc limit 1")}`,
    says: ["running", /Owns\s+3 companies/, "north", "alerts, activity"]
  },
  { name: "quarantine", path: at("/quarantine"), says: ["customers", String(oddCustomer.id), /NUL/] },
  {
    name: "quarantine-entry",
    path: async (operator) =>
      `/quarantine/${await one(operator, "select id from tributary.quarantine where resolved_at is null")}`,
    says: [String(oddCustomer.id), /NUL/, /retry/i, /Odd \\u0000 <script>/]
  },
  { name: "invariants", path: at("/invariants"), says: [/invariant/i] },
  { name: "records", path: at("/records"), says: [/company/i, /external id/i] },
  { name: "records-found", path: at("/records?q=10"), says: [/\d+ records/, "customers 10", "exists"] },
  {
    name: "record",
    path: async (operator) =>
      `/records?company=north&resource=customers&id=${await one(operator, "select id from erp.customers where name like 'Lighthouse%'")}`,
    says: ["Lighthouse <b>Ltd</b>", /By\s+(webhook|scan)/]
  },
  {
    name: "record-changed",
    path: async (operator) => `/records?company=north&resource=customers&id=${await changedCustomer(operator)}`,
    says: ["created again", "deleted", "123456789012.3400", "<b>Back</b> again", "cancelled"]
  },
  {
    name: "record-order",
    path: async (operator) =>
      `/records?company=north&resource=orders&id=${await one(operator, "select orderid::text as id from erp.orderlines where _company_id = 1 and orderid in (select i.orderid from erp.invoices i join erp.payments p on p.invoiceid = i.id) group by 1 order by count(*) desc limit 1")}`,
    says: ["It refers to", "Records that refer to it", "orderlines", "invoices", "payments", /created/]
  },
  {
    name: "confirm-sync",
    path: at("/confirm/sync?company=north&resource=customers"),
    says: ["customers", "north", /cancel/i]
  },
  {
    name: "confirm-backfill",
    path: at("/confirm/backfill?company=north&resource=customers"),
    says: ["customers", /cancel/i]
  },
  { name: "confirm-full", path: at("/confirm/full?company=north&resource=customers"), says: ["customers", /cancel/i] },
  {
    name: "confirm-pause",
    path: at("/confirm/pause?company=north&resource=customers"),
    says: ["customers", /cancel/i]
  },
  {
    name: "confirm-resume",
    path: at("/confirm/resume?company=north&resource=payments"),
    says: ["payments", /cancel/i]
  },
  { name: "confirm-pause-company", path: at("/confirm/pause-company?company=north"), says: ["north", /cancel/i] },
  { name: "confirm-resume-company", path: at("/confirm/resume-company?company=north"), says: ["north", /cancel/i] },
  { name: "confirm-replay", path: at(`/confirm/replay?company=south&event=${deadEvent}`), says: ["south", /cancel/i] },
  ...["pause", "resume", "test"].map((action): PageCase => ({
    name: `confirm-subscription-${action}`,
    path: async (operator) =>
      `/confirm/subscription-${action}?company=north&subscription=${await one(operator, subscription)}`,
    says: ["north", /cancel/i]
  })),
  { name: "confirm-push-retry", path: at("/confirm/push-retry?company=north&resource=customers"), says: [/cancel/i] },
  {
    name: "confirm-retry",
    path: async (operator) =>
      `/confirm/retry?id=${await one(operator, "select id from tributary.quarantine where resolved_at is null")}`,
    says: [/cancel/i]
  },
  { name: "nothing", path: at("/companies/north/nothing"), says: [/no |not /i], status: 404 },
  {
    name: "overview-unknown-outcome",
    path: afterKilledPush("/"),
    says: [/unresolved\s+1 push request of south/, /Next:\s+continue the push: tributary push retry \d+/]
  },
  {
    name: "outbox-unknown-outcome",
    path: afterKilledPush("/outbox"),
    says: [/1 request without a known\s+outcome/, /continue the push: tributary push retry \d+/]
  }
]
