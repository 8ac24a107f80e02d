/**
 * The first comparison of a sample: rows that a seed draws, and numbers that have no row.
 *
 * Where the source offers lists only, a row is read with all records that share a value with it.
 */
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { roleField } from "../catalogue/Resource.ts"
import * as Effect from "effect/Effect"
import type { SourceError } from "../connector/SourceError.ts"
import {
  addSurplus,
  begin,
  compareEverything,
  compareRecords,
  compareTexts,
  type FirstComparison,
  type Sides
} from "./FirstComparison.ts"
import * as Sample from "./Sample.ts"
import { canRetrieve, eachPage, isScanned, presentRecords, retrieveAll, type SourceSide } from "./SourceSide.ts"
import type { SampledRow } from "./WarehouseRows.ts"

export interface SampleSize {
  readonly records: number
  readonly seed: number
}

/** Requests each record by its number. */
const sampleByNumber = Effect.fnUntraced(function* (sides: Sides, { records, seed }: SampleSize) {
  const { rows, source } = sides
  const comparison = begin(true)
  const extent = yield* rows.extent
  comparison.warehouse = extent.live
  const drawn = (yield* rows.draw(records, seed, [])).map(({ id }) => id)
  // A record that was never landed has no row to be drawn: numbers without a row are requested too, also above the last
  // one.
  const tries = Math.ceil(records / 5)
  const numbers = Sample.numbersBetween(seed, tries, extent.min < 1n ? extent.min : 1n, extent.max + BigInt(tries))
  const known = yield* rows.byIds([...drawn, ...numbers])
  const gaps = numbers.filter((id) => !known.has(id))
  const retrieved = yield* retrieveAll(source, [...new Set([...drawn, ...gaps])])
  const present = presentRecords(retrieved).filter((record) => known.has(record.id ?? "") || isScanned(source, record))
  yield* compareRecords(sides, comparison, present)
  for (const { id, found } of retrieved) {
    const row = known.get(id)
    if (found === null && row !== undefined && !row.isDeleted) addSurplus(sides, comparison, id)
  }
  comparison.sample = { seed, rows: drawn.length, gaps: gaps.length, records: present.length, chance: 0 }
  return comparison
})

/** Positions of the fields by which the source lists records that share a value. */
const filterPositions = ({ resource }: SourceSide): ReadonlyArray<number> => {
  const names = [
    ...(resource.parent === null ? [] : [resource.parent.field]),
    ...(roleField(resource, "externalKey") === undefined ? [] : [resource.roles.externalKey]),
    ...resource.filters.filter(({ match }) => match === "exact").map(({ field }) => field)
  ]
  return [...new Set(names)].map((name) => resource.fields.findIndex((field) => field.name === name))
}

/** The most selective first. */
const rankPositions = Effect.fnUntraced(function* ({ rows, source }: Sides) {
  const positions = filterPositions(source)
  const distinct = yield* rows.distinct(positions)
  return positions
    .map((position, index) => ({ position, distinct: distinct[index] ?? 0 }))
    .toSorted((a, b) => b.distinct - a.distinct)
    .map(({ position }) => position)
})

interface ValueFilter {
  readonly position: number
  readonly value: string
}

/** One filter for each row; null when a row has no value to filter by. */
const filtersOf = (
  drawn: ReadonlyArray<SampledRow>,
  ranked: ReadonlyArray<number>
): ReadonlyArray<ValueFilter> | null => {
  const filters = new Map<string, ValueFilter>()
  for (const { values } of drawn) {
    const index = values.findIndex((value) => value !== null && value !== "")
    if (index < 0) return null
    filters.set(`${ranked[index]}:${values[index]}`, { position: ranked[index]!, value: values[index]! })
  }
  return [...filters.values()]
}

/** Compares all records and rows that have one value; answers how many different records the source has. */
const compareFiltered = Effect.fnUntraced(function* (
  sides: Sides,
  comparison: FirstComparison,
  { position, value }: ValueFilter
) {
  const { rows, source } = sides
  const seen = new Set<string>()
  yield* eachPage(source, { field: source.resource.fields[position]!.name, value }, (page) => {
    return Effect.map(compareTexts(sides, comparison, page.records, null), (records) => {
      for (const { id } of records) if (id !== null) seen.add(id)
    })
  })
  for (const id of yield* rows.liveIdsWhere(position, value)) if (!seen.has(id)) addSurplus(sides, comparison, id)
  return seen.size
})

/** Requests rows with all records that share a value; null when a row has no value that the source filters by. */
const sampleByFilter = Effect.fnUntraced(function* (sides: Sides, size: SampleSize) {
  const { rows } = sides
  const ranked = yield* rankPositions(sides)
  const drawn = yield* rows.draw(size.records, size.seed, ranked)
  const filters = filtersOf(drawn, ranked)
  if (filters === null) return null
  const comparison = begin(false)
  comparison.warehouse = (yield* rows.extent).live
  let records = 0
  for (const filter of filters) records += yield* compareFiltered(sides, comparison, filter)
  comparison.sample = { seed: size.seed, rows: drawn.length, gaps: 0, records, chance: 0 }
  return comparison
})

/** Compares a sample, or everything where the resource cannot be sampled; a remark says so. */
export const compareSample = Effect.fnUntraced(function* (
  sides: Sides,
  size: SampleSize,
  remarks: Array<string>
): Effect.fn.Return<FirstComparison, SourceError | DatabaseError> {
  const { live, deleted } = yield* sides.rows.extent
  const total = live + deleted
  if (total === 0) {
    remarks.push("the warehouse has no row to draw: everything was compared")
    return yield* compareEverything(sides)
  }
  const comparison = canRetrieve(sides.source) ? yield* sampleByNumber(sides, size) : yield* sampleByFilter(sides, size)
  if (comparison === null) {
    remarks.push("it cannot be sampled (no record by number, no filter that finds one): everything was compared")
    return yield* compareEverything(sides)
  }
  const chance = Sample.chanceOfFinding(size.records, total, Math.ceil(total / 100))
  return { ...comparison, sample: comparison.sample === null ? null : { ...comparison.sample, chance } }
})
