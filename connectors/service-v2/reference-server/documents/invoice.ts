/** The printed invoice (J-04). */
import type { Context } from "../rules/Rules.ts"
import type { Version } from "../store/Table.ts"
import { customerLines } from "./parties.ts"
import { heading, pdf, say, table } from "./pdf.ts"

export const invoicePdf = (context: Context, invoice: Version, lines: ReadonlyArray<Version>): Promise<Uint8Array> => {
  const { values } = invoice
  const title = `Invoice ${say(values["invoicenumber"])}`
  return pdf({ title, at: invoice.at }, (document) => {
    heading(document, title, [
      invoice.cancelled ? "CANCELLED" : "",
      ...customerLines(context, values["customerid"]),
      `Date: ${say(values["invoicedate"])}`,
      `Voucher: ${say(values["voucher"])}`
    ])
    table(
      document,
      [
        { title: "Item", width: 90 },
        { title: "Description", width: 200 },
        { title: "Quantity", width: 70, align: "right" },
        { title: "Price", width: 70, align: "right" },
        { title: "Total", width: 74, align: "right" }
      ],
      lines.map((line) =>
        ["item", "description", "qty", "priceach", "totalprice"].map((name) => say(line.values[name]))
      )
    )
    document.font("Helvetica-Bold").fontSize(11)
    document.text(`Total: ${say(values["invoicetotal"])}`)
    document.text(`Paid: ${say(values["invoicepaid"])}`)
  })
}
