/**
 * Exact decimals of the server.
 *
 * Promise: a decimal is a bigint that counts units of `10^-scale` from reading to writing; it is never a float. This
 * code is for the server alone: the client has its own.
 */

const grammar = /^(-?)(\d+)(?:\.(\d+))?$/

/** The parts of a decimal as sent; null when the text is not a decimal (D-04). */
export interface DecimalText {
  readonly negative: boolean
  /** Digits before the point, without leading zeros. */
  readonly whole: string
  /** Digits after the point, trailing zeros included: they count as decimals. */
  readonly fraction: string
}

export const readDecimal = (text: string): DecimalText | null => {
  const match = grammar.exec(text)
  if (match === null) return null
  return { negative: match[1] === "-", whole: match[2]!.replace(/^0+(?=\d)/, ""), fraction: match[3] ?? "" }
}

/** Units of `10^-scale`. Digits beyond the scale are cut: callers refuse them first. */
export const unitsOf = (decimal: DecimalText, scale: number): bigint => {
  const units = BigInt(decimal.whole + decimal.fraction.slice(0, scale).padEnd(scale, "0"))
  return decimal.negative ? -units : units
}

/** Units of a stored decimal; an empty or unreadable one counts as zero. */
export const units = (text: unknown, scale: number): bigint => {
  const decimal = typeof text === "string" ? readDecimal(text) : null
  return decimal === null ? 0n : unitsOf(decimal, scale)
}

/** The text, always padded to the scale (F-02); zero has no sign. */
export const format = (value: bigint, scale: number): string => {
  const negative = value < 0n
  const digits = (negative ? -value : value).toString().padStart(scale + 1, "0")
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
  return negative ? `-${text}` : text
}

/** Converts units from one scale to another, rounding half away from zero. */
export const rescale = (value: bigint, from: number, to: number): bigint => {
  if (to >= from) return value * 10n ** BigInt(to - from)
  const divisor = 10n ** BigInt(from - to)
  const half = divisor / 2n
  return value < 0n ? -((-value + half) / divisor) : (value + half) / divisor
}

/** Quantity (6 decimals) times price (6 decimals) as money (4 decimals). */
export const lineTotal = (quantity: bigint, price: bigint): bigint => rescale(quantity * price, 12, 4)
