/** Users: a read-only lookup (SCOPE-23), fields inferred (L2). */
import { boolean, id, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const users = resource({
  path: "users",
  area: "users",
  purpose: "users of the application",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("login", 50, { note: "the key" }), string("name", 100), boolean("active"), commonFields()],
  filters: [exact("login"), partial("name")],
  modifiedSince: true,
  personal: true,
  key: { field: "login" }
})
