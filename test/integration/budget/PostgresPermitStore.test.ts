import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"
import * as Budget from "../../../src/budget/Budget.ts"
import { Budgets, layerPostgres } from "../../../src/budget/Budgets.ts"
import { readBudgets, releaseBudget } from "../../../src/budget/BudgetState.ts"
import * as PermitRule from "../../../src/budget/PermitRule.ts"
import { type Change, inMemory } from "../../../src/budget/PermitStore.ts"
import * as PostgresPermitStore from "../../../src/budget/PostgresPermitStore.ts"
import { fingerprintOf } from "../../../src/budget/TokenFingerprint.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { clockIs, databaseUrl, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { flowing, settled, turn } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"

let tokens = 0
/** A new token for each test, so that tests share a database and no row. */
const fingerprint = () => fingerprintOf("https://erp.test", Redacted.make(`token ${(tokens += 1)}`), "token")

const urgently = (urgent: number) => ({ wanted: { ...PermitRule.forAll(0), urgent }, validMs: 100 })

const draws = (seed: number) => {
  let state = seed >>> 0
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Makes the test control the database's clock until the end of the scope. */
const ownTime = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const define = (expression: string) => Effect.orDie(sql.unsafe(clockIs(expression)))
  yield* sql`create table if not exists public.test_clock (at timestamptz not null)`
  yield* sql`truncate public.test_clock`
  yield* sql`insert into public.test_clock values (to_timestamp(0))`
  yield* Effect.acquireRelease(define("at from public.test_clock"), () => define("clock_timestamp()"))
  return (ms: number) =>
    Effect.orDie(Effect.asVoid(sql`update public.test_clock set at = to_timestamp(${ms}::float8 / 1000)`))
})

