/** The operations below a shipment: its packages, its documents and, in the other reading, its invoice. */
import { ApiError } from "../ApiError.ts"
import { boxLabelsPdf, packingSlipPdf } from "../documents/shipment.ts"
import { say } from "../documents/pdf.ts"
import type { Version } from "../store/Table.ts"
import type { Context, SpecialRule } from "./Rules.ts"
import { invoiceShipment } from "./orderInvoice.ts"
import { packagesOf } from "./packages.ts"

/** All lines of the shipment, even if it was cancelled since. */
const shippedLines = ({ store, company }: Context, { id }: Version) =>
  store
    .table(company, "shipmentlines")
    .where("shipmentid", id)
    .flatMap(({ values }) => {
      const lineId = values["orderlineid"]
      const orderline = typeof lineId === "number" ? store.table(company, "orderlines").get(lineId) : undefined
      return orderline === undefined ? [] : [{ orderline, quantity: say(values["quantity"]) }]
    })

export const shipmentSpecials: Readonly<Record<string, SpecialRule>> = {
  packages: {
    unknownId: "unknown_value",
    run: (context, shipment) => ({
      kind: "entries",
      entries: packagesOf(context, shipment).map((one) => JSON.stringify(one))
    })
  },
  invoice: {
    refuse: ({ readings }) => {
      if (readings.enableShipmentInvoice) return
      throw new ApiError("not_implemented", "shipments are not invoiced one by one yet: invoice the order")
    },
    run: invoiceShipment
  },
  pdf: {
    isFile: true,
    run: (context, shipment) => ({
      kind: "file",
      name: `packingslip-${shipment.id}.pdf`,
      bytes: packingSlipPdf(context, shipment, shippedLines(context, shipment))
    })
  },
  boxlabels: {
    isFile: true,
    run: (context, shipment) => ({
      kind: "file",
      name: `boxlabels-${shipment.id}.pdf`,
      bytes: boxLabelsPdf(context, shipment, packagesOf(context, shipment))
    })
  }
}
