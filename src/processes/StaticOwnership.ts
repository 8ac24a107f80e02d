/**
 * Ownership by configuration: the process with number `ordinal` of `processes` owns every bucket whose remainder is its
 * number. There is no takeover: the buckets of a dead process wait for its restart, as those of a pod of a StatefulSet do.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { bucketCount, type Ownership, parallelScope, runKeeper } from "./Ownership.ts"

export const make = ({
  ordinal,
  processes
}: {
  /** From 0. */
  readonly ordinal: number
  readonly processes: number
}): Ownership<never> => ({
  layer: (keeper) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        const scope = yield* parallelScope
        for (let bucket = ordinal; bucket < bucketCount; bucket += processes) {
          yield* Effect.forkIn(runKeeper(keeper, bucket), scope)
        }
      })
    )
})
