/**
 * Whether a record can be pushed as it was given, and the bytes that will be sent.
 *
 * Promise: what passes is sent exactly: a decimal with the digits that were given, never rounded; the same record always
 * gives the same text. What the source would refuse for its form is found before anything is sent, every problem of
 * a record and not the first alone, in words that say what to change. What only the source can know (whether a
 * reference resolves, whether a period is open) is left to it.
 */
import type { FieldType } from "../catalogue/Field.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { InputRecord } from "./input/InputRecord.ts"
import type { Operation, Problem } from "./Push.ts"
import { unsupported, shapeOf, type WriteColumn, type WriteColumns } from "./WriteSchema.ts"
import { dayOf, instantOf } from "./Time.ts"
import {
  isList,
  isObject,
  isPlain,
  isPlainText,
  type Json,
  NotJson,
  NumberToken,
  print,
  printSorted,
  read
} from "../json/Json.ts"

/** One record found to fit. */
export interface ValidRecord {
  /** Our own key: of the record to create, or the one that names the record to change where no id does. */
  readonly externalid: string | null
  /** The source's number of the record to change. */
  readonly recordId: string | null
  /** The canonical JSON of the body that will be sent, byte for byte; `{}` for a cancel. */
  readonly text: string
}

/** Which record it is, where that is told beside the record itself. */
export interface IdentifiedRecord {
  readonly externalid?: string | null
  readonly recordId?: string | null
}

export interface Validator {
  /** The record's JSON text as given; numbers are read from their tokens. Problems have no line. */
  readonly text: (json: string, given?: IdentifiedRecord) => ValidRecord | ReadonlyArray<Problem>
  /**
   * What a reader gave, in the order in which it was given; problems say the line. What is wrong with a header, or
   * lacking in it, is told once and not again for each row: null is nothing to tell, and no record.
   */
  readonly given: (given: InputRecord) => ValidRecord | ReadonlyArray<Problem> | null
}

export interface ValidatorOptions {
  /** The column or member that holds the externalid; null is `externalid`. */
  readonly externalidFrom?: string | null
}

export const isInvalid = (answer: ValidRecord | ReadonlyArray<Problem>): answer is ReadonlyArray<Problem> =>
  Array.isArray(answer)

export const isOffered = (answer: Validator | Problem): answer is Validator => "text" in answer

/** Members that `export-refused` adds for people: not looked at. */
const ignored: ReadonlySet<string> = new Set(["_line", "_code", "_field", "_message"])

const customFields = "custom_fields"
const externalidLengthMax = 100
/** Digits of a decimal, before and after the point together: what the warehouse's columns hold, too. */
const decimalDigitsMax = 20
const int64Max = 2n ** 63n - 1n
const shownMax = 60

