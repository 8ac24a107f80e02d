/** Inventory locations: inferred (L3, L4) from the references by locationcode. */
import { id, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const inventorylocations = resource({
  path: "inventorylocations",
  area: "setup",
  purpose: "inventory locations",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("locationcode", 20, { note: "the key" }), string("name", 100), commonFields()],
  filters: [exact("locationcode"), partial("name")],
  modifiedSince: true,
  key: { field: "locationcode" }
})
