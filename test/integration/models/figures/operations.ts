/** The figures of the views about operations: see `figures.ts`. */
import {
  active,
  activeBy,
  type Books,
  daysBetween,
  earliest,
  exact,
  find,
  grouped,
  isPosted,
  type Json,
  latest,
  money,
  monthOf,
  type Row,
  shown,
  sum,
  sums,
  text,
  texts,
  times
} from "./records.ts"

type Figure = (books: Books, asOf: string, isPresent: boolean) => ReadonlyArray<Row>

const isEmpty = (value: unknown): boolean => value === null || value === undefined
const size = (records: Iterable<unknown>): string => String(new Set(records).size)
const count = (records: ReadonlyArray<Json>, fits: (record: Json) => boolean): string =>
  String(records.filter(fits).length)
/** The first value that is not empty. */
const any = (records: ReadonlyArray<Json>, field: string): string | null =>
  text(records.map((record) => record[field]).find((value) => !isEmpty(value)))

/** A sum of products, each rounded; records without a price do not count. */
const worth = (records: ReadonlyArray<Json>, quantity: (record: Json) => bigint, price: string): bigint =>
  records.reduce(
    (total, record) => (isEmpty(record[price]) ? total : total + times(shown(quantity(record)), record[price])),
    0n
  )

const orders = (books: Books): ReadonlyArray<Json> =>
  active(books, "orders").filter((order) => order["status"] !== "quote")
const linesOf = (books: Books, order: Json): ReadonlyArray<Json> =>
  activeBy(books, "orderlines", "orderid").get(order["id"]) ?? []
const remainingOf = (line: Json): bigint => exact(line["qtyorder"]) - exact(line["qtyship"])

const backlog: Figure = (books, asOf) => {
  const lines = orders(books)
    .filter((order) => order["status"] !== "billed")
    .flatMap((order) =>
      linesOf(books, order)
        .filter((line) => remainingOf(line) > 0n)
        .map((line): Json => ({ ...line, order, month: monthOf(order["orderdate"]) }))
    )
  const orderOf = (line: Json) => line["order"] as Json
  return grouped(lines, (line) => [
    orderOf(line)["customerid"] ?? null,
    line["itemid"] ?? null,
    orderOf(line)["ordertype"] ?? null,
    orderOf(line)["inventorylocationid"] ?? null,
    line["month"]
  ]).map((group) => {
    const first = orderOf(group[0]!)
    const unconfirmed = group.filter((line) => orderOf(line)["status"] === "unconfirmed")
    const all = group.map(orderOf)
    const quantity = (some: ReadonlyArray<Json>) => some.reduce((total, line) => total + remainingOf(line), 0n)
    return {
      ...texts(first, "customer_id=customerid ordertype location_id=inventorylocationid"),
      customer: any(all, "customer"),
      ...texts(group[0], "item_id=itemid month"),
      item: any(group, "item"),
      location: any(all, "inventorylocation"),
      orders: size(all.map((order) => order["id"])),
      lines: String(group.length),
      lines_without_price: count(group, (line) => isEmpty(line["priceach"])),
      ...sums(group, "qty_ordered=qtyorder qty_shipped=qtyship"),
      qty_remaining: shown(quantity(group)),
      amount_ordered: shown(worth(group, (line) => exact(line["qtyorder"]), "priceach")),
      amount_remaining: shown(worth(group, remainingOf, "priceach")),
      qty_unconfirmed: shown(quantity(unconfirmed)),
      amount_unconfirmed: shown(worth(unconfirmed, remainingOf, "priceach")),
      oldest_orderdate: earliest(all, "orderdate"),
      oldest_age_days: daysBetween(earliest(all, "orderdate"), asOf)
    }
  })
}

/** The shipments of an order line, with its shipment lines of more than nothing. */
const shipmentsOf = (books: Books, line: Json): ReadonlyArray<Json> => {
  const ids = (activeBy(books, "shipmentlines", "orderlineid").get(line["id"]) ?? [])
    .filter((one) => exact(one["quantity"]) > 0n)
    .map((one) => one["shipmentid"])
  return [...new Set(ids)].flatMap((id) => {
    const shipment = find(books, "shipments", id)
    return shipment === undefined || shipment["cancel"] === true ? [] : [shipment]
  })
}
const isShippedInFull = (line: Json): boolean => exact(line["qtyorder"]) > 0n && remainingOf(line) <= 0n

