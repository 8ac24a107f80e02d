/**
 * The records of one resource in one company: the newest version of each, and the orders in which lists need them.
 *
 * Promise: `order` contains every id ascending; `changes` contains every record that has a stamp, ordered by (stamp,
 * id); `where` returns records in the order of ids. Superseded entries of `changes` are detected by identity and
 * removed from time to time, so that the cost of a write does not depend on the number of records.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import type { Value } from "../json.ts"
import { Raw } from "../json.ts"

/**
 * The values of the fields, by name; an absent field is empty. Names beginning with `_` are internal to the server and
 * never shown.
 */
export type Values = Readonly<Record<string, Value>>

/**
 * One version of one record. It never changes once it is in the store (its rendered text is a cache), so that a reader
 * may keep it while the record gets new versions.
 */
export interface Version {
  readonly table: Table
  readonly id: number
  /** Number of this version of the record, from 1. */
  readonly version: number
  /** Position in the order of commits; every change of the record has a new one. */
  readonly seq: number
  /** lastchangedate in microseconds; null when the record has no readable one. */
  readonly stamp: number | null
  /** Time of the commit, in microseconds. */
  readonly at: number
  readonly cancelled: boolean
  readonly values: Values
  /** Fields that the catalogue does not know, as JSON text by name. */
  readonly extra: ReadonlyMap<string, string> | null
  /** The install's own fields, as JSON text by name. */
  readonly custom: ReadonlyMap<string, string> | null
  /** Rendered text, for one generation of the renderer. */
  cache: string | null
  cacheEpoch: number
}

/** The index of the first element for which `isBefore` is false. */
export const place = <A>(items: ReadonlyArray<A>, isBefore: (item: A) => boolean): number => {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(items[middle]!)) low = middle + 1
    else high = middle
  }
  return low
}

const insertAt = <A>(items: Array<A>, index: number, item: A) => {
  if (index === items.length) items.push(item)
  else items.splice(index, 0, item)
}

/** Whether one (stamp, id) is before another. */
export const isBefore = (stamp: number, id: number, otherStamp: number, otherId: number): boolean =>
  stamp < otherStamp || (stamp === otherStamp && id < otherId)

/** Ids by value; a single id is stored without an array. */
type Postings = Map<string | number | boolean, number | Array<number>>

export class Table {
  readonly company: number
  readonly resource: Resource
  readonly order: Array<number> = []
  readonly changes: Array<Version> = []
  private readonly current = new Map<number, Version>()
  private readonly indexes = new Map<string, Postings>()
  private readonly fold: boolean
  private stale = 0

  constructor(company: number, resource: Resource, indexed: ReadonlyArray<string>) {
    this.company = company
    this.resource = resource
    this.fold = resource.key?.caseSensitive === false
    for (const field of indexed) this.indexes.set(field, new Map())
  }

  get size(): number {
    return this.current.size
  }

  get(id: number): Version | undefined {
    return this.current.get(id)
  }

  isCurrent(version: Version): boolean {
    return this.current.get(version.id) === version
  }

  /** All records in the order of ids. */
  *all(): Generator<Version> {
    for (const id of this.order) yield this.current.get(id)!
  }

  /** The records whose field has the value; the key ignores case where the catalogue says so. */
  where(field: string, value: string | number | boolean): ReadonlyArray<Version> {
    const postings = this.indexes.get(field)
    const key = this.keyOf(field, value)
    if (postings === undefined)
      return [...this.all()].filter((version) => this.keyOf(field, version.values[field]) === key)
    const posting = postings.get(key!)
    if (posting === undefined) return []
    return typeof posting === "number" ? [this.current.get(posting)!] : posting.map((id) => this.current.get(id)!)
  }

  /** Replaces a version by the next one; `null` removes the record. */
  replace(id: number, after: Version | null): void {
    const before = this.current.get(id)
    for (const [field, postings] of this.indexes) {
      const from = before === undefined ? undefined : this.keyOf(field, before.values[field])
      const to = after === null ? undefined : this.keyOf(field, after.values[field])
      if (from === to) continue
      if (from !== undefined) unpost(postings, from, id)
      if (to !== undefined) post(postings, to, id)
    }
    if (after === null) {
      this.current.delete(id)
      const index = place(this.order, (other) => other < id)
      if (this.order[index] === id) this.order.splice(index, 1)
    } else {
      this.current.set(id, after)
      if (before === undefined) {
        const last = this.order.at(-1)
        insertAt(this.order, last === undefined || last < id ? this.order.length : place(this.order, (o) => o < id), id)
      }
    }
    if (before !== undefined && before.stamp !== null) this.stale++
  }

  /** Inserts a version into the order of changes. */
  enter(version: Version): void {
    const { stamp, id } = version
    if (stamp === null) return
    const last = this.changes.at(-1)
    const atEnd = last === undefined || !isBefore(stamp, id, last.stamp!, last.id)
    const index = atEnd
      ? this.changes.length
      : place(this.changes, (other) => isBefore(other.stamp!, other.id, stamp, id))
    insertAt(this.changes, index, version)
  }

  /** Removes superseded entries once they outnumber the current ones. */
  sweep(): void {
    if (this.stale <= this.current.size + 64) return
    let kept = 0
    for (const version of this.changes) if (this.isCurrent(version)) this.changes[kept++] = version
    this.changes.length = kept
    this.stale = 0
  }

  private keyOf(field: string, value: Value | undefined): string | number | boolean | undefined {
    if (value === null || value === undefined) return undefined
    if (value instanceof Raw) return `raw ${value.text}`
    return this.fold && field === this.resource.key?.field && typeof value === "string" ? foldCase(value) : value
  }
}

/** Texts that differ in case only become equal. */
export const foldCase = (text: string): string => text.normalize("NFC").toLowerCase()

const post = (postings: Postings, key: string | number | boolean, id: number) => {
  const posting = postings.get(key)
  if (posting === undefined) postings.set(key, id)
  else if (typeof posting === "number") postings.set(key, posting < id ? [posting, id] : [id, posting])
  else if (posting.at(-1)! < id) posting.push(id)
  else
    insertAt(
      posting,
      place(posting, (other) => other < id),
      id
    )
}

const unpost = (postings: Postings, key: string | number | boolean, id: number) => {
  const posting = postings.get(key)
  if (posting === undefined) return
  if (typeof posting === "number") {
    postings.delete(key)
    return
  }
  const index = place(posting, (other) => other < id)
  if (posting[index] === id) posting.splice(index, 1)
  if (posting.length === 0) postings.delete(key)
}
