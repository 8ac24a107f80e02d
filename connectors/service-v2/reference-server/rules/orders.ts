/**
 * Orders and their lines.
 *
 * Promise: an order that has shipped keeps its lines, and an invoiced one keeps the header fields that the invoice
 * uses. A user moves an order from quote or unconfirmed to open; all else follows from lines (orderState.ts).
 */
import { ApiError } from "../ApiError.ts"
import { units } from "../decimal.ts"
import { isObject } from "../json.ts"
import type { Value } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { invoiceOrder } from "./orderInvoice.ts"
import { defaultLocation, linesOf, refreshOrder } from "./orderState.ts"
import { active, change, current, insert, violation } from "./records.ts"
import { insertHours } from "./serviceordertimes.ts"
import { shipOrder } from "./shipments.ts"

/** The values of a line that default to those of its item. */
const lineValues = (context: Context, input: Readonly<Record<string, Value>>): Record<string, Value> => {
  const { itemid } = input
  const item = typeof itemid === "number" ? current(context, "items", itemid) : null
  return {
    ...input,
    description: input["description"] ?? item?.values["description"] ?? null,
    priceach: input["priceach"] ?? item?.values["price"] ?? "0.000000",
    qtyship: "0.000000",
    qtybilled: "0.000000"
  }
}

const refuseQuantity = (quantity: Value | undefined, field: string) => {
  if (units(quantity, 6) <= 0n) throw violation(`${field} must be more than zero`, field)
}

const insertLine = (context: Context, orderId: number, linenumber: number, input: Record<string, Value>, at = "") => {
  refuseQuantity(input["qtyorder"], `${at}qtyorder`)
  return insert(context, "orderlines", { ...lineValues(context, input), orderid: orderId, linenumber })
}

const refuseForeignShipto = (context: Context, customerId: Value | undefined, shiptoId: Value | undefined) => {
  if (typeof shiptoId !== "number") return
  if (current(context, "shiptos", shiptoId).values["customerid"] !== customerId) {
    throw new ApiError("shipto_mismatch", `ship-to ${shiptoId} belongs to a different customer`, { field: "shiptoid" })
  }
}

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  const status = patch["status"] ?? "open"
  if (status === "partial" || status === "billed") {
    throw violation(`an order begins as quote, unconfirmed or open, not as ${status}`, "status")
  }
  refuseForeignShipto(context, patch["customerid"], patch["shiptoid"])
  const order = insert(
    context,
    "orders",
    {
      ...patch,
      status,
      ordertype: patch["ordertype"] ?? "fulfillment",
      orderdate: patch["orderdate"] ?? today(context),
      inventorylocationid: patch["inventorylocationid"] ?? defaultLocation(context),
      ordertotal: "0.0000"
    },
    body
  )
  const lines = body.lines["lines"] ?? []
  for (const [index, line] of lines.entries()) {
    insertLine(context, order.id, index + 1, { ...line.values }, `lines[${index}].`)
  }
  refreshOrder(context, order.id)
  for (const [index, { values }] of (body.lines["hours"] ?? []).entries()) {
    insertHours(context, current(context, "orders", order.id), values, `hours[${index}].`)
  }
  for (const [index, shipment] of (body.lines["shipments"] ?? []).entries()) {
    shipNested(context, order.id, shipment, `shipments[${index}].`)
  }
  return { version: current(context, "orders", order.id) }
}

/** Writes a shipment inside its order. It names the order's lines by their position, because they have no ids yet. */
const shipNested = (context: Context, orderId: number, { values, lines }: Body, at: string) => {
  const orderLines = linesOf(context, orderId)
  const shipped = (lines["lines"] ?? []).map(({ values: { linenumber, quantity } }, index) => {
    const line = orderLines.find((one) => one.values["linenumber"] === linenumber)
    if (line !== undefined) return { orderlineid: line.id, quantity: quantity ?? null }
    const field = `${at}lines[${index}].linenumber`
    throw new ApiError("unknown_value", `the order has no line ${String(linenumber)}`, { field })
  })
  shipOrder(context, current(context, "orders", orderId), values, shipped, at)
}

/** Nested shipments are shipments: the token needs the scope to write them (C-12). */
const scopesOf = (input: unknown): ReadonlyArray<string> =>
  isObject(input) && input["shipments"] !== undefined && input["shipments"] !== null ? ["shipments:write"] : []

