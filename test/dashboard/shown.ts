/**
 * A warehouse with every state that the pages show, at a fixed time.
 *
 * `north` was synced from a reference server in process. A company and a resource with a hostile name have problems of
 * every kind, in every text that comes from outside. Nothing of `new` was read yet.
 */
import { Effect, Redacted } from "effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import * as SigningSecrets from "../../src/subscriptions/SigningSecrets.ts"
import * as Subscriptions from "../../src/subscriptions/Subscriptions.ts"
import { saveCompany } from "../support/companies.ts"
import { syncResource } from "../../src/sync/SyncResource.ts"
import * as WriteActivity from "../../src/tasks/WriteActivity.ts"
import { type Table, tableOf } from "../../src/warehouse/Table.ts"
import * as TablePlan from "../../src/warehouse/TablePlan.ts"
import { seed } from "../support/pages.ts"
import { clockIs, pagesNow as now, sql } from "../support/postgres.ts"
import { atOnce, hostile, makeSource, unconnected } from "./asking.ts"

const before = (hours: number) => new Date(Date.parse(now) - hours * 3_600_000).toISOString()

export const tables = new Map<string, Table>(
  ["customers", "orders", "orderlines", "invoices", "payments"].map((path) => [
    path,
    tableOf(serviceV2.resources.get(path)!)
  ])
)
const fingerprint = "a".repeat(64)
const events = ["customers.created", "customers.updated", "orders.created"]
const url = "https://hooks.example.com/hooks/north"
/** Of the second company. By their position, some are late, failing, paused or in quarantine. */
const widgets = Array.from({ length: 18 }, (_, index) => `widgets${index + 3}`)

const run = (text: string) => sql.unsafe(text)
const setClock = (at: string) => run(clockIs(`timestamptz ''${at}''`))

