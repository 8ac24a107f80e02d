/** The invariants of the server's records, after any requests. */
import { lineTotal, units } from "../../connectors/service-v2/reference-server/decimal.ts"
import { Raw } from "../../connectors/service-v2/reference-server/json.ts"
import type { Store } from "../../connectors/service-v2/reference-server/store/Store.ts"
import type { Table, Version } from "../../connectors/service-v2/reference-server/store/Table.ts"

/** Every table that has been used. */
export const tablesOf = (store: Store): ReadonlyArray<Table> => {
  const tables = new Set<Table>()
  for (const company of [0, ...store.companies()]) {
    for (const path of store.catalogue.resources.keys()) tables.add(store.table(company, path))
  }
  return [...tables]
}

/** The current records as one text: equal texts mean equal stores. */
export const stateOf = (store: Store): string =>
  tablesOf(store)
    .flatMap((table) => [...table.all()].map(({ id, seq }) => `${table.company}/${table.resource.path}/${id}:${seq}`))
    .join("\n")

const sum = (versions: Iterable<Version>, field: string, scale: number): bigint => {
  let total = 0n
  for (const version of versions) total += units(version.values[field], scale)
  return total
}

type Complain = (place: string, problem: string) => void

const checkTable = (table: Table, complain: Complain) => {
  const { resource } = table
  const at = (id: number) => `company ${table.company} ${resource.path} ${id}`
  const all = [...table.all()]
  if (all.length !== table.size) complain(resource.path, `order has ${all.length} of ${table.size} records`)
  for (const [index, id] of table.order.entries()) {
    if (index > 0 && table.order[index - 1]! >= id) complain(at(id), "the order of ids is broken")
  }
  const living = table.changes.filter((version) => table.isCurrent(version))
  const stamped = all.filter(({ stamp }) => stamp !== null)
  if (living.length !== stamped.length) {
    complain(resource.path, `the order of changes has ${living.length} of ${stamped.length} records`)
  }
  for (const [index, version] of table.changes.entries()) {
    const before = table.changes[index - 1]
    if (before === undefined) continue
    const isOrdered = before.stamp! < version.stamp! || (before.stamp === version.stamp && before.id <= version.id)
    if (!isOrdered) complain(at(version.id), "the order of changes is broken")
  }
  for (const version of all) {
    if (version.values["id"] !== version.id) complain(at(version.id), "the id is not its own")
    if (version.cancelled !== (version.values["cancel"] === true)) complain(at(version.id), "cancelled disagrees")
  }
}

/** Checks that indexes return what a scan finds, and that codes are those of the referenced records. */
const checkLookups = (store: Store, table: Table, complain: Complain) => {
  const { resource, company } = table
  const fields = new Set([
    ...resource.filters.filter(({ match }) => match === "exact").map(({ field }) => field),
    ...(resource.field.has("externalid") ? ["externalid"] : [])
  ])
  for (const field of fields) {
    if (resource.key?.field === field && !resource.key.caseSensitive) continue
    const idsByValue = new Map<string | number | boolean, Array<number>>()
    for (const { id, values } of table.all()) {
      const value = values[field]
      if (value === null || value === undefined || value instanceof Raw) continue
      idsByValue.set(value, [...(idsByValue.get(value) ?? []), id])
    }
    for (const [value, ids] of idsByValue) {
      const answered = table.where(field, value).map(({ id }) => id)
      if (answered.join() !== ids.join()) {
        complain(resource.path, `the index of ${field} has ${answered.join()} for ${String(value)}, not ${ids.join()}`)
      }
    }
  }
  if (company === 0) return
  for (const { name, reference } of resource.fields) {
    if (reference === null || reference.by === null || reference.pairedWith === null) continue
    for (const { id, values } of table.all()) {
      const target = values[reference.pairedWith]
      if (typeof target !== "number") continue
      const named = store.table(company, reference.resource).get(target)
      const code = named?.values[reference.by] ?? null
      if ((values[name] ?? null) !== code) {
        complain(`${resource.path} ${id}`, `${name} is ${String(values[name])}, the record named has ${String(code)}`)
      }
    }
  }
}

