/**
 * Bursts of ten thousand events: they cost about as many requests as a scan, and events above the limit are rejected at
 * once.
 */
import { assert, describe, layer } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { isEvent } from "../../../src/connector/Delivery.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { compare } from "../../../src/verify/Compare.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import { makeGate } from "../../support/gate.ts"
import { store } from "../../support/storing.ts"
import { until } from "../../support/until.ts"
import { makeStand, one, stand } from "./working.ts"

const many = 10_000
const pageRecords = 100
/** Requests besides the pages of a scan: reads by number before the scan, and of records that it did not return. */
const besides = 50

const table = tableOf(serviceV2.resources.get("salesmen")!)

/** An event as the receiver stores it. */
const accepted = (company: string, companyId: number, number: number, data: object): InboxWriter.NewEvent => {
  const body = new TextEncoder().encode(
    JSON.stringify({
      id: `evt_burst_${companyId}_${number}`,
      type: "salesmen.updated",
      createdate: "2026-01-01T00:00:00Z",
      companyid: companyId,
      data
    })
  )
  const event = deliveryReader.read(body)
  if (!isEvent(event)) throw new Error(event.detail)
  const { id: eventId, type: eventType, resource, recordId, stamp, occurredAt } = event
  return { company, eventId, eventType, resource, recordId, stamp, occurredAt, sentAt: 1_800_000_000, body }
}

/** The duration of an effect in seconds. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const began = yield* Clock.monotonicTimeNanos
    const result = yield* effect
    return { result, seconds: Number((yield* Clock.monotonicTimeNanos) - began) / 1e9 }
  })

describe("a burst of events", () => {
  layer(stand, { excludeTestServices: true, timeout: "240 seconds" })("against the source", (it) => {
    const storeAll = (events: ReadonlyArray<InboxWriter.NewEvent>) =>
      Effect.scoped(
        Effect.gen(function* () {
          const inbox = yield* InboxWriter.make()
          const outcomes = yield* Effect.forEach(events, (event) => store(inbox, event), { concurrency: "unbounded" })
          assert.isTrue(outcomes.every((outcome) => outcome === "stored"))
        })
      )
    const equal = Effect.fnUntraced(function* (id: number, truth: ReadonlyArray<string>) {
      const compared = yield* compare(table, BigInt(id), truth)
      assert.deepStrictEqual(compared.differences, [])
      return truth.length
    })

    it.effect("for as many records is processed with the pages of one scan", () =>
      Effect.gen(function* () {
        const { id, name, put, sync, requests, drain, truth } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "before")])
        yield* sync("salesmen")
        const stored: Array<object> = []
        for (let first = 2; first < many + 2; first += 500) {
          const numbers = Array.from({ length: Math.min(500, many + 2 - first) }, (_, at) => first + at)
          stored.push(
            ...(yield* put(
              "salesmen",
              numbers.map((number) => one(number, `n ${number}`))
            ))
          )
        }
        yield* storeAll(stored.map((record, number) => accepted(name, id, number, record)))
        yield* requests
        const { result: worked, seconds } = yield* timed(drain)
        assert.deepStrictEqual(worked, { done: many, dead: 0, ignored: 0, postponed: 0, stopped: null })
        assert.strictEqual(yield* equal(id, yield* truth("salesmen")), many + 1)
        const requestCount = (yield* requests).length
        assert.isAtLeast(requestCount, many / pageRecords)
        assert.isAtMost(requestCount, many / pageRecords + besides)
        console.log(`  ${many} events of as many records: ${seconds.toFixed(1)} s, ${requestCount} requests`)
      })
    )

    it.effect("for one record is processed with at most five reads", () =>
      Effect.gen(function* () {
        const { id, name, put, sync, requests, drain, truth } = yield* makeStand(["salesmen"])
        yield* put("salesmen", [one(1, "before")])
        yield* sync("salesmen")
        const [last] = yield* put("salesmen", [one(1, "after")])
        yield* storeAll(Array.from({ length: many }, (_, number) => accepted(name, id, number, last!)))
        yield* requests
        const { result: worked, seconds } = yield* timed(drain)
        assert.deepStrictEqual(worked, { done: many, dead: 0, ignored: 0, postponed: 0, stopped: null })
        yield* equal(id, yield* truth("salesmen"))
        const requestCount = (yield* requests).length
        assert.isAtLeast(requestCount, 1)
        assert.isAtMost(requestCount, 5)
        console.log(`  ${many} events of one record: ${seconds.toFixed(1)} s, ${requestCount} requests`)
      })
    )

    it.effect("waits up to the limit while the warehouse hangs, and is stored once afterwards", () =>
      Effect.gen(function* () {
        const { id, name, sql } = yield* makeStand([])
        const { host, port, user, password, database } = (yield* Database).endpoint
        const gate = yield* makeGate(
          Redacted.make(`postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`)
        )
        const waitingMax = 20_000
        const offered = 25_000
        // Timeouts that even a slow machine never reaches.
        const inbox = yield* InboxWriter.make({
          answerTimeout: Duration.minutes(2),
          waitMax: Duration.minutes(2)
        }).pipe(Effect.provide(Database.layerUrl(gate.url)))
        const outcomes = new Map<number, Array<string>>()
        const offer = (number: number) =>
          inbox.put(accepted(name, id, number, one(number, "x")), (outcome) => {
            const word = typeof outcome === "string" ? outcome : outcome.reason
            outcomes.set(number, [...(outcomes.get(number) ?? []), word])
          })
        const untilEmpty = until("no event waits", Effect.sync(inbox.stats), ({ waiting }) => waiting === 0)
        yield* until("both connections are open", Effect.sync(inbox.stats), ({ writersUp }) => writersUp === 2)
        yield* gate.hang
        // Each writer takes one event and waits for the response.
        const busy = [-1, -2]
        for (const number of busy) {
          offer(number)
          yield* untilEmpty
        }
        for (let number = 1; number <= offered; number += 1) offer(number)
        // The rejections are immediate: no other fiber has run since.
        assert.strictEqual(inbox.stats().waiting, waitingMax)
        assert.strictEqual(outcomes.size, offered - waitingMax)
        assert.isTrue([...outcomes].every(([number, words]) => number > waitingMax && words.join() === "full"))
        yield* gate.open
        const { seconds } = yield* timed(
          until(
            "every event has its outcome",
            Effect.sync(() => outcomes.size),
            (size) => size === offered + busy.length,
            120
          )
        )
        for (const [number, words] of outcomes) assert.deepStrictEqual(words, [number > waitingMax ? "full" : "stored"])
        const [row] = yield* sql<{ events: bigint }>`
          select count(*) as events from tributary.inbox where company = ${name}`
        assert.deepStrictEqual(row, { events: BigInt(waitingMax + busy.length) })
        console.log(`  ${waitingMax} events that waited: stored within ${seconds.toFixed(1)} s`)
      })
    )
  })
})
