/**
 * Seeded random numbers, one stream for each concern.
 *
 * Promise: the draws of a stream depend only on the seed and the stream's name. More draws for one concern do not
 * change the draws of another.
 */

export interface Chance {
  /** At least 0, below 1. */
  readonly next: () => number
  /** A whole number from `least` to `most`, both included. */
  readonly integer: (least: number, most: number) => number
  readonly pick: <A>(items: ReadonlyArray<A>) => A
  readonly chance: (probability: number) => boolean
  /** Many small, few large: from `least` to `most`, the logarithm is even. */
  readonly skewed: (least: number, most: number) => number
}

const mix = (text: string): readonly [number, number, number, number] => {
  let [a, b, c, d] = [0x9e3779b9, 0x243f6a88, 0xb7e15162, 0xdeadbeef]
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    a = Math.imul(a ^ code, 597399067) ^ (b >>> 18)
    b = Math.imul(b ^ code, 2869860233) ^ (c >>> 22)
    c = Math.imul(c ^ code, 951274213) ^ (d >>> 17)
    d = Math.imul(d ^ code, 2716044179) ^ (a >>> 19)
  }
  return [a >>> 0, b >>> 0, c >>> 0, d >>> 0]
}

/** sfc32, seeded by the seed and the concern's name. */
export const chance = (seed: number, concern: string): Chance => {
  let [a, b, c, d] = mix(`${concern} ${seed}`)
  const draw = () => {
    const t = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return (t >>> 0) / 4294967296
  }
  for (let warm = 0; warm < 12; warm++) draw()
  const integer = (least: number, most: number) => least + Math.floor(draw() * (most - least + 1))
  return {
    next: draw,
    integer,
    pick: (items) => items[integer(0, items.length - 1)]!,
    chance: (probability) => draw() < probability,
    skewed: (least, most) => Math.round(least * (most / least) ** draw())
  }
}
