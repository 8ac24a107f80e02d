/**
 * A connector that keeps only the records that pass the filters of their resource (`resources.<path>.where`).
 *
 * Promise: to the program, a record that does not pass them does not exist. A page names it as
 * {@link Page.unselected}, since it may have passed them before. A whole list is requested with the filters as
 * filters, which saves its other pages; every answer is examined here too. A list of changes is requested without them: a
 * source would not show a record that no longer passes. {@link ConnectorShape.rawPage} passes unchanged: `verify` applies
 * the filters by code of its own.
 */
import * as Effect from "effect/Effect"
import type { FieldType } from "../catalogue/Field.ts"
import type { Resource, ValueFilter } from "../catalogue/Resource.ts"
import { canonicalNumber, isList, isObject, type Json, NumberToken, parse } from "../json/Json.ts"
import type { ConnectorShape, Unselected } from "./Connector.ts"
import { millisecondsOf } from "./Instant.ts"
import type { Rejected, SourceRecord } from "./SourceRecord.ts"

/** Whether a value passes; an empty one does not. */
const passes = ({ match, value }: ValueFilter, text: string | null): boolean =>
  text !== null && (match === "exact" ? text === value : text.toLowerCase().includes(value.toLowerCase()))

/** The text that a sent value is read as; undefined where it is none that the field can hold. */
const textOf = (type: FieldType | undefined, value: Json): string | null | undefined => {
  if (value === null) return null
  if (isObject(value) || isList(value)) return undefined
  const text = value instanceof NumberToken ? value.text : String(value)
  switch (type?._tag) {
    case "integer":
      return /^-?\d+$/.test(text) ? canonicalNumber(text) : undefined
    case "boolean":
      return { true: "true", false: "false", 1: "true", 0: "false" }[text]
    default:
      return text
  }
}

/** The filters of a resource, compiled. */
interface Selection {
  readonly isSelected: (record: SourceRecord) => boolean
  readonly isRejectedSelected: (rejected: Rejected) => boolean
  readonly changedAt: (record: SourceRecord) => string | null
}

const selectionOf = ({ fields, roles, where }: Resource): Selection => {
  const position = (name: string | null) => fields.findIndex((field) => field.name === name)
  const tests = where.map((filter) => ({ filter, at: position(filter.field) }))
  const stamp = position(roles.modifiedAt)
  return {
    // A record without the field may pass: nothing says that it left the filters.
    isSelected: ({ columns }) =>
      tests.every(({ at, filter }) => {
        const text = columns[at]
        return text === undefined || passes(filter, text)
      }),
    // A value that is not readable may be one that passes.
    isRejectedSelected: ({ bytes }) => {
      try {
        const record = parse(bytes)
        if (!isObject(record)) return true
        return tests.every(({ at, filter }) => {
          const value = record.get(filter.field)
          const text = value === undefined ? undefined : textOf(fields[at]?.type, value)
          return text === undefined || passes(filter, text)
        })
      } catch {
        return true
      }
    },
    changedAt: ({ columns }) => {
      const text = columns[stamp] ?? null
      return text === null || millisecondsOf(text) === undefined ? null : text
    }
  }
}

const selections = new WeakMap<Resource, Selection>()

const ofResource = (resource: Resource): Selection => {
  const made = selections.get(resource) ?? selectionOf(resource)
  selections.set(resource, made)
  return made
}

/** Divides records into those that are kept, and the others. */
const divide = (
  { changedAt, isRejectedSelected, isSelected }: Selection,
  records: ReadonlyArray<SourceRecord>,
  rejected: ReadonlyArray<Rejected>
) => {
  const unselected: Array<Unselected> = []
  return {
    records: records.filter((record) => {
      const isKept = isSelected(record)
      if (!isKept) unselected.push({ id: record.id, changedAt: changedAt(record) })
      return isKept
    }),
    rejected: rejected.filter((one) => {
      const isKept = one.id === null || isRejectedSelected(one)
      if (!isKept) unselected.push({ id: one.id, changedAt: null })
      return isKept
    }),
    unselected
  }
}

/** The connector with the filters of each resource that it is asked for. */
export const select = (connector: ConnectorShape): ConnectorShape => ({
  ...connector,
  page: (request) => {
    const { resource, since, where = [] } = request
    if (resource.where.length === 0) return connector.page(request)
    const isWhole = since === null && where.length === 0
    return Effect.map(connector.page(isWhole ? { ...request, where: resource.where } : request), (page) => ({
      ...page,
      ...divide(ofResource(resource), page.records, page.rejected)
    }))
  },
  get: (resource, id) =>
    resource.where.length === 0
      ? connector.get(resource, id)
      : Effect.map(connector.get(resource, id), ({ record, rejected, ...fetched }) => {
          const divided = divide(
            ofResource(resource),
            record === null ? [] : [record],
            rejected === null ? [] : [{ ...rejected, id: rejected.id ?? id }]
          )
          const unselected = divided.unselected[0]
          return {
            ...fetched,
            record: divided.records[0] ?? null,
            rejected: divided.rejected[0] ?? null,
            ...(unselected === undefined ? {} : { unselected })
          }
        })
})
