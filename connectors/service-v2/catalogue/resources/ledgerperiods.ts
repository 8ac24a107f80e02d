/** Ledger periods: inferred (L3, L4) from period_closed. */
import { boolean, date, id } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const ledgerperiods = resource({
  path: "ledgerperiods",
  area: "setup",
  purpose: "ledger periods; nothing can be posted into a closed one",
  basis: "inferred",
  operations: "L R",
  fields: [id(), date("startdate"), date("enddate"), boolean("closed"), commonFields()],
  filters: [exact("closed")],
  modifiedSince: true
})
