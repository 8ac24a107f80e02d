/**
 * The figures of every view, computed from the server's own records (`GET /state`) without the warehouse: loops instead
 * of SQL. This module shares no code with the product.
 */
import { accounting } from "./figures/accounting.ts"
import { operations } from "./figures/operations.ts"
import {
  active,
  type Books,
  type DayRule,
  dayNumber,
  daysBetween,
  dayText,
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
  sumsOrNothing,
  text,
  texts,
  times,
  until
} from "./figures/records.ts"

export { type Books, exact, type Json, plain, type Row, shown } from "./figures/records.ts"

/** The due date of an invoice, and its terms. */
const dueOf = (books: Books, invoice: Json) => {
  const customer = find(books, "customers", invoice["customerid"])
  const terms = find(books, "invoiceterms", customer?.["invoicetermid"])
  const day = dayNumber(invoice["invoicedate"])
  const net = Number(terms?.["netduedays"] ?? 0)
  const due = day === null ? null : dayText(day + (Math.abs(net) <= 36_500 ? net : 0))
  return { customer, terms: text(terms?.["verbal"]), due }
}

const bucketOf = (open: bigint, due: string | null, asOf: string): string => {
  if (open < 0n) return "credit"
  if (due === null) return "undated"
  const days = Number(daysBetween(due, asOf))
  return days <= 0 ? "not due" : days <= 30 ? "1-30" : days <= 60 ? "31-60" : days <= 90 ? "61-90" : "over 90"
}

const receivables_open = (books: Books, asOf: string): ReadonlyArray<Row> =>
  posted(books)
    .filter((invoice) => openOf(invoice) !== 0n)
    .map((invoice) => {
      const { customer, terms, due } = dueOf(books, invoice)
      return {
        ...texts(invoice, "invoice_id=id invoicenumber customer_id=customerid customer order_id=orderid"),
        ...texts(invoice, "location=inventorylocation invoicedate"),
        customer_name: text(customer?.["name"]),
        terms,
        due_date: due,
        days_overdue: daysBetween(due, asOf),
        bucket: bucketOf(openOf(invoice), due, asOf),
        invoicetotal: shown(exact(invoice["invoicetotal"])),
        invoicepaid: shown(exact(invoice["invoicepaid"])),
        open_amount: shown(openOf(invoice))
      }
    })

const receivables_aging = (books: Books, asOf: string): ReadonlyArray<Row> =>
  grouped(
    posted(books).filter((invoice) => openOf(invoice) !== 0n),
    (invoice) => invoice["customerid"]
  ).map((invoices) => {
    const buckets = new Map<string, bigint>()
    const dues: Array<string> = []
    let total = 0n
    for (const invoice of invoices) {
      const { due } = dueOf(books, invoice)
      const bucket = bucketOf(openOf(invoice), due, asOf)
      buckets.set(bucket, (buckets.get(bucket) ?? 0n) + openOf(invoice))
      total += openOf(invoice)
      if (due !== null && openOf(invoice) > 0n) dues.push(due)
    }
    const { customer, terms } = dueOf(books, invoices[0]!)
    const of = (bucket: string) => shown(buckets.get(bucket) ?? 0n)
    return {
      ...texts(invoices[0], "customer_id=customerid customer"),
      customer_name: text(customer?.["name"]),
      terms,
      as_of: asOf,
      invoices: String(invoices.length),
      not_due: of("not due"),
      days_1_30: of("1-30"),
      days_31_60: of("31-60"),
      days_61_90: of("61-90"),
      over_90: of("over 90"),
      undated: of("undated"),
      credit: of("credit"),
      total: shown(total),
      oldest_due_date: dues.sort()[0] ?? null
    }
  })

