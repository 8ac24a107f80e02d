/**
 * A whole API as data: its areas, modules, error codes and resources.
 *
 * Promise: {@link catalogue} either answers a catalogue in which every name resolves, or throws one
 * {@link CatalogueError} that lists every mistake with the place it stands in. Nothing starts on a wrong catalogue.
 */
import type { Field } from "./Field.ts"
import type { Operation, Resource, WriteField } from "./Resource.ts"

/** One of the API's error codes, and what a caller may do about it. */
export interface ErrorCode {
  readonly status: number
  readonly code: string
  /** When the service answers it. */
  readonly condition: string
}

export interface Area {
  readonly name: string
  readonly covers: string
}

export interface CatalogueSpec {
  readonly name: string
  readonly version: string
  /**
   * Grows with each change of what a record is read as: a program with a smaller one refuses to write beside it, so that
   * no value of a new field is lost during an upgrade. Default 1.
   */
  readonly generation?: number
  readonly areas: ReadonlyArray<Area>
  /** Optional modules by name. */
  readonly features: ReadonlyArray<string>
  readonly errorCodes: ReadonlyArray<ErrorCode>
  readonly resources: ReadonlyArray<Resource>
}

export interface Catalogue extends Omit<CatalogueSpec, "resources"> {
  /** Resources by path, in the order in which they were stated. */
  readonly resources: ReadonlyMap<string, Resource>
}

/** One mistake in a catalogue. */
export interface CatalogueProblem {
  /** For example `shelves, field "colour"`. */
  readonly place: string
  readonly problem: string
}

/** Every mistake found in a catalogue; a program must not start with it. */
export class CatalogueError extends Error {
  override readonly name = "CatalogueError"
  readonly problems: ReadonlyArray<CatalogueProblem>
  constructor(catalogueName: string, problems: ReadonlyArray<CatalogueProblem>) {
    super(
      `the catalogue ${catalogueName} has ${problems.length === 1 ? "a mistake" : `${problems.length} mistakes`}:\n` +
        problems.map(({ place, problem }) => `  ${place}: ${problem}`).join("\n")
    )
    this.problems = problems
  }
}

/** Postgres cuts longer identifiers without an error. */
const identifierBytesMax = 63
/** `numeric(20, dp)` is what the warehouse holds. */
const decimalDigitsMax = 20
const operations: ReadonlySet<string> = new Set<Operation>(["L", "C", "B", "R", "U", "D"])
const reserved: ReadonlySet<string> = new Set(["custom_fields"])
const common: ReadonlySet<string> = new Set(["cancel", "modifiedsince", "externalid", "include", "limit", "cursor"])

