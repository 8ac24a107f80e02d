/** Demo data of purchasing: vendors, purchase orders, receipts, bills and their coding, and monthly journals. */
import { format, units } from "../decimal.ts"
import { insert } from "../rules/records.ts"
import type { Version } from "../store/Table.ts"
import { microsPerDay, microsPerSecond, printDay } from "../time.ts"
import type { Business } from "./Business.ts"
import { cities, streets } from "./names.ts"

const vendorNames = ["Northwest Fastener Supply", "Cascade Electric", "Puget Paint", "Valley Tool", "Coastal Freight"]

const vendorsOf = (business: Business): ReadonlyArray<Version> =>
  vendorNames.map((name, index) => {
    const vendorcode = `V${String(index + 1).padStart(3, "0")}`
    const vendor = business.make("vendors", { vendorcode, name })
    const [city, state, zip] = cities[index % cities.length]!
    business.make("vendororderfroms", {
      vendorid: vendor.id,
      companyname: name,
      address: `${100 + index * 7} ${streets[index % streets.length]!}`,
      city,
      state,
      zip,
      country: "US",
      phone: `555-02${String(10 + index)}`
    })
    return vendor
  })

/** Half of the item's sales price. */
const costOf = ({ values }: Version): bigint => units(values["price"], 6) / 2n

/** Plans one purchase from its order to the posted bill. `index` replaces random values, which belong to the sales. */
const purchase = (business: Business, vendor: Version, items: ReadonlyArray<Version>, index: number) => {
  const bought = [0, 1, 2].slice(0, 1 + (index % 3)).map((next) => items[(index * 3 + next) % items.length]!)
  const order = business.make("purchaseorders", {
    vendorid: vendor.id,
    externalid: index % 4 === 0 ? `buy-${business.context.company}-${index}` : undefined,
    lines: bought.map((item, line) => ({
      itemid: item.id,
      qtyorder: String(20 + ((index + line) % 5) * 10),
      priceach: format(costOf(item), 6)
    }))
  })
  const { now } = business.clock
  business.plan(now() + (5 + (index % 6)) * microsPerDay, () => receive(business, order, index))
}

const receive = (business: Business, order: Version, index: number) => {
  const { store, company } = business.context
  const lines = store.table(company, "purchaseorderlines").where("purchaseorderid", order.id)
  // Every sixth delivery is incomplete.
  const part = index % 6 === 5 ? 2n : 1n
  const received = lines.map(({ id, values }) => ({ id, values, quantity: units(values["qtyorder"], 6) / part }))
  business.make("purchaseorderreceipts", {
    purchaseorderid: order.id,
    lines: received.map(({ id, quantity }) => ({ purchaseorderlineid: id, quantity: format(quantity, 6) }))
  })
  let total = 0n
  for (const { values, quantity } of received) total += (quantity * units(values["priceach"], 6)) / 100_000_000n
  if (part === 1n) business.change(order, { complete: true })
  business.plan(business.clock.now() + 3 * microsPerDay, () => bill(business, order, total, index))
}

const bill = (business: Business, order: Version, total: bigint, index: number) => {
  const made = business.make("apbills", { vendorid: order.values["vendorid"], billtotal: format(total, 4) })
  const freight = total / 10n
  const coded = [
    { glaccount: "Cost of goods", amount: total - freight, costcode: 0 },
    { glaccount: "Bank fees", amount: freight, costcode: 1 }
  ]
  const costcodes = business.all("costcodes")
  for (const { glaccount, amount, costcode } of coded) {
    if (amount === 0n) continue
    const costcodeid = costcodes[costcode]!.id
    business.make("apbilllines", { apbillid: made.id, glaccount, amount: format(amount, 4), costcodeid })
  }
  // Some bills still wait for approval.
  if (index % 5 !== 4) business.plan(business.clock.now() + microsPerDay, () => void business.special(made, "post"))
}

/** Wages at the end of a month. */
const journal = (business: Business, month: number) => {
  const wages = `${4200 + month * 35}.00`
  business.make("gltransactions", {
    description: `Wages, month ${month + 1}`,
    lines: [
      { glaccount: "Cost of goods", amount: wages, description: "wages" },
      { glaccount: "Cash", amount: `-${wages}`, description: "paid out" }
    ]
  })
}

/** Closes the day: what was counted is what the payments of the day add up to. */
const close = (business: Business) => {
  const [location] = business.all("inventorylocations")
  const day = printDay(business.clock.now())
  const payments = business
    .all("payments")
    .map(({ values }) => values)
    .filter(
      (one) => one["datereceived"] === day && one["inventorylocationid"] === location!.id && one["cancel"] !== true
    )
  const received = (...methods: ReadonlyArray<number>) =>
    format(
      payments
        .filter((one) => methods.includes(Number(one["paymeth"])))
        .reduce((sum, one) => sum + units(one["amount"], 4), 0n),
      4
    )
  const [cash, checks, cards] = [received(1), received(2), received(3, 5)]
  business.make("ardailycloses", {
    inventorylocationid: location!.id,
    closedate: day,
    actualcash: cash,
    sys_cash: cash,
    actualchecks: checks,
    sys_checks: checks,
    actualcc: cards,
    sys_cc: cards,
    overshort: "0",
    currency: "USD"
  })
}

export const purchases = (business: Business, items: ReadonlyArray<Version>, count: number): void => {
  const { clock } = business
  const { context } = business
  const begin = clock.now()
  const [location] = business.all("inventorylocations")
  business.make("inventorycounts", {
    inventorylocationid: location!.id,
    status: "opening",
    lines: items.map(({ id }) => ({ itemid: id, counted: "500" }))
  })
  context.store.transact(() => {
    for (const [index, name] of ["Mara Voss", "Ned Albright", "Ivy Chen"].entries()) {
      insert(context, "employees", { name, code: `E${index + 1}` })
    }
  })
  const vendors = vendorsOf(business)
  const span = (business.end - begin) / microsPerDay
  for (let index = 0; index < count; index++) {
    const at = begin + Math.floor(((index + 0.5) / count) * (span - 12)) * microsPerDay + 8 * 3_600_000_000
    business.plan(at, () => purchase(business, vendors[index % vendors.length]!, items, index))
  }
  for (let month = 0; month < 4; month++) {
    business.plan(begin + (30 * month + 28) * microsPerDay, () => journal(business, month))
    const day = Math.floor((begin + (30 * month + 20) * microsPerDay) / microsPerDay) * microsPerDay
    business.plan(day + microsPerDay - microsPerSecond, () => close(business))
  }
}
