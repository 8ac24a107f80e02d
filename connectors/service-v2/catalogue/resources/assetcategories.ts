/**
 * Categories of fixed assets: ASSETCATEGORIES-01..13. It has lastchangedate, but its row offers no modifiedsince
 * (I-03). name is not a unique key; fixed assets refer to their category by it.
 */
import { cancel, entrydate, externalid, id, lastchangedate, pair, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"

const note = "ledger account by id or name"

export const assetcategories = resource({
  path: "assetcategories",
  area: "assets",
  purpose: "categories of fixed assets",
  basis: "documented",
  operations: "L C B",
  fields: [
    id(),
    string("name", 255),
    entrydate({ readOnly: true, typed: false }),
    lastchangedate(),
    cancel(),
    pair("accumulateddepreciationglaccount", "glaccounts", { by: "name", length: 20, note }),
    pair("assetglaccount", "glaccounts", { by: "name", length: 20, note }),
    pair("expenseglaccount", "glaccounts", { by: "name", length: 20, note }),
    pair("expensedepreciationglaccount", "glaccounts", { by: "name", length: 20, note }),
    externalid()
  ],
  filters: [partial("name")],
  key: { field: "name", unique: false },
  feature: "assets"
})
