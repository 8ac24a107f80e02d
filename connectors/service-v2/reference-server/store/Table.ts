/**
 * The records of one resource in one company: the newest version of each, and the orders in which lists need them.
 *
 * Promise: `order` holds every id ascending; `changes` holds every record that has a stamp, ordered by (stamp, id);
 * `where` answers in the order of ids. Superseded entries of `changes` are recognised by identity and swept now and
 * then, so that a write costs the same however many records there are.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import type { Value } from "../json.ts"
import { Raw } from "../json.ts"

/**
 * What the fields hold, by name; a field that is absent is empty. Names beginning with `_` are the server's own notes
 * and are never shown.
 */
export type Values = Readonly<Record<string, Value>>

/**
 * One version of one record. It never changes once it is in the store (its rendered text is a cache), so that a reader
 * may keep it while the record moves on.
 */
export interface Version {
  readonly table: Table
  readonly id: number
  /** Counts the versions of the record, from 1. */
  readonly version: number
  /** Place in the order of commits; changes whenever the record does. */
  readonly seq: number
  /** lastchangedate in microseconds; null when the record carries none that can be read. */
  readonly stamp: number | null
  /** When the version was committed, in microseconds. */
  readonly at: number
  readonly cancelled: boolean
  readonly values: Values
  /** Fields that the catalogue does not know, as JSON text by name. */
  readonly extra: ReadonlyMap<string, string> | null
  /** The install's own fields, as JSON text by name. */
  readonly custom: ReadonlyMap<string, string> | null
  /** Rendered text, and the rendering that it belongs to. */
  cache: string | null
  cacheEpoch: number
}

/** The place of the first element for which `isBefore` no longer holds. */
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

/** Whether (stamp, id) comes before another. */
export const isBefore = (stamp: number, id: number, otherStamp: number, otherId: number): boolean =>
  stamp < otherStamp || (stamp === otherStamp && id < otherId)

/** Ids by value; a single id is kept without an array. */
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

  /** Every record in the order of ids. */
  *all(): Generator<Version> {
    for (const id of this.order) yield this.current.get(id)!
  }

  /** The records whose field holds the value; the key ignores case where the catalogue says so. */
  where(field: string, value: string | number | boolean): ReadonlyArray<Version> {
    const postings = this.indexes.get(field)
    const key = this.keyOf(field, value)
    if (postings === undefined)
      return [...this.all()].filter((version) => this.keyOf(field, version.values[field]) === key)
    const found = postings.get(key!)
    if (found === undefined) return []
    return typeof found === "number" ? [this.current.get(found)!] : found.map((id) => this.current.get(id)!)
  }

  /** Puts a version in the place of the one before it; `null` takes the record away. */
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

  /** Enters a version into the order of changes. */
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

  /** Sweeps superseded entries once they outnumber the living. */
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

/** Two texts that differ in case only fold to the same. */
export const foldCase = (text: string): string => text.normalize("NFC").toLowerCase()

const post = (postings: Postings, key: string | number | boolean, id: number) => {
  const found = postings.get(key)
  if (found === undefined) postings.set(key, id)
  else if (typeof found === "number") postings.set(key, found < id ? [found, id] : [id, found])
  else if (found.at(-1)! < id) found.push(id)
  else
    insertAt(
      found,
      place(found, (other) => other < id),
      id
    )
}

const unpost = (postings: Postings, key: string | number | boolean, id: number) => {
  const found = postings.get(key)
  if (found === undefined) return
  if (typeof found === "number") {
    postings.delete(key)
    return
  }
  const index = place(found, (other) => other < id)
  if (found[index] === id) found.splice(index, 1)
  if (found.length === 0) postings.delete(key)
}
