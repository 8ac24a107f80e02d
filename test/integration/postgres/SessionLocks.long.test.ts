import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { makeGate } from "../../support/gate.ts"
import { databaseUrl, layerDatabase, processAt } from "../../support/postgres.ts"

layer(layerDatabase, { excludeTestServices: true, timeout: "60 seconds" })("the locks of a process", (it) => {
  it.effect(
    "do not wait for ever for a server that does not answer",
    () =>
      Effect.gen(function* () {
        const gate = yield* makeGate(yield* databaseUrl)
        const { locks } = yield* processAt(gate.url)
        assert.isTrue(yield* locks.tryLock("acquired before"))
        yield* gate.hang
        const fiber = yield* Effect.forkChild(Effect.scoped(locks.tryLock("not answered")))
        yield* Effect.sleep(100)
        const beganAt = performance.now()
        yield* Fiber.interrupt(fiber)
        yield* gate.open
        assert.isBelow(performance.now() - beganAt, 35_000)
        assert.isFalse(locks.has("not answered"))
        assert.isTrue(yield* Effect.scoped(locks.tryLock("not answered")))
        assert.isTrue(locks.has("acquired before"))
      }),
    60_000
  )
})
