/** Tax classes: inferred (L3, L4); read-only until the tax resources are completed. */
import { id, number, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const taxclasses = resource({
  path: "taxclasses",
  area: "tax",
  purpose: "tax classes",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), string("name", 100), number("rate", { dp: 6 }), commonFields()],
  filters: [partial("name")],
  modifiedSince: true,
  key: { field: "name", unique: false }
})
