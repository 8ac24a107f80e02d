/**
 * One resource of a catalogue: its path, its operations, its fields, filters and write shapes.
 *
 * Promise: adding a resource is adding one short file that calls {@link resource}; everything that is true of every
 * resource (common filters, operations, statuses) is not repeated there.
 */
import type { Field, FieldType } from "./Field.ts"
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

export const exact = (...fields: ReadonlyArray<string>): ReadonlyArray<Filter> =>
  fields.map((field) => ({ field, match: "exact" }))

export const partial = (...fields: ReadonlyArray<string>): ReadonlyArray<Filter> =>
  fields.map((field) => ({ field, match: "partial" }))

/** One field of a write body that differs from the record. */
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

/** A write body that differs from the record; only these fields are accepted (and read-only ones ignored). */
export interface WriteShape {
  readonly fields: ReadonlyArray<WriteField>
}

export interface WriteFieldOptions {
  readonly required?: boolean
  /** Defaults to the field of the same name; `null` when no field of the record holds it. */
  readonly sets?: string | null
  readonly values?: Field["values"]
  readonly note?: string
  readonly lines?: ReadonlyArray<WriteField>
}

/** One field of a write shape: `write(money("price"), { required: true, sets: "listprice" })`. */
export const write = (field: Field, options: WriteFieldOptions = {}): WriteField => ({
  name: field.name,
  type: field.type,
  required: options.required ?? false,
  sets: options.sets === undefined ? field.name : options.sets,
  refers: field.reference === null ? null : { resource: field.reference.resource, by: field.reference.by },
  values: options.values ?? field.values,
  note: options.note ?? field.note,
  lines: options.lines ?? null
})

/** The key by which people identify a record. */
export interface HumanKey {
  readonly field: string
  /** Whether two keys that differ in case only are the same. */
  readonly caseSensitive: boolean
  /** `unique` refuses a second record with the key; `lookup` only lets references find it. */
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
  /** The body of create and batch items where it differs from the record. */
  readonly create: WriteShape | null
  /** The body of update where it differs from the record. */
  readonly update: WriteShape | null
  /** Members that only answers to writes carry beside the record: no fields of it. */
  readonly answers: ReadonlyArray<string>
  /** One table for all companies of the install. */
  readonly shared: boolean
  /** The optional module that must be licensed. */
  readonly feature: string | null
  /** Counted against the licensed record limit. */
  readonly capped: boolean
  readonly specials: ReadonlyArray<Special>
  /** The resource whose changes announce changes here; null without one. */
  readonly parent: Parent | null
  /** Fields whose change alone makes no new version; from the configuration. */
  readonly ignoredFields: ReadonlyArray<string>
  /** The table's name in the warehouse where it is not the path. */
  readonly table: string | null
  /** Fields by name. */
  readonly field: ReadonlyMap<string, Field>
}

/** The parts of a resource that its file states; the rest has defaults. */
export interface ResourceSpec {
  readonly path: string
  readonly traits: SourceTraits
  readonly area: string
  readonly purpose: string
  readonly basis: Basis
  /** Letters of {@link Operation} separated by spaces: `"L C B R U D"`. */
  readonly operations: string
  readonly fields: ReadonlyArray<Field | ReadonlyArray<Field>>
  readonly filters?: ReadonlyArray<Filter | ReadonlyArray<Filter>>
  readonly modifiedSince?: boolean
  readonly cancelFilter?: "only" | "includes"
  readonly removes?: boolean
  readonly key?: { readonly field: string; readonly caseSensitive?: boolean; readonly unique?: boolean }
  readonly required?: ReadonlyArray<string>
  readonly create?: ReadonlyArray<WriteField>
  readonly update?: ReadonlyArray<WriteField>
  readonly answers?: ReadonlyArray<string>
  readonly shared?: boolean
  readonly feature?: string
  readonly capped?: boolean
  readonly specials?: ReadonlyArray<Special>
  readonly parent?: Parent
}

const flat = <A>(items: ReadonlyArray<A | ReadonlyArray<A>>): ReadonlyArray<A> => items.flat() as Array<A>

/** States one resource. Mistakes are found when the catalogue is assembled, where other resources are known. */
export const resource = (spec: ResourceSpec): Resource => {
  const fields = flat<Field>(spec.fields)
  return {
    path: spec.path,
    traits: spec.traits,
    roles: spec.traits.roles,
    area: spec.area,
    purpose: spec.purpose,
    basis: spec.basis,
    operations: spec.operations.split(" ").filter((letter) => letter !== "") as Array<Operation>,
    fields,
    filters: flat<Filter>(spec.filters ?? []),
    modifiedSince: spec.modifiedSince ?? false,
    cancelFilter: spec.cancelFilter ?? "includes",
    removes: spec.removes ?? false,
    key:
      spec.key === undefined
        ? null
        : {
            field: spec.key.field,
            caseSensitive: spec.key.caseSensitive ?? true,
            unique: spec.key.unique ?? true
          },
    required: spec.required ?? [],
    create: spec.create === undefined ? null : { fields: spec.create },
    update: spec.update === undefined ? null : { fields: spec.update },
    answers: spec.answers ?? [],
    shared: spec.shared ?? false,
    feature: spec.feature ?? null,
    capped: spec.capped ?? false,
    specials: spec.specials ?? [],
    parent: spec.parent ?? null,
    ignoredFields: [],
    table: null,
    field: new Map(fields.map((field) => [field.name, field]))
  }
}

/** The resource with other fields. */
export const withFields = (resource: Resource, fields: ReadonlyArray<Field>): Resource => ({
  ...resource,
  fields,
  field: new Map(fields.map((field) => [field.name, field]))
})

/** The field of a role; undefined where the resource does not have it. */
export const roleField = ({ field, roles }: Resource, role: keyof FieldRoles): Field | undefined =>
  field.get(roles[role] ?? "")

/** Whether the catalogue states the cancel flag: then lists are requested with it. */
export const isCancellable = (resource: Resource): boolean => roleField(resource, "cancelled")?.inferred === null
