/** The output of `schema plan` and `schema apply` for people. */
import * as Effect from "effect/Effect"
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

const viewNotes = ({ skippedViews, refusedViews }: SchemaReport): ReadonlyArray<string> => [
  ...skippedViews.map(
    ({ name, missing }) => `  the view ${name} needs tables that are not synced: ${missing.join(", ")}`
  ),
  ...refusedViews.flatMap(({ name, reason, remedy }) => [
    `tributary: ${name} was not changed: ${reason}`,
    `  what to do: ${remedy}`
  ])
]

const damageNotes = ({ damaged }: SchemaReport): ReadonlyArray<string> =>
  damaged.length === 0
    ? []
    : [...damaged.map((sentence) => `tributary: ${sentence}`), `  what to do: ${TableDamage.remedy}`]

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

export const printReport = Effect.fnUntraced(function* (report: SchemaReport, isPlan: boolean) {
  const { statements, unknownFields, names, adopted, privacy } = report
  yield* Output.printLines([
    ...(isPlan ? [...privacy.map((sentence) => `-- ${sentence}`), ...statementLines(statements)] : []),
    ...fieldLines(unknownFields, isPlan),
    ...nameLines(names)
  ])
  for (const line of [...viewNotes(report), ...damageNotes(report)]) yield* Output.note(line)
  const adoptedLines = adopted.map(
    ({ resource, field, column, type }) => `  ${resource}.${field} has the column ${column} (${type}) now`
  )
  yield* Output.printLines([...(isPlan ? [] : adoptedLines), summaryLine(report, isPlan)])
})
