/** Tax use codes: inferred (L4, SCOPE-21). */
import { id, number, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const taxusecodes = resource({
  path: "taxusecodes",
  area: "tax",
  purpose: "tax use codes",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), string("name", 100), number("rate", { dp: 6 }), commonFields()],
  filters: [partial("name")],
  modifiedSince: true
})
