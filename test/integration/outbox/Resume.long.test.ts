/** Pushes while database connections are lost, and to a source that fails every write. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import { everyoneOnce, makeStand, people, stand } from "./stand.ts"

layer(stand, { timeout: 120_000, excludeTestServices: true })("a push", (it) => {
  it.effect("stops when the source fails every write, and the next push resumes it", () =>
    Effect.gen(function* () {
      const one = yield* makeStand()
      yield* one.insert(people(40))
      yield* one.faults({ kind: "status", status: 500, method: "POST", path: "/salesmen" })
      const settings = { batchRecordsMax: 8, concurrency: 1 }
      const stopped = yield* one.push(settings)
      assert.deepStrictEqual([stopped.status, stopped.failure?.kind], ["stopped", "FailsEveryWrite"])
      assert.strictEqual(stopped.counts.waiting + stopped.counts.sending, 40)
      yield* one.noFaults
      assert.strictEqual((yield* one.push(settings)).status, "done")
      yield* everyoneOnce(one, 40)
    })
  )

  it.effect("loses and duplicates no record when database connections are terminated", () =>
    Effect.gen(function* () {
      const one = yield* makeStand()
      yield* one.insert(people(1_500))
      let killed = 0
      const kill = Effect.gen(function* () {
        const gone =
          yield* one.sql`select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
                                     where l.locktype = 'advisory' and d.datname = current_database() and l.granted`
        killed += gone.length
      }).pipe(Effect.ignore)
      // Intervals that are independent of the statements.
      const killer = yield* Effect.forkChild(
        Effect.repeat(kill, Schedule.jittered(Schedule.spaced("170 millis")).pipe(Schedule.upTo({ times: 12 })))
      )
      const pushed = yield* one.push({ batchRecordsMax: 40 })
      yield* Fiber.interrupt(killer)
      const last = pushed.status === "done" ? pushed : yield* one.push({ batchRecordsMax: 40 })
      assert.strictEqual(last.status, "done")
      assert.isAbove(killed, 0)
      yield* everyoneOnce(one, 1_500)
    })
  )
})
