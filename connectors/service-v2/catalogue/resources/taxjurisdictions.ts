/** Tax jurisdictions: inferred (L3) from GET /invoicelines/{id}/tax (SPECIAL-06). */
import { id, number, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const taxjurisdictions = resource({
  path: "taxjurisdictions",
  area: "tax",
  purpose: "tax authorities with their rates",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("authority", 100), number("rate", { dp: 6 }), commonFields()],
  filters: [partial("authority")],
  modifiedSince: true
})
