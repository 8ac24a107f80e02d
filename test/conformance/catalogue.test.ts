/** The rest of the catalogue: its areas, the operations of each path, and its few documented fields. */
import { assert, describe } from "vitest"
import {
  allowed,
  fresh,
  idOf,
  ids,
  it,
  keptPromises,
  micros,
  newCompany,
  outOfScope,
  page,
  refused,
  row,
  rows,
  succeeded,
  text,
  TIMESTAMP,
  useServer
} from "./harness.ts"
import { RESOURCES } from "./resources.ts"
import { BODIES, makeCustomer, makeItem, makeLocation, putOne } from "./world.ts"

useServer()

/** Each path, its area and operations; the fields that decisions.md names; the facts. */
const CATALOGUE = `
  customers: customers LCBRUD; customercode name creditlimit invoicetermid invoiceterm salesmanid salesman; [SCOPE-06]
  shiptos: customers LCRUD; customerid customer name; [SCOPE-06]
  contactnames: customers LCRUD; customerid customer shiptoid firstname lastname email phone; [RES-07][SCOPE-06]
  b2busers: customers LCRUD; customerid customer login email enabled; [RES-08]
  orders: orders LCRUD; ordertype status customerid customer shiptoid inventorylocationid inventorylocation orderdate ordertotal lines; [SCOPE-08]
  orderlines: orders LCRUD; orderid linenumber itemid item description qtyorder qtyship priceach qtybilled; [SCOPE-08]
  shipmentlines: shipments LR; shipmentid orderlineid quantity; [SCOPE-11]
  invoices: invoices LCRUD; invoicenumber customerid customer orderid invoicedate voucherid voucher invoicetotal invoicepaid lines; [SCOPE-09]
  items: items LCBRUD; sku description price glaccountid glaccount taxable; [SCOPE-14]
  vendors: vendors LCRUD; vendorcode name; [SCOPE-07]
  apbills: bills LCR; vendorid vendor billdate billtotal distributed undistributed voucherid; [SCOPE-12]
  glaccounts: glaccounts LR; name
  serviceordertimes: orders LCRUD; orderid hours date worktypeid genuserid note status
  users: users LR; login name active
  customfields: setup LR; name acceptedvalues resource; [RES-03][C-10][X-25]
  purchaseorders: purchaseorders LCRUD; vendorid vendor orderdate complete ordertotal lines; [SCOPE-12]
  purchaseorderlines: purchaseorders LCRUD; purchaseorderid linenumber itemid item description qtyorder qtyreceived priceach; [SCOPE-12]
  purchaseorderreceipts: purchaseorders LCR; purchaseorderid receiptdate lines; [SCOPE-12]
  gltransactions: gltransactions LCR; transactiondate description voucherid lines; [SCOPE-16]
  inventorycounts: items LCR; inventorylocationid inventorylocation countdate status lines; [RES-02]
  employees: payroll LR; name code; [SCOPE-20]
  departments: payroll LR; name code; [SCOPE-20]
  prpaytypes: payroll LR; name code; [SCOPE-20]
  bankaccounts: banking LR; name; [SCOPE-17]
  bankdeposits: banking LR; bankaccountid depositdate amount; [SCOPE-17]
  cctransactions: banking LR; amount last4; [SCOPE-17]
  fixedassets: assets LCRUD; assetcategoryid assetcategory name acquiredate cost; [SCOPE-18]
  jobs: jobs LCRUD; name customerid customer; [SCOPE-18]
  jobdraws: jobs LCRUD; jobid amount; [SCOPE-18]
  jobsites: jobs LCRUD; jobid address; [SCOPE-18]
  buildings: properties LCRUD; name; [SCOPE-18]
  propertyunits: properties LCRUD; buildingid unitnumber; [SCOPE-18]
  leases: properties LCRUD; propertyunitid customerid begindate enddate; [SCOPE-18]
  teamprojects: projects LCRUD; code; [SCOPE-19]
  teamprojecttasks: projects LCRUD; teamprojectid title status assignuserid duedate; [SCOPE-19]
  teamprojectstatuses: projects LCRUD; name; [SCOPE-19]
  teamprojecttags: projects LCRUD; name; [SCOPE-19]
  teamprojectmilestones: projects LCRUD; title; [SCOPE-19]
  teamprojecttemplates: projects LCRUD; name; [SCOPE-19]
  estquotes: estimating LCRUD; customerid customer quotedate total; [SCOPE-13]
  taxgroups: tax LCRUD; rate; [SCOPE-21]
  taxclasses: tax LCRUD; rate; [SCOPE-21]
  taxexemptions: tax LCRUD; rate; [SCOPE-21]
  taxusecodes: tax LCRUD; rate; [SCOPE-21]
  countries: reference LR; code name; [SCOPE-23]
  zones: reference LR; code name; [SCOPE-23]
  timezones: reference LR; code name; [SCOPE-23]
  glcategories: glaccounts LR; code name; [SCOPE-15]
  costcenters: glaccounts LR; code name; [SCOPE-15]
  costcodes: glaccounts LR; code name; [SCOPE-15]
  inventorylocations: setup LR; locationcode; [SCOPE-22]
  carriers: setup LR; name; [SCOPE-22]
  worktypes: setup LR; name; [SCOPE-22]
  qtyunits: setup LR; unitname; [SCOPE-22]
  stagetypes: setup LR; name; [SCOPE-22]
  ledgerperiods: setup LR; closed; [SCOPE-22]
`
  .trim()
  .split("\n")
  .map((line) => {
    const [, path = "", area = "", ops = "", fields = "", facts = ""] =
      /^\s*(\w+): (\w+) (\w+); ([\w ]+)(?:; (.*))?$/.exec(line) ?? []
    const body = ops.includes("C") ? (BODIES[path] ?? (async () => ({ name: fresh("x") }))) : undefined
    // The whole install shares these tables, and they have no dates.
    return { path, area, ops, fields: fields.split(" "), facts, body, fixed: area === "reference" }
  })

