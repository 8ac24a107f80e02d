/**
 * The generator of `records/`: TypeScript types of each resource's record, inputs and filters, from the catalogue.
 *
 * `node connectors/service-v2/sdk/generate.ts` writes the files. A test compares them with the catalogue. They are written,
 * not inferred: so the catalogue needs no type parameters, and a reader of a declaration sees plain interfaces.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Field, FieldType } from "../../../src/catalogue/Field.ts"
import { type Operation, type Resource, write, type WriteField } from "../../../src/catalogue/Resource.ts"
import { eventsOf } from "../catalogue/events.ts"
import { serviceV2 } from "../catalogue/index.ts"

const folder = fileURLToPath(new URL("records", import.meta.url))
const valuesModule = "../Values.ts"
const notice = "Written by `generate.ts` from the catalogue: change it there."

const methods: Readonly<Record<Operation, ReadonlyArray<string>>> = {
  L: ["list"],
  C: ["create"],
  B: ["batch"],
  R: ["get", "getVersioned"],
  U: ["update"],
  D: ["cancel"]
}

const unionOf = (names: ReadonlyArray<string>) =>
  names.length === 0 ? "never" : names.map((name) => JSON.stringify(name)).join(" | ")

/** `invoicelines` as `Invoicelines`. */
export const typeName = (path: string): string => `${path.charAt(0).toUpperCase()}${path.slice(1)}`

const decimalNote = (type: FieldType): string => (type._tag === "decimal" ? `${type.kind}, ${type.scale} decimals` : "")

const lengthNote = (type: FieldType): string =>
  type._tag === "string" && type.maxLength !== null ? `at most ${type.maxLength} characters` : ""

const meanings = (values: Field["values"]): string =>
  values === null ? "" : values.map(({ value, meaning }) => `${value}: ${meaning}`).join("; ")

const comment = (...parts: ReadonlyArray<string>): string => {
  const text = parts.filter((part) => part !== "").join(". ")
  return text === "" ? "" : `  /** ${text.replaceAll("*/", "* /")} */\n`
}

/** The type of a value in an answer. */
const shownType = ({ type, values }: Field): string => {
  switch (type._tag) {
    case "integer":
      return "number"
    case "decimal":
      return "Decimal"
    case "boolean":
      return "boolean"
    case "string":
      return values === null ? "string" : `OneOf<${unionOf(values.map(({ value }) => String(value)))}>`
    case "date":
      return "DateText"
    case "timestamp":
      return "Timestamp"
    case "list":
      return `ReadonlyArray<{\n${type.of.map(shownField).join("")}  }>`
  }
}

const shownField = (field: Field): string => {
  const note = [field.note, decimalNote(field.type), meanings(field.values), field.readOnly ? "Read-only" : ""]
  const type = field.name === "id" && field.readOnly ? "number" : `${shownType(field)} | null`
  return `${comment(...note)}  readonly ${field.name}: ${type}\n`
}

/** The type of a value in a body. */
const sentType = ({ type, values, lines }: WriteField): string => {
  if (lines !== null) return `ReadonlyArray<{\n${lines.map((line) => sentField(line, line.required)).join("")}  }>`
  if (values !== null) return values.map(({ value }) => JSON.stringify(value)).join(" | ")
  switch (type._tag) {
    case "integer":
      return "number"
    case "decimal":
      return "Decimal"
    case "boolean":
      return "boolean"
    case "string":
      return "string"
    case "date":
      return "DateText"
    case "timestamp":
      return "Timestamp"
    case "list":
      return "ReadonlyArray<JsonObject>"
  }
}

const sentField = (field: WriteField, isRequired: boolean): string => {
  const note = [field.note, decimalNote(field.type), lengthNote(field.type), meanings(field.values)]
  const type = sentType(field)
  return `${comment(...note)}  readonly ${field.name}${isRequired ? `: ${type}` : `?: ${type} | null | undefined`}\n`
}

/** The other half of a reference pair; a body needs one of both. */
const otherHalf = (field: WriteField, fields: ReadonlyArray<WriteField>): WriteField | undefined => {
  if (field.refers === null) return undefined
  const name = field.refers.by === null ? field.name.replace(/id$/, "") : `${field.name}id`
  const other = fields.find((one) => one.name === name && one !== field)
  return other?.refers?.resource === field.refers.resource ? other : undefined
}

/** The body of a create or an update, as a type. */
const bodyType = (resource: Resource, mode: "create" | "update"): string => {
  const name = `${typeName(resource.path)}${mode === "create" ? "Create" : "Update"}`
  const own = resource[mode]
  const fields = own ?? resource.fields.filter(({ readOnly }) => !readOnly).map((field) => write(field))
  const isNeeded = (field: WriteField) =>
    mode === "create" && (own === null ? resource.required.includes(field.name) : field.required)
  const pairs = fields.flatMap((field) => {
    const other = isNeeded(field) ? otherHalf(field, fields) : undefined
    return other === undefined ? [] : [[field, other] as const]
  })
  const paired = new Set(pairs.flat())
  const members = fields.map((field) => sentField(field, isNeeded(field) && !paired.has(field))).join("")
  const custom = "  readonly custom_fields?: CustomFieldValues | null | undefined\n"
  const what =
    mode === "create" ? `The body of a new record of ${resource.path}` : `Changes of a record of ${resource.path}`
  if (pairs.length === 0) return `/** ${what}. */\nexport interface ${name} {\n${members}${custom}}\n`
  const either = pairs.map(
    ([field, other]) =>
      `({ readonly ${field.name}: ${sentType(field)} } | { readonly ${other.name}: ${sentType(other)} })`
  )
  return (
    `interface ${name}Fields {\n${members}${custom}}\n\n` +
    `/** ${what}. A required reference needs one of its halves. */\n` +
    `export type ${name} = ${name}Fields & ${either.join(" & ")}\n`
  )
}

