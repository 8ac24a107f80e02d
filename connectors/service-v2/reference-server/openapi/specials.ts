/**
 * Schemas of the operations below a record (J-01..J-11): parameters, bodies and answers.
 *
 * The documents leave these forms open; each entry names its decision. A special without an entry is described as
 * answering any object.
 */
import { limits } from "../../catalogue/limits.ts"
import type { Schema } from "./Schema.ts"
import { exactly, nullable, refer } from "./Schema.ts"
import { page } from "./records.ts"
import { recordId, sentValue, shownDecimal } from "./values.ts"

export interface SpecialShape {
  readonly status: number
  readonly body: Schema | null
  readonly contentType: string
  readonly answer: Schema
  /** Whether the answer is one record, with its ETag. */
  readonly isRecord: boolean
  /** Query parameters by name. */
  readonly query: Readonly<Record<string, Schema>>
  /** Codes of 409, 415, 422 and 501 that it can answer. */
  readonly codes: ReadonlyArray<string>
}

const json = "application/json"
const text: Schema = { type: ["string", "null"] }
const whole: Schema = { type: ["integer", "null"] }
const money = nullable(shownDecimal(4))
const qty = nullable(shownDecimal(6))
/** The sum over records may have more digits than a single value. */
const sum = (scale: number): Schema => ({ type: "string", pattern: `^-?(?:0|[1-9][0-9]*)\\.[0-9]{${scale}}$` })
const day: Schema = { type: ["string", "null"], format: "date" }

const shape = (answer: Schema, more: Partial<SpecialShape> = {}): SpecialShape => ({
  status: 200,
  body: null,
  contentType: json,
  answer,
  isRecord: false,
  query: {},
  codes: [],
  ...more
})

const pdf = (codes: ReadonlyArray<string> = []): SpecialShape =>
  shape({ type: "string", contentMediaType: "application/pdf" }, { contentType: "application/pdf", codes })

const nothing: Schema = {
  type: ["object", "null"],
  additionalProperties: false,
  description: "nothing is taken: leave it out, or send {}"
}

const invoiceDate: Schema = {
  type: ["object", "null"],
  properties: { invoicedate: nullable(sentValue({ type: { _tag: "date" }, values: null })) },
  additionalProperties: false
}

const posting = (owner: string, already: string): SpecialShape =>
  shape(refer(owner), { body: nothing, isRecord: true, codes: [already, "period_closed", "rule_violation"] })

const shapes: Readonly<Record<string, SpecialShape>> = {
  // J-01
  "shipments/packages": shape(
    page(exactly({ id: recordId, trackingnumber: text, weight: qty, carriercharge: money }), false),
    { codes: ["unknown_value"] }
  ),
  // J-02: not implemented by default (501); 201 only with its switch.
  "shipments/invoice": shape(refer("invoices"), {
    status: 201,
    body: invoiceDate,
    isRecord: true,
    codes: ["not_implemented", "shipment_already_invoiced", "nothing_to_invoice"]
  }),
  // J-03
  "orders/invoice": shape(refer("invoices"), {
    status: 201,
    body: invoiceDate,
    isRecord: true,
    codes: ["cannot_invoice_quote", "nothing_to_invoice", "period_closed", "rule_violation"]
  }),
  // J-04
  "shipments/pdf": pdf(),
  "shipments/boxlabels": pdf(),
  "invoices/pdf": pdf(["not_posted"]),
  // J-05
  "invoicelines/tax": shape(
    page(exactly({ authority: text, rate: qty, taxableamount: money, exemptamount: money, taxamount: money }), false),
    { codes: ["unknown_value"] }
  ),
  // J-06
  "payments/receipt": shape(
    exactly({
      paymentid: recordId,
      invoiceid: whole,
      invoice: text,
      customerid: whole,
      amount: money,
      datereceived: day,
      paymeth: whole,
      checkid: text,
      voucher: text
    })
  ),
  // J-07
  "invoices/post": posting("invoices", "invoice_already_posted"),
  "apbills/post": posting("apbills", "apbill_already_posted"),
  // J-09
  "customers/balance": shape(
    exactly({
      customerid: recordId,
      balance: sum(4),
      openinvoices: { type: "integer", minimum: 0 },
      creditlimit: money
    })
  ),
  // J-10
  "items/stock": shape(
    exactly({
      itemid: recordId,
      locations: {
        type: "array",
        items: exactly({
          inventorylocationid: recordId,
          inventorylocation: text,
          onhand: sum(6),
          committed: sum(6),
          available: sum(6)
        })
      }
    })
  )
}

/** G-07: a batch cannot contain a file. */
const fileBatch = shape({ not: {} }, { status: 415, codes: ["not_batchable"] })

const anything = shape({ type: "object" }, { codes: ["rule_violation", "unknown_value"] })

export const specialShape = (owner: string, special: string): SpecialShape =>
  special.endsWith("/batch") ? fileBatch : (shapes[`${owner}/${special}`] ?? anything)

/** Page size parameter of the special lists. */
export const pageSize: Schema = { type: "integer", minimum: 1, maximum: limits.pageRecordsMax }
