import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, References } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as Budget from "../../src/budget/Budget.ts"
import { inMemory, type PermitStore, PermitStoreError } from "../../src/budget/PermitStore.ts"
import { BudgetPaused } from "../../src/budget/BudgetError.ts"
import { allowedAt, type PriorityClass } from "../../src/budget/PermitRule.ts"
import * as MonotonicClock from "../../src/time/MonotonicClock.ts"
import { most, servers } from "./Servers.ts"
import { test } from "../support/suite.ts"

const memory = (perMinute: number | null) => Effect.map(MonotonicClock.make, (now) => inMemory(now, perMinute))

const as = (kind: PriorityClass, dueAt = 0) => Effect.provideService(Budget.Priority, { class: kind, dueAt })

interface PermitUse {
  readonly by: string
  readonly at: number
}

/** Requests permits as fast as possible, forever, and records the time of each. */
const insatiable = (budget: Budget.BudgetShape, by: string, permitUses: Array<PermitUse>, latencyMs = 5) =>
  Effect.gen(function* () {
    yield* budget.takePermit
    permitUses.push({ by, at: yield* Clock.currentTimeMillis })
  }).pipe(Effect.delay(latencyMs), Effect.forever)

const by = (permitUses: ReadonlyArray<PermitUse>, name: string) => permitUses.filter((one) => one.by === name).length
const within = (permitUses: ReadonlyArray<PermitUse>, from: number, to: number) =>
  permitUses.filter(({ at }) => at >= from && at < to)

/** A deterministic generator of numbers between 0 and 1. */
const draws = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

describe("a rate budget", () => {
  /** Counts the permits of this number of requests that wait together. */
  const waiting = Effect.fnUntraced(function* (budget: Budget.BudgetShape, requests: number) {
    const permits = { count: 0 }
    const one = Effect.map(budget.takePermit, () => (permits.count += 1))
    for (let index = 0; index < requests; index++) yield* Effect.forkChild(one)
    return permits
  })

  test("gives its permits at once and the next ones a minute later, also that of an interrupted request", function* () {
    const permits = yield* waiting(yield* Budget.makeOwn(3), 5)
    yield* TestClock.adjust("59 seconds")
    assert.strictEqual(permits.count, 3)
    yield* TestClock.adjust("2 seconds")
    assert.strictEqual(permits.count, 5)

    const single = yield* Budget.makeOwn(1)
    yield* single.takePermit
    const gone = yield* Effect.forkChild(single.takePermit)
    yield* TestClock.adjust("10 seconds")
    yield* Fiber.interrupt(gone)
    const next = yield* waiting(single, 1)
    yield* TestClock.adjust("51 seconds")
    assert.strictEqual(next.count, 1)
  })

  test("gives no permit before Retry-After has passed, also to a request that waits already", function* () {
    const budget = yield* Budget.makeOwn(null)
    yield* budget.pause(Duration.seconds(10))
    yield* budget.pause(Duration.seconds(5))
    const permits = yield* waiting(budget, 2)
    yield* TestClock.adjust("9999 millis")
    assert.strictEqual(permits.count, 0)
    yield* TestClock.adjust("1 millis")
    assert.strictEqual(permits.count, 2)

    const single = yield* Budget.makeOwn(1)
    yield* single.takePermit
    const next = yield* waiting(single, 1)
    yield* TestClock.adjust("30 seconds")
    yield* single.pause(Duration.minutes(1))
    yield* TestClock.adjust("31 seconds")
    assert.strictEqual(next.count, 0)
    yield* TestClock.adjust("30 seconds")
    assert.strictEqual(next.count, 1)
  })

  test("fails requests whose wait for a pause is too long, also waiting ones", function* () {
    const budget = yield* Budget.makeOwn(1, { pauseWaitMax: Duration.minutes(1) })
    yield* budget.takePermit
    const early = yield* Effect.forkChild(Effect.flip(budget.takePermit))
    yield* TestClock.adjust("1 second")
    yield* budget.pause(Duration.hours(1), "limit")
    const error = yield* Fiber.join(early)
    assert.deepStrictEqual(
      error,
      new BudgetPaused({
        retryAfter: Duration.hours(1),
        by: { origin: "source", status: 429, request: null, statedMs: 3_600_000, agoMs: 0 }
      })
    )
    assert.strictEqual((yield* Effect.flip(budget.takePermit))._tag, "BudgetPaused")
  })
})

