/** The documented filters of each resource: exact, partial, cancel, externalid, and invalid values. */
import { assert, describe, it } from "vitest"
import {
  idOf,
  ids,
  keptPromises,
  newCompany,
  page,
  query,
  refused,
  row,
  useServer,
  fresh,
  type Company,
  type Row
} from "./harness.ts"
import { FIELDS, RESOURCES } from "./resources.ts"

useServer()

async function listIds(c: Company, path: string, params: Record<string, string | number | boolean>): Promise<number[]> {
  return ids(await c.list(`/${path}${query({ limit: 250, ...params })}`))
}

/** Inserts rows directly into the store. The shared terms need keys of their own. */
async function put(c: Company, path: string, records: readonly Row[]): Promise<number[]> {
  const named = path === "invoiceterms" ? records.map((each) => ({ verbal: fresh("flt"), ...each })) : records
  return ids(await c.put(path, named))
}

describe("a filter on an id", () => {
  const exact: ReadonlyArray<readonly [string, string, string]> = [
    ["shipments", "locationid", "SHIPMENTS-02"],
    ["shipments", "orderid", "SHIPMENTS-02"],
    ["shipments", "invoiceid", "SHIPMENTS-02"],
    ["invoicelines", "itemid", "INVOICELINES-02"],
    ["invoicelines", "inventorylocationid", "INVOICELINES-02"],
    ["invoicelines", "invoiceid", "INVOICELINES-02"],
    ["payments", "customerid", "PAYMENTS-02"],
    ["payments", "inventorylocationid", "PAYMENTS-02"],
    ["payments", "invoiceid", "PAYMENTS-02"],
    ["orderdeposits", "orderid", "ORDERDEPOSITS-02"],
    ["rmareturns", "invoiceid", "RMARETURNS-02"],
    ["ardailycloses", "inventorylocationid", "ARDAILYCLOSES-02"],
    ["apbilllines", "jobid", "APBILLLINES-02"],
    ["teamprojectreminders", "genuserid", "TEAMPROJECTREMINDERS-02"],
    ["teamprojectreminders", "teamprojecttaskid", "TEAMPROJECTREMINDERS-02"],
    ["teamprojecttasktags", "teamprojecttaskid", "TEAMPROJECTTASKTAGS-02"],
    ["teamprojectrecurringtasks", "teamprojectid", "TEAMPROJECTRECURRINGTASKS-02"],
    ["teamprojectautomations", "teamprojectid", "TEAMPROJECTAUTOMATIONS-02"],
    ["vendororderfroms", "vendorid", "VENDORORDERFROMS-02"]
  ]
  for (const [path, filter, fact] of exact) {
    it(`[EP-17][${fact}] matches the id exactly: ${path}, ${filter}`, async () => {
      const c = await newCompany()
      const pair = FIELDS[path]?.find((field) => field.name === filter)?.pair
      const targets =
        pair === undefined
          ? [11, 111]
          : ids(await c.put(pair.table, [{ [pair.key]: fresh("a") }, { [pair.key]: fresh("b") }]))
      const [one = 0, two = 0] = targets
      const [a, b, , d] = await put(c, path, [{ [filter]: one }, { [filter]: two }, {}, { [filter]: one }])
      assert.deepEqual(await listIds(c, path, { [filter]: one }), [a, d])
      assert.deepEqual(await listIds(c, path, { [filter]: two }), [b])
      assert.deepEqual(await listIds(c, path, { [filter]: 999_999_999 }), [])
    })

    it(`[A-10][A-16] rejects a value that is no integer: ${path}, ${filter}`, async () => {
      const c = await newCompany()
      for (const value of ["abc", "", "1.5", "1,2", "0x1", " 1", "null"]) {
        refused(await c.get(`/${path}${query({ [filter]: value })}`), "invalid_type", filter)
      }
    })
  }

  it("[EP-17] combines with other filters", async () => {
    const c = await newCompany()
    const [, b] = await put(c, "shipments", [
      { orderid: 1, locationid: null },
      { orderid: 1, externalid: "x" },
      { orderid: 2, externalid: "x" }
    ])
    assert.deepEqual(await listIds(c, "shipments", { orderid: 1, externalid: "x" }), [b])
  })
})

