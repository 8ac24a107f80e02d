/** Demo data of the lookup lists. */
import type { Business } from "./Business.ts"

const rows: ReadonlyArray<readonly [path: string, bodies: ReadonlyArray<Readonly<Record<string, unknown>>>]> = [
  [
    "emailtemplates",
    [
      { action: "invoice", name: "Invoice", subject: "Your invoice", body: "Please find your invoice attached." },
      { action: "quote", name: "Quote", subject: "Your quote", body: "Thank you for asking." }
    ]
  ],
  ["taskstatuses", [{ name: "Open" }, { name: "Waiting" }, { name: "Closed" }]],
  [
    "areas",
    [
      { name: "Downtown", applicationfee: "12.505050" },
      { name: "Harbor", applicationfee: "8" }
    ]
  ],
  ["itemcomparisongroups", [{ name: "Fasteners" }, { name: "Lighting", hidden: true }]],
  [
    "producttypetaxes",
    [
      { name: "Lumber assessment", taxrate: "1.000000", glaccount: "Sales", states: "OR,WA" },
      { name: "Paint stewardship", taxrate: "0.750000", glaccount: "Sales", states: "OR" }
    ]
  ],
  [
    "taxgroups",
    [
      { name: "Local", rate: "8.25" },
      { name: "Out of state", rate: "0" }
    ]
  ],
  ["ccaccounts", [{ name: "Front desk", ccprocessor: "Elavon", checkacct: "Operating" }]],
  [
    "assetcategories",
    [
      { name: "Vehicles", assetglaccount: "Cash", expenseglaccount: "Cost of goods" },
      { name: "Shelving", assetglaccount: "Cash", expenseglaccount: "Cost of goods" }
    ]
  ],
  [
    "fixedassets",
    [
      { assetcategory: "Vehicles", name: "Delivery van", acquiredate: "2024-03-01", cost: "31500" },
      { assetcategory: "Vehicles", name: "Fork lift", acquiredate: "2023-09-15", cost: "18200.50" },
      { assetcategory: "Shelving", name: "Pallet racks", acquiredate: "2022-01-10", cost: "9400" }
    ]
  ],
  [
    "estquotepricelists",
    [
      {
        name: "Banners",
        worktype: "Installation",
        maxinkside1: 4,
        maxinkside2: 1,
        trimmincharge: "7.5",
        noinkcharge: 0
      }
    ]
  ]
]

export const lookups = (business: Business): void => {
  for (const [path, bodies] of rows) for (const body of bodies) business.make(path, body)
  for (const [index, name] of ["Quoted", "Scheduled", "Installed"].entries()) {
    const stagetypeid = business.all("stagetypes")[0]!.id
    business.make("stages", { stagetypeid, name, code: name.slice(0, 3).toUpperCase(), sortorder: index + 1 })
  }
}
