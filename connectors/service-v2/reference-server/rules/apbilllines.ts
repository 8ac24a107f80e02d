/**
 * Coding lines of vendor bills (I-05, I-22, I-23).
 *
 * Promise: lines never code more of a bill than is owed, and a posted bill gets no lines.
 */
import { ApiError } from "../ApiError.ts"
import { format, units } from "../decimal.ts"
import type { Version } from "../store/Table.ts"
import { distributedOf, refreshBill } from "./apbills.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { isPosted } from "./invoices.ts"
import { current, insert, violation } from "./records.ts"

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  const bill = current(context, "apbills", patch["apbillid"])
  if (isPosted(bill)) {
    throw new ApiError("apbill_already_posted", `bill ${bill.id} is posted`, { field: "apbillid" })
  }
  if (bill.cancelled) throw violation(`bill ${bill.id} is cancelled`, "apbillid")
  const amount = units(patch["amount"], 4)
  if (amount === 0n) throw violation("amount must not be zero", "amount")
  const total = units(bill.values["billtotal"], 4)
  const before = distributedOf(context, bill.id)
  const after = before + amount
  // A credit is owed by the vendor: the amounts of its lines are negative.
  if (total < 0n ? after < total : after > total) {
    throw new ApiError("distribution_exceeds_total", `only ${format(total - before, 4)} is left on bill ${bill.id}`, {
      field: "amount"
    })
  }
  const line = insert(context, "apbilllines", { ...patch, isretainer: 0 }, body)
  const { values } = refreshBill(context, bill.id)
  const more = ["billtotal", "distributed", "undistributed"].map(
    (name) => [name, JSON.stringify(values[name] ?? null)] as const
  )
  return { version: line, more }
}

export const apbilllines: Rules = { create }
