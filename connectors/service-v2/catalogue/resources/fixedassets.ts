/** Fixed assets: inferred (L4, SCOPE-18); needs the assets module. */
import { date, id, money, pair, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const fixedassets = resource({
  path: "fixedassets",
  area: "assets",
  purpose: "fixed assets",
  basis: "inferred",
  operations: "L C R U D",
  businessDate: { field: "acquiredate" },
  fields: [
    id(),
    pair("assetcategory", "assetcategories", { by: "name", length: 255, note: "category by id or name" }),
    string("name", 100),
    date("acquiredate"),
    money("cost"),
    commonFields()
  ],
  filters: [exact("assetcategoryid"), partial("name")],
  modifiedSince: true,
  feature: "assets"
})
