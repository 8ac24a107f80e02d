/** Work types: inferred (L3, L4). */
import { id, string } from "../../../../src/catalogue/Field.ts"
import { partial, resource } from "../../../../src/catalogue/Resource.ts"
import { commonFields } from "./common.ts"

export const worktypes = resource({
  path: "worktypes",
  area: "setup",
  purpose: "work types",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 100), commonFields()],
  filters: [partial("name")],
  modifiedSince: true,
  key: { field: "name", unique: false }
})
