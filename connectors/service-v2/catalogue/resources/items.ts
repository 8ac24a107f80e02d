/** Items for sale: inferred (L2) from the references by sku. Creation is capped. */
import { boolean, id, money, pair, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const items = resource({
  path: "items",
  area: "items",
  purpose: "items sold",
  basis: "inferred",
  operations: "L C B R U D",
  fields: [
    id(),
    string("sku", 255, { note: "the key" }),
    string("description", 255),
    money("price", { dp: 6, note: "unit price" }),
    pair("glaccount", "glaccounts", { by: "name", length: 60, note: "sales account by id or name" }),
    boolean("taxable"),
    commonFields()
  ],
  filters: [exact("sku"), partial("description")],
  modifiedSince: true,
  key: { field: "sku" },
  required: ["sku"],
  capped: true,
  specials: [{ method: "GET", name: "stock", scope: "items:read", purpose: "stock on hand by location" }]
})
