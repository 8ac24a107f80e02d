/**
 * PDF pages of printed documents.
 *
 * Promise: the same record gives the same bytes. The library is loaded for the first document only, so that nothing
 * else waits for it.
 */

export type Document = PDFKit.PDFDocument

/** The text that a page can show: the standard fonts have Latin-1 only. */
const printable = (text: string): string => text.replace(/[^\x20-\x7e\xa0-\xff]/gu, "?")

export const say = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? printable(String(value)) : ""

export interface PageOptions {
  readonly title: string
  /** Width and height in points; default: letter. */
  readonly size?: readonly [width: number, height: number]
  /** Time of the record's last write, in microseconds: the date of the document. */
  readonly at: number
}

/** Makes a document; `draw` begins on its first page. */
export const pdf = async (options: PageOptions, draw: (document: Document) => void): Promise<Uint8Array> => {
  const { default: Pdf } = await import("pdfkit")
  const size = options.size === undefined ? "letter" : [...options.size]
  const margin = options.size === undefined ? 54 : 18
  const date = new Date(Math.floor(options.at / 1000))
  const info = { Title: printable(options.title), Creator: "Service API v2", CreationDate: date }
  const document = new Pdf({ size, margin, info })
  const chunks: Array<Uint8Array> = []
  const whole = new Promise<Uint8Array>((resolve, reject) => {
    document.on("data", (chunk: Uint8Array) => chunks.push(chunk))
    document.on("end", () => resolve(Buffer.concat(chunks)))
    document.on("error", reject)
  })
  draw(document)
  document.end()
  return whole
}

/** Prints a heading and the lines below it. */
export const heading = (document: Document, title: string, lines: ReadonlyArray<string>): void => {
  document.font("Helvetica-Bold").fontSize(18).text(printable(title))
  document.font("Helvetica").fontSize(10).moveDown(0.5)
  for (const line of lines) if (line !== "") document.text(printable(line))
  document.moveDown()
}

export interface Column {
  readonly title: string
  readonly width: number
  readonly align?: "left" | "right"
}

/** Prints rows below their titles; pages follow as needed. */
export const table = (
  document: Document,
  columns: ReadonlyArray<Column>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): void => {
  const { left, bottom } = document.page.margins
  const row = (cells: ReadonlyArray<string>, font: string) => {
    document.font(font).fontSize(9)
    const heights = columns.map(({ width }, index) => document.heightOfString(cells[index] ?? "", { width: width - 6 }))
    const height = Math.max(12, ...heights) + 4
    if (document.y + height > document.page.height - bottom) document.addPage()
    const { y } = document
    let x = left
    for (const [index, { width, align }] of columns.entries()) {
      document.text(printable(cells[index] ?? ""), x, y, { width: width - 6, align: align ?? "left" })
      x += width
    }
    document.x = left
    document.y = y + height
  }
  row(
    columns.map(({ title }) => title),
    "Helvetica-Bold"
  )
  for (const cells of rows) row(cells, "Helvetica")
  document.moveDown()
}