const open_order_lines = (books: Books, asOf: string): ReadonlyArray<Row> => {
  const rows: Array<Row> = []
  for (const order of active(books, "orders")) {
    if (order["status"] === "quote" || order["status"] === "billed") continue
    for (const line of active(books, "orderlines")) {
      const remaining = exact(line["qtyorder"]) - exact(line["qtyship"])
      if (line["orderid"] !== order["id"] || remaining <= 0n) continue
      rows.push({
        ...texts(order, "order_id=id ordertype status customer_id=customerid customer orderdate"),
        ...texts(order, "location_id=inventorylocationid location=inventorylocation"),
        ...texts(line, "orderline_id=id linenumber item_id=itemid item description"),
        age_days: daysBetween(order["orderdate"], asOf),
        qty_ordered: money(line["qtyorder"]),
        qty_shipped: shown(exact(line["qtyship"])),
        qty_billed: shown(exact(line["qtybilled"])),
        qty_remaining: shown(remaining),
        priceach: money(line["priceach"]),
        amount_remaining: shown(times(shown(remaining), line["priceach"]))
      })
    }
  }
  return rows
}

const revenue_by_month = (books: Books): ReadonlyArray<Row> => {
  const invoices = new Map(posted(books).map((invoice) => [invoice["id"], invoice]))
  const lines = books
    .of("invoicelines")
    .filter((line) => line["linetype"] !== 1 && invoices.has(line["invoiceid"]))
    .map((line) => ({ ...line, month: monthOf(invoices.get(line["invoiceid"])!["invoicedate"]) }))
  return grouped(lines, (line) => [line["month"], line["itemid"], line["linetype"], line["qtyunitname"]]).map(
    (group) => ({
      ...texts(group[0], "month item_id=itemid item linetype unit=qtyunitname"),
      invoices: String(new Set(group.map((line) => line["invoiceid"])).size),
      lines: String(group.length),
      ...sums(group, "qty amount=totalprice")
    })
  )
}

const payments_by_day = (books: Books): ReadonlyArray<Row> =>
  grouped(active(books, "payments"), (payment) => [
    payment["datereceived"],
    payment["paymeth"],
    payment["currency"],
    payment["inventorylocationid"]
  ]).map((group) => {
    const returned = group.filter((payment) => payment["returned"] === 1)
    const first = group[0]!
    return {
      ...texts(first, "day=datereceived method=paymeth currency location_id=inventorylocationid"),
      ...texts(first, "location=inventorylocation"),
      method_name: methods[Number(first["paymeth"] ?? 0)] ?? "other",
      payments: String(group.length),
      amount: shown(sum(group, "amount")),
      returned_payments: String(returned.length),
      returned_amount: shown(sum(returned, "amount")),
      net_amount: shown(sum(group, "amount") - sum(returned, "amount"))
    }
  })

const daily_close_check = (books: Books): ReadonlyArray<Row> => {
  const payments = active(books, "payments").map((payment) => ({ ...payment, day: payment["datereceived"] }))
  const closes = active(books, "ardailycloses").map((close) => ({ ...close, day: close["closedate"], isClose: true }))
  return grouped([...payments, ...closes], (one) => [one["day"], one["inventorylocationid"], one["currency"]]).map(
    (group) => {
      const closed = group.filter((one) => one["isClose"] === true)
      const paid = group.filter((one) => one["isClose"] !== true)
      const by = (...which: ReadonlyArray<number>) =>
        sum(paid, "amount", (one) => which.includes(Number(one["paymeth"] ?? 0)))
      const cash = by(1)
      const checks = by(2)
      const cards = by(3, 5)
      const cashOff = sum(closed, "sys_cash") - cash
      const restOff = sum(closed, "sys_checks") + sum(closed, "sys_cc") - checks - cards
      return {
        ...texts(group[0], "day location_id=inventorylocationid location=inventorylocation currency"),
        status:
          closed.length === 0
            ? "no close"
            : paid.length === 0
              ? "no payments"
              : cashOff === 0n && restOff === 0n
                ? "agrees"
                : "differs",
        payments: String(paid.length),
        cash: shown(cash),
        checks: shown(checks),
        cards: shown(cards),
        other: shown(sum(paid, "amount") - cash - checks - cards),
        closes: String(closed.length),
        ...sumsOrNothing(closed, "sys_cash sys_checks sys_cc gl_cash gl_checks gl_cc actual_cash=actualcash"),
        ...sumsOrNothing(closed, "actual_checks=actualchecks actual_cc=actualcc overshort deposited=depositeamount"),
        cash_difference: closed.length === 0 ? null : shown(cashOff),
        checks_and_cards_difference: closed.length === 0 ? null : shown(restOff)
      }
    }
  )
}

