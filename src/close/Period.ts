/** A calendar month in a time zone. */
import * as DateTime from "effect/DateTime"

export interface Period {
  /** `2026-10` */
  readonly month: string
  /** `2026-10-01` */
  readonly firstDay: string
  /** `2026-10-31` */
  readonly lastDay: string
  /** A name of the IANA database. */
  readonly timeZone: string
  /** The first instant after the month. */
  readonly endsAt: Date
}

const dayOf = (date: Date): string => date.toISOString().slice(0, 10)

/** Null for a text that is no month, or a time zone that does not exist. */
export const parse = (text: string, timeZone: string): Period | null => {
  const match = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text)
  if (match === null) return null
  const [year, month] = [Number(match[1]), Number(match[2])]
  // The month after it; Date.UTC counts months from 0.
  const next = new Date(Date.UTC(year, month, 1))
  const parts = { year: next.getUTCFullYear(), month: next.getUTCMonth() + 1, day: 1 }
  try {
    return {
      month: text,
      firstDay: `${text}-01`,
      lastDay: dayOf(new Date(Date.UTC(year, month, 0))),
      timeZone,
      endsAt: DateTime.toDateUtc(DateTime.makeZonedUnsafe(parts, { timeZone, adjustForTimeZone: true }))
    }
  } catch {
    return null
  }
}
