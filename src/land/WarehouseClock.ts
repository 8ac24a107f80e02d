/**
 * The warehouse's clock, as a process reads it from its own monotonic clock.
 *
 * Promise: reads of all processes are ordered by one clock, the warehouse's. Each process measures how far that clock is
 * ahead of its own.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as MonotonicClock from "../time/MonotonicClock.ts"

export interface WarehouseClock {
  /** The warehouse's time, in milliseconds since 1970, of an instant on the process' monotonic clock. */
  readonly timeOf: (monotonicMs: number) => number
  /** The warehouse's time now. */
  readonly now: Effect.Effect<number>
  /** Notes the warehouse's time from its latest answer. */
  readonly observe: (nowMs: number) => void
  /** By how much the warehouse's clock was set forward (negative: back), given the time that it has just answered. */
  readonly stepMs: (nowMs: number) => number
  /** The earliest and the latest time of a warehouse whose clock was not set meanwhile. */
  readonly bounds: () => readonly [from: number, until: number]
}

/** A smaller step is a usual correction of a clock, or a slow answer. */
export const clockStepMsMax = 60_000

/** The time of the warehouse as a column. */
export const nowColumn = "(extract(epoch from tributary.now()) * 1000)::float8 as now_ms"

/** An instant of the warehouse as text, to the microsecond. */
export const instantText = (milliseconds: number): string => {
  const whole = Math.floor(milliseconds)
  const micros = Math.floor((milliseconds - whole) * 1000)
  return new Date(whole).toISOString().replace("Z", `${String(micros).padStart(3, "0")}Z`)
}

export const make: Effect.Effect<WarehouseClock> = Clock.clockWith((clock) =>
  Effect.sync(() => {
    const monotonicMs = () => MonotonicClock.nowMs(clock)
    /**
     * How far the warehouse's clock is ahead of the process' clock. Network delay makes each measurement too small: the
     * largest is the best, until the clocks themselves were moved (a machine that slept).
     */
    let aheadMs = -Infinity
    const timeOf = (at: number) => at + aheadMs
    return {
      timeOf,
      now: Effect.sync(() => timeOf(monotonicMs())),
      observe: (nowMs) => {
        aheadMs = Math.max(aheadMs, nowMs - monotonicMs())
      },
      stepMs: (nowMs) => nowMs - monotonicMs() - aheadMs,
      bounds: () => [timeOf(monotonicMs()) - clockStepMsMax, timeOf(monotonicMs()) + clockStepMsMax]
    }
  })
)
