/** The figures of the views of receivables and vendors, computed without SQL. This module shares no code with the product. */
import { cash } from "./cash.ts"
import {
  active,
  type Books,
  dayNumber,
  daysBetween,
  earliest,
  exact,
  find,
  grouped,
  isAfter,
  isPosted,
  type Json,
  monthOf,
  openOf,
  posted,
  type Row,
  shown,
  sum,
  text,
  texts
} from "./records.ts"

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
      ...texts(bill, "bill_id=id vendor_id=vendorid vendor billdate"),
      vendor_name: text(find(books, "vendors", bill["vendorid"])?.["name"]),
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
    const of = (bucket: string) => shown(sum(inLedger, "billtotal", (bill) => ageOf(bill, asOf).bucket === bucket))
    return {
      ...texts(bills[0], "vendor_id=vendorid vendor"),
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
      ...texts(group[0], "month vendor_id=vendorid vendor"),
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
const movementsOf = (
  books: Books,
  asOf: string,
  isOwn: (invoice: Json) => boolean
): ReadonlyArray<[string | null, Movement]> => {
  const empty = (): Movement => ({
    invoices: 0,
    invoiced: 0n,
    credited: 0n,
    payments: 0,
    paid: 0n,
    writtenOff: 0n,
    adjusted: 0n,
    returnCredits: 0n
  })
  const months = new Map<string, Movement>()
  const at = (day: unknown): Movement => {
    if (isAfter(day, asOf)) return empty()
    const month = monthOf(day) ?? ""
    const found = months.get(month) ?? empty()
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

const rollforward = (books: Books, asOf: string, isOwn: (invoice: Json) => boolean): ReadonlyArray<Row> => {
  let balance = 0n
  return movementsOf(books, asOf, isOwn).map(([month, sums]) => {
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

const receivables_rollforward = (books: Books, asOf: string): ReadonlyArray<Row> => rollforward(books, asOf, () => true)

const customer_rollforward = (books: Books, asOf: string): ReadonlyArray<Row> =>
  grouped(posted(books), (invoice) => invoice["customerid"]).flatMap((invoices) => {
    const id = invoices[0]!["customerid"] ?? null
    return rollforward(books, asOf, (invoice) => (invoice["customerid"] ?? null) === id).map((row) => ({
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

export const accounting: Readonly<Record<string, (books: Books, asOf: string) => ReadonlyArray<Row>>> = {
  vendor_bills,
  vendor_bills_aging,
  vendor_spend_by_month,
  receivables_rollforward,
  customer_rollforward,
  dso_by_month,
  ...cash
}
