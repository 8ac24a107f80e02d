/**
 * AR invoices: named by RES-13, fields inferred (L2). voucherid is null while the invoice is a draft. lines are written
 * with the invoice, in the shape of POST /invoicelines (RES-16); afterwards lines are added as invoicelines.
 */
import { date, externalid, id, integer, list, money, pair, qty, ref, string } from "../fields.ts"
import { exact, resource, write } from "../resource.ts"
import { commonFields } from "./common.ts"
import { invoiceLineWrite } from "./invoicelines.ts"

const customer = pair("customer", "customers", {
  by: "customercode",
  length: 30,
  note: "customer by id or customercode"
})
const location = pair("inventorylocation", "inventorylocations", {
  by: "locationcode",
  length: 20,
  note: "inventory location by id or locationcode"
})

export const invoices = resource({
  path: "invoices",
  area: "invoices",
  purpose: "AR invoices; children: invoicelines",
  basis: "named",
  operations: "L C R U D",
  businessDate: { field: "invoicedate" },
  fields: [
    id(),
    string("invoicenumber", 30, { note: "the key; given by the service when not sent" }),
    customer,
    ref("orderid", "orders"),
    location,
    date("invoicedate", { note: "accounting date it posts under" }),
    pair("voucher", "vouchers", {
      by: "voucher",
      length: 50,
      readOnly: true,
      note: "ledger voucher; empty while the invoice is a draft"
    }),
    money("invoicetotal", { readOnly: true, note: "sum of the lines" }),
    money("invoicepaid", { readOnly: true, note: "sum of the payments that are not cancelled" }),
    list(
      "lines",
      [
        id(),
        integer("linenumber"),
        ...pair("item", "items", { by: "sku", length: 255 }),
        string("description", 255),
        qty("qty"),
        money("priceach", { dp: 6 }),
        money("totalprice"),
        integer("taxflag"),
        externalid()
      ],
      { readOnly: true, note: "the invoice's lines; written on create, afterwards as invoicelines" }
    ),
    commonFields()
  ],
  filters: [exact("customerid", "orderid", "invoicenumber", "inventorylocationid")],
  modifiedSince: true,
  key: { field: "invoicenumber" },
  create: [
    write(string("invoicenumber", 30), { note: "given by the service when not sent" }),
    ...customer.map((half) => write(half, { required: half.name === "customerid" })),
    write(ref("orderid", "orders")),
    ...location.map((half) => write(half)),
    write(date("invoicedate"), { note: "default today" }),
    write(externalid()),
    write(list("lines", []), {
      sets: null,
      note: "the invoice's lines",
      lines: invoiceLineWrite.map((field) => ({ ...field, sets: null }))
    })
  ],
  specials: [
    { method: "POST", name: "post", scope: "invoices:write", purpose: "posts a draft to the ledger" },
    { method: "GET", name: "pdf", scope: "invoices:read", purpose: "the posted invoice, as PDF" }
  ]
})
