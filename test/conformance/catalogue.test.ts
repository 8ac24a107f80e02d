/** The rest of the catalogue: its areas, the operations of each path, and its few documented fields. */
import { assert, describe, it } from "vitest"
import {
  allowed,
  challenge,
  fresh,
  idOf,
  ids,
  isRow,
  keptPromises,
  micros,
  newCompany,
  page,
  refused,
  row,
  rows,
  succeeded,
  text,
  TIMESTAMP,
  useServer,
  type Company,
  type Row
} from "./harness.ts"
import { OBJECTS } from "./objects.ts"
import { RESOURCES } from "./resources.ts"
import { makeBill, makeCustomer, makeItem, makeLocation, makeOrder, makePurchaseOrder, makeVendor } from "./world.ts"

useServer()

interface Entry {
  readonly path: string
  readonly area: string
  readonly ops: string
  /** Fields that decisions.md names. */
  readonly fields: readonly string[]
  /** For C: a body that POST accepts. */
  readonly body?: (c: Company) => Promise<Row>
  /** Whether the whole install shares it, and it has no dates. */
  readonly fixed?: true
  readonly facts?: string
}

const customer = async (c: Company) => idOf(await makeCustomer(c))
const one = async (c: Company, path: string, record: Row = {}) => idOf(row((await c.put(path, [record]))[0]))

