/** Shipped quantities per order line: named by RES-12, fields inferred from the shipment write shape (L2). */
import { id, qty, ref } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const shipmentlines = resource({
  path: "shipmentlines",
  area: "shipments",
  purpose: "what was shipped per order line",
  basis: "named",
  operations: "L R",
  businessDate: { through: "shipmentid" },
  fields: [id(), ref("shipmentid", "shipments"), ref("orderlineid", "orderlines"), qty("quantity"), commonFields()],
  filters: [exact("shipmentid", "orderlineid")],
  modifiedSince: true
})
