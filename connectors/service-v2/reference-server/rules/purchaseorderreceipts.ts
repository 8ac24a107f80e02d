/**
 * Receipts against purchase orders.
 *
 * Promise: the received quantity of a line, over all receipts, never exceeds the ordered one.
 */
import { ApiError } from "../ApiError.ts"
import { format, units } from "../decimal.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { embedLines } from "./lines.ts"
import { refreshPurchaseOrder } from "./purchaseorders.ts"
import { change, current, insert, violation } from "./records.ts"

/** Receives one line. Repeated lines are summed against the open quantity, because each raises qtyreceived. */
const receive = (context: Context, order: Version, { values }: Body, at: string) => {
  const line = current(context, "purchaseorderlines", values["purchaseorderlineid"])
  if (line.values["purchaseorderid"] !== order.id) {
    const field = `${at}.purchaseorderlineid`
    throw new ApiError("unknown_value", `line ${line.id} is of another purchase order`, { field })
  }
  if (line.cancelled) throw violation(`line ${line.id} is cancelled`, `${at}.purchaseorderlineid`)
  const quantity = units(values["quantity"], 6)
  if (quantity <= 0n) throw violation("quantity must be more than zero", `${at}.quantity`)
  const before = units(line.values["qtyreceived"], 6)
  const left = units(line.values["qtyorder"], 6) - before
  if (quantity > left) throw violation(`only ${format(left, 6)} is left on line ${line.id}`, `${at}.quantity`)
  change(context, line, { qtyreceived: format(before + quantity, 6) })
}

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const { lines: _, ...patch } = patchOf(resource, "create", body)
  const order = current(context, "purchaseorders", patch["purchaseorderid"])
  if (order.cancelled) throw violation(`purchase order ${order.id} is cancelled`, "purchaseorderid")
  if (order.values["complete"] === true) throw violation(`purchase order ${order.id} is complete`, "purchaseorderid")
  const lines = body.lines["lines"] ?? []
  for (const [index, line] of lines.entries()) receive(context, order, line, `lines[${index}]`)
  refreshPurchaseOrder(context, order.id)
  const receiptdate = patch["receiptdate"] ?? today(context)
  const shown = embedLines(resource, lines)
  return { version: insert(context, "purchaseorderreceipts", { ...patch, receiptdate, lines: shown }, body) }
}

export const purchaseorderreceipts: Rules = { create }