const order_line_fulfilment: Figure = (books) =>
  orders(books).flatMap((order) =>
    linesOf(books, order).map((line) => {
      const shipments = shipmentsOf(books, line)
      const first = earliest(shipments, "shipdate")
      const last = latest(shipments, "shipdate")
      return {
        ...texts(order, "order_id=id ordertype status customer_id=customerid customer location_id=inventorylocationid"),
        ...texts(order, "location=inventorylocation orderdate"),
        ...texts(line, "orderline_id=id linenumber item_id=itemid item"),
        qty_ordered: shown(exact(line["qtyorder"])),
        qty_shipped: shown(exact(line["qtyship"])),
        is_shipped_in_full: String(isShippedInFull(line)),
        shipments: String(shipments.length),
        first_shipped: first,
        last_shipped: last,
        days_to_first: daysBetween(order["orderdate"], first),
        days_to_full: isShippedInFull(line) ? daysBetween(order["orderdate"], last) : null
      }
    })
  )

const ordered = (days: ReadonlyArray<string | null>): ReadonlyArray<number> =>
  days
    .filter((one) => one !== null)
    .map(Number)
    .sort((a, b) => a - b)

/** The middle one, or half of the two middle ones. */
const median = (days: ReadonlyArray<string | null>): string | null => {
  const all = ordered(days)
  if (all.length === 0) return null
  const half = (all[Math.floor((all.length - 1) / 2)]! + all[Math.floor(all.length / 2)]!) / 2
  return String(half)
}
/** The first one with at least nine tenths of all at or below it. */
const ninetieth = (days: ReadonlyArray<string | null>): string | null => {
  const all = ordered(days)
  const day = all.find((_, index) => (index + 1) * 10 >= all.length * 9)
  return day === undefined ? null : String(day)
}

const fulfilment_by_month: Figure = (books) => {
  const filled = orders(books).filter((order) => linesOf(books, order).length > 0)
  const all = filled.map((order): Json => {
    const lines = linesOf(books, order).map((line) => ({ line, shipments: shipmentsOf(books, line) }))
    const shipments = lines.flatMap((one) => one.shipments)
    const due = lines.filter(({ line }) => exact(line["qtyorder"]) > 0n)
    const full = due.filter(({ line }) => isShippedInFull(line))
    const daysTo = (day: string | null) => daysBetween(order["orderdate"], day)
    return {
      ...order,
      month: monthOf(order["orderdate"]),
      lines: lines.length,
      isShipped: daysTo(earliest(shipments, "shipdate")) !== null,
      isFull: due.length > 0 && full.length === due.length,
      toFirst: daysTo(earliest(shipments, "shipdate")),
      toFull: daysTo(latest(shipments, "shipdate")),
      lineDays: full.map((one) => daysTo(latest(one.shipments, "shipdate")))
    }
  })
  return grouped(all, (order) => [
    order["month"],
    order["ordertype"] ?? null,
    order["inventorylocationid"] ?? null
  ]).map((group) => {
    const full = group.filter((order) => order["isFull"] === true)
    const days = (some: ReadonlyArray<Json>, field: string) => some.map((order) => order[field] as string | null)
    const lineDays = group.flatMap((order) => order["lineDays"] as ReadonlyArray<string | null>)
    return {
      ...texts(group[0], "month ordertype location_id=inventorylocationid"),
      location: any(group, "inventorylocation"),
      orders: String(group.length),
      orders_shipped: count(group, (order) => order["isShipped"] === true),
      orders_in_full: String(full.length),
      median_days_to_first: median(days(group, "toFirst")),
      median_days_to_full: median(days(full, "toFull")),
      p90_days_to_full: ninetieth(days(full, "toFull")),
      lines: String(group.reduce((total, order) => total + Number(order["lines"]), 0)),
      lines_in_full: String(lineDays.length),
      median_line_days_to_full: median(lineDays)
    }
  })
}