suite("PostgresPermitStore", warehouse, (test, it) => {
  describe("the row of a token", () => {
    test("answers like a store in memory on random histories, also of pauses, probes and clocks set back", function* () {
      const sql = yield* SqlClient.SqlClient
      const set = yield* ownTime
      let probes = 0
      let pausedCount = 0
      let permits = 0
      for (const [seed, perMinute] of [7, 60, 500, 6_000, 600, null].entries()) {
        const draw = draws(seed + 1)
        let now = 1_800_000_000_000
        const stores = [PostgresPermitStore.make(sql, fingerprint(), perMinute), inMemory(() => now, perMinute)]
        for (let step = 0; step < 150; step++) {
          now += draw(3) === 0 ? draw(9_000) : draw(400) - (draw(30) === 0 ? draw(100_000) : 0)
          const request: PermitRule.PauseRequest = {
            origin: draw(2) === 0 ? "source" : "intermediary",
            status: 503,
            request: `GET /${draw(2)}`,
            statedMs: [draw(4_000), draw(400_000), 1e23, 3e10][draw(4)]!,
            limited: draw(2) === 0
          }
          const wanted = { urgent: draw(6) === 0 ? draw(9) : 0, live: draw(9), backfill: draw(9) }
          const validMs = 100 + draw(2_000)
          const isAnswered = draw(2) === 0
          const kind = draw(seed % 2 === 0 ? 25 : 80)
          const change: Change<unknown> = (state, nowMs) => {
            if (kind === 0) {
              const next = PermitRule.pause(state, request, perMinute, nowMs)
              return [next, next.pausedUntil]
            }
            return [PermitRule.endProbe(state, `GET /${step % 2}`, isAnswered), null]
          }
          yield* set(now)
          const where = `limit ${perMinute}, step ${step}`
          if (kind < 4) {
            const [stored, expected] = yield* Effect.forEach(stores, (store) => store.change(change))
            assert.deepStrictEqual(stored, expected, where)
          } else {
            const [stored, expected] = yield* Effect.forEach(stores, (store) => store.take({ wanted, validMs }))
            assert.deepStrictEqual(stored, expected, where)
            if (expected!.isProbe) probes++
            if (expected!.pausedMs > 0) pausedCount++
            permits += PermitRule.sumOf(expected!.granted)
          }
          const [state, other] = yield* Effect.forEach(stores, (store) => store.change((one) => [one, one]))
          assert.deepStrictEqual({ ...state, used: [], perMinute }, { ...other, used: [], perMinute }, where)
          assert.strictEqual(PermitRule.usedAt(state!, now), PermitRule.usedAt(other!, now), where)
          if (kind === 0 && draw(2) === 0) now += request.statedMs < 1e6 ? request.statedMs : 60_000
        }
      }
      assert.isAbove(probes, 0)
      assert.isAbove(pausedCount, 0)
      assert.isAbove(permits, 500)
    })

    test("is shared by processes that change it at the same time", function* () {
      const sql = yield* SqlClient.SqlClient
      const set = yield* ownTime
      yield* set(1_800_000_000_000)
      const name = fingerprint()
      const grants = yield* Effect.forEach(
        Array.from({ length: 12 }, () => PostgresPermitStore.make(sql, name, 100)),
        (store) => Effect.forEach([1, 2, 3, 4], () => store.take(urgently(3))),
        { concurrency: "unbounded" }
      )
      const granted = grants.flat().map((grant) => PermitRule.sumOf(grant.granted))
      assert.strictEqual(
        granted.reduce((sum, one) => sum + one, 0),
        100
      )
      const [state] = yield* readBudgets([name])
      assert.deepInclude(state, { used: 100, allowed: 100, configured: 100, pausedUntil: null })
    })

    test("is removed when the token was not used for 30 days", function* () {
      const sql = yield* SqlClient.SqlClient
      const set = yield* ownTime
      const now = 1_800_000_000_000
      const old = fingerprint()
      yield* set(now - 40 * 86_400_000)
      yield* PostgresPermitStore.make(sql, old, 10).take(urgently(3))
      yield* set(now)
      yield* PostgresPermitStore.make(sql, fingerprint(), 10).take(urgently(3))
      assert.deepStrictEqual(yield* readBudgets([old]), [])
    })
  })

  test("concurrent processes send no request once a pause is stored, at a limit of 600 per minute", function* () {
    const sql = yield* SqlClient.SqlClient
    const set = yield* ownTime
    const now = 1_800_000_000_000
    yield* set(now)
    const name = fingerprint()
    const one = yield* Budget.fromPermitStore(PostgresPermitStore.make(sql, name, 600))
    const two = yield* Budget.fromPermitStore(PostgresPermitStore.make(sql, name, 600))
    yield* two.takePermit
    yield* one.pause(Duration.seconds(1))
    const fiber = yield* Effect.forkChild(two.takePermit)
    // The clock of the database stands still.
    yield* TestClock.adjust("10 seconds")
    assert.isUndefined(fiber.pollUnsafe())
    yield* set(now + 60_000)
    yield* flowing(Fiber.join(fiber))
  })

  test("grants permits outside the transaction of its caller", function* () {
    const sql = yield* SqlClient.SqlClient
    const name = fingerprint()
    const store = PostgresPermitStore.make(sql, name, 10)
    yield* Effect.flip(
      sql.withTransaction(Effect.andThen(store.take(urgently(2)), Effect.fail("rolled back" as const)))
    )
    assert.strictEqual((yield* readBudgets([name]))[0]!.used, 2)
  })

  it.effect("stores no token, and uses one row per token and one rate budget per process", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const budgets = yield* Budgets
      const budgetOf = (token: string, scope: "token" | "install") =>
        budgets.of({
          baseUrl: "https://erp.test/!/api/v2",
          token: Redacted.make(token),
          scope,
          requestsPerMinute: 600,
          pauseWaitMax: Duration.seconds(1)
        })
      const one = yield* budgetOf("canary-1", "token")
      assert.strictEqual(yield* budgetOf("canary-1", "token"), one)
      assert.notStrictEqual(yield* budgetOf("canary-2", "token"), one)
      assert.strictEqual(yield* budgetOf("canary-2", "install"), yield* budgetOf("canary-1", "install"))
      yield* one.takePermit
      yield* one.pause(Duration.hours(1))
      const text = JSON.stringify(yield* sql<{ text: string }>`select b::text as text from tributary.budgets b`)
      assert.notInclude(text, "canary")
      assert.strictEqual((yield* Effect.flip(one.takePermit))._tag, "BudgetPaused")
    }).pipe(Effect.provide(layerPostgres))
  )

  it.effect("ends a pause on a person's release, also for processes that already wait", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const name = fingerprint()
      const store = () => PostgresPermitStore.make(sql, name, 10)
      const one = yield* Budget.fromPermitStore(store())
      const other = yield* Budget.fromPermitStore(store(), { pauseWaitMax: Duration.seconds(1) })
      yield* one.takePermit
      yield* other.takePermit
      yield* one.pause(Duration.hours(1), "fault", { origin: "source", status: 503, request: "GET /orders" })
      const waiting = yield* Effect.forkChild(one.takePermit)
      const paused = yield* Effect.flip(other.takePermit)
      assert(paused._tag === "BudgetPaused")
      assert.deepInclude(paused.by, { origin: "source", status: 503, request: "GET /orders" })
      assert.isTrue(yield* releaseBudget(name))
      assert.isFalse(yield* releaseBudget(name))
      assert.isUndefined(waiting.pollUnsafe())
      // Both processes check again after five seconds of their own clocks, in any order.
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(waiting)
      yield* other.takePermit
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))
  )

  it.effect("waits for a Retry-After that it was given, also while the warehouse's clock is set forward", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const name = fingerprint()
      const setClock = yield* ownTime
      yield* setClock(1_800_000_000_000)
      const budget = yield* Budget.fromPermitStore(PostgresPermitStore.make(sql, name, 10))
      yield* budget.pause(Duration.minutes(1), "limit")
      const waiting = yield* Effect.forkChild(budget.takePermit)
      yield* setClock(1_800_000_000_000 + 7_200_000)
      for (let seconds = 0; seconds < 40; seconds += 5) {
        yield* TestClock.adjust("5 seconds")
        yield* Effect.all(Array.from({ length: 20 }, () => turn))
      }
      assert.isUndefined(waiting.pollUnsafe())
      // A person may still end it, though the warehouse shows none.
      assert.isFalse(yield* releaseBudget(name))
      yield* TestClock.adjust("5 seconds")
      yield* settled(
        "the permit",
        Effect.sync(() => waiting.pollUnsafe() !== undefined),
        (isGranted) => isGranted
      )
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))
  )

  test("grants no permit when its table is missing, and reports the warehouse", function* () {
    const database = yield* Database
    const store = PostgresPermitStore.make(yield* SqlClient.SqlClient, fingerprint(), 10)
    const client = yield* database.connect
    const locked = (text: string) => Effect.promise(() => client.query(text))
    yield* locked("alter table tributary.budgets rename to budgets_gone")
    yield* Effect.addFinalizer(() => locked("alter table tributary.budgets_gone rename to budgets"))
    const budget = yield* Budget.fromPermitStore(store, { unavailableMax: Duration.millis(300) })
    const error = yield* flowing(Effect.flip(budget.takePermit))
    assert.strictEqual(error._tag, "BudgetUnavailable")
    assert.include(error.message, "warehouse")
  })

  test("reports a read-only database with the setting to check", function* () {
    const url = Redacted.value(yield* databaseUrl)
    const readOnly = Database.layerUrl(Redacted.make(`${url}?options=-c%20default_transaction_read_only%3Don`))
    const error = yield* Effect.gen(function* () {
      const store = PostgresPermitStore.make(yield* SqlClient.SqlClient, fingerprint(), 10)
      const budget = yield* Budget.fromPermitStore(store, { unavailableMax: Duration.millis(300) })
      return yield* flowing(Effect.flip(budget.takePermit))
    }).pipe(Effect.provide(Layer.provideMerge(sqlLayer, readOnly), { local: true }))
    assert.match(error.message, /accepts no writes.*default_transaction_read_only.*tributary doctor/)
  })
})
