/**
 * Refused records as a file: corrected by a person, it is pushed as it is.
 *
 * Promise: every value stands there with the digits it was given with; why the record was refused stands in members
 * whose names begin with an underscore, which a push passes over.
 */
import type { RejectedRow } from "./Push.ts"
import { isObject, type Json, type JsonObject, NotJson, NumberToken, parse, print, printSorted } from "../json/Json.ts"

/** Why it was refused: what is told beside a record. */
const told = ["_line", "_code", "_field", "_message"] as const

const parsed = (text: string): Json => {
  try {
    return parse(text)
  } catch (error) {
    if (error instanceof NotJson) return text
    throw error
  }
}

/** Why, in one sentence. */
const messageOf = ({ reason, problems }: RejectedRow): string => {
  const each = problems.map(({ field, message }) => (field === null ? message : `${field}: ${message}`))
  return [...(reason === "" ? [] : [reason]), ...each.filter((text) => !reason.includes(text))].join("; ")
}

/** The record with what names it and why it was refused. What is no record stands in `_record`, for a person. */
export const membersOf = (refusal: RejectedRow): JsonObject => {
  const { line, code, field, recordId, externalid, operation } = refusal
  const record = parsed(refusal.record)
  const members = new Map<string, Json>(isObject(record) ? record : [["_record", record]])
  if (operation !== "create") {
    if (recordId !== null) members.set("id", new NumberToken(recordId))
    else if (externalid !== null && !members.has("externalid")) members.set("externalid", externalid)
  }
  for (const name of told) members.delete(name)
  if (line !== null) members.set("_line", new NumberToken(String(line)))
  members.set("_code", code)
  if (field !== null) members.set("_field", field)
  members.set("_message", messageOf(refusal))
  return members
}

/** A line of JSON. */
export const toNdJson = (refusal: RejectedRow): string => printSorted(membersOf(refusal))

/** The columns that a CSV file of these records needs, why they were refused first. */
export const columnsOf = (names: ReadonlySet<string>): ReadonlyArray<string> => [
  ...told.filter((name) => names.has(name)),
  ...[...names].filter((name) => !told.some((one) => one === name))
]

const cell = (value: Json | undefined): string => {
  if (value === undefined || value === null) return ""
  const text = typeof value === "string" ? value : print(value)
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A row of CSV. */
export const toCsv = (members: JsonObject, columns: ReadonlyArray<string>): string =>
  columns.map((name) => cell(members.get(name))).join(",")

export const csvHeader = (columns: ReadonlyArray<string>): string => columns.map(cell).join(",")

/** Members that a cell cannot say, since an empty one was not given. */
export const lostInCsv = (members: JsonObject): ReadonlyArray<string> =>
  [...members].flatMap(([name, value]) => (value === null || value === "" ? [name] : []))
