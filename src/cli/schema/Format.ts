/** The output of `schema plan` and `schema apply` for people. */
import * as TableDamage from "../../warehouse/TableDamage.ts"
import * as Output from "../Output.ts"
import type { SchemaReport } from "./SchemaChanges.ts"

const isComment = (statement: string): boolean => statement.startsWith("comment on ")

const statementLines = (statements: SchemaReport["statements"]): ReadonlyArray<string> => {
  const comments = statements.filter(isComment).length
  return [
    ...statements.filter((statement) => !isComment(statement)).map((statement) => `${statement};`),
    ...(comments === 0 ? [] : [`-- and ${Output.plural(comments, "comment")} on tables and columns`])
  ]
}

const fieldLines = (fields: SchemaReport["unknownFields"], isPlan: boolean): ReadonlyArray<string> =>
  fields.length === 0
    ? []
    : [
        `\nFields that the catalogue does not state${isPlan ? "" : " and that have no column"}:`,
        Output.table(
          ["field", "records", "values seen", "future column", "created by"],
          fields.map((one) => [
            `${one.resource}.${one.field}`,
            Output.count(one.times),
            one.sampleTypes.join(", "),
            one.type === null ? "none yet" : `${one.column ?? one.field} ${one.type}`,
            one.isAutomatic ? "the next sync" : "schema apply"
          ]),
          ["left", "right"]
        )
      ]

const nameLines = (names: SchemaReport["names"]): ReadonlyArray<string> =>
  names.length === 0
    ? []
    : [
        "\nNames that differ from the API's:",
        Output.table(
          ["name", "in the database"],
          names.map(({ resource, name, inDatabase }) => [resource === null ? name : `${resource}.${name}`, inDatabase])
        )
      ]

const summaryLine = ({ privacy, statements }: SchemaReport, isPlan: boolean): string => {
  const text = Output.plural(statements.length, "statement")
  if (isPlan) {
    const changes = [
      ...(statements.length === 0 ? [] : [text]),
      ...(privacy.length === 0 ? [] : [`the privacy rules of ${Output.plural(privacy.length, "resource")}`])
    ]
    return changes.length === 0
      ? "The warehouse is up to date."
      : `\n${changes.join(", and ")}, to apply: tributary schema apply`
  }
  return statements.length === 0 ? "The warehouse was up to date; nothing was changed." : `${text} ran.`
}

/** The report of a plan, or of what was applied. */
export const reportLines = (report: SchemaReport, isPlan: boolean): ReadonlyArray<string> => {
  const { statements, unknownFields, names, adopted, privacy } = report
  return [
    ...(isPlan ? [...privacy.map((sentence) => `-- ${sentence}`), ...statementLines(statements)] : []),
    ...fieldLines(unknownFields, isPlan),
    ...nameLines(names),
    ...(isPlan
      ? []
      : adopted.map(
          ({ resource, field, column, type }) => `  ${resource}.${field} has the column ${column} (${type}) now`
        )),
    summaryLine(report, isPlan)
  ]
}

/** What was not changed, and why. */
export const reportNotes = ({ damaged, skippedViews, refusedViews }: SchemaReport): ReadonlyArray<string> => [
  ...skippedViews.map(
    ({ name, missing }) => `  the view ${name} needs tables that are not synced: ${missing.join(", ")}`
  ),
  ...refusedViews.flatMap(({ name, reason, remedy }) => [
    `tributary: ${name} was not changed: ${reason}`,
    `  what to do: ${remedy}`
  ]),
  ...damaged.map((sentence) => `tributary: ${sentence}`),
  ...(damaged.length === 0 ? [] : [`  what to do: ${TableDamage.remedy}`])
]
