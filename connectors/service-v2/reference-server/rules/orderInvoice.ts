/**
 * POST /orders/{id}/invoice (J-03) and, in the other reading, POST /shipments/{id}/invoice (J-02).
 *
 * Promise: a quantity is billed once: shipped and unbilled quantities become lines of one draft invoice, and the
 * shipments point to it. Hours of a service order become lines of the order first. An order with nothing but a deposit
 * is billed for the deposit, once.
 */
import { ApiError, unknownName } from "../ApiError.ts"
import { format, units } from "../decimal.ts"
import { isObject } from "../json.ts"
import type { Version } from "../store/Table.ts"
import { readValue } from "./body.ts"
import type { Context, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { insertInvoice, insertInvoiceLine, refreshInvoice } from "./invoices.ts"
import { refuseClosed } from "./ledger.ts"
import { linesOf, refreshOrder } from "./orderState.ts"
import { active, change, current, violation } from "./records.ts"
import { billHours, hoursOf } from "./serviceordertimes.ts"

const readInvoiceDate = (body: unknown): string | null => {
  if (body === undefined || body === null) return null
  if (!isObject(body)) throw new ApiError("invalid_request", "the body must be a JSON object")
  const unknown = Object.keys(body).find((name) => name !== "invoicedate")
  if (unknown !== undefined) throw unknownName("field", unknown, "invoicedate")
  const input = body["invoicedate"]
  if (input === undefined || input === null) return null
  const read = readValue({ type: { _tag: "date" }, values: null }, input)
  if (!read.ok) throw new ApiError(read.code, `invoicedate ${read.message}`, { field: "invoicedate" })
  return read.value as string
}

/** The amount of the order's deposits that may still be billed: at most the order's total less its other invoices. */
const depositToBill = (context: Context, order: Version) => {
  const deposits = active(context, "orderdeposits", "orderid", order.id).filter(
    ({ values }) => (values["_invoiceid"] ?? null) === null
  )
  let open = units(order.values["ordertotal"], 4)
  for (const invoice of active(context, "invoices", "orderid", order.id))
    open -= units(invoice.values["invoicetotal"], 4)
  let amount = 0n
  for (const { values } of deposits) amount += units(values["amount"], 4)
  return { deposits, amount: amount < open ? amount : open }
}

/** A quantity of an order line that has shipped and is not billed. */
interface Billable {
  readonly line: Version
  readonly quantity: bigint
}

const unbilled = ({ values }: Version): bigint => units(values["qtyship"], 6) - units(values["qtybilled"], 6)

const refuseInvoicing = (context: Context, order: Version, invoicedate: string) => {
  if (order.values["status"] === "quote") throw new ApiError("cannot_invoice_quote", `order ${order.id} is a quote`)
  if (order.cancelled) throw violation(`order ${order.id} is cancelled`)
  refuseClosed(context, invoicedate, "invoicedate")
}

/** A draft of an order, without lines. */
const draftOf = (context: Context, order: Version, invoicedate: string): Version =>
  insertInvoice(context, {
    customerid: order.values["customerid"] ?? null,
    orderid: order.id,
    inventorylocationid: order.values["inventorylocationid"] ?? null,
    invoicedate
  })

const billLines = (context: Context, invoice: Version, billables: ReadonlyArray<Billable>) => {
  for (const [index, { line, quantity }] of billables.entries()) {
    const hours = hoursOf(context, line)
    insertInvoiceLine(context, invoice, index + 1, {
      itemid: line.values["itemid"] ?? null,
      description: line.values["description"] ?? null,
      qty: format(quantity, 6),
      priceach: line.values["priceach"] ?? "0.000000",
      arorderdetailid: line.id,
      arserviceorder_timeid: hours?.id ?? null,
      worktypeid: hours?.values["worktypeid"] ?? null,
      linedate: hours?.values["date"] ?? null
    })
    change(context, line, { qtybilled: format(units(line.values["qtybilled"], 6) + quantity, 6) })
  }
}

export const invoiceOrder = (context: Context, order: Version, body: unknown): Written => {
  const invoicedate = readInvoiceDate(body) ?? today(context)
  refuseInvoicing(context, order, invoicedate)
  billHours(context, order)
  const shipped = linesOf(context, order.id).flatMap((line) => {
    const quantity = unbilled(line)
    return quantity > 0n ? [{ line, quantity }] : []
  })
  const deposit = depositToBill(context, order)
  if (shipped.length === 0 && deposit.amount <= 0n) {
    throw new ApiError("nothing_to_invoice", `order ${order.id} has nothing shipped and unbilled, and no deposit`)
  }
  const invoice = draftOf(context, order, invoicedate)
  billLines(context, invoice, shipped)
  if (shipped.length === 0) {
    insertInvoiceLine(context, invoice, 1, {
      description: "Deposit",
      qty: "1.000000",
      priceach: format(deposit.amount * 100n, 6)
    })
    for (const version of deposit.deposits) change(context, version, { _invoiceid: invoice.id })
  }
  for (const shipment of active(context, "shipments", "orderid", order.id)) {
    if (shipped.length > 0 && (shipment.values["invoiceid"] ?? null) === null) {
      change(context, shipment, { invoiceid: invoice.id })
    }
  }
  const version = refreshInvoice(context, invoice.id)
  refreshOrder(context, order.id)
  return { version, status: 201 }
}

/** POST /shipments/{id}/invoice as designed (J-02): bills the unbilled quantities of this shipment. */
export const invoiceShipment = (context: Context, shipment: Version, body: unknown): Written => {
  const invoicedate = readInvoiceDate(body) ?? today(context)
  if (shipment.cancelled || (shipment.values["invoiceid"] ?? null) !== null) {
    const why = shipment.cancelled ? "is cancelled" : `is on invoice ${String(shipment.values["invoice"])}`
    throw new ApiError("shipment_already_invoiced", `shipment ${shipment.id} ${why}`)
  }
  const order = current(context, "orders", shipment.values["orderid"])
  refuseInvoicing(context, order, invoicedate)
  const quantities = new Map<number, bigint>()
  for (const { values } of active(context, "shipmentlines", "shipmentid", shipment.id)) {
    const lineId = Number(values["orderlineid"])
    quantities.set(lineId, (quantities.get(lineId) ?? 0n) + units(values["quantity"], 6))
  }
  const billables = [...quantities].flatMap(([lineId, shipped]): ReadonlyArray<Billable> => {
    const line = current(context, "orderlines", lineId)
    const open = unbilled(line)
    const quantity = shipped < open ? shipped : open
    return quantity > 0n ? [{ line, quantity }] : []
  })
  if (billables.length === 0) {
    throw new ApiError("nothing_to_invoice", `shipment ${shipment.id} has nothing shipped and unbilled`)
  }
  const invoice = draftOf(context, order, invoicedate)
  billLines(context, invoice, billables)
  change(context, shipment, { invoiceid: invoice.id })
  const version = refreshInvoice(context, invoice.id)
  refreshOrder(context, order.id)
  return { version, status: 201 }
}