/** The header fields that an invoice takes from its order (K-04). */
const billedHeader = ["customerid", "shiptoid", "ordertype"]

const update = (context: Context, order: Version, body: Body): Written => {
  const patch = patchOf(order.table.resource, "update", body)
  const before = order.values
  const differs = (field: string) => field in patch && patch[field] !== (before[field] ?? null)
  if (order.cancelled) throw violation(`order ${order.id} is cancelled`)
  if (billedHeader.some(differs) && active(context, "invoices", "orderid", order.id).length > 0) {
    throw new ApiError("order_already_billed", `an invoice refers to the header of order ${order.id}`, {
      field: billedHeader.find(differs)
    })
  }
  if (
    differs("status") &&
    !(patch["status"] === "open" && ["quote", "unconfirmed"].includes(String(before["status"])))
  ) {
    throw violation(`status cannot be moved from ${String(before["status"])} to ${String(patch["status"])}`, "status")
  }
  if (differs("ordertype") && active(context, "serviceordertimes", "orderid", order.id).length > 0) {
    throw violation(`order ${order.id} has hours, which only a service order can have`, "ordertype")
  }
  if ("customerid" in patch && patch["customerid"] === null) throw violation("an order needs a customer", "customerid")
  refuseForeignShipto(context, patch["customerid"] ?? before["customerid"], patch["shiptoid"] ?? before["shiptoid"])
  return { version: change(context, order, patch, body) }
}

const cancel = (context: Context, order: Version): Written => {
  for (const path of ["shipments", "invoices", "orderdeposits"]) {
    const [first] = active(context, path, "orderid", order.id)
    if (first !== undefined) {
      throw new ApiError("cannot_cancel", `order ${order.id} has ${path} ${first.id}, which is not cancelled`)
    }
  }
  return { version: change(context, order, { cancel: true }) }
}

export const orders: Rules = {
  scopesOf,
  create,
  update,
  cancel,
  specials: { invoice: { run: invoiceOrder } }
}

const createLine = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  const order = current(context, "orders", patch["orderid"])
  const lines = linesOf(context, order.id)
  if (lines.some((line) => units(line.values["qtyship"], 6) > 0n)) {
    throw new ApiError("line_has_shipped", `order ${order.id} has shipped: no line can be added`)
  }
  if (order.cancelled) throw violation(`order ${order.id} is cancelled`, "orderid")
  if (order.values["status"] === "billed") throw violation(`order ${order.id} is billed`, "orderid")
  const line = insertLine(context, order.id, Number(lines.at(-1)?.values["linenumber"] ?? 0) + 1, patch)
  refreshOrder(context, order.id)
  return { version: line }
}

const updateLine = (context: Context, line: Version, body: Body): Written => {
  const patch = patchOf(line.table.resource, "update", body)
  const order = current(context, "orders", line.values["orderid"])
  if ("qtyorder" in patch) {
    if (units(patch["qtyorder"], 6) < units(line.values["qtyship"], 6)) {
      throw new ApiError("line_has_shipped", `${String(line.values["qtyship"])} of the line have shipped`, {
        field: "qtyorder"
      })
    }
    refuseQuantity(patch["qtyorder"], "qtyorder")
  }
  if (order.cancelled) throw violation(`order ${order.id} is cancelled`)
  if ("priceach" in patch && units(line.values["qtybilled"], 6) > 0n) {
    throw violation("the line is billed: its price stays", "priceach")
  }
  const after = change(context, line, patch, body)
  if (after !== line) refreshOrder(context, order.id)
  return { version: after }
}

const removeLine = (context: Context, line: Version): Written => {
  const order = current(context, "orders", line.values["orderid"])
  if (units(line.values["qtyship"], 6) > 0n) {
    throw new ApiError("line_has_shipped", `${String(line.values["qtyship"])} of the line have shipped`)
  }
  if (units(line.values["qtybilled"], 6) > 0n) throw new ApiError("cannot_cancel", "the line is billed")
  context.store.remove(line.table, line.id)
  for (const [index, sibling] of linesOf(context, order.id).entries())
    change(context, sibling, { linenumber: index + 1 })
  refreshOrder(context, order.id)
  return { version: line }
}

export const orderlines: Rules = {
  create: createLine,
  update: updateLine,
  cancel: removeLine,
  followUp: (context, line) => {
    if (typeof line.values["orderid"] === "number") refreshOrder(context, line.values["orderid"])
  }
}
