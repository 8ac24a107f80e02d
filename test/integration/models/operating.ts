/** What the views about operations count: a demo business that ships, bills, buys and works, and odd records of it. */
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import type { Json } from "./figures/records.ts"
import type { Demo } from "./moments.ts"

export const today = "2026-03-16"

/** Ordinary work: shipping, billing, buying, coding to a job, hours and tasks. */
export const work = (demo: Demo, step: number): void => {
  const { call, one } = demo
  const item = one("items")
  const customerid = one("customers")["id"]
  const order = call("POST", "/orders", {
    customerid,
    orderdate: `2026-03-0${1 + step}`,
    lines: [
      { itemid: item["id"], qtyorder: "6" },
      { itemid: item["id"], qtyorder: "0.000001", priceach: "0.05" }
    ]
  })
  const lines = order["lines"] as ReadonlyArray<Json>
  const shipment = call("POST", "/shipments", {
    orderid: order["id"],
    lines: [{ orderlineid: lines[0]!["id"], quantity: step % 2 === 0 ? "0.333333" : String(lines[0]!["qtyorder"]) }]
  })
  if (step % 3 === 2) call("DELETE", `/shipments/${String(shipment["id"])}`)
  else if (step % 3 === 1) {
    const draft = call("POST", `/orders/${String(order["id"])}/invoice`)
    call("POST", `/invoices/${String(draft["id"])}/post`)
  }
  const service = call("POST", "/orders", {
    customerid,
    ordertype: "service",
    orderdate: `2026-0${1 + (step % 3)}-28`,
    lines: [{ itemid: item["id"], qtyorder: "2.5" }]
  })
  const time = {
    orderid: service["id"],
    hours: "1.25",
    date: "2026-02-28",
    worktypeid: one("worktypes")["id"]
  }
  call("POST", "/serviceordertimes", time)
  const second = call("POST", "/serviceordertimes", { ...time, hours: "0.000001", date: "2026-03-01" })
  if (step % 2 === 0) call("DELETE", `/serviceordertimes/${String(second["id"])}`)
  else
    call("POST", "/shipments", {
      orderid: service["id"],
      lines: [{ orderlineid: (service["lines"] as ReadonlyArray<Json>)[0]!["id"], quantity: "2.5" }]
    })
  if (step % 4 === 3) call("POST", `/orders/${String(service["id"])}/invoice`)

  const vendorid = one("vendors")["id"]
  const purchase = call("POST", "/purchaseorders", {
    vendorid,
    lines: [
      { itemid: item["id"], qtyorder: "10", priceach: "1.005" },
      { itemid: item["id"], qtyorder: "0.5", priceach: "3" }
    ]
  })
  const [bought] = purchase["lines"] as ReadonlyArray<Json>
  call("POST", "/purchaseorderreceipts", {
    purchaseorderid: purchase["id"],
    lines: [{ purchaseorderlineid: bought!["id"], quantity: step % 2 === 0 ? "3" : "10" }]
  })
  if (step % 3 === 2) call("PATCH", `/purchaseorders/${String(purchase["id"])}`, { complete: true })

  const job = one("jobs")
  const bill = call("POST", "/apbills", { vendorid, billtotal: "100" })
  const coding = { apbillid: bill["id"], glaccount: "Cost of goods", jobid: job["id"] }
  call("POST", "/apbilllines", { ...coding, amount: "99.9999", costcodeid: one("costcodes")["id"] })
  call("POST", "/apbilllines", { ...coding, amount: "0.0001" })
  if (step % 2 === 1) call("POST", `/apbills/${String(bill["id"])}/post`)
  call("POST", "/jobdraws", { jobid: job["id"], amount: "12.34" })
  call("POST", "/inventorycounts", {
    inventorylocationid: 1,
    countdate: `2026-03-${String(step + 1).padStart(2, "0")}`,
    lines: [
      { itemid: item["id"], counted: "7" },
      { itemid: item["id"], counted: "0.5" }
    ]
  })
  const task = one("teamprojecttasks")
  call("PATCH", `/teamprojecttasks/${String(task["id"])}`, { duedate: step % 2 === 0 ? null : today })
}

