/** Card transactions: inferred (L4) from cctransactionid. */
import { id, money, string } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const cctransactions = resource({
  path: "cctransactions",
  area: "banking",
  purpose: "card transactions",
  basis: "inferred",
  operations: "L R",
  businessDate: { field: "entrydate" },
  fields: [id(), money("amount"), string("last4", 4, { note: "last four digits of the card" }), commonFields()],
  filters: [exact("last4")],
  modifiedSince: true
})
