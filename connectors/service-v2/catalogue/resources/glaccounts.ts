/** Chart of accounts: inferred (L2); accounts are named by id or exact name. */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const glaccounts = resource({
  path: "glaccounts",
  area: "glaccounts",
  purpose: "chart of accounts",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 60, { note: "the key" }), commonFields()],
  filters: [partial("name")],
  modifiedSince: true,
  key: { field: "name" }
})
