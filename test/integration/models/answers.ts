/**
 * The answers to the questions of `docs/how-to/questions.md`, computed from the server's own records
 * without SQL: rows in the order of the columns. This module shares no code with the product.
 */
import { figures } from "./figures.ts"
import {
  active,
  type Books,
  exact,
  find,
  grouped,
  type Json,
  monthOf,
  posted,
  type Row,
  shown,
  sum
} from "./figures/records.ts"

/** What the answers are computed from. */
export interface Given {
  /** The records at the server, and as they were at the first sync. */
  readonly now: Books
  readonly before: Books
  readonly today: string
  /** The day of the as-of questions. */
  readonly day: string
  /** Resources that are synced. */
  readonly resources: ReadonlyArray<string>
  /** What a record that does not fit, an event and a rejected record are expected to be. */
  readonly quarantined: ReadonlyArray<unknown>
  readonly rejected: ReadonlyArray<unknown>
  readonly byWebhook: number
  /** Requests that the server received for a resource. */
  readonly requests: (resource: string) => number
}

type Answer = (given: Given) => ReadonlyArray<ReadonlyArray<unknown>>

const of = (record: Json | Row, ...fields: ReadonlyArray<string>): ReadonlyArray<unknown> =>
  fields.map((field) => record[field] ?? null)
const byId = (books: Books, resource: string) => (id: unknown) => find(books, resource, id)
const days = (from: unknown, to: unknown): number => (Date.parse(String(to)) - Date.parse(String(from))) / 86_400_000

/** Half away from zero. */
const quotient = (dividend: bigint, divisor: bigint, decimals: number): string => {
  const step = 10n ** BigInt(12 - decimals)
  const scaled = (2n * (dividend < 0n ? -dividend : dividend) + divisor * step) / (2n * divisor * step)
  return shown((dividend < 0n ? -scaled : scaled) * step)
}
const mean = (numbers: ReadonlyArray<number>): string => {
  const all = numbers.reduce((added, number) => added + exact(String(number)), 0n)
  return quotient(all, BigInt(numbers.length), 1)
}

/** The first rows by a number, highest first, then by a text. */
const first = (
  rows: ReadonlyArray<ReadonlyArray<unknown>>,
  count: number,
  number: number,
  text: number,
  sign: 1 | -1 = 1
) =>
  [...rows]
    .sort((a, b) => {
      const difference = exact(b[number]) - exact(a[number])
      if (difference !== 0n) return (difference > 0n ? 1 : -1) * sign
      return String(a[text]) < String(b[text]) ? -1 : 1
    })
    .slice(0, count)

/** The rows of a view of `erp_models`, by the independent figures. */
const view = (name: string, { now, today }: Given): ReadonlyArray<Row> => figures[name]!(now, today)

/** The records that differ between the two times. */
const changed = ({ now, before }: Given, resource: string) => {
  const [was, is] = [byId(before, resource), byId(now, resource)]
  const ids = new Set([...before.of(resource), ...now.of(resource)].map(({ id }) => id))
  return [...ids]
    .map((id) => ({ id, was: was(id), is: is(id) }))
    .filter((one) => JSON.stringify(one.was) !== JSON.stringify(one.is))
}

/** A row for each value of the key: the value, and what these columns say about its records. */
const per = (
  records: ReadonlyArray<Json>,
  key: string | ((record: Json) => unknown),
  columns: (own: ReadonlyArray<Json>) => ReadonlyArray<unknown>
) => {
  const keyOf = typeof key === "string" ? (record: Json) => record[key] : key
  return grouped(records, keyOf).map((own) => [keyOf(own[0]!), ...columns(own)])
}
const monthBy = (field: string) => (record: Json) => monthOf(record[field])
const total = (records: ReadonlyArray<Json>, field: string): string => shown(sum(records, field))

/** These columns of the rows of a view that count. */
const columnsOf =
  (name: string, columns: string, counts: (row: Row, given: Given) => boolean = () => true): Answer =>
  (given) =>
    view(name, given)
      .filter((row) => counts(row, given))
      .map((row) => of(row, ...columns.split(" ")))

const overdue = (row: Row): string =>
  shown(["days_1_30", "days_31_60", "days_61_90", "over_90"].reduce((all, name) => all + exact(row[name]), 0n))