const margin_by_month: Figure = (books) => {
  const lines = books.of("invoicelines").flatMap((line): ReadonlyArray<Json> => {
    const invoice = find(books, "invoices", line["invoiceid"])
    if (invoice === undefined || invoice["cancel"] === true || !isPosted(invoice) || line["linetype"] === 1) return []
    const units = [line["qtyunitnameid"], line["priceunitnameid"]]
    const isPerOtherUnit =
      (!units.some(isEmpty) && units[0] !== units[1]) ||
      (!isEmpty(line["qtyunitperpriceunit"]) && exact(line["qtyunitperpriceunit"]) !== exact("1"))
    const isKnown = !isPerOtherUnit && !isEmpty(line["costeach"]) && !isEmpty(line["qty"])
    return [{ ...line, invoice, month: monthOf(invoice["invoicedate"]), isPerOtherUnit, isKnown }]
  })
  const invoiceOf = (line: Json) => line["invoice"] as Json
  return grouped(lines, (line) => [
    line["month"],
    invoiceOf(line)["customerid"] ?? null,
    line["itemid"] ?? null,
    line["linetype"] ?? null,
    line["qtyunitname"] ?? null
  ]).map((group) => {
    const known = group.filter((line) => line["isKnown"] === true)
    const unknown = group.filter((line) => line["isKnown"] !== true)
    const free = known.filter((line) => exact(line["costeach"]) === 0n)
    const cost = worth(known, (line) => exact(line["qty"]), "costeach")
    return {
      ...texts(group[0], "month item_id=itemid linetype unit=qtyunitname"),
      customer_id: text(invoiceOf(group[0]!)["customerid"]),
      customer: any(group.map(invoiceOf), "customer"),
      item: any(group, "item"),
      lines: String(group.length),
      amount: shown(sum(group, "totalprice")),
      lines_with_cost: String(known.length),
      ...sums(known, "qty_with_cost=qty amount_with_cost=totalprice"),
      cost: shown(cost),
      margin: shown(sum(known, "totalprice") - cost),
      lines_at_zero_cost: String(free.length),
      amount_at_zero_cost: shown(sum(free, "totalprice")),
      lines_without_cost: String(unknown.length),
      amount_without_cost: shown(sum(unknown, "totalprice")),
      lines_per_other_unit: count(group, (line) => line["isPerOtherUnit"] === true)
    }
  })
}

const isDecimal = (value: unknown): boolean => /^-?\d+(\.\d+)?$/.test(text(value) ?? "")
const isId = (value: unknown): boolean => /^\d{1,18}$/.test(text(value) ?? "")

/** Whether a count replaces another one: a later day, or the same one and a higher id. A count without a day is last. */
const isLater = (one: Json, other: Json): boolean => {
  const [day, otherDay] = [text(one["countdate"]) ?? "", text(other["countdate"]) ?? ""]
  return day === otherDay ? Number(one["id"]) > Number(other["id"]) : day > otherDay
}

const counted_inventory: Figure = (books, asOf, isPresent) => {
  const found = active(books, "inventorycounts").flatMap((counting) => {
    const lines = Array.isArray(counting["lines"]) ? (counting["lines"] as ReadonlyArray<Json>) : []
    const fitting = lines.filter((line) => isId(line?.["itemid"]) && isDecimal(line["counted"]))
    return grouped(fitting, (line) => line["itemid"]).map((group): Json => ({
      ...counting,
      itemid: group[0]!["itemid"],
      counted: shown(sum(group, "counted"))
    }))
  })
  const left = active(books, "shipmentlines").flatMap((line): ReadonlyArray<Json> => {
    const shipment = find(books, "shipments", line["shipmentid"])
    const orderline = find(books, "orderlines", line["orderlineid"])
    if (shipment === undefined || shipment["cancel"] === true || orderline === undefined) return []
    return [
      { ...line, itemid: orderline["itemid"], shipdate: shipment["shipdate"], locationid: shipment["locationid"] }
    ]
  })
  const leftOf = Map.groupBy(left, (line) => `${text(line["locationid"])} ${text(line["itemid"])}`)
  const waiting = orders(books)
    .filter((order) => order["status"] === "open" || order["status"] === "partial")
    .flatMap((order) => linesOf(books, order).map((line): Json => ({ ...line, at: order["inventorylocationid"] })))
    .filter((line) => remainingOf(line) > 0n)
  const waitingOf = Map.groupBy(waiting, (line) => `${text(line["at"])} ${text(line["itemid"])}`)
  return grouped(found, (one) => [one["inventorylocationid"] ?? null, one["itemid"]]).map((group) => {
    const last = group.reduce((best, one) => (isLater(one, best) ? one : best))
    const item = find(books, "items", last["itemid"])
    const day = text(last["countdate"])
    const place = last["inventorylocationid"] ?? null
    const key = `${text(place)} ${text(last["itemid"])}`
    const shipped = (fits: (shipdate: string) => boolean) =>
      shown(
        sum(
          (place === null ? [] : (leftOf.get(key) ?? [])).filter(
            ({ shipdate }) => !isEmpty(shipdate) && fits(String(shipdate))
          ),
          "quantity"
        )
      )
    const rest = place === null ? [] : (waitingOf.get(key) ?? [])
    return {
      location_id: text(place),
      ...texts(last, "location=inventorylocation item_id=itemid count_id=id status"),
      ...texts(item, "item=sku description"),
      counted_on: day,
      age_days: daysBetween(day, asOf),
      counted: money(last["counted"]),
      shipped_that_day: day === null ? null : shipped((shipdate) => shipdate === day),
      shipped_since: day === null ? null : shipped((shipdate) => shipdate > day),
      to_ship: isPresent ? shown(rest.reduce((total, line) => total + remainingOf(line), 0n)) : null
    }
  })
}

