/** Carriers: inferred (L3, L4). Two may share a name, so that a reference can be ambiguous (L5). */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const carriers = resource({
  path: "carriers",
  area: "setup",
  purpose: "carriers",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 100), commonFields()],
  filters: [partial("name")],
  modifiedSince: true,
  key: { field: "name", unique: false }
})
