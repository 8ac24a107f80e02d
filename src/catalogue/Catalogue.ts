/**
 * A whole API as data: its areas, modules, error codes and resources.
 *
 * Promise: {@link catalogue} returns a catalogue in which every name resolves, or throws one {@link CatalogueError} that
 * lists every mistake with its place. No program starts with a wrong catalogue.
 */
import type { Field } from "./Field.ts"
import { type Operation, type Resource, roleField } from "./Resource.ts"
import type { SourceTraits } from "./SourceTraits.ts"

export interface ErrorCode {
  readonly status: number
  readonly code: string
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
   * Rises with each change of how records are read: a program with a lower one refuses to write beside it, so that no value
   * of a new field is lost during an upgrade. Default 1.
   */
  readonly generation?: number
  readonly areas: ReadonlyArray<Area>
  /** Also those of resources that only the configuration names. */
  readonly traits: SourceTraits
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
const knownOperations: ReadonlySet<string> = new Set<Operation>(["L", "C", "B", "R", "U", "D"])
const reserved: ReadonlySet<string> = new Set(["custom_fields"])

interface Check {
  readonly spec: CatalogueSpec
  readonly resources: ReadonlyMap<string, Resource>
  readonly areas: ReadonlySet<string>
  readonly report: (place: string, problem: string) => void
}

const checkType = (check: Check, place: string, type: Field["type"]): void => {
  switch (type._tag) {
    case "decimal":
      if (!Number.isInteger(type.scale) || type.scale < 0 || type.scale > decimalDigitsMax)
        check.report(place, `holds ${type.scale} decimals, outside 0 to ${decimalDigitsMax}`)
      if (type.shown > type.scale) check.report(place, `shows ${type.shown} decimals but holds ${type.scale}`)
      break
    case "string":
      if (type.maxLength !== null && !(Number.isInteger(type.maxLength) && type.maxLength > 0))
        check.report(place, `has the length ${type.maxLength}`)
      break
    case "list":
      for (const line of type.of) checkType(check, `${place}, line field "${line.name}"`, line.type)
      break
    default:
  }
}

const checkValues = ({ report }: Check, place: string, field: Pick<Field, "type" | "values">): void => {
  for (const { value } of field.values ?? []) {
    const fits = field.type._tag === "integer" ? Number.isInteger(value) : typeof value === "string"
    if (!fits) report(place, `allows the value ${JSON.stringify(value)}, which is no ${field.type._tag}`)
  }
}

const checkTarget = ({ report, resources }: Check, place: string, target: string, by: string | null): void => {
  const other = resources.get(target)
  if (other === undefined) {
    report(place, `refers to the resource "${target}", which is not in the catalogue`)
    return
  }
  if (by === null) return
  const found = other.field.get(by)
  if (found === undefined) report(place, `is resolved by ${target}.${by}, which is no field of ${target}`)
  else if (found.type._tag !== "string") report(place, `is resolved by ${target}.${by}, which is no string`)
}

const checkField = (check: Check, resource: Resource, field: Field): void => {
  const place = `${resource.path}, field "${field.name}"`
  if (!/^[a-z][a-z0-9_]*$/.test(field.name) || reserved.has(field.name))
    check.report(place, "is no usable name (lower-case letters, digits and _, not starting with _)")
  if (Buffer.byteLength(field.name) > identifierBytesMax)
    check.report(place, `is longer than ${identifierBytesMax} bytes, which a database column cannot be`)
  checkType(check, place, field.type)
  checkValues(check, place, field)
  if (field.reference === null) return
  checkTarget(check, place, field.reference.resource, field.reference.by)
  const paired = field.reference.pairedWith
  if (paired === null) return
  const other = resource.field.get(paired)?.reference
  if (other?.pairedWith !== field.name || other.resource !== field.reference.resource)
    check.report(place, `is paired with "${paired}", which is not paired with it`)
}

const checkWrite = (check: Check, { path, field: fields, ...writes }: Resource, what: "create" | "update"): void => {
  const seen = new Set<string>()
  for (const field of writes[what] ?? []) {
    const place = `${path}, ${what} field "${field.name}"`
    if (seen.has(field.name)) check.report(place, "is stated twice")
    seen.add(field.name)
    checkType(check, place, field.type)
    checkValues(check, place, field)
    if (field.sets !== null && !fields.has(field.sets))
      check.report(place, `sets "${field.sets}", which is no field of ${path}`)
    if (field.refers !== null) checkTarget(check, place, field.refers.resource, field.refers.by)
  }
}

const checkParent = ({ report, resources }: Check, resource: Resource): void => {
  if (resource.parent === null) return
  const { resource: name, field } = resource.parent
  const place = `${resource.path}, parent "${name}"`
  const parent = resources.get(name)
  if (parent === undefined) report(place, "is not in the catalogue")
  else if (!parent.modifiedSince) report(place, "offers no modifiedsince, so that its changes cannot be read")
  if (resource.modifiedSince) report(place, "is of no use: the resource itself offers modifiedsince")
  const reference = resource.field.get(field)?.reference
  if (!resource.field.has(field)) report(place, `is found by "${field}", which is no field of ${resource.path}`)
  else if (reference?.resource !== name || reference.half !== "id")
    report(place, `is found by "${field}", which holds no number of ${name}`)
  if (!resource.filters.some((filter) => filter.field === field && filter.match === "exact"))
    report(place, `is found by "${field}", which lists cannot be filtered by exactly`)
}

const checkBusinessDate = ({ report, resources }: Check, { businessDate, field: fields, path }: Resource): void => {
  if (businessDate === null) return
  const name = "field" in businessDate ? businessDate.field : businessDate.through
  const place = `${path}, business date "${name}"`
  const field = fields.get(name)
  if (field === undefined) return report(place, `is no field of ${path}`)
  if ("field" in businessDate) {
    if (field.type._tag !== "date" && field.type._tag !== "timestamp")
      report(place, "is neither a date nor a timestamp")
    return
  }
  if (field.reference?.half !== "id") return report(place, "holds no number of another resource")
  const other = resources.get(field.reference.resource)?.businessDate ?? null
  if (other === null || "through" in other)
    report(place, `leads to ${field.reference.resource}, which has no field with its business date`)
}

/** The resource's own name, area, module and operations. */
const checkHead = ({ areas, report, spec }: Check, { area, feature, operations, path }: Resource): void => {
  if (!/^[a-z][a-z0-9]*$/.test(path)) report(path, "is no usable path (lower-case letters and digits)")
  if (Buffer.byteLength(path) > identifierBytesMax - "__superseded".length) report(path, "is too long for a table")
  if (!areas.has(area)) report(path, `is in the area "${area}", which is not in the catalogue`)
  if (feature !== null && !spec.features.includes(feature))
    report(path, `needs the module "${feature}", which is not in the catalogue`)
  for (const operation of operations)
    if (!knownOperations.has(operation)) report(path, `has the operation "${operation}", which is none of L C B R U D`)
  if (!operations.includes("L")) report(path, "cannot be listed, so that nothing can read it")
}

const checkFilters = ({ report }: Check, resource: Resource): void => {
  const { roles, traits } = resource
  for (const filter of resource.filters) {
    const place = `${resource.path}, filter "${filter.field}"`
    const field = resource.field.get(filter.field)
    if (field === undefined) report(place, "is no field of the resource")
    else if (filter.match === "partial" && field.type._tag !== "string") report(place, "is partial but no text")
    if ([...traits.parameters, roles.externalKey, roles.cancelled].includes(filter.field))
      report(place, "is common to all resources and need not be stated")
  }
}

const checkFields = (check: Check, resource: Resource): void => {
  const { field: fields, path } = resource
  const { report } = check
  const { id, modifiedAt } = resource.roles
  if (resource.fields[0]?.name !== id) report(path, `must begin with the field "${id}"`)
  if (id !== "id" && fields.has("id")) report(path, 'has a field "id", the column of the key')
  const duplicates = duplicatesOf(resource.fields.map((field) => field.name))
  if (duplicates.size > 0) report(path, `states twice: ${[...duplicates].join(", ")}`)
  for (const field of resource.fields) checkField(check, resource, field)
  if (resource.modifiedSince && roleField(resource, "modifiedAt")?.type._tag !== "timestamp")
    report(path, `offers modifiedsince without a ${modifiedAt ?? "time of change"}`)
  if (resource.key !== null && fields.get(resource.key.field)?.type._tag !== "string")
    report(path, `has the key "${resource.key.field}", which is no string field of it`)
  for (const name of resource.required)
    if (!fields.has(name)) report(path, `requires "${name}", which is no field of it`)
  for (const name of resource.answers)
    if (fields.has(name)) report(path, `says that only answers to writes carry "${name}", which is a field of it`)
}

const checkSpecials = ({ areas, report }: Check, { path, specials }: Resource): void => {
  for (const { name, scope } of specials) {
    const [area, access] = scope.split(":")
    if (area === undefined || !areas.has(area) || !["read", "write", "cancel"].includes(access ?? ""))
      report(`${path}, /${name}`, `needs the scope "${scope}", which does not exist`)
  }
}

const duplicatesOf = (names: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(names.filter((name, index) => names.indexOf(name) !== index))

/** Assembles and checks a catalogue. Throws {@link CatalogueError}. */
export const catalogue = (spec: CatalogueSpec): Catalogue => {
  const problems: Array<CatalogueProblem> = []
  const report = (place: string, problem: string) => problems.push({ place, problem })
  const resources = new Map(spec.resources.map((resource) => [resource.path, resource]))
  const check: Check = { spec, resources, areas: new Set(spec.areas.map(({ name }) => name)), report }
  for (const path of duplicatesOf(spec.resources.map((resource) => resource.path))) report(path, "is stated twice")
  for (const code of duplicatesOf(spec.errorCodes.map((error) => error.code)))
    report(`error code ${code}`, "is stated twice")
  for (const resource of resources.values()) {
    checkHead(check, resource)
    checkFields(check, resource)
    checkFilters(check, resource)
    checkParent(check, resource)
    checkBusinessDate(check, resource)
    checkWrite(check, resource, "create")
    checkWrite(check, resource, "update")
    checkSpecials(check, resource)
  }
  if (problems.length > 0) throw new CatalogueError(spec.name, problems)
  return { ...spec, resources }
}