describe("a partial filter", () => {
  const partial: ReadonlyArray<readonly [string, string, string]> = [
    ["invoicelines", "description", "INVOICELINES-02"],
    ["orderdeposits", "rnum", "ORDERDEPOSITS-02"],
    ["carrierservices", "description", "CARRIERSERVICES-02"],
    ["invoiceterms", "verbal", "INVOICETERMS-02"],
    ["salesmen", "name", "SALESMEN-02"],
    ["apbilllines", "description", "APBILLLINES-02"],
    ["teamprojectrecurringtasks", "description", "TEAMPROJECTRECURRINGTASKS-02"],
    ["teamprojecttemplateitems", "description", "TEAMPROJECTTEMPLATEITEMS-02"],
    ["teamprojectautomations", "name", "TEAMPROJECTAUTOMATIONS-02"],
    ["emailtemplates", "name", "EMAILTEMPLATES-02"],
    ["emailtemplates", "action", "EMAILTEMPLATES-02"],
    ["producttypetaxes", "name", "PRODUCTTYPETAXES-02"],
    ["stages", "description", "STAGES-02"],
    ["estquotepricelists", "name", "ESTQUOTEPRICELISTS-02"],
    ["assetcategories", "name", "ASSETCATEGORIES-02"],
    ["ccaccounts", "name", "CCACCOUNTS-02"],
    ["itemcomparisongroups", "name", "ITEMCOMPARISONGROUPS-02"],
    ["taskstatuses", "name", "TASKSTATUSES-02"],
    ["areas", "name", "AREAS-02"]
  ]
  for (const [path, filter, fact] of partial) {
    it(`[EP-17][${fact}] matches a part in any case: ${path}, ${filter}`, async () => {
      const c = await newCompany()
      const tag = fresh("t")
      const [start, middle, end, other] = await put(c, path, [
        { [filter]: `${tag}Blue one` },
        { [filter]: `a ${tag}BLUE b` },
        { [filter]: `in ${tag}blue` },
        { [filter]: `${tag}red` }
      ])
      assert.deepEqual(await listIds(c, path, { [filter]: `${tag}blue` }), [start, middle, end])
      assert.deepEqual(await listIds(c, path, { [filter]: `${tag}bLuE`.toUpperCase() }), [start, middle, end])
      assert.deepEqual(await listIds(c, path, { [filter]: `${tag}red` }), [other])
      assert.deepEqual(await listIds(c, path, { [filter]: `${tag}green` }), [])
    })

    it(`[EP-17] matches each special character literally: ${path}, ${filter}`, async () => {
      const c = await newCompany()
      const tag = fresh("s")
      const signs = ["10%", "a_b", "c*", "(d", "e\\f", "g.h", "[i]", "j'k", 'l"m', "n+o", "ö"]
      const made = await put(c, path, [
        ...signs.map((sign) => ({ [filter]: `${tag}${sign}z` })),
        ...["10xz", "axbz", "cccz", "dz", "efz", "gxhz", "iz", "jkz"].map((decoy) => ({ [filter]: tag + decoy }))
      ])
      for (const [i, sign] of signs.entries()) {
        assert.deepEqual(await listIds(c, path, { [filter]: `${tag}${sign}` }), [made[i]], sign)
      }
    })

    it(`[EP-17] ignores the case of letters beyond ASCII: ${path}, ${filter}`, async () => {
      const c = await newCompany()
      const tag = fresh("u")
      const [id] = await put(c, path, [{ [filter]: `${tag} Zoë Ärger` }])
      assert.deepEqual(await listIds(c, path, { [filter]: `${tag} ZOË ä` }), [id])
    })

    it(`[A-16] is no wildcard if it is empty: ${path}, ${filter}`, async () => {
      const c = await newCompany()
      await put(c, path, [{ [filter]: fresh("full") }])
      assert.isEmpty((await c.list(`/${path}?${filter}=`)).filter((record) => record[filter] !== ""))
    })
  }
})

