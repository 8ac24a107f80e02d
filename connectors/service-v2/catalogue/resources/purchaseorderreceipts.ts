/** Receipts against a purchase order: inferred (L4, SCOPE-12). */
import { date, externalid, id, list, qty, ref } from "../fields.ts"
import { exact, resource, write } from "../resource.ts"
import { commonFields } from "./common.ts"

const receiptdate = date("receiptdate")
const line = ref("purchaseorderlineid", "purchaseorderlines")
const quantity = qty("quantity")

export const purchaseorderreceipts = resource({
  path: "purchaseorderreceipts",
  area: "purchaseorders",
  purpose: "receipts against a purchase order",
  basis: "inferred",
  operations: "L C R",
  businessDate: { field: "receiptdate" },
  fields: [
    id(),
    ref("purchaseorderid", "purchaseorders"),
    receiptdate,
    list("lines", [line, quantity], { note: "what was received per purchase order line" }),
    commonFields()
  ],
  filters: [exact("purchaseorderid")],
  modifiedSince: true,
  create: [
    write(ref("purchaseorderid", "purchaseorders"), { required: true }),
    write(receiptdate, { note: "default today" }),
    write(externalid()),
    write(list("lines", []), {
      required: true,
      note: "what was received per purchase order line",
      lines: [line, quantity].map((field) => write(field, { required: true, sets: null }))
    })
  ]
})
