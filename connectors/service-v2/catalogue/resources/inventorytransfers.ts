/**
 * Inventory transfers: named by RES-01, fields inferred (L4). A transfer belongs to two companies and is visible to
 * both.
 */
import { date, id, integer, pair, qty } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const inventorytransfers = resource({
  path: "inventorytransfers",
  area: "items",
  purpose: "stock moving between companies or locations",
  basis: "named",
  operations: "L C R",
  businessDate: { field: "transferdate" },
  fields: [
    id(),
    integer("gencompanyidfrom", { note: "company that the stock leaves" }),
    integer("gencompanyidto", { note: "company that the stock enters" }),
    pair("item", "items", { by: "sku", length: 255, note: "item by id or sku" }),
    qty("qty"),
    date("transferdate"),
    commonFields()
  ],
  filters: [exact("gencompanyidfrom", "gencompanyidto", "itemid")],
  modifiedSince: true,
  required: ["gencompanyidfrom", "gencompanyidto", "itemid", "qty"]
})
