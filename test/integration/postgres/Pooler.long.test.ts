/**
 * Connections through PgBouncer: refused at the first connection in transaction mode, fully supported in session mode.
 */
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as pgbouncer from "../../support/pgbouncer.ts"
import { freshDatabase, sql } from "../../support/postgres.ts"
import { liveTest } from "../../support/live.ts"

/** The result of connecting as the program does. */
const connecting = (url: Redacted.Redacted) =>
  Effect.gen(function* () {
    const { locks, landings, budget } = yield* Database
    const [row] = yield* sql<{ one: number }>`select 1 as one`
    const isLocked = yield* Effect.scoped(locks.tryLock("a lock"))
    const seen = yield* landings.use({ class: 0, party: "1", dueAt: 0 }, (client) =>
      Effect.promise(() => client.query<{ jit: string }>("select 1"))
    )
    return { one: row!.one, isLocked, rows: seen.rowCount, connections: (yield* budget).connections }
  }).pipe(Effect.provide(Layer.provideMerge(sqlLayer, Database.layerUrl(url))), Effect.scoped)

describe.skipIf(pgbouncer.absent !== null)("a database connection through PgBouncer", () => {
  for (const mode of ["transaction", "statement"] as const) {
    for (const poolSize of [1, 6]) {
      liveTest(`is refused in ${mode} mode with ${poolSize} sessions`, function* () {
        const url = yield* pgbouncer.pooled(yield* freshDatabase, mode, poolSize)
        const error = yield* Effect.flip(connecting(url))
        assert.strictEqual(error._tag, "DatabaseError")
        assert.match(error.message, /is behind a transaction pooler.*use the direct address/)
        assert.isFalse("isRetryable" in error && error.isRetryable, "so that a command ends with code 2")
        assert.notInclude(error.message, Redacted.value(url))
      })
    }
  }

  liveTest("supports locks, queries and the pool in session mode", function* () {
    const url = yield* pgbouncer.pooled(yield* freshDatabase, "session", 40)
    const { one, isLocked, rows, connections } = yield* connecting(url)
    assert.deepStrictEqual([one, isLocked, rows], [1, true, 1])
    assert.isAbove(connections, 7)
  })
})
