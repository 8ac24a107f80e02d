/**
 * A store of the rate budget of one token: it applies {@link PermitRule} to the token's state, one change at a time.
 *
 * Promise: every change that begins after another one has ended sees it. A change that fails may have been stored.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { emptyState, type PermitGrant, type PermitRequest, type PermitState, take } from "./PermitRule.ts"

/** The store did not answer; the caller knows of no grant. */
export class PermitStoreError extends Data.TaggedError("PermitStoreError")<{ readonly detail: string }> {}

/** The next state and an answer, from the state at a time of the store's clock in milliseconds. */
export type Change<A> = (state: PermitState, nowMs: number) => readonly [PermitState, A]

export interface PermitStore {
  /** The limit; null for none but Retry-After. */
  readonly perMinute: number | null
  /** Whether other processes change the state too. */
  readonly isShared: boolean
  readonly change: <A>(change: Change<A>) => Effect.Effect<A, PermitStoreError>
  /** The change {@link take}, which is so frequent that a store may have a way of its own. */
  readonly take: (request: PermitRequest) => Effect.Effect<PermitGrant, PermitStoreError>
}

/**
 * A store of this process; `now` is the monotonic clock in milliseconds. A restart forgets the permits of the process
 * before, so that the source may answer 429 once.
 */
export const inMemory = (now: () => number, perMinute: number | null): PermitStore => {
  let state = emptyState(perMinute)
  const change = <A>(apply: Change<A>) =>
    Effect.sync(() => {
      const [next, answer] = apply(state, now())
      state = next
      return answer
    })
  return {
    perMinute,
    isShared: false,
    change,
    take: (request) => change((before, nowMs) => take(before, request, perMinute, nowMs))
  }
}
