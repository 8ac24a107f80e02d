/** The figures of the accounting views, computed without SQL. This module shares no code with the product. */
import {
  active,
  type Books,
  dayNumber,
  daysBetween,
  earliest,
  exact,
  find,
  grouped,
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
  text
} from "./records.ts"

const has = (record: Json, field: string): boolean => (record[field] ?? null) !== null

/** The number of days of a bill, and its bucket. */
const ageOf = (bill: Json, asOf: string) => {
  const age = daysBetween(bill["billdate"], asOf)
  const days = Number(age)
  const bucket =
    exact(bill["billtotal"]) < 0n
      ? "credit"
      : age === null
        ? "undated"
        : days <= 30
          ? "up to 30"
          : days <= 60
            ? "31-60"
            : days <= 90
              ? "61-90"
              : "over 90"
  return { age, bucket }
}

const vendor_bills = (books: Books, asOf: string): ReadonlyArray<Row> =>
  active(books, "apbills").map((bill) => {
    const { age, bucket } = ageOf(bill, asOf)
    const withheld = books
      .of("apbilllines")
      .filter((line) => line["apbillid"] === bill["id"] && line["isretainer"] === 1)
    return {
      bill_id: text(bill["id"]),
      vendor_id: text(bill["vendorid"]),
      vendor: text(bill["vendor"]),
      vendor_name: text(find(books, "vendors", bill["vendorid"])?.["name"]),
      billdate: text(bill["billdate"]),
      age_days: age,
      bucket,
      is_posted: String(isPosted(bill)),
      posted_on: text(find(books, "vouchers", bill["voucherid"])?.["date"]),
      billtotal: shown(exact(bill["billtotal"])),
      withheld: shown(sum(withheld, "amount"))
    }
  })

const vendor_bills_aging = (books: Books, asOf: string): ReadonlyArray<Row> =>
  grouped(active(books, "apbills"), (bill) => bill["vendorid"]).map((bills) => {
    const inLedger = bills.filter(isPosted)
    const drafts = bills.filter((bill) => !isPosted(bill))
    const of = (bucket: string) =>
      shown(
        sum(
          inLedger.filter((bill) => ageOf(bill, asOf).bucket === bucket),
          "billtotal"
        )
      )
    return {
      vendor_id: text(bills[0]!["vendorid"]),
      vendor: text(bills[0]!["vendor"]),
      vendor_name: text(find(books, "vendors", bills[0]!["vendorid"])?.["name"]),
      as_of: asOf,
      bills: String(inLedger.length),
      up_to_30: of("up to 30"),
      days_31_60: of("31-60"),
      days_61_90: of("61-90"),
      over_90: of("over 90"),
      undated: of("undated"),
      credit: of("credit"),
      total: shown(sum(inLedger, "billtotal")),
      oldest_date: earliest(
        inLedger.filter((bill) => exact(bill["billtotal"]) >= 0n),
        "billdate"
      ),
      unposted_bills: String(drafts.length),
      unposted: shown(sum(drafts, "billtotal"))
    }
  })

const vendor_spend_by_month = (books: Books): ReadonlyArray<Row> => {
  const bills = active(books, "apbills").map((bill) => ({ ...bill, kind: "bill", month: monthOf(bill["billdate"]) }))
  const orders = active(books, "purchaseorders").map((order) => ({
    ...order,
    kind: "order",
    month: monthOf(order["orderdate"])
  }))
  return grouped([...bills, ...orders], (one) => [one["month"], one["vendorid"]]).map((group) => {
    const billed = group.filter((one) => one["kind"] === "bill")
    const inLedger = billed.filter(isPosted)
    const drafts = billed.filter((bill) => !isPosted(bill))
    const ordered = group.filter((one) => one["kind"] === "order")
    return {
      month: text(group[0]!["month"]),
      vendor_id: text(group[0]!["vendorid"]),
      vendor: text(group[0]!["vendor"]),
      vendor_name: text(find(books, "vendors", group[0]!["vendorid"])?.["name"]),
      bills: String(inLedger.length),
      billed: shown(sum(inLedger, "billtotal")),
      unposted_bills: String(drafts.length),
      unposted: shown(sum(drafts, "billtotal")),
      purchase_orders: String(ordered.length),
      ordered: shown(sum(ordered, "ordertotal"))
    }
  })
}

