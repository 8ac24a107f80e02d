/**
 * One resource of a catalogue: its path, its operations, its fields, filters and write shapes.
 *
 * Promise: adding a resource is adding one short file that calls {@link resource}; everything that is true of every
 * resource (common filters, operations, statuses) is not repeated there.
 */
import type { Field, FieldType } from "./Field.ts"
import type { Protection } from "./Protection.ts"
import type { FieldRoles, SourceTraits } from "./SourceTraits.ts"

/** L list, C create, B batch, R retrieve, U update, D cancel. */
export type Operation = "L" | "C" | "B" | "R" | "U" | "D"

/**
 * How far the API's documents back a resource: `documented` in full, `named` without its fields, or `inferred` from
 * what refers to it; `configured` is one that only the configuration names. Shown wherever the resource is shown.
 */
export type Basis = "documented" | "named" | "inferred" | "configured"

/** A list parameter. `partial` is a case-insensitive substring match, `exact` compares the whole value. */
export interface Filter {
  readonly field: string
  readonly match: "exact" | "partial"
}

/** A filter with its value. Integers and flags are in their canonical text. */
export interface ValueFilter extends Filter {
  readonly value: string
}

export const exact = (...fields: ReadonlyArray<string>): ReadonlyArray<Filter> =>
  fields.map((field) => ({ field, match: "exact" }))

export const partial = (...fields: ReadonlyArray<string>): ReadonlyArray<Filter> =>
  fields.map((field) => ({ field, match: "partial" }))

/** One field of a body of create or update, where these differ from the record. */
export interface WriteField {
  readonly name: string
  readonly type: FieldType
  readonly required: boolean
  /** The record's field that the value is stored in; null when it only steers the write. */
  readonly sets: string | null
  /** The resource whose record the value names by id or, with `by`, by one of its fields. */
  readonly refers: { readonly resource: string; readonly by: string | null } | null
  readonly values: Field["values"]
  readonly note: string
  /** The fields of each line, when the value is an array of lines. */
  readonly lines: ReadonlyArray<WriteField> | null
}

/** `sets` is the field of the same name by default. */
export type WriteFieldOptions = Partial<Pick<WriteField, "required" | "sets" | "values" | "note" | "lines">>

/** States a {@link WriteField}: `write(money("price"), { required: true, sets: "listprice" })`. */
export const write = (field: Field, options: WriteFieldOptions = {}): WriteField => ({
  name: field.name,
  type: field.type,
  required: false,
  sets: field.name,
  refers: field.reference === null ? null : { resource: field.reference.resource, by: field.reference.by },
  values: field.values,
  note: field.note,
  lines: null,
  ...options
})

/** The key by which people identify a record. */
export interface HumanKey {
  readonly field: string
  /** Whether two keys that differ in case only are the same. */
  readonly caseSensitive: boolean
  /** Whether the source refuses a second record with the key. References find a record by it in any case. */
  readonly unique: boolean
}

/** A path below a record, read with the area's read scope: `/shelves/{id}/labels`. */
export interface Special {
  readonly method: "GET" | "POST"
  /** The last part of the path, after `/{resource}/{id}/`. */
  readonly name: string
  /** The scope in `area:access` form. */
  readonly scope: string
  readonly purpose: string
}

/** A resource whose change shows that records of this one may have changed, and the filter that lists those. */
export interface Parent {
  readonly resource: string
  /** The field of this resource that holds the parent's id; lists can be filtered by it. */
  readonly field: string
}

/** The day on which a record counts: a field of its own, or that of the record to which a field of it refers. */
export type BusinessDate = { readonly field: string } | { readonly through: string }

