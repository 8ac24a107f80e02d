/**
 * One log line for a condition of many companies.
 *
 * Promise: the first company with a condition is logged at once. The others with the same condition follow in one line
 * with their number, after five seconds and then at most once a minute. A condition is the same where the lines differ
 * only in the name of the company and in numbers. The end of the scope logs what is left.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"

/** The company that the lines of an effect are about; null for the whole process. */
const LogCompany = Context.Reference<string | null>("tributary/log/LogCompany", { defaultValue: () => null })

/** The lines of the effect are about this company; null is none. */
export const about = (company: string | null) => Effect.provideService(LogCompany, company)

type Line = Logger.Options<unknown>

interface Condition {
  /** The company that was logged at once. */
  readonly first: string
  /** Companies that were not logged yet. */
  readonly others: Set<string>
  last: Line
  lastText: string
  /** The others are logged at this time; in milliseconds since 1970. */
  dueAtMs: number
}

const collectMs = 5_000
const betweenMs = 60_000
const namesMax = 5

const textOf = ({ message }: Line): string | null => {
  const parts: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
  return parts.every((part) => typeof part === "string") ? parts.join(" ") : null
}

const textOfOthers = ({ lastText, others }: Condition): string => {
  const names = [...others].slice(0, namesMax).join(", ")
  const further = others.size - namesMax
  const companies = others.size === 1 ? "1 other company" : `${others.size.toLocaleString("en-US")} other companies`
  return `${lastText} (${companies} since the first: ${names}${further > 0 ? ` and ${further.toLocaleString("en-US")} more` : ""})`
}

/** Groups the lines of the loggers that are installed. */
export const layer: Layer.Layer<never> = Layer.effect(
  Logger.CurrentLoggers,
  Effect.gen(function* () {
    const loggers = yield* Logger.CurrentLoggers
    const conditions = new Map<string, Condition>()
    const hasOthers = Latch.makeUnsafe(false)
    const write = (line: Line) => {
      for (const logger of loggers) logger.log(line)
    }

    const flush = (untilMs: number, nowMs: number) => {
      for (const [key, condition] of conditions) {
        if (condition.dueAtMs > untilMs) continue
        if (condition.others.size === 0) conditions.delete(key)
        else {
          write({ ...condition.last, message: [textOfOthers(condition)] })
          condition.others.clear()
          condition.dueAtMs = nowMs + betweenMs
        }
      }
    }

    const flushForever = Effect.gen(function* () {
      for (;;) {
        yield* hasOthers.await
        hasOthers.closeUnsafe()
        while ([...conditions.values()].some(({ others }) => others.size > 0)) {
          yield* Effect.sleep(collectMs)
          const nowMs = yield* Clock.currentTimeMillis
          flush(nowMs, nowMs)
        }
      }
    })
    yield* Effect.addFinalizer(() => Effect.sync(() => flush(Number.POSITIVE_INFINITY, 0)))
    yield* Effect.forkScoped(flushForever)

    return new Set([
      Logger.make<unknown, void>((line) => {
        const company = line.fiber.getRef(LogCompany)
        const text = textOf(line)
        if (company === null || text === null || !LogLevel.isGreaterThanOrEqualTo(line.logLevel, "Warn"))
          return write(line)
        const key = `${line.logLevel} ${text.replaceAll(company, "*").replaceAll(/\d+/g, "#")}`
        const condition = conditions.get(key)
        const nowMs = line.date.getTime()
        // A company that repeats its line limits that itself.
        if (condition === undefined || (condition.others.size === 0 && condition.dueAtMs <= nowMs)) {
          conditions.set(key, {
            first: company,
            others: new Set(),
            last: line,
            lastText: text,
            dueAtMs: nowMs + collectMs
          })
          return write(line)
        }
        if (condition.first === company) return write(line)
        condition.others.add(company)
        condition.last = line
        condition.lastText = text
        hasOthers.openUnsafe()
      })
    ])
  })
)