const deposits_unapplied = (books: Books): ReadonlyArray<Row> =>
  active(books, "orderdeposits")
    .filter((deposit) => deposit["returned"] !== 1)
    .flatMap((deposit) => {
      const applied = sum(active(books, "payments"), "amount", (payment) => payment["orderdepositid"] === deposit["id"])
      const unapplied = exact(deposit["amount"]) - applied
      if (unapplied === 0n) return []
      const order = find(books, "orders", deposit["orderid"])
      const invoices = posted(books).filter(
        (invoice) => (deposit["orderid"] ?? null) !== null && invoice["orderid"] === deposit["orderid"]
      )
      return [
        {
          ...texts(deposit, "deposit_id=id order_id=orderid entrydate method=payment_method reference=checkid"),
          ...texts(deposit, "currency"),
          ...texts(order, "customer_id=customerid customer order_status=status"),
          order_cancelled: String(order === undefined || order["cancel"] === true),
          is_posted: String(isPosted(deposit)),
          amount: shown(exact(deposit["amount"])),
          applied: shown(applied),
          unapplied: shown(unapplied),
          order_invoiced: shown(sum(invoices, "invoicetotal")),
          order_open: shown(invoices.reduce((total, invoice) => total + openOf(invoice), 0n))
        }
      ]
    })

const ageBucketOf = (age: string | null): string => {
  if (age === null) return "undated"
  const days = Number(age)
  if (days < 0) return "future"
  return days <= 7 ? "0-7" : days <= 30 ? "8-30" : days <= 60 ? "31-60" : days <= 90 ? "61-90" : "over 90"
}

const shipments_not_invoiced = (books: Books, asOf: string): ReadonlyArray<Row> =>
  active(books, "shipments")
    .filter(
      ({ invoiceid }) =>
        (invoiceid ?? null) === null || isAfter(find(books, "invoices", invoiceid)?.["invoicedate"], asOf)
    )
    .map((shipment) => {
      const order = find(books, "orders", shipment["orderid"])
      const lines = active(books, "shipmentlines").filter((line) => line["shipmentid"] === shipment["id"])
      let amount = 0n
      let unpriced = 0
      for (const line of lines) {
        const price = find(books, "orderlines", line["orderlineid"])?.["priceach"] ?? null
        if (price === null) unpriced += 1
        else amount += times(line["quantity"], price)
      }
      return {
        ...texts(shipment, "shipment_id=id order_id=orderid shipdate location_id=locationid location carrierservice"),
        ...texts(order, "ordertype order_status=status customer_id=customerid customer"),
        days_waiting: daysBetween(shipment["shipdate"], asOf),
        lines: String(lines.length),
        lines_without_price: String(unpriced),
        quantity: shown(sum(lines, "quantity")),
        amount: shown(amount),
        age_bucket: ageBucketOf(daysBetween(shipment["shipdate"], asOf))
      }
    })

const bill_coding_incomplete = (books: Books, asOf: string): ReadonlyArray<Row> =>
  active(books, "apbills").flatMap((bill) => {
    const lines = books.of("apbilllines").filter((line) => line["apbillid"] === bill["id"])
    const uncoded = exact(bill["billtotal"]) - sum(lines, "amount")
    const blind = lines.filter((line) => (line["glaccountid"] ?? null) === null).length
    if (uncoded === 0n && blind === 0) return []
    return [
      {
        ...texts(bill, "bill_id=id vendor_id=vendorid vendor billdate"),
        age_days: daysBetween(bill["billdate"], asOf),
        is_posted: String(isPosted(bill)),
        billtotal: shown(exact(bill["billtotal"])),
        coded: shown(sum(lines, "amount")),
        uncoded: shown(uncoded),
        undistributed: money(bill["undistributed"]),
        lines: String(lines.length),
        lines_without_account: String(blind)
      }
    ]
  })

