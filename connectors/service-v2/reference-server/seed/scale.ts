/**
 * Fast generation of many invoice lines: posted invoices of 10 to 40 lines with the records they need.
 *
 * Promise: the rules could have written the same data: totals are the sums of their lines, pairs have both halves,
 * every posted invoice has its voucher. The amounts are small integers, so that plain arithmetic on them is exact.
 */
import { Raw } from "../json.ts"
import type { Random } from "../random.ts"
import { random } from "../random.ts"
import type { Store } from "../store/Store.ts"
import type { Version } from "../store/Table.ts"
import { microsPerDay, microsPerSecond, printDay } from "../time.ts"
import { ensureCompany } from "./install.ts"
import { products } from "./names.ts"
import type { SeedTarget } from "./SeedTarget.ts"

const company = 1
const daysBack = 365

const quantityMax = 24
const itemCount = 500

/** An integer of ten-thousandths as money with 4 decimals. */
const money4 = (tenThousandths: number): string => {
  const text = String(tenThousandths).padStart(5, "0")
  return `${text.slice(0, -4)}.${text.slice(-4)}`
}

/** A text value of a record; null when it has none. */
const shown = ({ values }: Version, field: string) => values[field] ?? null

/** The records that every invoice refers to. */
interface SharedRecords {
  readonly location: Version
  readonly account: Version
  readonly unit: Version
}

const sharedRecords = (store: Store): SharedRecords => {
  const first = (path: string) => store.table(company, path).all().next().value!
  return { location: first("inventorylocations"), account: first("glaccounts"), unit: first("qtyunits") }
}

const loadCustomers = (store: Store, count: number, at: number): ReadonlyArray<Version> => {
  const terms = [...store.table(company, "invoiceterms").all()]
  const customers = store.table(company, "customers")
  return Array.from({ length: count }, (_, index) => {
    const term = terms[index % terms.length]!
    const values = {
      customercode: `C${String(index + 1).padStart(5, "0")}`,
      name: `Customer ${index + 1}`,
      creditlimit: "10000.0000",
      invoicetermid: term.id,
      invoiceterm: shown(term, "verbal"),
      cancel: false
    }
    return store.load(customers, values, at)
  })
}

/** An item with the values that lines show. */
interface Item {
  readonly id: number
  readonly sku: string
  readonly description: string
  readonly price: string
  readonly listPrice: string
  readonly cents: number
  readonly taxable: boolean
}

const loadItems = (store: Store, account: Version, chance: Random, at: number): ReadonlyArray<Item> => {
  const items = store.table(company, "items")
  return Array.from({ length: itemCount }, (_, index) => {
    const cents = 100 + chance.integer(0, 50_000)
    const values = {
      sku: `SKU-${String(index + 1).padStart(4, "0")}`,
      description: `${products[index % products.length]!} ${100 + index}`,
      price: `${money4(cents * 100)}00`,
      glaccountid: account.id,
      glaccount: shown(account, "name"),
      taxable: index % 3 !== 0,
      cancel: false
    }
    const { id } = store.load(items, values, at)
    return { ...values, id, cents, listPrice: `${money4(cents * 100)}0` }
  })
}

/** Texts of quantities, made once because they repeat. */
const quantities = Array.from({ length: quantityMax + 1 }, (_, quantity) => `${quantity}.000000`)

/** The values of a line that depend on its invoice, its item and its quantity. */
const lineValues = (
  { location, account, unit }: SharedRecords,
  invoice: { readonly id: number; readonly number: string },
  linenumber: number,
  item: Item,
  quantity: number,
  totalprice: string
) => ({
  id: 0,
  invoiceid: invoice.id,
  invoice: invoice.number,
  linenumber,
  itemid: item.id,
  item: item.sku,
  description: item.description,
  qty: quantities[quantity]!,
  qtyunitnameid: unit.id,
  qtyunitname: shown(unit, "unitname"),
  glaccountid: account.id,
  glaccount: shown(account, "name"),
  taxflag: item.taxable ? 1 : 0,
  taxflag2: 0,
  taxflag3: 0,
  priceach: item.price,
  priceunitnameid: unit.id,
  priceunitname: shown(unit, "unitname"),
  qtyunitperpriceunit: "1.000000",
  totalprice,
  entrydate: null,
  lastchangedate: null,
  orig_priceach: item.listPrice,
  discount_amount: "0.00000",
  discount_percent: "0.00000",
  price_override: 0,
  extended_price: `${totalprice}0`,
  returnqty: "0.000000",
  inventorylocationid: location.id,
  inventorylocation: shown(location, "locationcode"),
  linetype: 0,
  period: ""
})

/** A posted invoice with its voucher and `count` lines. */
const loadInvoice = (
  store: Store,
  shared: SharedRecords,
  customers: ReadonlyArray<Version>,
  items: ReadonlyArray<Item>,
  chance: Random,
  count: number,
  at: number
) => {
  const table = (path: string) => store.table(company, path)
  const { location } = shared
  const day = printDay(at)
  const voucher = `AR-${String(store.draw(`${company}/vouchers/AR`)).padStart(6, "0")}`
  const voucherRecord = store.load(table("vouchers"), { voucher, date: day, cancel: false }, at)
  const number = `INV-${String(store.draw(`${company}/invoices`)).padStart(6, "0")}`
  const customer = customers[chance.integer(0, customers.length - 1)]!
  const invoice = { id: store.nextId("invoices"), number }
  const lines: Array<string> = []
  let total = 0
  for (let linenumber = 1; linenumber <= count; linenumber++) {
    const item = items[chance.integer(0, items.length - 1)]!
    const quantity = chance.integer(1, quantityMax)
    const lineTotal = quantity * item.cents * 100
    total += lineTotal
    const values = lineValues(shared, invoice, linenumber, item, quantity, money4(lineTotal))
    const { id } = store.load(table("invoicelines"), values, at)
    lines.push(
      `{"id":${id},"linenumber":${linenumber},"itemid":${item.id},"item":"${item.sku}",` +
        `"description":"${item.description}","qty":"${values.qty}","priceach":"${item.price}",` +
        `"totalprice":"${values.totalprice}","taxflag":${values.taxflag},"externalid":null}`
    )
  }
  const values = {
    invoicenumber: number,
    customerid: customer.id,
    customer: shown(customer, "customercode"),
    inventorylocationid: location.id,
    inventorylocation: shown(location, "locationcode"),
    invoicedate: day,
    voucherid: voucherRecord.id,
    voucher,
    invoicetotal: money4(total),
    invoicepaid: "0.0000",
    lines: new Raw(`[${lines.join(",")}]`),
    cancel: false
  }
  store.load(table("invoices"), values, at, invoice.id)
}

export const scale = (target: SeedTarget, rows: number, seed: number): void => {
  const { store, clock } = target
  const chance = random(seed)
  const end = clock.now() - 60 * microsPerSecond
  const begin = end - daysBack * microsPerDay
  clock.elsewhen(() => {
    clock.set(begin)
    ensureCompany(target, company)
  })
  const shared = sharedRecords(store)
  const customers = loadCustomers(store, Math.min(2000, Math.max(20, Math.ceil(rows / 500))), begin)
  const items = loadItems(store, shared.account, chance, begin)
  for (let left = rows; left > 0;) {
    const count = Math.min(left, chance.integer(10, 40))
    loadInvoice(
      store,
      shared,
      customers,
      items,
      chance,
      count,
      Math.floor(begin + ((rows - left) / rows) * (end - begin))
    )
    left -= count
  }
}