const CATALOGUE: readonly Entry[] = [
  {
    path: "customers",
    area: "customers",
    ops: "L C B R U D",
    fields: ["customercode", "name", "creditlimit", "invoicetermid", "invoiceterm", "salesmanid", "salesman"],
    body: async () => ({ customercode: fresh("c"), name: "x" }),
    facts: "[SCOPE-06]"
  },
  {
    path: "shiptos",
    area: "customers",
    ops: "L C R U D",
    fields: ["customerid", "customer", "name"],
    body: async (c) => ({ customerid: await customer(c), name: "x" }),
    facts: "[SCOPE-06]"
  },
  {
    path: "contactnames",
    area: "customers",
    ops: "L C R U D",
    fields: ["customerid", "customer", "shiptoid", "firstname", "lastname", "email", "phone"],
    body: async (c) => ({ customerid: await customer(c), firstname: "Ann", lastname: "Lee" }),
    facts: "[RES-07][SCOPE-06]"
  },
  {
    path: "b2busers",
    area: "customers",
    ops: "L C R U D",
    fields: ["customerid", "customer", "login", "email", "enabled"],
    body: async (c) => ({ customerid: await customer(c), login: fresh("login"), email: "a@b.example" }),
    facts: "[RES-08]"
  },
  {
    path: "orders",
    area: "orders",
    ops: "L C R U D",
    fields: [
      "ordertype",
      "status",
      "customerid",
      "customer",
      "shiptoid",
      "inventorylocationid",
      "inventorylocation",
      "orderdate",
      "ordertotal",
      "lines"
    ],
    body: async (c) => ({
      ordertype: "fulfillment",
      customerid: await customer(c),
      lines: [{ description: "x", qtyorder: "1", priceach: "1" }]
    }),
    facts: "[SCOPE-08]"
  },
  {
    path: "orderlines",
    area: "orders",
    ops: "L C R U D",
    fields: ["orderid", "linenumber", "itemid", "item", "description", "qtyorder", "qtyship", "priceach", "qtybilled"],
    body: async (c) => ({ orderid: (await makeOrder(c)).id, description: "x", qtyorder: "1", priceach: "1" }),
    facts: "[SCOPE-08]"
  },
  { path: "shipmentlines", area: "shipments", ops: "L R", fields: ["shipmentid", "orderlineid", "quantity"] },
  {
    path: "invoices",
    area: "invoices",
    ops: "L C R U D",
    fields: [
      "invoicenumber",
      "customerid",
      "customer",
      "orderid",
      "invoicedate",
      "voucherid",
      "voucher",
      "invoicetotal",
      "invoicepaid",
      "lines"
    ],
    body: async (c) => ({
      invoicenumber: fresh("i"),
      customerid: await customer(c),
      lines: [{ description: "x", quantity: "1", price: "1" }]
    }),
    facts: "[SCOPE-09]"
  },
  {
    path: "items",
    area: "items",
    ops: "L C B R U D",
    fields: ["sku", "description", "price", "glaccountid", "glaccount", "taxable"],
    body: async () => ({ sku: fresh("s"), description: "x" })
  },
  {
    path: "vendors",
    area: "vendors",
    ops: "L C R U D",
    fields: ["vendorcode", "name"],
    body: async () => ({ vendorcode: fresh("v"), name: "x" }),
    facts: "[SCOPE-07]"
  },
  {
    path: "apbills",
    area: "bills",
    ops: "L C R",
    fields: ["vendorid", "vendor", "billdate", "billtotal", "distributed", "undistributed", "voucherid"],
    body: async (c) => ({ vendorid: idOf(await makeVendor(c)), billdate: "2026-02-03", billtotal: "1" }),
    facts: "[SCOPE-12]"
  },
  { path: "glaccounts", area: "glaccounts", ops: "L R", fields: ["name"] },
  {
    path: "serviceordertimes",
    area: "orders",
    ops: "L C R U D",
    fields: ["orderid", "hours", "date", "worktypeid", "genuserid", "note", "status"],
    body: async (c) => ({ orderid: (await makeOrder(c, { ordertype: "service" })).id, hours: "1" })
  },
  { path: "users", area: "users", ops: "L R", fields: ["login", "name", "active"] },
  {
    path: "customfields",
    area: "setup",
    ops: "L R",
    fields: ["name", "acceptedvalues", "resource"],
    facts: "[RES-03][C-10][X-25]"
  },
  {
    path: "purchaseorders",
    area: "purchaseorders",
    ops: "L C R U D",
    fields: ["vendorid", "vendor", "orderdate", "complete", "ordertotal", "lines"],
    body: async (c) => ({
      vendorid: idOf(await makeVendor(c)),
      lines: [{ description: "x", qtyorder: "1", priceach: "1" }]
    }),
    facts: "[SCOPE-12]"
  },
  {
    path: "purchaseorderlines",
    area: "purchaseorders",
    ops: "L C R U D",
    fields: ["purchaseorderid", "linenumber", "itemid", "item", "description", "qtyorder", "qtyreceived", "priceach"],
    body: async (c) => ({
      purchaseorderid: idOf(await makePurchaseOrder(c)),
      description: "x",
      qtyorder: "1",
      priceach: "1"
    }),
    facts: "[SCOPE-12]"
  },
  {
    path: "purchaseorderreceipts",
    area: "purchaseorders",
    ops: "L C R",
    fields: ["purchaseorderid", "receiptdate", "lines"],
    body: async (c) => {
      const purchaseorderid = idOf(await makePurchaseOrder(c))
      const lines = (await c.list("/purchaseorderlines?limit=250")).filter(
        (line) => line["purchaseorderid"] === purchaseorderid
      )
      return { purchaseorderid, lines: [{ purchaseorderlineid: idOf(row(lines[0])), quantity: "1" }] }
    },
    facts: "[SCOPE-12]"
  },
  {
    path: "gltransactions",
    area: "gltransactions",
    ops: "L C R",
    fields: ["transactiondate", "description", "voucherid", "lines"],
    body: async (c) => {
      const glaccountid = await one(c, "glaccounts", { name: fresh("a") })
      const lines = ["1", "-1"].map((amount) => ({ glaccountid, amount }))
      return { transactiondate: "2026-02-03", lines }
    },
    facts: "[SCOPE-16]"
  },
  {
    path: "inventorycounts",
    area: "items",
    ops: "L C R",
    fields: ["inventorylocationid", "inventorylocation", "countdate", "status", "lines"],
    body: async (c) => ({
      inventorylocationid: idOf(await makeLocation(c)),
      countdate: "2026-02-03",
      lines: [{ itemid: idOf(await makeItem(c)), counted: "3" }]
    }),
    facts: "[RES-02]"
  },
  { path: "employees", area: "payroll", ops: "L R", fields: ["name", "code"], facts: "[SCOPE-20]" },
  { path: "departments", area: "payroll", ops: "L R", fields: ["name", "code"], facts: "[SCOPE-20]" },
  { path: "prpaytypes", area: "payroll", ops: "L R", fields: ["name", "code"], facts: "[SCOPE-20]" },
  { path: "bankaccounts", area: "banking", ops: "L R", fields: ["name"], facts: "[SCOPE-17]" },
  {
    path: "bankdeposits",
    area: "banking",
    ops: "L R",
    fields: ["bankaccountid", "depositdate", "amount"],
    facts: "[SCOPE-17]"
  },
  { path: "cctransactions", area: "banking", ops: "L R", fields: ["amount", "last4"], facts: "[SCOPE-17]" },
  {
    path: "fixedassets",
    area: "assets",
    ops: "L C R U D",
    fields: ["assetcategoryid", "assetcategory", "name", "acquiredate", "cost"],
    body: async () => ({ name: "x", cost: "1" }),
    facts: "[SCOPE-18]"
  },
  {
    path: "jobs",
    area: "jobs",
    ops: "L C R U D",
    fields: ["name", "customerid", "customer"],
    body: async (c) => ({ name: "x", customerid: await customer(c) }),
    facts: "[SCOPE-18]"
  },
  {
    path: "jobdraws",
    area: "jobs",
    ops: "L C R U D",
    fields: ["jobid", "amount"],
    body: async (c) => ({ jobid: await one(c, "jobs", { name: "j" }), amount: "1" }),
    facts: "[SCOPE-18]"
  },
  {
    path: "jobsites",
    area: "jobs",
    ops: "L C R U D",
    fields: ["jobid", "address"],
    body: async (c) => ({ jobid: await one(c, "jobs", { name: "j" }), address: "x" }),
    facts: "[SCOPE-18]"
  },
  {
    path: "buildings",
    area: "properties",
    ops: "L C R U D",
    fields: ["name"],
    body: async () => ({ name: "x" }),
    facts: "[SCOPE-18]"
  },
  {
    path: "propertyunits",
    area: "properties",
    ops: "L C R U D",
    fields: ["buildingid", "unitnumber"],
    body: async (c) => ({ buildingid: await one(c, "buildings", { name: "b" }), unitnumber: "1" }),
    facts: "[SCOPE-18]"
  },
  {
    path: "leases",
    area: "properties",
    ops: "L C R U D",
    fields: ["propertyunitid", "customerid", "begindate", "enddate"],
    body: async (c) => ({ propertyunitid: await one(c, "propertyunits"), customerid: await customer(c) }),
    facts: "[SCOPE-18]"
  },
  ...(
    [
      ["teamprojects", ["code"], { code: "P1" }],
      ["teamprojecttasks", ["teamprojectid", "title", "status", "assignuserid", "duedate"], { title: "x" }],
      ["teamprojectstatuses", ["name"], { name: "x" }],
      ["teamprojecttags", ["name"], { name: "x" }],
      ["teamprojectmilestones", ["title"], { title: "x" }],
      ["teamprojecttemplates", ["name"], { name: "x" }]
    ] as const
  ).map(([path, fields, body]): Entry => ({
    path,
    area: "projects",
    ops: "L C R U D",
    fields,
    body: async () => body,
    facts: "[SCOPE-19]"
  })),
  {
    path: "estquotes",
    area: "estimating",
    ops: "L C R U D",
    fields: ["customerid", "customer", "quotedate", "total"],
    body: async (c) => ({ customerid: await customer(c), total: "1" }),
    facts: "[SCOPE-13]"
  },
  ...["taxgroups", "taxclasses", "taxexemptions", "taxusecodes"].map((path): Entry => ({
    path,
    area: "tax",
    ops: "L C R U D",
    fields: ["rate"],
    body: async () => (path === "taxexemptions" ? { exemptname: fresh("x") } : { name: fresh("x") }),
    facts: "[SCOPE-21]"
  })),
  ...["countries", "zones", "timezones"].map((path): Entry => ({
    path,
    area: "reference",
    ops: "L R",
    fields: ["code", "name"],
    fixed: true,
    facts: "[SCOPE-23]"
  })),
  ...["glcategories", "costcenters", "costcodes"].map((path): Entry => ({
    path,
    area: "glaccounts",
    ops: "L R",
    fields: ["code", "name"],
    facts: "[SCOPE-15]"
  })),
  ...(
    [
      ["inventorylocations", ["locationcode"]],
      ["carriers", ["name"]],
      ["worktypes", ["name"]],
      ["qtyunits", ["unitname"]],
      ["stagetypes", ["name"]],
      ["ledgerperiods", ["closed"]]
    ] as const
  ).map(([path, fields]): Entry => ({ path, area: "setup", ops: "L R", fields, facts: "[SCOPE-22]" }))
]

