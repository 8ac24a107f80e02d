/** Event-proven freshness: what a check proves, and what ends the proof. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { eventNames } from "../../../connectors/service-v2/catalogue/events.ts"
import { settled, warehouse } from "./healing.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

const both = ["customers", "items"]
const every = deliveryReader.eventsOf(both)
const delaySeconds = 6 * 60

/** A company whose subscription delivers these events, after its first check. */
const proving = Effect.fnUntraced(function* (events: ReadonlyArray<string> = every) {
  const world = yield* settled({ resources: both, events })
  const { sql, name, companyId } = world
  yield* sql`insert into tributary.companies (company, company_id) values (${name}, ${companyId})`
  /** The proven resources, with the age of each proof in seconds. */
  const proofs = Effect.map(
    sql<{ resource: string; age: number }>`
      select resource, extract(epoch from tributary.now() - proven_at)::float8 as age from tributary.event_proofs
       where company = ${name} order by resource`,
    (rows) => rows.map(({ resource, age }) => [resource, Math.floor(age)] as const)
  )
  const proven = Effect.map(proofs, (rows) => rows.map(([resource]) => resource))
  /** Processes every pending event, as a worker does. */
  const processed = Effect.gen(function* () {
    for (const resource of both) yield* world.sync(resource)
    yield* sql`update tributary.inbox set state = 'done' where company = ${name}`
  })
  return { ...world, proofs, proven, processed }
})

suite("the proof by events", warehouse, (test, it) => {
  test("holds for the time of the check less the longest delay of a delivery", function* () {
    const { checkOften, advance, customer, cycles, processed, proofs, sql, name } = yield* proving()
    assert.deepStrictEqual(yield* proofs, [], "no check was made by a process that checks all the time")
    yield* checkOften
    assertEach(yield* proofs, ([resource]) => resource, both)
    for (const [, age] of yield* proofs) assert.approximately(age, delaySeconds, 10)
    yield* advance(240)
    for (const [, age] of yield* proofs) assert.approximately(age, delaySeconds + 240, 10)
    customer("NEWER")
    yield* cycles(1)
    yield* processed
    yield* checkOften
    for (const [, age] of yield* proofs) assert.approximately(age, delaySeconds, 10)
    // The last run is later until its start is older than the proof.
    yield* sql`update tributary.runs set started_at = started_at - interval '1 hour'`
    const shown = yield* sql`
          select resource, fresh_at = proven_at as "isProven" from tributary.freshness where company = ${name} order by 1`
    assert.deepStrictEqual(
      shown,
      both.map((resource) => ({ resource, isProven: true }))
    )
  })

  test("needs every event that announces a change of the resource", function* () {
    const { checkOften, name, proven, sql } = yield* proving(every.filter((event) => event !== "items.cancelled"))
    yield* checkOften
    assert.deepStrictEqual(yield* proven, ["customers"])
    // A failed task ends the proof.
    yield* sql`insert into tributary.tasks (company, resource, kind, status) values (${name}, 'customers', 'sync', 'failed')`
    assert.deepStrictEqual(yield* proven, [])
  })

  it.effect("needs the events of all verbs, for every resource of the catalogue", () =>
    Effect.sync(() => {
      assert.sameMembers([...deliveryReader.eventsOf(null), "webhooks.test"], [...eventNames(serviceV2)])
    })
  )

  test("is withdrawn by a pause, and while the subscription does not deliver every wanted event", function* () {
    const { checkOften, proven, call, id, sql, name } = yield* proving()
    yield* checkOften
    assert.deepStrictEqual(yield* proven, both)
    call("PATCH", `/webhooks/${id}`, { events: every.filter((event) => !event.startsWith("items.")) })
    yield* checkOften
    assert.deepStrictEqual(yield* proven, [])
    call("PATCH", `/webhooks/${id}`, { events: every })
    yield* checkOften
    // Gaps end the proof until runs have closed them; the check after that proves again.
    yield* checkOften
    assert.deepStrictEqual(yield* proven, both)
    call("PATCH", `/webhooks/${id}`, { paused: true })
    yield* checkOften
    assert.deepStrictEqual(yield* proven, [])
    const withdrawn = yield* sql`
          select resources, withdrawn_at is not null as "isWithdrawn" from tributary.event_checks where company = ${name}`
    assert.deepStrictEqual(withdrawn, [{ resources: [], isWithdrawn: true }])
  })

  test("does not pass an event that is not processed", function* () {
    const { checkOften, proofs, advance, customer, cycles, processed, sql, name } = yield* proving()
    yield* checkOften
    customer("PENDING")
    yield* cycles(1)
    // The server's clock is not that of the warehouse.
    yield* sql`update tributary.inbox set occurred_at = received_at - interval '1 minute' where company = ${name}`
    yield* advance(400)
    yield* checkOften
    const ages = new Map(yield* proofs)
    assert.approximately(ages.get("items")!, delaySeconds, 10)
    assert.approximately(ages.get("customers")!, delaySeconds + 400, 10)
    yield* sql`update tributary.inbox set state = 'dead_letter' where company = ${name}`
    assert.approximately(new Map(yield* proofs).get("customers")!, delaySeconds + 400, 10)
    yield* processed
    assert.approximately(new Map(yield* proofs).get("customers")!, delaySeconds, 10)
  })

  test("is not renewed while a failed delivery may have delayed others, and expires", function* () {
    const { checkOften, proofs, proven, advance, customer, cycles, processed, receives, server } = yield* proving()
    yield* checkOften
    server.reply(() => 503)
    customer("LATE")
    yield* cycles(1)
    yield* advance(60)
    yield* checkOften
    assert.approximately((yield* proofs)[0]![1], delaySeconds + 60, 10)
    receives()
    yield* cycles(1)
    yield* processed
    yield* checkOften
    // The delivery was the second attempt.
    assert.approximately((yield* proofs)[0]![1], delaySeconds + 60, 10)
    yield* advance(delaySeconds)
    yield* checkOften
    assert.approximately((yield* proofs)[0]![1], delaySeconds, 10)
    yield* advance(16 * 60)
    assert.deepStrictEqual(yield* proven, [], "no check was made for three intervals")
  })
})
