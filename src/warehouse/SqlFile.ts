/**
 * A SQL file of a connector: a comment that documents it, and a query that names the tables of resources as `{{path}}`.
 */
import { identifier } from "./Identifier.ts"

/** The name of the placeholder for today's date. */
export const asOf = "as_of"

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

/** The names in the placeholders, each once. */
export const namesIn = (sql: string): ReadonlyArray<string> =>
  [...new Set([...sql.matchAll(placeholder)].map((match) => match[1]!))].sort()

/** The query with the tables of a dataset, and with what `today` answers for today's date. */
export const fill = (sql: string, dataset: string, today: () => string): string =>
  sql.replace(placeholder, (_whole, name: string) =>
    name === asOf ? today() : `${identifier(dataset)}.${identifier(name)}`
  )
