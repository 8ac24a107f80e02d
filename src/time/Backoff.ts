/** The pause before another attempt, for loops whose failures are counted across attempts. */

/** The pause after this number of failures in a row: `minMs` after the first, doubled by each more, at most `maxMs`. */
export const delayMs = (failures: number, minMs: number, maxMs: number): number =>
  Math.min(maxMs, minMs * 2 ** Math.max(0, failures - 1))
