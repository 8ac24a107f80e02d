/**
 * Raw journal entries: one record is one set.
 *
 * Promise: every stored set balances to the last decimal, has at least two lines and a voucher, and is in an open
 * period.
 */
import { ApiError } from "../ApiError.ts"
import { format, units } from "../decimal.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { makeVoucher, refuseClosed } from "./ledger.ts"
import { embedLines } from "./lines.ts"
import { insert } from "./records.ts"

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const { lines: _, ...patch } = patchOf(resource, "create", body)
  const lines = body.lines["lines"] ?? []
  if (lines.length < 2) {
    throw new ApiError("gl_set_too_short", `a journal set has at least two lines, not ${lines.length}`, {
      field: "lines"
    })
  }
  let sum = 0n
  for (const { values } of lines) sum += units(values["amount"], 4)
  if (sum !== 0n) {
    throw new ApiError("gl_set_unbalanced", `the amounts of the lines sum to ${format(sum, 4)}, not to zero`, {
      field: "lines"
    })
  }
  const { transactiondate } = patch
  const day = typeof transactiondate === "string" ? transactiondate : today(context)
  refuseClosed(context, day, "transactiondate")
  const shown = lines.map(({ values }) => ({ values: withAccount(context, values) }))
  const set = insert(
    context,
    "gltransactions",
    {
      ...patch,
      transactiondate: day,
      voucherid: makeVoucher(context, "GL", day).id,
      lines: embedLines(resource, shown)
    },
    body
  )
  return { version: set }
}

/** A line with both halves of its account. */
const withAccount = ({ store, company }: Context, input: Body["values"]): Body["values"] => {
  const id = input["glaccountid"]
  const account = typeof id === "number" ? store.table(company, "glaccounts").get(id) : undefined
  return { ...input, glaccount: account?.values["name"] ?? null }
}

export const gltransactions: Rules = { create }
