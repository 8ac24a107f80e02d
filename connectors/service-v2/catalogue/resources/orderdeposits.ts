/**
 * Deposits against an order: ORDERDEPOSITS-01..34, write shape WRITE-15..16.
 *
 * payment_method is an integer, although its description mentions a method text (X-14, I-21). The posting date of the
 * write shape has no field of its own (I-06). bankdepositid, cctransactionid and ccterminalid are read-only here
 * (X-19).
 */
import {
  cancel,
  date,
  entrydate,
  externalid,
  id,
  integer,
  lastchangedate,
  money,
  pair,
  ref,
  string,
  text
} from "../fields.ts"
import { exact, partial, resource, write } from "../resource.ts"
import { paymentMethods } from "./payments.ts"

const maintained = "set by bank reconciliation or terminal"

export const orderdeposits = resource({
  path: "orderdeposits",
  area: "payments",
  purpose: "deposits against an order",
  basis: "documented",
  operations: "L C B",
  businessDate: { field: "entrydate" },
  fields: [
    id(),
    ref("orderid", "orders"),
    money("amount"),
    integer("payment_method", { values: paymentMethods, note: "method text carried from a web-store order" }),
    string("transaction_id", 32, { note: "gateway id" }),
    entrydate(),
    string("last4ofcard", 4, {
      readOnly: true,
      note: "last four digits; written by the card terminal; card brand and number are never returned"
    }),
    ref("voucherid", "vouchers", { readOnly: true, note: "set when the deposit posts" }),
    cancel(),
    lastchangedate(),
    integer("bankdepositid", { readOnly: true, note: maintained }),
    integer("cctransactionid", { readOnly: true, note: maintained }),
    integer("ccterminalid", { readOnly: true, note: maintained }),
    string("checkid", 100),
    date("bankstatement_enddate", { readOnly: true, note: "set by bank reconciliation" }),
    date("bankstatement_cleardate", { readOnly: true, note: "set by bank reconciliation" }),
    pair("checkacct", "checkaccounts", { by: "name", length: 30, note: "bank account" }),
    string("currency", 10),
    integer("returned", { note: "1 when bounced" }),
    money("bankfee_amount"),
    pair("bankfee_gl", "glaccounts", { by: "name", length: 20, note: "ledger account by id or name" }),
    string("rnum", 30),
    money("tendered"),
    text("notes"),
    externalid()
  ],
  filters: [exact("orderid"), partial("rnum")],
  modifiedSince: true,
  create: [
    write(ref("orderid", "orders"), { required: true }),
    write(money("amount"), { required: true, note: "cannot exceed the order value" }),
    write(date("date"), { sets: null, note: "posting date; default today" }),
    write(integer("method"), { sets: "payment_method", values: paymentMethods, note: "payment method id" }),
    write(string("reference", 100), { sets: "checkid" }),
    write(externalid())
  ]
})
