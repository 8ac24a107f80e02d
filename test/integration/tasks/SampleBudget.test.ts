/** Samples of the rate budget: their values, their times, and one sample for several processes. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as PermitRule from "../../../src/budget/PermitRule.ts"
import * as PostgresPermitStore from "../../../src/budget/PostgresPermitStore.ts"
import * as SampleBudget from "../../../src/tasks/SampleBudget.ts"
import { clockIs, execute, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { until } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"

const mine = "1".repeat(64)
const other = "2".repeat(64)
const minuteMs = 60_000

/** Sets the warehouse's clock. */
const setClock = (at: string) => execute(clockIs(`timestamptz ''${at}''`))

const samplesOf = (count: number) =>
  until("the samples", SampleBudget.read(mine, 10 * minuteMs), ({ length }) => length >= count)

suite("the rate budget samples", warehouse, (test) => {
  test("record live permits every 15 seconds, once for all processes", function* () {
    const sql = yield* SqlClient.SqlClient
    const lease = (fingerprint: string, live: number) =>
      PostgresPermitStore.make(sql, fingerprint, 600).change((state, now) =>
        PermitRule.take(state, { wanted: { urgent: 0, live, backfill: 0 }, validMs: 1_000 }, 600, now)
      )
    yield* setClock("2026-03-01T10:00:07.5Z")
    const { granted } = yield* lease(mine, 20)
    assert.isAbove(granted.live, 0)
    yield* lease(other, 5)
    const keep = SampleBudget.sampleBudget(() => [mine])
    const both = Effect.all([keep, keep, keep], { concurrency: "unbounded" })
    const [first] = yield* Effect.raceFirst(both, samplesOf(1))
    assert.deepStrictEqual(first, {
      at: new Date("2026-03-01T10:00:00Z"),
      used: granted.live,
      allowed: 600,
      configured: 600,
      refusals: 0,
      isPaused: false
    })
    assert.deepStrictEqual(yield* SampleBudget.read(other, minuteMs), [], "no samples were requested for this budget")

    // A 429 with Retry-After, reported by another process.
    yield* setClock("2026-03-01T10:00:46Z")
    const refusal = { origin: "source", status: 429, request: "GET /orders", statedMs: 30_000, limited: true } as const
    yield* PostgresPermitStore.make(sql, mine, 600).change((state, now) => [
      PermitRule.pause(state, refusal, 600, now),
      null
    ])
    const samples = yield* Effect.raceFirst(both, samplesOf(2))
    assert.deepStrictEqual(samples[1], {
      at: new Date("2026-03-01T10:00:45Z"),
      used: granted.live,
      allowed: 450,
      configured: 600,
      refusals: 1,
      isPaused: true
    })

    // The permits have expired. Samples from before the requested period are omitted.
    yield* setClock("2026-03-01T10:05:00Z")
    yield* Effect.raceFirst(both, samplesOf(3))
    const [last, ...none] = yield* SampleBudget.read(mine, minuteMs)
    assert.deepStrictEqual(none, [])
    assert.deepStrictEqual([last!.at, last!.used, last!.isPaused], [new Date("2026-03-01T10:05:00Z"), 0, false])

    // A pause is recorded to its end, although it keeps every request away.
    yield* sql`update tributary.budgets set retry_after_at = '2026-03-01T10:19:10Z' where fingerprint = ${mine}`
    for (const second of ["00", "15"]) {
      yield* setClock(`2026-03-01T10:19:${second}Z`)
      yield* SampleBudget.sample([mine])
    }
    assert.deepStrictEqual(
      (yield* SampleBudget.read(mine, minuteMs)).map(({ at, isPaused }) => [at.toISOString().slice(11, 19), isPaused]),
      [["10:19:00", true]]
    )

    // Without a request for ten minutes there are no further rows.
    yield* setClock("2026-03-01T10:21:00Z")
    yield* SampleBudget.sample([mine])
    assert.deepStrictEqual(yield* SampleBudget.read(mine, minuteMs), [])
  })
})
