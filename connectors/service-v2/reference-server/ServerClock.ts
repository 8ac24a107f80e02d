/**
 * The server's own clock.
 *
 * Promise: everything that the server dates, expires or counts asks this clock, and this clock asks only the source it
 * was given. Running, it never goes back by itself; standing still (`manual`), it moves when told to and not otherwise.
 */

export interface ServerClock {
  /** Microseconds since 1970. */
  readonly now: () => number
  readonly isManual: () => boolean
  /** Stands still at the present instant, or runs on from it. */
  readonly setManual: (manual: boolean) => void
  readonly set: (micros: number) => void
  readonly advance: (micros: number) => void
  /** Runs again with the source, as at the start. */
  readonly reset: () => void
  /** Runs `work` with the clock standing where `work` puts it, and puts it back afterwards. */
  readonly elsewhen: <A>(work: () => A) => A
}

/** `source` tells microseconds since 1970. */
export const serverClock = (source: () => number): ServerClock => {
  let offset = 0
  let standing: number | null = null
  /** The latest instant that was told: a source that steps back does not take the server with it. */
  let latest = 0
  const now = () => {
    if (standing !== null) return standing
    latest = Math.max(latest, source() + offset)
    return latest
  }
  const set = (micros: number) => {
    latest = 0
    if (standing === null) offset = micros - source()
    else standing = micros
  }
  return {
    now,
    isManual: () => standing !== null,
    setManual: (manual) => {
      const present = now()
      standing = manual ? present : null
      latest = 0
      if (!manual) offset = present - source()
    },
    set,
    advance: (micros) => set(now() + micros),
    reset: () => {
      offset = 0
      latest = 0
      standing = null
    },
    elsewhen: (work) => {
      const before = { offset, standing }
      standing = now()
      try {
        return work()
      } finally {
        offset = before.offset
        standing = before.standing
      }
    }
  }
}