/** Assembles and checks a catalogue. Throws {@link CatalogueError}. */
export const catalogue = (spec: CatalogueSpec): Catalogue => {
  const problems: Array<CatalogueProblem> = []
  const wrong = (place: string, problem: string) => problems.push({ place, problem })
  const resources = new Map<string, Resource>()
  for (const resource of spec.resources) {
    if (resources.has(resource.path)) wrong(resource.path, "is stated twice")
    resources.set(resource.path, resource)
  }
  const areas = new Set(spec.areas.map((area) => area.name))
  const codes = new Set<string>()
  for (const { code } of spec.errorCodes) {
    if (codes.has(code)) wrong(`error code ${code}`, "is stated twice")
    codes.add(code)
  }

  const checkType = (place: string, type: Field["type"]) => {
    switch (type._tag) {
      case "decimal":
        if (!Number.isInteger(type.scale) || type.scale < 0 || type.scale > decimalDigitsMax) {
          wrong(place, `holds ${type.scale} decimals, outside 0 to ${decimalDigitsMax}`)
        }
        if (type.shown > type.scale) wrong(place, `shows ${type.shown} decimals but holds ${type.scale}`)
        break
      case "string":
        if (type.maxLength !== null && !(Number.isInteger(type.maxLength) && type.maxLength > 0)) {
          wrong(place, `has the length ${type.maxLength}`)
        }
        break
      case "list":
        for (const line of type.of) checkType(`${place}, line field "${line.name}"`, line.type)
        break
      default:
    }
  }

  const checkValues = (place: string, field: Pick<Field, "type" | "values">) => {
    for (const { value } of field.values ?? []) {
      const fits = field.type._tag === "integer" ? Number.isInteger(value) : typeof value === "string"
      if (!fits) wrong(place, `allows the value ${JSON.stringify(value)}, which is no ${field.type._tag}`)
    }
  }

  const checkTarget = (place: string, target: string, by: string | null) => {
    const other = resources.get(target)
    if (other === undefined) {
      wrong(place, `refers to the resource "${target}", which is not in the catalogue`)
      return
    }
    if (by !== null) {
      const found = other.field.get(by)
      if (found === undefined) wrong(place, `is resolved by ${target}.${by}, which is no field of ${target}`)
      else if (found.type._tag !== "string") wrong(place, `is resolved by ${target}.${by}, which is no string`)
    }
  }

  const checkField = (resource: Resource, field: Field) => {
    const place = `${resource.path}, field "${field.name}"`
    if (!/^[a-z][a-z0-9_]*$/.test(field.name) || reserved.has(field.name)) {
      wrong(place, "is no usable name (lower-case letters, digits and _, not starting with _)")
    }
    if (Buffer.byteLength(field.name) > identifierBytesMax) {
      wrong(place, `is longer than ${identifierBytesMax} bytes, which a database column cannot be`)
    }
    checkType(place, field.type)
    checkValues(place, field)
    if (field.reference === null) return
    checkTarget(place, field.reference.resource, field.reference.by)
    const paired = field.reference.pairedWith
    if (paired !== null) {
      const other = resource.field.get(paired)
      if (other?.reference?.pairedWith !== field.name || other.reference.resource !== field.reference.resource) {
        wrong(place, `is paired with "${paired}", which is not paired with it`)
      }
    }
  }

  const checkWrite = (resource: Resource, what: string, fields: ReadonlyArray<WriteField>) => {
    const seen = new Set<string>()
    for (const field of fields) {
      const place = `${resource.path}, ${what} field "${field.name}"`
      if (seen.has(field.name)) wrong(place, "is stated twice")
      seen.add(field.name)
      checkType(place, field.type)
      checkValues(place, field)
      if (field.sets !== null && !resource.field.has(field.sets)) {
        wrong(place, `sets "${field.sets}", which is no field of ${resource.path}`)
      }
      if (field.refers !== null) checkTarget(place, field.refers.resource, field.refers.by)
    }
  }

  const checkParent = (resource: Resource) => {
    if (resource.parent === null) return
    const { resource: name, field } = resource.parent
    const place = `${resource.path}, parent "${name}"`
    const parent = resources.get(name)
    if (parent === undefined) wrong(place, "is not in the catalogue")
    else if (!parent.modifiedSince) wrong(place, "offers no modifiedsince, so that nobody sees it change")
    if (resource.modifiedSince) wrong(place, "is of no use: the resource itself offers modifiedsince")
    const reference = resource.field.get(field)?.reference
    if (!resource.field.has(field)) wrong(place, `is found by "${field}", which is no field of ${resource.path}`)
    else if (reference?.resource !== name || reference.half !== "id") {
      wrong(place, `is found by "${field}", which holds no number of ${name}`)
    }
    if (!resource.filters.some((filter) => filter.field === field && filter.match === "exact")) {
      wrong(place, `is found by "${field}", which lists cannot be filtered by exactly`)
    }
  }

  for (const resource of resources.values()) {
    const { path } = resource
    if (!/^[a-z][a-z0-9]*$/.test(path)) wrong(path, "is no usable path (lower-case letters and digits)")
    if (Buffer.byteLength(path) > identifierBytesMax - "__superseded".length) wrong(path, "is too long for a table")
    if (!areas.has(resource.area)) wrong(path, `is in the area "${resource.area}", which is not in the catalogue`)
    if (resource.feature !== null && !spec.features.includes(resource.feature)) {
      wrong(path, `needs the module "${resource.feature}", which is not in the catalogue`)
    }
    for (const operation of resource.operations) {
      if (!operations.has(operation)) wrong(path, `has the operation "${operation}", which is none of L C B R U D`)
    }
    if (!resource.operations.includes("L")) wrong(path, "cannot be listed, so that nothing can read it")
    if (resource.fields[0]?.name !== "id") wrong(path, 'must begin with the field "id"')
    if (resource.field.size !== resource.fields.length) {
      const names = resource.fields.map((field) => field.name)
      const twice = names.filter((name, index) => names.indexOf(name) !== index)
      wrong(path, `states twice: ${[...new Set(twice)].join(", ")}`)
    }
    for (const field of resource.fields) checkField(resource, field)
    if (resource.modifiedSince && resource.field.get("lastchangedate")?.type._tag !== "timestamp") {
      wrong(path, "offers modifiedsince without a lastchangedate")
    }
    for (const filter of resource.filters) {
      const place = `${path}, filter "${filter.field}"`
      const field = resource.field.get(filter.field)
      if (field === undefined) wrong(place, "is no field of the resource")
      else if (filter.match === "partial" && field.type._tag !== "string") wrong(place, "is partial but no text")
      if (common.has(filter.field)) wrong(place, "is common to all resources and need not be stated")
    }
    checkParent(resource)
    if (resource.key !== null && resource.field.get(resource.key.field)?.type._tag !== "string") {
      wrong(path, `has the key "${resource.key.field}", which is no string field of it`)
    }
    for (const name of resource.required) {
      if (!resource.field.has(name)) wrong(path, `requires "${name}", which is no field of it`)
    }
    for (const name of resource.answers) {
      if (resource.field.has(name))
        wrong(path, `says that only answers to writes carry "${name}", which is a field of it`)
    }
    if (resource.create !== null) checkWrite(resource, "create", resource.create.fields)
    if (resource.update !== null) checkWrite(resource, "update", resource.update.fields)
    for (const special of resource.specials) {
      const [area, access] = special.scope.split(":")
      if (area === undefined || !areas.has(area) || !["read", "write", "cancel"].includes(access ?? "")) {
        wrong(`${path}, /${special.name}`, `needs the scope "${special.scope}", which does not exist`)
      }
    }
  }
  if (problems.length > 0) throw new CatalogueError(spec.name, problems)
  return { ...spec, resources }
}
