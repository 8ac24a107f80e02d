/** Purchase order lines: inferred (L4). qtyreceived follows from the receipts. */
import { externalid, id, integer, money, pair, qty, ref, string } from "../fields.ts"
import { exact, partial, resource, write } from "../resource.ts"
import { commonFields } from "./common.ts"

const item = pair("item", "items", { by: "sku", length: 255, note: "item by id or sku" })
const line = [
  ...item.map((half) => write(half)),
  write(string("description", 255), { note: "defaults to the item description" }),
  write(money("priceach", { dp: 6 })),
  write(externalid())
]

export const purchaseorderlines = resource({
  path: "purchaseorderlines",
  area: "purchaseorders",
  purpose: "purchase order lines",
  basis: "inferred",
  operations: "L C R U D",
  businessDate: { through: "purchaseorderid" },
  fields: [
    id(),
    ref("purchaseorderid", "purchaseorders"),
    integer("linenumber", { readOnly: true, note: "position on the order, from 1" }),
    item,
    string("description", 255),
    qty("qtyorder", { note: "quantity ordered" }),
    qty("qtyreceived", { readOnly: true, note: "quantity received" }),
    money("priceach", { dp: 6, note: "unit price" }),
    commonFields()
  ],
  filters: [exact("purchaseorderid", "itemid"), partial("description")],
  modifiedSince: true,
  create: [
    write(ref("purchaseorderid", "purchaseorders"), { required: true, note: "must not be complete" }),
    write(qty("qtyorder"), { required: true }),
    ...line
  ],
  update: [write(qty("qtyorder")), ...line]
})