/** Rows of the tables that no sync writes. `$company` is a foreign name, `$text` a foreign text. */
const statements: ReadonlyArray<string> = [
  `update tributary.runs set error = $text, remedy = $text, note = $text, error_kind = $text where company_id = 2 and status = 'failed'`,
  `update tributary.tasks set error = $text, remedy = $text where error is not null`,
  `update tributary.tasks set paused_by = $text where paused_at is not null`,
  `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, status, next_run_at)
   select 'north', r, 'sync', 'every 15 min', 3600000, 'done', tributary.now() + interval '5 minutes'
     from unnest('{customers,orders,orderlines,invoices,payments}'::text[]) r`,
  `update tributary.tasks set paused_at = tributary.now(), paused_by = 'an operator' where company = 'north' and resource = 'payments'`,
  `update tributary.tasks set status = 'skipped', error = 'GET /invoices: the token may not do this (403)', remedy = 'give the token the scope'
    where company = 'north' and resource = 'invoices'`,
  `insert into tributary.row_counts (company_id, resource, rows, deleted) select 1, r, 1234, 5 from unnest('{customers,orders}'::text[]) r`,
  `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at)
   values (1, 'orders', 'full', 'live', 'running', 1, tributary.now() - interval '3 minutes')`,
  `insert into tributary.subscriptions (company, subscription_id, url, events, state, checked_at, unhealthy_reason, last_error, remedy)
   values ($company, $company, $text, array[$text], 'disabled', tributary.now(), 'missing', $text, $text)`,
  `insert into tributary.inbox (company, event_id, event_type, resource, record_id, occurred_at, sent_at, received_at, body, state, last_error, attempts, resolved_at, run_id)
   select case when n % 3 = 0 then $company else 'north' end, case when n = 3 then $company else 'evt_' || n end, 'customers.updated', 'customers', '1', at, at, at, convert_to($text, 'UTF8'), state,
          case when state <> 'done' then $text end, n % 4, case when state <> 'pending' then at end, null
     from generate_series(1, 90) n, lateral (select tributary.now() - n * interval '17 minutes' as at,
          case when n % 30 in (3, 8) then 'dead_letter' when n % 30 = 5 then 'pending' when n % 30 = 7 then 'skipped' else 'done' end as state) x order by n desc`,
  `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
   select 1, 'customers', 'fetch', 'records', 'done', 1, tributary.now() - interval '3 hours', tributary.now() from generate_series(1, 2)`,
  `update tributary.inbox set run_id = (select case when state = 'done' then max(id) else min(id) end from tributary.runs where lane = 'records')
    where company = 'north' and state in ('done', 'dead_letter')`,
  `insert into tributary.delivery_gaps (company, subscription_id, resource, cause, detail, began_at, ended_at, events, last_error)
   values ('north', 's1', 'customers', 'event_lost', 'evt_lost is not in the inbox', tributary.now() - interval '2 hours', tributary.now() - interval '90 minutes', '{evt_lost}', null),
          ($company, $company, $company, 'subscription_inactive', $text, tributary.now() - interval '1 hour', null, '{}', $text)`,
  `insert into tributary.pushes (company, resource, operation, source, content_hash, record_count, duplicates, finished_at)
   values ('north', 'customers', 'create', 'new.csv', 'a', 130, 10, tributary.now()), ($company, $company, 'update', $company, 'b', 4, 0, null)`,
  `insert into tributary.push_requests (company, resource, operation, idempotency_key, body, record_count, state, status, reason, failed_attempts, created_at, closed_at)
   values ('north', 'customers', 'create', 'k1', '{}', 2, 'completed', 201, null, 0, tributary.now() - interval '2 hours', tributary.now()),
          ($company, $company, 'batch', 'k2', '[]', 50, 'open', null, $text, 2, tributary.now() - interval '5 minutes', null)`,
  `insert into tributary.outbox (company, resource, operation, externalid, record, push_id, line, request_id, request_index, state, outcome, code, field, reason, problems, created_at, resolved_at)
   select company, resource, 'create', 'T-' || n, jsonb_build_object('name', $text::text), case when n % 4 > 0 then push end, n, case when n = 1 then 1 end, case when n = 1 then 0 end, state,
          case when state = 'done' then 'created' end, case when state = 'rejected' then $text end, case when state = 'rejected' then $text end, case when state = 'rejected' then $text end,
          case when state = 'rejected' then jsonb_build_array(jsonb_build_object('field', $text::text, 'message', $text::text)) end, tributary.now() - n * interval '31 minutes', case when state in ('done', 'rejected') then tributary.now() end
     from generate_series(1, 40) n, lateral (select case when n % 2 = 0 then $company else 'north' end as company, case when n % 2 = 0 then $company else 'customers' end as resource, 1 + (n + 1) % 2 as push,
          (array['done', 'done', 'rejected', 'pending', 'in_flight'])[1 + (n - 1) % 5] as state) x order by n desc`,
  `insert into tributary.processes (process_id, companies, host, pid, started_at, heartbeat_at, stopped_at)
   values ('alive', array['north', $company], 'alpha.example', 41, tributary.now() - interval '3 hours', tributary.now() - interval '5 seconds', null),
          ('ended', '{north}', 'alpha.example', 40, tributary.now() - interval '20 hours', tributary.now() - interval '3 hours', tributary.now() - interval '3 hours'),
          ('lost', array[$company], $company, 42, tributary.now() - interval '9 hours', tributary.now() - interval '2 hours', null)`,
  `insert into tributary.bucket_owners (bucket, process_id) select b, 'alive' from generate_series(0, 255) b on conflict do nothing`,
  `update tributary.change_feed set last_position = 120`,
  `insert into tributary.change_endpoints (name, url, origin, state, reason, last_position, failing_since, delivered, attempts)
   values ('app', 'https://app.example.com/', 'command', 'active', null, 120, null, 3, 2),
          ('new', 'https://new.example.com/', 'command', 'active', null, 120, null, 0, 0),
          ('slow', 'https://slow.example.com/', 'file', 'active', null, 100, tributary.now() - interval '5 minutes', 0, 1),
          ($company, $company, 'command', 'dead', $text, 0, null, 0, 1)`,
  `insert into tributary.change_retries (endpoint, "position", company_number, resource, record_id, state, next_attempt_at) values ('slow', 98, 1, 'customers', 1, 'dead', tributary.now())`,
  `insert into tributary.change_attempts (endpoint, slot, number, message_id, first_position, changes, result, status, error, duration_ms)
   values ('app', 1, 1, 'chg_119_5', 119, 1, 'delivered', 200, null, 12), ($company, 1, 1, $company, 1, 1, 'failed', 503, $text, 1)`,
  `insert into tributary.invariants (name, severity, statement, comment, resources, query)
   values ('broken', 'warning', 'It works.', 'It works.', '{customers}', ''), ('priced', 'critical', $text, $text, '{customers}', ''), ('sound', 'warning', 'x', 'x', '{customers}', '')`,
  `insert into tributary.invariant_states (invariant, company_id, state, error, violations, open_violations, evaluated_at)
   values ('broken', 1, 'failed', $text, 0, 0, tributary.now()), ('priced', 1, 'violated', null, 1, 1, tributary.now()), ('priced', 2, 'violated', null, 2, 1, tributary.now()), ('sound', 1, 'holds', null, 0, 0, tributary.now())`,
  `insert into tributary.violations (invariant, company_id, resource, record_id, detail, opened_at, ended_at)
   values ('priced', 1, 'customers', 1, $text, tributary.now(), null), ('priced', 2, $company, 9, $text, tributary.now(), null), ('priced', 2, $company, 8, $text, null, null), ('priced', 1, 'customers', 2, $text, tributary.now(), tributary.now())`,
  `update tributary.quarantine set field = $text, reason = $text, source = $text where company_id = 2`,
  `insert into tributary.field_findings (company_id, resource, field, kind, runs, rows, first_run_id, last_run_id, found_at)
   values (1, 'customers', $company, 'volatile', 3, 40, 1, 1, tributary.now()), (1, 'customers', 'phone', 'absent', 1, 25, 1, 1, tributary.now())`,
  `insert into tributary.unknown_fields (company_id, resource, field, first_seen_at, last_seen_at, times, sample_types, run_id)
   values (1, 'customers', $company, tributary.now(), tributary.now(), 1234, '{text,integer}', 1)`,
  `insert into tributary.budgets (fingerprint, requests_per_minute, rule, last_429_at, rate_limited_count, retry_after_at, updated_at)
   values ('${fingerprint}', 400, '{"lowered":{"to":300,"at":4000000000000}}', tributary.now() - interval '2 minutes', 3, tributary.now() + interval '20 seconds', tributary.now())`,
  `insert into tributary.budget_usage (fingerprint, at, used, allowed, configured, rate_limited_count, is_paused)
   select '${fingerprint}', tributary.now() - make_interval(secs => 15 * n), 100 + n, case when n between 30 and 60 then 300 else 400 end, 400, case when n < 20 then 3 else 1 end, n between 15 and 19
     from generate_series(0, 300) n where n not between 100 and 140`,
  "analyze"
]

