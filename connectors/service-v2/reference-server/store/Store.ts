/**
 * The records of all companies, in memory.
 *
 * Promise: a write is atomic: when {@link Store.transact} throws, none of its changes is visible. The history contains
 * every committed version in the order of commits. One transaction has one stamp. While the clock runs, stamps strictly
 * increase, so that no later change hides behind an earlier one; while the clock is stopped, several transactions share
 * the stamp. A store made from a {@link StoreState} shares the records and the history with it until it writes them.
 */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import type { Value } from "../json.ts"
import { Raw } from "../json.ts"
import type { ServerClock } from "../ServerClock.ts"
import { printInstant, readInstant } from "../time.ts"
import { Table } from "./Table.ts"
import type { TableKey, Values, Version } from "./Table.ts"

/** The change of a record in one commit. */
export interface Change {
  readonly seq: number
  readonly op: "insert" | "update" | "delete"
  /** The version after the change; before it, when the record was removed. */
  readonly version: Version
  /** The version before the commit; absent when there was none. */
  readonly before?: Version
  readonly at: number
}

/** The new content of a record; absent members stay. */
export interface Put {
  readonly values: Values
  readonly extra?: ReadonlyMap<string, string> | null
  readonly custom?: ReadonlyMap<string, string> | null
  /** Values are stored as given: the stamp is read from lastchangedate, nothing is filled in. */
  readonly verbatim?: boolean
}

/** The company of the records that all companies share. */
export const sharedCompany = 0

interface Transaction {
  readonly stamp: number
  readonly touched: Map<Table, Map<number, Version | undefined>>
  readonly order: Array<{ readonly table: Table; readonly id: number }>
}

/** The content of a store at one moment; it never changes. */
export interface StoreState {
  readonly tables: ReadonlyArray<Table>
  readonly history: ReadonlyArray<Change>
  /** The next id of each resource. */
  readonly nextIds: ReadonlyMap<string, number>
  /** The last number of each named sequence. */
  readonly sequences: ReadonlyMap<string, number>
  /** The last position in the order of commits. */
  readonly seq: number
  /** The last stamp, in microseconds. */
  readonly stampLast: number
}

/** The store as seen by writes of one company. */
export interface CompanyStore {
  readonly store: Store
  readonly company: number
}

export class Store {
  readonly catalogue: Catalogue
  readonly clock: ServerClock
  /** Called after each commit with its changes. */
  readonly listeners: Array<(changes: ReadonlyArray<Change>) => void> = []
  private readonly tables = new Map<number, Map<string, Table>>()
  private readonly indexed: ReadonlyMap<string, ReadonlyArray<string>>
  private readonly nextIds: Map<string, number>
  private readonly sequences: Map<string, number>
  private log: Array<Change>
  /** Whether a state has the same array: it is copied before the next commit. */
  private isLogShared: boolean
  private transaction: Transaction | null = null
  private seq: number
  private stampLast: number
  /** The last printed instant: in large data many records share one. */
  private printed = { at: 0, text: printInstant(0) }

  constructor(catalogue: Catalogue, clock: ServerClock, state?: StoreState) {
    this.catalogue = catalogue
    this.clock = clock
    this.indexed = indexedFields(catalogue)
    this.nextIds = new Map(state?.nextIds)
    this.sequences = new Map(state?.sequences)
    this.log = (state?.history ?? []) as Array<Change>
    this.isLogShared = state !== undefined
    this.seq = state?.seq ?? 0
    this.stampLast = state?.stampLast ?? 0
    for (const table of state?.tables ?? []) this.tablesOf(table.company).set(table.resource.path, table.fork())
  }

  /** Every committed change, in the order of commits. */
  get history(): ReadonlyArray<Change> {
    return this.log
  }

  /** The present content, without copying it. */
  state(): StoreState {
    if (this.transaction !== null) throw new Error("the store has no state inside a transaction")
    this.isLogShared = true
    const tables = [...this.tables.values()].flatMap((ofCompany) => [...ofCompany.values()])
    return {
      tables: tables.filter(({ size }) => size > 0).map((table) => table.fork()),
      history: this.log,
      nextIds: new Map(this.nextIds),
      sequences: new Map(this.sequences),
      seq: this.seq,
      stampLast: this.stampLast
    }
  }

