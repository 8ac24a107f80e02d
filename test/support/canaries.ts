/**
 * Canaries: values under a privacy rule that may be nowhere, and the search for them in what a program keeps, prints or
 * sends.
 *
 * A canary is known by a text, a number or a year that nothing else contains. It is found as it is and in base64, hex, JSON
 * escapes and percent encoding, wherever it begins in what is encoded.
 */
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { Field } from "../../src/catalogue/Field.ts"
import { customFieldsName } from "../../src/catalogue/Protection.ts"
import type { Resource } from "../../src/catalogue/Resource.ts"
import { execute } from "./postgres.ts"

/** What every canary of a kind contains. */
const marks = { text: "Kanarqv7x", number: "739174265", date: "1739-0" } as const

const base64Of = (text: string): ReadonlyArray<string> =>
  [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]).toString("base64")
    // Without the characters that depend on the neighbours.
    const whole = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + text.length) * 8) / 6))
    return [whole, whole.replaceAll("+", "-").replaceAll("/", "_")]
  })

const hexOf = (text: string) => Buffer.from(text).toString("hex")
const eachCharacter = (text: string, form: (hex: string) => string) =>
  Array.from(text, (character) => form(hexOf(character))).join("")

/** The forms of a mark, each with its name. */
const forms: ReadonlyArray<readonly [name: string, text: string]> = Object.values(marks).flatMap((mark) => [
  ["plain", mark] as const,
  ["plain", mark.toLowerCase()] as const,
  ["plain", mark.toUpperCase()] as const,
  ...base64Of(mark).map((text) => ["base64", text] as const),
  ["hex", hexOf(mark)] as const,
  ["hex", hexOf(mark).toUpperCase()] as const,
  ...["\\u00", "\\\\u00"].map((before) => ["JSON escapes", eachCharacter(mark, (hex) => before + hex)] as const),
  ["percent encoding", eachCharacter(mark, (hex) => `%${hex}`)] as const,
  ["percent encoding", eachCharacter(mark, (hex) => `%${hex.toUpperCase()}`)] as const
])

const around = 60
const shownMax = 5

/** Canaries in a text, each with what is around it; at most five. */
export const canariesIn = (text: string): ReadonlyArray<string> => {
  const found = new Map<number, string>()
  for (const [name, form] of forms) {
    for (let at = text.indexOf(form); at >= 0 && found.size < shownMax; at = text.indexOf(form, at + form.length))
      found.set(at, `${name}: …${text.slice(Math.max(0, at - around), at + form.length + around)}…`)
  }
  return [...found.values()]
}

let made = 0

/** A new text. It ends in characters that some encodings change. */
export const canary = (): string => `${marks.text}${(made += 1)} ü"<&`

const canaryNumber = (): number => Number(`${marks.number}${String((made += 1) % 1000).padStart(3, "0")}`)
const canaryDay = (): string => `${marks.date}${1 + ((made += 1) % 9)}-1${made % 10}`

/** A canary that fits the field. */
const canaryOf = (field: Field): unknown => {
  switch (field.type._tag) {
    case "integer":
      return canaryNumber()
    case "decimal":
      return field.type.scale === 0 ? String(canaryNumber()) : `${canaryNumber()}.5`
    case "boolean":
      return true
    case "date":
      return canaryDay()
    case "timestamp":
      return `${canaryDay()}T01:02:03.456789Z`
    case "string":
      return canary()
    case "list":
      return [Object.fromEntries([...field.type.of.map((one) => [one.name, canaryOf(one)]), ...unstated()])]
  }
}

/** Members that no catalogue states, nested ones among them. */
const unstated = (): ReadonlyArray<readonly [string, unknown]> => [
  ["unstated", canary()],
  ["unstatednumber", canaryNumber()],
  ["unstatedlist", [{ id: canary(), externalid: canary(), deep: [{ lastchangedate: canaryDay(), x: canaryNumber() }] }]]
]

