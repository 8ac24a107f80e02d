/**
 * The records of one resource in one company: the newest version of each, and the orders in which lists need them.
 *
 * Promise: `order` contains every id ascending; `changes` contains every record that has a stamp, ordered by (stamp,
 * id); `where` returns records in the order of ids. Superseded entries of `changes` are detected by identity and
 * removed from time to time, so that the cost of a write does not depend on the number of records. A {@link Table.fork}
 * costs the same for every size: both tables share the records until one of them is written, which copies them once.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import type { Value } from "../json.ts"
import { Raw } from "../json.ts"

/**
 * The values of the fields, by name; an absent field is empty. Names beginning with `_` are internal to the server and
 * never shown.
 */
export type Values = Readonly<Record<string, Value>>

/** Company and resource of a table, in every store that shares its records. */
export interface TableKey {
  readonly company: number
  readonly resource: Resource
}

/**
 * One version of one record. It never changes once it is in the store (its rendered text is a cache), so that a reader
 * may keep it while the record gets new versions.
 */
export interface Version {
  readonly table: TableKey
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

/** The records of a table; never written while tables share it. */
interface Content {
  readonly order: Array<number>
  readonly changes: Array<Version>
  readonly current: Map<number, Version>
  /** Made at the first look-up by the field, so that a copy costs nothing for fields that nothing looks up. */
  readonly indexes: Map<string, Postings>
  stale: number
}

const emptyContent = (): Content => ({
  order: [],
  changes: [],
  current: new Map(),
  indexes: new Map(),
  stale: 0
})

export class Table implements TableKey {
  readonly key: TableKey
  private readonly indexed: ReadonlyArray<string>
  private readonly fold: boolean
  private content: Content
  private isShared = false

  constructor(key: TableKey, indexed: ReadonlyArray<string>, content: Content = emptyContent()) {
    this.key = key
    this.indexed = indexed
    this.content = content
    this.fold = key.resource.key?.caseSensitive === false
  }

  /** A table of these current versions, in any order. */
  static of(key: TableKey, indexed: ReadonlyArray<string>, versions: ReadonlyArray<Version>): Table {
    return new Table(key, indexed, {
      ...emptyContent(),
      order: versions.map(({ id }) => id).sort((a, b) => a - b),
      changes: versions
        .filter(({ stamp }) => stamp !== null)
        .sort((a, b) => (isBefore(a.stamp!, a.id, b.stamp!, b.id) ? -1 : 1)),
      current: new Map(versions.map((version) => [version.id, version]))
    })
  }

  get company(): number {
    return this.key.company
  }

  get resource(): Resource {
    return this.key.resource
  }

  /** All ids, ascending. */
  get order(): ReadonlyArray<number> {
    return this.content.order
  }

  /** All records with a stamp, by (stamp, id), among superseded versions. */
  get changes(): ReadonlyArray<Version> {
    return this.content.changes
  }

  get size(): number {
    return this.content.current.size
  }

  get(id: number): Version | undefined {
    return this.content.current.get(id)
  }

  isCurrent(version: Version): boolean {
    return this.content.current.get(version.id) === version
  }

  /** All records in the order of ids. */
  *all(): Generator<Version> {
    // By index, so that a write between two records has the same effect whether or not it copies the records.
    for (let index = 0; index < this.content.order.length; index++) {
      yield this.content.current.get(this.content.order[index]!)!
    }
  }

  /** A table with the same records; neither sees later writes of the other. */
  fork(): Table {
    const other = new Table(this.key, this.indexed, this.content)
    this.isShared = true
    other.isShared = true
    return other
  }

  /** The records, to be written. */
  private own(): Content {
    if (!this.isShared) return this.content
    const { order, changes, current, stale } = this.content
    this.content = {
      order: order.slice(),
      changes: changes.slice(),
      current: new Map(current),
      indexes: new Map(),
      stale
    }
    this.isShared = false
    return this.content
  }

  private indexOf(field: string): Postings | undefined {
    const made = this.content.indexes.get(field)
    if (made !== undefined || !this.indexed.includes(field)) return made
    const postings: Postings = new Map()
    for (const version of this.all()) {
      const key = this.keyOf(field, version.values[field])
      if (key !== undefined) post(postings, key, version.id)
    }
    this.content.indexes.set(field, postings)
    return postings
  }

  /** The records whose field has the value; the key ignores case where the catalogue says so. */
  where(field: string, value: string | number | boolean): ReadonlyArray<Version> {
    const postings = this.indexOf(field)
    const { current } = this.content
    const key = this.keyOf(field, value)
    if (postings === undefined)
      return [...this.all()].filter((version) => this.keyOf(field, version.values[field]) === key)
    const posting = postings.get(key!)
    if (posting === undefined) return []
    return typeof posting === "number" ? [current.get(posting)!] : posting.map((id) => current.get(id)!)
  }

  /** Replaces a version by the next one; `null` removes the record. */
  replace(id: number, after: Version | null): void {
    const content = this.own()
    const { current, indexes, order } = content
    const before = current.get(id)
    for (const [field, postings] of indexes) {
      const from = before === undefined ? undefined : this.keyOf(field, before.values[field])
      const to = after === null ? undefined : this.keyOf(field, after.values[field])
      if (from === to) continue
      if (from !== undefined) unpost(postings, from, id)
      if (to !== undefined) post(postings, to, id)
    }
    if (after === null) {
      current.delete(id)
      const index = place(order, (other) => other < id)
      if (order[index] === id) order.splice(index, 1)
    } else {
      current.set(id, after)
      if (before === undefined) {
        const last = order.at(-1)
        insertAt(order, last === undefined || last < id ? order.length : place(order, (other) => other < id), id)
      }
    }
    if (before !== undefined && before.stamp !== null) content.stale++
  }

  /** Inserts a version into the order of changes. */
  enter(version: Version): void {
    const { stamp, id } = version
    if (stamp === null) return
    const { changes } = this.own()
    const last = changes.at(-1)
    const atEnd = last === undefined || !isBefore(stamp, id, last.stamp!, last.id)
    const index = atEnd ? changes.length : place(changes, (other) => isBefore(other.stamp!, other.id, stamp, id))
    insertAt(changes, index, version)
  }

  /** Removes superseded entries once they outnumber the current ones. */
  sweep(): void {
    if (this.content.stale <= this.content.current.size + 64) return
    const content = this.own()
    const { changes } = content
    let kept = 0
    for (const version of changes) if (this.isCurrent(version)) changes[kept++] = version
    changes.length = kept
    content.stale = 0
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
