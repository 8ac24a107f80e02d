/**
 * Days and instants as the API writes them (F-01).
 *
 * Promise: only a day of the calendar is a day, and only UTC is an instant; an instant is whole microseconds since 1970,
 * further digits are dropped.
 */

const day = /^(\d{4})-(\d{2})-(\d{2})$/

/** Milliseconds at the beginning of `YYYY-MM-DD`; null when that is no day. */
const startOf = (text: string): number | null => {
  const match = day.exec(text)
  if (match === null || match[1] === "0000") return null
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.getUTCDate() === Number(match[3]) ? date.getTime() : null
}

/** The text when it is a day that exists. */
export const dayOf = (text: string): string | null => (startOf(text) === null ? null : text)

const instant = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|[+-]00:00)$/

/** Microseconds since 1970 of an RFC 3339 text in UTC; null when it is none. A leap second is the next day's first. */
export const instantOf = (text: string): bigint | null => {
  const match = instant.exec(text)
  if (match === null) return null
  const [, date, hour, minute, second, fraction] = match
  const start = startOf(date!)
  if (start === null || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return null
  const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second)
  if (second === "60" && (seconds !== 86_400 || date === "9999-12-31")) return null
  return BigInt(start + seconds * 1000) * 1000n + BigInt((fraction ?? "").slice(0, 6).padEnd(6, "0"))
}

/** The day of an instant. */
export const dayOfInstant = (micros: bigint): string =>
  new Date(Math.floor(Number(micros) / 1_000_000) * 1000).toISOString().slice(0, 10)
