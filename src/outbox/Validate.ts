/**
 * Validation of records before they are pushed.
 *
 * Promise: the bytes of a valid record are sent exactly, with the digits that were given. Everything that the source
 * would reject for its form is found before anything is sent: every problem of a record, with the change that helps. Checks
 * that only the source can make (whether a reference resolves, whether a period is open) are left to it.
 */
import { externalKeyOf } from "./Externalid.ts"
import type { Resource } from "../catalogue/Resource.ts"
import { isObject, NotJson, read } from "../json/Json.ts"
import type { InputRecord } from "./input/InputRecord.ts"
import type { Operation, Problem } from "./Push.ts"
import { noHeader, validateCells, validateHeader } from "./ValidateCsv.ts"
import {
  type IdentifiedRecord,
  isInvalid,
  nameProblem,
  type RecordRules,
  rulesOf,
  validateRecord,
  type ValidationResult
} from "./ValidateRecord.ts"
import { fieldName, showValue } from "./ValidateValue.ts"
import { unsupported } from "./WriteSchema.ts"

export { isInvalid, type ValidRecord } from "./ValidateRecord.ts"

export interface Validator {
  /** Validates a record by its JSON text; numbers keep their digits. Problems have no line. */
  readonly validateJson: (json: string, beside?: IdentifiedRecord) => ValidationResult
  /**
   * Validates the parts of an input in their order; problems have the line. Null is a header without problems, or a row
   * whose problems were reported with the header.
   */
  readonly validateInput: (input: InputRecord) => ValidationResult | null
}

export interface ValidatorOptions {
  /** The column or member that holds the externalid; null is the source's name of it. */
  readonly externalidFrom?: string | null
}

/** Whether records of the resource can be pushed. */
export const isSupported = (validator: Validator | Problem): validator is Validator => "validateJson" in validator

const problemOf = (field: string | null, message: string): Problem => ({ line: null, field, message })

const validateJson = (
  rules: RecordRules,
  json: string,
  beside: IdentifiedRecord,
  nullIsAbsent: boolean
): ValidationResult => {
  try {
    const { value, duplicates } = read(json)
    if (!isObject(value)) return [problemOf(null, `must be a JSON object, not ${showValue(value)}`)]
    const members = nullIsAbsent ? new Map([...value].filter(([, member]) => member !== null)) : value
    const problems = duplicates.map((name) => problemOf(fieldName(name), "is given twice"))
    for (const name of members.keys()) {
      const message = nameProblem(rules, name)
      if (message !== null) problems.push(problemOf(fieldName(name), message))
    }
    return validateRecord(rules, members, beside, problems)
  } catch (error) {
    if (error instanceof NotJson) return [problemOf(null, `is no JSON: ${error.message}`)]
    throw error
  }
}

const withLine = (line: number, result: ValidationResult): ValidationResult =>
  isInvalid(result) ? result.map((problem) => ({ ...problem, line })) : result

/** Makes the validator of an operation; a {@link Problem} when the resource does not support it. */
export const makeValidator = (
  resource: Resource,
  operation: Operation,
  { externalidFrom = null }: ValidatorOptions = {}
): Validator | Problem => {
  const problem = unsupported(resource, operation)
  if (problem !== null) return problem
  const rules = rulesOf(resource, operation, externalidFrom ?? externalKeyOf(resource))
  let header = noHeader
  const resultOf = (input: InputRecord): ValidationResult | null => {
    switch (input._tag) {
      case "Json":
        return validateJson(rules, input.json, {}, input.nullIsAbsent)
      case "Cells":
        return validateCells(rules, header, input.cells)
      case "Unreadable":
        return [problemOf(null, input.message)]
      case "Header":
        header = validateHeader(rules, input.names)
        return header.problems.length === 0 ? null : header.problems
    }
  }
  return {
    validateJson: (json, beside = {}) => validateJson(rules, json, beside, false),
    validateInput: (input) => {
      const result = resultOf(input)
      return result === null ? null : withLine(input.line, result)
    }
  }
}