/** Records that only direct writes can produce: empty, cancelled, undated, dangling, zero and negative values. */
export const irregularities = (demo: Demo): void => {
  const { one } = demo
  const put = (resource: string, records: Parameters<Demo["put"]>[1]) =>
    demo.put(resource, records).map(({ id }) => Number(id))
  const gone = 999_999
  const customer = one("customers")
  const item = one("items")["id"]
  const dated = { customerid: customer["id"], inventorylocationid: 1, ordertype: "service", orderdate: "2026-01-31" }
  const orders = put("orders", [
    { ...dated, status: "open" },
    { ...dated, status: "on hold", ordertype: null, orderdate: null, inventorylocationid: null },
    { ...dated, status: null, ordertype: "fulfillment", customerid: null },
    { ...dated, status: "open", cancel: true },
    { ...dated, status: "quote" },
    { ...dated, status: "unconfirmed", ordertype: "fulfillment", orderdate: "2026-02-01" },
    { ...dated, status: "billed", ordertype: "fulfillment", orderdate: "2026-02-28" },
    { ...dated, status: "partial", cancel: null, customerid: gone, customer: "GONE" }
  ])
  const lines = put(
    "orderlines",
    orders.flatMap((orderid, index) => [
      {
        orderid,
        itemid: item,
        qtyorder: "10.000000",
        qtyship: "4.000000",
        qtybilled: "1.000000",
        priceach: "0.333335"
      },
      { orderid, itemid: item, qtyorder: "3.000000", qtyship: "3.000000", priceach: null },
      { orderid, itemid: null, qtyorder: "1.000000", qtyship: null, priceach: null, description: "no price" },
      { orderid, itemid: item, qtyorder: null, qtyship: "2.000000", qtybilled: null, priceach: "1.000000" },
      { orderid, itemid: gone, qtyorder: "-2.000000", qtyship: "0.000000", priceach: "5.000000" },
      { orderid, itemid: item, qtyorder: "0.000000", qtyship: "0.000000", priceach: "5.000000" },
      { orderid, itemid: item, qtyorder: "1.000000", qtyship: "2.000000", priceach: "5.000000", cancel: index === 0 },
      { orderid, itemid: item, qtyorder: "9.000000", qtyship: "0.000000", priceach: "5.000000", cancel: true }
    ])
  )
  put("orderlines", [
    { orderid: null, qtyorder: "1.000000", priceach: "1.000000" },
    { orderid: gone, qtyorder: "1.000000", priceach: "1.000000" }
  ])
  const shipment = { orderid: orders[0], locationid: 1, shipdate: "2026-02-01" }
  const shipments = put("shipments", [
    shipment,
    { ...shipment, shipdate: "2026-03-10" },
    { ...shipment, shipdate: null },
    { ...shipment, shipdate: "2027-01-01" },
    { ...shipment, shipdate: "2025-12-31", cancel: true },
    { ...shipment, shipdate: "2026-01-01", locationid: null, orderid: null }
  ])
  put("shipmentlines", [
    { shipmentid: shipments[0], orderlineid: lines[0], quantity: "1.000000" },
    { shipmentid: shipments[0], orderlineid: lines[0], quantity: "1.000000" },
    { shipmentid: shipments[1], orderlineid: lines[0], quantity: "2.000000" },
    { shipmentid: shipments[1], orderlineid: lines[1], quantity: "3.000000" },
    { shipmentid: shipments[2], orderlineid: lines[1], quantity: "1.000000" },
    { shipmentid: shipments[3], orderlineid: lines[1], quantity: "0.000000" },
    { shipmentid: shipments[3], orderlineid: lines[0], quantity: "-1.000000" },
    { shipmentid: shipments[3], orderlineid: lines[2], quantity: null },
    { shipmentid: shipments[4], orderlineid: lines[1], quantity: "1.000000" },
    { shipmentid: shipments[5], orderlineid: lines[3], quantity: "1.000000" },
    { shipmentid: shipments[0], orderlineid: lines[3], quantity: "8.000000", cancel: true },
    { shipmentid: shipments[0], orderlineid: gone, quantity: "8.000000" },
    { shipmentid: gone, orderlineid: lines[0], quantity: "8.000000" }
  ])

  const invoice = { customerid: customer["id"], voucherid: 1, invoicedate: "2026-01-31", invoicetotal: "1.0000" }
  const invoices = put("invoices", [
    { ...invoice, invoicenumber: "COST1" },
    { ...invoice, invoicenumber: "COST2", invoicedate: null, customerid: null },
    { ...invoice, invoicenumber: "COST3", voucherid: null },
    { ...invoice, invoicenumber: "COST4", cancel: true }
  ])
  put(
    "invoicelines",
    invoices.flatMap((invoiceid) => {
      const line = {
        invoiceid,
        itemid: item,
        linetype: 0,
        qty: "3.000000",
        totalprice: "10.0000",
        costeach: "1.333335"
      }
      return [
        line,
        { ...line, qty: "-1.000000", totalprice: "-3.0000" },
        { ...line, costeach: null },
        { ...line, costeach: "0.000000", totalprice: null },
        { ...line, costeach: "-2.000000", linetype: null },
        { ...line, qty: null },
        { ...line, qty: "0.000000", qtyunitnameid: 1 },
        { ...line, qtyunitnameid: 1, priceunitnameid: 2 },
        { ...line, qtyunitnameid: 1, priceunitnameid: 1, qtyunitperpriceunit: "1.000000" },
        { ...line, qtyunitperpriceunit: "12.000000" },
        { ...line, linetype: 1 },
        { ...line, linetype: 2, itemid: null, costeach: null }
      ]
    })
  )

  const counting = {
    inventorylocationid: 1,
    countdate: "2026-02-01",
    status: "counted",
    lines: [{ itemid: item, counted: "4.5" }]
  }
  put("inventorycounts", [
    counting,
    {
      ...counting,
      status: "open",
      lines: [
        { itemid: item, counted: "-1" },
        { itemid: item, counted: 2 }
      ]
    },
    { ...counting, countdate: null, lines: [{ itemid: gone, counted: "1" }] },
    { ...counting, countdate: "2026-03-01", cancel: true },
    {
      ...counting,
      inventorylocationid: null,
      lines: [
        { itemid: item, counted: "0" },
        { itemid: null, counted: "3" }
      ]
    },
    { ...counting, countdate: "2026-03-02", lines: [{ itemid: gone }, { counted: "1" }] },
    { ...counting, countdate: "2026-03-03", lines: [] },
    { ...counting, countdate: "2026-03-03", lines: null }
  ])

  const vendor = one("vendors")
  const purchases = put("purchaseorders", [
    { vendorid: vendor["id"], orderdate: null, complete: null },
    { vendorid: null, orderdate: "2026-03-16", complete: false },
    { vendorid: vendor["id"], orderdate: "2026-03-16", complete: true },
    { vendorid: vendor["id"], orderdate: "2026-03-16", cancel: true }
  ])
  put(
    "purchaseorderlines",
    purchases.flatMap((purchaseorderid) => [
      { purchaseorderid, itemid: item, qtyorder: "2.000000", qtyreceived: null, priceach: null },
      { purchaseorderid, itemid: null, qtyorder: "0.000005", qtyreceived: "0.000000", priceach: "10.000000" },
      { purchaseorderid, itemid: item, qtyorder: "2.000000", qtyreceived: "3.000000", priceach: "10.000000" },
      { purchaseorderid, itemid: item, qtyorder: null, qtyreceived: "-1.000000", priceach: "10.000000" },
      { purchaseorderid, itemid: item, qtyorder: "2.000000", priceach: "10.000000", cancel: true }
    ])
  )
  put("purchaseorderreceipts", [
    { purchaseorderid: purchases[0], receiptdate: null, lines: [] },
    { purchaseorderid: purchases[0], receiptdate: "2026-03-16", lines: [], cancel: true },
    { purchaseorderid: gone, receiptdate: "2026-03-16", lines: [] }
  ])

  const jobs = put("jobs", [
    { name: "Cancelled", cancel: true },
    { name: null, customerid: customer["id"], cancel: null }
  ])
  put("jobdraws", [
    { jobid: jobs[0], amount: "-5.0000" },
    { jobid: jobs[0], amount: null },
    { jobid: jobs[0], amount: "7.0000", cancel: true },
    { jobid: null, amount: "7.0000" },
    { jobid: gone, amount: "7.0000" }
  ])
  const bills = put("apbills", [
    { billtotal: "10.0000", voucherid: 1, billdate: "2026-01-31" },
    { billtotal: "10.0000", voucherid: null, billdate: null },
    { billtotal: "10.0000", voucherid: 1, cancel: true }
  ])
  put(
    "apbilllines",
    bills.flatMap((apbillid) => [
      { apbillid, amount: "10.0000", jobid: jobs[0] },
      { apbillid, amount: "-3.0000", jobid: jobs[0], isretainer: 1 },
      { apbillid, amount: null, jobid: jobs[0], isretainer: 0, costcodeid: 1 },
      { apbillid, amount: "4.0000", jobid: gone, costcodeid: 1 },
      { apbillid, amount: "5.0000", jobid: null }
    ])
  )
  put("apbilllines", [{ apbillid: gone, amount: "1.0000", jobid: jobs[0] }])

  const hours = { orderid: orders[0], hours: "1.500000", date: "2026-02-28", status: 0, worktypeid: 1, genuserid: 1 }
  put("serviceordertimes", [
    hours,
    { ...hours, status: 1, date: "2026-03-01" },
    { ...hours, status: 2 },
    { ...hours, status: null, hours: null, date: null },
    { ...hours, hours: "-0.500000", worktypeid: gone, genuserid: null },
    { ...hours, hours: "0.000000", worktypeid: null, genuserid: gone },
    { ...hours, orderid: orders[1] },
    { ...hours, orderid: orders[3] },
    { ...hours, orderid: orders[4] },
    { ...hours, orderid: gone },
    { ...hours, orderid: null },
    { ...hours, cancel: true }
  ])

  const project = one("teamprojects")
  const [closed] = put("teamprojects", [{ code: "CLOSED", cancel: true }])
  put("teamprojecttasks", [
    { teamprojectid: project["id"], title: "No date", statusid: null, duedate: null },
    { teamprojectid: project["id"], title: "Cancelled", duedate: today, cancel: true },
    { teamprojectid: closed, title: "Of a cancelled project", duedate: "2020-01-01" },
    { teamprojectid: gone, teamproject: "GONE", title: "Of no project", duedate: "2030-01-01" },
    { teamprojectid: null, title: "Without a project", duedate: today, assignuserid: null }
  ])
}

