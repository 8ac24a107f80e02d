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
import { RESOURCES, target } from "./resources.ts"

useServer()

async function listIds(c: Company, path: string, params: Record<string, string | number | boolean>): Promise<number[]> {
  return ids(await c.list(`/${path}${query({ limit: 250, ...params })}`))
}

/** Inserts rows directly into the store. The shared terms need keys of their own. */
async function put(c: Company, path: string, records: readonly Row[]): Promise<number[]> {
  const named = path === "invoiceterms" ? records.map((each) => ({ verbal: fresh("flt"), ...each })) : records
  return ids(await c.put(path, named))
}

/** The documented filters, each with its field. */
const FILTERS = RESOURCES.flatMap(({ path, filters, fields, facts }) =>
  filters.map(({ name, match }) => {
    const field = fields.find((each) => each.name === name)
    if (field === undefined) throw new Error(`${path} has no field ${name}`)
    return { path, filter: name, match, field, fact: facts.filters }
  })
)

describe("a filter on an id", () => {
  for (const { path, filter, field, fact } of FILTERS.filter((each) => each.field.kind === "int")) {
    it(`[EP-17][${fact}] matches the id exactly: ${path}, ${filter}`, async () => {
      const c = await newCompany()
      const [one, two] =
        field.pair === undefined ? [11, 111] : [(await target(c, field)).id, (await target(c, field)).id]
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
  for (const { path, filter, fact } of FILTERS.filter((each) => each.match === "partial")) {
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
  const exact = FILTERS.filter(({ match, field }) => match === "exact" && field.kind === "string")
  for (const { path, filter: name, fact } of exact) {
    it(`[A-17][A-18][${fact}] is case-sensitive on ${path}.${name}`, async () => {
      const c = await newCompany()
      const codes = ["GND", "gnd", "GND2", ""].map((value) => ({ [name]: value }))
      const [upper, , , blank] = await put(c, path, codes)
      assert.deepEqual(await listIds(c, path, { [name]: "GND" }), [upper])
      assert.deepEqual(await listIds(c, path, { [name]: "GN" }), [])
      assert.deepEqual(await listIds(c, path, { [name]: "" }), [blank])
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
