/** Buildings: inferred (L4, SCOPE-18); needs the properties module. */
import { id, string } from "../../../../src/catalogue/Field.ts"
import { partial, resource } from "../../../../src/catalogue/Resource.ts"
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
