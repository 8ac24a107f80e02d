/** The sender: leases between processes, and endpoints that do not delay each other. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import * as EndpointSecrets from "../../../src/delivery/EndpointSecrets.ts"
import * as EndpointStore from "../../../src/delivery/EndpointStore.ts"
import * as Sender from "../../../src/delivery/Sender.ts"
import { dataOf, definitionOf, makeCompany, makeReceiver } from "../../support/feeding.ts"
import { execute, layerWarehouse, stopClock } from "../../support/postgres.ts"
import { until, untilTrue } from "../../support/until.ts"
import { testWith } from "../../support/suite.ts"

const test = testWith(layerWarehouse)
const key = Redacted.make("0123456789abcdef0123456789abcdef")
const secret = Redacted.make("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")

const add = Effect.fnUntraced(function* (name: string, url: string) {
  const end = yield* ChangeFeed.end
  yield* EndpointStore.add(definitionOf(name, url), yield* EndpointSecrets.seal(name, key, secret), end)
})

/** A process that sends, until its fiber is interrupted. */
const start = (processId: string, file: EndpointSecrets.Keys["file"] = new Map()) =>
  Effect.forkChild(Sender.run({ processId, keys: { key, file }, proxies: null, routes: new Map() }))

/** Waits until so many changes were accepted. */
const acceptedBy = (receiver: { readonly accepted: ReadonlyArray<{ readonly change: string }> }, count: number) =>
  untilTrue(`${count} changes`, () => new Set(receiver.accepted.map(({ change }) => change)).size >= count)

const stored = until("the stored position", Effect.orDie(EndpointStore.list), ([row]) => row!.lag === 0n)

describe("the sender", () => {
  test("one of two processes sends, and the other one continues after its end or loss", function* () {
    const [source, receiver] = [makeCompany(1n), yield* makeReceiver]
    // A lease does not end while the machine is slow.
    yield* stopClock
    yield* add("shared", receiver.url)
    const first = yield* start("first")
    yield* until(
      "a lease",
      Effect.orDie(execute<{ process_id: string | null }>("select process_id from tributary.change_endpoints")),
      ([row]) => row?.process_id === "first"
    )
    const second = yield* start("second")
    source.put(1, "a")
    yield* source.sync()
    yield* acceptedBy(receiver, 1)
    // The first process ends in order: the second one sends at once.
    yield* Fiber.interrupt(first)
    source.put(1, "b")
    yield* source.sync()
    yield* acceptedBy(receiver, 2)
    const [leased] = yield* execute<{ process_id: string; fence: bigint }>(
      "select process_id, fence from tributary.change_endpoints"
    )
    assert.deepStrictEqual([leased!.process_id, leased!.fence], ["second", 2n])
    yield* stored
    // Another process acquires the lease, as after a silence: the second one stops.
    yield* execute(
      "update tributary.change_endpoints set process_id = 'third', fence = fence + 1, leased_until = tributary.now() + interval '1 hour'"
    )
    source.put(1, "c")
    yield* source.sync()
    yield* until("the stored position", Effect.orDie(EndpointStore.list), ([row]) => row!.lag === 1n)
    yield* execute("update tributary.change_endpoints set leased_until = tributary.now() - interval '1 s'")
    yield* acceptedBy(receiver, 3)
    assert.deepStrictEqual([...new Map(receiver.accepted.map((one) => [one.change, one.version])).values()], [1, 2, 3])
    yield* Fiber.interrupt(second)
  })

  test("a slow endpoint and a dead one do not delay another one", function* () {
    const [source, fast, slow] = [makeCompany(2n), yield* makeReceiver, yield* makeReceiver]
    // It never answers.
    slow.answer = () => new Promise(() => {})
    yield* add("fast", fast.url)
    yield* add("slow", slow.url)
    yield* add("dead", "http://127.0.0.1:1/")
    const running = yield* start("one")
    for (let version = 1; version <= 5; version += 1) {
      for (let id = 1; id <= 20; id += 1) source.put(id, `version ${version}`)
      yield* source.sync()
      yield* acceptedBy(fast, version * 20)
    }
    // Messages in flight to one endpoint are bounded.
    assert.isAtMost(slow.received.length, 16)
    assert.strictEqual(new Set(fast.accepted.map(({ change }) => change)).size, 100)
    yield* Fiber.interrupt(running)
  })

  test("endpoints of the file are applied again and again, and paused when they leave it", function* () {
    const [source, receiver] = [makeCompany(3n), yield* makeReceiver]
    const endpoint = { ...definitionOf("filed", receiver.url), company: "c3", secrets: [secret] }
    yield* EndpointStore.apply([endpoint])
    yield* EndpointStore.apply([{ ...endpoint, batchMax: 10 }])
    const file = new Map([["filed", endpoint.secrets]])
    const running = yield* start("one", file)
    source.put(1, "a")
    yield* source.sync()
    yield* acceptedBy(receiver, 1)
    assert.include(receiver.received[0]!.body, `"type":"changes"`)
    assert.lengthOf(dataOf(receiver.received[0]!), 1)
    yield* EndpointStore.apply([])
    assert.deepInclude(yield* EndpointStore.find("filed"), { state: "paused", reason: EndpointStore.leftFile })
    yield* EndpointStore.apply([endpoint])
    assert.deepInclude(yield* EndpointStore.find("filed"), { state: "active", batchMax: 1 })
    yield* EndpointStore.pause("filed", "a person")
    yield* EndpointStore.apply([endpoint])
    assert.deepInclude(yield* EndpointStore.find("filed"), { state: "paused" })
    yield* Fiber.interrupt(running)
  })

  test("an endpoint whose changes were removed ends with the reason", function* () {
    const [source, receiver] = [makeCompany(4n), yield* makeReceiver]
    source.put(1, "a")
    yield* source.sync()
    yield* ChangeFeed.order
    yield* add("late", receiver.url)
    yield* execute(
      "update tributary.change_feed set last_position = last_position + 10, removed_through = last_position + 5"
    )
    const running = yield* start("one")
    yield* until("its end", Effect.orDie(EndpointStore.find("late")), (found) => found?.state === "dead")
    assert.match((yield* EndpointStore.find("late"))!.reason!, /removed with the history.*export/)
    yield* Fiber.interrupt(running)
  })
})
