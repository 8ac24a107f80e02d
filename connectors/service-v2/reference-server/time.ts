/**
 * Instants as whole microseconds since 1970, and days as `YYYY-MM-DD`.
 *
 * Promise: a printed instant is read back exactly up to the year 2255, and to within a few microseconds beyond it. Only
 * UTC is accepted.
 */

export const microsPerSecond = 1_000_000
export const microsPerDay = 86_400 * microsPerSecond

const earliest = Date.parse("0001-01-01T00:00:00Z") * 1000
/** The last number of microseconds in the year 9999; numbers of this size are 32 apart. */
const latest = 253_402_300_799_999_968

/** `2026-11-21T03:05:43.123456Z`; an instant beyond the years 0001 to 9999 is the first or the last of them. */
export const printInstant = (instant: number): string => {
  const micros = Math.min(Math.max(instant, earliest), latest)
  const seconds = Math.floor(micros / microsPerSecond)
  const fraction = micros - seconds * microsPerSecond
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${String(fraction).padStart(6, "0")}Z`
}

/** The UTC day of an instant. */
export const printDay = (micros: number): string =>
  new Date(Math.floor(micros / microsPerSecond) * 1000).toISOString().slice(0, 10)

/** The form of the HTTP headers Date and Retry-After. */
export const printHttpDate = (micros: number): string => new Date(Math.floor(micros / 1000)).toUTCString()

const dayGrammar = /^(\d{4})-(\d{2})-(\d{2})$/

/** Microseconds at the beginning of a calendar day; null when the text is not one. */
export const readDay = (text: string): number | null => {
  const match = dayGrammar.exec(text)
  if (match === null || match[1] === "0000") return null
  const date = new Date(`${text}T00:00:00Z`)
  const valid = !Number.isNaN(date.getTime()) && date.getUTCDate() === Number(match[3])
  return valid ? date.getTime() * 1000 : null
}

const instantGrammar = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|[+-]00:00)$/

/** Reads RFC 3339 in UTC; digits beyond microseconds are cut. Null when the text is not an instant. */
export const readInstant = (text: string): number | null => {
  const match = instantGrammar.exec(text)
  if (match === null) return null
  const [, day, hour, minute, second, fraction] = match
  const start = readDay(day!)
  if (start === null || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return null
  const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second)
  // A leap second is possible only at the end of a day, and not after the last day with a four-digit year.
  if (second === "60" && (seconds !== 86_400 || day === "9999-12-31")) return null
  return start + seconds * microsPerSecond + Number((fraction ?? "").slice(0, 6).padEnd(6, "0"))
}

/** The day `days` after a day such as `2026-11-21`. */
export const addDays = (day: string, days: number): string => printDay((readDay(day) ?? 0) + days * microsPerDay)
