/**
 * Where the permits of one token are counted.
 *
 * Promise: what a ledger grants to everybody together stays within the limit (see `Rule.ts`), and whoever asks after a
 * hold was reported is told of it.
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { type Ask, type Grant, guardMs, hold, lease, nothingGiven, windowMs } from "./Rule.ts"

/** The ledger cannot be reached; nothing was granted as far as the caller knows. */
export class LedgerError extends Data.TaggedError("LedgerError")<{ readonly detail: string }> {}

export interface Ledger {
  /** The limit; null for none but Retry-After. */
  readonly perMinute: number | null
  /** Leases permits. Without a limit every wanted one is granted, unless there is a hold. */
  readonly lease: (ask: Ask) => Effect.Effect<Grant, LedgerError>
  /** Nobody sends for this long; `limited` when the source answered 429. */
  readonly hold: (durationMs: number, limited: boolean) => Effect.Effect<void, LedgerError>
  /** How long a permit that nobody waits for yet, or the word that there is no hold, may be relied upon. */
  readonly reliedUponMs: number
}

export interface LedgerOptions {
  /** Null for no limit but Retry-After. */
  readonly perMinute: number | null
  /** How long a permit counts, for tests that cannot wait for minutes. */
  readonly spanMs?: number | undefined
}

export const spanMsDefault = windowMs + guardMs

/** For one process alone. */
export const memory = (options: LedgerOptions): Effect.Effect<Ledger> =>
  Effect.map(Clock.Clock, (clock) => {
    const { perMinute } = options
    const spanMs = options.spanMs ?? spanMsDefault
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    let standing = nothingGiven
    let leases = 0n
    return {
      perMinute,
      reliedUponMs: Number.POSITIVE_INFINITY,
      lease: (ask) =>
        Effect.sync(() => {
          if (perMinute === null) return unlimited(ask, standing.heldUntil - now())
          const [next, grant] = lease(standing, ask, perMinute, now(), spanMs, (leases += 1n))
          standing = next
          return grant
        }),
      hold: (durationMs, limited) =>
        Effect.sync(() => {
          standing = hold(standing, durationMs, limited, perMinute, now(), spanMs)
        })
    } satisfies Ledger
  })

/** What is granted without a limit. */
export const unlimited = ({ wanted }: Ask, heldMs: number): Grant => ({
  leaseId: null,
  granted: heldMs > 0 ? { urgent: 0, live: 0, backfill: 0 } : wanted,
  waitMs: 0,
  heldMs: Math.max(0, heldMs),
  effectivePerMinute: Number.POSITIVE_INFINITY
})
