/**
 * A company with its server for tests of reconcile: the reference server in process with scripted receivers, the real
 * client, the real inbox, a real Postgres.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { isEvent } from "../../../src/connector/Delivery.ts"
import type { Subscriptions } from "../../../src/connector/Subscriptions.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { syncResource } from "../../../src/sync/SyncResource.ts"
import { compare } from "../../../src/verify/Compare.ts"
import type { Company } from "../../../src/sync/Company.ts"
import type * as DeliveryGaps from "../../../src/reconcile/DeliveryGaps.ts"
import * as Reconcile from "../../../src/reconcile/Reconcile.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import { clientOf, networkOf } from "../../client/ServerHttp.ts"
import { eventServer, receiver, type Reply, subscribe } from "../../reference-server/eventsSupport.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { store as storeEvent } from "../../support/storing.ts"
import { flowing } from "../../support/until.ts"

const everyTable = new Map(
  ["customers", "items", "orders", "orderlines"].map((path) => [path, tableOf(serviceV2.resources.get(path)!)] as const)
)
export const customers = ["customers.created", "customers.updated"]
export const events = [...customers, "items.created", "items.updated"]

/** Makes the warehouse's clock movable, like the server's. */
const movable = Effect.gen(function* () {
  yield* sql`create table public.ahead (by interval not null)`
  yield* sql`insert into public.ahead values ('0')`
  yield* sql.unsafe(`create or replace function tributary.now() returns timestamptz language sql volatile as
    'select clock_timestamp() + by from public.ahead'`)
})

export const warehouse = Layer.effectDiscard(Effect.andThen(TablePlan.apply([...everyTable.values()]), movable)).pipe(
  Layer.provideMerge(layerWarehouse)
)

let companies = 0

interface OpenGap {
  readonly resource: string
  readonly cause: DeliveryGaps.Cause
  readonly lasts: boolean
  readonly reason: string | null
}

export interface WorldOptions {
  readonly events?: ReadonlyArray<string>
  /** The synced resources; by default customers and items. */
  readonly resources?: ReadonlyArray<string>
  /** The longest delay after which the source shows a record; by default none. */
  readonly overlap?: Duration.Duration
}

