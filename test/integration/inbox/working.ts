/**
 * A company with its own source, warehouse and inbox, on the reference server and Postgres, for tests of the inbox
 * worker.
 */
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { isEvent } from "../../../src/connector/Delivery.ts"
import { syncResource } from "../../../src/sync/SyncResource.ts"
import { childrenOf, type Table, tableOf } from "../../../src/warehouse/Table.ts"
import { layerSource, makeCompany } from "../../support/source.ts"
import { flowing } from "../../support/until.ts"
import { processDue } from "../tasks/working.ts"

const paths = [
  "salesmen",
  "orderdeposits",
  "assetcategories",
  "vendors",
  "vendororderfroms",
  "customers",
  "items",
  "carriers",
  "taxclasses"
]
const tables = new Map<string, Table>(paths.map((path) => [path, tableOf(serviceV2.resources.get(path)!)]))

export const stand = layerSource([...tables.values()])

export interface EventRow {
  readonly event_id: string
  readonly state: string
  readonly attempts: number
  readonly reason: string | null
  readonly run_id: bigint | null
  readonly wait_ms: number
}

/** A new company, with helpers for its tests. */
export const makeStand = Effect.fnUntraced(function* (synced: ReadonlyArray<string>) {
  const own = new Map([...tables].filter(([path]) => synced.includes(path)))
  const one = yield* makeCompany(own)
  const { id, name, sql, company } = one
  const sync = (path: string) =>
    flowing(
      syncResource(
        {
          companyId: BigInt(id),
          connector: company.connector,
          table: tables.get(path)!,
          children: childrenOf(own, path)
        },
        { batchRecordsMax: 2_500 }
      )
    )
  /** Stores records at the source, and syncs them. */
  const putSynced = (path: string, records: Parameters<typeof one.put>[1]) =>
    Effect.tap(one.put(path, records), sync(path))
  let events = 0
  /** Inserts an event into the inbox as the receiver would. */
  const accept = Effect.fnUntraced(function* (
    type: string,
    data: object,
    more: { readonly companyId?: number; readonly ageSeconds?: number } = {}
  ) {
    const eventId = `evt_${id}_${(events += 1)}`
    const body = new TextEncoder().encode(
      JSON.stringify({
        id: eventId,
        type,
        createdate: "2026-01-01T00:00:00Z",
        companyid: more.companyId ?? id,
        data
      })
    )
    const event = deliveryReader.read(body)
    if (!isEvent(event)) return yield* Effect.die(new Error(event.detail))
    const ageSeconds = more.ageSeconds ?? 0
    yield* sql`
      insert into tributary.inbox (company, event_id, event_type, resource, record_id, record_modified_at, sent_at, received_at, next_attempt_at, body)
      values (${name}, ${eventId}, ${type}, ${event.resource}, ${event.recordId}, ${event.stamp}, tributary.now(),
              tributary.now() - ${ageSeconds}::int * interval '1 second',
              tributary.now() - ${ageSeconds}::int * interval '1 second', ${body})`
    return eventId
  })
  const inbox = sql<EventRow>`
    select event_id, state, attempts, coalesce(resolution, last_error) as reason, run_id, (extract(epoch from next_attempt_at - tributary.now()) * 1000)::float8 as wait_ms
      from tributary.inbox where company = ${name} order by id`
  /** Requests of this company for a resource since the last call, without `/me`. */
  let readCount = 0
  const requests = Effect.map(one.reads, (all) => {
    const fresh = all.slice(readCount)
    readCount = all.length
    return fresh.filter((path) => path !== "/me")
  })
  const rows = (path: string) =>
    sql.unsafe<{ id: bigint; name: string; origin: string; deleted: boolean }>(
      `select id, ${path === "orderdeposits" ? "checkid" : path === "vendororderfroms" ? "city" : "name"} as name, _origin as origin, _deleted_at is not null as deleted
         from erp.${path} where _company_id = $1 order by id`,
      [BigInt(id)]
    )
  const counts = Effect.map(inbox, (events) => {
    const count = (state: string) => events.filter((event) => event.state === state).length
    return { done: count("done"), dead: count("dead_letter"), ignored: count("skipped"), pending: count("pending") }
  })
  /** Processes the due events, and counts those that were resolved or postponed. */
  const drain = Effect.gen(function* () {
    const before = yield* counts
    yield* processDue(company)
    const { dead, done, ignored, pending } = yield* counts
    return {
      done: done - before.done,
      dead: dead - before.dead,
      ignored: ignored - before.ignored,
      postponed: pending
    }
  })
  const makeDue = sql`update tributary.inbox set next_attempt_at = tributary.now() where company = ${name} and state = 'pending'`
  const handle = (...event: Parameters<typeof accept>) => Effect.andThen(accept(...event), drain)
  return { ...one, sync, putSynced, accept, handle, inbox, requests, rows, drain, makeDue }
})

export const states = (events: ReadonlyArray<EventRow>) => events.map(({ state }) => state)
export const one = (number: number, text: string) => ({ id: number, name: text })
export const placed = (number: number, text: string) => ({ id: number, city: text })
/** Records from a number to another. */
export const many = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => one(from + at, `n${from + at}`))