/** The source of `north`: a customer that changes, one that no warehouse can store, an order with its documents. */
const synced = Effect.gen(function* () {
  const source = makeSource({
    network: { send: async () => ({ status: 503, body: Buffer.from(hostile), durationms: 3, failure: null }) }
  })
  const token = source.token()
  const company = yield* source.company("north", token, {
    tables: Effect.succeed(tables),
    receivesAt: url,
    events,
    fingerprint,
    requestsPerMinute: 400
  })
  const put = (resource: string, ...records: ReadonlyArray<object>) =>
    Effect.sync(() => void source.control("POST", "/records", { company: 1, resource, records }))
  const read = (resource: string, full = false) =>
    syncResource(
      { companyId: 1n, connector: company.connector, table: tables.get(resource)! },
      { batchRecordsMax: 2_500, mode: { full } }
    )
  yield* setClock(before(30))
  yield* put(
    "customers",
    { id: 1, customercode: "ACME", name: "Acme Ltd.", creditlimit: "10000", externalid: "crm-1" },
    { id: 2, name: "a NUL \u0000 inside" }
  )
  yield* put("orders", { id: 100, customerid: 1, ordertotal: "12345678901234.5000" })
  yield* put("orderlines", ...[1, 2, 3, 4, 5, 6, 7].map((line) => ({ id: 1000 + line, orderid: 100 })))
  yield* put("invoices", { id: 400, invoicenumber: "INV-7", orderid: 100, customerid: 1 })
  yield* put("payments", { id: 500, invoiceid: 400, customerid: 1 })
  for (const resource of tables.keys()) yield* read(resource)
  yield* setClock(before(5))
  source.control("POST", "/faults", { rules: [{ path: "/customers", kind: "status", status: 503, times: 1 }] })
  yield* put("customers", {
    id: 1,
    name: `${hostile} ${"Call before the next shipment. ".repeat(20)}`,
    creditlimit: "1250.5000"
  })
  yield* read("customers", true)
  yield* setClock(before(2))
  source.control("POST", "/remove", { company: 1, resource: "customers", id: 1 })
  yield* read("customers", true)
  yield* setClock(before(0.1))
  yield* put("customers", {
    id: 1,
    customercode: "ACME",
    name: "Acme again",
    creditlimit: "20000",
    externalid: "crm-1"
  })
  for (const resource of tables.keys()) yield* read(resource)
  yield* setClock(now)
  yield* Subscriptions.ensure(company, { url, events }).pipe(
    Effect.provide(SigningSecrets.layer([{ name: "north", token: Redacted.make(token), configured: [] }]))
  )
  source.caller(token)("POST", "/customers", { name: "Ann", customercode: "ANN" })
  const cycle = source.served.control({ method: "POST", url: "/cycle", headers: {}, body: null })
  yield* Effect.promise(async () => void (await cycle.pending))
  return company
})

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** Fills the warehouse, and returns its companies. The second one has this name, and this text in place of foreign ones. */
export const fill = Effect.fnUntraced(function* (name: string = hostile, text: string = hostile) {
  yield* TablePlan.apply([...tables.values()])
  yield* saveCompany("north", 1n)
  const north = yield* atOnce(synced)
  yield* seed([[name, 2]], ["things", name, ...widgets], 400)
  for (const statement of statements) {
    yield* run(statement.replaceAll("$company", quoted(name)).replaceAll("$text", quoted(text)))
  }
  yield* WriteActivity.writeActivity(() => [{ company: "north", fingerprint }])
  return [north, unconnected(name, { events: [text] }), unconnected("new", { fingerprint: "c".repeat(64) })] as const
})

