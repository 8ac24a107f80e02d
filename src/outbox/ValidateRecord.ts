/**
 * Validation of one record: its names, its identity and its body.
 *
 * Promise: every problem of a record is reported, in the order of its parts. The same record always gives the same text.
 */
import { customFieldsName } from "../catalogue/Protection.ts"
import type { Resource } from "../catalogue/Resource.ts"
import { isList, isObject, isPlain, type Json, printSorted } from "../json/Json.ts"
import { alterationOf, externalKeyOf } from "./Externalid.ts"
import { listFields } from "./FieldHints.ts"
import type { Operation, Problem } from "./Push.ts"
import { type AddProblem, fieldTexts } from "./ValidateFields.ts"
import { externalidText, fieldName, integerText, InvalidValue, showValue } from "./ValidateValue.ts"
import { privacyProblem, privacyProblemWithin, shapeOf, type WriteColumns } from "./WriteSchema.ts"

/** A record that can be pushed. */
export interface ValidRecord {
  /** The key of the record to create, or of the record to change when it has no id. */
  readonly externalid: string | null
  /** The source's number of the record to change. */
  readonly recordId: string | null
  /** The canonical JSON of the body that is sent, byte for byte; `{}` for a cancel. */
  readonly text: string
}

/** The identity of a record that is given beside the record. */
export interface IdentifiedRecord {
  readonly externalid?: string | null
  readonly recordId?: string | null
}

export type ValidationResult = ValidRecord | ReadonlyArray<Problem>

export const isInvalid = (result: ValidationResult): result is ReadonlyArray<Problem> => Array.isArray(result)

/** The rules by which records of a resource are validated. */
export interface RecordRules {
  readonly resource: Resource
  readonly operation: Operation
  readonly columns: WriteColumns
  /** The member that holds the external key: {@link externalKey}, or another one that the user named. */
  readonly keyName: string
  /** The source's field for it. */
  readonly externalKey: string
  /** Members that are allowed beside the columns. */
  readonly otherNames: ReadonlyArray<string>
}

export const customFields = customFieldsName

export const rulesOf = (resource: Resource, operation: Operation, keyName: string): RecordRules => ({
  resource,
  operation,
  columns: shapeOf(resource, operation),
  keyName,
  externalKey: externalKeyOf(resource),
  otherNames: [
    ...(operation === "create" ? [] : [resource.roles.id, externalKeyOf(resource)]),
    ...(operation === "cancel" ? [] : [customFields])
  ]
})

/** Members that `export-rejected` adds for people; they are not validated. */
const explanations: ReadonlySet<string> = new Set(["_line", "_code", "_field", "_message"])

/** Why no record can have a member of this name; null when it can. */
export const nameProblem = (
  { columns, externalKey, keyName, operation, otherNames, resource }: RecordRules,
  name: string
): string | null => {
  if (columns.has(name) || explanations.has(name) || name === keyName || otherNames.includes(name)) return null
  if (operation === "cancel")
    return `is not needed to cancel a record: give its ${resource.roles.id} or ${externalKey} alone`
  if (resource.field.get(name)?.readOnly === true) return "is set by the service; leave it out"
  const withheld = privacyProblem(resource, name)
  if (withheld !== null) return withheld
  const others = otherNames.filter((other) => !columns.has(other))
  return `is no field that can be written here; ${listFields(name, columns, others)}`
}

type Members = ReadonlyMap<string, Json>

interface Identity {
  readonly externalid: string | null
  readonly recordId: string | null
  /** The externalid in the body; undefined when the body has none. */
  readonly written: Json | undefined
}

/** The externalids that were given for a record. */
interface GivenKeys {
  /** In the record's member {@link RecordRules.keyName}. */
  readonly named: string | null
  /** In the record's member {@link RecordRules.externalKey}, or in the named one. */
  readonly inside: string | null
  /** Beside the record. */
  readonly outside: string | null
}

const givenKeysOf = (
  { externalKey, keyName }: RecordRules,
  members: Members,
  beside: IdentifiedRecord,
  addProblem: AddProblem
): GivenKeys => {
  const key = (name: string, value: Json | undefined): string | null => {
    if (value === undefined || value === null) return null
    const text = externalidText(value)
    if (!(text instanceof InvalidValue)) return text
    addProblem(fieldName(name), text.message)
    return null
  }
  const named = key(keyName, members.get(keyName))
  const inside = keyName === externalKey ? named : (key(externalKey, members.get(externalKey)) ?? named)
  if (named !== null && inside !== named) {
    addProblem(externalKey, `is "${inside}", but ${keyName}, from which it comes, is "${named}"`)
  }
  return { named, inside, outside: key(externalKey, beside.externalid) }
}

