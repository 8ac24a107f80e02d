/**
 * A store that counts the permits of one token.
 *
 * Promise: all grants of a store together stay within the limit, by the rule in `PermitPolicy.ts`. Every lease after the report of
 * a pause is answered with that pause.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { firstPauseMaxMs, type PauseRequest, type PermitGrant, type PermitRequest } from "./PermitPolicy.ts"

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

/** The window of the limit. */
const windowMs = 60_000
/**
 * A permit counts this much longer than the window, since requests take different times to arrive: one that is sent
 * late and fast must not overtake one that was sent a minute before and slowly.
 */
const guardMs = 500
/** How long a permit counts. */
export const spanMsDefault = windowMs + guardMs

const noPermits = { urgent: 0, live: 0, backfill: 0 }

/** A store without a limit, for one process: it keeps pauses, up to the cap of a first one. */
export const unlimited = (now: () => number): PermitStore => {
  let pausedUntil = 0
  return {
    perMinute: null,
    cacheMaxMs: Number.POSITIVE_INFINITY,
    lease: ({ wanted }) =>
      Effect.sync(() => {
        const pausedMs = Math.max(0, pausedUntil - now())
        return {
          leaseId: null,
          granted: pausedMs > 0 ? noPermits : wanted,
          waitMs: 0,
          pausedMs,
          effectivePerMinute: Number.POSITIVE_INFINITY,
          pausedBy: null,
          isProbe: false,
          releases: 0
        }
      }),
    pause: (request) =>
      Effect.sync(() => {
        const at = now()
        pausedUntil = Math.max(pausedUntil, at + Math.min(request.statedMs, firstPauseMaxMs(request)))
        return pausedUntil - at
      }),
    endProbe: () => Effect.void
  }
}