/** A value that may be stored. */
const plainOf = ({ name, type, values }: Field): unknown => {
  if (values !== null) return values[0]!.value
  switch (type._tag) {
    case "integer":
      return 1
    case "decimal":
      return "1"
    case "boolean":
      return false
    case "date":
      return "2026-01-15"
    case "timestamp":
      return "2026-01-15T08:00:00Z"
    case "string":
      return `plain ${name}`
    case "list":
      return []
  }
}

/**
 * A record of a protected resource with a canary in every field that may have a rule, in fields that no catalogue states,
 * and within lists and the install's own fields. Of a rejected one a field with a rule does not fit its type.
 */
export const canaryRecord = (
  { protection, roles }: Resource,
  id: number,
  isRejected = false
): Readonly<Record<string, unknown>> => {
  const { ruleOf, sent } = protection!
  const record: Record<string, unknown> = {}
  for (const field of sent.fields)
    record[field.name] =
      ruleOf(field.name) !== undefined || field.type._tag === "list" ? canaryOf(field) : plainOf(field)
  record[roles.id] = id
  if (roles.externalKey !== null && sent.field.has(roles.externalKey)) record[roles.externalKey] = `plain ${id}`
  delete record[roles.modifiedAt ?? ""]
  for (const [name, value] of unstated()) record[name] = value
  record[customFieldsName] = Object.fromEntries([["id", canary()], ...unstated()])
  if (isRejected) {
    const odd = sent.fields.find(
      ({ name, type }) => ruleOf(name) !== undefined && (type._tag === "integer" || type._tag === "decimal")
    )
    const text = sent.fields.find(({ name, type }) => ruleOf(name) !== undefined && type._tag === "string")
    if (odd !== undefined) record[odd.name] = canary()
    else if (text !== undefined) record[text.name] = { [canary()]: canary(), deep: [canaryNumber()] }
  }
  return record
}

/** The paths of all resources. */
export const paths = [...serviceV2.resources.keys()]

/** A key for hashed fields. */
export const privacyKey = "a key of the installation, 32 characters"

/** All fields are excluded, hashed, or masked with their last characters: each for a third of the resources. */
export const rulesOfAll = `resources:
  "*": { mask: { "*": { keep_last: 2 } } }
${paths
  .flatMap((path, at) => (at % 3 === 2 ? [] : [`  ${path}: { ${at % 3 === 0 ? "exclude" : "hash"}: ["*"] }`]))
  .join("\n")}
`

/** An answer of the source that refuses a request, with canaries in every text. */
export const refusal = (code: string) => ({
  error: {
    code,
    message: canary(),
    field: "name",
    errors: [{ field: "name", code: "invalid", message: canary() }],
    current: { name: canary() }
  }
})

/** The body of an event, with canaries in the record and beside it. */
export const canaryEvent = (id: string, type: string, data: object): string =>
  JSON.stringify({ id, type, createdate: "2026-01-02T03:04:05Z", companyid: 1, data, previous: data, by: canary() })

/** Tables of the database, each with its name and every row as text. */
export const databaseTexts = Effect.gen(function* () {
  const tables = yield* execute<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`
  )
  return yield* Effect.forEach(tables, ({ name }) =>
    Effect.map(
      execute<{ rows: string | null }>(`select string_agg(t::text, E'\\n') as rows from ${name} t`),
      ([row]) => `${name}\n${row?.rows ?? ""}`
    )
  )
})

/** The canaries in texts, each with the name of its surface and the first line of the text. */
export const leaksOf = (surfaces: Readonly<Record<string, ReadonlyArray<string>>>): ReadonlyArray<string> =>
  Object.entries(surfaces).flatMap(([name, texts]) =>
    texts.flatMap((text) =>
      canariesIn(text).map((found) => `${name}: ${text.split("\n", 1)[0]!.slice(0, around)}: ${found}`)
    )
  )
