/**
 * The record of ownership for people: `tributary.bucket_owners`.
 *
 * Promise: the table has the buckets of this process within seconds. It decides nothing: a bucket of a killed process stays
 * recorded until its next owner replaces it.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"

export const storeStatement = Statement.make({
  name: "store the buckets of a process",
  params: ["text", "int4[]"],
  text: `with released as (
           delete from tributary.bucket_owners where process_id = $1 and bucket <> all($2::int[]))
         insert into tributary.bucket_owners as o (bucket, process_id)
         select bucket, $1 from unnest($2::int[]) as b(bucket)
             on conflict (bucket) do update set process_id = excluded.process_id, since = excluded.since
          where o.process_id <> excluded.process_id`
})

/** Many buckets change hands at the same time: one statement stores all of them. */
const gatherMs = 250
/** A former owner that stores late can replace a row of the next one, which stores its buckets again after this. */
const storeEveryMs = 3_000

export interface OwnedBuckets {
  /** The process owns the bucket until the end of the scope. */
  readonly own: (bucket: number) => Effect.Effect<void, never, Scope.Scope>
  /** Stores changes, for ever. */
  readonly store: Effect.Effect<never, DatabaseError, SqlClient>
}

export const make = (processId: string): OwnedBuckets => {
  const buckets = new Set<number>()
  const changed = Latch.makeUnsafe(false)
  const change = (apply: () => void) =>
    Effect.sync(() => {
      apply()
      changed.openUnsafe()
    })
  return {
    own: (bucket) =>
      Effect.acquireRelease(
        change(() => buckets.add(bucket)),
        () => change(() => buckets.delete(bucket))
      ),
    store: Effect.andThen(
      changed.open,
      Effect.forever(
        Effect.gen(function* () {
          yield* Effect.timeoutOption(changed.await, storeEveryMs)
          yield* Effect.sleep(gatherMs)
          yield* changed.close
          yield* Statement.run(storeStatement, [processId, [...buckets]])
        })
      )
    )
  }
}
