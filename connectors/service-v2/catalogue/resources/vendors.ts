/** Vendors: inferred (L2) from the references by vendorcode. Creation is capped (LIM-11). */
import { id, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const vendors = resource({
  path: "vendors",
  area: "vendors",
  purpose: "vendors",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), string("vendorcode", 30, { note: "the key" }), string("name", 100), commonFields()],
  filters: [exact("vendorcode"), partial("name")],
  modifiedSince: true,
  key: { field: "vendorcode" },
  required: ["vendorcode"],
  capped: true
})