/** The same numbers in company 2, with other quantities and amounts. */
export const copyToCompany2 = (demo: Demo, resources: ReadonlyArray<string>): void => {
  const changed =
    /^(amount|invoicetotal|invoicepaid|billtotal|creditlimit|priceach|costeach|totalprice|qty\w*|quantity|hours)$/
  for (const path of resources.filter((one) => !serviceV2.resources.get(one)!.shared)) {
    const copies = demo.all(path).map((record) =>
      Object.fromEntries(
        Object.entries(record)
          .filter(([name]) => name !== "lines" || path === "inventorycounts")
          .map(([name, value]) =>
            changed.test(name) && typeof value === "string"
              ? [name, `1${value.replace("-", "").slice(-9)}`]
              : [name, value]
          )
      )
    )
    demo.put(path, copies, 2)
  }
}

/** Records disappear at the source. */
export const vanish = (demo: Demo): void => {
  for (const path of ["shipmentlines", "orderlines", "shipments", "items", "jobs", "teamprojects"]) {
    demo.remove(path, demo.all(path).findLast(({ cancel }) => cancel !== true)!["id"])
  }
  for (const path of ["apbilllines", "invoicelines", "jobdraws", "serviceordertimes", "inventorycounts"]) {
    demo.remove(path, demo.all(path)[0]!["id"])
  }
  demo.remove("worktypes", 1)
  demo.remove("users", 1)
  demo.remove("orders", demo.one("orders", ({ status }) => status === "open")["id"])
  demo.remove("purchaseorderlines", demo.all("purchaseorderlines").at(-2)!["id"])
  demo.remove("apbills", demo.all("apbilllines").find(({ jobid }) => jobid !== null)!["apbillid"])
}
