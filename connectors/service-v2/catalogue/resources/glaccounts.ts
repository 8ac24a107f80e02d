/** Chart of accounts: inferred (L2); accounts are named by id or exact name. */
import { id, string } from "../../../../src/catalogue/Field.ts"
import { partial, resource } from "../../../../src/catalogue/Resource.ts"
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