  resource(path: string): Resource {
    const resource = this.catalogue.resources.get(path)
    if (resource === undefined) throw new Error(`${path} is not in the catalogue`)
    return resource
  }

  /** The table of a resource as a company sees it. */
  table(company: number, path: string): Table {
    const resource = this.resource(path)
    const owner = resource.shared ? sharedCompany : company
    const tables = this.tablesOf(owner)
    let table = tables.get(path)
    if (table === undefined) {
      table = new Table({ company: owner, resource }, this.indexed.get(path) ?? [])
      tables.set(path, table)
    }
    return table
  }

  private tablesOf(owner: number): Map<string, Table> {
    let tables = this.tables.get(owner)
    if (tables === undefined) this.tables.set(owner, (tables = new Map<string, Table>()))
    return tables
  }

  /** The companies that have records. */
  companies(): ReadonlyArray<number> {
    return [...this.tables.keys()].filter((company) => company !== sharedCompany).sort((a, b) => a - b)
  }

  get lastSeq(): number {
    return this.seq
  }

  /** The next number of a named sequence, from 1; a number that was drawn and not used leaves a gap. */
  draw(sequence: string): number {
    const next = (this.sequences.get(sequence) ?? 0) + 1
    this.sequences.set(sequence, next)
    return next
  }

  /** The next id of a resource; ids are unique in the install, so that no id means two records. */
  nextId(path: string): number {
    const next = this.nextIds.get(path) ?? 1
    this.nextIds.set(path, next + 1)
    return next
  }

  /** Runs `work` as one write; when it throws, nothing is changed. A nested write is part of the outer one. */
  transact<A>(work: () => A): A {
    if (this.transaction !== null) return work()
    const transaction: Transaction = { stamp: this.nextStamp(), touched: new Map(), order: [] }
    this.transaction = transaction
    let result: A
    try {
      result = work()
    } catch (error) {
      this.undo(transaction)
      throw error
    } finally {
      this.transaction = null
    }
    this.commit(transaction)
    return result
  }

  /** Writes a version of a record; `id` null creates a record. Returns the new version. */
  put(table: Table, id: number | null, put: Put): Version {
    const transaction = this.open()
    const recordId = id ?? this.nextId(table.resource.path)
    if (id !== null && id >= (this.nextIds.get(table.resource.path) ?? 1)) this.nextIds.set(table.resource.path, id + 1)
    const before = table.get(recordId)
    if (before !== undefined && put.verbatim !== true && !changes(before, put)) return before
    const first = this.touch(transaction, table, recordId, before)
    const { field } = table.resource
    const newValues: Record<string, Value> =
      put.verbatim === true ? { ...put.values, id: recordId } : { ...before?.values, ...put.values, id: recordId }
    let stamp: number | null = null
    if (field.has("lastchangedate")) {
      if (put.verbatim === true && "lastchangedate" in put.values) {
        const shown = put.values["lastchangedate"]
        stamp = typeof shown === "string" ? readInstant(shown) : null
      } else {
        stamp = transaction.stamp
        newValues["lastchangedate"] = printInstant(stamp)
      }
    }
    if (before === undefined && field.has("entrydate") && !("entrydate" in newValues)) {
      newValues["entrydate"] = printInstant(transaction.stamp)
    }
    const after: Version = {
      table: table.key,
      id: recordId,
      version: (first?.version ?? 0) + 1,
      seq: ++this.seq,
      stamp,
      at: transaction.stamp,
      cancelled: newValues["cancel"] === true,
      values: newValues,
      extra: put.extra === undefined ? (before?.extra ?? null) : put.extra,
      custom: put.custom === undefined ? (before?.custom ?? null) : put.custom,
      cache: null,
      cacheEpoch: 0
    }
    table.replace(recordId, after)
    table.enter(after)
    return after
  }

  /** Removes a record. */
  remove(key: TableKey, id: number): void {
    const table = this.table(key.company, key.resource.path)
    const before = table.get(id)
    if (before === undefined) return
    this.touch(this.open(), table, id, before)
    table.replace(id, null)
  }

