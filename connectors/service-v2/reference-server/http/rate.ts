/**
 * The request limit (LIM-02, E-01..E-06).
 *
 * Promise: for one counter, at most the limit of authenticated requests is served in any 60 seconds of the server's
 * clock. A request refused for the limit does not count.
 */
import { microsPerSecond } from "../time.ts"

const windowMicros = 60 * microsPerSecond

/** The times of the last minute, oldest first. */
interface Counter {
  readonly times: Array<number>
  head: number
}

/** A counter at one moment: its key, and the times of the counted requests in microseconds, oldest first. */
export interface RateState {
  readonly key: string
  readonly times: ReadonlyArray<number>
}

export class Rate {
  private readonly counters: Map<string, Counter>

  constructor(state: ReadonlyArray<RateState> = []) {
    this.counters = new Map(state.map(({ key, times }) => [key, { times: [...times], head: 0 }]))
  }

  state(): ReadonlyArray<RateState> {
    return [...this.counters]
      .map(([key, { times, head }]) => ({ key, times: times.slice(head) }))
      .filter(({ times }) => times.length > 0)
      .sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** Counts a request; returns the seconds to wait when the limit is reached, else null. */
  enter(key: string, limit: number | null, now: number): number | null {
    if (limit === null) return null
    let counter = this.counters.get(key)
    if (counter === undefined) this.counters.set(key, (counter = { times: [], head: 0 }))
    const { times } = counter
    while (counter.head < times.length && times[counter.head]! <= now - windowMicros) counter.head++
    if (counter.head > 4096 && counter.head * 2 > times.length) {
      times.splice(0, counter.head)
      counter.head = 0
    }
    const counted = times.length - counter.head
    if (counted < limit) {
      times.push(now)
      return null
    }
    // The request fits again when all but `limit - 1` of the counted ones have left the window.
    const leaves = limit === 0 ? now : times[times.length - limit]!
    return Math.max(1, Math.ceil((leaves + windowMicros - now) / microsPerSecond))
  }
}