const sales: Readonly<Record<string, Answer>> = {
  "What did we invoice in each month?": (given) =>
    per(view("revenue_by_month", given), "month", (own) => [total(own, "amount")]),
  "Who are our ten largest customers?": ({ now }) => {
    const customer = byId(now, "customers")
    const rows = grouped(posted(now), (one) => one["customerid"])
      .filter(([one]) => customer(one!["customerid"]) !== undefined)
      .map((own) => [
        ...of(customer(own[0]!["customerid"])!, "customercode", "name"),
        own.length,
        total(own, "invoicetotal")
      ])
    return first(rows, 10, 3, 0)
  },
  "Which items sell best?": (given) => {
    const lines = view("revenue_by_month", given).filter((row) => row["item"] !== null)
    const rows = per(lines, "item", (own) => [total(own, "qty"), total(own, "amount")])
    return first(rows, 10, 2, 0)
  },
  "What commission did each salesperson earn?": (given) => {
    const rows = view("sales_by_salesman", given).filter((row) => row["salesman"] !== null)
    const earned = (own: ReadonlyArray<Json>) =>
      own.reduce((all, row) => all + exact(row["invoiced"]) * exact(row["commission_rate"]), 0n)
    return per(rows, "salesman", (own) => [
      total(own, "invoiced"),
      quotient(earned(own) / 10n ** 6n, 100n * 10n ** 6n, 2)
    ])
  },
  "Which customers have bought nothing for 60 days?": (given) =>
    columnsOf(
      "customer_balances",
      "customer customer_name last_invoice_date",
      (row) => row["last_invoice_date"] !== null && days(row["last_invoice_date"], given.today) > 60
    )(given).map((row) => [...row, days(row[2], given.today)]),
  "Which quotes are open, and what are they worth?": ({ now }) =>
    active(now, "orders")
      .filter((one) => one["status"] === "quote")
      .map((one) => of(one, "id", "customer", "orderdate", "ordertotal")),
  "What did we lose to cancelled orders, month by month?": ({ now }) => {
    const cancelled = now.of("orders").filter((one) => one["cancel"] === true)
    return per(cancelled, monthBy("orderdate"), (own) => [own.length, total(own, "ordertotal")])
  },
  "To which cities do we ship most?": ({ now }) => {
    const place = byId(now, "shiptos")
    const shipments = active(now, "shipments").flatMap((one) => {
      const to = place(one["shiptoid"])
      return to === undefined ? [] : [{ ...one, city: to["city"], state: to["state"] }]
    })
    const rows = grouped(shipments, (one) => [one["city"], one["state"]]).map((own) => [
      ...of(own[0]!, "city", "state"),
      own.length,
      new Set(own.map((one) => one["orderid"])).size
    ])
    return first(rows, 5, 2, 0)
  },
  "Which customers use more than half of their credit limit?": columnsOf(
    "customer_balances",
    "customer customer_name balance credit_limit credit_available",
    (row) => exact(row["credit_limit"]) > 0n && 2n * exact(row["balance"]) > exact(row["credit_limit"])
  )
}

const shipping: Readonly<Record<string, Answer>> = {
  "What remains to ship, the oldest first?": columnsOf(
    "open_order_lines",
    "order_id customer item qty_remaining amount_remaining age_days"
  ),
  "Which orders are late: open for two weeks without a shipment?": ({ now, today }) => {
    const shipped = new Set(active(now, "shipments").map((one) => one["orderid"]))
    return active(now, "orders")
      .filter((one) => ["unconfirmed", "open"].includes(String(one["status"])) && !shipped.has(one["id"]))
      .filter((one) => days(one["orderdate"], today) > 14)
      .map((one) => of(one, "id", "customer", "orderdate", "ordertotal"))
  },
  "How many days pass from the order to its first shipment?": (given) => {
    const shipped = view("order_to_cash", given).filter((row) => row["first_shipped"] !== null)
    return per(shipped, monthBy("orderdate"), (own) => [
      own.length,
      mean(own.map((row) => Number(row["days_to_ship"])))
    ])
  },
  "What did we ship in the last seven days?": ({ now, today }) => {
    const lines = Map.groupBy(active(now, "shipmentlines"), (line) => line["shipmentid"])
    const recent = active(now, "shipments").filter((one) => days(one["shipdate"], today) < 7 && lines.has(one["id"]))
    const linesOf = (own: ReadonlyArray<Json>) => own.flatMap((one) => lines.get(one["id"])!)
    return per(recent, "shipdate", (own) => [own.length, total(linesOf(own), "quantity")])
  },
  "What went out and was never invoiced?": columnsOf(
    "shipments_not_invoiced",
    "shipment_id order_id customer shipdate amount"
  ),
  "Which carriers ship how much?": ({ now }) => {
    const service = byId(now, "carrierservices")
    const shipments = active(now, "shipments").filter((one) => service(one["carrierserviceid"]) !== undefined)
    return grouped(shipments, (one) => one["carrierserviceid"]).map((own) => [
      ...of(service(own[0]!["carrierserviceid"])!, "carrier", "description"),
      own.length
    ])
  },
  "Which orders needed more than one shipment?": ({ now }) => {
    const order = byId(now, "orders")
    return grouped(active(now, "shipments"), (one) => one["orderid"])
      .filter((own) => own.length > 1 && order(own[0]!["orderid"]) !== undefined)
      .map((own) => {
        const dates = own.map((one) => String(one["shipdate"])).sort()
        const { id, customer } = order(own[0]!["orderid"])! as { readonly id: number; readonly customer: string }
        return [id, customer, own.length, days(dates[0], dates.at(-1))] as const
      })
      .sort((a, b) => b[2] - a[2] || b[3] - a[3] || a[0] - b[0])
      .slice(0, 10)
  },
  "How many hours were worked on service orders, by type of work?": ({ now }) => {
    const type = byId(now, "worktypes")
    const nameOf = (one: Json) => type(one["worktypeid"])!["name"]
    return per(active(now, "serviceordertimes"), nameOf, (own) => [own.length, total(own, "hours")])
  }
}

