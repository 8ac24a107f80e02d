/**
 * The first comparison of both sides: it finds candidates, which SecondComparison.ts confirms or drops.
 *
 * Promise: memory holds a page, eight bytes for each record, and at most `candidatesMax` candidates; more are counted.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Table } from "../warehouse/Table.ts"
import * as Compare from "./Compare.ts"
import type { ExpectedRow } from "./Expected.ts"
import type { Mismatch, SampleReport } from "./Report.ts"
import { eachPage, type SourceSide, withRestarts } from "./SourceSide.ts"
import type { WarehouseRows } from "./WarehouseRows.ts"

/** One resource of one company on both sides. */
export interface Sides {
  readonly companyId: bigint
  readonly table: Table
  readonly source: SourceSide
  readonly rows: WarehouseRows
  readonly candidatesMax: number
}

/** A record that may differ, and the page of the scan that showed it; null when none did. */
export interface Candidate {
  readonly id: string
  readonly page: number | null
}

export interface FirstComparison {
  readonly candidates: Map<string, Candidate>
  /** Candidates beyond those that are kept. */
  readonly beyond: Record<Mismatch["kind"], number>
  /** Records of the source. */
  readonly seen: Compare.IdSet
  unreadable: number
  /** The page token of each scanned page. */
  readonly tokens: Array<string | null>
  /** Rows in the warehouse that are not deleted. */
  warehouse: number
  sample: SampleReport | null
  /** Whether records were requested by number instead of scanned. */
  readonly isByNumber: boolean
}

export const begin = (isByNumber: boolean): FirstComparison => ({
  candidates: new Map(),
  beyond: { missing: 0, surplus: 0, different: 0 },
  seen: new Compare.IdSet(),
  unreadable: 0,
  tokens: [],
  warehouse: 0,
  sample: null,
  isByNumber
})

const addCandidate = (
  { candidatesMax }: Sides,
  { candidates, beyond }: FirstComparison,
  kind: Mismatch["kind"],
  candidate: Candidate
): void => {
  if (candidates.has(candidate.id)) return
  if (candidates.size < candidatesMax) candidates.set(candidate.id, candidate)
  else beyond[kind] += 1
}

/** A row that is not at the source. */
export const addSurplus = (sides: Sides, comparison: FirstComparison, id: string): void =>
  addCandidate(sides, comparison, "surplus", { id, page: null })

const addRecords = (
  sides: Sides,
  comparison: FirstComparison,
  records: ReadonlyArray<Compare.RecordComparison>,
  page: number | null
): void => {
  for (const { id, kind } of records) {
    if (id === null) {
      comparison.unreadable += 1
      continue
    }
    comparison.seen.add(id)
    if (kind !== "equal") addCandidate(sides, comparison, kind, { id, page })
  }
}

export const compareRecords = Effect.fnUntraced(function* (
  sides: Sides,
  comparison: FirstComparison,
  expected: ReadonlyArray<ExpectedRow>
): Effect.fn.Return<void, DatabaseError> {
  addRecords(sides, comparison, yield* Compare.compareRecords(sides.table, sides.rows, expected), null)
})

/** Compares the records of a page as they were sent. `page`: its place in the scan; null where a record is not read again by it. */
export const compareTexts = Effect.fnUntraced(function* (
  sides: Sides,
  comparison: FirstComparison,
  texts: ReadonlyArray<string>,
  page: number | null
): Effect.fn.Return<ReadonlyArray<Compare.RecordComparison>, DatabaseError> {
  const records = yield* Compare.compareTexts(sides.table, sides.rows, sides.source, texts)
  addRecords(sides, comparison, records, page)
  return records
})

/** Compares every record of the source, then every live row of the warehouse. */
export const compareEverything = (sides: Sides): Effect.Effect<FirstComparison, SourceError | DatabaseError> =>
  withRestarts(
    Effect.gen(function* () {
      const comparison = begin(false)
      yield* eachPage(sides.source, null, (page, token) => {
        comparison.tokens.push(token)
        return compareTexts(sides, comparison, page.records, comparison.tokens.length - 1)
      })
      comparison.warehouse = yield* Compare.eachSurplus(sides.rows, comparison.seen, (id) =>
        addSurplus(sides, comparison, id)
      )
      return comparison
    })
  )
