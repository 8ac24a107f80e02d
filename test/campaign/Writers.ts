/**
 * Writers at the source during a campaign: records are changed, created, cancelled, removed and created again.
 *
 * Promise: drawn from one random stream, and written through the control plane. Most records are written at most once,
 * because a record that changes again and again hides an earlier loss.
 */
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { Resource } from "../../src/catalogue/Resource.ts"
import type { Chance } from "../fuzz/Chance.ts"
import type { ReferenceProcess } from "../support/reference.ts"

type Values = Readonly<Record<string, unknown>>

/** A text field without a meaning for any other record. */
const freeText = (resource: Resource): string | null => {
  const references = new Set(
    [...serviceV2.resources.values()].flatMap(({ fields }) =>
      fields.flatMap(({ reference }) =>
        reference !== null && reference.resource === resource.path && reference.by !== null ? [reference.by] : []
      )
    )
  )
  const found = resource.fields.find(
    ({ name, type, reference, values }) =>
      type._tag === "string" &&
      reference === null &&
      values === null &&
      (type.maxLength === null || type.maxLength >= 20) &&
      !references.has(name)
  )
  return found?.name ?? null
}

const decimalOf = (resource: Resource) =>
  resource.fields.flatMap(({ name, type }) => (type._tag === "decimal" ? [{ name, scale: type.scale }] : []))

/** Values that programs often damage: quotes, tabs, line ends, backslashes, characters beyond 16 bits. */
const oddities = [
  "plain",
  "tab\there",
  "back\\slash \\N",
  'a "quoted" one',
  "two\nlines",
  "żółw 🐢",
  "",
  " space ",
  "NULL"
]

export interface Writer {
  readonly company: number
  /** Writes a few records of any resource. */
  readonly write: () => Promise<void>
  /** Ids of records that were removed without a trace and not created again, by resource. */
  readonly removed: ReadonlyMap<string, ReadonlySet<number>>
  /** Ids of children that changed without a change of their parent, by resource. */
  readonly childOnlyChanges: ReadonlyMap<string, ReadonlySet<number>>
  readonly counts: Readonly<Record<"changed" | "made" | "cancelled" | "removed" | "remade", number>>
}

interface Table {
  readonly resource: Resource
  /** Ids of the existing records. */
  readonly ids: Array<number>
  /** A record that is the template of new ones. */
  readonly template: Values
  next: number
}

/** Creates a writer for one company. */
export const writer = async (
  reference: ReferenceProcess,
  company: number,
  resources: ReadonlyArray<string>,
  chance: Chance
): Promise<Writer> => {
  const removed = new Map<string, Set<number>>(resources.map((path) => [path, new Set()]))
  const childOnlyChanges = new Map<string, Set<number>>(resources.map((path) => [path, new Set()]))
  const counts = { changed: 0, made: 0, cancelled: 0, removed: 0, remade: 0 }
  const tables = new Map(
    await Promise.all(
      resources.map(async (path) => {
        const records = await reference.lines(`/state?company=${company}&resource=${path}`)
        const resource = serviceV2.resources.get(path)!
        const template = records.length === 0 ? {} : (JSON.parse(records[0]!) as Values)
        const ids = records.map((record) => Number((JSON.parse(record) as Values)["id"]))
        const table: Table = { resource, ids, template, next: Math.max(0, ...ids) + 1000 }
        return [path, table] as const
      })
    )
  )
  const control = (path: string, body: object) => reference.control("POST", path, { company, ...body })
  let word = 0

  const drawn = (resource: Resource): Values => {
    const text = freeText(resource)
    const decimals = decimalOf(resource)
    word += 1
    const values: Record<string, unknown> = {}
    if (text !== null) values[text] = `${word} ${chance.pick(oddities)}`.slice(0, 20)
    if (decimals.length > 0 && chance.is(0.7)) {
      const { name, scale } = chance.pick(decimals)
      values[name] =
        `${chance.between(0, 90_000)}.${String(chance.below(10 ** Math.min(scale, 9))).padStart(scale, "0")}`
    }
    return values
  }

  /** A child that changed is found by its parent, which changes with it. */
  const touchParent = async ({ parent, path }: Resource, record: Values) => {
    if (parent === null) return
    const id = record[parent.field]
    const above = tables.get(parent.resource)
    if (typeof id !== "number" || above === undefined || !above.ids.includes(id)) {
      childOnlyChanges.get(path)!.add(Number(record["id"]))
      return
    }
    await control("/records", { resource: above.resource.path, records: [{ id, ...drawn(above.resource) }] })
  }

  const put = async (resource: Resource, records: ReadonlyArray<Values>) => {
    const response = (await control("/records", { resource: resource.path, records })) as {
      readonly records: ReadonlyArray<Values>
    }
    for (const record of response.records) await touchParent(resource, record)
  }

  const writeOnce = async () => {
    const table = tables.get(chance.pick(resources))!
    const { resource, ids, template } = table
    const gone = removed.get(resource.path)!
    const some = () => Array.from({ length: Math.min(ids.length, chance.between(1, 6)) }, () => chance.pick(ids))
    const what = chance.weighted([
      [5, "change"],
      [4, "make"],
      [resource.field.has("cancel") ? 2 : 0, "cancel"],
      [ids.length > 10 ? 2 : 0, "remove"],
      [gone.size > 0 ? 2 : 0, "remake"]
    ] as const)
    if (what === "change" && ids.length > 0) {
      const chosen = [...new Set(some())]
      await put(
        resource,
        chosen.map((id) => ({ id, ...drawn(resource) }))
      )
      counts.changed += chosen.length
    } else if (what === "make") {
      const { id: _, lastchangedate: _stamp, entrydate: _entry, lines: _lines, ...values } = template
      const made = Array.from({ length: chance.between(1, 8) }, () => (table.next += 1))
      const parents = resource.parent === null ? undefined : tables.get(resource.parent.resource)?.ids
      await put(
        resource,
        made.map((id) => ({
          ...values,
          ...drawn(resource),
          id,
          ...(resource.parent === null || parents === undefined
            ? {}
            : { [resource.parent.field]: chance.pick(parents) })
        }))
      )
      ids.push(...made)
      counts.made += made.length
    } else if (what === "cancel" && ids.length > 0) {
      await put(resource, [{ id: chance.pick(ids), cancel: true }])
      counts.cancelled += 1
    } else if (what === "remove") {
      const [id] = ids.splice(chance.below(ids.length), 1)
      await control("/remove", { resource: resource.path, id })
      gone.add(id!)
      counts.removed += 1
    } else if (what === "remake") {
      const id = chance.pick([...gone])
      const { lastchangedate: _stamp, entrydate: _entry, lines: _lines, ...values } = template
      await put(resource, [{ ...values, ...drawn(resource), id }])
      gone.delete(id)
      ids.push(id)
      counts.remade += 1
    }
  }

  /** One write at a time for all callers. */
  let line = Promise.resolve()
  return {
    company,
    removed,
    childOnlyChanges,
    counts,
    write: () => (line = line.then(writeOnce))
  }
}
