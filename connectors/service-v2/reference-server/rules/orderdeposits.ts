/**
 * Deposits against an order (I-19, I-20).
 *
 * Promise: the deposits of an order never exceed its total.
 */
import { ApiError } from "../ApiError.ts"
import { format, units } from "../decimal.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { makeVoucher, refuseClosed } from "./ledger.ts"
import { companyCurrency } from "./payments.ts"
import { active, current, insert, violation } from "./records.ts"

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  const order = current(context, "orders", patch["orderid"])
  const amount = units(patch["amount"], 4)
  const date = body.values["date"]
  const day = typeof date === "string" ? date : today(context)
  if (order.cancelled) throw violation(`order ${order.id} is cancelled`, "orderid")
  refuseClosed(context, day, "date")
  if (amount <= 0n) throw violation("amount must be more than zero", "amount")
  let left = units(order.values["ordertotal"], 4)
  for (const { values } of active(context, "orderdeposits", "orderid", order.id)) left -= units(values["amount"], 4)
  if (amount > left) {
    throw new ApiError("deposit_exceeds_order", `only ${format(left, 4)} is left on order ${order.id}`, {
      field: "amount"
    })
  }
  const deposit = insert(
    context,
    "orderdeposits",
    {
      ...patch,
      voucherid: makeVoucher(context, "DP", day).id,
      payment_method: patch["payment_method"] ?? 0,
      currency: companyCurrency,
      returned: 0,
      _postdate: day
    },
    body
  )
  return { version: deposit }
}

export const orderdeposits: Rules = { create }
