/**
 * Demo data: a small business in company 1, and a smaller one in company 2.
 *
 * Promise: all records are written through the server's own rules, at plausible times, so that the data obeys every
 * rule. The same seed and the same present give the same data.
 */
import { insert } from "../rules/records.ts"
import type { Random } from "../random.ts"
import { random } from "../random.ts"
import { units, format } from "../decimal.ts"
import type { Version } from "../store/Table.ts"
import { addDays, microsPerDay, microsPerSecond, printDay } from "../time.ts"
import { Business } from "./Business.ts"
import { ensureCompany } from "./install.ts"
import { lookups } from "./lookups.ts"
import { projects } from "./projects.ts"
import { purchases } from "./purchases.ts"
import type { SeedTarget } from "./SeedTarget.ts"
import { works } from "./works.ts"
import { cities, companyNames, people, products, streets } from "./names.ts"

const daysBack = 150

/** The amounts of data of a company. */
interface Size {
  readonly customers: number
  readonly items: number
  readonly orders: number
  readonly purchases: number
}

const masters = (business: Business, { customers, items }: Size) => {
  const { chance, context } = business
  const salesmen = people.map((name, index) =>
    business.make("salesmen", {
      name,
      salesman: index < 4,
      servicerep: index >= 3,
      commissionrate: `${2 + index}.500`,
      email1: `${name.split(" ")[0]!.toLowerCase()}@example.com`,
      phone1: `555-01${String(10 + index)}`
    })
  )
  for (const [index, [carrier, description, code]] of carrierServices.entries()) {
    business.make("carrierservices", {
      carrier,
      description,
      abbreviation: code,
      code,
      sortorder: (index + 1) * 10,
      not_on_b2b: 0,
      onquote: 0,
      box1_charge: `${8 + index}.50000`,
      box_addl: "4.25000",
      require_shippernum: 0,
      showvalue: index % 2,
      methodmarkupflat: "1.5000",
      saturdaydelivery: index === 2 ? "Y" : "",
      allowonpointofsaleorders: true
    })
  }
  const terms = business.all("invoiceterms")
  const sold = Array.from({ length: items }, (_, index) =>
    business.make("items", {
      sku: `${products[index % products.length]!.slice(0, 3).toUpperCase()}-${String(1000 + index)}`,
      description: `${products[index % products.length]!}, no. ${Math.floor(index / products.length) + 1}`,
      price: `${chance.integer(2, 240)}.${String(chance.integer(0, 99)).padStart(2, "0")}`,
      glaccount: "Sales",
      taxable: chance.chance(0.7)
    })
  )
  const invoiced = Array.from({ length: customers }, (_, index) => {
    const name = companyNames[index % companyNames.length]!
    const customer = business.make("customers", {
      customercode: `${name
        .replace(/[^A-Za-z]/g, "")
        .slice(0, 6)
        .toUpperCase()}${String(index + 1).padStart(2, "0")}`,
      name,
      creditlimit: `${chance.integer(2, 40) * 500}.0000`,
      invoicetermid: chance.pick(terms).id,
      salesmanid: chance.pick(salesmen).id,
      externalid: `crm-${context.company}-${index + 1}`,
      custom_fields: { region: chance.pick(["North", "South"]) }
    })
    for (let site = 0; site < 1 + (index % 3 === 0 ? 1 : 0); site++) {
      const [city, state, zip] = chance.pick(cities)
      business.make("shiptos", {
        customerid: customer.id,
        name: site === 0 ? name : `${name}, site ${site + 1}`,
        address: `${chance.integer(1, 900)} ${chance.pick(streets)}`,
        city,
        state,
        zip,
        country: "US"
      })
    }
    return customer
  })
  return { customers: invoiced, items: sold, salesmen }
}

const carrierServices = [
  ["UPS", "UPS Ground", "GND"],
  ["UPS", "UPS Next Day Air", "NDA"],
  ["FedEx", "FedEx Saturday", "FXSAT"],
  ["USPS", "Priority Mail", "PRI"],
  ["Own truck", "Local delivery", "LOCAL"]
] as const

