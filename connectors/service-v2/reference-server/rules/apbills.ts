/**
 * Vendor bills.
 *
 * Promise: the distributed amount of a bill is always the sum of its coding lines. A bill is posted once, with its own
 * voucher.
 */
import { ApiError } from "../ApiError.ts"
import { format, units } from "../decimal.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf, refuseContent } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { isPosted } from "./invoices.ts"
import { makeVoucher, refuseClosed } from "./ledger.ts"
import { money } from "./lines.ts"
import { change, current, insert, violation } from "./records.ts"

export const distributedOf = ({ store, company }: Context, billId: number): bigint => {
  let sum = 0n
  for (const { values } of store.table(company, "apbilllines").where("apbillid", billId)) {
    sum += units(values["amount"], 4)
  }
  return sum
}

/** Updates the distributed amount of a bill from its lines. */
export const refreshBill = (context: Context, billId: number): Version => {
  const bill = current(context, "apbills", billId)
  const distributed = distributedOf(context, billId)
  return change(context, bill, {
    distributed: format(distributed, 4),
    undistributed: money(units(bill.values["billtotal"], 4) - distributed, "what is not distributed")
  })
}

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  const bill = insert(context, "apbills", { ...patch, billdate: patch["billdate"] ?? today(context) }, body)
  return { version: refreshBill(context, bill.id) }
}

/** POST /apbills/{id}/post (J-07). */
const post = (context: Context, bill: Version, body: unknown): Written => {
  refuseContent(body)
  if (isPosted(bill)) throw new ApiError("apbill_already_posted", `bill ${bill.id} is posted already`)
  if (bill.cancelled) throw violation(`bill ${bill.id} is cancelled`)
  const { billdate } = bill.values
  const day = typeof billdate === "string" ? billdate : today(context)
  refuseClosed(context, day, "billdate")
  return { version: change(context, bill, { voucherid: makeVoucher(context, "AP", day).id }), status: 200 }
}

export const apbills: Rules = { create, specials: { post: { run: post } } }