const COMMON = ["id", "externalid", "cancel", "entrydate", "lastchangedate"]

for (const { path, area, ops, fields, body, fixed, facts = "" } of CATALOGUE) {
  describe(`${path} in the catalogue`, () => {
    const has = (op: string) => ops.split(" ").includes(op)

    it(`${facts}[SCOPE-05][SCOPE-02][AUTH-15][EP-05] lists under ${area}:read and under no other area: GET /${path}`, async () => {
      const c = await newCompany()
      page(await (await c.with(`${area}:read`)).get(`/${path}`))
      const answer = await (await c.with(area === "users" ? "orders:read" : "users:read")).get(`/${path}`)
      refused(answer, "insufficient_scope")
      assert.strictEqual(challenge(answer).params["scope"], `${area}:read`)
    })

    it(`${facts}[CODE-05][EP-18][EP-16] rejects unknown filters; modifiedsince is ${fixed === true ? "one" : "none"} of them: GET /${path}`, async () => {
      const c = await newCompany()
      refused(await c.get(`/${path}?bogus=1`), "unknown_parameter", "bogus")
      const answer = await c.get(`/${path}?modifiedsince=1970-01-01T00:00:00Z`)
      if (fixed === true) refused(answer, "unknown_parameter", "modifiedsince")
      else assert.match(text(page(answer).syncedThrough), TIMESTAMP)
    })

    if (fixed === true) {
      it(`${facts}[SCOPE-23] has the same initial records for every company: ${path}`, async () => {
        const a = await (await newCompany()).list(`/${path}`)
        assert.isNotEmpty(a)
        assert.deepEqual(await (await newCompany()).list(`/${path}`), a)
        for (const name of fields) assert.property(a[0], name)
        assert.notProperty(a[0], "lastchangedate")
      })
    } else {
      it(`${facts}[RES-15][A-14] shows its documented fields: ${path}`, async () => {
        const c = await newCompany()
        const id = await one(c, path)
        const record = await c.read(path, id)
        for (const name of [...COMMON, ...fields]) assert.property(record, name)
        assert.match(text(record["lastchangedate"]), TIMESTAMP)
        const listed = (await c.list(`/${path}?limit=250`)).find((each) => each["id"] === id)
        for (const [name, value] of Object.entries(row(listed))) assert.deepEqual(record[name], value, name)
      })
    }

    it(`${facts}[CODE-10][I-01][EP-23] answers 405 with Allow to other operations: ${path}`, async () => {
      const c = await newCompany()
      const verbs: ReadonlyArray<readonly [string, string, string]> = [
        ["C", "POST", `/${path}`],
        ["U", "PATCH", `/${path}/1`],
        ["D", "DELETE", `/${path}/1`]
      ]
      for (const [op, method, url] of verbs) {
        if (has(op)) continue
        const answer = await c.send({ method, path: url, ...(method === "DELETE" ? {} : { body: {} }) })
        assert.notInclude(allowed(answer), method)
      }
      refused(await c.get(`/${path}/999999999`), "not_found")
    })

    if (body !== undefined) {
      it(`${facts}[EP-06][EP-08][GEN-06][CODE-05] creates a record of the token's company: POST /${path}`, async () => {
        const c = await newCompany()
        const payload = { ...(await body(c)), externalid: fresh("x") }
        const made = await c.create(path, payload)
        const read = await c.read(path, idOf(made))
        for (const [name, value] of Object.entries(payload)) {
          if (typeof value !== "object" && !/^-?\d+(\.\d+)?$/.test(value)) assert.deepEqual(read[name], value, name)
        }
        assert.deepEqual(ids(await c.list(`/${path}?externalid=${payload.externalid}`)), [idOf(made)])
        refused(await (await newCompany()).get(`/${path}/${idOf(made)}`), "not_found")
        refused(await c.post(`/${path}`, { ...payload, bogus: 1 }), "unknown_parameter", "bogus")
      })
    }

    if (body !== undefined && has("U")) {
      it(`${facts}[EP-09][EP-16][EP-10] changes and cancels a record by PATCH and DELETE /${path}/{id}`, async () => {
        const c = await newCompany()
        const id = idOf(await c.create(path, await body(c)))
        const before = await c.read(path, id)
        const after = succeeded(await c.patch(`/${path}/${id}`, { externalid: "changed" }))
        assert.strictEqual(after["externalid"], "changed")
        assert.isTrue(micros(after["lastchangedate"]) >= micros(before["lastchangedate"]))
        const gone = succeeded(await c.del(`/${path}/${id}`))
        assert.strictEqual(idOf(gone), id)
        if (path === "orderlines" || path === "purchaseorderlines") return
        assert.strictEqual(gone["cancel"], true)
        assert.notInclude(ids(await c.list(`/${path}?limit=250`)), id)
        assert.include(ids(await c.list(`/${path}?limit=250&cancel=any`)), id)
      })
    }
  })
}

