/** The printed documents of a shipment: the packing slip, which shows no prices, and a label for each carton (J-04). */
import type { Context } from "../rules/Rules.ts"
import type { Package } from "../rules/packages.ts"
import type { Version } from "../store/Table.ts"
import { shiptoLines } from "./parties.ts"
import { heading, pdf, say, table } from "./pdf.ts"

/** A line of the shipment with its order line. */
export interface Shipped {
  readonly orderline: Version
  readonly quantity: string
}

const head = ({ values }: Version): ReadonlyArray<string> => [
  `Order: ${say(values["orderid"])}`,
  `Shipped: ${say(values["shipdate"])}`,
  `From: ${say(values["location"])}`,
  values["carrierservice"] === undefined || values["carrierservice"] === null
    ? ""
    : `Carrier service: ${say(values["carrierservice"])}`
]

export const packingSlipPdf = (
  context: Context,
  shipment: Version,
  lines: ReadonlyArray<Shipped>
): Promise<Uint8Array> => {
  const title = `Packing slip ${shipment.id}`
  return pdf({ title, at: shipment.at }, (document) => {
    heading(document, title, [
      shipment.cancelled ? "CANCELLED" : "",
      ...head(shipment),
      ...shiptoLines(context, shipment.values["shiptoid"])
    ])
    table(
      document,
      [
        { title: "Item", width: 120 },
        { title: "Description", width: 260 },
        { title: "Quantity", width: 100, align: "right" }
      ],
      lines.map(({ orderline: { values }, quantity }) => [say(values["item"]), say(values["description"]), quantity])
    )
  })
}

/** Four by six inches, one carton per page. */
const label = [288, 432] as const

export const boxLabelsPdf = (
  context: Context,
  shipment: Version,
  packages: ReadonlyArray<Package>
): Promise<Uint8Array> => {
  const title = `Carton labels ${shipment.id}`
  return pdf({ title, size: label, at: shipment.at }, (document) => {
    for (const [index, { trackingnumber, weight }] of packages.entries()) {
      if (index > 0) document.addPage()
      heading(document, `Carton ${index + 1} of ${packages.length}`, [
        ...shiptoLines(context, shipment.values["shiptoid"]),
        `Shipment: ${shipment.id}`,
        ...head(shipment),
        `Weight: ${weight}`,
        trackingnumber === null ? "" : `Tracking: ${trackingnumber}`
      ])
    }
    if (packages.length === 0) heading(document, title, ["nothing was packed"])
  })
}
