/** The figures of the views of cash, deposits and taxes, computed without SQL. This module shares no code with the product. */
import {
  active,
  type Books,
  earliest,
  exact,
  find,
  grouped,
  isAfter,
  isPosted,
  type Json,
  latest,
  methods,
  money,
  monthOf,
  openOf,
  posted,
  type Row,
  shown,
  sum,
  sums,
  text,
  texts
} from "./records.ts"

const has = (record: Json, field: string): boolean => (record[field] ?? null) !== null

const kindOf = (method: unknown): string => {
  const number = Number(method ?? 0)
  return number === 1 ? "cash" : number === 2 || number === 3 || number === 5 ? "checks and cards" : "other"
}

/** With the day, location and currency that a close is of. */
const placed = (one: Json): Json => ({
  ...one,
  place: JSON.stringify([one["day"] ?? null, one["inventorylocationid"] ?? null, one["currency"] ?? null])
})

/** Payments and deposits in one form. */
const moneyOf = (books: Books, asOf: string): ReadonlyArray<Json> =>
  [
    ...active(books, "payments")
      .filter((payment) => payment["paymeth"] !== 99)
      .map((payment) => ({
        ...payment,
        day: payment["datereceived"],
        method: payment["paymeth"] ?? 0,
        accountid: payment["checkaccountid"] ?? null,
        account: payment["checkaccount"],
        isNew: !has(payment, "orderdepositid")
      })),
    ...active(books, "orderdeposits")
      .filter((deposit) => deposit["payment_method"] !== 99)
      .map((deposit) => ({
        ...deposit,
        day: find(books, "vouchers", deposit["voucherid"])?.["date"],
        method: deposit["payment_method"] ?? 0,
        accountid: deposit["checkacctid"] ?? null,
        account: deposit["checkacct"],
        isNew: true,
        isDeposit: true
      }))
  ]
    .filter(({ day }) => !isAfter(day, asOf))
    .map(placed)

const cash_by_account = (books: Books, asOf: string): ReadonlyArray<Row> => {
  const all = moneyOf(books, asOf)
  const closes = new Map(
    grouped(
      active(books, "ardailycloses")
        .filter(({ closedate }) => !isAfter(closedate, asOf))
        .map((close) => placed({ ...close, day: close["closedate"] })),
      (close) => close["place"]
    ).map((group) => [group[0]!["place"], group])
  )
  const paidOf = new Map(
    grouped(
      all.filter((one) => one["isDeposit"] !== true),
      (one) => `${String(one["place"])} ${kindOf(one["method"])}`
    ).map((group) => [`${String(group[0]!["place"])} ${kindOf(group[0]!["method"])}`, sum(group, "amount")])
  )
  return grouped(all, (one) => [one["place"], one["method"], one["accountid"]]).map((group) => {
    const first = group[0]!
    const paid = group.filter((one) => one["isDeposit"] !== true)
    const deposited = group.filter((one) => one["isDeposit"] === true)
    const received = group.filter((one) => one["isNew"] === true)
    const of = (fits: (one: Json) => boolean) => shown(sum(received.filter(fits), "amount"))
    const kind = kindOf(first["method"])
    const closed = closes.get(first["place"]) ?? []
    const figure =
      closed.length === 0 || kind === "other"
        ? null
        : kind === "cash"
          ? sum(closed, "sys_cash")
          : sum(closed, "sys_checks") + sum(closed, "sys_cc")
    const paidOfKind = paidOf.get(`${String(first["place"])} ${kind}`) ?? 0n
    return {
      ...texts(first, "day location_id=inventorylocationid location=inventorylocation method account_id=accountid"),
      ...texts(first, "account currency"),
      method_name: methods[Number(first["method"])] ?? "other",
      payments: String(paid.length),
      paid: shown(sum(paid, "amount")),
      from_deposits: shown(sum(paid, "amount", (one) => has(one, "orderdepositid"))),
      deposits: String(deposited.length),
      deposited: shown(sum(deposited, "amount")),
      ...sums(received, "received=amount bank_fees=bankfee_amount"),
      returned: of((one) => one["returned"] === 1),
      banked: of((one) => has(one, "bankdepositid")),
      cleared: of((one) => has(one, "bankstatement_cleardate") && !isAfter(one["bankstatement_cleardate"], asOf)),
      kind,
      closes: String(closed.length),
      closed: figure === null ? null : shown(figure),
      close_difference: figure === null ? null : shown(figure - paidOfKind)
    }
  })
}

