/**
 * Ownership that errs, for the simulation and for tests of what does not rest on ownership.
 *
 * Each process draws for itself, bucket by bucket, how long it owns the bucket and how long it does not: a bucket has one
 * owner, several, or none, and its keeper may be stopped at any step. While `isOff` is true, every process owns every bucket.
 */
import { Effect, Layer, Random } from "effect"
import { type Keeper, type Ownership, parallelScope, runKeeper } from "../../src/processes/Ownership.ts"

export interface FaultyOptions {
  readonly buckets: Iterable<number>
  readonly isOff: () => boolean
  /** Called when a keeper is stopped although its process goes on. */
  readonly onStop: () => void
}

/** Each time is drawn from this interval, small values as often as large ones. */
const [leastMs, mostMs] = [20, 60_000]

const drawMs = Effect.map(Random.next, (share) => leastMs * (mostMs / leastMs) ** share)

const own = Effect.fnUntraced(function* <R>({ isOff, onStop }: FaultyOptions, keeper: Keeper<R>, bucket: number) {
  while (!isOff()) {
    yield* Effect.timeoutOption(runKeeper(keeper, bucket), yield* drawMs)
    onStop()
    if (!isOff()) yield* Effect.delay(Effect.void, yield* drawMs)
  }
  return yield* runKeeper(keeper, bucket)
})

export const make = (options: FaultyOptions): Ownership<never> => ({
  layer: (keeper) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        const scope = yield* parallelScope
        for (const bucket of options.buckets) yield* Effect.forkIn(own(options, keeper, bucket), scope)
      })
    )
})