/** A new company with its server. Its resources are loaded, and its subscription covers them. */
export const world = Effect.fnUntraced(function* (options: WorldOptions = {}) {
  const tables = new Map(
    (options.resources ?? ["customers", "items"]).map((path) => [path, tableOf(serviceV2.resources.get(path)!)])
  )
  const inbox = yield* InboxWriter.make()
  const server = eventServer()
  const companyNumber = (companies += 1)
  const companyId = BigInt(companyNumber)
  const name = `company${companyNumber}`
  const token = server.token({ company: companyNumber })
  const call = server.caller(token)
  const requests: Array<string> = []
  const { http } = networkOf(server.served, (path, method) =>
    Effect.sync(() => {
      requests.push(`${method} ${path}`)
      return null
    })
  )
  const connector = yield* clientOf(http, token, { retry: { attemptsMax: 1 } })

  const store = (body: Uint8Array): Promise<Reply> => {
    const event = deliveryReader.read(body)
    if (!isEvent(event)) return Promise.resolve(400)
    const { id: eventId, type: eventType, resource, recordId, stamp, occurredAt } = event
    return Effect.runPromise(
      storeEvent(inbox, {
        company: name,
        eventId,
        eventType,
        resource,
        recordId,
        stamp,
        occurredAt,
        sentAt: 0,
        body
      }).pipe(
        Effect.as(204),
        Effect.orElseSucceed(() => 503)
      )
    )
  }
  const receives = () => server.reply(({ body }) => store(body))
  receives()

  const company: Company = {
    name,
    connector,
    tables: Effect.succeed(tables),
    engine: { ...engineDefault, overlap: options.overlap ?? Duration.zero },
    batchRecordsMax: 1000,
    events: options.resources === undefined ? events : (options.events ?? events)
  }
  const sync = (resource: string) =>
    syncResource({ companyId, connector, table: tables.get(resource)! }, { batchRecordsMax: 1000 })
  /** A check with an interval of five minutes. */
  const checkOften = Effect.flatMap(
    Reconcile.reconcile(company, { url: receiver, checkInterval: Duration.minutes(5) }),
    (result) => (result._tag === "Checked" ? Effect.succeed(result) : Effect.die(result._tag))
  )
  const check = Effect.flatMap(Reconcile.reconcile(company, { url: receiver }), (result) =>
    result._tag === "Checked" ? Effect.succeed(result) : Effect.die(result._tag)
  )
  const gaps = sql<OpenGap>`
    select resource, cause, ended_at is null as lasts, last_error as reason from tributary.delivery_gaps
     where company = ${name} and closed_at is null order by resource, cause`
  /** What happened, of every gap. */
  const detail = Effect.map(
    sql<{ detail: string }>`
      select string_agg(distinct detail, '; ') as detail from tributary.delivery_gaps where company = ${name}`,
    ([all]) => all!.detail
  )
  const equal = (resource: string) =>
    Effect.gen(function* () {
      const { text } = server.control("GET", `/state?company=${companyNumber}&resource=${resource}`)
      const lines = text.split("\n").filter((line) => line !== "")
      const { differences } = yield* compare(tables.get(resource)!, companyId, lines)
      return differences.length === 0
    })
  const customer = (code: string) => {
    const response = call("POST", "/customers", { customercode: code, name: code })
    assert.strictEqual(response.status, 201, response.text)
  }
  const item = (sku: string) => {
    const response = call("POST", "/items", { sku, description: sku, price: "1", glaccount: "Sales" })
    assert.strictEqual(response.status, 201, response.text)
  }
  /** Advances both clocks. */
  const advance = (seconds: number) =>
    Effect.andThen(
      Effect.promise(() => server.advance(seconds)),
      sql`update public.ahead set by = by + make_interval(secs => ${seconds})`
    )
  const cycles = (count: number) =>
    flowing(
      Effect.promise(async () => {
        for (let done = 0; done < count; done += 1) await server.cycle()
      })
    )
  /** The requests of an effect. */
  const requestsOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const before = requests.length
      return Effect.map(effect, (result) => ({ result, requests: requests.slice(before) }))
    })

  customer("FIRST")
  item("FIRST")
  const { id } = subscribe(call, options.events ?? events)
  for (const resource of tables.keys()) yield* sync(resource)
  return {
    sql,
    server,
    name,
    call,
    company,
    companyId,
    connector,
    id: String(id),
    requests,
    sync,
    check,
    checkOften,
    token,
    gaps,
    detail,
    equal,
    customer,
    item,
    advance,
    cycles,
    requestsOf,
    receives,
    store
  }
})

/** A company after the first check of its subscription, with every gap closed. */
export const settled = Effect.fnUntraced(function* (options: WorldOptions = {}) {
  const newWorld = yield* world(options)
  yield* newWorld.check
  assert.deepStrictEqual(yield* newWorld.gaps, [])
  return newWorld
})

/** A gap of a resource, as a check finds it. */
export const gapOf = (resource: string, more: Partial<DeliveryGaps.NewGap> = {}): DeliveryGaps.NewGap => ({
  subscriptionId: null,
  resource,
  cause: "event_lost",
  detail: "",
  beganAt: null,
  lasts: false,
  events: [],
  ...more
})

/** `customers event_lost` for each gap. */
export const causes = (gaps: ReadonlyArray<{ readonly resource: string; readonly cause: string }>) =>
  gaps.map(({ resource, cause }) => `${resource} ${cause}`)
/** The same. All gaps last. */
export const lastingCauses = (gaps: ReadonlyArray<OpenGap>) => {
  assert.isTrue(gaps.every(({ lasts }) => lasts))
  return causes(gaps)
}

/** A connector with changed subscription operations. */
export const withSubscriptions = (
  company: Company,
  change: (inner: Subscriptions) => Partial<Subscriptions>
): Company => ({
  ...company,
  connector: {
    ...company.connector,
    subscriptions: { ...company.connector.subscriptions!, ...change(company.connector.subscriptions!) }
  }
})

/** A company whose delivery log is endless. `pages` returns the number of requested pages. */
export const endlessLog = (company: Company) => {
  let pages = 0
  const endless = withSubscriptions(company, () => ({
    deliveries: () =>
      Effect.sync(() => ({
        attempts: [
          {
            eventId: `evt_${pages}`,
            eventType: "other.created",
            resource: "other",
            attempts: 1,
            delivered: true,
            abandoned: false,
            responseCode: 204,
            disables: false,
            responseBody: "",
            durationMs: 1,
            at: "2999-01-01T00:00:00Z"
          }
        ],
        next: String((pages += 1))
      }))
  }))
  return { endless, pages: () => pages }
}
