/** What happens to the reference server between two moments, and the moments of that history. */
import * as Effect from "effect/Effect"
import { exact, type Json } from "./figures.ts"
import { openOf } from "./figures/records.ts"
import { type Demo, makeDemo, type Moment, resources } from "./moments.ts"
import { copyToCompany2, irregularities, today, vanish as vanishOfOperations, work } from "./operating.ts"

const isUnpaid = (invoice: Json) => (invoice["voucherid"] ?? null) !== null && openOf(invoice) > 20n * 10n ** 12n

/** Changes through the API, as a person makes them: payments, a write-off, deposits, bills, purchase orders. */
export const trade = ({ call, one }: Demo) => {
  const invoice = one("invoices", isUnpaid)
  const part = call("POST", "/payments", { invoiceid: invoice["id"], amount: "10.01", method: 1 })
  call("POST", "/payments", { invoiceid: invoice["id"], amount: "0.0001", method: 99, date: today })
  call("POST", "/payments", { invoiceid: invoice["id"], amount: "1.5", method: 5, date: "2026-03-01" })
  const order = one("orders", (record) => record["status"] === "open" && exact(record["ordertotal"]) > 10n * 10n ** 12n)
  call("POST", "/orderdeposits", { orderid: order["id"], amount: "2.25", method: 2, reference: "D1" })
  const vendorid = one("vendors")["id"]
  const bill = call("POST", "/apbills", { vendorid, billtotal: "100", billdate: "2026-02-28" })
  call("POST", "/apbilllines", { apbillid: bill["id"], glaccount: "Bank fees", amount: "99.9999" })
  call("POST", "/purchaseorders", { vendorid, lines: [{ description: "Sand", qtyorder: "3", priceach: "1.25" }] })
  return { part, bill, order }
}

/** Reverses what {@link trade} did: a payment, an invoice and the unposted state of the bill. */
const reverse = ({ call, one }: Demo, { part, bill }: ReturnType<typeof trade>) => {
  call("DELETE", `/payments/${String(part["id"])}`)
  call("POST", `/apbills/${String(bill["id"])}/post`)
  const unpaid = (record: Json) => isUnpaid(record) && exact(record["invoicepaid"]) === 0n
  call("DELETE", `/invoices/${String(one("invoices", unpaid)["id"])}`)
}