const bank_deposit_check = (books: Books, asOf: string): ReadonlyArray<Row> => {
  const payments = active(books, "payments").filter((one) => has(one, "bankdepositid"))
  const deposits = active(books, "orderdeposits").filter((one) => has(one, "bankdepositid"))
  const ids = new Set([
    ...books.of("bankdeposits").map(({ id }) => id),
    ...[...payments, ...deposits].map((one) => one["bankdepositid"])
  ])
  return [...ids].flatMap((id) => {
    const bank = find(books, "bankdeposits", id)
    const paid = payments.filter((one) => one["bankdepositid"] === id)
    if (isAfter(bank?.["depositdate"] ?? earliest(paid, "datereceived"), asOf)) return []
    const deposited = deposits.filter((one) => one["bankdepositid"] === id)
    const all = [...paid, ...deposited]
    const difference = exact(bank?.["amount"]) - sum(all, "amount")
    return {
      bank_deposit_id: text(id),
      ...texts(bank, "account_id=bankaccountid depositdate"),
      account: text(find(books, "bankaccounts", bank?.["bankaccountid"])?.["name"]),
      status:
        bank === undefined
          ? "missing"
          : bank["cancel"] === true
            ? "cancelled"
            : all.length === 0
              ? "empty"
              : difference === 0n
                ? "agrees"
                : "differs",
      amount: money(bank?.["amount"]),
      payments: String(paid.length),
      payments_total: shown(sum(paid, "amount")),
      deposits: String(deposited.length),
      deposits_total: shown(sum(deposited, "amount")),
      difference: shown(difference),
      returned: shown(sum(all, "amount", (one) => one["returned"] === 1)),
      bank_fees: shown(sum(all, "bankfee_amount")),
      currencies: String(new Set(all.filter((one) => has(one, "currency")).map((one) => one["currency"])).size),
      first_received: earliest(paid, "datereceived"),
      last_received: latest(paid, "datereceived")
    }
  })
}

const deposits_by_order = (books: Books): ReadonlyArray<Row> =>
  grouped(active(books, "orderdeposits"), (deposit) => [deposit["orderid"], deposit["currency"]]).map((group) => {
    const orderid = group[0]!["orderid"] ?? null
    const order = find(books, "orders", orderid)
    const kept = group.filter((deposit) => deposit["returned"] !== 1)
    const ids = new Set(kept.map(({ id }) => id))
    const deposited = sum(kept, "amount")
    const applied = sum(active(books, "payments"), "amount", (payment) => ids.has(payment["orderdepositid"]))
    const over = deposited - exact(order?.["ordertotal"])
    const isCancelled = order === undefined || order["cancel"] === true
    const invoices = posted(books).filter((invoice) => orderid !== null && invoice["orderid"] === orderid)
    const state = () => {
      if (kept.length === 0) return "returned"
      if (isCancelled) return "order cancelled"
      if (over > 0n) return "over-deposited"
      return applied > deposited ? "over-applied" : applied < deposited ? "open" : "applied"
    }
    return {
      order_id: text(orderid),
      ...texts(order, "ordertype order_status=status orderdate customer_id=customerid customer"),
      order_cancelled: String(isCancelled),
      currency: text(group[0]!["currency"]),
      deposit_status: state(),
      ordertotal: shown(exact(order?.["ordertotal"])),
      deposits: String(kept.length),
      deposited: shown(deposited),
      over_deposited: shown(over > 0n ? over : 0n),
      applied: shown(applied),
      remaining: shown(deposited - applied),
      returned: shown(sum(group, "amount") - deposited),
      order_invoiced: shown(sum(invoices, "invoicetotal")),
      order_open: shown(invoices.reduce((total, invoice) => total + openOf(invoice), 0n))
    }
  })

