/** Records as the source shows them, and their lookup by externalid. */
import * as Effect from "effect/Effect"
import type { ConnectorShape, FetchedRecord, SourceRecord } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Resource } from "../catalogue/Resource.ts"
import * as Scan from "../extract/Scan.ts"
import { externalKeyOf, foldExternalid } from "./Externalid.ts"

/** A column of a record by its field's name; null when the record shows none. */
export const valueOf = (resource: Resource, record: SourceRecord, field: string | null): string | null => {
  const index = resource.fields.findIndex(({ name }) => name === field)
  return index === -1 ? null : (record.columns[index] ?? null)
}

export const isCancelled = (resource: Resource, record: SourceRecord | null): boolean =>
  record !== null && valueOf(resource, record, resource.roles.cancelled) === "true"

/** Whether the source has the record, readable or not. */
export const isShown = ({ record, rejected }: FetchedRecord): boolean => record !== null || rejected !== null

/** The number of the record that was read. */
export const idOf = ({ record, rejected }: FetchedRecord): string | null => record?.id ?? rejected?.id ?? null

/** The numbers of several records, for a person. */
export const idsText = (readings: ReadonlyArray<FetchedRecord>): string =>
  readings.map((reading) => idOf(reading) ?? "one without a number").join(", ")

/**
 * The records with the externalid, cancelled ones too. They are compared here, since it is not known how a source
 * compares. When there is none: the records with the same folded externalid, which a source may have stored for
 * this one.
 */
export const findByExternalid = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  resource: Resource,
  externalid: string
): Effect.fn.Return<ReadonlyArray<FetchedRecord>, SourceError> {
  const field = externalKeyOf(resource)
  const pages = yield* Scan.children(connector, resource, { field, value: externalid })
  const same = new Map<string, FetchedRecord>()
  const alike = new Map<string, FetchedRecord>()
  const folded = foldExternalid(externalid)
  const inJson = JSON.stringify(externalid)
  for (const { records, rejected, beganAt, source } of pages) {
    for (const record of records) {
      const shown = valueOf(resource, record, field)
      if (shown === null || (shown !== externalid && foldExternalid(shown) !== folded)) continue
      const found = shown === externalid ? same : alike
      found.set(record.id, { record, rejected: null, version: null, beganAt, source })
    }
    for (const one of rejected) {
      if (!one.bytes.includes(inJson)) continue
      same.set(one.id ?? one.bytes, { record: null, rejected: one, version: null, beganAt, source })
    }
  }
  return [...(same.size > 0 ? same : alike).values()]
})

/** Records by their externalid. */
export type Listed = ReadonlyMap<string, ReadonlyArray<FetchedRecord>>

export const nothingListed: Listed = new Map()

/** A list with more unreadable records than this is of no use: each of them may have any externalid. */
const unreadableMax = 100

/**
 * The records with one of these externalids that a list shows: all of them, or those that changed since a time. An
 * externalid that the result lacks has to be looked up: the list may have missed its record, and shows only this spelling. A
 * list of more than `pagesMax` pages shows nothing.
 */
export const listByExternalid = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  resource: Resource,
  wanted: ReadonlySet<string>,
  { since, pagesMax }: { readonly since: string | null; readonly pagesMax: number }
): Effect.fn.Return<Listed, SourceError> {
  const field = externalKeyOf(resource)
  const listed = new Map<string, Map<string, FetchedRecord>>()
  const unreadable: Array<string> = []
  const request = { resource, isEmptyUnlikely: false, ...(since === null ? {} : { since }) }
  const isComplete = yield* Scan.readList(connector, request, ({ records, rejected, beganAt, source }, number) => {
    for (const record of records) {
      const externalid = valueOf(resource, record, field)
      if (externalid === null || !wanted.has(externalid)) continue
      const same = listed.get(externalid) ?? new Map<string, FetchedRecord>()
      listed.set(externalid, same.set(record.id, { record, rejected: null, version: null, beganAt, source }))
    }
    unreadable.push(...rejected.map(({ bytes }) => bytes))
    return number < pagesMax && unreadable.length <= unreadableMax
  })
  if (!isComplete || unreadable.length > unreadableMax) return nothingListed
  for (const externalid of listed.keys()) {
    const inJson = JSON.stringify(externalid)
    if (unreadable.some((bytes) => bytes.includes(inJson))) listed.delete(externalid)
  }
  return new Map(Array.from(listed, ([externalid, same]) => [externalid, [...same.values()]]))
})
