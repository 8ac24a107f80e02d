/**
 * Invoice lines: INVOICELINES-01..65, write shape WRITE-07..09.
 *
 * The record has qty, priceach, taxflag; the write shape has quantity, price, taxable (INVOICELINES-62, I-06). There is
 * no cancel field (INVOICELINES-57). discount_percent and discountpercent are two fields. The targets of
 * itemoptionid, itemoptiongroupid, pricelevelid, worksubtypeid, returndetailid, discountid, itempricespecialdetailid,
 * taxflagid, taxflag2id, taxflag3id, arserviceorder_timeid and assetid are not in the catalogue: the values are stored
 * as given (I-29).
 */
import {
  boolean,
  date,
  entrydate,
  externalid,
  id,
  integer,
  lastchangedate,
  money,
  number,
  pair,
  qty,
  ref,
  string,
  values,
  words
} from "../fields.ts"
import { exact, partial, resource, write } from "../resource.ts"
import type { WriteField } from "../resource.ts"

const notResolved = "id of a record that this catalogue does not hold; stored as given"

/** The fields of a line in every write: alone, in a batch, or inside an invoice. */
export const invoiceLineWrite: ReadonlyArray<WriteField> = [
  write(ref("itemid", "items"), { note: "omit for a non-stock line and send description" }),
  write(string("description", 255), { note: "defaults to the item description" }),
  write(qty("quantity"), { required: true, sets: "qty", note: "up to 6 decimals" }),
  write(money("price", { dp: 6 }), { required: true, sets: "priceach", note: "unit price" }),
  write(boolean("taxable"), { sets: "taxflag", note: "whether the line attracts tax" }),
  write(externalid())
]

export const invoicelines = resource({
  path: "invoicelines",
  area: "invoices",
  purpose: "invoice lines",
  basis: "documented",
  operations: "L C B",
  businessDate: { through: "invoiceid" },
  fields: [
    id(),
    pair("invoice", "invoices", { by: "invoicenumber", length: 30, note: "invoice by id or invoicenumber" }),
    integer("linenumber", { note: "position on the document, from 1" }),
    pair("item", "items", { by: "sku", length: 255, note: "item by id or sku" }),
    string("description", 255, { note: "printed line text" }),
    qty("qty"),
    pair("qtyunitname", "qtyunits", { by: "unitname", length: 50, note: "unit by id or unitname" }),
    pair("glaccount", "glaccounts", { by: "name", length: 20, note: "ledger account by id or name" }),
    integer("taxflag", { note: "whether the first line tax applies" }),
    integer("taxflag2", { note: "whether the second line tax applies" }),
    integer("taxflag3", { note: "whether the third line tax applies" }),
    integer("taxflagid", { note: notResolved }),
    integer("taxflag2id", { note: notResolved }),
    integer("taxflag3id", { note: notResolved }),
    money("priceach", { dp: 6, note: "unit price" }),
    pair("priceunitname", "qtyunits", { by: "unitname", length: 50, note: "unit of the price, by id or unitname" }),
    qty("qtyunitperpriceunit"),
    money("totalprice"),
    entrydate({ note: "creation time; writable where the record itself is written" }),
    lastchangedate(),
    money("costeach", { dp: 6 }),
    pair("costglaccount", "glaccounts", { by: "name", length: 20, note: "cost account by id or name" }),
    ref("main_arinvoicedetailid", "invoicelines", { note: "the line that this one belongs to" }),
    integer("itemoptionid", { note: notResolved }),
    integer("itemoptiongroupid", { note: notResolved }),
    money("orig_priceach", { dp: 5 }),
    money("discount_amount", { dp: 5 }),
    number("discount_percent", { dp: 5, note: "not the same field as discountpercent" }),
    string("old_id", 255, { readOnly: true, note: "line id in the system imported from" }),
    integer("pricelevelid", { note: notResolved }),
    integer("price_override", { note: "1 when the price was manually overridden (repricing leaves it)" }),
    money("extended_price", { dp: 5 }),
    pair("worktype", "worktypes", { by: "name", length: 100, note: "work type by id or name" }),
    integer("worksubtypeid", { note: notResolved }),
    qty("returnqty"),
    integer("returndetailid", { note: notResolved }),
    integer("discountid", { note: notResolved }),
    number("discountpercent", { dp: 2, note: "not the same field as discount_percent" }),
    pair("inventorylocation", "inventorylocations", {
      by: "locationcode",
      length: 20,
      note: "inventory location by id or locationcode"
    }),
    date("linedate", { note: "service and rental lines" }),
    integer("linetype", {
      values: values({
        0: "standard product",
        1: "product-type tax",
        2: "delivery charge",
        3: "fuel charge",
        4: "restock fee",
        5: "billed expense"
      })
    }),
    pair("partialtaxexemption", "taxexemptions", {
      by: "exemptname",
      length: 32,
      note: "tax exemption by id or exemptname"
    }),
    pair("taxclass", "taxclasses", { by: "name", length: 100, note: "tax class by id or class name" }),
    ref("arorderdetailid", "orderlines", { note: "the order line that the line bills" }),
    integer("itempricespecialdetailid", { note: notResolved }),
    number("numperiods", { dp: 6 }),
    string("period", 1, {
      values: words({ D: "daily", W: "weekly", M: "monthly", "": "non-rental" }),
      note: "rental billing period; empty for non-rental"
    }),
    ref("producttypetaxid", "producttypetaxes"),
    date("rentalbegindate"),
    ref("arserviceorder_timeid", "serviceordertimes"),
    ref("assetid", "fixedassets"),
    ref("prpaytypeid", "prpaytypes"),
    number("prpaytypemultiplier", { dp: 2 }),
    externalid()
  ],
  filters: [exact("itemid", "inventorylocationid", "invoiceid"), partial("description")],
  modifiedSince: true,
  create: [
    write(ref("invoiceid", "invoices"), { required: true, note: "must be a DRAFT invoice" }),
    ...invoiceLineWrite
  ],
  // The invoice's total after the write (WRITE-09, I-05).
  answers: ["invoicetotal"],
  specials: [
    { method: "GET", name: "tax", scope: "invoices:read", purpose: "tax charged on the line, by jurisdiction" }
  ]
})
