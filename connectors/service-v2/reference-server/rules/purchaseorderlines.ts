/**
 * Lines of purchase orders.
 *
 * Promise: received quantities stay ordered: an order with receipts accepts no further line, and a line with receipts
 * is neither cancelled nor reduced below them. Nothing changes on a complete order.
 */
import { ApiError } from "../ApiError.ts"
import { units } from "../decimal.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { insertPurchaseLine, purchaseLinesOf, refreshPurchaseOrder, refuseComplete } from "./purchaseorders.ts"
import { active, change, current, violation } from "./records.ts"

const received = ({ values }: Version): bigint => units(values["qtyreceived"], 6)

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const { purchaseorderid, ...input } = patchOf(resource, "create", body)
  const order = current(context, "purchaseorders", purchaseorderid)
  refuseComplete(order, "purchaseorderid")
  if (active(context, "purchaseorderreceipts", "purchaseorderid", order.id).length > 0) {
    throw new ApiError("line_has_receipts", `purchase order ${order.id} has receipts: no line can be added`, {
      field: "purchaseorderid"
    })
  }
  if (order.cancelled) throw violation(`purchase order ${order.id} is cancelled`, "purchaseorderid")
  const next = Number(purchaseLinesOf(context, order.id).at(-1)?.values["linenumber"] ?? 0) + 1
  const line = insertPurchaseLine(context, order.id, next, input, "", body)
  refreshPurchaseOrder(context, order.id)
  return { version: line }
}

const update = (context: Context, line: Version, body: Body): Written => {
  const patch = patchOf(line.table.resource, "update", body)
  const order = current(context, "purchaseorders", line.values["purchaseorderid"])
  refuseComplete(order)
  if ("qtyorder" in patch) {
    if (units(patch["qtyorder"], 6) < received(line)) {
      throw new ApiError("line_has_receipts", `${String(line.values["qtyreceived"])} of the line were received`, {
        field: "qtyorder"
      })
    }
    if (units(patch["qtyorder"], 6) <= 0n) throw violation("qtyorder must be more than zero", "qtyorder")
  }
  if (line.cancelled || order.cancelled) throw violation(`purchase order line ${line.id} is cancelled`)
  const after = change(context, line, patch, body)
  if (after !== line) refreshPurchaseOrder(context, order.id)
  return { version: after }
}

const cancel = (context: Context, line: Version): Written => {
  const order = current(context, "purchaseorders", line.values["purchaseorderid"])
  refuseComplete(order)
  if (received(line) > 0n) {
    throw new ApiError("line_has_receipts", `${String(line.values["qtyreceived"])} of the line were received`)
  }
  const cancelled = change(context, line, { cancel: true })
  refreshPurchaseOrder(context, order.id)
  return { version: cancelled }
}

export const purchaseorderlines: Rules = {
  create,
  update,
  cancel,
  followUp: (context, line) => {
    if (typeof line.values["purchaseorderid"] === "number")
      refreshPurchaseOrder(context, line.values["purchaseorderid"])
  }
}
