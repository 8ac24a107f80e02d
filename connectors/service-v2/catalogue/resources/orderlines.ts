/**
 * Order lines: named by RES-10, fields inferred (L2). DELETE removes the row and renumbers its siblings (GEN-09, K-06);
 * qtyship and qtybilled follow from shipments and invoices.
 */
import { externalid, id, integer, money, pair, qty, ref, string } from "../fields.ts"
import { exact, partial, resource, write } from "../resource.ts"
import { commonFields } from "./common.ts"

const item = pair("item", "items", { by: "sku", length: 255, note: "item by id or sku" })
const line = [
  ...item.map((half) => write(half)),
  write(string("description", 255), { note: "defaults to the item description" }),
  write(money("priceach", { dp: 6 }), { note: "defaults to the item's price" }),
  write(externalid())
]

export const orderlines = resource({
  path: "orderlines",
  area: "orders",
  purpose: "order lines",
  basis: "named",
  operations: "L C R U D",
  businessDate: { through: "orderid" },
  fields: [
    id(),
    ref("orderid", "orders"),
    integer("linenumber", { readOnly: true, note: "position on the order, from 1" }),
    item,
    string("description", 255),
    qty("qtyorder", { note: "quantity ordered" }),
    qty("qtyship", { readOnly: true, note: "quantity shipped" }),
    qty("qtybilled", { readOnly: true, note: "quantity invoiced" }),
    money("priceach", { dp: 6, note: "unit price" }),
    commonFields()
  ],
  filters: [exact("orderid", "itemid"), partial("description")],
  modifiedSince: true,
  removes: true,
  create: [write(ref("orderid", "orders"), { required: true }), write(qty("qtyorder"), { required: true }), ...line],
  update: [write(qty("qtyorder")), ...line]
})
