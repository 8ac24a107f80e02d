/**
 * Invoices and their lines.
 *
 * Promise: an invoice's total is always the sum of its lines, and its paid amount the sum of its payments. A posted
 * invoice has a voucher and accepts no more lines; only a posted one can be paid.
 */
import { ApiError } from "../ApiError.ts"
import { format, lineTotal, rescale, units } from "../decimal.ts"
import type { Value } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { missing, patchOf, refuseContent } from "./body.ts"
import type { Context, Rules, Shown, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { invoicePdf } from "../documents/invoice.ts"
import { isClosed, makeVoucher, refuseClosed } from "./ledger.ts"
import { lineTax } from "./lineTax.ts"
import { byLineNumber, embedLines, money } from "./lines.ts"
import { defaultLocation, refreshOrder } from "./orderState.ts"
import { active, change, current, insert, nextNumber, violation } from "./records.ts"

export const isPosted = (invoice: Version): boolean => (invoice.values["voucherid"] ?? null) !== null

const linesOf = ({ store, company }: Context, invoiceId: number): ReadonlyArray<Version> =>
  byLineNumber(store.table(company, "invoicelines").where("invoiceid", invoiceId))

/** The unpaid amount of the invoice, in units of money. */
export const openBalance = ({ values }: Version): bigint =>
  units(values["invoicetotal"], 4) - units(values["invoicepaid"], 4)

/** Updates total, paid amount and lines of an invoice. */
export const refreshInvoice = (context: Context, invoiceId: number): Version => {
  const invoice = current(context, "invoices", invoiceId)
  const lines = linesOf(context, invoiceId)
  let total = 0n
  for (const { values } of lines) total += units(values["totalprice"], 4)
  return change(context, refreshPaid(context, invoice), {
    invoicetotal: money(total, "the invoice's total"),
    lines: embedLines(invoice.table.resource, lines)
  })
}

/** Updates the paid amount of an invoice from its payments. */
export const refreshPaid = (context: Context, invoice: Version): Version => {
  let paid = 0n
  for (const { values } of active(context, "payments", "invoiceid", invoice.id)) paid += units(values["amount"], 4)
  return change(context, invoice, { invoicepaid: format(paid, 4) })
}

export const insertInvoice = (
  context: Context,
  values: Readonly<Record<string, Value>>,
  body: Body | null = null
): Version =>
  insert(
    context,
    "invoices",
    {
      ...values,
      invoicenumber: values["invoicenumber"] ?? nextNumber(context, "invoices", ["invoices", "invoicenumber"], "INV"),
      invoicedate: values["invoicedate"] ?? today(context),
      inventorylocationid: values["inventorylocationid"] ?? defaultLocation(context),
      invoicetotal: "0.0000",
      invoicepaid: "0.0000"
    },
    body
  )

/** The default unit of a company. */
const defaultUnit = ({ store, company }: Context): number | null =>
  store.table(company, "qtyunits").where("unitname", "EA")[0]?.id ?? null

/** Writes a line; absent values come from the item and the invoice. */
export const insertInvoiceLine = (
  context: Context,
  invoice: Version,
  linenumber: number,
  input: Readonly<Record<string, Value>>,
  at = "",
  body: Body | null = null
): Version => {
  const { itemid } = input
  const item = typeof itemid === "number" ? current(context, "items", itemid) : null
  const description = input["description"] ?? item?.values["description"] ?? null
  if (item === null && description === null) throw missing(`${at}description`, "is required where there is no itemid")
  const quantity = units(input["qty"], 6)
  if (quantity === 0n) throw violation(`${at}quantity must not be zero`, `${at}quantity`)
  const total = lineTotal(quantity, units(input["priceach"], 6))
  const listPrice = item?.values["price"] ?? input["priceach"] ?? null
  const unit = defaultUnit(context)
  return insert(
    context,
    "invoicelines",
    {
      ...input,
      invoiceid: invoice.id,
      linenumber,
      description,
      totalprice: money(total, "the line's total"),
      extended_price: money(rescale(total, 4, 5), "the line's extended price", 5),
      orig_priceach: format(rescale(units(listPrice, 6), 6, 5), 5),
      price_override: listPrice === input["priceach"] ? 0 : 1,
      taxflag: input["taxflag"] ?? (item?.values["taxable"] === true ? 1 : 0),
      taxflag2: 0,
      taxflag3: 0,
      glaccountid: item?.values["glaccountid"] ?? null,
      qtyunitnameid: unit,
      priceunitnameid: unit,
      qtyunitperpriceunit: "1.000000",
      discount_amount: "0.00000",
      discount_percent: "0.00000",
      returnqty: "0.000000",
      linetype: 0,
      period: "",
      inventorylocationid: invoice.values["inventorylocationid"] ?? null
    },
    body
  )
}

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  if (typeof patch["orderid"] === "number") {
    const order = current(context, "orders", patch["orderid"])
    if (order.values["status"] === "quote") {
      throw new ApiError("cannot_invoice_quote", `order ${order.id} is a quote`, { field: "orderid" })
    }
    if (order.values["customerid"] !== patch["customerid"]) {
      throw violation(`order ${order.id} belongs to a different customer`, "orderid")
    }
  }
  const invoice = insertInvoice(context, patch, body)
  for (const [index, line] of (body.lines["lines"] ?? []).entries()) {
    insertInvoiceLine(context, invoice, index + 1, lineOf(line), `lines[${index}].`)
  }
  return { version: refreshInvoice(context, invoice.id) }
}

