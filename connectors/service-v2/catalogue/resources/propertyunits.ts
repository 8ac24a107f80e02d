/** Units of a building: inferred (L4, SCOPE-18); needs the properties module. */
import { id, ref, string } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const propertyunits = resource({
  path: "propertyunits",
  area: "properties",
  purpose: "units of a building",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), ref("buildingid", "buildings"), string("unitnumber", 20), commonFields()],
  filters: [exact("buildingid", "unitnumber")],
  modifiedSince: true,
  required: ["buildingid"],
  feature: "properties"
})
