/**
 * Stock of an item by location (J-10, K-03).
 *
 * Promise: stock follows from documents only. On hand is the received quantity, less the shipped one, plus transfers
 * in, less transfers out, corrected by counts. Committed is the quantity of open orders that has not shipped yet.
 * Receipts and transfers name no location: they count at the company's first one.
 */
import { format, units } from "../decimal.ts"
import { Raw } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Context, Rules } from "./Rules.ts"
import { defaultLocation } from "./orderState.ts"
import { active } from "./records.ts"

/** The field of a count that stores the difference of each item. */
export const adjustmentsField = "_adjustments"

const received = (context: Context, itemId: number): bigint => {
  let sum = 0n
  for (const { values } of context.store.table(context.company, "purchaseorderlines").where("itemid", itemId)) {
    sum += units(values["qtyreceived"], 6)
  }
  return sum
}

const transferred = (context: Context, itemId: number): bigint => {
  let sum = 0n
  for (const { values } of active(context, "inventorytransfers", "itemid", itemId)) {
    const quantity = units(values["qty"], 6)
    if (values["gencompanyidto"] === context.company) sum += quantity
    if (values["gencompanyidfrom"] === context.company) sum -= quantity
  }
  return sum
}

const shipped = (context: Context, itemId: number, location: number): bigint => {
  let sum = 0n
  const { store, company } = context
  for (const line of store.table(company, "orderlines").where("itemid", itemId)) {
    for (const { values } of active(context, "shipmentlines", "orderlineid", line.id)) {
      const shipmentId = values["shipmentid"]
      const shipment = typeof shipmentId === "number" ? store.table(company, "shipments").get(shipmentId) : undefined
      if (shipment?.values["locationid"] === location) sum += units(values["quantity"], 6)
    }
  }
  return sum
}

const corrected = (context: Context, itemId: number, location: number): bigint => {
  let sum = 0n
  for (const { values } of active(context, "inventorycounts", "inventorylocationid", location)) {
    const adjustments = values[adjustmentsField]
    if (!(adjustments instanceof Raw)) continue
    sum += BigInt((JSON.parse(adjustments.text) as Record<string, string>)[itemId] ?? "0")
  }
  return sum
}

export const onHand = (context: Context, itemId: number, location: number): bigint => {
  const isFirst = location === defaultLocation(context)
  const arrived = isFirst ? received(context, itemId) + transferred(context, itemId) : 0n
  return arrived + corrected(context, itemId, location) - shipped(context, itemId, location)
}

/** Orders commit stock from status open on (STATE-03). */
const committing: ReadonlySet<unknown> = new Set(["open", "partial"])

const committed = (context: Context, itemId: number, location: number): bigint => {
  let sum = 0n
  const { store, company } = context
  for (const { cancelled, values } of store.table(company, "orderlines").where("itemid", itemId)) {
    const orderId = values["orderid"]
    const order = typeof orderId === "number" ? store.table(company, "orders").get(orderId) : undefined
    if (cancelled || order === undefined || order.cancelled || !committing.has(order.values["status"])) continue
    if ((order.values["inventorylocationid"] ?? null) !== location) continue
    const left = units(values["qtyorder"], 6) - units(values["qtyship"], 6)
    if (left > 0n) sum += left
  }
  return sum
}

const stockOf = (context: Context, item: Version) =>
  [...context.store.table(context.company, "inventorylocations").all()]
    .filter(({ cancelled }) => !cancelled)
    .map(({ id, values }) => {
      const onhand = onHand(context, item.id, id)
      const bound = committed(context, item.id, id)
      return {
        inventorylocationid: id,
        inventorylocation: values["locationcode"] ?? null,
        onhand: format(onhand, 6),
        committed: format(bound, 6),
        available: format(onhand - bound, 6)
      }
    })

/** GET /items/{id}/stock. */
export const itemStock: NonNullable<Rules["specials"]>[string] = {
  run: (context, item) => ({
    kind: "object",
    text: JSON.stringify({ itemid: item.id, locations: stockOf(context, item) })
  })
}