/** A line inside an invoice is written as by POST /invoicelines (RES-16). */
const lineOf = ({ values }: Body): Record<string, Value> => {
  const { quantity, price, taxable, ...rest } = values
  return {
    ...rest,
    qty: quantity ?? null,
    priceach: price ?? null,
    taxflag: typeof taxable === "boolean" ? Number(taxable) : null
  }
}

const update = (context: Context, invoice: Version, body: Body): Written => {
  const patch = patchOf(invoice.table.resource, "update", body)
  if (invoice.cancelled) throw violation(`invoice ${invoice.id} is cancelled`)
  for (const name of ["customerid", "invoicenumber", "invoicedate"]) {
    if (name in patch && patch[name] === null) throw violation(`an invoice needs its ${name}`, name)
  }
  const { values } = invoice
  const changed = Object.keys(patch).find((name) => name !== "externalid" && patch[name] !== (values[name] ?? null))
  if (changed !== undefined && isPosted(invoice)) {
    throw violation(`invoice ${invoice.id} is posted: only externalid can still change`, changed)
  }
  return { version: change(context, invoice, patch, body) }
}

const cancel = (context: Context, invoice: Version): Written => {
  const [payment] = active(context, "payments", "invoiceid", invoice.id)
  if (payment !== undefined) {
    throw new ApiError("cannot_cancel", `payment ${payment.id} is applied to invoice ${invoice.id}`)
  }
  if (isPosted(invoice) && isClosed(context, String(invoice.values["invoicedate"]))) {
    throw new ApiError("cannot_cancel", `invoice ${invoice.id} was posted into a period that is closed`)
  }
  const { orderid } = invoice.values
  if (typeof orderid === "number") unbill(context, invoice, orderid)
  const cancelled = change(context, invoice, { cancel: true })
  if (typeof orderid === "number") refreshOrder(context, orderid)
  return { version: cancelled }
}

/** Marks the quantities of the invoice as unbilled again. */
const unbill = (context: Context, invoice: Version, orderId: number) => {
  for (const { values } of linesOf(context, invoice.id)) {
    const lineId = values["arorderdetailid"]
    const line = typeof lineId === "number" ? context.store.table(context.company, "orderlines").get(lineId) : undefined
    if (line === undefined) continue
    const billed = units(line.values["qtybilled"], 6) - units(values["qty"], 6)
    change(context, line, { qtybilled: format(billed, 6) })
  }
  for (const shipment of active(context, "shipments", "orderid", orderId)) {
    if (shipment.values["invoiceid"] === invoice.id) change(context, shipment, { invoiceid: null })
  }
  for (const deposit of active(context, "orderdeposits", "orderid", orderId)) {
    if (deposit.values["_invoiceid"] === invoice.id) change(context, deposit, { _invoiceid: null })
  }
}

/** POST /invoices/{id}/post (J-07). */
const post = (context: Context, invoice: Version, body: unknown): Written => {
  refuseContent(body)
  if (isPosted(invoice)) throw new ApiError("invoice_already_posted", `invoice ${invoice.id} is posted already`)
  if (invoice.cancelled) throw violation(`invoice ${invoice.id} is cancelled`)
  const day = String(invoice.values["invoicedate"])
  refuseClosed(context, day, "invoicedate")
  return { version: change(context, invoice, { voucherid: makeVoucher(context, "AR", day).id }), status: 200 }
}

/** GET /invoices/{id}/pdf: a draft cannot be printed (J-11). */
const print = (context: Context, invoice: Version): Shown => {
  if (!isPosted(invoice)) throw new ApiError("not_posted", `invoice ${invoice.id} is a draft: post it first`)
  return {
    kind: "file",
    name: `invoice-${invoice.id}.pdf`,
    bytes: invoicePdf(context, invoice, linesOf(context, invoice.id))
  }
}

export const invoices: Rules = {
  create,
  update,
  cancel,
  specials: { post: { run: post }, pdf: { run: print, isFile: true } }
}

const createLine = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const { invoiceid, ...input } = patchOf(resource, "create", body)
  const invoice = current(context, "invoices", invoiceid)
  if (isPosted(invoice)) {
    throw new ApiError("invoice_already_posted", `invoice ${invoice.id} is posted`, { field: "invoiceid" })
  }
  if (invoice.cancelled) throw violation(`invoice ${invoice.id} is cancelled`, "invoiceid")
  const next = Number(linesOf(context, invoice.id).at(-1)?.values["linenumber"] ?? 0) + 1
  const line = insertInvoiceLine(context, invoice, next, input, "", body)
  const { values } = refreshInvoice(context, invoice.id)
  return { version: line, more: [["invoicetotal", JSON.stringify(values["invoicetotal"])]] }
}

/** Lines can be changed only in the other reading of their operations (I-01); the invoice is updated. */
const updateLine = (context: Context, line: Version, body: Body): Written => {
  const invoice = current(context, "invoices", line.values["invoiceid"])
  if (isPosted(invoice)) throw new ApiError("invoice_already_posted", `invoice ${invoice.id} is posted`)
  const patch = patchOf(line.table.resource, "update", body)
  const priced = { ...line.values, ...patch }
  const total = lineTotal(units(priced["qty"], 6), units(priced["priceach"], 6))
  const after = change(context, line, { ...patch, totalprice: money(total, "the line's total") }, body)
  refreshInvoice(context, invoice.id)
  return { version: after }
}

export const invoicelines: Rules = {
  create: createLine,
  update: updateLine,
  specials: { tax: lineTax },
  followUp: (context, line) => {
    if (typeof line.values["invoiceid"] === "number") refreshInvoice(context, line.values["invoiceid"])
  }
}
