/** The retry of a quarantined record, with a slow source and with another run for the resource. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Schedule, Scope } from "effect"
import { routes } from "../../src/dashboard/pages/Quarantine.ts"
import * as ResourceLock from "../../src/land/ResourceLock.ts"
import { ask } from "./asking.ts"
import { makeStand, stand, tables } from "./quarantined.ts"

/** Repeats the query until the condition holds, for at most 30 s. */
const until = <A, E, R>(look: Effect.Effect<A, E, R>, holds: (value: A) => boolean) =>
  look.pipe(Effect.repeat({ until: holds, schedule: Schedule.spaced("50 millis"), times: 600 }))

layer(stand, { excludeTestServices: true, timeout: "60 seconds" })("a quarantine retry", (it) => {
  it.effect("continues in the background if the source is slow", () =>
    Effect.gen(function* () {
      const { company, put, post, rows, source } = yield* makeStand()
      yield* put("salesmen", [{ id: 2, name: "repaired" }])
      const answers = Latch.makeUnsafe(false)
      source.state.before = answers.await
      const { said } = yield* ask(routes, [company], "/do/retry", post)
      assert.match(said!, /^It is still being read, which continues in the background/)
      assert.lengthOf(yield* rows, 1)
      yield* answers.open
      assert.lengthOf(yield* until(rows, (landedRows) => landedRows.length === 2), 2)
    })
  )

  it.effect("lands after the other run releases the resource", () =>
    Effect.gen(function* () {
      const { id, company, put, post, rows, sql } = yield* makeStand()
      yield* put("salesmen", [{ id: 2, name: "repaired" }])
      const other = yield* Scope.make()
      yield* ResourceLock.acquire({
        table: tables.get("salesmen")!,
        connector: company.connector,
        companyId: BigInt(id),
        lane: "records"
      }).pipe(Effect.provideService(Scope.Scope, other))
      const retryFiber = yield* Effect.forkChild(ask(routes, [company], "/do/retry", post))
      // Between two attempts to lock, its connection is idle.
      const looks = sql<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
         where datname = current_database() and state = 'idle' and query like 'select pg_try_advisory_lock%'`
      assert.strictEqual((yield* until(looks, ([row]) => row!.n > 0))[0]!.n, 1)
      assert.lengthOf(yield* rows, 1)
      yield* Scope.close(other, Exit.void)
      assert.strictEqual((yield* Fiber.join(retryFiber)).said, "It was read again and landed; it has left quarantine.")
    })
  )
})