describe("a single rule of the catalogue", () => {
  it("[RES-01] shows an inventory transfer to both of its companies", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const itemid = idOf(await makeItem(a))
    const made = await a.create("inventorytransfers", {
      gencompanyidfrom: a.id,
      gencompanyidto: b.id,
      itemid,
      qty: "3",
      transferdate: "2026-02-03"
    })
    assert.deepInclude(made, { gencompanyidfrom: a.id, gencompanyidto: b.id })
    for (const name of ["itemid", "item", "qty", "transferdate"]) assert.property(made, name)
    assert.notProperty(made, "companyid")
    assert.strictEqual(idOf(await a.read("inventorytransfers", idOf(made))), idOf(made))
    assert.strictEqual(idOf(await b.read("inventorytransfers", idOf(made))), idOf(made))
    assert.deepEqual(ids(await b.list("/inventorytransfers")), [idOf(made)])
    refused(await (await newCompany()).get(`/inventorytransfers/${idOf(made)}`), "not_found")
    page(await (await a.with("items:read")).get("/inventorytransfers"))
  })

  it("[RES-02] includes its lines in an inventory count", async () => {
    const c = await newCompany()
    const itemid = idOf(await makeItem(c))
    const made = await c.create("inventorycounts", {
      inventorylocationid: idOf(await makeLocation(c)),
      lines: [{ itemid, counted: "3.5" }]
    })
    const [line] = rows((await c.read("inventorycounts", idOf(made)))["lines"])
    assert.strictEqual(line?.["itemid"], itemid)
    assert.strictEqual(line?.["counted"], "3.500000")
  })

  it("[RES-08] keeps portal logins unique, and never returns their credentials", async () => {
    const c = await newCompany()
    const customerid = idOf(await makeCustomer(c))
    const login = fresh("login")
    const made = await c.create("b2busers", { customerid, login })
    for (const record of [made, await c.read("b2busers", idOf(made))])
      assert.isEmpty(Object.keys(record).filter((name) => /pass|secret|hash|credential|token/i.test(name)))
    refused(await c.post("/b2busers", { customerid, login }), "duplicate")
  })

  it("[SCOPE-20] makes employee records read-only and minimal", async () => {
    const c = await newCompany()
    const [employee] = await c.put("employees", [{ name: "Ann", code: "A" }])
    const id = idOf(row(employee))
    allowed(await c.post("/employees", { name: "Eve" }))
    allowed(await c.patch(`/employees/${id}`, { name: "Eve" }))
    allowed(await c.del(`/employees/${id}`))
    const shown = Object.keys(await c.read("employees", id))
    assert.isEmpty(shown.filter((name) => /ssn|salary|wage|birth|bank/i.test(name)))
  })

  it("[AUTH-17][C-08] switches each licensed module separately", async () => {
    const modules = {
      estimating: ["estquotes", "estquotepricelists"],
      assets: ["fixedassets", "assetcategories"],
      jobs: ["jobs", "jobdraws", "jobsites"],
      properties: ["buildings", "propertyunits", "leases"],
      projects: ["teamprojects", "teamprojectreminders", "teamprojecttasktags", "teamprojectautomations"],
      payroll: ["employees", "departments", "prpaytypes"]
    }
    for (const [module, paths] of Object.entries(modules)) {
      const c = await newCompany()
      await c.settings({ features: { [module]: false } })
      for (const path of paths) refused(await c.get(`/${path}`), "feature_not_licensed")
      page(await c.get("/salesmen"))
      page(await c.get(module === "jobs" ? "/estquotes" : "/jobs"))
      assert.notInclude(succeeded(await c.get("/me"))["features"] as unknown[], module)
    }
  })

  it("[SCOPE-07][SCOPE-10][SCOPE-12][SCOPE-13][SCOPE-17][SCOPE-18][SCOPE-19][SCOPE-21][SCOPE-22][SCOPE-24] assigns the detailed resources to their areas", async () => {
    const c = await newCompany()
    for (const { path, area } of OBJECTS) {
      page(await (await c.with(`${area}:read`)).get(`/${path}`))
      const answer = await (await c.with("users:read")).get(`/${path}`)
      refused(answer, "insufficient_scope")
      assert.strictEqual(challenge(answer).params["scope"], `${area}:read`, path)
    }
  })

  it("[SPECIAL-10][RES-04][C-05] lists the operations of every path in /me", async () => {
    const c = await newCompany()
    const resources = row(succeeded(await c.get("/me"))["resources"])
    for (const { path } of [...RESOURCES, ...CATALOGUE]) assert.property(resources, path)
    assert.isTrue(isRow(resources))
  })

  it("[SCOPE-05] has many resources, and at least one in each area", async () => {
    assert.isAtLeast(CATALOGUE.length + RESOURCES.length, 70)
    const areas = new Set([...CATALOGUE, ...RESOURCES].map((each) => each.area))
    assert.strictEqual(areas.size, 22)
    assert.isString(String((await makeBill(await newCompany()))["id"]))
  })

  it("[C-13][CODE-09] answers 404 to a path outside the catalogue", async () => {
    const c = await newCompany()
    for (const path of ["nosuchthing", "Customers", "customers/1/nosuchthing", "vendortypes", ""])
      refused(await c.get(`/${path}`), "not_found")
  })
})

keptPromises()