const receivables: Readonly<Record<string, Answer>> = {
  "Who owes us how much, and how much of it is overdue?": (given) =>
    first(
      view("receivables_aging", given).map((row) => [...of(row, "customer", "not_due"), overdue(row), row["total"]]),
      10,
      3,
      0
    ),
  "Which invoices are more than 30 days overdue?": columnsOf(
    "receivables_open",
    "invoicenumber customer due_date days_overdue open_amount",
    (row) => Number(row["days_overdue"]) > 30 && exact(row["open_amount"]) > 0n
  ),
  "What was paid in the last 30 days, and how?": (given) => {
    const recent = view("payments_by_day", given).filter(({ day }) => day !== null && days(day, given.today) < 30)
    return per(recent, "method_name", (own) => [total(own, "payments"), total(own, "net_amount")])
  },
  "How many days does a customer take to pay?": ({ now }) => {
    const invoice = byId(now, "invoices")
    const payments = active(now, "payments").filter((one) => invoice(one["invoiceid"]) !== undefined)
    const wait = (one: Json) => days(invoice(one["invoiceid"])!["invoicedate"], one["datereceived"])
    const rows = per(payments, "customer", (own) => [own.length, mean(own.map(wait))])
    return first(
      rows.filter((row) => Number(row[1]) >= 3),
      10,
      2,
      0
    )
  },
  "Which deposits on orders are not applied to an invoice yet?": columnsOf(
    "deposits_unapplied",
    "deposit_id order_id customer amount applied unapplied"
  ),
  "On which days do the payments differ from the daily close?": columnsOf(
    "daily_close_check",
    "day location status cash_difference checks_and_cards_difference",
    (row) => Number(row["closes"]) > 0
  ),
  "Which invoices are still drafts?": ({ now }) =>
    active(now, "invoices")
      .filter((one) => (one["voucherid"] ?? null) === null)
      .map((one) => of(one, "id", "invoicenumber", "customer", "invoicedate", "invoicetotal")),
  "What did returned goods cost us in credits?": ({ now }) =>
    per(active(now, "rmareturns"), monthBy("return_date"), (own) => [
      own.length,
      total(own, "total_credit"),
      total(own, "restock_fee")
    ]),
  "What do the journal entries add up to on each account?": ({ now }) => {
    const lines = active(now, "gltransactions").flatMap((one) => one["lines"] as ReadonlyArray<Json>)
    return per(lines, "glaccount", (own) => [own.length, total(own, "amount")])
  }
}

