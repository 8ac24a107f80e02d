/**
 * The output of commands: results on standard output, everything else on standard error.
 *
 * Promise: with `--json` standard output is one JSON document (or lines of JSON) and nothing else. With the log format
 * json, every line of standard error is one JSON object.
 */
import stringWidth from "string-width"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import { count, plural } from "../text/Count.ts"
import { duration as durationInOneUnit } from "../text/Duration.ts"
import { visibleLines } from "../web/Escape.ts"
import { withInvocation } from "./Invocation.ts"

/** JSON for machines: bigint as a number where that is exact, else as text. */
export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) =>
    typeof item === "bigint" ? (Number.isSafeInteger(Number(item)) ? Number(item) : item.toString()) : item
  )

/** A line of the result, as it is. */
export const print = (line: string): Effect.Effect<void> => write(process.stdout, `${line}\n`)

/** Lines for people: their commands are as the program was started. */
export const printLines = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.forEach(lines, (line) => print(withInvocation(line)), { discard: true })

/** A result as JSON, or as lines for people. */
export const printResult = <A>(
  json: boolean,
  result: A,
  lines: (result: A) => ReadonlyArray<string>
): Effect.Effect<void> => (json ? print(toJson(result)) : printLines(lines(result)))

/** The format of standard error. */
export const LogFormat = Context.Reference<"text" | "json">("tributary/cli/LogFormat", { defaultValue: () => "text" })

/** A line on standard error. */
export const note = (line: string, level: LogLevel.Severity = "Info"): Effect.Effect<void> =>
  Effect.flatMap(LogFormat, (format) =>
    format === "text"
      ? write(process.stderr, `${withInvocation(line)}\n`)
      : Effect.flatMap(Clock.currentTimeMillis, (ms) =>
          write(process.stderr, logLine({ time: new Date(ms), level, message: withInvocation(line.trim()) }))
        )
  )

interface LogEntry {
  readonly time: Date
  readonly level: LogLevel.LogLevel
  readonly message: string
  readonly annotations?: Readonly<Record<string, unknown>>
  readonly cause?: string
  readonly traceId?: string
  readonly spanId?: string
}

/** One JSON object on a line, without empty members. */
const logLine = ({ time, level, message, annotations = {}, cause, traceId, spanId }: LogEntry): string =>
  `${toJson({
    time: time.toISOString(),
    level: level.toUpperCase(),
    message,
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    cause,
    trace_id: traceId,
    span_id: spanId
  })}\n`

/** Waits until the stream has accepted the text, so that a pipe loses nothing when the program ends. */
const write = (stream: NodeJS.WriteStream, text: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    // A closed pipe (`| head`) is no failure of the command.
    stream.write(text, () => resume(Effect.void))
  })

const wordsOf = (message: unknown): string =>
  withInvocation(
    (Array.isArray(message) ? message : [message]).map((one) => (typeof one === "string" ? one : toJson(one))).join(" ")
  )

/** The text logger: one line on standard error, written directly and not through the console. */
export const logger = Logger.make<unknown, void>(({ cause, date, fiber, logLevel, message }) => {
  const notes = Object.entries(fiber.getRef(References.CurrentLogAnnotations)).map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : toJson(value)}`
  )
  const why = cause.reasons.length === 0 ? [] : [Cause.pretty(cause)]
  process.stderr.write(
    `${[date.toISOString(), logLevel.toUpperCase(), wordsOf(message), ...notes, ...why].join(" ")}\n`
  )
})

/** The JSON logger: one object a line, with its trace and span while those are exported. */
export const jsonLogger = Logger.make<unknown, void>(({ cause, date, fiber, logLevel, message }) => {
  const { span, tracer } = fiber.cache
  process.stderr.write(
    logLine({
      time: date,
      level: logLevel,
      message: wordsOf(message),
      annotations: fiber.getRef(References.CurrentLogAnnotations),
      ...(cause.reasons.length === 0 ? {} : { cause: Cause.pretty(cause) }),
      ...(span === undefined || tracer === undefined || !span.sampled
        ? {}
        : { traceId: span.traceId, spanId: span.spanId })
    })
  )
})

type Align = "left" | "right"

/** The columns that a text takes on a terminal: East Asian characters take two. */
export const widthOf = (text: string): number => (/^[ -~]*$/.test(text) ? text.length : stringWidth(text))

/**
 * A plain table with a line under its head. A cell may have several lines. Control characters are shown as escapes, since
 * a value of the source must not control the terminal.
 */
export const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  align: ReadonlyArray<Align> = []
): string => {
  const cells = [head, ...rows].map((row) =>
    row.map((text) =>
      visibleLines(text)
        .split("\n")
        .map((line) => ({ line, width: widthOf(line) }))
    )
  )
  const widths = head.map((_, column) =>
    cells.reduce((most, row) => (row[column] ?? []).reduce((max, { width }) => Math.max(max, width), most), 0)
  )
  const linesOf = (row: (typeof cells)[number]) =>
    Array.from({ length: Math.max(1, ...row.map((lines) => lines.length)) }, (_, index) =>
      widths
        .map((most, column) => {
          const { line, width } = row[column]?.[index] ?? { line: "", width: 0 }
          const padding = " ".repeat(most - width)
          return align[column] === "right" ? padding + line : line + padding
        })
        .join("  ")
    )
  return cells
    .flatMap(linesOf)
    .map((line) => `  ${line}`.trimEnd())
    .join("\n")
}

export { count, plural }

/** `3 rejected`; empty for none. */
export const counted = (value: number, what: string): string => (value === 0 ? "" : `${count(value)} ${what}`)

/** {@link plural}; empty for none. */
export const plurals = (value: number, one: string, many?: string): string =>
  value === 0 ? "" : plural(value, one, many)

/** The parts that are not empty, as a list. */
export const list = (parts: ReadonlyArray<string>, separator = ", "): string =>
  parts.filter((part) => part !== "").join(separator)

/** The first names, and the number of the others: `a, b and 3 more`. */
export const firstOf = (names: ReadonlyArray<string>, namesMax: number): string =>
  names.slice(0, namesMax).join(", ") + (names.length > namesMax ? ` and ${count(names.length - namesMax)} more` : "")

/** A duration in the unit that a person would choose. */
export const duration = (milliseconds: number): string =>
  milliseconds < 1000
    ? `${milliseconds} ms`
    : milliseconds < 60_000
      ? `${(milliseconds / 1000).toFixed(1)} s`
      : `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1000)} s`

/** How long ago something was, in the unit that the pages choose; less than a second is `0 s`. */
export const elapsed = (milliseconds: number): string =>
  milliseconds < 1_000 ? "0 s" : durationInOneUnit(milliseconds)

/** Text of another author, safe to show: terminal control characters are escaped. */
export const shown = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) => {
    const code = character.codePointAt(0)!
    if (character === "\n") return "\\n"
    if (character === "\r") return "\\r"
    if (character === "\t") return "\\t"
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`
  })