const COMMON = ["id", "externalid", "cancel", "entrydate", "lastchangedate"]

for (const { path, area, ops, fields, body, fixed, facts } of CATALOGUE) {
  describe(`${path} in the catalogue`, () => {
    const has = (op: string) => ops.includes(op)

    it(`${facts}[SCOPE-05][SCOPE-02][AUTH-15][CODE-05][CODE-10][EP-05][EP-16][EP-18][EP-23][I-01] lists under ${area}:read and under no other area, without other filters and operations: ${path}`, async (c) => {
      page(await (await c.with(`${area}:read`)).get(`/${path}`))
      outOfScope(await (await c.with(area === "users" ? "orders:read" : "users:read")).get(`/${path}`), `${area}:read`)
      refused(await c.get(`/${path}?bogus=1`), "unknown_parameter", "bogus")
      const since = await c.get(`/${path}?modifiedsince=1970-01-01T00:00:00Z`)
      if (fixed) refused(since, "unknown_parameter", "modifiedsince")
      else assert.match(text(page(since).syncedThrough), TIMESTAMP)
      refused(await c.get(`/${path}/999999999`), "not_found")
      for (const [op, method, url] of [
        ["C", "POST", `/${path}`],
        ["U", "PATCH", `/${path}/1`],
        ["D", "DELETE", `/${path}/1`]
      ] as const) {
        if (!has(op)) assert.notInclude(allowed(await c.probe(method, url)), method)
      }
    })

    if (fixed) {
      it(`${facts}[SCOPE-23] has the same initial records for every company: ${path}`, async () => {
        const a = await (await newCompany()).list(`/${path}`)
        assert.isNotEmpty(a)
        assert.deepEqual(await (await newCompany()).list(`/${path}`), a)
        for (const name of fields) assert.property(a[0], name)
        assert.notProperty(a[0], "lastchangedate")
      })
    } else {
      it(`${facts}[RES-15][A-14] shows its documented fields: ${path}`, async (c) => {
        const id = await putOne(c, path)
        const record = await c.read(path, id)
        for (const name of [...COMMON, ...fields]) assert.property(record, name)
        assert.match(text(record["lastchangedate"]), TIMESTAMP)
        const listed = (await c.list(`/${path}?limit=250`)).find((each) => each["id"] === id)
        for (const [name, value] of Object.entries(row(listed))) assert.deepEqual(record[name], value, name)
      })
    }

    if (body !== undefined) {
      it(`${facts}[EP-06][EP-08][GEN-06][CODE-05] creates a record of the token's company: POST /${path}`, async (c) => {
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
      it(`${facts}[EP-09][EP-16][EP-10] changes and cancels a record by PATCH and DELETE /${path}/{id}`, async (c) => {
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
  it("[RES-01] shows an inventory transfer to both of its companies", async (a, b) => {
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

  it("[RES-02] includes its lines in an inventory count", async (c) => {
    const itemid = idOf(await makeItem(c))
    const made = await c.create("inventorycounts", {
      inventorylocationid: idOf(await makeLocation(c)),
      lines: [{ itemid, counted: "3.5" }]
    })
    const [line] = rows((await c.read("inventorycounts", idOf(made)))["lines"])
    assert.strictEqual(line?.["itemid"], itemid)
    assert.strictEqual(line?.["counted"], "3.500000")
  })

  it("[RES-08] keeps portal logins unique, and never returns their credentials", async (c) => {
    const customerid = idOf(await makeCustomer(c))
    const login = fresh("login")
    const made = await c.create("b2busers", { customerid, login })
    for (const record of [made, await c.read("b2busers", idOf(made))])
      assert.isEmpty(Object.keys(record).filter((name) => /pass|secret|hash|credential|token/i.test(name)))
    refused(await c.post("/b2busers", { customerid, login }), "duplicate")
  })

  it("[SCOPE-20] makes employee records minimal", async (c) => {
    const shown = Object.keys(await c.read("employees", await putOne(c, "employees", { name: "Ann", code: "A" })))
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

  it("[SPECIAL-10][RES-04][C-05][SCOPE-05] lists the operations of every path in /me, and has a path in each of 22 areas", async (c) => {
    const resources = row(succeeded(await c.get("/me"))["resources"])
    const all = [...RESOURCES, ...CATALOGUE]
    for (const path of [...all.map((each) => each.path), "webhooks"]) assert.property(resources, path)
    assert.strictEqual(new Set(all.map((each) => each.area)).size, 22)
  })
})

keptPromises()