const purchasing: Readonly<Record<string, Answer>> = {
  "What have we ordered that has not arrived?": ({ now }) => {
    const order = new Map(active(now, "purchaseorders").map((one) => [one["id"], one]))
    return active(now, "purchaseorderlines").flatMap((line) => {
      const own = order.get(line["purchaseorderid"])
      const missing = exact(line["qtyorder"]) - exact(line["qtyreceived"])
      if (own === undefined || missing <= 0n) return []
      return [[...of(own, "id", "vendor", "orderdate"), line["item"], shown(missing)]]
    })
  },
  "How many days does each vendor need to deliver?": ({ now }) => {
    const order = new Map(active(now, "purchaseorders").map((one) => [one["id"], one]))
    const orderOf = (receipt: Json) => order.get(receipt["purchaseorderid"])!
    const receipts = active(now, "purchaseorderreceipts").filter((one) => order.has(one["purchaseorderid"]))
    return per(
      receipts,
      (one) => orderOf(one)["vendor"],
      (own) => [own.length, mean(own.map((one) => days(orderOf(one)["orderdate"], one["receiptdate"])))]
    )
  },
  "What did each vendor bill us?": ({ now }) => {
    const vendor = byId(now, "vendors")
    return grouped(active(now, "apbills"), (one) => one["vendorid"]).map((own) => [
      own[0]!["vendor"],
      vendor(own[0]!["vendorid"])!["name"],
      own.length,
      total(own, "billtotal")
    ])
  },
  "What did we last pay for each item, against what it sells for?": ({ now }) => {
    const order = new Map(active(now, "purchaseorders").map((one) => [one["id"], one]))
    const orderedAt = (line: Json) =>
      `${String(order.get(line["purchaseorderid"])!["orderdate"])} ${String(line["id"]).padStart(9, "0")}`
    const rows = active(now, "items").flatMap((item) => {
      const latest = active(now, "purchaseorderlines")
        .filter((line) => line["itemid"] === item["id"] && order.has(line["purchaseorderid"]))
        .sort((a, b) => (orderedAt(a) < orderedAt(b) ? -1 : 1))
        .at(-1)
      if (latest === undefined) return []
      const margin = shown(exact(item["price"]) - exact(latest["priceach"]))
      return [[item["sku"], latest["priceach"], item["price"], margin]]
    })
    return first(rows, 10, 3, 0, -1)
  }
}

const changes: Readonly<Record<string, Answer>> = {
  "What changed in the last day, by table?": (given) =>
    given.resources.flatMap((resource) => {
      const count = changed(given, resource).length
      return count === 0 ? [] : [[resource, count, count]]
    }),
  "Which fields of invoices changed, and from what to what?": (given) =>
    changed(given, "invoices").flatMap(({ id, was, is }) =>
      was === undefined || is === undefined
        ? []
        : Object.keys(is)
            .filter((field) => field !== "lastchangedate" && JSON.stringify(was[field]) !== JSON.stringify(is[field]))
            .map((field) => [id, field, was[field], is[field], "scan"])
    ),
  "Which orders changed their status?": (given) =>
    changed(given, "orders").flatMap(({ id, was, is }) =>
      was === undefined || is === undefined || was["status"] === is["status"]
        ? []
        : [[id, was["status"], is["status"], id === given.byWebhook ? "webhook" : "scan"]]
    ),
  "Which records came by webhook, a moment after they changed?": ({ now, byWebhook }) => [
    [byWebhook, 2, byId(now, "orders")(byWebhook)!["status"]]
  ],
  "Which customers are gone at the source?": (given) =>
    changed(given, "customers").flatMap(({ was, is }) =>
      is === undefined ? [of(was!, "id", "customercode", "name")] : []
    ),
  "What did customers owe at the end of the month?": ({ before, day }) => {
    const rows = figures["receivables_aging"]!(before, day)
    return [[rows.length, total(rows, "total"), shown(rows.reduce((all, row) => all + exact(overdue(row)), 0n))]]
  },
  "Which orders were open then and are not open now?": (given) =>
    changed(given, "orders").flatMap(({ id, was, is }) =>
      was?.["status"] === "open" && was["cancel"] !== true && (is?.["status"] !== "open" || is["cancel"] === true)
        ? [[id, "open", is!["status"], is!["cancel"] === true ? "t" : "f"]]
        : []
    )
}

const pipeline: Readonly<Record<string, Answer>> = {
  "What could not be loaded, and why?": ({ quarantined }) => [quarantined],
  "What did the syncs cost, and what did they bring?": (given) => {
    const rows = given.resources.map((resource) => {
      const { length } = given.before.of(resource)
      const differing = changed(given, resource)
      const fresh = differing.filter(({ was }) => was === undefined).length
      const gone = differing.filter(({ is }) => is === undefined).length
      return [resource, given.requests(resource), length + fresh, differing.length - fresh - gone, gone]
    })
    return first(rows, 10, 2, 0)
  },
  "Which records that I wrote back were rejected, and why?": ({ rejected }) => [rejected]
}

/** The answer to each question, by its heading. */
export const answers: Readonly<Record<string, Answer>> = {
  ...sales,
  ...shipping,
  ...receivables,
  ...purchasing,
  ...changes,
  ...pipeline
}
