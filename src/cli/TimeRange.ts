/** The range of time of a command line: a day, or an instant in UTC, at each end. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Flag from "effect/cli/Flag"
import { isAfter, millisecondsOf } from "../connector/Instant.ts"
import { type CommandFailed, usageError } from "./Exit.ts"

const timePattern = /^\d{4}-\d{2}-\d{2}(?:T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z)?$/

const isDay = (text: string) => text.length === 10

/** The first instant of a day; another instant as it is. */
export const startOf = (text: string): string => (isDay(text) ? `${text}T00:00:00Z` : text)

const isTime = (text: string): boolean => timePattern.test(text) && millisecondsOf(startOf(text)) !== undefined

/** An instant, RFC 3339 in UTC, or a day. */
export const Time = Schema.String.check(
  Schema.makeFilter((text: string) =>
    isTime(text) ? undefined : `Expected a day like 2026-01-31, or a time in UTC like 2026-01-31T08:00:00Z`
  )
)

export interface Range {
  readonly since: string | null
  readonly until: string | null
}

/** Both ends are included. A day is its beginning as `since` and its end as `until`. */
export const rangeOf = (
  since: Option.Option<string>,
  until: Option.Option<string>
): Effect.Effect<Range, CommandFailed> => {
  const range = {
    since: Option.getOrNull(Option.map(since, startOf)),
    until: Option.getOrNull(Option.map(until, (text) => (isDay(text) ? `${text}T23:59:59.999999999Z` : text)))
  }
  return range.since !== null && range.until !== null && isAfter(range.until, range.since) !== true
    ? Effect.fail(
        usageError(
          `--since must be before --until: ${Option.getOrThrow(since)} is not before ${Option.getOrThrow(until)}`
        )
      )
    : Effect.succeed(range)
}

export const timeFlag = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.withMetavar("T"), Flag.withSchema(Time), Flag.optional)

export const since = timeFlag(
  "since",
  "Only records that changed at this time or later: a day, or RFC 3339 in UTC (default: everything)"
)

export const until = timeFlag(
  "until",
  "Only records that changed at this time or before; a day is included as a whole (default: now)"
)
