/**
 * A SQL file of a connector: a comment that documents it, and a query that names the tables of resources as `{{path}}`.
 */
import { identifier } from "./Identifier.ts"

/**
 * The placeholders about the day: the day itself; the last day whose documents count; and whether what has no date, such as
 * a status, is known for the day.
 */
export type DayName = "as_of" | "until" | "is_present"
const dayNames: ReadonlySet<string> = new Set<DayName>(["as_of", "until", "is_present"])
const isDayName = (name: string): name is DayName => dayNames.has(name)

const placeholder = /\{\{(\w+)\}\}/g

export interface SqlFile {
  /** The lines of the comment at the beginning, without their marks. */
  readonly comment: ReadonlyArray<string>
  readonly sql: string
}

/** Splits a file after the comment at its beginning. */
export const split = (file: string): SqlFile => {
  const lines = file.trimEnd().split("\n")
  const found = lines.findIndex((line) => !line.startsWith("--"))
  const code = found < 0 ? lines.length : found
  return {
    comment: lines.slice(0, code).map((line) => line.slice(2).replace(/^ /, "")),
    sql: lines.slice(code).join("\n")
  }
}

const namesIn = (sql: string): ReadonlyArray<string> =>
  [...new Set([...sql.matchAll(placeholder)].map((match) => match[1]!))].sort()

/** The resources in the placeholders, each once. */
export const resourcesIn = (sql: string): ReadonlyArray<string> => namesIn(sql).filter((name) => !isDayName(name))

/** The placeholders about the day, each once. */
export const dayNamesIn = (sql: string): ReadonlyArray<DayName> => namesIn(sql).filter(isDayName)

/** The query with the tables of a dataset, and with what `day` answers for the placeholders about the day. */
export const fill = (sql: string, dataset: string, day: (name: DayName) => string): string =>
  sql.replace(placeholder, (_whole, name: string) =>
    isDayName(name) ? day(name) : `${identifier(dataset)}.${identifier(name)}`
  )