/** Records that the API cannot write: bank deposits, taxes, retainage, returned money, missing and odd values. */
export const odd = ({ put, one }: Demo) => {
  const invoice = one("invoices", isUnpaid)
  const posted = { customerid: invoice["customerid"], voucherid: invoice["voucherid"], invoicetotal: "10.0000" }
  const [credit, , , , huge, , cancelled, draft] = put("invoices", [
    { ...posted, invoicedate: "2026-01-31", invoicetotal: "-7.2500" },
    { ...posted, invoicedate: null },
    { ...posted, invoicedate: "2026-02-01", invoicepaid: "4.0000" },
    { ...posted, invoicedate: "2026-02-01", customerid: null, customer: null },
    { ...posted, invoicedate: "2025-12-31", invoicetotal: "9999999999999999.9999" },
    { ...posted, invoicedate: "2030-06-30", invoicetotal: null },
    { ...posted, invoicedate: "2026-02-01", cancel: true },
    { ...posted, invoicedate: "2026-02-01", voucherid: null, voucher: null },
    { ...posted, invoicedate: "2026-01-31", invoicetotal: "-1.0000" },
    { ...posted, invoicedate: "2026-01-31", invoicetotal: "10.0000", invoicepaid: "10.0001" },
    { ...posted, invoicedate: "2026-01-31", customerid: 999_999, customer: "GONE" },
    { ...posted, invoicedate: "2025-12-31", invoicetotal: "9999999999999999.9999" },
    { ...posted, invoicedate: "2026-02-01", cancel: null }
  ])
  put("customers", [{ customercode: "NOLIMIT", creditlimit: null }])
  const [account] = put("bankaccounts", [{ name: "Main" }])
  const banks = put("bankdeposits", [
    { bankaccountid: account!["id"], depositdate: "2026-02-03", amount: "12.0000" },
    { bankaccountid: 999_999, depositdate: null, amount: null },
    { bankaccountid: account!["id"], amount: "1.0000", cancel: true },
    { bankaccountid: account!["id"], amount: "1.0000" }
  ])
  const accounts = put("checkaccounts", [{ name: "Odd" }, { name: "Even" }])
  const deposit = { orderid: one("orders")["id"], amount: "8.0000", payment_method: 2, currency: "USD", returned: 0 }
  const voucherid = put("vouchers", [{ voucher: "DP-odd", date: "2026-02-02" }])[0]!["id"]
  const deposits = put("orderdeposits", [
    {
      ...deposit,
      voucherid,
      bankdepositid: banks[0]!["id"],
      checkacctid: accounts[0]!["id"],
      bankfee_amount: "0.5000"
    },
    { ...deposit, voucherid, returned: 1, bankdepositid: banks[0]!["id"], amount: "1.0000" },
    { ...deposit, voucherid: 999_999, amount: "9999999999999999.9999" },
    { ...deposit, voucherid, currency: "EUR" },
    { ...deposit, voucherid, orderid: null, payment_method: null },
    { ...deposit, voucherid, orderid: 999_999, payment_method: 99 },
    { ...deposit, voucherid, returned: null, amount: null, currency: null },
    { ...deposit, voucherid, returned: null, amount: "4.0000", currency: null },
    { ...deposit, voucherid, cancel: true, bankdepositid: banks[0]!["id"] }
  ])
  const payment = {
    invoiceid: invoice["id"],
    datereceived: "2026-02-02",
    amount: "3.0000",
    currency: "USD",
    paymeth: 2
  }
  put("payments", [
    { ...payment, bankdepositid: banks[0]!["id"], checkaccountid: accounts[0]!["id"], bankfee_amount: "0.2500" },
    { ...payment, bankdepositid: 777_777, checkaccountid: accounts[1]!["id"], returned: 1, currency: "EUR" },
    { ...payment, orderdepositid: deposits[0]!["id"], bankstatement_cleardate: "2026-02-20" },
    { ...payment, orderdepositid: deposits[3]!["id"], amount: "8.5000" },
    { ...payment, inventorylocationid: 1, paymeth: 1, bankstatement_cleardate: "2026-02-20" },
    { ...payment, paymeth: 7, datereceived: null },
    { ...payment, paymeth: null, amount: null, currency: null },
    { ...payment, paymeth: 99, invoiceid: credit!["id"], amount: "-7.2500" },
    { ...payment, invoiceid: huge!["id"], datereceived: "2026-03-31", amount: "-1.0000" },
    { ...payment, cancel: true },
    { ...payment, invoiceid: 999_999 },
    { ...payment, invoiceid: cancelled!["id"] },
    { ...payment, invoiceid: draft!["id"] },
    { ...payment, bankdepositid: banks[0]!["id"], cancel: true },
    { ...payment, bankdepositid: banks[3]!["id"], amount: "0.5000", returned: 0 },
    { ...payment, bankdepositid: banks[3]!["id"], amount: "0.5000", returned: 0 },
    { ...payment, orderdepositid: deposits[0]!["id"], cancel: true },
    { ...payment, invoiceid: null }
  ])
  put("ardailycloses", [
    { closedate: "2026-02-02", inventorylocationid: 1, currency: "USD", sys_cash: "3.5000", sys_cc: "2.0000" },
    { closedate: "2026-02-02", inventorylocationid: 1, currency: "USD", sys_checks: "1.0000" },
    { closedate: "2026-02-02", inventorylocationid: null, currency: null, sys_checks: "1.0000" },
    { closedate: "2026-02-02", inventorylocationid: 1, currency: "USD", sys_cash: "0.5000", sys_cc: "0.5000" },
    { closedate: "2026-02-02", inventorylocationid: 1, currency: "USD", sys_checks: "0.2500" },
    { closedate: "2026-02-02", inventorylocationid: 1, currency: "USD", sys_cash: "7.0000", cancel: true },
    { closedate: null, inventorylocationid: null, currency: "USD", sys_cash: "1.0000" }
  ])
  const taxes = put("producttypetaxes", [{ name: "Tyres", taxrate: "1.5", states: "OR" }])
  const line = { invoiceid: huge!["id"], linetype: 0, qty: "1.000000", totalprice: "20.0000" }
  const exemption = put("taxexemptions", [{ exemptname: "School", rate: "50" }])[0]!
  put("invoicelines", [
    { ...line, linetype: 1, producttypetaxid: taxes[0]!["id"], totalprice: "0.3000" },
    { ...line, linetype: 1, producttypetaxid: taxes[0]!["id"], totalprice: "0.4000" },
    { ...line, linetype: 1, invoiceid: cancelled!["id"], producttypetaxid: taxes[0]!["id"] },
    { ...line, linetype: 1, invoiceid: draft!["id"], producttypetaxid: taxes[0]!["id"] },
    { ...line, linetype: 1, producttypetaxid: null, totalprice: null },
    { ...line, linetype: 1, producttypetaxid: 999_999, totalprice: "-1.0000" },
    { ...line, taxflag: 1, taxflagid: 7, taxflag2: 1, taxflag2id: 8, taxflag3: 0, taxflag3id: 9 },
    { ...line, taxflag: 1, taxflagid: 7, partialtaxexemptionid: exemption["id"] },
    { ...line, taxflag: null, taxflag3: 1, totalprice: "-2.5000", taxclassid: 1 },
    { ...line, linetype: null, taxflag: 0, totalprice: null },
    { ...line, linetype: 2, totalprice: "3.0000" },
    { ...line, linetype: 4, qty: "-2.500000", totalprice: "-7.2500", qtyunitnameid: 5 },
    { ...line, invoiceid: 999_999 },
    { ...line, invoiceid: null }
  ])
  put("rmareturns", [
    { return_date: "2026-02-28", invoiceid: credit!["id"], total_credit: "1.00001", taxid: 7, taxcredit: "0.10001" },
    { return_date: "2026-03-01", invoiceid: null, total_credit: "1", taxcredit2: "-0.2", taxcredit3: "0", voucherid },
    { return_date: null, invoiceid: invoice["id"], total_credit: null, taxid3: 9, voucherid },
    { return_date: "2026-02-28", invoiceid: credit!["id"], total_credit: "2" },
    { return_date: "2026-03-01", invoiceid: cancelled!["id"], total_credit: "3" },
    { return_date: "2026-03-01", invoiceid: draft!["id"], total_credit: "4" },
    { return_date: "2026-03-01", invoiceid: invoice["id"], total_credit: "5", taxid: 7, cancel: true }
  ])
  const vendorid = one("vendors")["id"]
  const bills = put("apbills", [
    { vendorid, billdate: "2026-01-01", billtotal: "50.0000", voucherid },
    { vendorid, billdate: "2026-01-01", billtotal: "-5.0000", voucherid: 999_999 },
    { vendorid, billdate: null, billtotal: "5.0000", voucherid },
    { vendorid, billdate: "2027-01-01", billtotal: null, voucherid },
    { vendorid: null, billdate: null, billtotal: null },
    { vendorid: 999_999, vendor: "GONE", billdate: "2026-01-01", billtotal: "1.0000", voucherid },
    { vendorid, billdate: "2026-01-01", billtotal: "1.0000", voucherid, cancel: true }
  ])
  put("apbilllines", [
    { apbillid: bills[0]!["id"], amount: "5.0000", isretainer: 1, glaccountid: 1 },
    { apbillid: bills[0]!["id"], amount: "45.0000", isretainer: 0, glaccountid: 1 },
    { apbillid: bills[0]!["id"], amount: null, isretainer: 1, glaccountid: 1 }
  ])
  put("purchaseorders", [
    { vendorid, orderdate: null, ordertotal: "3.0000" },
    { vendorid: null, orderdate: "2026-02-01", ordertotal: null },
    { vendorid, orderdate: "2026-02-01", ordertotal: "-3.0000", complete: true },
    { vendorid, orderdate: "2026-02-01", ordertotal: "9.0000", cancel: true }
  ])
  return { huge, banks, voucherid, vendorid, deposits, bills, taxes }
}