const open_purchase_lines: Figure = (books, asOf) =>
  active(books, "purchaseorders")
    .filter((order) => order["complete"] !== true)
    .flatMap((order) => {
      const receipts = activeBy(books, "purchaseorderreceipts", "purchaseorderid").get(order["id"]) ?? []
      return (activeBy(books, "purchaseorderlines", "purchaseorderid").get(order["id"]) ?? []).flatMap((line) => {
        const rest = exact(line["qtyorder"]) - exact(line["qtyreceived"])
        if (rest <= 0n) return []
        return [
          {
            ...texts(order, "purchaseorder_id=id vendor_id=vendorid vendor orderdate"),
            ...texts(line, "purchaseorderline_id=id linenumber item_id=itemid item description"),
            age_days: daysBetween(order["orderdate"], asOf),
            qty_ordered: shown(exact(line["qtyorder"])),
            qty_received: shown(exact(line["qtyreceived"])),
            qty_to_receive: shown(rest),
            priceach: money(line["priceach"]),
            amount_to_receive: isEmpty(line["priceach"]) ? null : shown(times(shown(rest), line["priceach"])),
            receipts: String(receipts.length),
            last_receipt: latest(receipts, "receiptdate")
          }
        ]
      })
    })

/** The coding lines that name a job, of bills that are not cancelled. */
const coded = (books: Books): ReadonlyArray<Json> =>
  books.of("apbilllines").flatMap((line): ReadonlyArray<Json> => {
    const bill = find(books, "apbills", line["apbillid"])
    if (isEmpty(line["jobid"]) || bill === undefined || bill["cancel"] === true) return []
    return [{ ...line, billdate: bill["billdate"], isPosted: isPosted(bill) }]
  })
const costsOf = (lines: ReadonlyArray<Json>) => {
  const cost = lines.filter((line) => line["isretainer"] !== 1)
  const of = (posted: boolean) => sum(cost, "amount", (line) => line["isPosted"] === posted)
  return { posted: of(true), unposted: of(false), retainage: sum(lines, "amount") - of(true) - of(false) }
}

const job_costs: Figure = (books) =>
  grouped(coded(books), (line) => [line["jobid"], line["costcodeid"] ?? null]).map((lines) => {
    const job = find(books, "jobs", lines[0]!["jobid"])
    const { posted, unposted, retainage } = costsOf(lines)
    return {
      ...texts(lines[0], "job_id=jobid costcode_id=costcodeid"),
      ...texts(job, "job=name customer_id=customerid customer"),
      job_cancelled: String(job === undefined || job["cancel"] === true),
      costcode: any(lines, "costcode"),
      bills: size(lines.map((line) => line["apbillid"])),
      lines: String(lines.length),
      posted_cost: shown(posted),
      unposted_cost: shown(unposted),
      retainage: shown(retainage),
      first_billdate: earliest(lines, "billdate"),
      last_billdate: latest(lines, "billdate")
    }
  })

