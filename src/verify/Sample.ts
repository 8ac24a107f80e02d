/**
 * The draw of a sample.
 *
 * Promise: the same seed and the same rows draw the same numbers; every row has the same chance. How likely a sample is
 * to find a fault follows from its size alone: {@link chanceOfFinding}.
 */
import { createHash } from "node:crypto"

/** A number from 0 up to below `range` that depends only on the seed and the index. */
const drawNumber = (seed: number, index: number, range: bigint): bigint =>
  BigInt(`0x${createHash("sha256").update(`${seed}:${index}`).digest("hex").slice(0, 32)}`) % range

/** Different numbers from `min` to `max`; fewer than requested where there are no more. */
export const numbersBetween = (seed: number, count: number, min: bigint, max: bigint): ReadonlyArray<string> => {
  const range = max - min + 1n
  const wanted = range < BigInt(count) ? Number(range) : count
  const found = new Set<string>()
  // Some numbers are drawn twice. A small range may not be exhausted, which a sample does not need.
  for (let index = 0; found.size < wanted && index < count * 4; index++) {
    found.add((min + drawNumber(seed, index, range)).toString())
  }
  return [...found]
}

/** The probability that `count` of `total` rows, drawn at random, include at least one of the `wrong` ones. */
export const chanceOfFinding = (count: number, total: number, wrong: number): number => {
  if (wrong <= 0 || total <= 0) return 0
  let none = 1
  for (let at = 0; at < Math.min(count, total); at++) none *= Math.max(0, total - wrong - at) / (total - at)
  return 1 - none
}