describe("an exact text filter", () => {
  it("[A-17][A-18][CARRIERSERVICES-02] is case-sensitive on carrierservices.code", async () => {
    const c = await newCompany()
    const [gnd, , , blank] = await put(c, "carrierservices", [
      { code: "GND" },
      { code: "gnd" },
      { code: "GND2" },
      { code: "" }
    ])
    assert.deepEqual(await listIds(c, "carrierservices", { code: "GND" }), [gnd])
    assert.deepEqual(await listIds(c, "carrierservices", { code: "GN" }), [])
    assert.deepEqual(await listIds(c, "carrierservices", { code: "" }), [blank])
  })

  for (const [path, name, fact] of [
    ["teamprojectrecurringtasks", "title", "TEAMPROJECTRECURRINGTASKS-02"],
    ["teamprojecttemplateitems", "title", "TEAMPROJECTTEMPLATEITEMS-02"],
    ["stages", "name", "STAGES-02"],
    ["stages", "code", "STAGES-02"]
  ] as const) {
    it(`[A-17][A-18][${fact}] is case-sensitive on ${path}.${name}`, async () => {
      const c = await newCompany()
      const [upper] = await put(c, path, [{ [name]: "GND" }, { [name]: "gnd" }, { [name]: "GND2" }])
      assert.deepEqual(await listIds(c, path, { [name]: "GND" }), [upper])
      assert.deepEqual(await listIds(c, path, { [name]: "GN" }), [])
    })
  }

  it("[TEAMPROJECTREMINDERS-02][EPR-08][A-10] accepts true or false on teamprojectreminders.status", async () => {
    const c = await newCompany()
    const [pending, done] = await put(c, "teamprojectreminders", [{ status: false }, { status: true }])
    assert.deepEqual(await listIds(c, "teamprojectreminders", { status: "false" }), [pending])
    assert.deepEqual(await listIds(c, "teamprojectreminders", { status: "true" }), [done])
    for (const value of ["1", "yes", "", "TRUE", "done"]) {
      refused(await c.get(`/teamprojectreminders${query({ status: value })}`), "invalid_type", "status")
    }
  })

  for (const { path } of RESOURCES) {
    it(`[FIELD-12][EP-17][A-18] is verbatim and case-sensitive on externalid: ${path}`, async () => {
      const c = await newCompany()
      const tag = fresh("x")
      const keys = [
        `${tag} Key-1`,
        `${tag} key-1`,
        `${tag} Key-1 `,
        `${tag} Key-11`,
        `${tag} ключ/键?&=%+#`,
        `${tag}\ttab\nline`
      ]
      const made = await put(
        c,
        path,
        keys.map((externalid) => ({ externalid }))
      )
      for (const [i, externalid] of keys.entries()) {
        const list = await c.list(`/${path}${query({ externalid })}`)
        assert.deepEqual(ids(list), [made[i]], externalid)
        assert.strictEqual(list[0]?.["externalid"], externalid)
      }
      assert.deepEqual(await listIds(c, path, { externalid: tag }), [])
    })
  }
})

describe("the cancel filter", () => {
  for (const { path, cancel } of RESOURCES) {
    if (cancel) {
      it(`[EP-15][FIELD-13][A-08] hides cancelled rows by default: ${path}`, async () => {
        const c = await newCompany()
        const externalid = fresh("cx")
        const [live, dead] = await put(c, path, [
          { externalid, cancel: false },
          { externalid, cancel: true }
        ])
        assert.deepEqual(await listIds(c, path, { externalid }), [live])
        assert.deepEqual(await listIds(c, path, { externalid, cancel: "false" }), [live])
        assert.deepEqual(await listIds(c, path, { externalid, cancel: "any" }), [live, dead])
        // the one list where true means cancelled only.
        const expected = path === "taskstatuses" ? [dead] : [live, dead]
        assert.deepEqual(await listIds(c, path, { externalid, cancel: "true" }), expected)
      })
    } else {
      it(`[A-09][EP-22][X-03][INVOICELINES-61][CARRIERSERVICES-21][APBILLLINES-21] is accepted without effect: ${path}`, async () => {
        const c = await newCompany()
        const made = await put(c, path, [{}, {}])
        for (const value of ["false", "true", "any"]) assert.deepEqual(await listIds(c, path, { cancel: value }), made)
      })
    }

    it(`[A-10][A-16] rejects any other value: ${path}`, async () => {
      const c = await newCompany()
      for (const value of ["maybe", "1", "TRUE", "yes"]) {
        refused(await c.get(`/${path}?cancel=${value}`), "invalid_enum", "cancel")
      }
      assert.strictEqual((await c.get(`/${path}?cancel=`)).status, 400)
    })
  }

  it("[FIELD-13][GEN-09] does not prevent the retrieve of a cancelled row", async () => {
    const c = await newCompany()
    for (const path of ["shipments", "payments", "rmareturns", "salesmen", "invoiceterms"]) {
      const [id] = await put(c, path, [{ cancel: true }])
      const record = await c.read(path, id as number)
      assert.strictEqual(record["cancel"], true)
    }
  })
})

describe("a retrieve", () => {
  it("[EP-08][CODE-09][D-06] answers 404 to an id that is not of the company", async () => {
    const c = await newCompany()
    for (const { path, ops } of RESOURCES) {
      if (!ops.includes("R")) continue
      for (const id of ["999999999", "abc", "0", "-1", "1.5", "1e3", "99999999999999999999999", "%20", "null"]) {
        refused(await c.get(`/${path}/${id}`), "not_found")
      }
    }
  })

  it("[EP-08][A-13] returns the bare record as the list shows it", async () => {
    const c = await newCompany()
    for (const { path, ops, make } of RESOURCES) {
      if (!ops.includes("R")) continue
      const id = idOf(await make(c))
      const record = await c.read(path, id)
      assert.strictEqual(record["id"], id)
      const listed = page(await c.get(`/${path}?limit=250&cancel=any`)).data.find((each) => each["id"] === id)
      if (path !== "invoiceterms") assert.deepEqual(row(listed), record)
    }
  })
})

keptPromises()
