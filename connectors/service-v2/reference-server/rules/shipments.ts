/**
 * Shipments against an order (I-08..I-13).
 *
 * Promise: the shipped quantity of a line, over all shipments that are not cancelled, never exceeds the ordered one.
 * qtyship of a line is always the sum of its shipment lines, unless the line was made of hours (serviceordertimes.ts).
 */
import { ApiError } from "../ApiError.ts"
import { format, units } from "../decimal.ts"
import type { Value } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { isClosed } from "./ledger.ts"
import { refreshOrder } from "./orderState.ts"
import { active, change, current, insert, violation } from "./records.ts"
import { shipmentSpecials } from "./shipmentSpecials.ts"

/** Ships one line. Repeated lines in one shipment are summed against the open quantity, because each raises qtyship. */
const shipLine = (context: Context, order: Version, shipment: Version, values: Body["values"], at: string) => {
  const line = current(context, "orderlines", values["orderlineid"])
  if (line.values["orderid"] !== order.id) {
    throw new ApiError("unknown_value", `order line ${line.id} is of another order`, { field: `${at}.orderlineid` })
  }
  const quantity = units(values["quantity"], 6)
  if (quantity <= 0n) throw violation("quantity must be more than zero", `${at}.quantity`)
  const shipped = units(line.values["qtyship"], 6)
  const left = units(line.values["qtyorder"], 6) - shipped
  if (quantity > left) {
    throw new ApiError("shipqty_exceeds_remaining", `only ${format(left, 6)} is left on order line ${line.id}`, {
      field: `${at}.quantity`
    })
  }
  insert(context, "shipmentlines", { shipmentid: shipment.id, orderlineid: line.id, quantity: format(quantity, 6) })
  change(context, line, { qtyship: format(shipped + quantity, 6) })
}

/** Ships lines of an order, for a shipment sent alone or inside its order (RES-16). */
export const shipOrder = (
  context: Context,
  order: Version,
  patch: Readonly<Record<string, Value>>,
  lines: ReadonlyArray<Body["values"]>,
  at: string,
  body: Body | null = null
): Version => {
  const { status, inventorylocationid, shiptoid } = order.values
  if (status === "quote") {
    throw new ApiError("cannot_ship_quote", `order ${order.id} is a quote`, { field: "orderid" })
  }
  if (order.cancelled) throw violation(`order ${order.id} is cancelled`, "orderid")
  if (status === "unconfirmed") throw violation(`order ${order.id} is not confirmed`, "orderid")
  const shipment = insert(
    context,
    "shipments",
    {
      ...patch,
      orderid: order.id,
      shipdate: patch["shipdate"] ?? today(context),
      locationid: inventorylocationid ?? null,
      shiptoid: shiptoid ?? null
    },
    body
  )
  for (const [index, line] of lines.entries()) shipLine(context, order, shipment, line, `${at}lines[${index}]`)
  refreshOrder(context, order.id)
  return shipment
}

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  const order = current(context, "orders", patch["orderid"])
  const lines = body.lines["lines"]!.map(({ values }) => values)
  return { version: shipOrder(context, order, patch, lines, "", body) }
}

const isInvoiced = ({ values }: Version) => (values["invoiceid"] ?? null) !== null

const update = (context: Context, shipment: Version, body: Body): Written => {
  const patch = patchOf(shipment.table.resource, "update", body)
  if (shipment.cancelled) throw violation(`shipment ${shipment.id} is cancelled`)
  if (isInvoiced(shipment)) throw violation(`shipment ${shipment.id} is invoiced`)
  const { shipdate } = patch
  if (typeof shipdate === "string" && isClosed(context, shipdate)) {
    throw violation(`${shipdate} falls in a closed ledger period`, "shipdate")
  }
  if (shipdate === null) throw violation("a shipment needs its date", "shipdate")
  return { version: change(context, shipment, patch, body) }
}

const cancel = (context: Context, shipment: Version): Written => {
  if (isInvoiced(shipment)) {
    throw new ApiError(
      "shipment_already_invoiced",
      `shipment ${shipment.id} is on invoice ${String(shipment.values["invoice"])}`
    )
  }
  if (isClosed(context, String(shipment.values["shipdate"]))) {
    throw new ApiError("cannot_cancel", `shipment ${shipment.id} went out in a period that is closed`)
  }
  for (const shipped of active(context, "shipmentlines", "shipmentid", shipment.id)) {
    const line = current(context, "orderlines", shipped.values["orderlineid"])
    const left = units(line.values["qtyship"], 6) - units(shipped.values["quantity"], 6)
    change(context, line, { qtyship: format(left, 6) })
    change(context, shipped, { cancel: true })
  }
  const cancelled = change(context, shipment, { cancel: true })
  if (typeof shipment.values["orderid"] === "number") refreshOrder(context, shipment.values["orderid"])
  return { version: cancelled }
}

export const shipments: Rules = { create, update, cancel, specials: shipmentSpecials }
