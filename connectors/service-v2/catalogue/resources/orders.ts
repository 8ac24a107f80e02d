/**
 * Sales, service and rental orders, and quotes: named by RES-09, states documented, fields inferred (L2, K-01, K-02).
 *
 * lines is part of the record and written only on create; afterwards lines are changed as orderlines. Every change of a
 * line changes its order too, so that modifiedsince returns both (A-19).
 */
import { date, externalid, id, integer, list, money, pair, qty, ref, string, words } from "../fields.ts"
import { exact, resource, write } from "../resource.ts"
import { commonFields } from "./common.ts"

const customer = pair("customer", "customers", {
  by: "customercode",
  length: 30,
  note: "customer by id or customercode"
})
const location = pair("inventorylocation", "inventorylocations", {
  by: "locationcode",
  length: 20,
  note: "location shipped from, by id or locationcode"
})
const ordertype = string("ordertype", 20, {
  values: words({ fulfillment: "goods are shipped", service: "hours are billed", rental: "billed by period" })
})
const status = string("status", 20, {
  values: words({
    quote: "not an order yet; wins over ordertype",
    unconfirmed: "received, not confirmed",
    open: "inventory is committed",
    partial: "shipped or billed in part",
    billed: "billed in full"
  }),
  note: "PATCH moves quote or unconfirmed to open; the rest follows from shipping and billing"
})
const item = pair("item", "items", { by: "sku", length: 255, note: "item by id or sku" })

export const orders = resource({
  path: "orders",
  area: "orders",
  purpose: "sales orders, service orders, rentals and quotes; children: orderlines, shipments",
  basis: "named",
  operations: "L C R U D",
  businessDate: { field: "orderdate" },
  fields: [
    id(),
    ordertype,
    status,
    customer,
    ref("shiptoid", "shiptos", { note: "must belong to the customer" }),
    location,
    date("orderdate"),
    money("ordertotal", { readOnly: true, note: "sum of the lines" }),
    list(
      "lines",
      [
        id(),
        integer("linenumber"),
        ...item,
        string("description", 255),
        qty("qtyorder"),
        qty("qtyship"),
        qty("qtybilled"),
        money("priceach", { dp: 6 }),
        externalid()
      ],
      { readOnly: true, note: "the order's lines; written on create only, afterwards as orderlines" }
    ),
    commonFields()
  ],
  filters: [exact("customerid", "status", "ordertype", "inventorylocationid")],
  modifiedSince: true,
  create: [
    write(ordertype),
    write(status),
    ...customer.map((half) => write(half, { required: half.name === "customerid" })),
    write(ref("shiptoid", "shiptos")),
    ...location.map((half) => write(half)),
    write(date("orderdate"), { note: "default today" }),
    write(externalid()),
    write(list("lines", []), {
      note: "the order's lines",
      sets: null,
      lines: [
        ...item.map((half) => write(half, { sets: null })),
        write(string("description", 255), { sets: null, note: "defaults to the item description" }),
        write(qty("qtyorder"), { sets: null, required: true }),
        write(money("priceach", { dp: 6 }), { sets: null, note: "defaults to the item's price" }),
        write(externalid())
      ]
    }),
    write(list("hours", []), {
      sets: null,
      note: "hours on a service order",
      lines: [
        write(qty("hours"), { sets: null, required: true }),
        write(date("date"), { sets: null, note: "default today" }),
        write(ref("worktypeid", "worktypes"), { sets: null }),
        write(ref("genuserid", "users"), { sets: null }),
        write(string("note", 255), { sets: null }),
        write(externalid())
      ]
    }),
    write(list("shipments", []), {
      sets: null,
      note: "shipments of the order; needs the scope shipments:write too",
      lines: [
        write(externalid()),
        write(list("lines", []), {
          required: true,
          sets: null,
          note: "what ships of which of the order's lines",
          lines: [
            write(integer("linenumber"), { required: true, sets: null, note: "place among the order's lines, from 1" }),
            write(qty("quantity"), { required: true, sets: null, note: "up to 6 decimals" })
          ]
        })
      ]
    })
  ],
  specials: [
    {
      method: "POST",
      name: "invoice",
      scope: "invoices:write",
      purpose: "makes a draft invoice of everything shipped and not billed"
    }
  ]
})
