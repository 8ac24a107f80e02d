/** Buildings: inferred (L4, SCOPE-18); needs the properties module. */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const buildings = resource({
  path: "buildings",
  area: "properties",
  purpose: "buildings",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), string("name", 100), commonFields()],
  filters: [partial("name")],
  modifiedSince: true,
  feature: "properties"
})
