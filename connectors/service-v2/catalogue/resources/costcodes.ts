/** Cost codes: inferred (L3, L4). */
import { id, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const costcodes = resource({
  path: "costcodes",
  area: "glaccounts",
  purpose: "cost codes",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("code", 20, { note: "the key" }), string("name", 100), commonFields()],
  filters: [exact("code"), partial("name")],
  modifiedSince: true,
  key: { field: "code" }
})
