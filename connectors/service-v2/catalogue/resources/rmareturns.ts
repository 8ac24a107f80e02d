/**
 * Returned lines against a return authorization: RMARETURNS-01..22.
 *
 * taxid, taxid2 and taxid3 have no target in this catalogue and are stored as given (I-29). There is no
 * lastchangedate, so that there is no modifiedsince (RMARETURNS-21); updates still honour If-Match (RMARETURNS-22).
 */
import { cancel, date, entrydate, externalid, id, integer, money, pair, ref } from "../fields.ts"
import { exact, resource } from "../resource.ts"

export const rmareturns = resource({
  path: "rmareturns",
  area: "orders",
  purpose: "returned lines against a return authorization",
  basis: "documented",
  operations: "L C B R U D",
  businessDate: { field: "return_date" },
  fields: [
    id(),
    ref("rma_arorderid", "orders", { note: "the order returned against" }),
    date("return_date", { typed: false }),
    integer("taxid", { note: "sales tax; stored as given" }),
    integer("taxid2", { note: "second sales tax; stored as given" }),
    integer("taxid3", { note: "third sales tax; stored as given" }),
    money("taxcredit", { dp: 5 }),
    money("taxcredit2", { dp: 5 }),
    money("taxcredit3", { dp: 5 }),
    money("shipping_credit", { dp: 5 }),
    money("restock_fee", { dp: 5 }),
    money("total_credit", { dp: 5 }),
    pair("invoice", "invoices", { by: "invoicenumber", length: 30, note: "invoice by id or invoicenumber" }),
    pair("voucher", "vouchers", { by: "voucher", length: 50, note: "ledger voucher" }),
    ref("new_orderid", "orders", { typed: false, note: "the order made in exchange" }),
    cancel(),
    entrydate({ typed: false }),
    externalid()
  ],
  filters: [exact("invoiceid")],
  // A return credits its invoice (total_credit, RMARETURNS-14, beside the pair of RMARETURNS-15) and shows its number.
  // That the invoice changes then is likely, but not documented; I-26 has no side effects.
  parent: { resource: "invoices", field: "invoiceid" }
})
