/** Algorithms by which a server enforces a rate limit. Each returns the number of requests that it refuses. */

export interface Server {
  readonly name: string
  /** The number of refused requests. Arrival times are in milliseconds, ascending. */
  readonly refused: (arrivals: ReadonlyArray<number>, perMinute: number) => number
}

const minuteMs = 60_000

const fixed = (offsetMs: number): Server => ({
  name: `fixed windows that begin at ${offsetMs} ms`,
  refused: (arrivals, perMinute) => {
    const served = new Map<number, number>()
    let refused = 0
    for (const at of arrivals) {
      const window = Math.floor((at - offsetMs) / minuteMs)
      const before = served.get(window) ?? 0
      if (before >= perMinute) refused += 1
      else served.set(window, before + 1)
    }
    return refused
  }
})

const sliding: Server = {
  name: "a sliding window",
  refused: (arrivals, perMinute) => {
    const served: Array<number> = []
    let head = 0
    let refused = 0
    for (const at of arrivals) {
      while (head < served.length && served[head]! <= at - minuteMs) head += 1
      if (served.length - head >= perMinute) refused += 1
      else served.push(at)
    }
    return refused
  }
}

const bucket: Server = {
  name: "a bucket that holds a minute's tokens",
  refused: (arrivals, perMinute) => {
    let level = perMinute
    let last = 0
    let refused = 0
    for (const at of arrivals) {
      level = Math.min(perMinute, level + ((at - last) * perMinute) / minuteMs)
      last = at
      if (level + 1e-9 < 1) refused += 1
      else level -= 1
    }
    return refused
  }
}

export const servers: ReadonlyArray<Server> = [fixed(0), fixed(17_300), fixed(59_999), sliding, bucket]

/** The largest number of arrivals in any window of this length. */
export const most = (arrivals: ReadonlyArray<number>, lengthMs: number): number => {
  let head = 0
  let largest = 0
  for (const [index, at] of arrivals.entries()) {
    while (arrivals[head]! <= at - lengthMs) head += 1
    largest = Math.max(largest, index - head + 1)
  }
  return largest
}
