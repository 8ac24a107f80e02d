/** Tax exemptions: inferred (L3, L4) from partialtaxexemption; read-only until the tax resources are completed. */
import { id, number, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const taxexemptions = resource({
  path: "taxexemptions",
  area: "tax",
  purpose: "tax exemptions",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), string("exemptname", 32), number("rate", { dp: 6 }), commonFields()],
  filters: [partial("exemptname")],
  modifiedSince: true,
  key: { field: "exemptname", unique: false }
})
