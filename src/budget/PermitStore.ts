/**
 * Where the permits of one token are counted.
 *
 * Promise: what a ledger grants to everybody together stays within the limit (see `Rule.ts`), and whoever asks after a
 * hold was reported is told of it.
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

/** The ledger cannot be reached; nothing was granted as far as the caller knows. */
export class PermitStoreError extends Data.TaggedError("PermitStoreError")<{ readonly detail: string }> {}

export interface PermitStore {
  /** The limit; null for none but Retry-After. */
  readonly perMinute: number | null
  /** Leases permits. Without a limit every wanted one is granted, unless there is a hold. */
  readonly lease: (ask: PermitRequest) => Effect.Effect<PermitGrant, PermitStoreError>
  /** Pauses all requests for as long as is believed; answers how long that still is. */
  readonly hold: (asked: PauseRequest) => Effect.Effect<number, PermitStoreError>
  /** What became of the probe that this ledger granted. */
  readonly endProbe: (request: string, isAnswered: boolean) => Effect.Effect<void, PermitStoreError>
  /** How long a permit that nobody waits for yet, or the word that there is no hold, may be relied upon. */
  readonly reliedUponMs: number
}

export interface PermitStoreOptions {
  /** Null for no limit but Retry-After. */
  readonly perMinute: number | null
  /** How long a permit counts, for tests that cannot wait for minutes. */
  readonly spanMs?: number | undefined
}

export const spanMsDefault = windowMs + guardMs

/** For one process alone. */
export const memory = (options: PermitStoreOptions): Effect.Effect<PermitStore> =>
  Effect.map(Clock.Clock, (clock) => {
    const { perMinute } = options
    const spanMs = options.spanMs ?? spanMsDefault
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    let standing = emptyPermitState
    let leases = 0n
    return {
      perMinute,
      reliedUponMs: Number.POSITIVE_INFINITY,
      lease: (ask) =>
        Effect.sync(() => {
          const [next, grant] = leasePermits(standing, ask, perMinute, now(), spanMs, (leases += 1n))
          standing = next
          return grant
        }),
      hold: (asked) =>
        Effect.sync(() => {
          const at = now()
          standing = pause(standing, asked, perMinute, at, spanMs)
          return Math.max(0, standing.heldUntil - at)
        }),
      endProbe: (request, isAnswered) =>
        Effect.sync(() => {
          standing = endProbe(standing, request, isAnswered)
        })
    } satisfies PermitStore
  })
