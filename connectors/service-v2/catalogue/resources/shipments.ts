/**
 * Shipments against an order: SHIPMENTS-01..21, write shapes WRITE-01..06.
 *
 * The record does not contain its lines: they are shipmentlines (SHIPMENTS-15). PATCH accepts carrierserviceid only
 * (I-11).
 */
import { cancel, date, entrydate, externalid, id, lastchangedate, list, pair, qty, ref } from "../fields.ts"
import { exact, resource, write } from "../resource.ts"

export const shipments = resource({
  path: "shipments",
  area: "shipments",
  purpose: "shipments against an order; children: shipmentlines",
  basis: "documented",
  operations: "L C B R U D",
  businessDate: { field: "shipdate" },
  fields: [
    id(),
    ref("orderid", "orders"),
    pair("carrierservice", "carrierservices", { by: "code", length: 100, note: "carrier service by id or code" }),
    date("shipdate", { note: "when it went out" }),
    pair("location", "inventorylocations", {
      by: "locationcode",
      length: 20,
      note: "inventory location to receive into; location is its locationcode"
    }),
    entrydate(),
    lastchangedate(),
    ref("shiptoid", "shiptos"),
    pair("voucher", "vouchers", { by: "voucher", length: 50, note: "ledger voucher" }),
    cancel(),
    pair("invoice", "invoices", { by: "invoicenumber", length: 30, note: "invoice by id or invoicenumber" }),
    externalid()
  ],
  filters: [exact("locationid", "orderid", "invoiceid")],
  modifiedSince: true,
  create: [
    write(ref("orderid", "orders"), { required: true, note: "order being shipped" }),
    write(externalid()),
    write(list("lines", []), {
      required: true,
      sets: null,
      note: "each ships against an order line and cannot exceed what is left on that line",
      lines: [
        write(ref("orderlineid", "orderlines"), { required: true, sets: null }),
        write(qty("quantity"), { required: true, sets: null, note: "up to 6 decimals" })
      ]
    })
  ],
  update: [write(ref("carrierserviceid", "carrierservices")), write(date("shipdate")), write(externalid())],
  specials: [
    { method: "GET", name: "packages", scope: "shipments:read", purpose: "packages with tracking, weight and charge" },
    { method: "POST", name: "invoice", scope: "invoices:write", purpose: "invoices the shipment; not built yet" },
    { method: "GET", name: "pdf", scope: "shipments:read", purpose: "packing slip without prices, as PDF" },
    { method: "GET", name: "boxlabels", scope: "shipments:read", purpose: "carton labels, as PDF" }
  ]
})