/** Records with an amount that belong to an invoice which counts, with that invoice. */
const ofPosted = (books: Books, resource: string): ReadonlyArray<{ readonly record: Json; readonly invoice: Json }> => {
  const invoices = new Map(posted(books).map((invoice) => [invoice["id"], invoice]))
  return active(books, resource).flatMap((record) => {
    const invoice = invoices.get(record["invoiceid"])
    return invoice === undefined ? [] : [{ record, invoice }]
  })
}

interface Movement {
  invoices: number
  invoiced: bigint
  credited: bigint
  payments: number
  paid: bigint
  writtenOff: bigint
  adjusted: bigint
  returnCredits: bigint
}

/** The months of these invoices in their order, the one without a date first. */
const movementsOf = (books: Books, isOwn: (invoice: Json) => boolean): ReadonlyArray<[string | null, Movement]> => {
  const months = new Map<string, Movement>()
  const at = (day: unknown): Movement => {
    const month = monthOf(day) ?? ""
    const found = months.get(month) ?? {
      invoices: 0,
      invoiced: 0n,
      credited: 0n,
      payments: 0,
      paid: 0n,
      writtenOff: 0n,
      adjusted: 0n,
      returnCredits: 0n
    }
    months.set(month, found)
    return found
  }
  for (const invoice of posted(books).filter(isOwn)) {
    const total = exact(invoice["invoicetotal"])
    const month = at(invoice["invoicedate"])
    month.invoices += 1
    if (total > 0n) month.invoiced += total
    else month.credited -= total
    month.adjusted -= exact(invoice["invoicepaid"])
  }
  for (const { record, invoice } of ofPosted(books, "payments")) {
    if (!isOwn(invoice)) continue
    const month = at(record["datereceived"])
    month.payments += 1
    if (record["paymeth"] === 99) month.writtenOff += exact(record["amount"])
    else month.paid += exact(record["amount"])
    at(invoice["invoicedate"]).adjusted += exact(record["amount"])
  }
  for (const { record, invoice } of ofPosted(books, "rmareturns")) {
    if (isOwn(invoice)) at(record["return_date"]).returnCredits += exact(record["total_credit"])
  }
  return [...months].sort(([a], [b]) => (a < b ? -1 : 1)).map(([month, sums]) => [month === "" ? null : month, sums])
}

const rollforward = (books: Books, isOwn: (invoice: Json) => boolean): ReadonlyArray<Row> => {
  let balance = 0n
  return movementsOf(books, isOwn).map(([month, sums]) => {
    const opening = balance
    balance = opening + sums.invoiced - sums.credited - sums.paid - sums.writtenOff + sums.adjusted
    return {
      month,
      opening: shown(opening),
      invoices: String(sums.invoices),
      invoiced: shown(sums.invoiced),
      credited: shown(sums.credited),
      payments: String(sums.payments),
      paid: shown(sums.paid),
      written_off: shown(sums.writtenOff),
      adjusted: shown(sums.adjusted),
      closing: shown(balance),
      return_credits: shown(sums.returnCredits)
    }
  })
}

const receivables_rollforward = (books: Books): ReadonlyArray<Row> => rollforward(books, () => true)

const customer_rollforward = (books: Books): ReadonlyArray<Row> =>
  grouped(posted(books), (invoice) => invoice["customerid"]).flatMap((invoices) => {
    const id = invoices[0]!["customerid"] ?? null
    return rollforward(books, (invoice) => (invoice["customerid"] ?? null) === id).map((row) => ({
      customer_id: text(id),
      customer: text(invoices[0]!["customer"]),
      customer_name: text(find(books, "customers", id)?.["name"]),
      ...row
    }))
  })

/** The month some months later. */
const plusMonths = (month: string, more: number): string => {
  const count = Number(month.slice(0, 4)) * 12 + Number(month.slice(5, 7)) - 1 + more
  return `${String(Math.floor(count / 12)).padStart(4, "0")}-${String((count % 12) + 1).padStart(2, "0")}-01`
}