/** Plans one order from its entry to its last payment. */
const orderStory = (business: Business, customers: ReadonlyArray<Version>, items: ReadonlyArray<Version>) => {
  const { chance, context } = business
  const customer = chance.pick(customers)
  const shiptos = context.store.table(context.company, "shiptos").where("customerid", customer.id)
  const kind = chance.next()
  const status = kind < 0.1 ? "quote" : kind < 0.15 ? "unconfirmed" : "open"
  const ordertype = chance.pick(["fulfillment", "fulfillment", "fulfillment", "fulfillment", "service", "rental"])
  const order = business.make("orders", {
    ordertype,
    status,
    customerid: customer.id,
    shiptoid: chance.pick(shiptos).id,
    externalid: chance.chance(0.3) ? `web-${context.company}-${chance.integer(10_000, 99_999)}` : undefined,
    lines: Array.from({ length: chance.integer(1, 6) }, () => {
      const item = chance.pick(items)
      const isReduced = chance.chance(0.15)
      const price = (units(item.values["price"], 6) * (isReduced ? 9n : 10n)) / 10n
      return { itemid: item.id, qtyorder: `${chance.integer(1, 24)}`, priceach: format(price, 6) }
    })
  })
  if (status === "quote") {
    if (chance.chance(0.4)) business.plan(business.later(2, 14), () => confirm(business, order))
    return
  }
  if (status === "unconfirmed") {
    if (chance.chance(0.6)) business.plan(business.later(1, 3), () => confirm(business, order))
    return
  }
  if (chance.chance(0.04)) {
    business.plan(business.later(1, 4), () => business.cancel(order))
    return
  }
  if (chance.chance(0.15)) deposit(business, order)
  if (ordertype === "service") serve(business, order)
  business.plan(business.later(1, 6), () => ship(business, order))
}

/** Records hours on a service order before it is billed. */
const serve = (business: Business, order: Version) => {
  business.make("serviceordertimes", {
    orderid: order.id,
    hours: `${1 + (order.id % 4)}.5`,
    worktypeid: business.all("worktypes")[order.id % 3]!.id,
    genuserid: business.context.userId,
    note: "On site"
  })
}

const confirm = (business: Business, order: Version) => {
  business.change(order, { status: "open" })
  business.plan(business.later(1, 5), () => ship(business, order))
}

const deposit = (business: Business, order: Version) => {
  const third = units(business.fresh(order).values["ordertotal"], 4) / 3n
  if (third <= 0n) return
  business.make("orderdeposits", {
    orderid: order.id,
    amount: format(third, 4),
    method: business.chance.pick([2, 3, 4]),
    reference: `DEP${order.id}`
  })
}

/** Ships the open quantities, sometimes in part, and invoices them. */
const ship = (business: Business, order: Version) => {
  const { chance, context } = business
  const lines = context.store.table(context.company, "orderlines").where("orderid", order.id)
  const isWhole = chance.chance(0.75)
  const shipping = lines.flatMap(({ id, values }) => {
    const left = Number((units(values["qtyorder"], 6) - units(values["qtyship"], 6)) / 1_000_000n)
    const quantity = isWhole ? left : chance.integer(0, left)
    return quantity > 0 ? [{ orderlineid: id, quantity: String(quantity) }] : []
  })
  if (shipping.length > 0) {
    const shipment = business.make("shipments", { orderid: order.id, lines: shipping })
    const service = chance.pick(business.all("carrierservices"))
    business.change(shipment, { carrierserviceid: service.id })
    if (chance.chance(0.03)) {
      business.plan(business.later(0, 1), () => business.cancel(shipment))
      business.plan(business.later(2, 4), () => ship(business, order))
      return
    }
    business.plan(business.later(0, 2) + microsPerDay, () => bill(business, order))
  }
  if (!isWhole) business.plan(business.later(3, 12), () => ship(business, order))
}

const bill = (business: Business, order: Version) => {
  const { context, chance } = business
  const lines = context.store.table(context.company, "orderlines").where("orderid", order.id)
  const isDue = lines.some(({ values }) => units(values["qtyship"], 6) > units(values["qtybilled"], 6))
  if (!isDue) return
  const invoice = business.special(order, "invoice")
  if (chance.chance(0.2)) {
    business.make("invoicelines", {
      invoiceid: invoice.id,
      description: "Freight",
      quantity: "1",
      price: `${chance.integer(8, 60)}.50`,
      taxable: false
    })
  }
  if (chance.chance(0.08)) return
  business.plan(business.later(0, 1), () => {
    business.special(invoice, "post")
    business.plan(business.later(5, 45), () => pay(business, invoice))
  })
}

