/** Bank accounts: inferred (L3) from checkaccount and checkacct. */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const checkaccounts = resource({
  path: "checkaccounts",
  area: "banking",
  purpose: "bank accounts that payments are deposited to",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 30, { note: "the key" }), commonFields()],
  filters: [partial("name")],
  modifiedSince: true,
  key: { field: "name" }
})
