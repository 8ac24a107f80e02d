/**
 * An invariant: a rule about the records as SQL, which answers a row for each record that violates it.
 *
 * Promise: the documentation of a rule is that of its file. The file is SQL that begins with a comment: the rule in one
 * line, its severity, and what counts and what does not. A file without one of these parts is refused when it is read.
 *
 * The SQL names a resource's table as `{{path}}`; nothing else is filled in. Its result depends on these tables only, and
 * not on the time, since it is evaluated when they change. It answers {@link violationColumns}.
 */
import { dayNamesIn, fill, resourcesIn, split } from "../warehouse/SqlFile.ts"

/** From the mildest on. */
export const severities = ["warning", "critical"] as const
export type Severity = (typeof severities)[number]

export interface Invariant {
  readonly name: string
  readonly severity: Severity
  /** The rule in one line: what holds for every record. */
  readonly statement: string
  /** The whole documentation, the statement first. */
  readonly comment: string
  /** Resources whose tables it reads. */
  readonly resources: ReadonlyArray<string>
  /** The query, with placeholders for the names of tables. */
  readonly sql: string
}

/** The columns of the query: the record that violates the rule, and why, as one sentence without its full stop. */
export const violationColumns = [
  ["company_id", "bigint"],
  ["resource", "text"],
  ["id", "bigint"],
  ["detail", "text"]
] as const

const severityPrefix = "Severity: "

/** The resources that a query reads, with those that are `stated` beside it; or why it is no query of an invariant. */
export const resourcesOf = (sql: string, stated: ReadonlyArray<string> = []): ReadonlyArray<string> | string => {
  const names = [...new Set([...resourcesIn(sql), ...stated])].sort()
  const [day] = dayNamesIn(sql)
  if (day !== undefined) return `its SQL names {{${day}}}, but a rule may not depend on the day`
  if (names.length === 0) return "its SQL names no table as {{resource}}"
  return names
}

/** Reads the file of a rule. Throws on a mistake in it, which is a defect of the connector. */
export const invariantOf = (name: string, file: string): Invariant => {
  const refuse = (problem: string) => new Error(`the invariant ${name}: ${problem}`)
  const { comment, sql } = split(file)
  const severity = severities.find((one) => comment.includes(`${severityPrefix}${one}`))
  if (severity === undefined) throw refuse(`its comment does not state "${severityPrefix}${severities.join("|")}"`)
  const prose = comment.filter((line) => !line.startsWith(severityPrefix))
  const [statement = ""] = prose
  if (!statement.endsWith(".") || prose[1] !== "") throw refuse("its comment does not begin with the rule in one line")
  const resources = resourcesOf(sql)
  if (typeof resources === "string") throw refuse(resources)
  return { name, severity, statement, comment: prose.join("\n").trim(), resources, sql }
}

/** The query over a dataset with the tables of the resources. */
export const queryOf = ({ name, sql }: Invariant, { current }: { readonly current: string }): string => {
  const columns = violationColumns.map(([column, type]) => `v.${column}::${type} as ${column}`)
  const filled = fill(sql, current, () => {
    throw new Error(`the invariant ${name} depends on the day`)
  })
  return `select ${columns.join(", ")} from (\n${filled}\n) v`
}
