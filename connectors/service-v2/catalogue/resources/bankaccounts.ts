/** Bank accounts: inferred (L4). The accounts named by checkaccount and checkacct are checkaccounts (L3). */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const bankaccounts = resource({
  path: "bankaccounts",
  area: "banking",
  purpose: "bank accounts",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 30, { note: "the key" }), commonFields()],
  filters: [partial("name")],
  modifiedSince: true,
  key: { field: "name" }
})
