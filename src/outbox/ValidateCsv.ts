/**
 * Validation of CSV rows.
 *
 * Promise: a problem of the header is reported once, and not again for each row.
 */
import type { Json } from "../json/Json.ts"
import type { Problem } from "./Push.ts"
import {
  customFields,
  isInvalid,
  nameProblem,
  type RecordRules,
  validateRecord,
  type ValidationResult
} from "./ValidateRecord.ts"
import { cellValue, InvalidValue } from "./ValidateValue.ts"

export interface ValidatedHeader {
  readonly names: ReadonlyArray<string>
  /** Fields that no row can have; null is the identity of the record to change. */
  readonly missing: ReadonlySet<string | null>
  readonly problems: ReadonlyArray<Problem>
}

export const noHeader: ValidatedHeader = { names: [], missing: new Set(), problems: [] }

/** The required fields that no column holds, with the message for each. */
const missingColumns = (
  { columns, keyName, operation, resource }: RecordRules,
  names: ReadonlyArray<string>
): ReadonlyMap<string | null, string> => {
  const has = (name: string | null) => name !== null && names.includes(name)
  const missing = new Map<string | null, string>()
  if (operation !== "create") {
    if (!has(resource.roles.id) && !has(keyName)) {
      missing.set(null, `no column identifies the record: give its ${resource.roles.id}, or its ${keyName}`)
    }
    return missing
  }
  if (!has(keyName)) missing.set(keyName, "has no column, and is required")
  for (const { name, required, pairedWith } of columns.values()) {
    if (required && !has(name) && !has(pairedWith)) missing.set(name, "has no column, and is required")
  }
  return missing
}

export const validateHeader = (rules: RecordRules, names: ReadonlyArray<string>): ValidatedHeader => {
  const columnProblem = (name: string, index: number): string | null => {
    const first = names.indexOf(name)
    if (name === "") return `column ${index + 1} has no name`
    return first < index ? `names column ${first + 1} and column ${index + 1}` : nameProblem(rules, name)
  }
  const missing = missingColumns(rules, names)
  const problems = [
    ...names.map((name, index) => [name === "" ? null : name, columnProblem(name, index)] as const),
    ...missing
  ].flatMap(([field, message]): ReadonlyArray<Problem> => (message === null ? [] : [{ line: null, field, message }]))
  return { names, missing: new Set(missing.keys()), problems }
}

/** Validates a row; null when all of its problems are problems of the header. */
export const validateCells = (
  rules: RecordRules,
  header: ValidatedHeader,
  cells: ReadonlyArray<string>
): ValidationResult | null => {
  const { columns, keyName, otherNames } = rules
  const members = new Map<string, Json>()
  const problems: Array<Problem> = []
  for (const [index, cell] of cells.entries()) {
    const name = header.names[index]
    if (cell === "" || name === undefined || members.has(name)) continue
    const column = columns.get(name)
    if (column === undefined && name !== customFields) {
      if (name === keyName || otherNames.includes(name)) members.set(name, cell)
      continue
    }
    const value = cellValue(column?.type ?? null, cell)
    if (value instanceof InvalidValue) problems.push({ line: null, field: name, message: value.message })
    else members.set(name, value)
  }
  const result = validateRecord(rules, members, {}, problems)
  if (header.missing.size === 0 || !isInvalid(result)) return result
  const own = result.filter(({ field }) => !header.missing.has(field))
  return own.length === 0 ? null : own
}