const customer_balances = (books: Books, asOf: string): ReadonlyArray<Row> =>
  books.of("customers").map((customer) => {
    const invoices = posted(books).filter((invoice) => invoice["customerid"] === customer["id"])
    const drafts = active(books, "invoices").filter(
      (invoice) => invoice["customerid"] === customer["id"] && !isPosted(invoice)
    )
    const balance = invoices.reduce((total, invoice) => total + openOf(invoice), 0n)
    const payments = active(books, "payments").filter(
      (payment) => payment["customerid"] === customer["id"] && payment["returned"] !== 1
    )
    const limit = customer["creditlimit"] ?? null
    return {
      ...texts(customer, "customer_id=id customer=customercode customer_name=name salesman terms=invoiceterm"),
      is_cancelled: String(customer["cancel"] === true),
      open_invoices: String(invoices.filter((invoice) => openOf(invoice) !== 0n).length),
      balance: shown(balance),
      drafts: shown(sum(drafts, "invoicetotal")),
      credit_limit: money(limit),
      credit_available: limit === null ? null : shown(exact(limit) - balance),
      is_over_limit: limit === null ? null : String(balance > exact(limit)),
      oldest_open_date: earliest(
        invoices.filter((invoice) => openOf(invoice) > 0n),
        "invoicedate"
      ),
      last_invoice_date: latest(
        invoices.filter((invoice) => !isAfter(invoice["invoicedate"], asOf)),
        "invoicedate"
      ),
      last_payment_date: latest(payments, "datereceived")
    }
  })

const shipped_by_location = (books: Books): ReadonlyArray<Row> => {
  const shipments = new Map(active(books, "shipments").map((shipment) => [shipment["id"], shipment]))
  const lines = active(books, "shipmentlines").flatMap((line) => {
    const shipment = shipments.get(line["shipmentid"])
    if (shipment === undefined) return []
    const orderline = find(books, "orderlines", line["orderlineid"])
    return [
      {
        ...line,
        month: monthOf(shipment["shipdate"]),
        locationid: shipment["locationid"] ?? null,
        location: shipment["location"],
        itemid: orderline?.["itemid"] ?? null,
        item: orderline?.["item"]
      }
    ]
  })
  return grouped(lines, (line) => [line["month"], line["locationid"], line["itemid"]]).map((group) => ({
    ...texts(group[0], "month location_id=locationid location item_id=itemid item"),
    shipments: String(new Set(group.map((line) => line["shipmentid"])).size),
    quantity: shown(sum(group, "quantity"))
  }))
}

const sales_by_salesman = (books: Books): ReadonlyArray<Row> => {
  const sold = posted(books).map((invoice) => {
    const customer = find(books, "customers", invoice["customerid"])
    return {
      ...invoice,
      month: monthOf(invoice["invoicedate"]),
      salesmanid: customer?.["salesmanid"] ?? null,
      salesman: customer?.["salesman"]
    }
  })
  return grouped(sold, (invoice) => [invoice["month"], invoice["salesmanid"]]).map((group) => ({
    ...texts(group[0], "month salesman_id=salesmanid salesman"),
    commission_rate: money(find(books, "salesmen", group[0]!["salesmanid"])?.["commissionrate"]),
    customers: String(new Set(group.map((invoice) => invoice["customerid"] ?? null).filter((id) => id !== null)).size),
    invoices: String(group.length),
    ...sums(group, "invoiced=invoicetotal paid=invoicepaid"),
    open_amount: shown(sum(group, "invoicetotal") - sum(group, "invoicepaid"))
  }))
}

const order_to_cash = (books: Books, asOf: string): ReadonlyArray<Row> =>
  active(books, "orders")
    .filter((order) => order["status"] !== "quote")
    .map((order) => {
      const shipments = active(books, "shipments").filter((shipment) => shipment["orderid"] === order["id"])
      const all = posted(books).filter((invoice) => invoice["orderid"] === order["id"])
      const invoices = all.filter((invoice) => !isAfter(invoice["invoicedate"], asOf))
      const ids = new Set(invoices.map((invoice) => invoice["id"]))
      const payments = active(books, "payments").filter(
        (payment) => ids.has(payment["invoiceid"]) && payment["returned"] !== 1
      )
      const invoiced = sum(invoices, "invoicetotal")
      const paid = sum(invoices, "invoicepaid")
      const lastPaid = latest(payments, "datereceived")
      const paidOn =
        order["status"] === "billed" && all.length === invoices.length && invoiced > 0n && paid >= invoiced
          ? lastPaid
          : null
      return {
        ...texts(order, "order_id=id ordertype status customer_id=customerid customer orderdate"),
        ordertotal: money(order["ordertotal"]),
        first_shipped: earliest(shipments, "shipdate"),
        last_shipped: latest(shipments, "shipdate"),
        first_invoiced: earliest(invoices, "invoicedate"),
        last_invoiced: latest(invoices, "invoicedate"),
        last_paid: lastPaid,
        invoiced: shown(invoiced),
        paid: shown(paid),
        paid_on: paidOn,
        days_to_ship: daysBetween(order["orderdate"], earliest(shipments, "shipdate")),
        days_to_invoice: daysBetween(order["orderdate"], earliest(invoices, "invoicedate")),
        days_to_cash: daysBetween(order["orderdate"], paidOn)
      }
    })