/** A quotient, rounded to 2 decimals, half away from zero, as decimal text. */
const perSale = (balance: bigint, days: number, invoiced: bigint): string | null => {
  if (invoiced <= 0n) return null
  const hundredths = balance * BigInt(days) * 100n
  const size = hundredths < 0n ? -hundredths : hundredths
  const rounded = (2n * size + invoiced) / (2n * invoiced)
  return shown((hundredths < 0n ? -rounded : rounded) * 10n ** 10n)
}

const dso_by_month = (books: Books, asOf: string): ReadonlyArray<Row> => {
  const isDue = (day: unknown) => typeof day !== "string" || day <= asOf
  const invoices = posted(books)
  const payments = ofPosted(books, "payments")
  const days = [
    ...invoices.map((invoice) => invoice["invoicedate"]),
    ...payments.map(({ record }) => record["datereceived"])
  ]
  const months = [...new Set(days.filter(isDue).map(monthOf))].filter((month) => month !== null).sort()
  return months.map((month) => {
    const next = plusMonths(month, 1)
    const begin = plusMonths(month, -2)
    const isBefore = (day: unknown) => typeof day !== "string" || (day < next && day <= asOf)
    // The balance is what was invoiced by then, without what was paid by then or has no payment at all.
    let closing = 0n
    for (const invoice of invoices.filter((one) => isBefore(one["invoicedate"]))) closing += openOf(invoice)
    for (const { record, invoice } of payments) {
      if (isBefore(record["datereceived"])) closing -= exact(record["amount"])
      if (isBefore(invoice["invoicedate"])) closing += exact(record["amount"])
    }
    const since = (first: string) =>
      sum(
        invoices.filter(
          ({ invoicedate }) => typeof invoicedate === "string" && invoicedate >= first && isBefore(invoicedate)
        ),
        "invoicetotal"
      )
    const end = Math.min(dayNumber(next)!, dayNumber(asOf)! + 1)
    const length = end - dayNumber(month)!
    const length3 = end - dayNumber(begin)!
    return {
      month,
      days: String(length),
      invoiced: shown(since(month)),
      closing: shown(closing),
      dso: perSale(closing, length, since(month)),
      days_3_months: String(length3),
      invoiced_3_months: shown(since(begin)),
      dso_3_months: months[0]! <= begin ? perSale(closing, length3, since(begin)) : null
    }
  })
}

const kindOf = (method: unknown): string => {
  const number = Number(method ?? 0)
  return number === 1 ? "cash" : number === 2 || number === 3 || number === 5 ? "checks and cards" : "other"
}

