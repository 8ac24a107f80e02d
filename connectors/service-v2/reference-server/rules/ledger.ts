/**
 * The ledger as used by documents: periods and vouchers.
 *
 * Promise: nothing posts into a closed period; every posting has its own voucher.
 */
import { ApiError } from "../ApiError.ts"
import type { Version } from "../store/Table.ts"
import type { Context } from "./Rules.ts"
import { insert, nextNumber } from "./records.ts"

/** A day is closed by the company's closing date or by a closed ledger period that contains it. */
export const isClosed = ({ store, company, settings }: Context, day: string): boolean => {
  if (settings.closedThrough !== null && day <= settings.closedThrough) return true
  return store
    .table(company, "ledgerperiods")
    .where("closed", true)
    .some(({ cancelled, values }) => {
      const { startdate, enddate } = values
      const begun = typeof startdate !== "string" || startdate <= day
      return !cancelled && begun && (typeof enddate !== "string" || day <= enddate)
    })
}

export const refuseClosed = (context: Context, day: string, field?: string): void => {
  if (isClosed(context, day)) throw new ApiError("period_closed", `${day} falls in a closed ledger period`, { field })
}

/** Writes a voucher; its text is unique in the company. */
export const makeVoucher = (context: Context, prefix: "AR" | "PM" | "DP" | "AP" | "GL", day: string): Version => {
  const voucher = nextNumber(context, `vouchers/${prefix}`, ["vouchers", "voucher"], prefix)
  return insert(context, "vouchers", { voucher, date: day })
}