/** Lines of invoices that count, with the invoice's month. */
const invoicedLines = (books: Books): ReadonlyArray<Json> => {
  const invoices = new Map(posted(books).map((invoice) => [invoice["id"], invoice]))
  return books.of("invoicelines").flatMap((line) => {
    const invoice = invoices.get(line["invoiceid"])
    return invoice === undefined ? [] : [{ ...line, month: monthOf(invoice["invoicedate"]) }]
  })
}

const countOfInvoices = (lines: ReadonlyArray<Json>): string =>
  String(new Set(lines.map((line) => line["invoiceid"])).size)

const product_taxes_by_month = (books: Books): ReadonlyArray<Row> =>
  grouped(
    invoicedLines(books).filter((line) => line["linetype"] === 1),
    (line) => [line["month"], line["producttypetaxid"]]
  ).map((lines) => {
    const tax = find(books, "producttypetaxes", lines[0]!["producttypetaxid"])
    return {
      ...texts(lines[0], "month tax_id=producttypetaxid"),
      ...texts(tax, "tax=name states account=glaccount"),
      rate: money(tax?.["taxrate"]),
      invoices: countOfInvoices(lines),
      lines: String(lines.length),
      amount: shown(sum(lines, "totalprice"))
    }
  })

const taxable_sales_by_month = (books: Books): ReadonlyArray<Row> => {
  const taxed = invoicedLines(books)
    .filter((line) => line["linetype"] !== 1)
    .flatMap((line) => {
      const places = ["taxflag", "taxflag2", "taxflag3"].flatMap((flag, index) =>
        Number(line[flag] ?? 0) === 0 ? [] : [{ ...line, place: index + 1, tax: line[`${flag}id`] ?? null }]
      )
      return places.length === 0 ? [{ ...line, place: 0, tax: null }] : places
    })
  return grouped(taxed, (line) => [
    line["month"],
    line["place"],
    line["tax"],
    line["taxclassid"] ?? null,
    line["partialtaxexemptionid"] ?? null
  ]).map((lines) => ({
    ...texts(lines[0], "month place tax_id=tax taxclass_id=taxclassid taxclass exemption_id=partialtaxexemptionid"),
    ...texts(lines[0], "exemption=partialtaxexemption"),
    invoices: countOfInvoices(lines),
    lines: String(lines.length),
    amount: shown(sum(lines, "totalprice"))
  }))
}

const return_taxes_by_month = (books: Books): ReadonlyArray<Row> => {
  const taxes = active(books, "rmareturns").flatMap((record) =>
    ["", "2", "3"].map((place, index) => ({
      ...record,
      month: monthOf(record["return_date"]),
      place: index + 1,
      tax: record[`taxid${place}`] ?? null,
      credit: record[`taxcredit${place}`]
    }))
  )
  return grouped(
    taxes.filter(({ tax, credit }) => tax !== null || exact(credit) !== 0n),
    (tax) => [tax["month"], tax["place"], tax["tax"]]
  ).map((group) => ({
    ...texts(group[0], "month place tax_id=tax"),
    returns: String(group.length),
    credited: shown(sum(group, "credit")),
    posted: shown(sum(group.filter(isPosted), "credit"))
  }))
}

export const cash: Readonly<Record<string, (books: Books, asOf: string) => ReadonlyArray<Row>>> = {
  cash_by_account,
  bank_deposit_check,
  deposits_by_order,
  product_taxes_by_month,
  taxable_sales_by_month,
  return_taxes_by_month
}
