import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { bucketCount } from "../../src/processes/Ownership.ts"
import * as FaultyOwnership from "./FaultyOwnership.ts"
import { ownershipContract } from "./ownershipContract.ts"
import { test } from "../support/suite.ts"

const buckets = Array.from({ length: bucketCount }, (_, bucket) => bucket)

describe("faulty ownership", () => {
  describe("that does not err", () => {
    ownershipContract<never, never>((title, effect) => it.effect(title, effect), {
      make: () => Effect.succeed(FaultyOwnership.make({ buckets, isOff: () => true, onStop: () => {} })),
      takesOver: false,
      isExclusive: false
    })
  })

  test("gives a bucket one owner, several, or none, and stops every keeper that it started", function* () {
    let owners = 0
    let stops = 0
    const seen = new Set<number>()
    const note = (change: number) =>
      Effect.sync(() => {
        owners += change
        seen.add(owners)
      })
    const { layer } = FaultyOwnership.make({
      buckets: [7],
      isOff: () => false,
      onStop: () => {
        stops += 1
      }
    })
    const process = Layer.build(
      Layer.fresh(
        layer(() =>
          Effect.andThen(
            Effect.acquireRelease(note(1), () => note(-1)),
            Effect.never
          )
        )
      )
    )
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* process
        yield* process
        for (let second = 0; second < 600; second += 1) yield* TestClock.adjust("1 second")
      })
    )
    assert.deepStrictEqual(
      [...seen].toSorted((a, b) => a - b),
      [0, 1, 2]
    )
    assert.isAbove(stops, 20)
    assert.strictEqual(owners, 0)
  })
})
