/**
 * The server's own clock.
 *
 * Promise: every time, expiry and count of the server uses this clock, and this clock uses only the given source. A
 * running clock never goes back by itself. A stopped clock (`manual`) moves only by `set` and `advance`.
 */

export interface ServerClock {
  /** Microseconds since 1970. */
  readonly now: () => number
  readonly isManual: () => boolean
  /** Stops the clock at the present instant, or lets it run from there. */
  readonly setManual: (manual: boolean) => void
  readonly set: (micros: number) => void
  readonly advance: (micros: number) => void
  /** Follows the source again, as at the start. */
  readonly reset: () => void
  /** Runs `work`, which may set the clock, and restores the clock afterwards. */
  readonly elsewhen: <A>(work: () => A) => A
}

/** `source` returns microseconds since 1970. */
export const serverClock = (source: () => number): ServerClock => {
  let offset = 0
  let standing: number | null = null
  /** The latest instant returned, so that a source that steps back does not move the server's clock back. */
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
