/**
 * Comparison of records of the source with rows of the warehouse.
 *
 * Promise: every record and every value is compared, both ways. No code of the loading is used: the source's side is
 * its own JSON text, the warehouse's side is read by SQL column by column. Decimals are compared as decimals, instants
 * to the microsecond, JSON as `jsonb` stores it, everything else as text. A field that the source did not send is equal
 * only to an empty one. A record that the source shows twice is compared twice.
 */
import { customFieldsName } from "../catalogue/Protection.ts"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { Field, InferredType } from "../catalogue/Field.ts"
import type { Table } from "../warehouse/Table.ts"
import * as Expected from "./Expected.ts"
import { canonical, isObject, type Json, type JsonObject, parse, print } from "../json/Json.ts"
import type { RowMatcher } from "./RowMatcher.ts"
import * as RowMatchers from "./RowMatcher.ts"
import * as Rows from "./WarehouseRows.ts"

/** One record that is not the same on both sides. */
export interface Difference {
  readonly id: string
  readonly kind: "missing" | "surplus" | "different"
  /** Fields whose values differ; empty unless `kind` is different. */
  readonly fields: ReadonlyArray<string>
}

export interface Comparison {
  readonly source: number
  readonly warehouse: number
  readonly differences: ReadonlyArray<Difference>
}

/** A field whose values differ, each as JSON text; null where there is no value. */
export interface FieldDifference {
  readonly field: string
  readonly source: string | null
  readonly warehouse: string | null
}

/** A record of the source, compared with its row. */
export interface RecordComparison {
  /** Null when the record has no number that a row could have. */
  readonly id: string | null
  readonly kind: "equal" | "missing" | "different"
  /** Missing, because the warehouse has it as a tombstone. */
  readonly isDeleted: boolean
  readonly fields: ReadonlyArray<FieldDifference>
  readonly changedAt: string | null
}

/** A value of a row as the JSON text that a source would send. */
const jsonOfRow = (field: Field, text: string | null): string => {
  if (text === null) return "null"
  const { _tag } = field.type
  if (_tag === "timestamp") return JSON.stringify(Expected.canonicalOfRow(field, text))
  return _tag === "integer" || _tag === "boolean" || _tag === "list" ? text : JSON.stringify(text)
}

const noMembers: JsonObject = new Map()

/**
 * Whether the value of an inferred field is stored in its column or, as it was sent, in `_extra` under its name. In the
 * second case the column must be empty or hold the text of the value.
 */
const isStored = (
  type: InferredType,
  value: Json | undefined,
  text: string | null,
  inExtra: Json | undefined
): boolean => {
  if (value === undefined) return text === null && inExtra === undefined
  if (inExtra === undefined)
    return Expected.inferredCanonical(type, value) === Expected.inferredCanonicalOfRow(type, text)
  if (canonical(inExtra) !== canonical(value)) return false
  return text === null || text === (typeof value === "string" ? value : print(value))
}

/**
 * The fields in which the row differs from the expected one. Fields that the catalogue ignores may have older values.
 */
const differingFields = (
  table: Table,
  expected: Expected.ExpectedRow,
  row: Rows.Row
): ReadonlyArray<FieldDifference> => {
  const { ignoredFields } = table.resource
  const all = allDiffering(table, expected, row)
  return ignoredFields.length === 0 ? all : all.filter(({ field }) => !ignoredFields.includes(field))
}

const allDiffering = (table: Table, expected: Expected.ExpectedRow, row: Rows.Row): ReadonlyArray<FieldDifference> => {
  const found: Array<FieldDifference> = []
  const { fields } = table.resource
  const parsed = row.extra === null ? noMembers : parse(row.extra)
  const extra = isObject(parsed) ? parsed : noMembers
  const inferred = new Set<string>()
  for (let position = 0; position < fields.length; position++) {
    const field = fields[position]!
    const text = row.columns[position] ?? null
    const sent = expected.columns[position]
    if (field.inferred !== null) {
      inferred.add(field.name)
      const inExtra = extra.get(field.name)
      if (!isStored(field.inferred.type, sent, text, inExtra)) {
        const warehouse = inExtra === undefined ? jsonOfRow(field, text) : print(inExtra)
        found.push({ field: field.name, source: sent === undefined ? null : print(sent), warehouse })
      }
      continue
    }
    if (sent === undefined ? text === null : Expected.isInColumn(field, sent, text)) continue
    found.push({
      field: field.name,
      source: sent === undefined ? null : print(sent),
      warehouse: jsonOfRow(field, text)
    })
  }
  const compareJson = (field: string, source: Json | undefined, warehouse: Json | undefined) => {
    if (source === warehouse) return
    if (source !== undefined && warehouse !== undefined && canonical(source) === canonical(warehouse)) return
    found.push({
      field,
      source: source === undefined ? null : print(source),
      warehouse: warehouse === undefined ? null : print(warehouse)
    })
  }
  compareJson(
    customFieldsName,
    expected.customFields ?? undefined,
    row.customFields === null ? undefined : parse(row.customFields)
  )
  if (!isObject(parsed)) compareJson("_extra", expected.extra, parsed)
  if (expected.extra.size + extra.size === 0) return found
  for (const name of new Set([...expected.extra.keys(), ...extra.keys()])) {
    if (!inferred.has(name)) compareJson(name, expected.extra.get(name), extra.get(name))
  }
  return found
}

const compareRecord = (table: Table, expected: Expected.ExpectedRow, row: Rows.Row | undefined): RecordComparison => {
  const { id, changedAt } = expected
  if (id === null || row === undefined) return { id, kind: "missing", isDeleted: false, fields: [], changedAt }
  if (row.isDeleted) return { id, kind: "missing", isDeleted: true, fields: [], changedAt }
  const fields = differingFields(table, expected, row)
  return { id, kind: fields.length === 0 ? "equal" : "different", isDeleted: false, fields, changedAt }
}

