/**
 * Purchase orders.
 *
 * Promise: an order's total and lines always agree with its lines that are not cancelled. A complete order accepts only
 * the change that makes it incomplete again.
 */
import { ApiError } from "../ApiError.ts"
import { lineTotal, units } from "../decimal.ts"
import type { Value } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { byLineNumber, embedLines, money } from "./lines.ts"
import { active, change, current, insert, violation } from "./records.ts"

/** The lines of a purchase order that are not cancelled, in their order. */
export const purchaseLinesOf = (context: Context, orderId: number): ReadonlyArray<Version> =>
  byLineNumber(active(context, "purchaseorderlines", "purchaseorderid", orderId))

export const refuseComplete = ({ id, values }: Version, field?: string): void => {
  if (values["complete"] !== true) return
  throw new ApiError("po_complete", `purchase order ${id} is complete: set complete false first`, { field })
}

/** Writes a line; absent values come from the item. */
export const insertPurchaseLine = (
  context: Context,
  orderId: number,
  linenumber: number,
  input: Readonly<Record<string, Value>>,
  at = "",
  body: Body | null = null
): Version => {
  const { itemid } = input
  const item = typeof itemid === "number" ? current(context, "items", itemid) : null
  if (units(input["qtyorder"], 6) <= 0n) throw violation(`${at}qtyorder must be more than zero`, `${at}qtyorder`)
  return insert(
    context,
    "purchaseorderlines",
    {
      ...input,
      purchaseorderid: orderId,
      linenumber,
      description: input["description"] ?? item?.values["description"] ?? null,
      priceach: input["priceach"] ?? "0.000000",
      qtyreceived: "0.000000"
    },
    body
  )
}

/** Updates total and lines of an order from its lines. */
export const refreshPurchaseOrder = (context: Context, orderId: number): Version => {
  const order = current(context, "purchaseorders", orderId)
  const lines = purchaseLinesOf(context, orderId)
  let total = 0n
  for (const { values } of lines) total += lineTotal(units(values["qtyorder"], 6), units(values["priceach"], 6))
  return change(context, order, {
    ordertotal: money(total, "the order's total"),
    lines: embedLines(order.table.resource, lines)
  })
}

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  const orderdate = patch["orderdate"] ?? today(context)
  const order = insert(context, "purchaseorders", { ...patch, orderdate, ordertotal: "0.0000" }, body)
  for (const [index, { values }] of (body.lines["lines"] ?? []).entries()) {
    insertPurchaseLine(context, order.id, index + 1, values, `lines[${index}].`)
  }
  return { version: refreshPurchaseOrder(context, order.id) }
}

const update = (context: Context, order: Version, body: Body): Written => {
  const patch = patchOf(order.table.resource, "update", body)
  const isReopening = patch["complete"] === false && Object.keys(patch).length === 1 && body.custom === null
  if (!isReopening) refuseComplete(order)
  if (order.cancelled) throw violation(`purchase order ${order.id} is cancelled`)
  if ("vendorid" in patch && patch["vendorid"] === null) throw violation("an order needs a vendor", "vendorid")
  return { version: change(context, order, patch, body) }
}

const cancel = (context: Context, order: Version): Written => {
  const [receipt] = active(context, "purchaseorderreceipts", "purchaseorderid", order.id)
  if (receipt !== undefined) {
    throw new ApiError("cannot_cancel", `purchase order ${order.id} has the receipt ${receipt.id}`)
  }
  return { version: change(context, order, { cancel: true }) }
}

export const purchaseorders: Rules = { create, update, cancel }
