/** Units: inferred (L3, L4) from qtyunitname and priceunitname. */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const qtyunits = resource({
  path: "qtyunits",
  area: "setup",
  purpose: "units of quantity and price",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("unitname", 50, { note: "the key" }), commonFields()],
  filters: [partial("unitname")],
  modifiedSince: true,
  key: { field: "unitname" }
})