const filterField = (resource: Resource, name: string, match: "exact" | "partial"): string => {
  const field = resource.field.get(name)
  const tag = field?.type._tag
  const type = tag === "integer" ? "number" : tag === "boolean" ? "boolean" : "string"
  const note = match === "partial" ? "Part of the text, in any case" : ""
  return `${comment(note)}  readonly ${name}?: ${type} | undefined\n`
}

const filtersType = (resource: Resource): string => {
  const since = resource.modifiedSince
    ? `${comment("Records changed since, cancelled ones included: the `syncedThrough` of an earlier list")}  readonly modifiedsince?: Timestamp | undefined\n`
    : ""
  const members = resource.filters.map(({ field, match }) => filterField(resource, field, match)).join("")
  return `/** Filters of lists of ${resource.path}. */\nexport interface ${typeName(resource.path)}Filters extends CommonFilters {\n${since}${members}}\n`
}

const recordType = (resource: Resource): string =>
  `/** One of ${resource.path}: ${resource.purpose}. Basis in the API's documents: ${resource.basis}. */\n` +
  `export interface ${typeName(resource.path)}Record {\n${resource.fields.map(shownField).join("")}` +
  `  readonly custom_fields?: CustomFields | undefined\n}\n`

const shapeType = (resource: Resource): string => {
  const name = typeName(resource.path)
  const has = (operation: Operation) => resource.operations.includes(operation)
  const specials = (method: "GET" | "POST") =>
    resource.specials.filter((one) => one.method === method).map((one) => one.name)
  const operations = resource.operations.flatMap((operation) => methods[operation])
  if (specials("GET").length > 0) operations.push("read", "download")
  if (specials("POST").length > 0) operations.push("perform")
  const members = {
    operations: unionOf(operations),
    record: `${name}Record`,
    create: has("C") || has("B") ? `${name}Create` : "never",
    update: has("U") ? `${name}Update` : "never",
    filters: `${name}Filters`,
    answers: unionOf(resource.answers),
    reads: unionOf(specials("GET")),
    actions: unionOf(specials("POST")),
    events: unionOf(eventsOf(resource))
  }
  const lines = Object.entries(members).map(([member, type]) => `  readonly ${member}: ${type}\n`)
  return `export interface ${name}Shape {\n${lines.join("")}}\n`
}

/** The file of one resource. */
export const resourceFile = (resource: Resource): string => {
  const has = (operation: Operation) => resource.operations.includes(operation)
  const types = [
    recordType(resource),
    ...(has("C") || has("B") ? [bodyType(resource, "create")] : []),
    ...(has("U") ? [bodyType(resource, "update")] : []),
    filtersType(resource),
    shapeType(resource)
  ].join("\n")
  const names = [
    "CommonFilters",
    "CustomFields",
    "CustomFieldValues",
    "DateText",
    "Decimal",
    "JsonObject",
    "OneOf",
    "Timestamp"
  ]
  const used = names.filter((name) => new RegExp(`\\b${name}\\b`).test(types))
  return `/** ${notice} */\nimport type { ${used.join(", ")} } from ${JSON.stringify(valuesModule)}\n\n${types}`
}

/** The file that names all resources. */
const indexFile = (resources: ReadonlyArray<Resource>): string => {
  const exports = resources.map(({ path }) => `export type * from "./${path}.ts"\n`).join("")
  const imports = resources.map(({ path }) => `import type { ${typeName(path)}Shape } from "./${path}.ts"\n`).join("")
  const members = resources.map(
    ({ path, purpose }) => `  /** ${purpose} */\n  readonly ${path}: ${typeName(path)}Shape\n`
  )
  return `/** ${notice} */\n${imports}\n${exports}\n/** All resources by path. */\nexport interface Resources {\n${members.join("")}}\n`
}

const codesFile = (): string =>
  `/** ${notice} */\n\n/** The error codes that the API's documents state. */\n` +
  `export type DocumentedErrorCode = ${unionOf(serviceV2.errorCodes.map(({ code }) => code))}\n`

/** All files by name. */
export const files = (): ReadonlyMap<string, string> => {
  const resources = [...serviceV2.resources.values()]
  return new Map([
    ...resources.map((resource) => [`${resource.path}.ts`, resourceFile(resource)] as const),
    ["index.ts", indexFile(resources)],
    ["errorCodes.ts", codesFile()]
  ])
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(folder, { recursive: true })
  const written = files()
  for (const name of readdirSync(folder)) if (!written.has(name)) rmSync(`${folder}/${name}`)
  for (const [name, text] of written) writeFileSync(`${folder}/${name}`, text)
}