const checkDocuments = (store: Store, company: number, complain: Complain) => {
  const table = (path: string) => store.table(company, path)
  const active = (path: string, field: string, id: number) =>
    table(path)
      .where(field, id)
      .filter((v) => !v.cancelled)
  for (const invoice of table("invoices").all()) {
    const place = `company ${company} invoices ${invoice.id}`
    const lines = table("invoicelines").where("invoiceid", invoice.id)
    const total = units(invoice.values["invoicetotal"], 4)
    const paid = units(invoice.values["invoicepaid"], 4)
    if (total !== sum(lines, "totalprice", 4)) complain(place, "invoicetotal is not the sum of the lines")
    if (paid !== sum(active("payments", "invoiceid", invoice.id), "amount", 4)) {
      complain(place, "invoicepaid is not the sum of the payments")
    }
    const embedded = invoice.values["lines"]
    const shown = embedded instanceof Raw ? (JSON.parse(embedded.text) as ReadonlyArray<{ id: number }>) : []
    if (
      shown
        .map(({ id }) => id)
        .toSorted((a, b) => a - b)
        .join() !== lines.map(({ id }) => id).join()
    ) {
      complain(place, "lines does not show the existing lines")
    }
    if (invoice.cancelled && active("payments", "invoiceid", invoice.id).length > 0)
      complain(place, "cancelled and paid")
    for (const line of lines) {
      const expected = lineTotal(units(line.values["qty"], 6), units(line.values["priceach"], 6))
      if (units(line.values["totalprice"], 4) !== expected) complain(`${place} line ${line.id}`, "totalprice is wrong")
    }
  }
  for (const order of table("orders").all()) {
    const place = `company ${company} orders ${order.id}`
    const lines = table("orderlines").where("orderid", order.id)
    let total = 0n
    for (const { values } of lines) total += lineTotal(units(values["qtyorder"], 6), units(values["priceach"], 6))
    if (units(order.values["ordertotal"], 4) !== total) complain(place, "ordertotal is not the sum of the lines")
    for (const line of lines) {
      const ordered = units(line.values["qtyorder"], 6)
      const shipped = units(line.values["qtyship"], 6)
      // Hours count as shipped without a shipment.
      const isGoods = order.values["ordertype"] !== "service"
      if (isGoods && shipped !== sum(active("shipmentlines", "orderlineid", line.id), "quantity", 6)) {
        complain(`${place} line ${line.id}`, "qtyship is not the sum of the shipment lines")
      }
      if (shipped > 0n && shipped > ordered) complain(`${place} line ${line.id}`, "more shipped than ordered")
      if (units(line.values["qtybilled"], 6) > shipped && shipped > 0n) {
        complain(`${place} line ${line.id}`, "more billed than shipped")
      }
    }
  }
  for (const bill of table("apbills").all()) {
    const place = `company ${company} apbills ${bill.id}`
    const coded = sum(table("apbilllines").where("apbillid", bill.id), "amount", 4)
    const { distributed } = bill.values
    if (typeof distributed === "string" && units(distributed, 4) !== coded)
      complain(place, "distributed is not the sum")
  }
  for (const set of table("gltransactions").all()) {
    const lines = set.values["lines"]
    if (!(lines instanceof Raw)) continue
    let total = 0n
    for (const { amount } of JSON.parse(lines.text) as ReadonlyArray<{ amount: string }>) total += units(amount, 4)
    if (total !== 0n) complain(`company ${company} gltransactions ${set.id}`, "the set does not balance")
  }
}

/** Checks human keys that must be unique. */
const checkKeys = (table: Table, complain: Complain) => {
  const { key, path } = table.resource
  if (key === null || !key.unique) return
  const seen = new Map<string, number>()
  for (const { id, values } of table.all()) {
    const value = values[key.field]
    if (typeof value !== "string") continue
    const folded = key.caseSensitive ? value : value.normalize("NFC").toLowerCase()
    const other = seen.get(folded)
    if (other !== undefined) complain(`${path} ${id}`, `${key.field} ${value} also belongs to ${other}`)
    seen.set(folded, id)
  }
}

/** Checks that the history ends in the current state. */
const checkHistory = (store: Store, complain: Complain) => {
  const last = new Map<string, Version | null>()
  let seq = 0
  for (const change of store.history) {
    if (change.seq <= seq) complain(`seq ${change.seq}`, "the history is out of order")
    seq = change.seq
    const { table, id } = change.version
    last.set(`${table.company}/${table.resource.path}/${id}`, change.op === "delete" ? null : change.version)
  }
  let present = 0
  for (const table of tablesOf(store)) {
    for (const version of table.all()) {
      present++
      if (last.get(`${table.company}/${table.resource.path}/${version.id}`) !== version) {
        complain(`${table.resource.path} ${version.id}`, "the current version is not the last of the history")
      }
    }
  }
  const living = [...last.values()].filter((version) => version !== null).length
  if (living !== present) complain("history", `leaves ${living} records, the store has ${present}`)
}

/** All violations of the invariants. */
export const broken = (store: Store): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const complain: Complain = (place, problem) => {
    if (problems.length < 50) problems.push(`${place}: ${problem}`)
  }
  for (const table of tablesOf(store)) {
    checkTable(table, complain)
    checkLookups(store, table, complain)
    checkKeys(table, complain)
  }
  for (const company of store.companies()) checkDocuments(store, company, complain)
  checkHistory(store, complain)
  return problems
}
