/** Leases: inferred (L4, SCOPE-18); needs the properties module. */
import { date, id, ref } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const leases = resource({
  path: "leases",
  area: "properties",
  purpose: "leases of a unit to a customer",
  basis: "inferred",
  operations: "L C R U D",
  fields: [
    id(),
    ref("propertyunitid", "propertyunits"),
    ref("customerid", "customers"),
    date("begindate"),
    date("enddate"),
    commonFields()
  ],
  filters: [exact("propertyunitid", "customerid")],
  modifiedSince: true,
  required: ["propertyunitid"],
  feature: "properties"
})