/** Compares records with their rows; one comparison per record, in the order given. */
export const compareRecords = Effect.fnUntraced(function* (
  table: Table,
  rows: Rows.WarehouseRows,
  expected: ReadonlyArray<Expected.ExpectedRow>
): Effect.fn.Return<ReadonlyArray<RecordComparison>, DatabaseError> {
  const stored = yield* rows.byIds(expected.flatMap(({ id }) => (id === null ? [] : [id])))
  return expected.map((one) => compareRecord(table, one, one.id === null ? undefined : stored.get(one.id)))
})

/** The reader and the matcher of one table's records, for their texts. */
export interface TextReader {
  readonly reader: Expected.Reader
  readonly matcher: RowMatcher
}

export const textReader = (table: Table): TextReader => ({
  reader: Expected.reader(table),
  matcher: RowMatchers.make(table)
})

/** {@link compareRecords} for records as they were sent; most of them are compared without parsing. */
export const compareTexts = Effect.fnUntraced(function* (
  table: Table,
  rows: Rows.WarehouseRows,
  { reader, matcher }: TextReader,
  texts: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<RecordComparison>, DatabaseError> {
  const records = texts.map((text) => matcher.idOf(text) ?? reader.raw(text))
  const ids = records.flatMap((one) => (typeof one === "string" ? one : (one.id ?? [])))
  const stored = yield* rows.byIds(ids)
  return records.map((one, index) => {
    const text = texts[index]!
    const id = typeof one === "string" ? one : one.id
    const row = id === null ? undefined : stored.get(id)
    if (id !== null && row !== undefined && !row.isDeleted && matcher.isEqual(text, row)) return equalRecord(id)
    const comparison = compareRecord(table, typeof one === "string" ? reader.raw(text) : one, row)
    if (comparison.kind === "equal") matcher.learn(text)
    return comparison
  })
})

const equalRecord = (id: string): RecordComparison => ({
  id,
  kind: "equal",
  isDeleted: false,
  fields: [],
  changedAt: null
})

/** A set of record numbers at eight bytes each, so that millions fit into memory. */
export class IdSet {
  private ids = new BigInt64Array(1024)
  private count = 0
  private isSorted = true

  add(id: string): void {
    if (this.count === this.ids.length) {
      const larger = new BigInt64Array(this.ids.length * 2)
      larger.set(this.ids)
      this.ids = larger
    }
    this.ids[this.count++] = BigInt(id)
    this.isSorted = false
  }

  private sorted(): BigInt64Array {
    if (!this.isSorted) {
      this.ids.subarray(0, this.count).sort()
      this.isSorted = true
    }
    return this.ids.subarray(0, this.count)
  }

  /** How many different numbers were added, and how many additions repeated a number. */
  counts(): { readonly distinct: number; readonly repeated: number } {
    const ids = this.sorted()
    let distinct = 0
    for (let at = 0; at < ids.length; at++) if (at === 0 || ids[at] !== ids[at - 1]) distinct++
    return { distinct, repeated: ids.length - distinct }
  }

  has(id: bigint): boolean {
    const ids = this.sorted()
    let from = 0
    let to = ids.length
    while (from < to) {
      const middle = (from + to) >>> 1
      if (ids[middle]! < id) from = middle + 1
      else to = middle
    }
    return ids[from] === id
  }
}

/** Reads every live row, and calls `surplus` for those that were not seen at the source. Answers the number of rows. */
export const eachSurplus = Effect.fnUntraced(function* (
  rows: Rows.WarehouseRows,
  seen: IdSet,
  surplus: (id: string) => void
): Effect.fn.Return<number, DatabaseError> {
  let count = 0
  for (let after: bigint | null = null; ;) {
    const ids: ReadonlyArray<bigint> = yield* rows.liveIds(after)
    if (ids.length === 0) return count
    count += ids.length
    for (const id of ids) if (!seen.has(id)) surplus(id.toString())
    after = ids[ids.length - 1]!
  }
})

/** Records compared at a time. */
const batchMax = 500

/** Compares the source's records, a JSON text each, with the live rows of a company. */
export const compare = Effect.fn("compare")(function* (
  table: Table,
  companyId: bigint,
  source: Iterable<string>
): Effect.fn.Return<Comparison, DatabaseError, SqlClient.SqlClient> {
  const rows = yield* Rows.make(table, companyId)
  const reader = textReader(table)
  const seen = new IdSet()
  const differences = new Map<string, Difference>()
  let unreadable = 0
  const compareBatch = Effect.fnUntraced(function* (batch: ReadonlyArray<string>) {
    for (const comparison of yield* compareTexts(table, rows, reader, batch)) {
      if (comparison.id === null) unreadable++
      else seen.add(comparison.id)
      if (comparison.kind === "equal") continue
      const { id, kind, fields } = comparison
      const before = id === null ? undefined : differences.get(id)
      const names = new Set([...(before?.fields ?? []), ...fields.map(({ field }) => field)])
      differences.set(id ?? `\0${unreadable}`, { id: id ?? "", kind, fields: [...names] })
    }
  })
  let batch: Array<string> = []
  for (const text of source) {
    batch.push(text)
    if (batch.length < batchMax) continue
    yield* compareBatch(batch)
    batch = []
  }
  yield* compareBatch(batch)
  const warehouse = yield* eachSurplus(rows, seen, (id) => differences.set(id, { id, kind: "surplus", fields: [] }))
  return { source: seen.counts().distinct + unreadable, warehouse, differences: [...differences.values()] }
})