describe("the priority of permits", () => {
  const order = Effect.fnUntraced(function* (
    perMinute: number,
    requests: ReadonlyArray<readonly [kind: PriorityClass, dueAt: number]>
  ) {
    const budget = yield* Budget.makeOwn(perMinute)
    for (let index = 0; index < perMinute; index++) yield* as("urgent")(budget.takePermit)
    const served: Array<string> = []
    for (const [kind, dueAt] of requests) {
      yield* Effect.forkChild(
        Effect.andThen(
          as(kind, dueAt)(budget.takePermit),
          Effect.sync(() => served.push(`${kind} ${dueAt}`))
        )
      )
    }
    yield* TestClock.adjust("30 minutes")
    assert.strictEqual(served.length, requests.length)
    return served
  })

  test("is urgent first, then live by due time, then backfill", function* () {
    const served = yield* order(1, [
      ["backfill", 1],
      ["live", 30],
      ["live", 10],
      ["urgent", 90],
      ["live", 20],
      ["urgent", 80],
      ["backfill", 2]
    ])
    // At one permit a minute, the one permit of ten that is for a backfill is given as soon as no backfill permit
    // counts any more.
    const nearest = served.filter((one) => !one.startsWith("backfill"))
    assert.deepStrictEqual(nearest, ["urgent 80", "urgent 90", "live 10", "live 20", "live 30"])
    assert.deepStrictEqual(served.slice(0, 2), ["urgent 80", "urgent 90"])
    assert.isBelow(served.indexOf("backfill 1"), served.indexOf("backfill 2"))
  })

  test("leaves a backfill one permit of ten, and no more while live work waits", function* () {
    const budget = yield* Budget.makeOwn(100)
    const permitUses: Array<PermitUse> = []
    yield* Effect.forkChild(as("backfill")(insatiable(budget, "backfill", permitUses)))
    yield* Effect.forkChild(as("live")(insatiable(budget, "live", permitUses)))
    yield* Effect.forkChild(as("live")(insatiable(budget, "live", permitUses)))
    yield* TestClock.adjust("5 minutes")
    const later = within(permitUses, 61_000, 300_000)
    const share = by(later, "backfill") / later.length
    assert.isAtLeast(share, 0.08)
    assert.isAtMost(share, 0.12)
  })

  test("admits urgent and live work while a backfill of another process uses everything", function* () {
    const ledger = yield* memory(600)
    const permitUses: Array<PermitUse> = []
    const backfill = yield* Budget.fromPermitStore(ledger)
    yield* Effect.forkScoped(as("backfill")(insatiable(backfill, "backfill", permitUses)))
    yield* TestClock.adjust("150 seconds")
    const other = yield* Budget.fromPermitStore(ledger)
    const waited = Effect.fnUntraced(function* (kind: PriorityClass) {
      const began = yield* Clock.currentTimeMillis
      const fiber = yield* Effect.forkChild(Effect.andThen(as(kind)(other.takePermit), Clock.currentTimeMillis))
      yield* TestClock.adjust("5 seconds")
      return (yield* Fiber.join(fiber)) - began
    })
    assert.strictEqual(yield* waited("urgent"), 0)
    for (let round = 0; round < 5; round++) assert.isAtMost(yield* waited("live"), 400)
    assert.isAtMost(yield* waited("urgent"), 200)
  })
})

describe("the whole rate budget", () => {
  test("is used by backfill or live work alone, in one process or four, without refusals", function* () {
    const [perMinute, minutes] = [200, 3]
    for (const kind of ["backfill", "live"] as const) {
      for (const processes of [1, 4]) {
        const ledger = yield* memory(perMinute)
        const permitUses: Array<PermitUse> = []
        const began = yield* Clock.currentTimeMillis
        yield* Effect.scoped(
          Effect.gen(function* () {
            for (let index = 0; index < processes; index++) {
              const budget = yield* Budget.fromPermitStore(ledger)
              for (const latencyMs of [7, 90, 310, 800, 1300, 40, 120, 160]) {
                yield* Effect.forkScoped(as(kind)(insatiable(budget, `${index}`, permitUses, latencyMs)))
              }
            }
            yield* TestClock.adjust(minutes * 60_000)
          })
        )
        const times = permitUses.map(({ at }) => at - began)
        assert.isAtLeast(times.length / (minutes * perMinute), 0.98)
        assert.isAtMost(most(times, 60_000), perMinute)
        const draw = draws(7)
        const arrivals = times.map((at) => at + draw() * 400).toSorted((a, b) => a - b)
        for (const server of servers) assert.strictEqual(server.refused(arrivals, perMinute), 0, server.name)
      }
    }
  })

  test("is never exceeded by any mix of processes and requests", function* () {
    for (let seed = 1; seed <= 12; seed++) {
      const draw = draws(seed)
      const perMinute = [1, 3, 20, 75, 240, 3000][seed % 6]!
      const ledger = yield* memory(perMinute)
      const permitUses: Array<PermitUse> = []
      const began = yield* Clock.currentTimeMillis
      for (let round = 0; round < 6; round++) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const processes = 1 + Math.floor(draw() * 3)
            for (let index = 0; index < processes; index++) {
              const budget = yield* Budget.fromPermitStore(ledger)
              const kind = (["urgent", "live", "backfill"] as const)[Math.floor(draw() * 3)]!
              const latencyMs = 20 + Math.floor(draw() * 2_000)
              yield* Effect.forkScoped(as(kind)(insatiable(budget, kind, permitUses, latencyMs)))
              yield* Effect.forkScoped(as("live")(insatiable(budget, "live", permitUses, latencyMs * 3)))
              if (draw() < 0.2) yield* Effect.forkScoped(budget.pause(Duration.millis(draw() * 5_000), "limit"))
            }
            yield* TestClock.adjust(Math.ceil(draw() * 40_000))
          })
        )
      }
      const times = permitUses.map(({ at }) => at - began)
      assert.isAtMost(most(times, 60_000), perMinute, `seed ${seed}`)
      for (const server of servers)
        assert.strictEqual(server.refused(times, perMinute), 0, `seed ${seed} ${server.name}`)
    }
  })
})

