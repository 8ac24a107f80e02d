/**
 * Rate-limited warnings: one line per kind and minute, with a count.
 *
 * Promise: the first warning of a kind is logged at once. A flood of deliveries does not flood the log.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as MonotonicClock from "../time/MonotonicClock.ts"

export interface ThrottledWarnings {
  /** The log shows the last message of each kind. */
  readonly warn: (kind: string, message: string) => void
}

const intervalMs = 60_000

interface Kind {
  count: number
  message: string
  loggedAt: number
}

/** When the scope ends, it logs the warnings that are left. */
export const make: Effect.Effect<ThrottledWarnings, never, Scope.Scope> = Effect.gen(function* () {
  const now = yield* MonotonicClock.make
  const kinds = new Map<string, Kind>()
  const hasWarnings = Latch.makeUnsafe(false)

  const log = (kind: string, entry: Kind) => {
    const { count, message } = entry
    entry.count = 0
    entry.loggedAt = now()
    return Effect.annotateLogs(Effect.logWarning(message), { outcome: kind, count })
  }

  const logWhenDue = Effect.gen(function* () {
    for (;;) {
      hasWarnings.closeUnsafe()
      let pauseMs = Number.POSITIVE_INFINITY
      for (const [kind, entry] of kinds) {
        if (entry.count === 0) continue
        const leftMs = entry.loggedAt + intervalMs - now()
        if (leftMs <= 0) yield* log(kind, entry)
        else pauseMs = Math.min(pauseMs, leftMs)
      }
      yield* pauseMs === Number.POSITIVE_INFINITY
        ? hasWarnings.await
        : Effect.timeoutOption(hasWarnings.await, Math.ceil(pauseMs))
    }
  })

  yield* Effect.addFinalizer(() =>
    Effect.forEach(kinds, ([kind, entry]) => (entry.count === 0 ? Effect.void : log(kind, entry)), { discard: true })
  )
  yield* Effect.forkScoped(logWhenDue)
  return {
    warn: (kind, message) => {
      const entry = kinds.get(kind) ?? { count: 0, message, loggedAt: Number.NEGATIVE_INFINITY }
      kinds.set(kind, entry)
      entry.message = message
      entry.count += 1
      if (entry.count === 1) hasWarnings.openUnsafe()
    }
  }
})
