/**
 * The events of a run in order, with their hash.
 *
 * Promise: two runs with the same events have the same hash. Two with different events have different ones (for all
 * practical purposes: 106 bits). Lines are kept only on request.
 */

export interface Trace {
  readonly event: (at: number, who: string, what: string) => void
  readonly hash: () => string
  readonly lines: ReadonlyArray<string>
  /** Events so far. */
  readonly count: () => number
}

export const trace = (keep: boolean, origin: number): Trace => {
  let [h1, h2, h3, h4] = [0xdeadbeef, 0x41c6ce57, 0x9e3779b9, 0x85ebca6b]
  let events = 0
  const lines: Array<string> = []
  return {
    lines,
    count: () => events,
    event: (at, who, what) => {
      events++
      const line = `${((at - origin) / 1e6).toFixed(6).padStart(13)} ${who.padEnd(8)} ${what}`
      if (keep) lines.push(line)
      for (let index = 0; index < line.length; index++) {
        const code = line.charCodeAt(index)
        h1 = Math.imul(h1 ^ code, 2654435761)
        h2 = Math.imul(h2 ^ code, 1597334677)
        h3 = Math.imul(h3 ^ code, 951274213)
        h4 = Math.imul(h4 ^ code, 2716044179)
      }
      h1 ^= h2 >>> 13
      h3 ^= h4 >>> 15
    },
    hash: () => [h1, h2, h3, h4].map((part) => (part >>> 0).toString(16).padStart(8, "0")).join("")
  }
}
