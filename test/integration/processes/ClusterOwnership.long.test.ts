import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as ClusterOwnership from "../../../src/processes/ClusterOwnership.ts"
import { bucketCount } from "../../../src/processes/Ownership.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { ownershipContract } from "../../processes/ownershipContract.ts"
import { makeGate } from "../../support/gate.ts"
import { testOf } from "../../support/suite.ts"
import { databaseUrl, layerWarehouse, otherProcess, processAt, sql } from "../../support/postgres.ts"
import { until, untilTrue } from "../../support/until.ts"

/** A process that owns buckets until the end of the scope. */
const join = (database: Database["Service"], keeper: (bucket: number) => Effect.Effect<never> = () => Effect.never) =>
  Layer.build(Layer.fresh(ClusterOwnership.make(database).layer(keeper)))

layer(layerWarehouse, { excludeTestServices: true, timeout: "60 seconds" })("ownership by the engine", (it) => {
  const test = testOf(it)
  ownershipContract((title, effect) => it.effect(title, effect), {
    make: () => Effect.map(otherProcess, ClusterOwnership.make),
    takesOver: true,
    isExclusive: true
  })

  test("gives each process an identity of its own, and a process that starts again its former one", function* () {
    const areRegistered = (...expected: ReadonlyArray<string>) =>
      until(
        `${expected.join(" and ")} are registered`,
        Effect.map(
          Effect.orDie(sql<{ address: string }>`select address from tributary.cluster_runners order by address`),
          (rows) => rows.map(({ address }) => address)
        ),
        (addresses) => addresses.join() === expected.join()
      )
    const joinAnother = Effect.flatMap(otherProcess, (database) => join(database))
    yield* joinAnother
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* joinAnother
        yield* areRegistered("process-0:0", "process-1:0")
      })
    )
    yield* areRegistered("process-0:0")
    yield* joinAnother
    yield* areRegistered("process-0:0", "process-1:0")
  })

  test("owns its buckets again after a cut connection, over a slow network", function* () {
    const gate = yield* makeGate(yield* databaseUrl, 10)
    const database = yield* processAt(gate.url)
    const owned = new Set<number>()
    yield* join(database, (bucket) =>
      Effect.acquireUseRelease(
        Effect.sync(() => owned.add(bucket)),
        () => Effect.never,
        () => Effect.sync(() => owned.delete(bucket))
      )
    )
    const owns = (count: number) => untilTrue(`the process owns ${count} buckets`, () => owned.size === count)
    yield* owns(bucketCount)
    yield* gate.shut
    yield* owns(0)
    yield* gate.open
    yield* owns(bucketCount)
    // Another process joins and leaves: each time half of the locks change hands.
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* join(yield* otherProcess)
        yield* until(
          "the other process has its share",
          () => owned.size,
          (size) => size > bucketCount / 4 && size < (bucketCount * 3) / 4
        )
      })
    )
    yield* owns(bucketCount)
  })

  test("is not shared with processes on another warehouse", function* () {
    const other = yield* Layer.build(Layer.fresh(layerWarehouse))
    const owned = { here: 0, there: 0 }
    const joinAs = (name: keyof typeof owned) =>
      Effect.flatMap(Database, (database) =>
        join(database, () =>
          Effect.suspend(() => {
            owned[name] += 1
            return Effect.never
          })
        )
      )
    yield* joinAs("here")
    yield* Effect.provideContext(joinAs("there"), other)
    yield* untilTrue("both own every bucket", () => [owned.here, owned.there].every((count) => count === bucketCount))
    assert.deepStrictEqual(owned, { here: bucketCount, there: bucketCount })
  })
})
