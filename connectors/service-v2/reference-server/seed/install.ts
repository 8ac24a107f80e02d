/**
 * What every install and every company has before anybody works with it.
 *
 * Promise: a company exists from the first time that it is mentioned, with its static tables, one location and an open
 * ledger period; the payment terms exist once for all companies (C-11).
 */
import type { Value } from "../json.ts"
import { sharedCompany } from "../store/Store.ts"
import { addDays, printDay } from "../time.ts"
import type { World } from "../World.ts"

type Rows = ReadonlyArray<Readonly<Record<string, Value>>>

const named = (field: string, ...names: ReadonlyArray<string>): Rows => names.map((name) => ({ [field]: name }))

export const terms: Rows = [
  { verbal: "Net 30", netduedays: 30, discountpercent: "0.000", discountdays: 0, ar: true, ap: true },
  { verbal: "2% 10 Net 30", netduedays: 30, discountpercent: "2.000", discountdays: 10, ar: true, ap: true },
  { verbal: "Net 15", netduedays: 15, discountpercent: "0.000", discountdays: 0, ar: true, ap: false },
  { verbal: "Net 60", netduedays: 60, discountpercent: "0.000", discountdays: 0, ar: true, ap: true },
  { verbal: "Due on receipt", netduedays: 0, discountpercent: "0.000", discountdays: 0, ar: true, ap: true }
]

const companyTables = (today: string): ReadonlyArray<readonly [path: string, rows: Rows]> => [
  ["inventorylocations", [{ locationcode: "MAIN", name: "Main warehouse" }]],
  ["qtyunits", named("unitname", "EA", "CS", "BX", "FT", "HR")],
  ["carriers", named("name", "UPS", "FedEx", "USPS", "Own truck")],
  ["worktypes", named("name", "Installation", "Repair", "Delivery")],
  [
    "taxclasses",
    [
      { name: "Standard", rate: "8.250000" },
      { name: "Reduced", rate: "4.000000" },
      { name: "Exempt", rate: "0.000000" }
    ]
  ],
  ["taxexemptions", [{ exemptname: "Resale", rate: "100.000000" }]],
  [
    "glaccounts",
    named("name", "Sales", "Service income", "Rental income", "Receivables", "Cash", "Bank fees", "Cost of goods")
  ],
  [
    "costcodes",
    [
      { code: "010", name: "General" },
      { code: "020", name: "Labor" }
    ]
  ],
  ["checkaccounts", named("name", "Operating", "Payroll")],
  [
    "prpaytypes",
    [
      { name: "Regular", code: "REG" },
      { name: "Overtime", code: "OT" }
    ]
  ],
  ["ledgerperiods", [{ startdate: addDays(today, -400), enddate: addDays(today, 800), closed: false }]]
]

const put = (world: World, company: number, path: string, rows: Rows) => {
  const table = world.store.table(company, path)
  for (const row of rows) world.store.put(table, null, { values: { cancel: false, ...row } })
}

/** What all companies share. */
export const installShared = (world: World): void => {
  world.store.transact(() => put(world, sharedCompany, "invoiceterms", terms))
}

/** The tables of a company that has none yet. */
export const ensureCompany = (world: World, company: number): void => {
  const { store } = world
  if (store.table(company, "qtyunits").size > 0) return
  store.transact(() => {
    for (const [path, rows] of companyTables(printDay(world.clock.now()))) put(world, company, path, rows)
  })
}
