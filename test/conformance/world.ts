/** The documents that tests need first, created through the API where the API offers it. */
import { assert } from "vitest"
import { fresh, idOf, ids, isRow, row, rows, succeeded, type Company, type Row } from "./harness.ts"

export async function makeCustomer(c: Company, over: Row = {}): Promise<Row> {
  return c.create("customers", { customercode: fresh("cust"), name: "A customer", ...over })
}

export async function makeItem(c: Company, over: Row = {}): Promise<Row> {
  return c.create("items", { sku: fresh("sku"), description: "An item", price: "5", ...over })
}

export async function makeLocation(c: Company, over: Row = {}): Promise<Row> {
  const [location] = await c.put("inventorylocations", [{ locationcode: fresh("loc"), ...over }])
  return location as Row
}

export async function makeCarrierService(c: Company, over: Row = {}): Promise<Row> {
  return c.create("carrierservices", { code: fresh("").slice(-10), description: "Ground", ...over })
}

export interface Order {
  readonly order: Row
  readonly id: number
  /** The order lines, by line number. */
  readonly lines: Row[]
  readonly lineIds: number[]
}

/** The lines of an order as they are now. */
export async function orderLines(c: Company, orderid: number): Promise<Row[]> {
  const order = await c.read("orders", orderid)
  const nested = Array.isArray(order["lines"]) && order["lines"].every((line) => isRow(line) && "qtyship" in line)
  const lines = nested
    ? rows(order["lines"])
    : (await c.list("/orderlines?limit=250")).filter((line) => line["orderid"] === orderid)
  return lines.toSorted((a, b) => Number(a["linenumber"]) - Number(b["linenumber"]))
}

/** An open order of one line of `10` at `5` by default. */
export async function makeOrder(c: Company, over: Row = {}): Promise<Order> {
  const customerid = over["customerid"] ?? idOf(await makeCustomer(c))
  const lines = over["lines"] ?? [{ itemid: idOf(await makeItem(c)), qtyorder: "10", priceach: "5" }]
  const order = await c.create("orders", { ordertype: "fulfillment", ...over, customerid, lines })
  const stored = await orderLines(c, idOf(order))
  assert.strictEqual(stored.length, (lines as Row[]).length, "an order line per line sent")
  return { order, id: idOf(order), lines: stored, lineIds: stored.map(idOf) }
}

/** A shipment of this quantity of the first line of the order. */
export async function makeShipment(c: Company, order: Order, quantity = "1", over: Row = {}): Promise<Row> {
  return c.create("shipments", { orderid: order.id, lines: [{ orderlineid: order.lineIds[0], quantity }], ...over })
}

/** A draft invoice of one non-stock line of 1 at 100, untaxed, by default. */
export async function makeDraft(c: Company, over: Row = {}): Promise<Row> {
  const customerid = over["customerid"] ?? idOf(await makeCustomer(c))
  const lines = over["lines"] ?? [{ description: "Work", quantity: "1", price: "100", taxable: false }]
  return c.create("invoices", { invoicenumber: fresh("inv"), ...over, customerid, lines })
}

export async function postInvoice(c: Company, id: number): Promise<Row> {
  return succeeded(await c.post(`/invoices/${id}/post`, {}))
}

export async function makePosted(c: Company, over: Row = {}): Promise<Row> {
  const draft = await makeDraft(c, over)
  return postInvoice(c, idOf(draft))
}

export async function makePayment(c: Company, over: Row = {}): Promise<Row> {
  const invoiceid = over["invoiceid"] ?? idOf(await makePosted(c))
  return c.create("payments", { amount: "10", ...over, invoiceid })
}

export async function makeDeposit(c: Company, over: Row = {}): Promise<Row> {
  const orderid = over["orderid"] ?? (await makeOrder(c)).id
  return c.create("orderdeposits", { amount: "10", ...over, orderid })
}

export async function makeReturn(c: Company, over: Row = {}): Promise<Row> {
  return c.create("rmareturns", { return_date: "2026-02-03", total_credit: "1.5", ...over })
}

export async function makeSalesman(c: Company, over: Row = {}): Promise<Row> {
  return c.create("salesmen", { name: fresh("sm"), ...over })
}

/** Inserts this many salesmen directly into the store. */
export async function putSalesmen(c: Company, count: number): Promise<number[]> {
  return ids(
    await c.put(
      "salesmen",
      Array.from({ length: count }, (_, i) => ({ name: `Person ${i}` }))
    )
  )
}

export async function makeTerm(c: Company, over: Row = {}): Promise<Row> {
  return c.create("invoiceterms", { verbal: fresh("term"), ...over })
}

export async function makeVendor(c: Company, over: Row = {}): Promise<Row> {
  return c.create("vendors", { vendorcode: fresh("ven"), name: "A vendor", ...over })
}

export async function makeGlAccount(c: Company, over: Row = {}): Promise<Row> {
  const [account] = await c.put("glaccounts", [{ name: fresh("acct"), ...over }])
  return account as Row
}

