/** A second source with the same engine: sync, verify, repair and push. */
import { assert } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { enqueue } from "../../../src/outbox/Enqueue.ts"
import { push } from "../../../src/outbox/OutboxWorker.ts"
import { settingsDefault } from "../../support/pushSettings.ts"
import type { Operation } from "../../../src/outbox/Push.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { verifyResource } from "../../../src/verify/Verify.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { flowing } from "../../support/until.ts"
import { entries } from "./catalogue.ts"
import { makeLedger } from "./LedgerConnector.ts"
import { LedgerServer } from "./LedgerServer.ts"
import { valuesOf } from "../../support/rows.ts"
import { assertCount, assertEach } from "../../support/assertions.ts"

const table = tableOf(entries)

const makeWorld = Effect.gen(function* () {
  const server = new LedgerServer()
  const address = yield* Effect.acquireRelease(
    Effect.promise(() => server.listen()),
    () => Effect.promise(() => server.close())
  )
  for (let entryno = 1; entryno <= 7; entryno += 1) {
    server.put({ entryno, reference: `r${entryno}`, amount: `${entryno}.5000` })
  }
  const connector = makeLedger(address, server.token)
  const company = { name: "books", connector, engine: engineDefault, batchRecordsMax: 100 }
  const companyId = 7n
  return {
    server,
    sync: (full = false) =>
      Effect.map(
        flowing(
          sync({
            companies: [{ name: company.name, connector, resources: [entries] }],
            datasets: datasetsDefault,
            concurrency: 1,
            batchRecordsMax: 100,
            mode: { full }
          })
        ),
        ({ companies }) => companies[0]!.outcomes[0]!
      ),
    verify: flowing(verifyResource({ companyId, connector, table, sample: null, seed: 1, repair: null })),
    push: Effect.fnUntraced(function* (operation: Operation, ...records: ReadonlyArray<object>) {
      const inputs = records.map((record, at) => ({
        _tag: "Json" as const,
        line: at + 1,
        json: JSON.stringify(record),
        nullIsAbsent: false
      }))
      const problems: Array<string> = []
      const { pushId } = yield* enqueue({
        company: company.name,
        resource: entries,
        operation,
        source: "test",
        records: Stream.fromIterable(inputs),
        onProblem: ({ message }) => Effect.sync(() => problems.push(message))
      })
      assert.deepStrictEqual(problems, [])
      yield* flowing(
        push({ company, companyId, table, children: [], settings: settingsDefault, scope: { push: pushId } })
      )
      return yield* sql<{ readonly outcome: string | null; readonly reason: string | null }>`
        select outcome, reason from tributary.outbox where push_id = ${pushId} order by line`
    }),
    rows: sql<{ readonly id: bigint; readonly amount: string; readonly version: bigint; readonly deleted: boolean }>`
      select id, amount::text as amount, _version as version, _deleted_at is not null as deleted
        from erp.entries where _company_id = 7 order by id`
  }
})

const briefly = Effect.map((rows: ReadonlyArray<{ id: bigint; amount: string; version: bigint; deleted: boolean }>) =>
  rows.map(({ id, amount, version, deleted }) => `${id} ${amount} v${version}${deleted ? " deleted" : ""}`)
)

suite("a second connector", layerWarehouse, (test) => {
  test("is synced, verified and written to by the same engine", function* () {
    const world = yield* makeWorld
    const { server } = world

    // A full scan by page number, with a fault and a removal that moves records between pages.
    let faults = 1
    server.intercept = (request) => {
      if (request.includes("page=2") && server.entries.has(1)) server.remove(1)
      return request.includes("page=2") && faults-- > 0 ? { status: 503, body: "busy" } : null
    }
    assert.deepInclude(yield* world.sync(), { status: "done", kind: "full" })
    server.intercept = () => null
    assert.deepStrictEqual(yield* briefly(world.rows), [
      "1 1.5000 v2 deleted",
      ...[2, 3, 4, 5, 6, 7].map((id) => `${id} ${id}.5000 v1`)
    ])

    // An incremental sync reads only the changed record.
    server.put({ entryno: 2, reference: "r2", amount: "20.0000" })
    assert.deepInclude(yield* world.sync(), { status: "done", kind: "incremental" })
    assert.isTrue(server.requests.at(-1)!.includes("since="))
    assert.strictEqual((yield* briefly(world.rows))[1], "2 20.0000 v2")

    // Verify and a full scan detect a removed record.
    server.remove(3)
    assert.deepInclude(yield* world.verify, { status: "unequal", surplus: 1 })
    yield* world.sync(true)
    assert.strictEqual((yield* briefly(world.rows))[2], "3 3.5000 v2 deleted")
    assert.deepInclude(yield* world.verify, { status: "equal", source: 5, warehouse: 5 })

    // A record that does not fit is quarantined, and the others land.
    server.put({ entryno: 8, reference: "r8", amount: "a lot" })
    assert.deepInclude(yield* world.sync(), { status: "quarantined" })
    server.put({ entryno: 8, reference: "r8", amount: "8.0000" })
    assert.deepInclude(yield* world.sync(), { status: "done" })
    assert.deepInclude(yield* world.verify, { status: "equal", source: 6, quarantined: 0 })
  })
})

suite("a write to a second connector", layerWarehouse, (test) => {
  test("creates a record once after a lost response, and the warehouse has it", function* () {
    const world = yield* makeWorld
    const { server } = world
    yield* world.sync()
    // The response to the first request is lost. The idempotency key prevents a second write.
    server.answersToLose = 1
    const created = yield* world.push(
      "create",
      { reference: "n1", amount: "1.2500" },
      { reference: "r4", amount: "4.5000" },
      { reference: "n2", amount: "-1.0000" }
    )
    assertEach(created, ({ outcome, reason }) => outcome ?? reason, [
      "created",
      "adopted",
      "an amount is never negative"
    ])
    assertCount([...server.entries.values()], ({ reference }) => reference === "n1", 1)
    assert.deepInclude(yield* world.verify, { status: "equal", source: 8, warehouse: 8 })

    const updated = yield* world.push("update", { reference: "n1", amount: "2.0000" })
    assert.deepStrictEqual(valuesOf(updated, "outcome"), ["updated"])
    assert.strictEqual(server.entries.get(8)?.amount, "2.0000")
    assert.deepInclude(yield* world.verify, { status: "equal", source: 8, warehouse: 8 })
  })
})