describe("the rate", () => {
  test("falls by a quarter after a 429, once per group, and recovers slowly", function* () {
    const ledger = yield* memory(100)
    const budget = yield* Budget.fromPermitStore(ledger)
    const rate = ledger.change((state, now) => [state, allowedAt(100, state.memory, now)])
    yield* budget.pause(Duration.seconds(2), "limit")
    yield* budget.pause(Duration.seconds(2), "limit")
    assert.strictEqual(yield* rate, 75)
    yield* budget.pause(Duration.seconds(20), "fault")
    yield* TestClock.adjust("22 seconds")
    assert.isAtMost(yield* rate, 77)
    yield* budget.pause(Duration.seconds(1), "limit")
    assert.isAtMost(yield* rate, 58)
    yield* TestClock.adjust("2 minutes")
    assert.closeTo(yield* rate, 67, 2)
    yield* TestClock.adjust("10 minutes")
    assert.strictEqual(yield* rate, 100)
    for (let index = 0; index < 30; index++) {
      yield* budget.pause(Duration.seconds(1), "limit")
      yield* TestClock.adjust("15 seconds")
    }
    assert.isAtLeast(yield* rate, 10)
    assert.isAtMost(yield* rate, 13)
  })

  test("adapts to another program's use, and recovers when that ends", function* () {
    // The source allows 100 requests a minute. For ten minutes another program uses 50 of them, evenly.
    const budget = yield* Budget.makeOwn(100)
    const served: Array<number> = []
    let own = 0
    let refusals = 0
    const enter = (at: number) => {
      while (served.length > 0 && served[0]! <= at - 60_000) served.shift()
      if (served.length >= 100) return Math.ceil(served[0]! + 60_000 - at)
      served.push(at)
      return 0
    }
    const other = yield* Effect.forkChild(
      Effect.map(Clock.currentTimeMillis, enter).pipe(Effect.delay(1_200), Effect.forever)
    )
    yield* Effect.forkChild(
      as("backfill")(
        Effect.forever(
          Effect.gen(function* () {
            yield* budget.takePermit
            const waitMs = enter(yield* Clock.currentTimeMillis)
            if (waitMs === 0) return void (own += 1)
            refusals += 1
            yield* budget.pause(Duration.millis(Math.max(1_000, waitMs)), "limit")
          })
        )
      )
    )
    yield* TestClock.adjust("10 minutes")
    assert.isAtLeast(own, 350)
    assert.isAtMost(refusals, 30)
    yield* Fiber.interrupt(other)
    yield* TestClock.adjust("15 minutes")
    const before = own
    const refusedBefore = refusals
    yield* TestClock.adjust("5 minutes")
    assert.isAtLeast(own - before, 0.98 * 500)
    assert.strictEqual(refusals, refusedBefore)
  })
})

describe("an unreachable permit store", () => {
  it.effect("gives no permits, is reported after a while, and recovers", () =>
    Effect.gen(function* () {
      const real = yield* memory(100)
      let isAway = true
      let calls = 0
      const unlessAway = <A>(answer: Effect.Effect<A, PermitStoreError>) =>
        Effect.suspend(() => {
          calls += 1
          return isAway ? Effect.fail(new PermitStoreError({ detail: "the test took it away" })) : answer
        })
      const ledger: PermitStore = {
        ...real,
        change: (change) => unlessAway(real.change(change)),
        take: (request) => unlessAway(real.take(request))
      }
      const budget = yield* Budget.fromPermitStore(ledger)
      const first = yield* Effect.forkChild(Effect.flip(budget.takePermit))
      yield* TestClock.adjust("29 seconds")
      assert.isUndefined(first.pollUnsafe())
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(first))._tag, "BudgetUnavailable")
      assert.isAtMost(calls, 15)
      // A pause that begins during the outage stops this process, and the store gets it before the next request for
      // permits.
      yield* budget.pause(Duration.minutes(1), "limit")
      isAway = false
      const second = yield* Effect.forkChild(budget.takePermit)
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(second.pollUnsafe())
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(second)
      assert.strictEqual(yield* real.change((state) => [state, state.refusals]), 1)
    }).pipe(Effect.provideService(References.MinimumLogLevel, "None"))
  )

  test("that answers late has its permits discarded, and a longer timeout next time", function* () {
    const real = yield* memory(100)
    const slow: PermitStore = { ...real, take: (request) => Effect.delay(real.take(request), 1_500) }
    const budget = yield* Budget.fromPermitStore(slow)
    const permitUses: Array<PermitUse> = []
    yield* Effect.forkScoped(insatiable(budget, "slow", permitUses, 10))
    yield* TestClock.adjust("31 seconds")
    assert.isAtLeast(permitUses.length, 15)
    assert.isAtLeast(permitUses[0]!.at, 3_000)
  })
})