/** Payments and deposits in one form. */
const moneyOf = (books: Books): ReadonlyArray<Json> => [
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

const cash_by_account = (books: Books): ReadonlyArray<Row> => {
  const place = (one: Json) =>
    JSON.stringify([one["day"] ?? null, one["inventorylocationid"] ?? null, one["currency"] ?? null])
  const all = moneyOf(books)
  const closes = grouped(
    active(books, "ardailycloses").map((close) => ({ ...close, day: close["closedate"] })),
    place
  )
  return grouped(all, (one) => [place(one), one["method"], one["accountid"]]).map((group) => {
    const first = group[0]!
    const paid = group.filter((one) => one["isDeposit"] !== true)
    const deposited = group.filter((one) => one["isDeposit"] === true)
    const received = group.filter((one) => one["isNew"] === true)
    const of = (fits: (one: Json) => boolean) => shown(sum(received.filter(fits), "amount"))
    const kind = kindOf(first["method"])
    const closed = closes.find(([close]) => place(close!) === place(first)) ?? []
    const figure =
      closed.length === 0 || kind === "other"
        ? null
        : kind === "cash"
          ? sum(closed, "sys_cash")
          : sum(closed, "sys_checks") + sum(closed, "sys_cc")
    const paidOfKind = sum(
      all.filter((one) => one["isDeposit"] !== true && place(one) === place(first) && kindOf(one["method"]) === kind),
      "amount"
    )
    return {
      day: text(first["day"]),
      location_id: text(first["inventorylocationid"]),
      location: text(first["inventorylocation"]),
      method: text(first["method"]),
      method_name: methods[Number(first["method"])] ?? "other",
      account_id: text(first["accountid"]),
      account: text(first["account"]),
      currency: text(first["currency"]),
      payments: String(paid.length),
      paid: shown(sum(paid, "amount")),
      from_deposits: shown(
        sum(
          paid.filter((one) => has(one, "orderdepositid")),
          "amount"
        )
      ),
      deposits: String(deposited.length),
      deposited: shown(sum(deposited, "amount")),
      received: shown(sum(received, "amount")),
      returned: of((one) => one["returned"] === 1),
      banked: of((one) => has(one, "bankdepositid")),
      cleared: of((one) => has(one, "bankstatement_cleardate")),
      bank_fees: shown(sum(received, "bankfee_amount")),
      kind,
      closes: String(closed.length),
      closed: figure === null ? null : shown(figure),
      close_difference: figure === null ? null : shown(figure - paidOfKind)
    }
  })
}

const bank_deposit_check = (books: Books): ReadonlyArray<Row> => {
  const payments = active(books, "payments").filter((one) => has(one, "bankdepositid"))
  const deposits = active(books, "orderdeposits").filter((one) => has(one, "bankdepositid"))
  const ids = new Set([
    ...books.of("bankdeposits").map(({ id }) => id),
    ...[...payments, ...deposits].map((one) => one["bankdepositid"])
  ])
  return [...ids].map((id) => {
    const bank = find(books, "bankdeposits", id)
    const paid = payments.filter((one) => one["bankdepositid"] === id)
    const deposited = deposits.filter((one) => one["bankdepositid"] === id)
    const all = [...paid, ...deposited]
    const difference = exact(bank?.["amount"]) - sum(all, "amount")
    return {
      bank_deposit_id: text(id),
      account_id: text(bank?.["bankaccountid"]),
      account: text(find(books, "bankaccounts", bank?.["bankaccountid"])?.["name"]),
      depositdate: text(bank?.["depositdate"]),
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
      returned: shown(
        sum(
          all.filter((one) => one["returned"] === 1),
          "amount"
        )
      ),
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
    const applied = sum(
      active(books, "payments").filter((payment) => ids.has(payment["orderdepositid"])),
      "amount"
    )
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
      ordertype: text(order?.["ordertype"]),
      order_status: text(order?.["status"]),
      order_cancelled: String(isCancelled),
      orderdate: text(order?.["orderdate"]),
      customer_id: text(order?.["customerid"]),
      customer: text(order?.["customer"]),
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
      month: text(lines[0]!["month"]),
      tax_id: text(lines[0]!["producttypetaxid"]),
      tax: text(tax?.["name"]),
      states: text(tax?.["states"]),
      rate: money(tax?.["taxrate"]),
      account: text(tax?.["glaccount"]),
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
    month: text(lines[0]!["month"]),
    place: text(lines[0]!["place"]),
    tax_id: text(lines[0]!["tax"]),
    taxclass_id: text(lines[0]!["taxclassid"]),
    taxclass: text(lines[0]!["taxclass"]),
    exemption_id: text(lines[0]!["partialtaxexemptionid"]),
    exemption: text(lines[0]!["partialtaxexemption"]),
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
    month: text(group[0]!["month"]),
    place: text(group[0]!["place"]),
    tax_id: text(group[0]!["tax"]),
    returns: String(group.length),
    credited: shown(sum(group, "credit")),
    posted: shown(sum(group.filter(isPosted), "credit"))
  }))
}

export const accounting: Readonly<Record<string, (books: Books, asOf: string) => ReadonlyArray<Row>>> = {
  vendor_bills,
  vendor_bills_aging,
  vendor_spend_by_month,
  receivables_rollforward,
  customer_rollforward,
  dso_by_month,
  cash_by_account,
  bank_deposit_check,
  deposits_by_order,
  product_taxes_by_month,
  taxable_sales_by_month,
  return_taxes_by_month
}
