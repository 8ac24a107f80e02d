/**
 * The documented facts of the 25 detailed resources: operations, areas, filters, fields. Seventeen are in
 * `objects.ts`.
 */
import { fresh, idOf, row, succeeded, type Company, type Row } from "./harness.ts"
import { OBJECTS } from "./objects.ts"
import {
  makeDeposit,
  makeDraft,
  makeOrder,
  makePosted,
  makeReturn,
  makeSalesman,
  makeShipment,
  makeTerm,
  makePayment
} from "./world.ts"

export type Op = "L" | "C" | "B" | "R" | "U" | "D"

export interface Resource {
  readonly path: string
  readonly area: string
  readonly ops: readonly Op[]
  readonly filters: readonly string[]
  readonly modifiedsince: boolean
  readonly cancel: boolean
  readonly facts: { readonly ops: string; readonly filters: string; readonly row: string; readonly since: string }
  /** Creates a record through the API. */
  readonly make: (c: Company) => Promise<Row>
  /** A body that POST accepts, in a company prepared for it. */
  readonly body: (c: Company) => Promise<Row>
  /** A body that PATCH accepts, and the field that shows it. */
  readonly change: Row
}

export const RESOURCES: readonly Resource[] = [
  {
    path: "shipments",
    area: "shipments",
    ops: ["L", "C", "B", "R", "U", "D"],
    filters: ["locationid", "orderid", "invoiceid"],
    modifiedsince: true,
    cancel: true,
    facts: { ops: "SHIPMENTS-01", filters: "SHIPMENTS-02", row: "EPR-01", since: "SHIPMENTS-03" },
    make: async (c) => makeShipment(c, await makeOrder(c)),
    body: async (c) => {
      const order = await makeOrder(c)
      return { orderid: order.id, lines: [{ orderlineid: order.lineIds[0], quantity: "1" }] }
    },
    change: { externalid: "changed" }
  },
  {
    path: "invoicelines",
    area: "invoices",
    ops: ["L", "C", "B"],
    filters: ["itemid", "inventorylocationid", "invoiceid", "description"],
    modifiedsince: true,
    cancel: false,
    facts: { ops: "INVOICELINES-01", filters: "INVOICELINES-02", row: "EPR-02", since: "INVOICELINES-03" },
    make: async (c) =>
      c.create("invoicelines", { invoiceid: idOf(await makeDraft(c)), description: "x", quantity: "1", price: "1" }),
    body: async (c) => ({ invoiceid: idOf(await makeDraft(c)), description: "x", quantity: "1", price: "1" }),
    change: {}
  },
  {
    path: "payments",
    area: "payments",
    ops: ["L", "C", "B", "R", "U", "D"],
    filters: ["customerid", "inventorylocationid", "invoiceid"],
    modifiedsince: false,
    cancel: true,
    facts: { ops: "PAYMENTS-01", filters: "PAYMENTS-02", row: "EPR-03", since: "PAYMENTS-03" },
    make: async (c) => makePayment(c),
    body: async (c) => ({ invoiceid: idOf(await makePosted(c)), amount: "10" }),
    change: { externalid: "changed" }
  },
  {
    path: "orderdeposits",
    area: "payments",
    ops: ["L", "C", "B"],
    filters: ["orderid", "rnum"],
    modifiedsince: true,
    cancel: true,
    facts: { ops: "ORDERDEPOSITS-01", filters: "ORDERDEPOSITS-02", row: "EPR-04", since: "ORDERDEPOSITS-03" },
    make: async (c) => makeDeposit(c),
    body: async (c) => ({ orderid: (await makeOrder(c)).id, amount: "10" }),
    change: {}
  },
  {
    path: "rmareturns",
    area: "orders",
    ops: ["L", "C", "B", "R", "U", "D"],
    filters: ["invoiceid"],
    modifiedsince: false,
    cancel: true,
    facts: { ops: "RMARETURNS-01", filters: "RMARETURNS-02", row: "EPR-06", since: "RMARETURNS-03" },
    make: async (c) => makeReturn(c),
    body: async () => ({ return_date: "2026-02-03", total_credit: "1.5" }),
    change: { externalid: "changed" }
  },
  {
    path: "salesmen",
    area: "setup",
    ops: ["L", "C", "B", "R", "U", "D"],
    filters: ["name"],
    modifiedsince: true,
    cancel: true,
    facts: { ops: "SALESMEN-01", filters: "SALESMEN-02", row: "EPR-24", since: "SALESMEN-03" },
    make: async (c) => makeSalesman(c),
    body: async () => ({ name: fresh("sm") }),
    change: { externalid: "changed" }
  },
  {
    path: "invoiceterms",
    area: "setup",
    ops: ["L", "C", "B", "R", "U", "D"],
    filters: ["verbal"],
    modifiedsince: true,
    cancel: true,
    facts: { ops: "INVOICETERMS-01", filters: "INVOICETERMS-02", row: "EPR-23", since: "INVOICETERMS-03" },
    make: async (c) => makeTerm(c),
    body: async () => ({ verbal: fresh("term") }),
    change: { externalid: "changed" }
  },
  {
    path: "carrierservices",
    area: "setup",
    ops: ["L", "C", "B"],
    filters: ["code", "description"],
    modifiedsince: false,
    cancel: false,
    facts: { ops: "CARRIERSERVICES-01", filters: "CARRIERSERVICES-02", row: "EPR-19", since: "CARRIERSERVICES-03" },
    make: async (c) => c.create("carrierservices", { code: fresh("").slice(-10) }),
    body: async () => ({ code: fresh("").slice(-10) }),
    change: {}
  },
  ...OBJECTS
]