const invoice_payment_check = (books: Books): ReadonlyArray<Row> =>
  books.of("invoices").flatMap((invoice) => {
    const payments = active(books, "payments").filter((payment) => payment["invoiceid"] === invoice["id"])
    const returned = sum(payments, "amount", (payment) => payment["returned"] === 1)
    const difference = exact(invoice["invoicepaid"]) - sum(payments, "amount")
    if (difference === 0n && returned === 0n) return []
    return [
      {
        ...texts(invoice, "invoice_id=id invoicenumber customer_id=customerid customer"),
        is_posted: String(isPosted(invoice)),
        is_cancelled: String(invoice["cancel"] === true),
        invoicetotal: shown(exact(invoice["invoicetotal"])),
        invoicepaid: shown(exact(invoice["invoicepaid"])),
        payments: String(payments.length),
        payments_total: shown(sum(payments, "amount")),
        difference: shown(difference),
        returned_total: shown(returned)
      }
    ]
  })

type Figure = (books: Books, asOf: string, isPresent: boolean) => ReadonlyArray<Row>

const dayRules: Readonly<Record<string, DayRule>> = {
  receivables_open: { without: [], amounts: true },
  receivables_aging: { without: [], amounts: true },
  customer_balances: { without: ["payments"], amounts: true },
  deposits_unapplied: { without: ["orderdeposits", "payments"], amounts: true },
  deposits_by_order: { without: ["orderdeposits", "payments"], amounts: true },
  sales_by_salesman: { without: ["invoices"], amounts: true },
  order_to_cash: { without: ["orders", "shipments", "payments"], amounts: true },
  revenue_by_month: { without: ["invoices"] },
  margin_by_month: { without: ["invoices"] },
  product_taxes_by_month: { without: ["invoices"] },
  taxable_sales_by_month: { without: ["invoices"] },
  payments_by_day: { without: ["payments"] },
  daily_close_check: { without: ["payments", "ardailycloses"] },
  bill_coding_incomplete: { without: ["apbills"] },
  vendor_bills: { without: ["apbills"] },
  vendor_bills_aging: { without: ["apbills"] },
  vendor_spend_by_month: { without: ["apbills", "purchaseorders"] },
  return_taxes_by_month: { without: ["rmareturns"] },
  shipped_by_location: { without: ["shipments"] },
  shipments_not_invoiced: { without: ["shipments"] },
  job_costs: { without: ["apbills"] },
  job_totals: { without: ["apbills", "jobdraws"] },
  hours_by_month: { without: ["serviceordertimes"] },
  counted_inventory: { without: ["inventorycounts", "shipments"] }
}

/** Of the records themselves; these leave out what is later on their own, or have no day. */
const figuresOfRecords: Readonly<Record<string, Figure>> = {
  receivables_open,
  receivables_aging,
  open_order_lines,
  revenue_by_month,
  payments_by_day,
  daily_close_check,
  deposits_unapplied,
  shipments_not_invoiced,
  bill_coding_incomplete,
  customer_balances,
  shipped_by_location,
  sales_by_salesman,
  order_to_cash,
  invoice_payment_check,
  ...accounting,
  ...operations
}

/** The rows of every view by its name on a day, without the company. */
export const figures: Readonly<
  Record<string, (books: Books, asOf: string, isPresent?: boolean) => ReadonlyArray<Row>>
> = Object.fromEntries(
  Object.entries(figuresOfRecords).map(([name, figure]) => [
    name,
    (books, asOf, isPresent = true) => {
      const rule = dayRules[name]
      return figure(rule === undefined ? books : until(books, asOf, rule), asOf, isPresent)
    }
  ])
)
