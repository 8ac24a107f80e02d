/** Rounds of an endpoint: order of each record, retries, dead letters, barriers and batches, with a real receiver. */
import { assert } from "@effect/vitest"
import { Duration, Effect, Fiber, Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import type { Definition } from "../../../src/delivery/Endpoint.ts"
import * as EndpointFeed from "../../../src/delivery/EndpointFeed.ts"
import * as EndpointSecrets from "../../../src/delivery/EndpointSecrets.ts"
import * as EndpointStore from "../../../src/delivery/EndpointStore.ts"
import * as Round from "../../../src/delivery/Round.ts"
import * as SenderStore from "../../../src/delivery/SenderStore.ts"
import * as Transport from "../../../src/delivery/Transport.ts"
import { dataOf, definitionOf, makeCompany, makeReceiver, type Received } from "../../support/feeding.ts"
import { clockIs, execute, layerWarehouse, stopClock } from "../../support/postgres.ts"
import { flowing, untilTrue } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"
import { assertCount, assertEach } from "../../support/assertions.ts"

const key = Redacted.make("0123456789abcdef0123456789abcdef")
const keys: EndpointSecrets.Keys = { key, file: new Map() }

let number = 0n
/** Companies of their own for each test. */
const company = () => makeCompany((number += 1n))

/** Adds an endpoint for a company, after the present end of the feed, and a process that sends to it. */
const makeEndpoint = Effect.fnUntraced(function* (
  url: string,
  companyId: bigint,
  more: Partial<Definition> = {},
  secrets = keys
) {
  const name = `e${companyId}-${(yield* EndpointStore.list).length}`
  const secret = yield* EndpointSecrets.generate
  const definition = { ...definitionOf(name, url), company: `c${companyId}`, ...more }
  yield* ChangeFeed.order
  const end = yield* ChangeFeed.end
  assert.isTrue(yield* EndpointStore.add(definition, yield* EndpointSecrets.seal(name, key, secret), end))
  const transport = yield* Transport.make(null, { ...Transport.limitsDefault, body: Duration.millis(50) })
  /** Another process acquires the lease. */
  const claim = Effect.gen(function* () {
    const [row] = yield* execute<{ fence: bigint }>(
      `update tributary.change_endpoints set fence = fence + 1 where name = '${name}' returning fence`
    )
    return row!.fence
  })
  let fence = yield* claim
  let state = Round.initial
  const round = Effect.gen(function* () {
    yield* ChangeFeed.order
    state = yield* Round.run(EndpointFeed.make(secrets), { name, fence, transport }, state)
    return state
  })
  /** Rounds until nothing is due. */
  const rounds = flowing(Effect.repeat(round, { until: ({ isBusy }) => !isBusy }))
  const restart = Effect.gen(function* () {
    fence = yield* claim
    state = Round.initial
  })
  const roundsAnew = Effect.andThen(restart, rounds)
  const status = Effect.map(EndpointStore.find(name), (found) => found!)
  return { name, secret, transport, round, rounds, roundsAnew, status, fence: () => fence }
})

/** Whether one of the signatures is that of this secret, by the library of the standard. */
const isSigned = (secret: Redacted.Redacted, { id, headers, body }: Received) => {
  const at = new Date(Number(headers["webhook-timestamp"]) * 1_000)
  const signatures = String(headers["webhook-signature"]).split(" ")
  return signatures.includes(new Webhook(Redacted.value(secret)).sign(id, at, body))
}

/** The warehouse's clock after this many seconds. */
const later = (seconds: number) =>
  execute(clockIs(seconds === 0 ? "clock_timestamp()" : `clock_timestamp() + interval ''${seconds} seconds''`))

/** A company, a receiver and an endpoint for both, while the warehouse's clock is right. */
const makeStand = Effect.fnUntraced(function* (more: Partial<Definition> = {}) {
  yield* later(0)
  const [source, receiver] = [company(), yield* makeReceiver]
  const endpoint = yield* makeEndpoint(receiver.url, source.companyId, more)
  /** Gives these records a name at the source, and delivers that. */
  const deliver = Effect.fnUntraced(function* (name: string, ...ids: ReadonlyArray<number>) {
    for (const id of ids) source.put(id, name)
    yield* source.sync()
    yield* endpoint.rounds
  })
  const roundsAt = (seconds: number) => Effect.andThen(later(seconds), endpoint.rounds)
  return { source, receiver, endpoint, deliver, roundsAt }
})

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1)

