/**
 * Comparison and shift of cursors that are instants.
 *
 * Promise: no digit is lost or invented. A shifted cursor keeps the form of the source's text. A cursor that is no instant
 * stays as it is.
 */

interface Instant {
  /** `YYYY-MM-DDTHH:MM:SS` */
  readonly seconds: string
  /** Digits after the point, as they were sent. */
  readonly fraction: string
}

const parse = (cursor: string): Instant | undefined => {
  const match = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?Z$/.exec(cursor)
  return match === null ? undefined : { seconds: match[1]!, fraction: match[2] ?? "" }
}

/** Whether the day exists: `Date` takes 30 February for 2 March, and Postgres refuses it. */
const isDay = (day: string): boolean => {
  const at = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day)
}

/** A form whose order as text is the order in time; undefined when the cursor is no instant. */
const comparable = (cursor: string): string | undefined => {
  const instant = parse(cursor)
  return instant === undefined ? undefined : `${instant.seconds}.${instant.fraction.padEnd(12, "0")}`
}

/** The earlier of two cursors; the first one when they cannot be compared. */
export const earlier = (first: string | null, second: string | null): string | null => {
  if (first === null || second === null) return first
  const [a, b] = [comparable(first), comparable(second)]
  return a === undefined || b === undefined || a <= b ? first : second
}

/** Whether the first instant is after the second; undefined when they cannot be compared. */
export const isAfter = (first: string, second: string): boolean | undefined => {
  const [a, b] = [comparable(first), comparable(second)]
  return a === undefined || b === undefined ? undefined : a > b
}

/** The later of two cursors; the first one when they cannot be compared. */
export const later = (first: string, second: string | null): string =>
  second !== null && isAfter(second, first) === true ? second : first

/** Milliseconds since 1970, to the millisecond below; undefined when the cursor is no instant. */
export const millisecondsOf = (cursor: string): number | undefined => {
  const instant = parse(cursor)
  if (instant === undefined || !isDay(instant.seconds.slice(0, 10))) return undefined
  // A leap second is written as :60, which a Date does not know.
  const milliseconds = Date.parse(
    `${instant.seconds.replace(/:60$/, ":59")}.${instant.fraction.padEnd(3, "0").slice(0, 3)}Z`
  )
  return Number.isNaN(milliseconds) ? undefined : milliseconds
}

/** Whether a cursor can be compared with the times of change of records. */
export const isInstant = (position: string | null): position is string =>
  position !== null && millisecondsOf(position) !== undefined

/**
 * The cursor moved back by some milliseconds, with as many digits as it has; the very same text when there is nothing to
 * move, or when it is no instant.
 */
export const before = (cursor: string, milliseconds: number): string => {
  const instant = parse(cursor)
  const at = millisecondsOf(cursor)
  if (milliseconds <= 0 || instant === undefined || at === undefined) return cursor
  const moved = at - Math.ceil(milliseconds)
  if (moved < 0) return "1970-01-01T00:00:00Z"
  const { fraction } = instant
  const [seconds, thousandths] = new Date(moved).toISOString().slice(0, -1).split(".")
  return fraction === "" ? `${seconds}Z` : `${seconds}.${(thousandths! + fraction.slice(3)).slice(0, fraction.length)}Z`
}

/**
 * The cursor of a scan of the records that changed at the instant or later; null without one. It is a millisecond earlier,
 * since a source may leave out records of the cursor's own instant.
 */
export const cursorFrom = (since: string | null): string | null => (since === null ? null : before(since, 1))
