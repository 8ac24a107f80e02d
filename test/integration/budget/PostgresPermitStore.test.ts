import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"
import * as Budget from "../../../src/budget/Budget.ts"
import { Budgets, layerPostgres } from "../../../src/budget/Budgets.ts"
import type { PermitStore } from "../../../src/budget/PermitStore.ts"
import * as PostgresPermitStore from "../../../src/budget/PostgresPermitStore.ts"
import { fingerprintOf } from "../../../src/budget/TokenFingerprint.ts"
import type { PauseRequest } from "../../../src/budget/PermitPolicy.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as PermitRule from "../../budget/PermitRule.ts"
import { clockIs, databaseUrl, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { flowing } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"

let tokens = 0
/** A new token for each test, so that tests share a database and no row. */
const fingerprint = () => fingerprintOf("https://erp.test", Redacted.make(`token ${(tokens += 1)}`), "token")

const nothing = { urgent: 0, live: 0, backfill: 0 }
/** A lease of so many urgent permits, and nothing to settle. */
const urgently = (urgent: number) => ({ wanted: { ...nothing, urgent }, validMs: 1_000, settled: null })

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
  describe("the permit policy in SQL", () => {
    test("gives the same results as PermitRule.ts on random histories", function* () {
      const sql = yield* SqlClient.SqlClient
      const set = yield* ownTime
      let probes = 0
      let pausedCount = 0
      const limits: ReadonlyArray<number | null> = [7, 60, 500, 6_000, 7, 60, 500, null]
      for (const [seed, perMinute] of limits.entries()) {
        // The first four histories vary permits. The others also contain pauses of any length.
        const hasPauses = seed >= 4
        const draw = draws(seed + 1)
        const name = fingerprint()
        const spanMs = 60_500
        const ledger = PostgresPermitStore.make(sql, name, { perMinute, spanMs })
        let state = PermitRule.emptyPermitState
        let now = 1_800_000_000_000
        const ids = new Map<bigint, bigint>()
        const open: Array<{ readonly id: bigint; readonly permits: number; readonly at: number }> = []
        let granted = 0
        for (let step = 0; step < (hasPauses ? 150 : 90); step++) {
          now += draw(3) === 0 ? draw(9_000) : draw(400)
          yield* set(now)
          if (draw(25) === 0) {
            const pauseRequest: PauseRequest = {
              origin: draw(2) === 0 ? "source" : "intermediary",
              status: 503,
              request: `GET /${draw(2)}`,
              statedMs: [draw(4_000), draw(400_000), 1e23, 3e10][draw(hasPauses ? 4 : 1)]!,
              limited: draw(2) === 0
            }
            state = PermitRule.pause(state, pauseRequest, perMinute, now, spanMs)
            const pausedMs = yield* ledger.pause(pauseRequest)
            assert.closeTo(pausedMs, Math.max(0, state.pausedUntil - now), 0.01)
            if (pauseRequest.statedMs > 4_000) now += draw(2) === 0 ? draw(60_000) : Math.ceil(pausedMs)
            yield* set(now)
          }
          if (draw(6) === 0) {
            const request = `GET /${draw(2)}`
            const isAnswered = draw(2) === 0
            state = PermitRule.endProbe(state, request, isAnswered)
            yield* ledger.endProbe(request, isAnswered)
          }
          const last = draw(3) === 0 ? undefined : open.shift()
          const settled =
            last === undefined
              ? null
              : { id: last.id, used: draw(last.permits + 1), ageMs: draw(Math.max(1, now - last.at)) }
          const size = Math.max(2, Math.ceil((perMinute ?? 60) / 40))
          const drawCount = () => (draw(3) === 0 ? 0 : draw(size))
          const wanted = { urgent: draw(6) === 0 ? drawCount() : 0, live: drawCount(), backfill: drawCount() }
          const validMs = 1_000 + draw(2_000)
          const [next, expected] = PermitRule.leasePermits(
            state,
            { wanted, validMs, settled },
            perMinute,
            now,
            spanMs,
            BigInt(step + 1)
          )
          state = next
          const grant = yield* ledger.lease({
            wanted,
            validMs,
            settled: settled === null ? null : { ...settled, id: ids.get(settled.id)! }
          })
          const { leaseId, ...rest } = grant
          const { leaseId: expectedId, ...others } = expected
          assert.strictEqual(leaseId === null, expectedId === null)
          const where = `limit ${perMinute}, step ${step}`
          assert.deepStrictEqual(rest.granted, others.granted, where)
          assert.closeTo(rest.waitMs, others.waitMs, 1, where)
          assert.closeTo(rest.pausedMs, others.pausedMs, 0.01, where)
          if (perMinute !== null) assert.closeTo(rest.effectivePerMinute, others.effectivePerMinute, 1e-3, where)
          assert.strictEqual(rest.isProbe, others.isProbe, where)
          assert.strictEqual(rest.pausedBy === null, others.pausedBy === null, where)
          if (rest.pausedBy !== null && others.pausedBy !== null) {
            assert.deepStrictEqual({ ...rest.pausedBy, agoMs: 0 }, { ...others.pausedBy, agoMs: 0 }, where)
            assert.closeTo(rest.pausedBy.agoMs, others.pausedBy.agoMs, 0.01, where)
          }
          if (rest.isProbe) probes++
          if (rest.pausedMs > 0) pausedCount++
          if (expectedId !== null) {
            const permits = grant.granted.urgent + grant.granted.live + grant.granted.backfill
            granted += permits
            ids.set(expectedId, leaseId!)
            open.push({ id: expectedId, permits, at: now })
          }
        }
        if (hasPauses) continue
        assert(perMinute !== null)
        assert.isAtLeast(granted, Math.min(perMinute, 80) / 2)
        const rows = yield* sql<{ sum: bigint }>`
            select coalesce(sum(permits), 0) as sum from tributary.budget_leases where fingerprint = ${name}`
        assert.strictEqual(
          rows[0]!.sum,
          BigInt(state.leases.reduce((sum, { permits }) => sum + permits, 0)),
          "every counter"
        )
      }
      assert.isAbove(probes, 0)
      assert.isAbove(pausedCount, 0)
    })

    test("recovers when the clock is set back, and deletes rate budgets of unused tokens", function* () {
      const sql = yield* SqlClient.SqlClient
      const set = yield* ownTime
      const now = 1_800_000_000_000
      const old = fingerprint()
      yield* set(now - 40 * 86_400_000)
      yield* PostgresPermitStore.make(sql, old, { perMinute: 10 }).lease(urgently(3))
      yield* set(now)
      const ledger = PostgresPermitStore.make(sql, fingerprint(), { perMinute: 10 })
      const ask = urgently(10)
      assert.strictEqual((yield* ledger.lease(ask)).granted.urgent, 10)
      assert.deepStrictEqual(
        yield* sql`select 1 from tributary.budgets where fingerprint = ${old}
            union all select 1 from tributary.budget_leases where fingerprint = ${old}`,
        []
      )
      yield* set(now - 7_200_000)
      assert.strictEqual((yield* ledger.lease(ask)).granted.urgent, 0)
      yield* set(now - 7_200_000 + 61_000)
      assert.strictEqual((yield* ledger.lease(ask)).granted.urgent, 10)
      // A pause of five minutes stays a pause of five minutes.
      const request = "GET /jobs"
      yield* ledger.pause({ statedMs: 300_000, limited: false, origin: "source", status: 503, request })
      yield* set(now - 14_400_000)
      assert.strictEqual((yield* ledger.lease(ask)).pausedMs, 300_000)
      yield* set(now - 14_400_000 + 200_000)
      assert.strictEqual((yield* ledger.lease(ask)).pausedMs, 100_000)
      yield* set(now - 14_400_000 + 300_001)
      assert.strictEqual((yield* ledger.lease(ask)).granted.urgent, 10)
    })
  })

  test("concurrent processes send no request once a pause is stored, at a limit of 600 per minute", function* () {
    const sql = yield* SqlClient.SqlClient
    const set = yield* ownTime
    const now = 1_800_000_000_000
    yield* set(now)
    const name = fingerprint()
    const one = yield* Budget.fromPermitStore(PostgresPermitStore.make(sql, name, { perMinute: 600 }))
    const two = yield* Budget.fromPermitStore(PostgresPermitStore.make(sql, name, { perMinute: 600 }))
    yield* two.takePermit
    yield* one.pause(Duration.seconds(1))
    const fiber = yield* Effect.forkChild(two.takePermit)
    // Permits that were leased ahead are void after a quarter of a second. The clock of the database stands still.
    yield* TestClock.adjust("10 seconds")
    assert.isUndefined(fiber.pollUnsafe())
    yield* set(now + 60_000)
    yield* flowing(Fiber.join(fiber))
  })

  test("grants permits outside the transaction of its caller", function* () {
    const sql = yield* SqlClient.SqlClient
    const name = fingerprint()
    const ledger = PostgresPermitStore.make(sql, name, { perMinute: 10 })
    yield* Effect.flip(
      sql.withTransaction(Effect.andThen(ledger.lease(urgently(2)), Effect.fail("rolled back" as const)))
    )
    assert.strictEqual((yield* sql`select 1 from tributary.budget_leases where fingerprint = ${name}`).length, 1)
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
      const text = JSON.stringify(
        yield* sql<{ text: string }>`select b::text || l::text as text from tributary.budgets b
          join tributary.budget_leases l using (fingerprint)`
      )
      assert.notInclude(text, "canary")
      yield* one.pause(Duration.hours(1))
      assert.strictEqual((yield* Effect.flip(one.takePermit))._tag, "BudgetPaused")
    }).pipe(Effect.provide(layerPostgres))
  )

  test("limits an unbounded pause to one day", function* () {
    const sql = yield* SqlClient.SqlClient
    const name = fingerprint()
    const ledger = PostgresPermitStore.make(sql, name, { perMinute: 10 })
    yield* ledger.lease(urgently(3))
    const day = 24 * 3_600_000
    yield* sql`update tributary.budgets set retry_after_at = '9999-01-01' where fingerprint = ${name}`
    assert.closeTo((yield* ledger.lease(urgently(3))).pausedMs, day, 60_000)
    const [row] = yield* sql<{ ends: boolean }>`
        select retry_after_at < tributary.now() + interval '25 hours' as ends from tributary.budgets where fingerprint = ${name}`
    assert.isTrue(row!.ends, "the pause must end, and not be limited again at each check")
  })

  it.effect("ends a pause on release_budget, also for processes that already wait", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const name = fingerprint()
      const store = () => PostgresPermitStore.make(sql, name, { perMinute: 10 })
      const one = yield* Budget.fromPermitStore(store())
      const other = yield* Budget.fromPermitStore(store(), { pauseWaitMax: Duration.seconds(1) })
      yield* one.takePermit
      yield* other.takePermit
      yield* one.pause(Duration.hours(1), "fault", { origin: "source", status: 503, request: "GET /orders" })
      const waiting = yield* Effect.forkChild(one.takePermit)
      const paused = yield* Effect.flip(other.takePermit)
      assert(paused._tag === "BudgetPaused")
      assert.deepInclude(paused.by, { origin: "source", status: 503, request: "GET /orders" })
      assert.isTrue((yield* sql<{ was: boolean }>`select tributary.release_budget(${name}) as was`)[0]!.was)
      assert.isUndefined(waiting.pollUnsafe())
      // Both processes check again after five seconds of their own clocks, in any order.
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(waiting)
      yield* other.takePermit
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))
  )

  test("grants no permit when its database function is missing, and reports the warehouse", function* () {
    const database = yield* Database
    const ledger: PermitStore = PostgresPermitStore.make(yield* SqlClient.SqlClient, fingerprint(), { perMinute: 10 })
    const client = yield* database.connect
    const locked = (text: string) => Effect.promise(() => client.query(text))
    yield* locked("alter function tributary.lease_permits rename to lease_permits_gone")
    yield* Effect.addFinalizer(() => locked("alter function tributary.lease_permits_gone rename to lease_permits"))
    const budget = yield* Budget.fromPermitStore(ledger, { unavailableMax: Duration.millis(300) })
    const error = yield* flowing(Effect.flip(budget.takePermit))
    assert.strictEqual(error._tag, "BudgetUnavailable")
    assert.include(error.message, "warehouse")
  })

  test("reports a read-only database with the setting to check", function* () {
    const url = Redacted.value(yield* databaseUrl)
    const readOnly = Database.layerUrl(Redacted.make(`${url}?options=-c%20default_transaction_read_only%3Don`))
    const error = yield* Effect.gen(function* () {
      const ledger = PostgresPermitStore.make(yield* SqlClient.SqlClient, fingerprint(), { perMinute: 10 })
      const budget = yield* Budget.fromPermitStore(ledger, { unavailableMax: Duration.millis(300) })
      return yield* flowing(Effect.flip(budget.takePermit))
    }).pipe(Effect.provide(Layer.provideMerge(sqlLayer, readOnly), { local: true }))
    assert.match(error.message, /accepts no writes.*default_transaction_read_only.*tributary doctor/)
  })
})
