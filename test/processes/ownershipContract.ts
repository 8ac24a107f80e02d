/** The contract of every implementation of `src/processes/Ownership.ts`. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { bucketCount, type Keeper, type Ownership } from "../../src/processes/Ownership.ts"
import { until } from "../support/until.ts"

/** The owners of each bucket, and what happened to its keepers. */
class Record {
  readonly owners = Array.from({ length: bucketCount }, () => new Set<string>())
  /** Buckets that had two owners at a time. */
  readonly shared = new Set<number>()
  starts = 0

  keeper(process: string): Keeper<Scope.Scope> {
    return (bucket) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          this.starts += 1
          this.owners[bucket]!.add(process)
          if (this.owners[bucket]!.size > 1) this.shared.add(bucket)
        }),
        () => Effect.sync(() => this.owners[bucket]!.delete(process))
      ).pipe(Effect.andThen(Effect.never))
  }

  /** The number of buckets that a process owns, or that all of them own. */
  owned(process?: string): number {
    return this.owners.filter((names) => (process === undefined ? names.size > 0 : names.has(process))).length
  }
}

/** Starts a process in a scope of its own; closing it stops the process. */
const start = Effect.fnUntraced(function* <E>(ownership: Ownership<E>, keeper: Keeper<Scope.Scope>) {
  const scope = yield* Effect.acquireRelease(Scope.make(), (made) => Scope.close(made, Exit.void))
  yield* Layer.buildWithScope(Layer.fresh(ownership.layer(keeper)), scope)
  return { stop: Scope.close(scope, Exit.void) }
})

const ownsAll = (record: Record) =>
  until(
    "every bucket has an owner",
    Effect.sync(() => record.owned()),
    (owned) => owned === bucketCount
  )

export interface Implementation<E, R> {
  /** The ownership of one process of several. */
  readonly make: (ordinal: number, processes: number) => Effect.Effect<Ownership<E>, E, R>
  /** Whether other processes take over the buckets of a process that ended. */
  readonly takesOver: boolean
  /** Whether a bucket has at most one owner, while no process is frozen. */
  readonly isExclusive: boolean
}

/** The tests of the contract; `R` is provided by the caller's layer. */
export const ownershipContract = <E, R>(
  test: (title: string, effect: () => Effect.Effect<unknown, E, R | Scope.Scope>) => void,
  { make, takesOver, isExclusive }: Implementation<E, R>
) => {
  test("gives every bucket to a single process", () =>
    Effect.gen(function* () {
      const record = new Record()
      yield* start(yield* make(0, 1), record.keeper("a"))
      yield* ownsAll(record)
    }))

  test("starts a keeper again that fails, dies or ends", () =>
    Effect.gen(function* () {
      const starts = [0, 0, 0]
      yield* start(yield* make(0, 1), (bucket) => {
        if (bucket > 2) return Effect.never
        starts[bucket]! += 1
        if (starts[bucket]! > 1) return Effect.never
        return [Effect.fail("failure"), Effect.die("defect"), Effect.void][bucket]!
      })
      yield* until(
        "each keeper starts twice",
        Effect.sync(() => [...starts]),
        (all) => all.every((count) => count === 2)
      )
    }))

  test("ends all keepers at the same time, and waits for them", () =>
    Effect.gen(function* () {
      let running = 0
      const { stop } = yield* start(yield* make(0, 1), () =>
        Effect.acquireRelease(
          Effect.sync(() => {
            running += 1
          }),
          () =>
            Effect.andThen(
              Effect.sleep(200),
              Effect.sync(() => {
                running -= 1
              })
            )
        ).pipe(Effect.andThen(Effect.never))
      )
      yield* until(
        "every keeper runs",
        Effect.sync(() => running),
        (count) => count === bucketCount
      )
      const began = performance.now()
      yield* stop
      assert.strictEqual(running, 0)
      assert.isBelow(performance.now() - began, 5_000)
    }))

  test("does not wait for a keeper that hangs", () =>
    Effect.gen(function* () {
      let running = 0
      const { stop } = yield* start(yield* make(0, 1), (bucket) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            running += 1
          }),
          () => (bucket === 1 ? Effect.sleep("30 seconds") : Effect.void)
        ).pipe(Effect.andThen(Effect.never))
      )
      yield* until(
        "every keeper runs",
        Effect.sync(() => running),
        (count) => count === bucketCount
      )
      const began = performance.now()
      yield* stop
      assert.isBelow(performance.now() - began, 10_000)
    }))

  test("divides the buckets between processes", () =>
    Effect.gen(function* () {
      const record = new Record()
      const names = ["a", "b", "c"]
      const processes = yield* Effect.forEach(names, (name, ordinal) =>
        Effect.flatMap(make(ordinal, names.length), (ownership) => start(ownership, record.keeper(name)))
      )
      yield* until(
        "each process has its share",
        Effect.sync(() => [record.owned(), ...names.map((name) => record.owned(name))]),
        ([all, ...shares]) => all === bucketCount && shares.every((share) => share > bucketCount / 4)
      )
      if (takesOver) {
        yield* processes[0]!.stop
        assert.strictEqual(record.owned("a"), 0)
        yield* ownsAll(record)
      }
      if (isExclusive) assert.deepStrictEqual([...record.shared], [])
    }))
}
