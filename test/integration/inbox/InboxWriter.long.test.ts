/** The time limit of InboxWriter: each event has its outcome within the sender's timeout (DLV-01: 15 s). */
import { assert, describe, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Redacted } from "effect"
import { Database } from "../../../src/postgres/Database.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import { type Gate, makeGate } from "../../support/gate.ts"
import { layerWarehouse as warehouse } from "../../support/postgres.ts"
import { until } from "../../support/until.ts"
import { store } from "../../support/storing.ts"

/** The sender's timeout, less the time of the request on the network. */
const senderTimeoutMs = 14_000

const monotonicMs = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

/** An inbox behind its own gate, and the time that each offered event waits for its outcome. */
const behind = Effect.fnUntraced(function* (company: string) {
  const { host, port, user, password, database } = (yield* Database).endpoint
  const gate = yield* makeGate(
    Redacted.make(`postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`)
  )
  const inbox = yield* InboxWriter.make().pipe(Effect.provide(Database.layerUrl(gate.url)))
  yield* until(
    "both connections are open",
    Effect.sync(() => inbox.stats().writersUp),
    (up) => up === 2
  )
  const waits: Array<number> = []
  let offered = 0
  const offer = Effect.gen(function* () {
    offered += 1
    const began = yield* monotonicMs
    const id = `evt_${offered}`
    yield* Effect.exit(
      store(inbox, {
        company,
        eventId: id,
        eventType: "orders.updated",
        resource: "orders",
        recordId: "17",
        stamp: null,
        occurredAt: null,
        sentAt: 1_800_000_000,
        body: new TextEncoder().encode(`{"id":"${id}"}`)
      })
    )
    waits.push((yield* monotonicMs) - began)
  }).pipe(Effect.forkChild)
  /** Offers one event every quarter of a second. */
  const offerFor = (seconds: number) =>
    Effect.forEach(Array.from({ length: 4 * seconds }), () => Effect.andThen(offer, Effect.sleep(250)), {
      discard: true
    })
  const longest = Effect.gen(function* () {
    yield* until(
      "every event has its outcome",
      Effect.sync(() => waits.length),
      (count) => count === offered
    )
    return Math.max(...waits)
  })
  return { gate, inbox, offer, offerFor, longest }
})

/** Cuts the connections. New ones may be opened, and hang again. */
const lose = (gate: Gate) => Effect.andThen(Effect.andThen(gate.shut, gate.open), gate.hang)

layer(warehouse, { excludeTestServices: true, timeout: "2 minutes" })("InboxWriter", (it) => {
  describe("while the warehouse hangs", () => {
    it.effect(
      "returns each outcome before the sender's timeout, also with unsynchronised writers and lost connections",
      () =>
        Effect.gen(function* () {
          const outOfStep = Effect.gen(function* () {
            const { gate, inbox, offer, offerFor, longest } = yield* behind("out of step")
            yield* gate.hang
            yield* offer
            yield* Effect.sleep(3_000)
            yield* offerFor(18)
            const ms = yield* longest
            yield* gate.open
            yield* until("the warehouse is reachable", Effect.isSuccess(inbox.probe), (is) => is)
            return ms
          })
          const lostLate = (afterMs: number) =>
            Effect.gen(function* () {
              const { gate, offer, offerFor, longest } = yield* behind(`lost after ${afterMs} ms`)
              yield* gate.hang
              yield* offer
              yield* offer
              const others = yield* Effect.forkChild(offerFor(16))
              for (let round = 0; round < 2; round++) {
                yield* Effect.sleep(afterMs)
                yield* lose(gate)
              }
              yield* Fiber.join(others)
              return yield* longest
            })
          const longest = yield* Effect.all([outOfStep, lostLate(4_500), lostLate(7_500)], { concurrency: "unbounded" })
          for (const ms of longest) assert.isBelow(ms, senderTimeoutMs)
          // The events did hang.
          for (const ms of longest) assert.isAbove(ms, 4_000)
        }),
      60_000
    )
  })
})
