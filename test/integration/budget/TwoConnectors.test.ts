/**
 * Two connectors with one token, as in two processes, on a reference server with a small limit and one Postgres.
 * Minutes pass in virtual time: the clock advances when only timers are left to wait for.
 */
import { assert, layer } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import * as ServiceClient from "../../../connectors/service-v2/client/ServiceClient.ts"
import { core } from "../../../connectors/service-v2/reference-server/Core.ts"
import * as Budget from "../../../src/budget/Budget.ts"
import type { PermitStore } from "../../../src/budget/PermitStore.ts"
import * as PostgresPermitStore from "../../../src/budget/PostgresPermitStore.ts"
import { fingerprintOf } from "../../../src/budget/TokenFingerprint.ts"
import { layerWarehouse } from "../../support/postgres.ts"

const beganAt = Date.parse("2026-03-16T09:00:00Z")
const base = "http://127.0.0.1/!/api/v2"

const warehouse = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`create table public.test_clock as select to_timestamp(${beganAt}::float8 / 1000) as at`
    yield* sql.unsafe(
      "create or replace function tributary.now() returns timestamptz language sql volatile parallel safe as 'select at from public.test_clock'"
    )
  })
).pipe(Layer.provideMerge(layerWarehouse))

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** A clock that stops between the settings of its time. */
const virtualTime = () => {
  const sleepers = new Set<Sleeper>()
  let now = beganAt
  const nanos = () => BigInt(Math.round(now * 1e6))
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.sync(() => now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.callback<void>((resume) => {
        const sleeper = { at: now + Duration.toMillis(duration), wake: () => resume(Effect.void) }
        sleepers.add(sleeper)
        return Effect.sync(() => sleepers.delete(sleeper))
      })
  }
  return {
    clock,
    now: () => now,
    /** The time of the next timer. */
    next: () => Math.min(...[...sleepers].map(({ at }) => at)),
    set: (at: number) => {
      now = at
      for (const sleeper of sleepers) {
        if (sleeper.at > at) continue
        sleepers.delete(sleeper)
        sleeper.wake()
      }
    }
  }
}

const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

