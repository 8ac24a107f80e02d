/**
 * An exponential search for the highest id of a resource, and the density of its ids.
 *
 * Promise: at most {@link searchRequestsMax} requests for one resource.
 */
import * as Effect from "effect/Effect"
import type { Resource } from "../catalogue/Resource.ts"
import type { ConnectorShape, Page } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"

/** Whether a record with the number exists. */
export type Exists<E> = (id: bigint) => Effect.Effect<boolean, E>

export interface SearchResult {
  /** No record beyond this number was found. */
  readonly highest: bigint
  readonly requests: number
  /** False when the requests were used up before an end was found. */
  readonly isBounded: boolean
}

/** Maximum requests of one search. */
const searchRequestsMax = 40
/** The search stops when the remaining gap is at most this share of the range. */
const searchTolerance = 0.04
/** A number without a record may be a gap or the end: at most this many consecutive numbers are requested. */
const neighboursMax = 4
const missChance = 0.02

/**
 * Finds the highest number of a record: requests numbers beyond the last one in doubling steps, then halves the gap.
 * `density` is the share of numbers that have a record.
 */
export const exponentialSearch = Effect.fnUntraced(function* <E>(
  exists: Exists<E>,
  from: { readonly first: bigint; readonly last: bigint; readonly density: number }
): Effect.fn.Return<SearchResult, E> {
  const { first, last, density } = from
  const sparse = Math.min(0.95, Math.max(0.05, density))
  const neighbours = Math.min(neighboursMax, Math.max(2, Math.ceil(Math.log(missChance) / Math.log(1 - sparse))))
  let requests = 0
  const mayRequest = () => requests < searchRequestsMax
  const isInside = Effect.fnUntraced(function* (id: bigint) {
    for (let next = 0; next < neighbours && mayRequest(); next += 1) {
      requests += 1
      if (yield* exists(id + BigInt(next))) return true
    }
    return false
  })
  const span = last - first + 1n
  let [low, step] = [last, span]
  let high: bigint | null = null
  while (high === null && mayRequest()) {
    const next: bigint = low + step
    if (yield* isInside(next)) {
      low = next
      step *= 2n
    } else high = next
  }
  if (high === null) return { highest: low, requests, isBounded: false }
  const isCoarse = (): boolean =>
    Number(high! - low) > Math.max(Number(span) / 2, searchTolerance * Number(low - first))
  while (isCoarse() && mayRequest()) {
    const middle: bigint = low + (high - low) / 2n
    if (yield* isInside(middle)) low = middle
    else high = middle
  }
  return { highest: high - 1n, requests, isBounded: true }
})

/** The numbers of a page: first, last, whether they never decrease, and their density. */
export const idRangeOf = (texts: ReadonlyArray<string | null | undefined>) => {
  if (texts.length === 0 || texts.some((text) => typeof text !== "string" || !/^[1-9]\d{0,17}$/.test(text))) return null
  const numbers = texts.map((text) => BigInt(text!))
  const first = numbers.reduce((a, b) => (b < a ? b : a))
  const last = numbers.reduce((a, b) => (b > a ? b : a))
  const isRising = numbers.every((number, index) => index === 0 || number >= numbers[index - 1]!)
  return { first, last, isRising, density: Math.min(1, new Set(texts).size / Number(last - first + 1n)) }
}

/** The key of a search: the ids, or a field that rises with them and by which lists can be filtered. */
export interface SearchKey {
  readonly name: string
  readonly first: bigint
  readonly last: bigint
  readonly density: number
  /** The highest id of a record with this value; null when there is none. */
  readonly idAt: (value: bigint) => Effect.Effect<bigint | null, SourceError>
}

export const searchKeyOf = (connector: ConnectorShape, resource: Resource, page: Page): SearchKey | null => {
  const ids = idRangeOf(page.records.map(({ id }) => id))
  if (ids === null) return null
  if (resource.operations.includes("R")) {
    const idAt: SearchKey["idAt"] = (id) =>
      Effect.map(connector.get(resource, id.toString()), ({ record, rejected }) =>
        record === null && rejected === null ? null : id
      )
    return { ...ids, name: "ids", idAt }
  }
  for (const { field, match } of resource.filters) {
    const index = resource.fields.findIndex(({ name, type }) => name === field && type._tag === "integer")
    if (match !== "exact" || index === -1) continue
    const values = idRangeOf(page.records.map(({ columns }) => columns[index]))
    if (values === null || !values.isRising || values.first === values.last) continue
    const idAt: SearchKey["idAt"] = (value) =>
      Effect.map(
        connector.page({ resource, since: null, token: null, where: [{ field, value: value.toString() }] }),
        ({ records }) => idRangeOf(records.map(({ id }) => id))?.last ?? null
      )
    return { ...values, name: field, idAt }
  }
  return null
}

/** Finds the highest id of a resource, from the ids of one page. */
export const findHighestId = Effect.fnUntraced(function* (
  key: SearchKey,
  ids: { readonly first: bigint; readonly last: bigint }
) {
  let at = { value: key.last, id: ids.last }
  const exists = (value: bigint) =>
    Effect.map(key.idAt(value), (id) => {
      if (id !== null && value > at.value) at = { value, id }
      return id !== null
    })
  const found = yield* exponentialSearch(exists, key)
  // Beyond the last record found, ids are assumed to rise at the same rate.
  const idsPerValue = Number(at.id - ids.first + 1n) / Number(at.value - key.first + 1n)
  const beyond = Math.ceil(idsPerValue * Math.max(0, Number(found.highest - at.value)))
  return { ...found, highest: at.id + BigInt(beyond) }
})