/** Pays the open balance, sometimes in two parts, sometimes not at all. */
const pay = (business: Business, invoice: Version) => {
  const { chance } = business
  if (chance.chance(0.12)) return
  const { values } = business.fresh(invoice)
  const open = units(values["invoicetotal"], 4) - units(values["invoicepaid"], 4)
  const isPart = chance.chance(0.2)
  const amount = isPart ? open / 2n : open
  if (amount <= 0n) return
  const payment = business.make("payments", {
    invoiceid: invoice.id,
    amount: format(amount, 4),
    method: chance.pick([1, 2, 2, 3, 4]),
    reference: `CHK${chance.integer(1000, 9999)}`
  })
  if (chance.chance(0.03)) {
    business.plan(business.later(1, 5), () => {
      business.cancel(payment)
      business.plan(business.later(3, 10), () => pay(business, invoice))
    })
    return
  }
  if (isPart) business.plan(business.later(7, 20), () => pay(business, invoice))
  if (chance.chance(0.06)) business.plan(business.later(3, 20), () => takeBack(business, invoice))
}

const takeBack = (business: Business, invoice: Version) => {
  const { values } = business.fresh(invoice)
  const credit = format(units(values["invoicetotal"], 5) / 4n, 5)
  business.make("rmareturns", {
    rma_arorderid: values["orderid"],
    return_date: printDay(business.clock.now()),
    invoiceid: invoice.id,
    restock_fee: "15.00000",
    total_credit: credit
  })
}

/** Cancelled rows, custom fields and unusual values that every client meets at some time. */
const corners = (business: Business) => {
  const { context, clock } = business
  const { store, company } = context
  store.transact(() => {
    const definitions = store.table(company, "customfields")
    const region = { name: "region", resource: "customers", acceptedvalues: "North,South", cancel: false }
    store.put(definitions, null, { values: region })
    store.put(store.table(company, "carriers"), null, { values: { name: "UPS Freight", cancel: false } })
    store.put(store.table(company, "carriers"), null, { values: { name: "UPS Freight", cancel: false } })
    const day = printDay(clock.now())
    const closed = { startdate: addDays(day, -220), enddate: addDays(day, -30), closed: true, cancel: false }
    store.put(store.table(company, "ledgerperiods"), null, { values: closed })
  })
}

const retire = (business: Business, retired: ReadonlyArray<Version>) => {
  for (const version of retired) business.cancel(version)
}

const company = (target: SeedTarget, number: number, chance: Random, size: Size, end: number) => {
  const begin = end - daysBack * microsPerDay
  const { clock } = target
  const scopes = new Set(target.store.catalogue.areas.map(({ name }) => `${name}:cancel`))
  clock.elsewhen(() => {
    clock.set(begin)
    ensureCompany(target, number)
    const context = target.context(number, 0, scopes)
    const clerk = target.store.transact(() =>
      insert(context, "users", { login: "office", name: "Office", active: true })
    )
    const business = new Business(clock, { ...context, userId: clerk.id }, chance, end)
    corners(business)
    const { customers, items } = masters(business, size)
    const trading = customers.slice(0, -1)
    lookups(business)
    purchases(business, items.slice(0, -1), size.purchases)
    works(business, trading)
    projects(business, number === 1 ? 3 : 1)
    for (let index = 0; index < size.orders; index++) {
      const at = begin + Math.floor(((index + chance.next()) / size.orders) * (daysBack - 1) * microsPerDay)
      business.plan(at, () => orderStory(business, trading, items))
    }
    business.plan(begin + 90 * microsPerDay, () => {
      const extra = business.make("salesmen", { name: "Former employee", salesman: true })
      const unused = business.make("rmareturns", { return_date: printDay(clock.now()), restock_fee: "5" })
      retire(business, [customers.at(-1)!, items.at(-1)!, extra, unused])
    })
    business.run()
  })
}

export const demo = (target: SeedTarget, seed: number): void => {
  const end = target.clock.now() - 60 * microsPerSecond
  company(target, 1, random(seed), { customers: 40, items: 60, orders: 150, purchases: 24 }, end)
  company(target, 2, random(seed + 1), { customers: 10, items: 20, orders: 30, purchases: 6 }, end)
}