/** Records disappear without trace, as the source sometimes loses them. */
export const vanish = ({ remove, one }: Demo, made: ReturnType<typeof odd>, order: Json) => {
  remove("bankdeposits", made.banks[0]!["id"])
  remove("vouchers", made.voucherid)
  remove("vendors", made.vendorid)
  remove("orderdeposits", made.deposits[3]!["id"])
  remove("orders", order["id"])
  remove("apbills", made.bills[0]!["id"])
  remove("producttypetaxes", made.taxes[0]!["id"])
  remove("payments", one("payments", (record) => record["paymeth"] === 99)["id"])
  remove("rmareturns", one("rmareturns", (record) => record["taxid"] === 7)["id"])
  remove("invoices", made.huge!["id"])
}

/** The moments of one seed, each after other changes. */
export const momentsOf = Effect.fnUntraced(function* (seed: number) {
  const demo = makeDemo(seed)
  const moments: Array<Moment> = [yield* demo.synced("demo")]
  const traded = trade(demo)
  moments.push(yield* demo.synced("traded"))
  reverse(demo, traded)
  moments.push(yield* demo.synced("reversed"))
  const made = odd(demo)
  moments.push(yield* demo.synced("odd"))
  for (const step of [0, 1, 2, 3]) {
    work(demo, step)
    moments.push(yield* demo.synced(`after step ${step}`))
  }
  irregularities(demo)
  moments.push(yield* demo.synced("irregular"))
  copyToCompany2(demo, resources)
  moments.push(yield* demo.synced("the same numbers in another company"))
  vanish(demo, made, traded.order)
  vanishOfOperations(demo)
  moments.push(yield* demo.synced("vanished"))
  return moments
})
