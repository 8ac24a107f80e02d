/**
 * The columns that a write of a resource may have.
 *
 * Promise: the columns follow from the catalogue alone: the stated write shape (EP-14), else the record without the fields
 * that the service sets (EP-12). An inferred column is not among them: a field that the documents do not state is rejected (F-14).
 */
import type { FieldRule } from "../catalogue/Protection.ts"
import { externalKeyOf } from "./Externalid.ts"
import type { Operation as Letter, Resource, WriteField } from "../catalogue/Resource.ts"
import { write } from "../catalogue/Resource.ts"
import type { Operation, Problem } from "./Push.ts"

/** One column of a write. */
export interface WriteColumn extends Omit<WriteField, "lines"> {
  /** The other half of its reference pair, where both can be written. */
  readonly pairedWith: string | null
  /** The columns of each line, when the value is a list of stated lines. */
  readonly lines: WriteColumns | null
}

/** By name, in the order in which they are written. */
export type WriteColumns = ReadonlyMap<string, WriteColumn>

const writeColumnsOf = (fields: ReadonlyArray<WriteField>): WriteColumns => {
  const byName = new Map(fields.map((field) => [field.name, field]))
  const otherHalf = ({ name, refers }: WriteField): string | null => {
    if (refers === null) return null
    const other = refers.by === null ? name.replace(/id$/, "") : `${name}id`
    return other !== name && byName.get(other)?.refers?.resource === refers.resource ? other : null
  }
  return new Map(
    fields.map((field) => [
      field.name,
      { ...field, pairedWith: otherHalf(field), lines: field.lines === null ? null : writeColumnsOf(field.lines) }
    ])
  )
}

const recordFields = (resource: Resource): ReadonlyArray<WriteField> =>
  resource.fields
    .filter((field) => !field.readOnly && field.inferred === null)
    .map((field) => write(field, { required: resource.required.includes(field.name) }))

const columnsFor = (resource: Resource, operation: Operation): WriteColumns => {
  if (operation === "cancel") return new Map()
  const fields = (operation === "create" ? resource.create : resource.update) ?? recordFields(resource)
  return writeColumnsOf(unprotected(resource, fields))
}

/** The fields without a privacy rule, also those of lines. */
const unprotected = (
  resource: Resource,
  fields: ReadonlyArray<WriteField>,
  isRecord = true
): ReadonlyArray<WriteField> =>
  fields.flatMap((field) =>
    protectedBy(resource, field, isRecord) === null
      ? [{ ...field, lines: field.lines === null ? null : unprotected(resource, field.lines, false) }]
      : []
  )

/** The privacy rule of what a field writes; null without one. What is kept of such a value is no value to write. */
const protectedBy = (
  { protection }: Resource,
  { name, sets }: Pick<WriteField, "name" | "sets">,
  isRecord = true
): FieldRule | null => protection?.[isRecord ? "ruleOf" : "ruleWithin"](sets ?? name) ?? null

const problemOf = (rule: FieldRule | null): string | null =>
  rule === null
    ? null
    : `has a privacy rule (${rule.kind}): the warehouse does not have its value, so that it is not pushed`

/** Why a field cannot be written although the service takes it; null where it has no privacy rule. */
export const privacyProblem = (resource: Resource, name: string): string | null => {
  const stated = [...(resource.create ?? []), ...(resource.update ?? [])].find((field) => field.name === name)
  return problemOf(protectedBy(resource, stated ?? { name, sets: name }))
}

/** As {@link privacyProblem}, of a member inside of a value. */
export const privacyProblemWithin = (resource: Resource, name: string): string | null =>
  problemOf(protectedBy(resource, { name, sets: name }, false))

const cache = new WeakMap<Resource, Map<Operation, WriteColumns>>()

/** The columns of a write's body besides `custom_fields`; none for a cancel. */
export const shapeOf = (resource: Resource, operation: Operation): WriteColumns => {
  const shapes = cache.get(resource) ?? new Map<Operation, WriteColumns>()
  cache.set(resource, shapes)
  const shape = shapes.get(operation) ?? columnsFor(resource, operation)
  shapes.set(operation, shape)
  return shape
}

const operationLetters: Readonly<Record<Operation, ReadonlyArray<Letter>>> = {
  create: ["C", "B"],
  update: ["U"],
  cancel: ["D"]
}

const participles: Readonly<Record<Operation, string>> = { create: "created", update: "updated", cancel: "cancelled" }

/** Why no record of the resource can be pushed; null where the warehouse keeps all of them. */
export const partial = ({ path, where }: Resource): string | null =>
  where.length === 0
    ? null
    : `${path} is not pushed to while resources.${path}.where keeps some of its records only: whether a record exists would not be known`

/** Why the operation cannot be pushed for the resource (F-11); null when it can. */
export const unsupported = (resource: Resource, operation: Operation): Problem | null => {
  const problem = (message: string): Problem => ({ line: null, field: null, message })
  const part = partial(resource)
  if (part !== null) return problem(part)
  if (!operationLetters[operation].some((letter) => resource.operations.includes(letter))) {
    const others = (["create", "update", "cancel"] as const)
      .filter((other) => operationLetters[other].some((letter) => resource.operations.includes(letter)))
      .map((other) => participles[other])
    const instead = others.length === 0 ? "they are only read" : `they can be ${others.join(" or ")}`
    return problem(`${resource.path} cannot be ${participles[operation]} through this API; ${instead}`)
  }
  const withheld =
    operation === "create"
      ? (
          resource.create ??
          (resource.protection?.sent ?? resource).required.map((name) => ({ name, sets: name, required: true }))
        ).find((field) => field.required && protectedBy(resource, field) !== null)
      : undefined
  if (withheld !== undefined) {
    return problem(
      `${resource.path} cannot be created by a push: it needs ${withheld.name}, which ${privacyProblem(resource, withheld.name)}`
    )
  }
  if (operation === "create" && !shapeOf(resource, operation).has(resource.roles.externalKey ?? "")) {
    return problem(
      `${resource.path} cannot be created by a push: its write has no ${externalKeyOf(resource)}, so that a lost answer could not be resolved`
    )
  }
  return null
}
