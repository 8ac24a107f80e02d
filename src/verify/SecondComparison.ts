/**
 * The second comparison: it reads both sides of each candidate again; a candidate that still differs is a mismatch.
 *
 * The source changes while it is compared. A candidate that is equal now was in the middle of a change, and is no
 * mismatch.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { RawPage } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import * as Compare from "./Compare.ts"
import type { ExpectedRow } from "./Expected.ts"
import type { Candidate, FirstComparison, Sides } from "./FirstComparison.ts"
import { isPending, isRequestedById, type PendingReads, readPendingReads } from "./PendingReads.ts"
import type { Mismatch } from "./Report.ts"
import {
  absentIds,
  canRetrieve,
  eachPage,
  isRestartable,
  presentRecords,
  readPage,
  retrieveAll,
  withRestarts
} from "./SourceSide.ts"

interface SecondComparison {
  readonly sides: Sides
  readonly pending: PendingReads
  readonly mismatches: Map<string, Mismatch>
  /** Candidates that are not compared again yet. */
  readonly open: Map<string, Candidate>
}

/** Mismatches that keep both values of their fields; the rest keep the names, so that memory stays bounded. */
const valuedMax = 1_000
/** Characters of a value that are kept. */
const shownMax = 300
/** Characters of a long value that are kept from before the difference. */
const contextMax = 40
/** Beyond this many, requesting absent records one by one costs more than reading everything. */
const lookUpsMax = 250

/** Cuts long values, to begin near where they differ. */
const cutValues = (difference: Compare.FieldDifference): Compare.FieldDifference => {
  const { field, source, warehouse } = difference
  if ((source?.length ?? 0) <= shownMax && (warehouse?.length ?? 0) <= shownMax) return difference
  let equalLength = 0
  if (source !== null && warehouse !== null) {
    while (equalLength < source.length && source[equalLength] === warehouse[equalLength]) equalLength++
  }
  const from = Math.max(0, equalLength - contextMax)
  const cut = (value: string | null) =>
    value === null
      ? null
      : `${from > 0 ? "…" : ""}${value.slice(from, from + shownMax)}${value.length > from + shownMax ? `… (${value.length} characters)` : ""}`
  return { field, source: cut(source), warehouse: cut(warehouse) }
}

/** Compares records of the source with their rows. */
const compareRecords = Effect.fnUntraced(function* (
  { sides: { table, rows }, pending, mismatches, open }: SecondComparison,
  expected: ReadonlyArray<ExpectedRow>
) {
  const comparisons = yield* Compare.compareRecords(table, rows, expected)
  for (const [index, { id, kind, isDeleted, fields }] of comparisons.entries()) {
    if (id === null) continue
    open.delete(id)
    if (kind === "equal") continue
    mismatches.set(id, {
      id,
      kind,
      notYetSynced: isPending(pending, table.resource, id, expected[index]!),
      isDeleted,
      quarantined: null,
      fields:
        mismatches.size < valuedMax
          ? fields.map(cutValues)
          : fields.map(({ field }) => ({ field, source: null, warehouse: null }))
    })
  }
})

/** Compares those records of a page that are candidates. */
const comparePage = (comparison: SecondComparison, { records }: RawPage) =>
  compareRecords(
    comparison,
    records
      .map(comparison.sides.source.reader.raw)
      .filter(({ id }) => id !== null && (comparison.open.has(id) || comparison.mismatches.has(id)))
  )

/** The source has no such records: the warehouse must not have them either. */
const compareAbsent = Effect.fnUntraced(function* (
  { sides, pending, mismatches, open }: SecondComparison,
  ids: ReadonlyArray<string>
) {
  const rows = yield* sides.rows.byIds(ids)
  for (const id of ids) {
    open.delete(id)
    const row = rows.get(id)
    if (row === undefined || row.isDeleted) continue
    const notYetSynced = isRequestedById(pending, id)
    mismatches.set(id, { id, kind: "surplus", notYetSynced, isDeleted: false, quarantined: null, fields: [] })
  }
})

const compareByNumber = Effect.fnUntraced(function* (comparison: SecondComparison) {
  const retrieved = yield* retrieveAll(comparison.sides.source, [...comparison.open.keys()])
  yield* compareAbsent(comparison, absentIds(retrieved))
  yield* compareRecords(comparison, presentRecords(retrieved))
})

/**
 * Compares rows that no page showed. A row that is deleted by now is no mismatch; the others are requested by number.
 * Such an answer only decides absence: a record that exists is compared from the bytes of its page.
 */
const compareUnlisted = Effect.fnUntraced(function* (comparison: SecondComparison) {
  const { sides, open } = comparison
  const unlisted = [...open.values()].filter(({ page }) => page === null).map(({ id }) => id)
  for (const [id, row] of yield* sides.rows.byIds(unlisted)) if (row.isDeleted) open.delete(id)
  const ids = unlisted.filter((id) => open.has(id))
  if (!canRetrieve(sides.source) || ids.length > lookUpsMax) return
  yield* compareAbsent(comparison, absentIds(yield* retrieveAll(sides.source, ids)))
})

/** Reads the pages again that showed candidates, unless that is every page. */
const compareListed = Effect.fnUntraced(function* (comparison: SecondComparison, tokens: ReadonlyArray<string | null>) {
  const pages = new Set([...comparison.open.values()].flatMap(({ page }) => (page === null ? [] : [page])))
  if (pages.size >= tokens.length) return
  const { source } = comparison.sides
  yield* Effect.forEach(pages, (page) =>
    Effect.flatMap(readPage(source, tokens[page] ?? null, null), (read) => comparePage(comparison, read))
  ).pipe(
    // The whole list is read afterwards.
    Effect.catchIf(isRestartable, () => Effect.void)
  )
})

/** Reads the whole list; candidates that are not in it are absent. */
const compareByScan = Effect.fnUntraced(function* (comparison: SecondComparison) {
  yield* withRestarts(eachPage(comparison.sides.source, null, (page) => comparePage(comparison, page)))
  yield* compareAbsent(comparison, [...comparison.open.keys()])
})

/** Compares both sides of the candidates again; answers the mismatches, ordered by number. */
export const confirm = Effect.fnUntraced(function* (
  sides: Sides,
  candidates: ReadonlyArray<Candidate>,
  { tokens, isByNumber }: Pick<FirstComparison, "tokens" | "isByNumber">
): Effect.fn.Return<ReadonlyArray<Mismatch>, SourceError | DatabaseError, SqlClient.SqlClient> {
  if (candidates.length === 0) return []
  const comparison: SecondComparison = {
    sides,
    // Read before the rows: the reads that it covers are landed by then.
    pending: yield* readPendingReads(sides.companyId, sides.table.resource.path),
    mismatches: new Map(),
    open: new Map(candidates.map((candidate) => [candidate.id, candidate]))
  }
  if (isByNumber) yield* compareByNumber(comparison)
  else {
    yield* compareUnlisted(comparison)
    yield* compareListed(comparison, tokens)
  }
  if (comparison.open.size > 0) yield* compareByScan(comparison)
  return [...comparison.mismatches.values()].toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1))
})