export function resource(path: string): Resource {
  const match = RESOURCES.find((each) => each.path === path)
  if (match === undefined) throw new Error(`no such resource in this suite: ${path}`)
  return match
}

/** Whether its records have lastchangedate. This differs from offering modifiedsince. */
export function dated(path: string): boolean {
  return FIELDS[path]?.some((field) => field.name === "lastchangedate") === true
}

/** A record of the resource as a list shows it: the resources without R are read through their list. */
export async function shownRecord(c: Company, each: Resource, id: number): Promise<Row> {
  if (each.ops.includes("R")) return c.read(each.path, id)
  const all = await c.list(`/${each.path}?limit=250&cancel=any`)
  return row(
    all.find((record) => record["id"] === id),
    `${each.path} ${id} in its list`
  )
}

export async function changed(c: Company, each: Resource, id: number): Promise<Row> {
  return succeeded(await c.patch(`/${each.path}/${id}`, each.change))
}

// --- fields -----------------------------------------------------------------------------------------------------

export type Kind = "int" | "bool" | "string" | "day" | "time" | { readonly decimals: number }

/** One fact: a field with its kind and a value to store, or a reference pair with the table it points to. */
export interface Field {
  readonly fact: string
  readonly name: string
  readonly kind: Kind
  readonly sample: unknown
  /** For a reference pair: the name of the code half, the table, and the field that holds the code. */
  readonly pair?: { readonly code: string; readonly table: string; readonly key: string }
  /** Whether the server sets it, whatever is stored. */
  readonly maintained?: boolean
}

const int = (fact: string, name: string, sample: unknown = 7): Field => ({ fact, name, kind: "int", sample })
const str = (fact: string, name: string, sample = `some ${name}`): Field => ({ fact, name, kind: "string", sample })
const bool = (fact: string, name: string): Field => ({ fact, name, kind: "bool", sample: true })
const day = (fact: string, name: string): Field => ({ fact, name, kind: "day", sample: "2026-01-15" })
const time = (fact: string, name: string): Field => ({
  fact,
  name,
  kind: "time",
  sample: "2026-01-15T10:20:30.000001Z"
})
const dec = (fact: string, name: string, decimals: number): Field => ({
  fact,
  name,
  kind: { decimals },
  // At the field's scale: a directly inserted value is shown unchanged.
  sample: `12.5${"0".repeat(decimals - 1)}`
})
const pair = (fact: string, name: string, code: string, table: string, key: string): Field => ({
  fact,
  name,
  kind: "int",
  sample: undefined,
  pair: { code, table, key }
})

