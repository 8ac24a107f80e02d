/**
 * Many invoice lines, fast: posted invoices of 10 to 40 lines with what they need.
 *
 * Promise: what is loaded here could have been written through the rules: totals are the sums of their lines, pairs
 * carry both halves, every posted invoice has its voucher. The amounts are small whole numbers, so that plain
 * arithmetic on them is exact.
 */
import { Raw } from "../json.ts"
import { random } from "../random.ts"
import { microsPerDay, microsPerSecond, printDay } from "../time.ts"
import type { World } from "../World.ts"
import { ensureCompany } from "./install.ts"
import { products } from "./names.ts"

const company = 1
const daysBack = 365

const quantityMax = 24

/** A whole number of ten-thousandths as money with 4 decimals. */
const money4 = (tenThousandths: number): string => {
  const text = String(tenThousandths).padStart(5, "0")
  return `${text.slice(0, -4)}.${text.slice(-4)}`
}

export const scale = (world: World, rows: number, seed: number): void => {
  const { store, clock } = world
  const chance = random(seed)
  const end = clock.now() - 60 * microsPerSecond
  const begin = end - daysBack * microsPerDay
  clock.elsewhen(() => {
    clock.set(begin)
    ensureCompany(world, company)
  })
  const table = (path: string) => store.table(company, path)
  const only = (path: string) => table(path).all().next().value!
  const location = only("inventorylocations")
  const account = only("glaccounts")
  const unit = only("qtyunits")
  const termRecords = [...table("invoiceterms").all()]
  const customers = Array.from({ length: Math.min(2000, Math.max(20, Math.ceil(rows / 500))) }, (_, index) => {
    const term = termRecords[index % termRecords.length]!
    return store.load(
      table("customers"),
      {
        customercode: `C${String(index + 1).padStart(5, "0")}`,
        name: `Customer ${index + 1}`,
        creditlimit: "10000.0000",
        invoicetermid: term.id,
        invoiceterm: term.values["verbal"] ?? null,
        cancel: false
      },
      begin
    )
  })
  const items = Array.from({ length: 500 }, (_, index) => {
    const cents = 100 + chance.integer(0, 50_000)
    const description = `${products[index % products.length]!} ${100 + index}`
    const values = {
      sku: `SKU-${String(index + 1).padStart(4, "0")}`,
      description,
      price: `${money4(cents * 100)}00`,
      glaccountid: account.id,
      glaccount: account.values["name"] ?? null,
      taxable: index % 3 !== 0,
      cancel: false
    }
    const { id } = store.load(table("items"), values, begin)
    return { ...values, id, cents, listPrice: `${money4(cents * 100)}0` }
  })
  // Texts that repeat are made once.
  const quantities = Array.from({ length: quantityMax + 1 }, (_, quantity) => `${quantity}.000000`)
  const invoices = table("invoices")
  const lines = table("invoicelines")
  const vouchers = table("vouchers")
  let left = rows
  while (left > 0) {
    const count = Math.min(left, chance.integer(10, 40))
    const at = Math.floor(begin + ((rows - left) / rows) * (end - begin))
    const day = printDay(at)
    const voucher = `AR-${String(store.draw(`${company}/vouchers/AR`)).padStart(6, "0")}`
    const voucherRecord = store.load(vouchers, { voucher, date: day, cancel: false }, at)
    const invoicenumber = `INV-${String(store.draw(`${company}/invoices`)).padStart(6, "0")}`
    const customer = customers[chance.integer(0, customers.length - 1)]!
    const invoiceId = store.nextId("invoices")
    const shown: Array<string> = []
    let total = 0
    for (let linenumber = 1; linenumber <= count; linenumber++) {
      const item = items[chance.integer(0, items.length - 1)]!
      const quantity = chance.integer(1, quantityMax)
      const lineTotal = quantity * item.cents * 100
      total += lineTotal
      const totalprice = money4(lineTotal)
      const qty = quantities[quantity]!
      const taxflag = item.taxable ? 1 : 0
      const { id } = store.load(
        lines,
        {
          id: 0,
          invoiceid: invoiceId,
          invoice: invoicenumber,
          linenumber,
          itemid: item.id,
          item: item.sku,
          description: item.description,
          qty,
          qtyunitnameid: unit.id,
          qtyunitname: unit.values["unitname"] ?? null,
          glaccountid: account.id,
          glaccount: item.glaccount,
          taxflag,
          taxflag2: 0,
          taxflag3: 0,
          priceach: item.price,
          priceunitnameid: unit.id,
          priceunitname: unit.values["unitname"] ?? null,
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
          inventorylocation: location.values["locationcode"] ?? null,
          linetype: 0,
          period: ""
        },
        at
      )
      shown.push(
        `{"id":${id},"linenumber":${linenumber},"itemid":${item.id},"item":"${item.sku}",` +
          `"description":"${item.description}","qty":"${qty}","priceach":"${item.price}",` +
          `"totalprice":"${totalprice}","taxflag":${taxflag},"externalid":null}`
      )
    }
    store.load(
      invoices,
      {
        invoicenumber,
        customerid: customer.id,
        customer: customer.values["customercode"] ?? null,
        inventorylocationid: location.id,
        inventorylocation: location.values["locationcode"] ?? null,
        invoicedate: day,
        voucherid: voucherRecord.id,
        voucher,
        invoicetotal: money4(total),
        invoicepaid: "0.0000",
        lines: new Raw(`[${shown.join(",")}]`),
        cancel: false
      },
      at,
      invoiceId
    )
    left -= count
  }
}