layer(warehouse, { excludeTestServices: true, timeout: "30 seconds" })("two connectors with one token", (it) => {
  /** The requests that reach the server in a number of minutes. Another program sends one every `otherEveryMs`. */
  const observe = Effect.fnUntraced(function* (options: {
    readonly limit: number
    readonly minutes: number
    readonly otherEveryMs: number | null
  }) {
    const sql = yield* SqlClient.SqlClient
    const time = virtualTime()
    const server = core({ now: () => time.now() * 1000 })
    const control = (method: string, path: string, body: unknown) =>
      server.control({ method, url: path, headers: {}, body: Buffer.from(JSON.stringify(body)) })
    control("PUT", "/limits", { requestsPerMinute: options.limit })
    const { token } = JSON.parse(control("POST", "/tokens", { company: 1, scopes: ["*"] }).body) as { token: string }
    const arrivals: Array<{ readonly at: number; readonly status: number; readonly by: string }> = []
    const handle = (by: string, url: string) => {
      const { status, headers, body } = server.handle({
        method: "GET",
        url,
        headers: { authorization: `Bearer ${token}` },
        body: null
      })
      arrivals.push({ at: time.now() - beganAt, status, by })
      return new Response(body, { status, headers })
    }
    let requests = 0
    const http = HttpClient.make((request, url) =>
      Effect.gen(function* () {
        // The way to the server takes 10 to 309 ms, the way back 20 ms.
        requests += 1
        yield* Effect.sleep(10 + ((requests * 137) % 300))
        const answer = handle("ours", url.pathname + url.search)
        yield* Effect.sleep(20)
        return HttpClientResponse.fromWeb(request, answer)
      })
    )

    let callsInFlight = 0
    const name = fingerprintOf(base, Redacted.make(token), "token")
    const shared = PostgresPermitStore.make(sql, name, { perMinute: options.limit })
    const counted = <A, E>(effect: Effect.Effect<A, E>) =>
      Effect.acquireUseRelease(
        Effect.sync(() => (callsInFlight += 1)),
        () => effect,
        () => Effect.sync(() => (callsInFlight -= 1))
      )
    const ledger: PermitStore = {
      ...shared,
      lease: (request) => counted(shared.lease(request)),
      pause: (request) => counted(shared.pause(request))
    }
    const connector = Effect.gen(function* () {
      const budget = yield* Budget.fromPermitStore(ledger)
      return yield* ServiceClient.make({ baseUrl: base, token: Redacted.make(token), catalogue: serviceV2 }).pipe(
        Effect.provideService(HttpClient.HttpClient, http),
        Effect.provideService(Budget.Budget, budget)
      )
    })
    const failures: Array<unknown> = []
    const work = Effect.gen(function* () {
      for (const kind of ["backfill", "backfill"] as const) {
        const { identify } = yield* connector
        const reader = Effect.provideService(Effect.forever(identify), Budget.Priority, { class: kind, dueAt: 0 })
        for (let index = 0; index < 2; index++) {
          yield* Effect.forkScoped(
            Effect.catchTag(reader, "SourceError", (error) => Effect.sync(() => void failures.push(error)))
          )
        }
      }
      if (options.otherEveryMs !== null) {
        const pauseMs = options.otherEveryMs
        yield* Effect.forkScoped(
          Effect.forever(
            Effect.andThen(
              Effect.sleep(pauseMs),
              Effect.sync(() => handle("other", "/!/api/v2/me"))
            )
          )
        )
      }
    }).pipe(Effect.provideService(Clock.Clock, time.clock))

    const end = beganAt + options.minutes * 60_000
    yield* sql`update public.test_clock set at = to_timestamp(${beganAt}::float8 / 1000)`
    yield* work
    for (;;) {
      // Idle means: no open query, and several turns of the event loop without new work.
      for (let quiet = 0; quiet < 6; quiet = callsInFlight > 0 ? 0 : quiet + 1) yield* turn
      const next = time.next()
      if (next > end) break
      yield* sql`update public.test_clock set at = to_timestamp(${next}::float8 / 1000)`
      time.set(next)
    }
    assert.deepStrictEqual(failures, [])
    const [row] = yield* sql<{ effective_per_minute: number; rate_limited_count: bigint }>`
      select effective_per_minute, rate_limited_count from tributary.budgets where fingerprint = ${name}`
    return { arrivals, row: row! }
  }, Effect.scoped)

  it.effect("cause no 429 and use at least 98 % of the limit", () =>
    Effect.gen(function* () {
      const limit = 60
      const minutes = 3
      const { arrivals } = yield* observe({ limit, minutes, otherEveryMs: null })
      assert.deepStrictEqual(
        arrivals.filter(({ status }) => status !== 200),
        []
      )
      assert.isAtLeast(arrivals.length / (limit * minutes), 0.98)
    })
  )

  it.effect("slow down for another program, and send nothing before Retry-After has passed", () =>
    Effect.gen(function* () {
      const limit = 60
      const { arrivals, row } = yield* observe({ limit, minutes: 4, otherEveryMs: 3_000 })
      const ours = arrivals.filter(({ by }) => by === "ours")
      const refused = ours.filter(({ status }) => status === 429)
      assert.isAtLeast(refused.length, 1)
      assert.isAtMost(refused.length, 12)
      assert.isAtLeast(ours.length - refused.length, 0.4 * limit * 4)
      assert.isBelow(row.effective_per_minute, limit)
      assert.isAtLeast(Number(row.rate_limited_count), 1)
      for (const { at } of refused) {
        // No request arrives for at least a second, except requests in flight (at most 310 ms) and the time of the
        // response's way back.
        assert.deepStrictEqual(
          ours.filter((one) => one.at > at + 340 && one.at < at + 1_000),
          [],
          `after the 429 at ${at}`
        )
      }
    })
  )
})
