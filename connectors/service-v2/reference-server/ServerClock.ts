/**
 * The server's own clock.
 *
 * Promise: every time, expiry and count of the server uses this clock, and this clock uses only its source. The
 * source never moves a running clock back. A stopped clock (`manual`) moves only by `set` and `advance`.
 */

/** The clock at one moment. */
export interface ClockState {
  /** Microseconds ahead of the source while the clock runs. */
  readonly offset: number
  /** Where it is stopped, in microseconds since 1970; null while it runs. */
  readonly stoppedAt: number | null
}

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
  readonly state: () => ClockState
  readonly restore: (state: ClockState) => void
  /** Runs `work`, which may set the clock, and restores the clock afterwards. */
  readonly elsewhen: <A>(work: () => A) => A
}

/** `source` returns microseconds since 1970. */
export const serverClock = (source: () => number): ServerClock => {
  let offset = 0
  let stoppedAt: number | null = null
  /** The latest instant returned, so that a source that steps back does not move the server's clock back. */
  let latest = 0
  const now = () => {
    if (stoppedAt !== null) return stoppedAt
    latest = Math.max(latest, source() + offset)
    return latest
  }
  const set = (micros: number) => {
    latest = 0
    if (stoppedAt === null) offset = micros - source()
    else stoppedAt = micros
  }
  return {
    now,
    isManual: () => stoppedAt !== null,
    setManual: (manual) => {
      const present = now()
      stoppedAt = manual ? present : null
      latest = 0
      if (!manual) offset = present - source()
    },
    set,
    advance: (micros) => set(now() + micros),
    reset: () => {
      offset = 0
      latest = 0
      stoppedAt = null
    },
    state: () => ({ offset, stoppedAt }),
    restore: (state) => {
      offset = state.offset
      stoppedAt = state.stoppedAt
      latest = 0
    },
    elsewhen: (work) => {
      const before = { offset, stoppedAt }
      stoppedAt = now()
      try {
        return work()
      } finally {
        offset = before.offset
        stoppedAt = before.stoppedAt
      }
    }
  }
}
