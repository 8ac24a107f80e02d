/**
 * The export of rejected records to a file, which a person corrects and pushes.
 *
 * Promise: every value keeps the digits that were given. The reason of a rejection is in members whose names begin with
 * an underscore; a push ignores them.
 */
import { csvRow } from "../export/Csv.ts"
import { externalKeyOf } from "./Externalid.ts"
import type { FieldRoles } from "../catalogue/SourceTraits.ts"
import type { RejectedRow } from "./Push.ts"
import { isObject, type Json, type JsonObject, NotJson, NumberToken, parse, print, printSorted } from "../json/Json.ts"

/** Members with the reason of a rejection. */
const reasonMembers = ["_line", "_code", "_field", "_message"] as const

const parsed = (text: string): Json => {
  try {
    return parse(text)
  } catch (error) {
    if (error instanceof NotJson) return text
    throw error
  }
}

/** The reason in one sentence. */
const messageOf = ({ reason, problems }: RejectedRow): string => {
  const each = problems.map(({ field, message }) => (field === null ? message : `${field}: ${message}`))
  return [...(reason === "" ? [] : [reason]), ...each.filter((text) => !reason.includes(text))].join("; ")
}

/** The record with its identity and the reason. A text that is no record is in `_record`, for a person. */
export const membersOf = (rejection: RejectedRow, roles: FieldRoles): JsonObject => {
  const { line, code, field, recordId, externalid, operation } = rejection
  const record = parsed(rejection.record)
  const members = new Map<string, Json>(isObject(record) ? record : [["_record", record]])
  if (operation !== "create") {
    if (recordId !== null) members.set(roles.id, new NumberToken(recordId))
    else if (externalid !== null) {
      const key = externalKeyOf({ roles })
      if (!members.has(key)) members.set(key, externalid)
    }
  }
  for (const name of reasonMembers) members.delete(name)
  if (line !== null) members.set("_line", new NumberToken(String(line)))
  members.set("_code", code)
  if (field !== null) members.set("_field", field)
  members.set("_message", messageOf(rejection))
  return members
}

/** A line of JSON. */
export const toNdJson = (rejection: RejectedRow, roles: FieldRoles): string => printSorted(membersOf(rejection, roles))

/** The columns of a CSV file of these records, the reason first. */
export const columnsOf = (names: ReadonlySet<string>): ReadonlyArray<string> => [
  ...reasonMembers.filter((name) => names.has(name)),
  ...[...names].filter((name) => !reasonMembers.some((one) => one === name))
]

const cell = (value: Json | undefined): string | null =>
  value === undefined || value === null ? null : typeof value === "string" ? value : print(value)

/** A row of CSV. */
export const toCsv = (members: JsonObject, columns: ReadonlyArray<string>): string =>
  csvRow(columns.map((name) => cell(members.get(name))))

/** Members that a cell cannot hold: an empty cell is a value that was not given. */
export const lostInCsv = (members: JsonObject): ReadonlyArray<string> =>
  [...members].flatMap(([name, value]) => (value === null || value === "" ? [name] : []))
