/**
 * A store that counts the permits of one token.
 *
 * Promise: all grants of a store together stay within the limit, by the rule of `PermitPolicy.ts`. Every lease after the
 * report of a pause is answered with that pause.
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import {
  type PermitRequest,
  endProbe,
  type PermitGrant,
  guardMs,
  pause,
  type PauseRequest,
  leasePermits,
  emptyPermitState,
  windowMs
} from "./PermitPolicy.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** The store did not answer; the caller knows of no grant. */
export class PermitStoreError extends Data.TaggedError("PermitStoreError")<{ readonly detail: string }> {}

export interface PermitStore {
  /** The limit; null for none but Retry-After. */
  readonly perMinute: number | null
  /** Leases permits. Without a limit every wanted one is granted, except in a pause. */
  readonly lease: (request: PermitRequest) => Effect.Effect<PermitGrant, PermitStoreError>
  /** Pauses all requests, up to the cap; returns how long the pause still lasts. */
  readonly pause: (request: PauseRequest) => Effect.Effect<number, PermitStoreError>
  /** Ends the probe that this store granted. */
  readonly endProbe: (request: string, isAnswered: boolean) => Effect.Effect<void, PermitStoreError>
  /** How long a process may keep a permit that no request waits for yet, or rely on the absence of a pause. */
  readonly cacheMaxMs: number
}

export interface PermitStoreOptions {
  /** Null for no limit but Retry-After. */
  readonly perMinute: number | null
  /** How long a permit counts, for tests that cannot wait for minutes. */
  readonly spanMs?: number | undefined
}

export const spanMsDefault = windowMs + guardMs

/** A store for one process alone. */
export const memory = (options: PermitStoreOptions): Effect.Effect<PermitStore> =>
  Effect.map(Clock.Clock, (clock) => {
    const { perMinute } = options
    const spanMs = options.spanMs ?? spanMsDefault
    const now = () => MonotonicClock.nowMs(clock)
    let state = emptyPermitState
    let leases = 0n
    return {
      perMinute,
      cacheMaxMs: Number.POSITIVE_INFINITY,
      lease: (request) =>
        Effect.sync(() => {
          const [next, grant] = leasePermits(state, request, perMinute, now(), spanMs, (leases += 1n))
          state = next
          return grant
        }),
      pause: (request) =>
        Effect.sync(() => {
          const at = now()
          state = pause(state, request, perMinute, at, spanMs)
          return Math.max(0, state.pausedUntil - at)
        }),
      endProbe: (request, isAnswered) =>
        Effect.sync(() => {
          state = endProbe(state, request, isAnswered)
        })
    } satisfies PermitStore
  })
