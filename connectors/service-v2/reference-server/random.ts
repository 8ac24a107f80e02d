/**
 * Random numbers from a seed.
 *
 * Promise: the same seed gives the same sequence on every machine; the server has no other source of random values.
 */

export interface Random {
  /** At least 0, below 1. */
  readonly next: () => number
  /** A whole number from `least` to `most`, both included. */
  readonly integer: (least: number, most: number) => number
  readonly pick: <A>(items: ReadonlyArray<A>) => A
  readonly chance: (probability: number) => boolean
  /** A text of this many hexadecimal digits. */
  readonly hex: (digits: number) => string
  /** The seed of the rest of the sequence. */
  readonly state: () => number
}

/** mulberry32: 32 bits of state, enough for data and faults. */
export const random = (seed: number): Random => {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const integer = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    integer,
    pick: (items) => items[integer(0, items.length - 1)]!,
    chance: (probability) => next() < probability,
    hex: (digits) => {
      let text = ""
      while (text.length < digits) text += integer(0, 0xffff).toString(16).padStart(4, "0")
      return text.slice(0, digits)
    },
    state: () => state
  }
}

/** A number below 2^32 that depends on every part (FNV-1a with a final mix). */
export const hash = (...parts: ReadonlyArray<string | number>): number => {
  let h = 0x811c9dc5
  for (const part of parts) {
    const text = typeof part === "number" ? String(part) : part
    for (let index = 0; index < text.length; index++) h = Math.imul(h ^ text.charCodeAt(index), 0x01000193)
    h = Math.imul(h ^ 0xff, 0x01000193)
  }
  h ^= h >>> 16
  h = Math.imul(h, 0x85ebca6b)
  h ^= h >>> 13
  h = Math.imul(h, 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
