/**
 * The PDF of a close: the content of its file for people.
 *
 * Promise: the same file gives the same pages. Every number is one of the file; the file alone is signed.
 */
import { plural } from "../text/Count.ts"
import type { Document, ResourceClose } from "./Document.ts"

type Pdf = PDFKit.PDFDocument

interface Column {
  readonly title: string
  readonly width: number
  readonly align?: "right"
}

type Row = ReadonlyArray<string>

const margin = 48
const fontSize = 8
const inset = 3
/** Sums of a resource that the page shows. */
const sumsMax = 3
/** Violations of a rule that the page shows. */
const violationsMax = 20
const digestShown = 12

/** The standard fonts have Latin-1 only. */
const printable = (text: string): string =>
  text
    .replaceAll("→", "->")
    .replaceAll(/[‘’]/g, "'")
    .replaceAll("–", "-")
    .replace(/[^\x20-\x7e\xa0-\xff]/gu, "?")

const count = (value: number): string => value.toLocaleString("en-US")

/** A decimal with groups of digits, without the zeros after its second decimal. */
export const amount = (value: string): string => {
  const [, sign = "", whole = "0", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(value) ?? []
  const kept = fraction.replace(/0+$/, "").padEnd(fraction === "" ? 0 : 2, "0")
  return `${sign}${whole.replaceAll(/\B(?=(\d{3})+$)/g, ",")}${kept === "" ? "" : `.${kept}`}`
}

const isZero = (value: string): boolean => /^-?0*(?:\.0*)?$/.test(value)

type Sum = readonly [field: string, value: string]

/** The largest first; equal ones by name. The order needs no exact digits. */
const bySize = ([name, one]: Sum, [otherName, other]: Sum): number =>
  Math.abs(Number(other)) - Math.abs(Number(one)) || (name < otherName ? -1 : 1)

const sumsText = (sums: Readonly<Record<string, string>>): string => {
  const shown = Object.entries(sums)
    .filter(([, value]) => !isZero(value))
    .sort(bySize)
  const rest = shown.length - sumsMax
  return (
    shown
      .slice(0, sumsMax)
      .map(([field, value]) => `${field} ${amount(value)}`)
      .join("\n") + (rest > 0 ? `\nand ${rest} more` : "")
  )
}

const bottomOf = (document: Pdf): number => document.page.height - document.page.margins.bottom

const heading = (document: Pdf, text: string): void => {
  if (document.y + 60 > bottomOf(document)) document.addPage()
  document.moveDown(0.8).font("Helvetica-Bold").fontSize(11).text(printable(text), margin).moveDown(0.3)
}

const paragraph = (document: Pdf, text: string): void => {
  document.font("Helvetica").fontSize(9).text(printable(text), margin)
}

/** Prints a table; its titles are repeated on each page. */
const table = (document: Pdf, columns: ReadonlyArray<Column>, rows: ReadonlyArray<Row>): void => {
  const draw = (row: Row, font: string) => {
    document.font(font).fontSize(fontSize)
    const lines = columns.map((_, index) => (row[index] ?? "").split("\n").map(printable).join("\n"))
    const options = ({ width, align }: Column) => ({
      width: width - 2 * inset,
      ...(align === undefined ? {} : { align })
    })
    const height =
      Math.max(...columns.map((column, index) => document.heightOfString(lines[index] || " ", options(column)))) + 4
    if (document.y + height > bottomOf(document)) {
      document.addPage()
      if (font === "Helvetica")
        draw(
          columns.map(({ title }) => title),
          "Helvetica-Bold"
        )
      document.font(font).fontSize(fontSize)
    }
    const { y } = document
    let x = margin
    for (const [index, column] of columns.entries()) {
      document.text(lines[index]!, x + inset, y + 2, options(column))
      x += column.width
    }
    document
      .moveTo(margin, y + height)
      .lineTo(x, y + height)
      .lineWidth(0.4)
      .strokeColor("#bbbbbb")
      .stroke()
    document.x = margin
    document.y = y + height
  }
  draw(
    columns.map(({ title }) => title),
    "Helvetica-Bold"
  )
  for (const row of rows) draw(row, "Helvetica")
}

const facts = (document: Pdf, rows: ReadonlyArray<readonly [string, string]>): void => {
  for (const [name, value] of rows) {
    const { y } = document
    document.font("Helvetica-Bold").fontSize(9).text(printable(name), margin, y, { width: 110 })
    document
      .font("Helvetica")
      .fontSize(9)
      .text(printable(value), margin + 115, y, { width: 385 })
  }
  document.x = margin
}

const head = (document: Pdf, close: Document): void => {
  const { company, period, state, signature } = close
  document
    .font("Helvetica-Bold")
    .fontSize(18)
    .text(printable(`Close of ${period.month}${close.draft ? " (draft)" : ""}`))
  document
    .font("Helvetica")
    .fontSize(12)
    .text(printable(`Company ${company.name} (${company.id})`))
    .moveDown(0.6)
  document
    .font("Helvetica-Bold")
    .fontSize(12)
    .fillColor(state === "clean" ? "#0a6b2d" : "#a11a1a")
    .text(state === "clean" ? "Clean: equal to the source, every critical invariant holds" : "With differences")
    .fillColor("black")
    .moveDown(0.4)
  for (const finding of close.findings) paragraph(document, `- ${finding}`)
  if (close.findings.length > 0) document.moveDown(0.4)
  facts(document, [
    ["Period", `${period.firstDay} to ${period.lastDay}, ${period.timeZone}; it ended at ${period.endsAt}`],
    ["Closed", `${close.closedAt}${close.revision === 1 ? "" : `, revision ${close.revision}`}`],
    ["State of", `position ${close.position} of the change feed`],
    ["Program", `${close.program.name} ${close.program.version}`],
    ["Installation", close.installation],
    ["Signed with", `${signature.algorithm}, key SHA-256 ${signature.fingerprint}`],
    ["Check it", "tributary close --verify FILE.json"]
  ])
}

const right = "right" as const

const countColumns: ReadonlyArray<Column> = [
  { title: "records", width: 50, align: right },
  { title: "cancelled", width: 48, align: right },
  { title: "sums", width: 130 },
  { title: "digest", width: 72 }
]

const figuresCells = ({ count: records, cancelled, sums, digest }: ResourceClose["table"]): Row => [
  count(records),
  cancelled === null || cancelled.count === 0 ? "" : count(cancelled.count),
  sumsText(sums),
  digest.slice(0, digestShown)
]

const resourceTables = (document: Pdf, { resources }: Document): void => {
  const dated = resources.flatMap(({ resource, businessDate, period }) =>
    period === null ? [] : [{ resource, businessDate, period }]
  )
  heading(document, "Records of the period")
  table(
    document,
    [{ title: "resource", width: 95 }, { title: "date", width: 105 }, ...countColumns],
    dated
      .filter(({ period }) => period.count > 0)
      .map(({ resource, businessDate, period }) => [resource, businessDate ?? "", ...figuresCells(period)])
  )
  const empty = dated.filter(({ period }) => period.count === 0).map(({ resource }) => resource)
  if (empty.length > 0) {
    document.moveDown(0.4)
    paragraph(document, `None in the period: ${empty.join(", ")}`)
  }
  heading(document, "Records without a date")
  table(
    document,
    [{ title: "resource", width: 200 }, ...countColumns],
    resources
      .filter((one) => one.period === null && one.table.count > 0)
      .map((one) => [one.resource, ...figuresCells(one.table)])
  )
}

const verificationTable = (document: Pdf, { verification }: Document): void => {
  const { resources, sample } = verification
  const equal = resources.filter(({ status }) => status === "equal")
  const records = equal.reduce((sum, { source }) => sum + source, 0)
  heading(document, "Verification against the source")
  paragraph(
    document,
    `${verification.beganAt} to ${verification.endedAt}: ${equal.length} of ${resources.length} resources equal, ` +
      `${plural(records, "record")}${sample === null ? "" : ` (a sample of ${sample.records} of each resource)`}.`
  )
  const others = resources.filter(({ status }) => status !== "equal")
  if (others.length === 0) return
  document.moveDown(0.3)
  table(
    document,
    [
      { title: "resource", width: 105 },
      { title: "state", width: 65 },
      { title: "missing", width: 50, align: right },
      { title: "surplus", width: 50, align: right },
      { title: "different", width: 50, align: right },
      { title: "reason", width: 180 }
    ],
    others.map((one) => [
      one.resource,
      one.status,
      count(one.missing),
      count(one.surplus),
      count(one.different),
      one.reason ?? ""
    ])
  )
}

const invariantTable = (document: Pdf, { invariants }: Document): void => {
  heading(document, "Invariants")
  table(
    document,
    [
      { title: "invariant", width: 130 },
      { title: "severity", width: 55 },
      { title: "violations", width: 55, align: right },
      { title: "meaning", width: 260 }
    ],
    invariants.map(({ name, severity, violations, rule, error }) => [
      name,
      severity,
      error === null ? count(violations) : "failed",
      rule
    ])
  )
  for (const { name, rows, violations } of invariants) {
    if (violations === 0) continue
    document.moveDown(0.4)
    paragraph(document, `Violations of ${name}`)
    const shown = rows.slice(0, violationsMax)
    for (const { resource, id, detail } of shown) paragraph(document, `- ${resource} ${id}: ${detail}`)
    if (violations > shown.length) paragraph(document, `and ${count(violations - shown.length)} more`)
  }
}

const modelTable = (document: Pdf, { models, period }: Document): void => {
  heading(document, `Models on ${period.lastDay}`)
  table(
    document,
    [
      { title: "model", width: 150 },
      { title: "rows", width: 55, align: right },
      { title: "sums", width: 223 },
      { title: "digest", width: 72 }
    ],
    models.map((one) => [one.model, count(one.count), sumsText(one.sums), one.digest.slice(0, digestShown)])
  )
}

/** The pages of a close. The library is loaded for the first one only. */
export const render = async (close: Document): Promise<Uint8Array> => {
  const { default: PdfDocument } = await import("pdfkit")
  const title = printable(`Close of ${close.period.month}, company ${close.company.name}`)
  const info = { Title: title, Creator: `tributary ${close.program.version}`, CreationDate: new Date(close.closedAt) }
  const document = new PdfDocument({ size: "A4", margin, info, bufferPages: true })
  const chunks: Array<Uint8Array> = []
  const whole = new Promise<Uint8Array>((resolve, reject) => {
    document.on("data", (chunk: Uint8Array) => chunks.push(chunk))
    document.on("end", () => resolve(Buffer.concat(chunks)))
    document.on("error", reject)
  })
  head(document, close)
  verificationTable(document, close)
  invariantTable(document, close)
  resourceTables(document, close)
  modelTable(document, close)
  const { count: pages } = document.bufferedPageRange()
  for (let page = 0; page < pages; page++) {
    document.switchToPage(page)
    // Text below the margin would begin another page.
    document.page.margins.bottom = 0
    document
      .font("Helvetica")
      .fontSize(7)
      .text(`${title}, page ${page + 1} of ${pages}`, margin, document.page.height - 30)
  }
  document.end()
  return whole
}
