/**
 * Transfers of stock between companies.
 *
 * Promise: a transfer is one record that both companies see, with the same id and content.
 */
import { ApiError } from "../ApiError.ts"
import { units } from "../decimal.ts"
import type { Value } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { insert, violation } from "./records.ts"

const ends = ["gencompanyidfrom", "gencompanyidto"] as const

/** Copies the current record to the other company. */
const mirror = ({ store, company }: Context, transfer: Version) => {
  const { id: _, lastchangedate: _stamp, entrydate: _entered, ...values } = transfer.values
  for (const other of new Set(ends.map((name) => transfer.values[name]))) {
    if (typeof other !== "number" || other === company) continue
    store.put(store.table(other, transfer.table.resource.path), transfer.id, { values })
  }
}

const refuseStranger = ({ store, company }: Context, values: Readonly<Record<string, Value>>) => {
  const companies = store.companies()
  for (const name of ends) {
    const value = values[name]
    if (typeof value === "number" && companies.includes(value)) continue
    throw new ApiError("unknown_value", `${name} ${String(value)} is no company of this install`, { field: name })
  }
  if (!ends.some((name) => values[name] === company)) {
    throw violation("a transfer leaves or enters the token's own company", ends[0])
  }
}

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  refuseStranger(context, patch)
  if (units(patch["qty"], 6) <= 0n) throw violation("qty must be more than zero", "qty")
  const transferdate = patch["transferdate"] ?? today(context)
  const transfer = insert(context, "inventorytransfers", { ...patch, transferdate }, body)
  mirror(context, transfer)
  return { version: transfer }
}

export const inventorytransfers: Rules = { create, followUp: mirror }
