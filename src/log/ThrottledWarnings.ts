/**
 * What happens too often to be told each time.
 *
 * Promise: the first of a kind is told at once, and from then on there is at most one line per kind and minute, which
 * says how many there were. Whoever floods the receiver does not flood the log.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"

export interface ThrottledWarnings {
  /** Told as a warning, with the last of the messages of its kind. */
  readonly note: (kind: string, message: string) => void
}

const everyMs = 60_000

interface Kind {
  count: number
  message: string
  toldAt: number
}

/** What was noted and not yet told goes out when the scope ends. */
export const make: Effect.Effect<ThrottledWarnings, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const kinds = new Map<string, Kind>()
  const noted = Latch.makeUnsafe(false)

  const tell = (kind: string, entry: Kind) => {
    const { count, message } = entry
    entry.count = 0
    entry.toldAt = now()
    return Effect.annotateLogs(Effect.logWarning(message), { outcome: kind, count })
  }

  const serve = Effect.gen(function* () {
    for (;;) {
      noted.closeUnsafe()
      let pauseMs = Number.POSITIVE_INFINITY
      for (const [kind, entry] of kinds) {
        if (entry.count === 0) continue
        const leftMs = entry.toldAt + everyMs - now()
        if (leftMs <= 0) yield* tell(kind, entry)
        else pauseMs = Math.min(pauseMs, leftMs)
      }
      yield* pauseMs === Number.POSITIVE_INFINITY ? noted.await : Effect.timeoutOption(noted.await, Math.ceil(pauseMs))
    }
  })

  yield* Effect.addFinalizer(() =>
    Effect.forEach(kinds, ([kind, entry]) => (entry.count === 0 ? Effect.void : tell(kind, entry)), { discard: true })
  )
  yield* Effect.forkScoped(serve)
  return {
    note: (kind, message) => {
      const entry = kinds.get(kind) ?? { count: 0, message, toldAt: Number.NEGATIVE_INFINITY }
      kinds.set(kind, entry)
      entry.message = message
      entry.count += 1
      if (entry.count === 1) noted.openUnsafe()
    }
  }
})
