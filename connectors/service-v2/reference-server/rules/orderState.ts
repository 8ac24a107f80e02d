/**
 * The parts of an order that follow from its lines.
 *
 * Promise: an order's total, lines and status always agree with its lines (K-02). open ⇄ partial ⇄ billed by shipping,
 * billing and cancelling; quote and unconfirmed stay until a user changes them.
 */
import { lineTotal, units } from "../decimal.ts"
import type { Value } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Context } from "./Rules.ts"
import { byLineNumber, embedLines, money } from "./lines.ts"
import { active, change, current } from "./records.ts"

export const linesOf = ({ store, company }: Context, orderId: number): ReadonlyArray<Version> =>
  byLineNumber(store.table(company, "orderlines").where("orderid", orderId))

/** The status that follows from the lines; before an order is open, it keeps its status. */
const statusOf = (context: Context, order: Version, lines: ReadonlyArray<Version>): Value => {
  const { status, ordertype } = order.values
  if (status === "quote" || status === "unconfirmed") return status
  const quantity = (line: Version, field: string) => units(line.values[field], 6)
  const isBilled = (line: Version) => quantity(line, "qtybilled") >= quantity(line, "qtyorder")
  if (lines.length > 0 && lines.every(isBilled)) return "billed"
  if (ordertype === "service" && active(context, "invoices", "orderid", order.id).length > 0) return "billed"
  const isBegun = (line: Version) => quantity(line, "qtyship") > 0n || quantity(line, "qtybilled") > 0n
  return lines.some(isBegun) ? "partial" : "open"
}

/** Updates total, lines and status of an order from its lines. */
export const refreshOrder = (context: Context, orderId: number): Version => {
  const order = current(context, "orders", orderId)
  const lines = linesOf(context, orderId)
  let total = 0n
  for (const { values } of lines) total += lineTotal(units(values["qtyorder"], 6), units(values["priceach"], 6))
  return change(context, order, {
    ordertotal: money(total, "the order's total"),
    lines: embedLines(order.table.resource, lines),
    status: statusOf(context, order, lines)
  })
}

/** The first location of the company. */
export const defaultLocation = ({ store, company }: Context): number | null => {
  for (const location of store.table(company, "inventorylocations").all()) if (!location.cancelled) return location.id
  return null
}
