/**
 * The records that every install and every company has from the start.
 *
 * Promise: a company exists from its first use on, with its static tables, one location and an open ledger period. The
 * payment terms exist once for all companies (C-11).
 */
import type { Value } from "../json.ts"
import { sharedCompany } from "../store/Store.ts"
import { addDays, printDay } from "../time.ts"
import type { SeedTarget } from "./SeedTarget.ts"

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
  [
    "taxjurisdictions",
    [
      { authority: "State", rate: "6.500000" },
      { authority: "County", rate: "1.750000" }
    ]
  ],
  ["taxusecodes", [{ name: "Resale", rate: "0.000000" }]],
  ["stagetypes", named("name", "Order", "Job")],
  [
    "glcategories",
    [
      { code: "OPS", name: "Operations" },
      { code: "ADM", name: "Administration" }
    ]
  ],
  [
    "costcenters",
    [
      { code: "100", name: "Warehouse" },
      { code: "200", name: "Office" }
    ]
  ],
  ["bankaccounts", named("name", "Operating", "Payroll")],
  [
    "departments",
    [
      { name: "Warehouse", code: "WH" },
      { name: "Office", code: "OF" },
      { name: "Service", code: "SV" }
    ]
  ],
  ["teamprojectstatuses", named("name", "To do", "In progress", "Done")],
  ["ledgerperiods", [{ startdate: addDays(today, -400), enddate: addDays(today, 800), closed: false }]]
]

/** Read-only tables: every company has the same records with the same ids (SCOPE-23). */
const staticTables: ReadonlyArray<readonly [path: string, rows: Rows]> = [
  [
    "countries",
    [
      { code: "US", name: "United States" },
      { code: "CA", name: "Canada" },
      { code: "MX", name: "Mexico" },
      { code: "GB", name: "United Kingdom" },
      { code: "DE", name: "Germany" }
    ]
  ],
  [
    "zones",
    [
      { code: "US-OR", name: "Oregon" },
      { code: "US-WA", name: "Washington" },
      { code: "US-ID", name: "Idaho" },
      { code: "US-NV", name: "Nevada" },
      { code: "CA-BC", name: "British Columbia" }
    ]
  ],
  [
    "timezones",
    [
      { code: "UTC", name: "Coordinated Universal Time" },
      { code: "America/Los_Angeles", name: "Pacific Time" },
      { code: "America/Boise", name: "Mountain Time" },
      { code: "America/New_York", name: "Eastern Time" }
    ]
  ],
  ["ccprocessors", named("name", "Authorize.Net", "Elavon", "Worldpay")]
]

const staticSince = "2020-01-01T00:00:00.000000Z"

const putStatic = ({ store }: SeedTarget, company: number) => {
  for (const [path, rows] of staticTables) {
    const table = store.table(company, path)
    for (const [index, row] of rows.entries()) {
      store.put(table, index + 1, { values: { cancel: false, entrydate: staticSince, ...row } })
    }
  }
}

const put = (target: SeedTarget, company: number, path: string, rows: Rows) => {
  const table = target.store.table(company, path)
  for (const row of rows) target.store.put(table, null, { values: { cancel: false, ...row } })
}

/** Creates the records that all companies share. */
export const installShared = (target: SeedTarget): void => {
  target.store.transact(() => put(target, sharedCompany, "invoiceterms", terms))
}

/** Creates the tables of a company that has none yet. */
export const ensureCompany = (target: SeedTarget, company: number): void => {
  const { store } = target
  if (store.table(company, "qtyunits").size > 0) return
  store.transact(() => {
    putStatic(target, company)
    for (const [path, rows] of companyTables(printDay(target.clock.now()))) put(target, company, path, rows)
  })
}
