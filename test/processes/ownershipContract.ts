/** The contract of every implementation of `src/processes/Ownership.ts`. */
import { assert } from "@effect/vitest"
import { Clock, Effect, Exit, Latch, Layer, Scope } from "effect"
import { bucketCount, type Keeper, type Ownership } from "../../src/processes/Ownership.ts"
import { flowing, until } from "../support/until.ts"

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

/** Starts a process, and waits until every keeper runs. `end` is what a keeper does when it is stopped. */
const startCounted = Effect.fnUntraced(function* <E>(
  counts: { running: number },
  ownership: Ownership<E>,
  end: (bucket: number) => Effect.Effect<void>
) {
  const process = yield* start(ownership, (bucket) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        counts.running += 1
      }),
      () => end(bucket)
    ).pipe(Effect.andThen(Effect.never))
  )
  yield* until(
    "every keeper runs",
    Effect.sync(() => counts.running),
    (count) => count === bucketCount
  )
  return process
})

/** The effect, while the time of the test passes: the test clock moves, or it is that of the machine. */
const passing = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Clock.Clock, (clock) => ("adjust" in clock ? flowing(effect) : effect))

const ownsAll = (record: Record) =>
  until(
    "every bucket has an owner",
    Effect.sync(() => record.owned()),
    (owned) => owned === bucketCount
  )

interface Implementation<E, R> {
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
      const areEnding = yield* Latch.make()
      const counts = { running: 0, ending: 0 }
      // A keeper ends when every other one is ending too.
      const end = Effect.gen(function* () {
        counts.ending += 1
        if (counts.ending === bucketCount) yield* areEnding.open
        yield* areEnding.await
        counts.running -= 1
      })
      const { stop } = yield* startCounted(counts, yield* make(0, 1), () => end)
      yield* passing(stop)
      assert.strictEqual(counts.running, 0)
    }))

  test("does not wait for a keeper that hangs", () =>
    Effect.gen(function* () {
      const hangs = (bucket: number) => (bucket === 1 ? Effect.never : Effect.void)
      const { stop } = yield* startCounted({ running: 0 }, yield* make(0, 1), hangs)
      yield* passing(stop)
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
