import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { bucketCount, bucketOf } from "../../src/processes/Ownership.ts"
import * as StaticOwnership from "../../src/processes/StaticOwnership.ts"
import { until } from "../support/until.ts"
import { ownershipContract } from "./ownershipContract.ts"
import { test } from "../support/suite.ts"

describe("static ownership", () => {
  ownershipContract<never, never>((title, effect) => it.effect(title, effect), {
    make: (ordinal, processes) => Effect.succeed(StaticOwnership.make({ ordinal, processes })),
    takesOver: false,
    isExclusive: true
  })

  test("gives a process the buckets of its number", function* () {
    const owned: Array<number> = []
    const { layer } = StaticOwnership.make({ ordinal: 1, processes: 100 })
    yield* Layer.build(
      layer((bucket) =>
        Effect.andThen(
          Effect.sync(() => owned.push(bucket)),
          Effect.never
        )
      )
    )
    yield* until(
      "its keepers run",
      Effect.sync(() => owned.length),
      (count) => count === 3
    )
    assert.deepStrictEqual(owned, [1, 101, 201])
  })
})

describe("the bucket of a company", () => {
  it("is the same in every version of the program", () => {
    assert.deepStrictEqual(["main", "north", "Größe & Söhne", ""].map(bucketOf), [8, 4, 117, 197])
  })

  it("divides companies evenly", () => {
    const counts = new Map<number, number>()
    for (let i = 0; i < 10_000; i++) {
      const bucket = bucketOf(`customer-${i}`)
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1)
    }
    assert.strictEqual(counts.size, bucketCount)
    assert.isBelow(Math.max(...counts.values()), 80)
  })
})
