/**
 * Ownership of companies: which process does the background work of which company.
 *
 * Companies are divided into a fixed number of buckets. An implementation runs a keeper for each bucket that its process
 * owns.
 *
 * Promise: while a process lives, each bucket has an owner, and the processes share the buckets. A keeper that fails
 * starts again. A bucket gets its next owner after its keeper has ended, finalizers included, or after
 * {@link stopMaxMs}: a keeper that hangs, as while the warehouse does not answer, holds back no other bucket. All keepers
 * of a process end at the same time, not one after the other.
 *
 * Ownership saves work and requests; correctness does not rest on it. A process that was frozen may wake as a second owner
 * for a moment: the fence of the checkpoint decides which process writes.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Supervisor from "./Supervisor.ts"

/** The number of buckets: the same in every process and in every version of the program. */
export const bucketCount = 256

/** The bucket of a company, from 0: FNV-1a over the UTF-8 bytes of its name. */
export const bucketOf = (company: string): number => {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(company)) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0) % bucketCount
}

/** The background work of the companies in a bucket, until it is interrupted. */
export type Keeper<R> = (bucket: number) => Effect.Effect<unknown, unknown, R>

/** Runs the keeper of each owned bucket, until the end of the layer. */
export interface Ownership<E> {
  readonly layer: <R>(keeper: Keeper<R>) => Layer.Layer<never, E, Exclude<R, Scope.Scope>>
}

/** The longest wait for work that was interrupted. It goes on ending; the fence of the checkpoint protects its rows. */
const stopMaxMs = 3_000

/** Interrupts work, and waits for its end within {@link stopMaxMs}. */
export const stop = (fiber: Fiber.Fiber<unknown>) =>
  Fiber.interrupt(fiber).pipe(Effect.interruptible, Effect.timeoutOption(stopMaxMs))

/** A keeper in a scope of its own, which starts again when it fails or ends. */
export const runKeeper = <R>(
  keeper: Keeper<R>,
  bucket: number
): Effect.Effect<never, never, Exclude<R, Scope.Scope>> => {
  const kept = Supervisor.runForever(`bucket ${bucket}`, Effect.scoped(Effect.suspend(() => keeper(bucket))))
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(Effect.interruptible(kept)), (fiber) =>
      Effect.onInterrupt(restore(Fiber.join(fiber)), () => stop(fiber))
    )
  )
}

/** A scope whose finalizers run at the same time, within the current one. */
export const parallelScope: Effect.Effect<Scope.Scope, never, Scope.Scope> = Effect.acquireRelease(
  Scope.make("parallel"),
  (scope) => Scope.close(scope, Exit.void)
)