export const FIELDS: Readonly<Record<string, readonly Field[]>> = {
  shipments: [
    int("SHIPMENTS-04", "orderid"),
    pair("SHIPMENTS-05", "carrierserviceid", "carrierservice", "carrierservices", "code"),
    day("SHIPMENTS-06", "shipdate"),
    pair("SHIPMENTS-07", "locationid", "location", "inventorylocations", "locationcode"),
    time("SHIPMENTS-08", "entrydate"),
    { ...time("SHIPMENTS-09", "lastchangedate"), maintained: true },
    int("SHIPMENTS-10", "shiptoid"),
    pair("SHIPMENTS-11", "voucherid", "voucher", "vouchers", "voucher"),
    bool("SHIPMENTS-12", "cancel"),
    pair("SHIPMENTS-13", "invoiceid", "invoice", "invoices", "invoicenumber"),
    str("SHIPMENTS-14", "externalid")
  ],
  invoicelines: [
    pair("INVOICELINES-04", "invoiceid", "invoice", "invoices", "invoicenumber"),
    int("INVOICELINES-05", "linenumber", 1),
    pair("INVOICELINES-06", "itemid", "item", "items", "sku"),
    str("INVOICELINES-07", "description"),
    dec("INVOICELINES-08", "qty", 6),
    pair("INVOICELINES-09", "qtyunitnameid", "qtyunitname", "qtyunits", "unitname"),
    pair("INVOICELINES-10", "glaccountid", "glaccount", "glaccounts", "name"),
    int("INVOICELINES-11", "taxflag", 1),
    int("INVOICELINES-12", "taxflag2", 1),
    int("INVOICELINES-13", "taxflag3", 1),
    int("INVOICELINES-14", "taxflagid"),
    int("INVOICELINES-15", "taxflag2id"),
    int("INVOICELINES-16", "taxflag3id"),
    dec("INVOICELINES-17", "priceach", 6),
    pair("INVOICELINES-18", "priceunitnameid", "priceunitname", "qtyunits", "unitname"),
    dec("INVOICELINES-19", "qtyunitperpriceunit", 6),
    dec("INVOICELINES-20", "totalprice", 4),
    time("INVOICELINES-21", "entrydate"),
    { ...time("INVOICELINES-22", "lastchangedate"), maintained: true },
    dec("INVOICELINES-23", "costeach", 6),
    pair("INVOICELINES-24", "costglaccountid", "costglaccount", "glaccounts", "name"),
    int("INVOICELINES-25", "main_arinvoicedetailid"),
    int("INVOICELINES-26", "itemoptionid"),
    int("INVOICELINES-27", "itemoptiongroupid"),
    dec("INVOICELINES-28", "orig_priceach", 5),
    dec("INVOICELINES-29", "discount_amount", 5),
    dec("INVOICELINES-30", "discount_percent", 5),
    str("INVOICELINES-31", "old_id"),
    int("INVOICELINES-32", "pricelevelid"),
    int("INVOICELINES-33", "price_override", 1),
    dec("INVOICELINES-34", "extended_price", 5),
    pair("INVOICELINES-35", "worktypeid", "worktype", "worktypes", "name"),
    int("INVOICELINES-36", "worksubtypeid"),
    dec("INVOICELINES-37", "returnqty", 6),
    int("INVOICELINES-38", "returndetailid"),
    int("INVOICELINES-39", "discountid"),
    dec("INVOICELINES-40", "discountpercent", 2),
    pair("INVOICELINES-41", "inventorylocationid", "inventorylocation", "inventorylocations", "locationcode"),
    day("INVOICELINES-42", "linedate"),
    int("INVOICELINES-43", "linetype", 2),
    pair("INVOICELINES-44", "partialtaxexemptionid", "partialtaxexemption", "taxexemptions", "exemptname"),
    pair("INVOICELINES-45", "taxclassid", "taxclass", "taxclasses", "name"),
    int("INVOICELINES-46", "arorderdetailid"),
    int("INVOICELINES-47", "itempricespecialdetailid"),
    dec("INVOICELINES-48", "numperiods", 6),
    str("INVOICELINES-49", "period", "W"),
    int("INVOICELINES-50", "producttypetaxid"),
    day("INVOICELINES-51", "rentalbegindate"),
    int("INVOICELINES-52", "arserviceorder_timeid"),
    int("INVOICELINES-53", "assetid"),
    int("INVOICELINES-54", "prpaytypeid"),
    dec("INVOICELINES-55", "prpaytypemultiplier", 2),
    str("INVOICELINES-56", "externalid")
  ],
  payments: [
    pair("PAYMENTS-04", "invoiceid", "invoice", "invoices", "invoicenumber"),
    dec("PAYMENTS-05", "amount", 4),
    pair("PAYMENTS-06", "voucherid", "voucher", "vouchers", "voucher"),
    day("PAYMENTS-07", "datereceived"),
    int("PAYMENTS-08", "paymeth", 99),
    int("PAYMENTS-09", "interest", 1),
    bool("PAYMENTS-10", "cancel"),
    pair("PAYMENTS-11", "cancel_userid", "cancel_user", "users", "login"),
    str("PAYMENTS-12", "checkid"),
    int("PAYMENTS-13", "bankdepositid"),
    day("PAYMENTS-14", "bankstatement_enddate"),
    day("PAYMENTS-15", "bankstatement_cleardate"),
    str("PAYMENTS-16", "old_id"),
    int("PAYMENTS-17", "refund_paymeth", 1),
    int("PAYMENTS-18", "cctransactionid"),
    int("PAYMENTS-19", "ccterminalid"),
    int("PAYMENTS-20", "extuserid"),
    str("PAYMENTS-21", "currency", "USD"),
    int("PAYMENTS-22", "returned", 1),
    pair("PAYMENTS-23", "feeinvoiceid", "feeinvoice", "invoices", "invoicenumber"),
    int("PAYMENTS-24", "feeapbillid"),
    dec("PAYMENTS-25", "bankfee_amount", 4),
    pair("PAYMENTS-26", "bankfee_glid", "bankfee_gl", "glaccounts", "name"),
    str("PAYMENTS-27", "rnum"),
    dec("PAYMENTS-28", "tendered", 4),
    str("PAYMENTS-29", "transid"),
    int("PAYMENTS-30", "orderdepositid"),
    int("PAYMENTS-31", "creditorderdepositid"),
    pair("PAYMENTS-32", "costcodeid", "costcode", "costcodes", "code"),
    pair("PAYMENTS-33", "inventorylocationid", "inventorylocation", "inventorylocations", "locationcode"),
    bool("PAYMENTS-34", "isb2bpayment"),
    bool("PAYMENTS-35", "isb2bpaymentfee"),
    bool("PAYMENTS-36", "jointcheck"),
    bool("PAYMENTS-37", "ispaymentonaccount"),
    int("PAYMENTS-38", "writeoffreasonid"),
    int("PAYMENTS-39", "creditfromarinvoicepaymentdetailid"),
    int("PAYMENTS-40", "credittoarinvoicepaymentdetailid"),
    time("PAYMENTS-41", "entrydate"),
    pair("PAYMENTS-42", "customerid", "customer", "customers", "customercode"),
    { ...int("PAYMENTS-43", "datereceivedandvoucherid"), maintained: true },
    { ...str("PAYMENTS-44", "pendingarachbankrecdatereceived"), maintained: true },
    pair("PAYMENTS-45", "checkaccountid", "checkaccount", "checkaccounts", "name"),
    str("PAYMENTS-46", "externalid")
  ],
  orderdeposits: [
    int("ORDERDEPOSITS-04", "orderid"),
    dec("ORDERDEPOSITS-05", "amount", 4),
    int("ORDERDEPOSITS-06", "payment_method", 3),
    str("ORDERDEPOSITS-07", "transaction_id"),
    time("ORDERDEPOSITS-08", "entrydate"),
    str("ORDERDEPOSITS-09", "last4ofcard", "4242"),
    int("ORDERDEPOSITS-10", "voucherid"),
    bool("ORDERDEPOSITS-11", "cancel"),
    { ...time("ORDERDEPOSITS-12", "lastchangedate"), maintained: true },
    int("ORDERDEPOSITS-13", "bankdepositid"),
    int("ORDERDEPOSITS-14", "cctransactionid"),
    int("ORDERDEPOSITS-15", "ccterminalid"),
    str("ORDERDEPOSITS-16", "checkid"),
    day("ORDERDEPOSITS-17", "bankstatement_enddate"),
    day("ORDERDEPOSITS-18", "bankstatement_cleardate"),
    pair("ORDERDEPOSITS-19", "checkacctid", "checkacct", "checkaccounts", "name"),
    str("ORDERDEPOSITS-20", "currency", "USD"),
    int("ORDERDEPOSITS-21", "returned", 1),
    dec("ORDERDEPOSITS-22", "bankfee_amount", 4),
    pair("ORDERDEPOSITS-23", "bankfee_glid", "bankfee_gl", "glaccounts", "name"),
    str("ORDERDEPOSITS-24", "rnum"),
    dec("ORDERDEPOSITS-25", "tendered", 4),
    str("ORDERDEPOSITS-26", "notes", "long text\nof two lines"),
    str("ORDERDEPOSITS-27", "externalid")
  ],
  rmareturns: [
    int("RMARETURNS-04", "rma_arorderid"),
    day("RMARETURNS-05", "return_date"),
    int("RMARETURNS-06", "taxid"),
    int("RMARETURNS-07", "taxid2"),
    int("RMARETURNS-08", "taxid3"),
    dec("RMARETURNS-09", "taxcredit", 5),
    dec("RMARETURNS-10", "taxcredit2", 5),
    dec("RMARETURNS-11", "taxcredit3", 5),
    dec("RMARETURNS-12", "shipping_credit", 5),
    dec("RMARETURNS-13", "restock_fee", 5),
    dec("RMARETURNS-14", "total_credit", 5),
    pair("RMARETURNS-15", "invoiceid", "invoice", "invoices", "invoicenumber"),
    pair("RMARETURNS-16", "voucherid", "voucher", "vouchers", "voucher"),
    int("RMARETURNS-17", "new_orderid"),
    bool("RMARETURNS-18", "cancel"),
    time("RMARETURNS-19", "entrydate"),
    str("RMARETURNS-20", "externalid")
  ],
  salesmen: [
    str("SALESMEN-05", "name"),
    bool("SALESMEN-06", "salesman"),
    bool("SALESMEN-07", "servicerep"),
    dec("SALESMEN-08", "commissionrate", 3),
    str("SALESMEN-09", "email1"),
    str("SALESMEN-10", "phone1"),
    bool("SALESMEN-11", "cancel"),
    str("SALESMEN-12", "externalid"),
    { ...time("SALESMEN-13", "lastchangedate"), maintained: true }
  ],
  invoiceterms: [
    str("INVOICETERMS-06", "verbal"),
    int("INVOICETERMS-07", "netduedays", 30),
    dec("INVOICETERMS-08", "discountpercent", 3),
    int("INVOICETERMS-09", "discountdays", 10),
    bool("INVOICETERMS-10", "ar"),
    bool("INVOICETERMS-11", "ap"),
    bool("INVOICETERMS-12", "cancel"),
    str("INVOICETERMS-13", "externalid"),
    { ...time("INVOICETERMS-14", "lastchangedate"), maintained: true }
  ],
  carrierservices: [
    pair("CARRIERSERVICES-04", "carrierid", "carrier", "carriers", "name"),
    str("CARRIERSERVICES-05", "description"),
    str("CARRIERSERVICES-06", "abbreviation"),
    int("CARRIERSERVICES-07", "sortorder"),
    int("CARRIERSERVICES-08", "not_on_b2b", 1),
    int("CARRIERSERVICES-09", "onquote", 1),
    dec("CARRIERSERVICES-10", "box1_charge", 5),
    dec("CARRIERSERVICES-11", "box_addl", 5),
    int("CARRIERSERVICES-12", "require_shippernum", 1),
    int("CARRIERSERVICES-13", "showvalue", 1),
    str("CARRIERSERVICES-14", "code", "GND"),
    dec("CARRIERSERVICES-15", "methodmarkupflat", 4),
    str("CARRIERSERVICES-16", "saturdaydelivery", "Y"),
    bool("CARRIERSERVICES-17", "allowonpointofsaleorders"),
    str("CARRIERSERVICES-18", "externalid")
  ],
  ...Object.fromEntries(OBJECTS.map((each) => [each.path, each.fields]))
}
