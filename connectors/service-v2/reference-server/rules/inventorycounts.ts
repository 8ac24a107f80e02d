/**
 * Counts of stock.
 *
 * Promise: from a count on, the quantity on hand of an item is the counted one. The record stores the difference from
 * the quantity before.
 */
import { units } from "../decimal.ts"
import { Raw } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { embedLines } from "./lines.ts"
import { insert, violation } from "./records.ts"
import { adjustmentsField, onHand } from "./stock.ts"

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const { lines: _, ...patch } = patchOf(resource, "create", body)
  const lines = body.lines["lines"] ?? []
  const location = Number(patch["inventorylocationid"])
  const counted = new Map<number, bigint>()
  for (const [index, { values }] of lines.entries()) {
    const quantity = units(values["counted"], 6)
    const field = `lines[${index}].counted`
    if (quantity < 0n) throw violation("counted must not be less than zero", field)
    const itemId = Number(values["itemid"])
    counted.set(itemId, (counted.get(itemId) ?? 0n) + quantity)
  }
  const adjustments = Object.fromEntries(
    [...counted].map(([itemId, quantity]) => [itemId, String(quantity - onHand(context, itemId, location))])
  )
  const count = insert(
    context,
    "inventorycounts",
    {
      ...patch,
      countdate: patch["countdate"] ?? today(context),
      status: patch["status"] ?? "counted",
      lines: embedLines(resource, lines),
      [adjustmentsField]: new Raw(JSON.stringify(adjustments))
    },
    body
  )
  return { version: count }
}

export const inventorycounts: Rules = { create }
