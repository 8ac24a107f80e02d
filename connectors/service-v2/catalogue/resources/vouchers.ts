/** Ledger vouchers: inferred (L3) from the voucher references. */
import { date, id, string } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const vouchers = resource({
  path: "vouchers",
  area: "glaccounts",
  purpose: "ledger vouchers: what posting a document writes",
  basis: "inferred",
  operations: "L R",
  businessDate: { field: "date" },
  fields: [id(), string("voucher", 50, { note: "the key" }), date("date", { note: "accounting date" }), commonFields()],
  filters: [exact("voucher")],
  modifiedSince: true,
  key: { field: "voucher" }
})
