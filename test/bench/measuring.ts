/** Times and their quantiles, for suites that measure. */

/** The value at or below which a share of the values lies; NaN when there are none. */
export const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * share) - 1)] ?? Number.NaN

/** Seconds since a moment of `performance.now()`. */
export const secondsSince = (began: number): number => (performance.now() - began) / 1000