export interface Resource {
  readonly path: string
  readonly traits: SourceTraits
  readonly roles: FieldRoles
  readonly area: string
  readonly purpose: string
  readonly basis: Basis
  readonly operations: ReadonlyArray<Operation>
  readonly fields: ReadonlyArray<Field>
  /** Filters beside those common to all resources. */
  readonly filters: ReadonlyArray<Filter>
  /** Whether lists offer `modifiedsince` and answer `_meta.synced_through`. */
  readonly modifiedSince: boolean
  /** Whether `cancel=true` shows cancelled records only, or includes them. */
  readonly cancelFilter: "only" | "includes"
  /** Whether cancelling removes the record, so that no list shows it any more. */
  readonly removes: boolean
  readonly key: HumanKey | null
  /** Fields that a create needs when the body is the record itself. */
  readonly required: ReadonlyArray<string>
  /** The fields of create and batch items where they differ from the record; no other field is accepted. */
  readonly create: ReadonlyArray<WriteField> | null
  /** As `create`, for update. */
  readonly update: ReadonlyArray<WriteField> | null
  /** Members that only answers to writes carry beside the record: no fields of it. */
  readonly answers: ReadonlyArray<string>
  /** One table for all companies of the install. */
  readonly shared: boolean
  /** Whether its records describe persons: employees, contacts, logins. `tributary init` offers to leave it out. */
  readonly personal: boolean
  /** The optional module that must be licensed. */
  readonly feature: string | null
  /** Counted against the licensed record limit. */
  readonly capped: boolean
  readonly specials: ReadonlyArray<Special>
  /** The resource whose changes announce changes here; null without one. */
  readonly parent: Parent | null
  /** Decides to which period a record belongs; null: it belongs to none, as master data. */
  readonly businessDate: BusinessDate | null
  /** Fields whose change alone makes no new version; from the configuration. */
  readonly ignoredFields: ReadonlyArray<string>
  /** Only records that changed at this instant or later are read by scans; from the configuration. Null: all. */
  readonly since: string | null
  /** Only records that pass all of these are kept; from the configuration. */
  readonly where: ReadonlyArray<ValueFilter>
  /** Null: its values are kept as they are sent. */
  readonly protection: Protection | null
  /** The table's name in the warehouse where it is not the path. */
  readonly table: string | null
  /** Fields by name. */
  readonly field: ReadonlyMap<string, Field>
}

const defaults = {
  modifiedSince: false,
  cancelFilter: "includes",
  removes: false,
  required: [],
  create: null,
  update: null,
  answers: [],
  shared: false,
  personal: false,
  feature: null,
  capped: false,
  specials: [],
  parent: null,
  businessDate: null
} satisfies Partial<Resource>

/** The parts of a resource that its file states; the rest has defaults. */
export interface ResourceSpec
  extends
    Pick<Resource, "path" | "traits" | "area" | "purpose" | "basis">,
    Partial<Pick<Resource, keyof typeof defaults>> {
  /** Letters of {@link Operation} separated by spaces: `"L C B R U D"`. */
  readonly operations: string
  readonly fields: ReadonlyArray<Field | ReadonlyArray<Field>>
  readonly filters?: ReadonlyArray<Filter | ReadonlyArray<Filter>>
  /** Case-sensitive and unique by default. */
  readonly key?: Pick<HumanKey, "field"> & Partial<HumanKey>
}

const flat = <A>(items: ReadonlyArray<A | ReadonlyArray<A>>): ReadonlyArray<A> => items.flat() as Array<A>

const byName = (fields: ReadonlyArray<Field>): ReadonlyMap<string, Field> =>
  new Map(fields.map((field) => [field.name, field]))

/** States one resource. Mistakes are found when the catalogue is assembled, where other resources are known. */
export const resource = (spec: ResourceSpec): Resource => {
  const fields = flat(spec.fields)
  return {
    ...defaults,
    ...spec,
    roles: spec.traits.roles,
    operations: spec.operations.split(" ").filter((letter) => letter !== "") as Array<Operation>,
    fields,
    field: byName(fields),
    filters: flat(spec.filters ?? []),
    key: spec.key === undefined ? null : { caseSensitive: true, unique: true, ...spec.key },
    ignoredFields: [],
    since: null,
    where: [],
    protection: null,
    table: null
  }
}

/** The resource with other fields. */
export const withFields = (resource: Resource, fields: ReadonlyArray<Field>): Resource => ({
  ...resource,
  fields,
  field: byName(fields)
})

/** The filters for people: `itemid = 3 and description contains "red"`. */
export const describeFilters = (filters: ReadonlyArray<ValueFilter>): string =>
  filters
    .map(({ field, match, value }) => (match === "exact" ? `${field} = ${value}` : `${field} contains "${value}"`))
    .sort()
    .join(" and ")

/** Which of its records are kept, as filters for people; null where all of them are. */
export const keptPart = ({ since, where }: Resource): string | null =>
  [
    ...(since === null ? [] : [`changed since ${since.slice(0, 10)}`]),
    ...(where.length === 0 ? [] : [describeFilters(where)])
  ].join(" and ") || null

/** The field of a role; undefined where the resource does not have it. */
export const roleField = ({ field, roles }: Resource, role: keyof FieldRoles): Field | undefined =>
  field.get(roles[role] ?? "")

/** Whether the catalogue states the cancel flag: then lists are requested with it. */
export const isCancellable = (resource: Resource): boolean => roleField(resource, "cancelled")?.inferred === null
