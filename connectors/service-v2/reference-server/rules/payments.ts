/**
 * Payments applied to invoices (I-15..I-18).
 *
 * Promise: an invoice is never paid beyond its total, and a cancelled payment pays nothing.
 */
import { ApiError } from "../ApiError.ts"
import { format, units } from "../decimal.ts"
import { print } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Shown, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { isPosted, openBalance, refreshPaid } from "./invoices.ts"
import { isClosed, makeVoucher, refuseClosed } from "./ledger.ts"
import { change, current, insert, violation } from "./records.ts"

/** The default currency of a company. */
export const companyCurrency = "USD"

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  const invoice = current(context, "invoices", patch["invoiceid"])
  const amount = units(patch["amount"], 4)
  const datereceived = typeof patch["datereceived"] === "string" ? patch["datereceived"] : today(context)
  if (!isPosted(invoice)) throw violation(`invoice ${invoice.id} is a draft: post it first`, "invoiceid")
  if (invoice.cancelled) throw violation(`invoice ${invoice.id} is cancelled`, "invoiceid")
  refuseClosed(context, datereceived, "date")
  if (amount <= 0n) throw violation("amount must be more than zero", "amount")
  const open = openBalance(invoice)
  if (amount > open) throw violation(`amount is more than the open balance of ${format(open, 4)}`, "amount")
  const payment = insert(
    context,
    "payments",
    {
      ...patch,
      datereceived,
      paymeth: patch["paymeth"] ?? 0,
      voucherid: makeVoucher(context, "PM", datereceived).id,
      customerid: invoice.values["customerid"] ?? null,
      inventorylocationid: invoice.values["inventorylocationid"] ?? null,
      currency: companyCurrency,
      interest: 0,
      returned: 0
    },
    body
  )
  const { values } = refreshPaid(context, invoice)
  return { version: payment, more: [["invoicepaid", JSON.stringify(values["invoicepaid"])]] }
}

const update = (context: Context, payment: Version, body: Body): Written => {
  if (payment.cancelled) throw violation(`payment ${payment.id} is cancelled`)
  return { version: change(context, payment, patchOf(payment.table.resource, "update", body), body) }
}

const cancel = (context: Context, payment: Version): Written => {
  const { values } = payment
  if ((values["bankdepositid"] ?? null) !== null || (values["bankstatement_cleardate"] ?? null) !== null) {
    throw new ApiError("cannot_cancel", `payment ${payment.id} is in a bank deposit or cleared by the bank`)
  }
  if (isClosed(context, today(context))) {
    throw new ApiError("period_closed", "the current period is closed: the reversal has nowhere to post")
  }
  const cancelled = change(context, payment, { cancel: true, cancel_userid: context.userId })
  if (typeof values["invoiceid"] === "number") refreshPaid(context, current(context, "invoices", values["invoiceid"]))
  return { version: cancelled }
}

/** GET /payments/{id}/receipt (J-06). */
const receipt = (_context: Context, { id, values }: Version): Shown => {
  const fields = ["invoiceid", "invoice", "customerid", "amount", "datereceived", "paymeth", "checkid", "voucher"]
  const members = fields.map((name) => `,${JSON.stringify(name)}:${print(values[name])}`)
  return { kind: "object", text: `{"paymentid":${id}${members.join("")}}` }
}

export const payments: Rules = { create, update, cancel, specials: { receipt: { run: receipt } } }