/** An unposted bill of 100 by default. */
export async function makeBill(c: Company, over: Row = {}): Promise<Row> {
  const vendorid = over["vendorid"] ?? idOf(await makeVendor(c))
  return c.create("apbills", { billdate: "2026-02-03", billtotal: "100", ...over, vendorid })
}

/** A purchase order of one line of `10` at `5` by default. */
export async function makePurchaseOrder(c: Company, over: Row = {}): Promise<Row> {
  const vendorid = over["vendorid"] ?? idOf(await makeVendor(c))
  const lines = over["lines"] ?? [{ itemid: idOf(await makeItem(c)), qtyorder: "10", priceach: "5" }]
  return c.create("purchaseorders", { orderdate: "2026-02-03", ...over, vendorid, lines })
}

/** The lines of a purchase order as they are now. */
export async function purchaseOrderLines(c: Company, id: number): Promise<Row[]> {
  const lines = (await c.list("/purchaseorderlines?limit=250")).filter((line) => line["purchaseorderid"] === id)
  return lines.toSorted((a, b) => Number(a["linenumber"]) - Number(b["linenumber"]))
}

/** An open service order of one line. */
export async function makeServiceOrder(c: Company, over: Row = {}): Promise<Order> {
  return makeOrder(c, { ordertype: "service", ...over })
}

const customer = async (c: Company) => idOf(await makeCustomer(c))
export const putOne = async (c: Company, path: string, record: Row = {}) => idOf(row((await c.put(path, [record]))[0]))

/** The bodies that POST accepts. */
export const BODIES: Readonly<Record<string, (c: Company) => Promise<Row>>> = {
  customers: async () => ({ customercode: fresh("c"), name: "x" }),
  shiptos: async (c) => ({ customerid: await customer(c), name: "x" }),
  contactnames: async (c) => ({ customerid: await customer(c), firstname: "Ann", lastname: "Lee" }),
  b2busers: async (c) => ({ customerid: await customer(c), login: fresh("login"), email: "a@b.example" }),
  orders: async (c) => ({
    ordertype: "fulfillment",
    customerid: await customer(c),
    lines: [{ description: "x", qtyorder: "1", priceach: "1" }]
  }),
  orderlines: async (c) => ({ orderid: (await makeOrder(c)).id, description: "x", qtyorder: "1", priceach: "1" }),
  invoices: async (c) => ({
    invoicenumber: fresh("i"),
    customerid: await customer(c),
    lines: [{ description: "x", quantity: "1", price: "1" }]
  }),
  items: async () => ({ sku: fresh("s"), description: "x" }),
  vendors: async () => ({ vendorcode: fresh("v"), name: "x" }),
  apbills: async (c) => ({ vendorid: idOf(await makeVendor(c)), billdate: "2026-02-03", billtotal: "1" }),
  serviceordertimes: async (c) => ({ orderid: (await makeOrder(c, { ordertype: "service" })).id, hours: "1" }),
  purchaseorders: async (c) => ({
    vendorid: idOf(await makeVendor(c)),
    lines: [{ description: "x", qtyorder: "1", priceach: "1" }]
  }),
  purchaseorderlines: async (c) => ({
    purchaseorderid: idOf(await makePurchaseOrder(c)),
    description: "x",
    qtyorder: "1",
    priceach: "1"
  }),
  purchaseorderreceipts: async (c) => {
    const purchaseorderid = idOf(await makePurchaseOrder(c))
    const [line] = await purchaseOrderLines(c, purchaseorderid)
    return { purchaseorderid, lines: [{ purchaseorderlineid: idOf(row(line)), quantity: "1" }] }
  },
  gltransactions: async (c) => {
    const glaccountid = await putOne(c, "glaccounts", { name: fresh("a") })
    return { transactiondate: "2026-02-03", lines: ["1", "-1"].map((amount) => ({ glaccountid, amount })) }
  },
  inventorycounts: async (c) => ({
    inventorylocationid: idOf(await makeLocation(c)),
    countdate: "2026-02-03",
    lines: [{ itemid: idOf(await makeItem(c)), counted: "3" }]
  }),
  fixedassets: async () => ({ name: "x", cost: "1" }),
  jobs: async (c) => ({ name: "x", customerid: await customer(c) }),
  jobdraws: async (c) => ({ jobid: await putOne(c, "jobs", { name: "j" }), amount: "1" }),
  jobsites: async (c) => ({ jobid: await putOne(c, "jobs", { name: "j" }), address: "x" }),
  propertyunits: async (c) => ({ buildingid: await putOne(c, "buildings", { name: "b" }), unitnumber: "1" }),
  leases: async (c) => ({ propertyunitid: await putOne(c, "propertyunits"), customerid: await customer(c) }),
  teamprojects: async () => ({ code: "P1" }),
  teamprojecttasks: async () => ({ title: "x" }),
  teamprojectmilestones: async () => ({ title: "x" }),
  estquotes: async (c) => ({ customerid: await customer(c), total: "1" }),
  taxexemptions: async () => ({ exemptname: fresh("x") })
}
