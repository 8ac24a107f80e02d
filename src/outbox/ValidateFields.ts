/** Validation of the fields of a body, and their JSON text. */
import { isList, isObject, type Json } from "../json/Json.ts"
import { listFields } from "./FieldHints.ts"
import type { Operation } from "./Push.ts"
import { columnText, fieldName, InvalidValue, showValue } from "./ValidateValue.ts"
import type { WriteColumn, WriteColumns } from "./WriteSchema.ts"

type Members = ReadonlyMap<string, Json>

/** Reports a problem of a field; null is the record as a whole. */
export type AddProblem = (field: string | null, message: string) => void

const isMissing = (members: Members, { name, type }: WriteColumn): boolean => {
  const value = members.get(name)
  return value === undefined || value === null || (value === "" && type._tag === "string")
}

/** Why a required field is missing; null when its pair has a value. */
const missingMessage = (columns: WriteColumns, members: Members, { name, pairedWith }: WriteColumn): string | null => {
  const other = pairedWith === null ? undefined : columns.get(pairedWith)
  if (other === undefined) return "is required"
  return isMissing(members, other) ? `is required: give ${name} or ${other.name}` : null
}

/** The lines of a field as JSON. */
const linesText = (columns: WriteColumns, lines: ReadonlyArray<Json>, path: string, addProblem: AddProblem): string => {
  const texts = lines.map((line, index) => {
    const place = `${path}[${index}]`
    if (!isObject(line)) {
      addProblem(place, `must be an object, not ${showValue(line)}`)
      return ""
    }
    for (const name of line.keys()) {
      if (columns.has(name)) continue
      addProblem(`${place}.${fieldName(name)}`, `is no field of a line; ${listFields(name, columns, [])}`)
    }
    // A line is written as a whole, also when its record is updated.
    return `{${fieldTexts(columns, line, `${place}.`, "create", addProblem).join(",")}}`
  })
  return `[${texts.join(",")}]`
}

/** The value of a field as JSON; null when there is a problem. */
const fieldText = (column: WriteColumn, given: Json, path: string, addProblem: AddProblem): string | null => {
  if (given === null) return "null"
  if (column.lines === null) {
    const text = columnText(column, given)
    if (!(text instanceof InvalidValue)) return text
    addProblem(path, text.message)
    return null
  }
  if (!isList(given)) {
    addProblem(path, `must be a list of lines, not ${showValue(given)}`)
    return null
  }
  if (column.required && given.length === 0) addProblem(path, "must have at least one line")
  return linesText(column.lines, given, path, addProblem)
}

/** The fields of a body or of a line as members of JSON, in the order of the columns. */
export const fieldTexts = (
  columns: WriteColumns,
  members: Members,
  prefix: string,
  operation: Operation,
  addProblem: AddProblem
): ReadonlyArray<string> => {
  const texts: Array<string> = []
  for (const column of columns.values()) {
    const { name, required } = column
    const given = members.get(name)
    if (required && isMissing(members, column) && (operation === "create" || given !== undefined)) {
      const message = missingMessage(columns, members, column)
      if (message !== null) {
        addProblem(`${prefix}${name}`, message)
        continue
      }
    }
    if (given === undefined || (given === null && operation === "create")) continue
    const text = fieldText(column, given, `${prefix}${name}`, addProblem)
    if (text !== null) texts.push(`${JSON.stringify(name)}:${text}`)
  }
  return texts
}