/** A view of the dashboard: its address, in which `$` is the value of a query. */
export interface View {
  readonly name: string
  readonly path: string
  readonly id?: string
  readonly status?: number
}

const runOf = (name: string, where: string): View => ({
  name,
  path: "/runs/$",
  id: `select max(id)::text as id from tributary.runs where ${where}`
})
const openEntry = "select min(id)::text as id from tributary.quarantine where resolved_at is null"
const subscription = "select subscription_id as id from tributary.subscriptions where company = 'north'"
const rowOf = (where: string) => `select min(id)::text as id from tributary.outbox where ${where}`
const acting = encodeURIComponent(hostile)
const confirm = (action: string, more = ""): View => ({
  name: `confirm-${action}`,
  path: `/confirm/${action}?company=north&resource=customers${more}`
})

/** Every page of the dashboard, and every state of one. A test checks that no route is missing. */
export const views: ReadonlyArray<View> = [
  { name: "overview", path: "/" },
  { name: "company", path: "/companies/north" },
  { name: "company-hostile", path: `/companies/${acting}` },
  { name: "company-new", path: "/companies/new" },
  { name: "resources", path: "/resources" },
  { name: "resources-late", path: "/resources?state=late" },
  { name: "resources-company", path: "/resources?company=north&order=resource" },
  { name: "resource", path: "/companies/north/customers" },
  { name: "resource-hostile", path: `/companies/${acting}/${acting}` },
  { name: "resource-failing", path: `/companies/${acting}/widgets11` },
  { name: "resource-late", path: `/companies/${acting}/widgets7` },
  { name: "resource-paused", path: "/companies/north/payments" },
  { name: "resource-blocked", path: "/companies/north/invoices" },
  { name: "runs", path: "/runs" },
  { name: "runs-of-hour", path: "/runs?company=north&hour=2026-11-28T09:00Z" },
  runOf("run", "company_id = 1 and resource = 'customers' and lane = 'live' and status <> 'running'"),
  runOf("run-with-retry", "company_id = 1 and retries > 0"),
  runOf("run-running", "status = 'running'"),
  runOf("run-failed", "company_id = 2 and status = 'failed'"),
  runOf("run-dead-letter", "id in (select run_id from tributary.inbox where state = 'dead_letter')"),
  { name: "budget", path: "/budget" },
  { name: "budget-company", path: "/budget?company=north" },
  { name: "webhooks", path: "/webhooks" },
  { name: "deliveries", path: "/webhooks/north/$/deliveries", id: subscription },
  { name: "events", path: "/webhooks/events" },
  { name: "events-yesterday", path: "/webhooks/events?time=yesterday" },
  { name: "event", path: "/webhooks/event?company=north&event=evt_1" },
  { name: "event-dead", path: `/webhooks/event?company=${acting}&event=${acting}` },
  { name: "event-lost", path: "/webhooks/event?company=north&event=evt_lost" },
  { name: "outbox", path: "/outbox" },
  { name: "outbox-rows", path: "/outbox/rows" },
  { name: "outbox-rows-rejected", path: "/outbox/rows?state=rejected" },
  { name: "outbox-row", path: "/outbox/rows/$", id: rowOf("state = 'done' and push_id is not null") },
  { name: "outbox-row-rejected", path: "/outbox/rows/$", id: rowOf("state = 'rejected'") },
  { name: "outbox-row-waiting", path: "/outbox/rows/$", id: rowOf("state = 'pending'") },
  { name: "outbox-push", path: "/outbox/pushes/$", id: "select max(id)::text as id from tributary.pushes" },
  { name: "outbox-rejected", path: "/outbox/rejected?push=$", id: "select max(id)::text as id from tributary.pushes" },
  { name: "endpoints", path: "/endpoints" },
  { name: "endpoint", path: `/endpoints?endpoint=${acting}` },
  { name: "quarantine", path: "/quarantine" },
  { name: "quarantine-entry", path: "/quarantine/$", id: openEntry },
  { name: "invariants", path: "/invariants" },
  { name: "invariant", path: "/invariants?invariant=priced" },
  { name: "records", path: "/records" },
  { name: "records-found", path: "/records?q=acme&match=beginning" },
  { name: "record", path: "/records?company=north&resource=customers&id=1" },
  { name: "record-order", path: "/records?company=north&resource=orders&id=100" },
  { name: "record-quarantined", path: "/records?company=north&resource=customers&id=2" },
  { name: "processes", path: "/processes" },
  { name: "process", path: "/processes/alive" },
  { name: "process-lost", path: "/processes/lost" },
  ...["sync", "full", "backfill", "pause", "resume", "pause-company", "resume-company", "push-retry"].map((action) =>
    confirm(action)
  ),
  confirm("replay", "&event=evt_8"),
  ...["pause", "resume", "test"].map((action): View => ({
    ...confirm(`subscription-${action}`, "&subscription=$"),
    id: subscription
  })),
  { name: "confirm-retry", path: "/confirm/retry?id=$", id: openEntry },
  { name: "nothing", path: "/companies/north/nothing", status: 404 },
  { name: "not-valid", path: "/runs?status=x", status: 400 }
]

/** The address of a view, from the rows of the warehouse. */
export const addressOf = ({ path, id }: View) =>
  id === undefined
    ? Effect.succeed(path)
    : Effect.map(sql.unsafe<{ id: string }>(id), ([row]) => path.replace("$", encodeURIComponent(row!.id)))