const sequence = (accepted: ReadonlyArray<{ readonly id: number | null; readonly version: number }>, id: number) =>
  accepted.filter((one) => one.id === id).map(({ version }) => version)

suite("a round of an endpoint", layerWarehouse, (test) => {
  test("delivers each change once, signed, with the exact records", function* () {
    const { source, receiver, endpoint } = yield* makeStand()
    source.put(1, "one", "1234567890123.10")
    source.put(2, "two")
    yield* source.sync()
    source.put(1, "uno", "1234567890123.10")
    yield* source.sync()
    yield* endpoint.rounds
    assert.deepStrictEqual(
      new Set(receiver.accepted.map(({ id, op }) => `${op} ${id}`)),
      new Set(["insert 1", "insert 2", "update 1"])
    )
    assert.deepStrictEqual(sequence(receiver.accepted, 1), [1, 2])
    const message = receiver.received.find(({ body }) => body.includes("uno"))!
    assert.isTrue(isSigned(endpoint.secret, message))
    const parsed = JSON.parse(message.body) as {
      readonly type: string
      readonly data: { readonly company: string; readonly op: string; readonly changed: unknown }
    }
    assert.strictEqual(parsed.type, "things.update")
    assert.deepInclude(parsed.data, { company: `c${source.companyId}`, op: "update" })
    assert.deepStrictEqual(parsed.data.changed, ["lastchangedate", "name"])
    assert.match(message.body, /"price": ?"?1234567890123\.10/)
    assert.strictEqual(message.id, dataOf(message)[0]!.change)
    yield* endpoint.rounds
    assert.lengthOf(receiver.received, 3)
    const { delivered, waiting, lag } = yield* endpoint.status
    assert.deepStrictEqual([delivered, waiting, lag], [3n, 0n, 0n])
  })

  test("delivers everything to a receiver that accepts and does not end its answers", function* () {
    const { receiver, endpoint, deliver } = yield* makeStand()
    receiver.answer = () => ({ status: 200, isOpen: true })
    for (const name of ["a", "b"]) {
      yield* deliver(name, ...upTo(40))
    }
    for (const id of upTo(40)) assert.deepStrictEqual(sequence(receiver.accepted, id), [1, 2])
    const { delivered, waiting, failingSince } = yield* endpoint.status
    assert.deepStrictEqual([delivered, waiting, failingSince], [80n, 0n, null])
    const log = yield* EndpointStore.readLog(endpoint.name, 100)
    assert.deepStrictEqual(new Set(log.map(({ result }) => result)), new Set(["delivered"]))
  })

  test("sends nothing of a record while an earlier change of it waits, and the others at once", function* () {
    const { receiver, endpoint, deliver, roundsAt } = yield* makeStand()
    let isBad = true
    receiver.answer = (one) => ({ status: isBad && dataOf(one)[0]!.id === 1 ? 500 : 200 })
    // No retry is due, however long this takes.
    yield* stopClock
    for (const name of ["a", "b", "c"]) {
      yield* deliver(name, ...upTo(3))
    }
    assert.deepStrictEqual(sequence(receiver.accepted, 2), [1, 2, 3])
    assert.deepStrictEqual(sequence(receiver.accepted, 1), [])
    assertCount(receiver.received, (one) => dataOf(one)[0]!.id === 1, 1)
    assert.strictEqual((yield* endpoint.status).waiting, 3n)
    isBad = false
    yield* endpoint.rounds
    assert.deepStrictEqual(sequence(receiver.accepted, 1), [])
    yield* roundsAt(10)
    assert.deepStrictEqual(sequence(receiver.accepted, 1), [1, 2, 3])
    assert.strictEqual((yield* endpoint.status).waiting, 0n)
  })

  test("repeats the same messages under the same ids after a crash before the results are stored", function* () {
    const { source, receiver, endpoint } = yield* makeStand()
    for (let id = 1; id <= 8; id += 1) source.put(id, "a")
    yield* source.sync()
    let isWaiting = true
    // The last answer is lost, so that the round does not end.
    receiver.answer = (one) => (isWaiting && dataOf(one)[0]!.id === 8 ? new Promise(() => {}) : { status: 200 })
    const round = yield* Effect.forkChild(endpoint.round)
    yield* untilTrue("eight messages", () => receiver.received.length === 8)
    yield* Fiber.interrupt(round)
    isWaiting = false
    yield* endpoint.roundsAnew
    const ids = receiver.received.map(({ id, body }) => `${id} ${body}`)
    assert.lengthOf(ids, 16)
    assert.strictEqual(new Set(ids).size, 8)
  })

  test("stores nothing for a process whose lease another one has", function* () {
    const { source, receiver, endpoint } = yield* makeStand()
    source.put(1, "a")
    yield* source.sync()
    const earlier = { name: endpoint.name, fence: endpoint.fence(), transport: endpoint.transport }
    const feed = EndpointFeed.make(keys)
    let release = () => {}
    receiver.answer = () =>
      new Promise((resolve) => {
        release = () => resolve({ status: 500 })
      })
    yield* ChangeFeed.order
    const late = yield* Effect.forkChild(Effect.exit(Round.run(feed, earlier, Round.initial)))
    yield* untilTrue("a message", () => receiver.received.length === 1)
    const stale = release
    receiver.answer = () => ({ status: 200 })
    yield* endpoint.roundsAnew
    stale()
    assert.strictEqual((yield* Fiber.join(late))._tag, "Failure")
    assert.instanceOf(yield* Effect.flip(Round.run(feed, earlier, Round.initial)), SenderStore.LeaseLost)
    const { waiting, delivered } = yield* endpoint.status
    assert.deepStrictEqual([waiting, delivered], [0n, 1n])
    assert.strictEqual(new Set(receiver.received.map(({ id }) => id)).size, 1)
  })

  test("filters by company, resource, operation and field", function* () {
    const other = company()
    const { source, receiver, endpoint } = yield* makeStand({
      resources: ["things"],
      operations: ["update", "delete"],
      fields: ["price"]
    })
    const none = yield* makeEndpoint(receiver.url, source.companyId, { resources: ["plains"] })
    for (const one of [source, other]) {
      one.put(1, "a", "1.10")
      one.put(2, "a", "1.10")
      yield* one.sync()
      one.put(1, "b", "1.10")
      one.put(2, "b", "2")
      yield* one.sync()
    }
    source.rows.delete(1)
    yield* source.sync(true)
    yield* endpoint.rounds
    yield* none.rounds
    assertEach(receiver.accepted, ({ id, op, company: name }) => [id, op, name], [
      [2, "update", `c${source.companyId}`],
      [1, "delete", `c${source.companyId}`]
    ])
  })

  test("sends batches, and isolates a record that is rejected", function* () {
    const { source, receiver, endpoint, deliver, roundsAt } = yield* makeStand({ batchMax: 50 })
    yield* deliver("a", ...upTo(120))
    assertEach(receiver.received, (one) => dataOf(one).length, [50, 50, 20])
    assert.include(receiver.received[0]!.body, `"type":"changes"`)
    receiver.answer = (one) => ({ status: dataOf(one).some(({ id }) => id === 7) ? 422 : 200 })
    for (let id = 1; id <= 120; id += 1) source.put(id, "b")
    yield* source.sync()
    for (let attempt = 0; attempt < 8; attempt += 1) {
      yield* roundsAt(attempt * 20_000)
    }
    assert.strictEqual((yield* endpoint.status).waiting, 1n)
    assert.strictEqual(new Set(receiver.accepted.map(({ change }) => change)).size, 239)
  })

  test("a truncate is sent after everything before it, and makes what waits obsolete", function* () {
    const { source, receiver, endpoint, roundsAt } = yield* makeStand()
    source.put(1, "a")
    source.put(2, "a")
    receiver.answer = (one) => ({ status: dataOf(one)[0]!.id === 1 ? 500 : 200 })
    yield* source.sync()
    yield* endpoint.rounds
    yield* execute(`truncate erp.things`)
    yield* source.sync()
    let isBad = true
    receiver.answer = () => ({ status: isBad ? 503 : 200 })
    yield* endpoint.rounds
    // The truncate has failed, and everything of the resource waits for it.
    assert.strictEqual((yield* endpoint.status).waiting, 3n)
    assertCount(yield* EndpointStore.readLog(endpoint.name, 10), ({ result }) => result === "obsolete", 1)
    isBad = false
    yield* roundsAt(30)
    assertEach(receiver.accepted, ({ op, id }) => `${op} ${id}`, ["insert 2", "truncate null", "insert 1", "insert 2"])
  })

  test("keeps a dead letter of an endpoint that works otherwise, and replays it in order", function* () {
    const { source, receiver, endpoint, deliver } = yield* makeStand()
    let isBad = true
    receiver.answer = (one) => ({ status: isBad && dataOf(one)[0]!.id === 1 ? 500 : 200 })
    source.put(1, "a")
    yield* source.sync()
    source.put(1, "b")
    yield* deliver("a", 2)
    for (let hours = 10; hours <= 160; hours += 10) {
      yield* later(hours * 3600)
      yield* deliver(`after ${hours}`, 2)
    }
    const { waiting, dead, state } = yield* endpoint.status
    assert.deepStrictEqual([waiting, dead, state], [0n, 2n, "active"])
    isBad = false
    assert.strictEqual(yield* EndpointStore.replay(endpoint.name, 0n), 2)
    yield* endpoint.rounds
    assert.deepStrictEqual(sequence(receiver.accepted, 1), [1, 2])
  })

  test("an endpoint that accepts nothing pauses as a whole, then ends, and loses nothing", function* () {
    const { receiver, endpoint, deliver } = yield* makeStand()
    receiver.answer = () => ({ status: 503 })
    yield* deliver("a", ...upTo(2000))
    assert.isBelow(receiver.received.length, 30)
    let attempts = 0
    for (let minutes = 1; (yield* endpoint.status).state === "active" && minutes < 100_000; minutes += 240) {
      yield* later(minutes * 60)
      const before = receiver.received.length
      yield* Effect.ignore(endpoint.rounds)
      attempts = Math.max(attempts, receiver.received.length - before)
    }
    assert.isAtMost(attempts, 1)
    const ended = yield* endpoint.status
    assert.strictEqual(ended.state, "dead")
    assert.match(ended.reason!, /72 hours.*HTTP 503/)
    assert.isBelow(Number(ended.waiting), 1_400)
    receiver.answer = () => ({ status: 200 })
    assert.isTrue(yield* EndpointStore.resume(endpoint.name, null))
    yield* endpoint.roundsAnew
    assert.strictEqual(new Set(receiver.accepted.map(({ change }) => change)).size, 2000)
  })

  test("honors Retry-After, and ends at 410", function* () {
    const { receiver, endpoint, deliver, roundsAt } = yield* makeStand()
    receiver.answer = () => ({ status: 429, headers: { "retry-after": "600" } })
    yield* deliver("a", 1)
    assert.lengthOf(receiver.received, 1)
    yield* roundsAt(590)
    assert.lengthOf(receiver.received, 1)
    receiver.answer = () => ({ status: 410 })
    yield* later(630)
    yield* Effect.ignore(endpoint.rounds)
    assert.lengthOf(receiver.received, 2)
    assert.strictEqual((yield* endpoint.status).state, "dead")
  })

  test("signs with both secrets for a day after a rotation", function* () {
    const { receiver, endpoint, deliver } = yield* makeStand()
    const next = yield* EndpointSecrets.generate
    yield* EndpointStore.rotate(endpoint.name, yield* EndpointSecrets.seal(endpoint.name, key, next))
    const verifies = (secret: Redacted.Redacted) => isSigned(secret, receiver.received.at(-1)!)
    yield* deliver("a", 1)
    assert.deepStrictEqual([verifies(endpoint.secret), verifies(next)], [true, true])
    yield* later(25 * 3600)
    yield* deliver("b", 1)
    assert.deepStrictEqual([verifies(endpoint.secret), verifies(next)], [false, true])
    const row = yield* EndpointStore.readSecrets(endpoint.name)
    const other = Redacted.make("another key of the installation, 32+")
    assert.deepStrictEqual(EndpointSecrets.secretsOf({ key: other, file: new Map() }, row!), [])
  })

  test("sends nothing while it is paused, and everything after it was resumed", function* () {
    const { source, receiver, endpoint } = yield* makeStand()
    assert.isTrue(yield* EndpointStore.pause(endpoint.name, "a test"))
    assert.isFalse(yield* EndpointStore.pause(endpoint.name, "a test"))
    source.put(1, "a")
    yield* source.sync()
    assert.instanceOf(yield* Effect.flip(endpoint.round), SenderStore.LeaseLost)
    assert.isTrue(yield* EndpointStore.resume(endpoint.name, null))
    yield* endpoint.roundsAnew
    assert.lengthOf(receiver.accepted, 1)
    assert.isFalse(yield* EndpointStore.resume(endpoint.name, null))
    assert.isTrue(yield* EndpointStore.resume(endpoint.name, ChangeFeed.beginning))
    yield* endpoint.roundsAnew
    assert.lengthOf(receiver.accepted, 2)
    assert.isTrue(yield* EndpointStore.remove(endpoint.name))
  })
})
