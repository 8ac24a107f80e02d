/** Work types: inferred (L3, L4). */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
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