const identityOfCreate = (
  { externalKey, keyName }: RecordRules,
  { inside, named, outside }: GivenKeys,
  problems: ReadonlyArray<Problem>,
  addProblem: AddProblem
): Identity => {
  const externalid = outside ?? named ?? inside
  const alteration = externalid === null ? null : alterationOf(externalid)
  if (alteration !== null) addProblem(keyName, alteration)
  if (externalid === null && problems.every(({ field }) => field !== keyName)) {
    const why =
      keyName === externalKey ? "it shows whether the record was written already" : `it becomes the ${externalKey}`
    addProblem(keyName, `is required: ${why}`)
  }
  if (outside !== null && inside !== null && outside !== inside) {
    addProblem(externalKey, `is "${inside}" in the record and "${outside}" beside it`)
  }
  return { externalid, recordId: null, written: externalid ?? undefined }
}

const recordNumber = (name: string, id: Json | undefined, addProblem: AddProblem): string | null => {
  if (id === undefined || id === null) return null
  const text = typeof id === "string" ? id : integerText(id)
  if (!(text instanceof InvalidValue) && /^[1-9]\d{0,18}$/.test(text)) return text
  addProblem(name, `must be the record's number, not ${showValue(id)}`)
  return null
}

const identityOfChange = (
  { keyName, operation, resource }: RecordRules,
  members: Members,
  beside: IdentifiedRecord,
  { inside, named, outside }: GivenKeys,
  problems: ReadonlyArray<Problem>,
  addProblem: AddProblem
): Identity => {
  const externalid = outside ?? named ?? inside
  const idName = resource.roles.id
  const id = recordNumber(idName, members.get(idName), addProblem)
  const idBeside = recordNumber(idName, beside.recordId, addProblem)
  if (id !== null && idBeside !== null && id !== idBeside) addProblem(idName, `is ${id}, and the record is ${idBeside}`)
  const recordId = idBeside ?? id
  if (recordId !== null) {
    // The number identifies the record: the externalid is a field to change like any other.
    const written = members.get(keyName) === null ? null : (inside ?? undefined)
    return { externalid: operation === "cancel" ? externalid : null, recordId, written }
  }
  if (externalid === null && problems.every(({ field }) => field !== idName && field !== keyName)) {
    addProblem(null, `does not identify the record: give its ${idName}, or its ${keyName}`)
  }
  // The externalid identifies the record: only another one is a value to write.
  return { externalid, recordId, written: inside !== null && inside !== externalid ? inside : undefined }
}

/** Adds the members with a privacy rule, at any depth of the value. */
const addWithheld = (resource: Resource, value: Json, place: string, addProblem: AddProblem): void => {
  if (resource.protection === null) return
  if (isList(value))
    for (const [index, item] of value.entries()) addWithheld(resource, item, `${place}[${index}]`, addProblem)
  if (!isObject(value)) return
  for (const [name, member] of value) {
    const at = `${place}.${fieldName(name)}`
    const withheld = privacyProblemWithin(resource, name)
    if (withheld === null) addWithheld(resource, member, at, addProblem)
    else addProblem(at, withheld)
  }
}

/** The members of the body as JSON. */
const bodyTexts = (
  { columns, externalKey, operation, resource }: RecordRules,
  members: Members,
  written: Json | undefined,
  addProblem: AddProblem
): ReadonlyArray<string> => {
  const body = new Map(members)
  body.delete(externalKey)
  if (written !== undefined) body.set(externalKey, written)
  const { cancelled } = resource.roles
  if (cancelled !== null && columns.has(cancelled) && body.get(cancelled) === true) {
    addProblem(cancelled, "cannot be set by a write; push the record to be cancelled with the operation cancel")
  }
  if (operation === "cancel") return []
  const texts = fieldTexts(columns, body, "", operation, addProblem)
  const custom = members.get(customFields)
  if (custom === undefined || (custom === null && operation === "create")) return texts
  const withheld = isObject(custom) ? privacyProblem(resource, customFields) : null
  if (withheld !== null) addProblem(customFields, withheld)
  addWithheld(resource, custom, customFields, addProblem)
  if (custom !== null && !isObject(custom)) addProblem(customFields, `must be an object, not ${showValue(custom)}`)
  else if (!isPlain(custom)) addProblem(customFields, "has a NUL or half a surrogate pair, which no text can hold")
  else return [...texts, `${JSON.stringify(customFields)}:${printSorted(custom)}`]
  return texts
}

/** Validates a record whose names are validated; problems found before are among its problems. */
export const validateRecord = (
  rules: RecordRules,
  members: Members,
  beside: IdentifiedRecord,
  earlier: ReadonlyArray<Problem>
): ValidationResult => {
  const problems = [...earlier]
  const addProblem: AddProblem = (field, message) => problems.push({ line: null, field, message })
  const keys = givenKeysOf(rules, members, beside, addProblem)
  const { externalid, recordId, written } =
    rules.operation === "create"
      ? identityOfCreate(rules, keys, problems, addProblem)
      : identityOfChange(rules, members, beside, keys, problems, addProblem)
  const texts = bodyTexts(rules, members, written, addProblem)
  if (problems.length > 0) return problems
  if (rules.operation === "update" && texts.length === 0) {
    return [{ line: null, field: null, message: "names no field to change" }]
  }
  return { externalid, recordId, text: `{${texts.join(",")}}` }
}