/** Why a value does not fit. */
class Wrong {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

const shown = (value: Json): string => {
  const text = print(value)
  return text.length <= shownMax ? text : `${text.slice(0, shownMax)}…`
}

const codePoints = (text: string): number => {
  let count = 0
  for (const _ of text) count++
  return count
}

/** The name of a field in a problem: whatever was given, it can be stored and read. */
const fieldName = (name: string): string => {
  const plain = isPlainText(name) ? name : JSON.stringify(name)
  return plain.length <= shownMax ? plain : `${plain.slice(0, shownMax)}…`
}

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? "" : "s"}`

// ---------------------------------------------------------------------------------------------------------------------
// Values
// ---------------------------------------------------------------------------------------------------------------------

const decimal = /^(-?)(\d+)(?:\.(\d+))?$/
const whole = /^-?(?:0|[1-9]\d*)$/

const decimalText = ({ scale }: FieldType & { readonly _tag: "decimal" }, given: Json): string | Wrong => {
  const text = given instanceof NumberToken ? given.text : given
  const match = typeof text === "string" ? decimal.exec(text) : null
  if (match === null) return new Wrong(`must be a plain decimal such as "12.50", not ${shown(given)}`)
  const fraction = match[3] ?? ""
  if (fraction.length > scale) {
    return new Wrong(
      `holds ${scale === 0 ? "no decimals" : `at most ${plural(scale, "decimal")}`} and is never rounded here; ${match[0]} has ${fraction.length}`
    )
  }
  const digits = match[2]!.replace(/^0+(?=\d)/, "").length
  const digitsMax = decimalDigitsMax - scale
  if (digits > digitsMax)
    return new Wrong(`holds at most ${digitsMax} digits before the point; ${match[0]} has ${digits}`)
  return JSON.stringify(match[0])
}

const integerText = (given: Json): string | Wrong => {
  if (!(given instanceof NumberToken) || !whole.test(given.text)) {
    return new Wrong(`must be a whole number, not ${shown(given)}`)
  }
  const value = given.text.length > 20 ? null : BigInt(given.text)
  if (value === null || value > int64Max || value < -int64Max - 1n) return new Wrong(`is too large: ${shown(given)}`)
  return String(value)
}

/** The value as JSON. */
const valueText = (type: FieldType, given: Json): string | Wrong => {
  switch (type._tag) {
    case "integer":
      return integerText(given)
    case "decimal":
      return decimalText(type, given)
    case "boolean":
      return typeof given === "boolean" ? String(given) : new Wrong(`must be true or false, not ${shown(given)}`)
    case "string": {
      if (typeof given !== "string") return new Wrong(`must be a text, not ${shown(given)}`)
      if (!isPlainText(given)) return new Wrong("has a NUL or half a surrogate pair, which no text can hold")
      const { maxLength } = type
      if (maxLength !== null && given.length > maxLength) {
        const length = codePoints(given)
        if (length > maxLength) return new Wrong(`holds at most ${plural(maxLength, "character")}; this has ${length}`)
      }
      return JSON.stringify(given)
    }
    case "date":
      // Both forms are taken on every field of either kind (F-01).
      return typeof given === "string" && (dayOf(given) !== null || instantOf(given) !== null)
        ? JSON.stringify(given)
        : new Wrong(`must be a day that exists, YYYY-MM-DD, not ${shown(given)}`)
    case "timestamp":
      return typeof given === "string" && (instantOf(given) !== null || dayOf(given) !== null)
        ? JSON.stringify(given)
        : new Wrong(`must be a time in UTC such as 2026-03-16T09:00:00Z, not ${shown(given)}`)
    case "list":
      if (!isList(given)) return new Wrong(`must be a list, not ${shown(given)}`)
      return isPlain(given)
        ? printSorted(given)
        : new Wrong("has a NUL or half a surrogate pair, which no text can hold")
  }
}

const allowed = ({ values }: WriteColumn): string =>
  (values ?? []).map(({ value, meaning }) => `${JSON.stringify(value)} (${meaning})`).join(", ")

const slotText = (slot: WriteColumn, given: Json): string | Wrong => {
  const text = valueText(slot.type, given)
  if (text instanceof Wrong || slot.values === null) return text
  return slot.values.some(({ value }) => JSON.stringify(value) === text)
    ? text
    : new Wrong(`must be one of ${allowed(slot)}, not ${shown(given)}`)
}

/** A cell as the value that its field takes; what cannot be one stays text, and is refused as that. */
const cellValue = (type: FieldType | null, cell: string): Json | Wrong => {
  switch (type?._tag) {
    case "integer":
      return whole.test(cell) ? new NumberToken(cell) : cell
    case "boolean":
      if (/^(?:true|yes|1)$/i.test(cell)) return true
      return /^(?:false|no|0)$/i.test(cell) ? false : cell
    case "list":
    case undefined:
      try {
        const { value, twice } = read(cell)
        return twice.length === 0 ? value : new Wrong(`names ${fieldName(twice[0]!)} twice`)
      } catch (error) {
        if (error instanceof NotJson) return new Wrong(`must be JSON in its cell: ${error.message}`)
        throw error
      }
    default:
      return cell
  }
}

/** An externalid, which may be given as a number, too: where it comes from it often is one. */
const keyText = (given: Json): string | Wrong => {
  const text = given instanceof NumberToken && whole.test(given.text) ? given.text : given
  if (typeof text !== "string") return new Wrong(`must be a text, not ${shown(given)}`)
  const length = codePoints(text)
  if (length === 0 || length > externalidLengthMax) {
    return new Wrong(`has 1 to ${externalidLengthMax} characters; this has ${length}`)
  }
  return isPlainText(text) ? text : new Wrong("has a NUL or half a surrogate pair, which no text can hold")
}

/** Why a source could store another externalid than this one; null when it has no reason to. */
const notKept = (text: string): string | null => {
  if (/\p{Cc}/u.test(text)) return "has a control character, which the service may drop: take it out"
  if (text.trim() !== text) return "begins or ends with a blank, which the service may drop: take it out"
  if (text.normalize("NFC") !== text) {
    return "is not in Unicode's composed form (NFC), into which the service may bring it: normalise it"
  }
  return null
}

/** Two externalids with the same form may be one to a source. */
export const foldedExternalid = (text: string): string => text.normalize("NFC").trim().toLowerCase()

// ---------------------------------------------------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------------------------------------------------

/** How many letters must be added, left out or changed to make one name of the other. */
const distance = (left: string, right: string): number => {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const current = [i]
    for (let j = 1; j <= right.length; j++) {
      const changed = previous[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1)
      current.push(Math.min(changed, previous[j]! + 1, current[j - 1]! + 1))
    }
    previous = current
  }
  return previous[right.length]!
}

const comparedMax = 64

/** What the shape takes, the most likely first: what sets the field of that name, then what is spelt alike. */
const takes = (name: string, slots: WriteColumns, more: ReadonlyArray<string>): string => {
  const lower = name.slice(0, comparedMax).toLowerCase()
  const likely = [...slots.values()].map((slot) => ({
    name: slot.name,
    far: slot.sets === name ? -1 : distance(lower, slot.name.toLowerCase())
  }))
  const all = [...likely.sort((a, b) => a.far - b.far).map((one) => one.name), ...more]
  return all.length === 0 ? "nothing is" : `these are: ${all.join(", ")}`
}

// ---------------------------------------------------------------------------------------------------------------------
// Records
// ---------------------------------------------------------------------------------------------------------------------

type Tell = (field: string | null, message: string) => void

/** The fields of a body or of a line as members of JSON, in the order of the shape. */
const membersOf = (
  slots: WriteColumns,
  members: ReadonlyMap<string, Json>,
  at: string,
  operation: Operation,
  tell: Tell
): Array<string> => {
  const texts: Array<string> = []
  const missing = (slot: WriteColumn) => {
    const value = members.get(slot.name)
    return value === undefined || value === null || (value === "" && slot.type._tag === "string")
  }
  for (const slot of slots.values()) {
    const { name, pairedWith } = slot
    const given = members.get(name)
    if (slot.required && missing(slot) && (operation === "create" || given !== undefined)) {
      const other = pairedWith === null ? undefined : slots.get(pairedWith)
      if (other === undefined || missing(other)) {
        tell(`${at}${name}`, other === undefined ? "is required" : `is required: give ${name} or ${other.name}`)
        continue
      }
    }
    if (given === undefined || (given === null && operation === "create")) continue
    const member = (text: string) => texts.push(`${JSON.stringify(name)}:${text}`)
    if (given === null) {
      member("null")
      continue
    }
    if (slot.lines === null) {
      const text = slotText(slot, given)
      if (text instanceof Wrong) tell(`${at}${name}`, text.message)
      else member(text)
      continue
    }
    if (!isList(given)) {
      tell(`${at}${name}`, `must be a list of lines, not ${shown(given)}`)
      continue
    }
    if (slot.required && given.length === 0) tell(`${at}${name}`, "must have at least one line")
    const nested = slot.lines
    const lines = given.map((line, index) => {
      const place = `${at}${name}[${index}]`
      if (!isObject(line)) {
        tell(place, `must be an object, not ${shown(line)}`)
        return ""
      }
      for (const inner of line.keys()) {
        if (!nested.has(inner))
          tell(`${place}.${fieldName(inner)}`, `is no field of a line; ${takes(inner, nested, [])}`)
      }
      // A line is written whole, whatever becomes of the record.
      return `{${membersOf(nested, line, `${place}.`, "create", tell).join(",")}}`
    })
    member(`[${lines.join(",")}]`)
  }
  return texts
}

/** Checks what is to be done with records of the resource; a {@link Problem} when that cannot be pushed. */
export const makeValidator = (
  resource: Resource,
  operation: Operation,
  { externalidFrom = null }: ValidatorOptions = {}
): Validator | Problem => {
  const refusal = unsupported(resource, operation)
  if (refusal !== null) return refusal
  const slots = shapeOf(resource, operation)
  const keyName = externalidFrom ?? "externalid"
  const changes = operation !== "create"
  const beside = [...(changes ? ["id", "externalid"] : []), ...(operation === "cancel" ? [] : [customFields])]

  /** Why a member of the name cannot be given; null when it can. */
  const notTaken = (name: string): string | null => {
    if (slots.has(name) || ignored.has(name) || name === keyName || beside.includes(name)) return null
    const field = resource.field.get(name)
    if (field?.readOnly === true && operation !== "cancel") return "is set by the service; leave it out"
    return operation === "cancel"
      ? "is not needed to cancel a record: give its id or externalid alone"
      : `is no field that can be written here; ${takes(
          name,
          slots,
          beside.filter((one) => !slots.has(one))
        )}`
  }

  const record = (
    members: ReadonlyMap<string, Json>,
    problems: Array<Problem>,
    told: IdentifiedRecord,
    namesAreChecked: boolean
  ): ValidRecord | ReadonlyArray<Problem> => {
    const tell: Tell = (field, message) => problems.push({ line: null, field, message })

    if (!namesAreChecked) {
      for (const name of members.keys()) {
        const message = notTaken(name)
        if (message !== null) tell(fieldName(name), message)
      }
    }

    /** The keys that the record tells of itself, with the place of each. */
    const key = (name: string, value: Json | undefined): string | null => {
      if (value === undefined || value === null) return null
      const text = keyText(value)
      if (!(text instanceof Wrong)) return text
      tell(fieldName(name), text.message)
      return null
    }
    const named = key(keyName, members.get(keyName))
    const inside = keyName === "externalid" ? named : (key("externalid", members.get("externalid")) ?? named)
    if (named !== null && inside !== named) {
      tell("externalid", `is "${inside}", and ${keyName}, which it is taken from, is "${named}"`)
    }
    const outside = key("externalid", told.externalid)

    let externalid = outside ?? named ?? inside
    // What names a record that stands already is as the source has it.
    const lost = operation !== "create" || externalid === null ? null : notKept(externalid)
    if (lost !== null) tell(keyName, lost)
    let recordId: string | null = null
    /** What the body says of the externalid; undefined is nothing. */
    let written: Json | undefined = externalid ?? undefined
    if (changes) {
      const number = (id: Json | undefined): string | null => {
        if (id === undefined || id === null) return null
        const text = typeof id === "string" ? id : integerText(id)
        if (!(text instanceof Wrong) && /^[1-9]\d{0,18}$/.test(text)) return text
        tell("id", `must be the record's number, not ${shown(id)}`)
        return null
      }
      const [id, toldId] = [number(members.get("id")), number(told.recordId)]
      if (id !== null && toldId !== null && id !== toldId) tell("id", `is ${id}, and the record is ${toldId}`)
      recordId = toldId ?? id
      const isNull = members.get(keyName) === null
      if (recordId !== null) {
        // The number names the record: the externalid is a field to change like any other.
        externalid = operation === "cancel" ? externalid : null
        written = isNull ? null : (inside ?? undefined)
      } else {
        if (externalid === null && problems.every(({ field }) => field !== "id" && field !== keyName)) {
          tell(null, `does not say which record it is: give its id, or its ${keyName}`)
        }
        // It names the record; only another one is a value to write.
        written = inside !== null && inside !== externalid ? inside : undefined
      }
    } else {
      if (externalid === null && problems.every(({ field }) => field !== keyName)) {
        const why =
          keyName === "externalid" ? "it tells whether the record was written already" : "it becomes the externalid"
        tell(keyName, `is required: ${why}`)
      }
      if (outside !== null && inside !== null && outside !== inside) {
        tell("externalid", `is "${inside}" in the record and "${outside}" beside it`)
      }
    }

    const body = new Map(members)
    body.delete("externalid")
    if (written !== undefined) body.set("externalid", written)
    if (slots.has("cancel") && body.get("cancel") === true) {
      tell("cancel", "cannot be set by a write; push the record to be cancelled with the operation cancel")
    }
    const texts = operation === "cancel" ? [] : membersOf(slots, body, "", operation, tell)
    const custom = operation === "cancel" ? undefined : members.get(customFields)
    if (custom !== undefined && !(custom === null && operation === "create")) {
      if (custom !== null && !isObject(custom)) tell(customFields, `must be an object, not ${shown(custom)}`)
      else if (!isPlain(custom)) tell(customFields, "has a NUL or half a surrogate pair, which no text can hold")
      else texts.push(`${JSON.stringify(customFields)}:${printSorted(custom)}`)
    }
    if (problems.length > 0) return problems
    if (operation === "update" && texts.length === 0) {
      return [{ line: null, field: null, message: "names no field to change" }]
    }
    return { externalid, recordId, text: `{${texts.join(",")}}` }
  }

  const textOf = (
    json: string,
    told: IdentifiedRecord,
    nullIsAbsent: boolean
  ): ValidRecord | ReadonlyArray<Problem> => {
    try {
      const { value, twice } = read(json)
      if (!isObject(value)) return [{ line: null, field: null, message: `must be a JSON object, not ${shown(value)}` }]
      const problems = twice.map((name): Problem => ({ line: null, field: fieldName(name), message: "is given twice" }))
      const members = nullIsAbsent ? new Map([...value].filter(([, member]) => member !== null)) : value
      return record(members, problems, told, false)
    } catch (error) {
      if (error instanceof NotJson) return [{ line: null, field: null, message: `is no JSON: ${error.message}` }]
      throw error
    }
  }

  let header: ReadonlyArray<string> = []
  /** Fields that no row can have; null is what names the record to change. */
  let lacking: ReadonlySet<string | null> = new Set()
  const columns = (names: ReadonlyArray<string>): ReadonlyArray<Problem> => {
    header = names
    const problems: Array<Problem> = []
    names.forEach((name, index) => {
      const tell = (message: string) => problems.push({ line: null, field: name === "" ? null : name, message })
      if (name === "") tell(`column ${index + 1} has no name`)
      else if (names.indexOf(name) < index) tell(`names column ${names.indexOf(name) + 1} and column ${index + 1}`)
      else {
        const message = notTaken(name)
        if (message !== null) tell(message)
      }
    })
    const has = (name: string | null) => name !== null && names.includes(name)
    const lacks = new Map<string | null, string>()
    if (!changes) {
      if (!has(keyName)) lacks.set(keyName, "has no column, and is required")
      for (const { name, required, pairedWith } of slots.values()) {
        if (required && !has(name) && !has(pairedWith)) lacks.set(name, "has no column, and is required")
      }
    } else if (!has("id") && !has(keyName)) {
      lacks.set(null, `no column says which record it is: give its id, or its ${keyName}`)
    }
    lacking = new Set(lacks.keys())
    return [...problems, ...[...lacks].map(([field, message]): Problem => ({ line: null, field, message }))]
  }
  const cellsOf = (cells: ReadonlyArray<string>): ValidRecord | ReadonlyArray<Problem> | null => {
    const members = new Map<string, Json>()
    const problems: Array<Problem> = []
    cells.forEach((cell, index) => {
      const name = header[index]
      if (cell === "" || name === undefined || members.has(name)) return
      const slot = slots.get(name)
      if (slot === undefined && name !== customFields) {
        if (name === keyName || beside.includes(name)) members.set(name, cell)
        return
      }
      const value = cellValue(slot?.type ?? null, cell)
      if (value instanceof Wrong) problems.push({ line: null, field: name, message: value.message })
      else members.set(name, value)
    })
    const answer = record(members, problems, {}, true)
    if (lacking.size === 0 || !isInvalid(answer)) return answer
    const news = answer.filter(({ field }) => !lacking.has(field))
    return news.length === 0 ? null : news
  }

  const placed = (line: number, answer: ValidRecord | ReadonlyArray<Problem>): ValidRecord | ReadonlyArray<Problem> =>
    isInvalid(answer) ? answer.map((problem) => ({ ...problem, line })) : answer

  return {
    text: (json, told = {}) => textOf(json, told, false),
    given: (given) => {
      const { line } = given
      switch (given._tag) {
        case "Json":
          return placed(line, textOf(given.json, {}, given.nullIsAbsent))
        case "Cells": {
          const answer = cellsOf(given.cells)
          return answer === null ? null : placed(line, answer)
        }
        case "Unreadable":
          return [{ line, field: null, message: given.message }]
        case "Header": {
          const problems = columns(given.names)
          return problems.length === 0 ? null : placed(line, problems)
        }
      }
    }
  }
}
