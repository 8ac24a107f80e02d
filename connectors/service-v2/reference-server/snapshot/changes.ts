/** The history of a snapshot file, and the tables that follow from it. */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { ControlError } from "../control/Input.ts"
import { print, valueOf } from "../json.ts"
import type { Value } from "../json.ts"
import { indexedFields, sharedCompany } from "../store/Store.ts"
import type { Change } from "../store/Store.ts"
import { Table } from "../store/Table.ts"
import type { TableKey, Version } from "../store/Table.ts"
import { readInstant } from "../time.ts"
import type { ChangeLine, Draft } from "./draft.ts"
import { readTime } from "./lines.ts"

interface Records {
  readonly key: TableKey
  readonly hasStamp: boolean
  readonly nextId: number
  readonly current: Map<number, Version>
}

type Pairs = ReadonlyArray<readonly [name: string, value: unknown]> | undefined

const pairsOf = (pairs: Pairs): ReadonlyMap<string, string> | null =>
  pairs === undefined ? null : new Map(pairs.map(([name, value]) => [name, print(value)]))

/** A field of the catalogue, or one that is internal to the rules. */
const isField = (resource: Resource, name: string) => resource.field.has(name) || /^_[a-z]+$/.test(name)

const valuesOf = (resource: Resource, input: Readonly<Record<string, unknown>>, id: number): Record<string, Value> => {
  const values = input as Record<string, Value>
  for (const name in values) {
    if (!isField(resource, name)) throw new ControlError(`${resource.path} has no field "${name}"`)
    const value: unknown = values[name]
    if (typeof value === "object") values[name] = valueOf(value)
  }
  if (values["id"] !== id) throw new ControlError(`values.id must be ${id}, as the line's id`)
  return values
}

export class Changes {
  readonly history: Array<Change> = []
  /** The position of the last change. */
  seq = 0
  private readonly catalogue: Catalogue
  private readonly draft: Draft
  private readonly records = new Map<string, Records>()

  constructor(catalogue: Catalogue, draft: Draft) {
    this.catalogue = catalogue
    this.draft = draft
  }

  private recordsOf(company: number, path: string): Records {
    const name = `${company} ${path}`
    const known = this.records.get(name)
    if (known !== undefined) return known
    const resource = this.catalogue.resources.get(path)
    if (resource === undefined) throw new ControlError(`there is no resource ${path}`)
    if (resource.shared !== (company === sharedCompany)) {
      throw new ControlError(
        resource.shared ? `all companies share ${path}: its company is 0` : `the company of ${path} is 1 or more`
      )
    }
    const records = {
      key: { company, resource },
      hasStamp: resource.field.has("lastchangedate"),
      nextId: this.draft.nextIds.get(path) ?? 1,
      current: new Map<number, Version>()
    }
    this.records.set(name, records)
    return records
  }

  /** Adds the next change; throws {@link ControlError}. */
  add(line: ChangeLine): void {
    const { seq, op, company, resource, id } = line
    if (seq <= this.seq) throw new ControlError(`seq ${seq} is not above the one before, ${this.seq}`)
    const records = this.recordsOf(company, resource)
    const before = records.current.get(id)
    if ((op === "insert") !== (before === undefined)) {
      throw new ControlError(
        `${op} of ${resource} ${id}, which ${before === undefined ? "does not exist" : "exists"} at this point`
      )
    }
    if ((op === "delete") !== (line.values === undefined)) {
      throw new ControlError(op === "delete" ? "delete has no values" : `${op} needs values`)
    }
    if (id >= records.nextId) throw new ControlError(`id ${id} is not below the next id of ${resource}`)
    this.seq = seq
    const at = readTime(line.at)
    if (before !== undefined && op === "delete") {
      records.current.delete(id)
      this.history.push({ seq, op, version: before, at })
      return
    }
    const version = this.versionOf(records, line, before, at)
    records.current.set(id, version)
    if (before === undefined) this.history.push({ seq, op: "insert", version, at })
    else this.history.push({ seq, op: "update", version, before, at })
  }

  private versionOf({ key, hasStamp }: Records, line: ChangeLine, before: Version | undefined, at: number): Version {
    const values = valuesOf(key.resource, line.values!, line.id)
    const stamp = hasStamp ? values["lastchangedate"] : null
    return {
      table: key,
      id: line.id,
      version: (before?.version ?? 0) + 1,
      seq: line.seq,
      stamp: typeof stamp === "string" ? readInstant(stamp) : null,
      at,
      cancelled: values["cancel"] === true,
      values,
      extra: pairsOf(line.extra),
      custom: pairsOf(line.custom),
      cache: null,
      cacheEpoch: 0
    }
  }

  tables(): ReadonlyArray<Table> {
    const indexed = indexedFields(this.catalogue)
    return [...this.records.values()].map(({ key, current }) =>
      Table.of(key, indexed.get(key.resource.path) ?? [], [...current.values()])
    )
  }
}