  /** Stores a first version without a transaction: for generating large data. */
  load(table: Table, values: Record<string, Value>, at: number, drawn: number | null = null): Version {
    const id = drawn ?? this.nextId(table.resource.path)
    const hasStamp = table.resource.field.has("lastchangedate")
    if (this.printed.at !== at) this.printed = { at, text: printInstant(at) }
    const when = this.printed.text
    if (hasStamp) values["lastchangedate"] = when
    if (table.resource.field.has("entrydate")) values["entrydate"] = when
    values["id"] = id
    const version: Version = {
      table: table.key,
      id,
      version: 1,
      seq: ++this.seq,
      stamp: hasStamp ? at : null,
      at,
      cancelled: values["cancel"] === true,
      values,
      extra: null,
      custom: null,
      cache: null,
      cacheEpoch: 0
    }
    table.replace(id, version)
    table.enter(version)
    this.append({ seq: version.seq, op: "insert", version, at })
    this.stampLast = Math.max(this.stampLast, at)
    return version
  }

  private append(change: Change): void {
    if (this.isLogShared) {
      this.log = this.log.slice()
      this.isLogShared = false
    }
    this.log.push(change)
  }

  private open(): Transaction {
    if (this.transaction === null) throw new Error("the store is written inside a transaction only")
    return this.transaction
  }

  private nextStamp(): number {
    const now = this.clock.now()
    const stamp = this.clock.isManual() ? now : Math.max(now, this.stampLast + 1)
    this.stampLast = stamp
    return stamp
  }

  /** Stores the record's version before the transaction, and returns it. */
  private touch(transaction: Transaction, table: Table, id: number, before: Version | undefined): Version | undefined {
    let records = transaction.touched.get(table)
    if (records === undefined) transaction.touched.set(table, (records = new Map<number, Version | undefined>()))
    if (records.has(id)) return records.get(id)
    records.set(id, before)
    transaction.order.push({ table, id })
    return before
  }

  private undo({ order, touched }: Transaction): void {
    for (const { table, id } of order.toReversed()) table.replace(id, touched.get(table)?.get(id) ?? null)
  }

  private commit({ order, touched, stamp }: Transaction): void {
    const committed: Array<Change> = []
    for (const { table, id } of order) {
      const before = touched.get(table)?.get(id)
      const after = table.get(id)
      if (after === undefined) {
        if (before !== undefined) committed.push({ seq: ++this.seq, op: "delete", version: before, at: stamp })
      } else {
        const { seq } = after
        if (before === undefined) committed.push({ seq, op: "insert", version: after, at: stamp })
        else committed.push({ seq, op: "update", version: after, before, at: stamp })
      }
      table.sweep()
    }
    committed.sort((a, b) => a.seq - b.seq)
    for (const change of committed) this.append(change)
    if (committed.length > 0) for (const listener of this.listeners) listener(committed)
  }
}

const changes = (before: Version, put: Put): boolean => {
  if (put.extra !== undefined || put.custom !== undefined) return true
  for (const name in put.values) if (!isSame(put.values[name] ?? null, before.values[name] ?? null)) return true
  return false
}

const isSame = (a: Value, b: Value): boolean => a === b || (a instanceof Raw && b instanceof Raw && a.text === b.text)

const indexedByCatalogue = new WeakMap<Catalogue, ReadonlyMap<string, ReadonlyArray<string>>>()

/** Fields that are looked up by value: exact filters, external keys, human keys, and targets of references. */
export const indexedFields = (catalogue: Catalogue): ReadonlyMap<string, ReadonlyArray<string>> => {
  const known = indexedByCatalogue.get(catalogue)
  if (known !== undefined) return known
  const fields = new Map<string, Set<string>>()
  const add = (path: string, field: string) => {
    const fieldsOfPath = fields.get(path)
    if (fieldsOfPath === undefined) fields.set(path, new Set([field]))
    else fieldsOfPath.add(field)
  }
  for (const resource of catalogue.resources.values()) {
    for (const filter of resource.filters) if (filter.match === "exact") add(resource.path, filter.field)
    // A required reference names the parent: rules look up children by it.
    for (const { required, refers, sets } of resource.create ?? []) {
      if (required && refers?.by === null && sets !== null) add(resource.path, sets)
    }
    if (resource.field.has("externalid")) add(resource.path, "externalid")
    if (resource.key !== null) add(resource.path, resource.key.field)
    for (const { reference } of resource.fields) {
      if (reference !== null && reference.by !== null) add(reference.resource, reference.by)
    }
  }
  const indexed = new Map([...fields].map(([path, names]) => [path, [...names]]))
  indexedByCatalogue.set(catalogue, indexed)
  return indexed
}
