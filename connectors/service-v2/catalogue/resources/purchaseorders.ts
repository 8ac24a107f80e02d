/**
 * Purchase orders: inferred (L4). While complete is true, PATCH accepts only complete=false (STATE-14, X-20). lines is
 * part of the record and written only on create; afterwards lines are changed as purchaseorderlines.
 */
import { boolean, date, externalid, id, integer, list, money, pair, qty, string } from "../fields.ts"
import { exact, resource, write } from "../resource.ts"
import { commonFields } from "./common.ts"

const vendor = pair("vendor", "vendors", { by: "vendorcode", length: 30, note: "vendor by id or vendorcode" })
const item = pair("item", "items", { by: "sku", length: 255, note: "item by id or sku" })
const complete = boolean("complete", { note: "true blocks PATCH and new lines" })

export const purchaseorders = resource({
  path: "purchaseorders",
  area: "purchaseorders",
  purpose: "purchase orders; children: purchaseorderlines, purchaseorderreceipts",
  basis: "inferred",
  operations: "L C R U D",
  businessDate: { field: "orderdate" },
  fields: [
    id(),
    vendor,
    date("orderdate"),
    complete,
    money("ordertotal", { readOnly: true, note: "sum of the lines" }),
    list(
      "lines",
      [
        id(),
        integer("linenumber"),
        ...item,
        string("description", 255),
        qty("qtyorder"),
        qty("qtyreceived"),
        money("priceach", { dp: 6 }),
        externalid()
      ],
      { readOnly: true, note: "the order's lines; written on create only, afterwards as purchaseorderlines" }
    ),
    commonFields()
  ],
  filters: [exact("vendorid", "complete")],
  modifiedSince: true,
  create: [
    ...vendor.map((half) => write(half, { required: half.name === "vendorid" })),
    write(date("orderdate"), { note: "default today" }),
    write(complete),
    write(externalid()),
    write(list("lines", []), {
      sets: null,
      note: "the order's lines",
      lines: [
        ...item.map((half) => write(half, { sets: null })),
        write(string("description", 255), { sets: null, note: "defaults to the item description" }),
        write(qty("qtyorder"), { sets: null, required: true }),
        write(money("priceach", { dp: 6 }), { sets: null, note: "unit price" }),
        write(externalid(), { sets: null })
      ]
    })
  ]
})
