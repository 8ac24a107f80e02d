/** Commands behind PgBouncer. Transaction mode: exit code 2 and no change. Session mode: commands work. */
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Redacted, type Scope } from "effect"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import * as pgbouncer from "../support/pgbouncer.ts"
import { freshDatabase, sql } from "../support/postgres.ts"
import { firstLine, type ReferenceProcess, startCommand, startReference } from "../support/reference.ts"
import { liveTest } from "../support/live.ts"
import { temporaryFolder } from "../support/servers.ts"

interface Place {
  readonly run: (...args: ReadonlyArray<string>) => ReturnType<typeof startCommand>
  readonly direct: Redacted.Redacted
}

/** Commands whose warehouse is behind a PgBouncer in this mode. */
const placed = (mode: "session" | "transaction", poolSize: number): Effect.Effect<Place, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const direct = yield* freshDatabase
    const url = yield* pgbouncer.pooled(direct, mode, poolSize)
    const reference: ReferenceProcess = yield* Effect.acquireRelease(
      Effect.promise(() => startReference(["--data", "demo"])),
      (one) => Effect.promise(one.stop)
    )
    const token = yield* Effect.promise(() => reference.token(1))
    const folder = yield* temporaryFolder
    const env = {
      SERVICE_API_URL: reference.baseUrl,
      SERVICE_API_TOKEN: token,
      DATABASE_URL: `${Redacted.value(url)}?sslmode=disable`
    }
    return { direct, run: (...args) => startCommand(args, { cwd: folder, env }) }
  })

const queryRows = <Row extends object>(url: Redacted.Redacted, text: string) =>
  sql.unsafe<Row>(text).pipe(Effect.provide(Layer.provideMerge(sqlLayer, Database.layerUrl(url))))

const resources = ["areas", "salesmen", "customers"]

describe.skipIf(pgbouncer.absent !== null)("the commands behind PgBouncer", () => {
  liveTest("end with code 2 and change nothing in transaction mode", function* () {
    const { run, direct } = yield* placed("transaction", 6)
    for (const args of [
      ["sync", ...resources],
      ["serve", "--listen", "127.0.0.1:0", "--dashboard", "off"]
    ]) {
      const { code, stderr } = yield* Effect.promise(() => run(...args).done)
      assert.strictEqual(code, 2, stderr)
      assert.match(stderr, /transaction pooler.*use the direct address/)
    }
    const doctor = yield* Effect.promise(() => run("doctor", "--json").done)
    assert.strictEqual(doctor.code, 2, doctor.stdout)
    assert.match(doctor.stdout, /transaction pooler/)
    const rows = yield* queryRows<{ schemas: number }>(
      direct,
      "select count(*)::int as schemas from pg_namespace where nspname in ('tributary', 'erp')"
    )
    assert.deepStrictEqual(rows, [{ schemas: 0 }])
  })

  liveTest("sync twice and serve in session mode", function* () {
    const { run, direct } = yield* placed("session", 40)
    // The role of the tests has the name of a dataset, in which Postgres' default path looks first.
    for (const full of [[], ["--full"]]) {
      const { code, stderr } = yield* Effect.promise(() => run("sync", ...resources, ...full).done)
      assert.strictEqual(code, 0, stderr)
    }
    const rows = yield* queryRows<{ quarantined: number; rows: number }>(
      direct,
      `select (select count(*)::int from tributary.quarantine) as quarantined,
                  (select count(*)::int from erp.customers) as rows`
    )
    assert.strictEqual(rows[0]!.quarantined, 0)
    assert.isAbove(rows[0]!.rows, 0)
    const serve = run("serve", "--listen", "127.0.0.1:0", "--dashboard", "off", "--json")
    const ready = yield* Effect.promise(() => firstLine(serve))
    assert.match(ready, /"ready":true/)
    serve.child.kill("SIGTERM")
    const { code, stderr } = yield* Effect.promise(() => serve.done)
    assert.strictEqual(code, 0, stderr)
  })
})