const job_totals: Figure = (books) =>
  books.of("jobs").map((job) => {
    const draws = activeBy(books, "jobdraws", "jobid").get(job["id"]) ?? []
    const lines = coded(books).filter((line) => line["jobid"] === job["id"])
    const { posted, unposted, retainage } = costsOf(lines)
    return {
      ...texts(job, "job_id=id job=name customer_id=customerid customer"),
      is_cancelled: String(job["cancel"] === true),
      draws: String(draws.length),
      drawn: shown(sum(draws, "amount")),
      bills: size(lines.map((line) => line["apbillid"])),
      posted_cost: shown(posted),
      unposted_cost: shown(unposted),
      retainage: shown(retainage),
      last_billdate: latest(lines, "billdate"),
      drawn_minus_cost: shown(sum(draws, "amount") - posted - unposted)
    }
  })

const isBilled = (time: Json): boolean => time["status"] === 2

const service_orders_unbilled: Figure = (books, asOf) =>
  orders(books)
    .filter((order) => order["ordertype"] === "service")
    .flatMap((order) => {
      const times = activeBy(books, "serviceordertimes", "orderid").get(order["id"]) ?? []
      const open = times.filter((time) => !isBilled(time))
      const unbilled = (line: Json) => exact(line["qtyship"]) - exact(line["qtybilled"])
      const lines = linesOf(books, order).filter((line) => unbilled(line) > 0n)
      if (open.length === 0 && lines.length === 0) return []
      return [
        {
          ...texts(order, "order_id=id status customer_id=customerid customer location_id=inventorylocationid"),
          ...texts(order, "location=inventorylocation orderdate"),
          age_days: daysBetween(order["orderdate"], asOf),
          entries_unbilled: String(open.length),
          hours_unbilled: shown(sum(open, "hours")),
          hours_billed: shown(sum(times, "hours") - sum(open, "hours")),
          first_unbilled: earliest(open, "date"),
          last_unbilled: latest(open, "date"),
          days_unbilled: daysBetween(earliest(open, "date"), asOf),
          lines_unbilled: String(lines.length),
          lines_without_price: count(lines, (line) => isEmpty(line["priceach"])),
          amount_unbilled: shown(worth(lines, unbilled, "priceach"))
        }
      ]
    })

const hours_by_month: Figure = (books, _asOf, isPresent) =>
  grouped(active(books, "serviceordertimes"), (time) => [
    monthOf(time["date"]),
    time["genuserid"] ?? null,
    time["worktypeid"] ?? null
  ]).map((group) => {
    const billed = sum(group.filter(isBilled), "hours")
    return {
      month: monthOf(group[0]!["date"]),
      ...texts(group[0], "user_id=genuserid worktype_id=worktypeid"),
      login: text(find(books, "users", group[0]!["genuserid"])?.["login"]),
      worktype: text(find(books, "worktypes", group[0]!["worktypeid"])?.["name"]),
      entries: String(group.length),
      orders: size(group.map((time) => time["orderid"]).filter((id) => !isEmpty(id))),
      hours: shown(sum(group, "hours")),
      hours_billed: isPresent ? shown(billed) : null,
      hours_unbilled: isPresent ? shown(sum(group, "hours") - billed) : null
    }
  })

const project_tasks: Figure = (books, asOf) =>
  grouped(active(books, "teamprojecttasks"), (task) => [
    task["teamprojectid"] ?? null,
    task["statusid"] ?? null,
    task["assignuserid"] ?? null
  ]).map((group) => {
    const project = find(books, "teamprojects", group[0]!["teamprojectid"])
    const due = group.filter((task) => !isEmpty(task["duedate"]))
    const coming = due.filter((task) => String(task["duedate"]) >= asOf)
    return {
      ...texts(group[0], "project_id=teamprojectid status_id=statusid user_id=assignuserid"),
      project: any(group, "teamproject"),
      project_cancelled: String(project === undefined || project["cancel"] === true),
      status: any(group, "status"),
      login: any(group, "assignuser"),
      tasks: String(group.length),
      tasks_undated: String(group.length - due.length),
      tasks_past_due: String(due.length - coming.length),
      earliest_due: earliest(due, "duedate"),
      next_due: earliest(coming, "duedate")
    }
  })

export const operations: Readonly<Record<string, Figure>> = {
  backlog,
  order_line_fulfilment,
  fulfilment_by_month,
  margin_by_month,
  counted_inventory,
  open_purchase_lines,
  job_costs,
  job_totals,
  service_orders_unbilled,
  hours_by_month,
  project_tasks
}
