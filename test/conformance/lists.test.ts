/** Lists: the envelope, pages, order, query parameters, and the filters of each resource. */
import { assert, describe } from "vitest"
import {
  control,
  freeze,
  fresh,
  idOf,
  ids,
  isRow,
  it,
  keptPromises,
  micros,
  page,
  query,
  refused,
  row,
  succeeded,
  thaw,
  useServer,
  type Company
} from "./harness.ts"
import { putRows, RESOURCES, shownRecord, target } from "./resources.ts"
import { makeSalesman, putSalesmen } from "./world.ts"

useServer()

describe("a list", () => {
  for (const each of RESOURCES) {
    const { path, facts, make } = each
    it(`[EP-05][EP-19][EP-08][EP-16][A-01][A-04][A-05][A-13][${facts.ops}][${facts.row}][${facts.since}] has the envelope and is ordered by id: GET /${path}`, async (c) => {
      const made = [idOf(await make(c)), idOf(await make(c))]
      const answer = page(await c.get(`/${path}?limit=250`))
      const seen = ids(answer.data)
      assert.includeMembers(seen, made)
      assert.deepEqual(
        seen,
        [...seen].sort((x, y) => x - y)
      )
      assert.strictEqual(answer.limit, 250)
      const shown = await shownRecord(c, each, made[0] as number)
      assert.deepEqual(
        answer.data.find((record) => record["id"] === made[0]),
        shown
      )
      if (each.modifiedsince) assert.isTrue(micros(answer.syncedThrough) >= micros(shown["lastchangedate"]))
    })

    it(`[EP-13][FIELD-16][VER-04][A-11][A-12] has custom_fields only with include: GET /${path}?include=custom_fields`, async (c) => {
      await make(c)
      const plain = page(await c.get(`/${path}`)).data
      const included = page(await c.get(`/${path}?include=custom_fields`)).data
      assert.isNotEmpty(included)
      for (const record of plain) assert.notProperty(record, "custom_fields")
      for (const record of included) assert.isTrue(isRow(record["custom_fields"]))
      for (const include of ["lines", "custom_fields,lines", "CUSTOM_FIELDS"])
        refused(await c.get(`/${path}${query({ include })}`), "invalid_enum", "include")
      assert.strictEqual((await c.get(`/${path}?include=`)).status, 400)
    })

    it(`[EP-18][CODE-05][${facts.filters}] rejects an unknown filter and names the valid ones: GET /${path}`, async (c) => {
      for (const name of ["bogus", "id", "Limit", "page", "offset", "__proto__", "constructor", "toString"]) {
        const error = refused(await c.get(`/${path}?${name}=1`), "unknown_parameter", name)
        for (const valid of [...each.filters.map(({ name }) => name), "cancel", "externalid", "include"]) {
          assert.include(String(error["message"]), valid)
        }
        if (each.modifiedsince) assert.include(String(error["message"]), "modifiedsince")
      }
    })
  }

  it("[EP-18][APBILLLINES-17] rejects a field that is no filter of the resource as an unknown parameter", async (c) => {
    for (const { path, fields, filters } of RESOURCES) {
      const valid = ["cancel", "externalid", ...filters.map(({ name }) => name)]
      for (const { name, pair } of fields) {
        if (!valid.includes(name)) refused(await c.get(`/${path}?${name}=1`), "unknown_parameter", name)
        if (pair !== undefined) refused(await c.get(`/${path}?${pair.code}=1`), "unknown_parameter", pair.code)
      }
    }
  })

  it("[EP-13][FIELD-16][A-12] has the same include as a retrieve: custom_fields and nothing else", async (c) => {
    const id = idOf(await makeSalesman(c))
    assert.notProperty(await c.read("salesmen", id), "custom_fields")
    assert.deepEqual(succeeded(await c.get(`/salesmen/${id}?include=custom_fields`))["custom_fields"], {})
    refused(await c.get(`/salesmen/${id}?include=other`), "invalid_enum", "include")
    refused(await c.get(`/salesmen/${id}?bogus=1`), "unknown_parameter", "bogus")
  })
})

describe("the pages of a list", () => {
  it("[A-03][A-10][LIM-13] have a limit from 1 to 250, by default 100, as the envelope states", async (c) => {
    const made = await putSalesmen(c, 251)
    for (const [search, limit] of [
      ["", 100],
      ["?limit=1", 1],
      ["?limit=250", 250]
    ] as const) {
      const first = page(await c.get(`/salesmen${search}`))
      assert.strictEqual(first.limit, limit)
      assert.deepEqual(ids(first.data), made.slice(0, limit))
      assert.isTrue(first.hasMore)
    }
    for (const limit of ["0", "251", "-1", "1000000"])
      refused(await c.get(`/salesmen?limit=${limit}`), "invalid_request", "limit")
    for (const limit of ["abc", "", "1.5", "1e1", "0x10", "%201"]) {
      const answer = await c.get(`/salesmen?limit=${limit}`)
      assert.strictEqual(answer.status, 400, limit)
      assert.strictEqual(row(row(answer.json)["error"])["field"], "limit")
    }
  })

  it("[A-01][A-02][A-04] return every record once by cursor, for any page size, and end with the last record", async (c) => {
    const made = await putSalesmen(c, 23)
    for (const limit of [1, 2, 7, 11, 22, 23, 24]) {
      const pages = await c.pages(`/salesmen?limit=${limit}`)
      assert.deepEqual(ids(pages.flatMap(({ data }) => data)), made, `limit ${limit}`)
      assert.lengthOf(pages, Math.ceil(23 / limit))
    }
  })

  it("[A-02][A-04] neither skip nor repeat a record while others appear or disappear", async (c) => {
    const made = await putSalesmen(c, 10)
    const first = page(await c.get("/salesmen?limit=3"))
    for (const id of made.slice(1, 3)) await control("POST", "/remove", { company: c.id, resource: "salesmen", id })
    const added = await putSalesmen(c, 1)
    const seen = ids((await c.pages("/salesmen?limit=3", first)).flatMap(({ data }) => data))
    assert.deepEqual(
      seen.filter((id) => !added.includes(id)),
      made
    )
    assert.strictEqual(new Set(seen).size, seen.length)
  })

  it("[A-02] keep the filters of the first page", async (c) => {
    await c.put("salesmen", [
      { name: "red 1", cancel: true },
      { name: "red 2" },
      { name: "blue 1" },
      { name: "RED 3" },
      { name: "red 4", cancel: true },
      { name: "red 5" }
    ])
    const names = async (path: string) => (await c.list(path)).map((record) => record["name"])
    assert.deepEqual(await names("/salesmen?name=red&limit=1"), ["red 2", "RED 3", "red 5"])
    assert.deepEqual(await names("/salesmen?name=red&cancel=any&limit=2"), [
      "red 1",
      "red 2",
      "RED 3",
      "red 4",
      "red 5"
    ])
  })

  it("[A-02] reject a cursor that the server did not issue", async (c) => {
    await putSalesmen(c, 3)
    for (const cursor of ["garbage", "0", "-1", "null", "{}", "x".repeat(5000)]) {
      const answer = await c.get(`/salesmen?limit=1&cursor=${encodeURIComponent(cursor)}`)
      assert.strictEqual(answer.status, 400, `cursor ${cursor.slice(0, 40)}: ${answer.text}`)
    }
  })

  it("[GEN-06] never show another company's records through its cursor", async (a, b) => {
    await putSalesmen(a, 3)
    const ofB = await putSalesmen(b, 3)
    const { next } = page(await a.get("/salesmen?limit=1"))
    const answer = await b.get(`/salesmen?limit=250&cursor=${encodeURIComponent(String(next))}`)
    if (answer.status === 200) assert.isTrue(ids(page(answer).data).every((id) => ofB.includes(id)))
    else assert.strictEqual(answer.status, 400)
  })

  it("[A-16] reject a repeated parameter", async (c) => {
    for (const search of [
      "limit=1&limit=2",
      "name=a&name=b",
      "name=a&name=a",
      "cancel=any&cancel=any",
      "externalid=a&externalid=b"
    ]) {
      refused(await c.get(`/salesmen?${search}`), "invalid_request")
    }
    refused(await c.get("/shipments?orderid=1&orderid=2"), "invalid_request")
  })

  it("[A-05] have the server's clock at the snapshot as synced_through", async (c) => {
    const now = await freeze()
    const answer = page(await c.get("/salesmen"))
    await thaw()
    assert.strictEqual(micros(answer.syncedThrough), now)
  })
})

async function listIds(c: Company, path: string, params: Record<string, string | number | boolean>): Promise<number[]> {
  return ids(await c.list(`/${path}${query({ limit: 250, ...params })}`))
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
    it(`[EP-17][A-10][A-16][${fact}] matches the id exactly: ${path}, ${filter}`, async (c) => {
      const [one, two] =
        field.pair === undefined ? [11, 111] : [(await target(c, field)).id, (await target(c, field)).id]
      const [a, b, , d] = await putRows(c, path, [{ [filter]: one }, { [filter]: two }, {}, { [filter]: one }])
      assert.deepEqual(await listIds(c, path, { [filter]: one }), [a, d])
      assert.deepEqual(await listIds(c, path, { [filter]: two }), [b])
      assert.deepEqual(await listIds(c, path, { [filter]: 999_999_999 }), [])
      for (const value of ["abc", "", "1.5", "1,2", "0x1", " 1", "null"])
        refused(await c.get(`/${path}${query({ [filter]: value })}`), "invalid_type", filter)
    })
  }

  it("[EP-17] combines with other filters", async (c) => {
    const [, b] = await putRows(c, "shipments", [
      { orderid: 1, locationid: null },
      { orderid: 1, externalid: "x" },
      { orderid: 2, externalid: "x" }
    ])
    assert.deepEqual(await listIds(c, "shipments", { orderid: 1, externalid: "x" }), [b])
  })
})

describe("a partial filter", () => {
  for (const { path, filter, fact } of FILTERS.filter((each) => each.match === "partial")) {
    it(`[EP-17][${fact}] matches a part in any case: ${path}, ${filter}`, async (c) => {
      const tag = fresh("t")
      const [start, middle, end, other] = await putRows(c, path, [
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

    it(`[EP-17][A-16] matches each special character literally, letters beyond ASCII in any case, and no wildcard: ${path}, ${filter}`, async (c) => {
      const tag = fresh("s")
      const signs = ["10%", "a_b", "c*", "(d", "e\\f", "g.h", "[i]", "j'k", 'l"m', "n+o", "ö", " Zoë Ärger"]
      const made = await putRows(c, path, [
        ...signs.map((sign) => ({ [filter]: `${tag}${sign}z` })),
        ...["10xz", "axbz", "cccz", "dz", "efz", "gxhz", "iz", "jkz"].map((decoy) => ({ [filter]: tag + decoy }))
      ])
      for (const [i, sign] of signs.entries())
        assert.deepEqual(await listIds(c, path, { [filter]: `${tag}${sign}` }), [made[i]], sign)
      assert.deepEqual(await listIds(c, path, { [filter]: `${tag} ZOË ä` }), [made[signs.length - 1]])
      assert.isEmpty((await c.list(`/${path}?${filter}=`)).filter((record) => record[filter] !== ""))
    })
  }
})

describe("an exact text filter", () => {
  const exact = FILTERS.filter(({ match, field }) => match === "exact" && field.kind === "string")
  for (const { path, filter: name, fact } of exact) {
    it(`[A-17][A-18][${fact}] is case-sensitive on ${path}.${name}`, async (c) => {
      const codes = ["GND", "gnd", "GND2", ""].map((value) => ({ [name]: value }))
      const [upper, , , blank] = await putRows(c, path, codes)
      assert.deepEqual(await listIds(c, path, { [name]: "GND" }), [upper])
      assert.deepEqual(await listIds(c, path, { [name]: "GN" }), [])
      assert.deepEqual(await listIds(c, path, { [name]: "" }), [blank])
    })
  }

  it("[TEAMPROJECTREMINDERS-02][EPR-08][A-10] accepts true or false on teamprojectreminders.status", async (c) => {
    const [pending, done] = await putRows(c, "teamprojectreminders", [{ status: false }, { status: true }])
    assert.deepEqual(await listIds(c, "teamprojectreminders", { status: "false" }), [pending])
    assert.deepEqual(await listIds(c, "teamprojectreminders", { status: "true" }), [done])
    for (const value of ["1", "yes", "", "TRUE", "done"]) {
      refused(await c.get(`/teamprojectreminders${query({ status: value })}`), "invalid_type", "status")
    }
  })

  for (const { path } of RESOURCES) {
    it(`[FIELD-12][EP-17][A-18] is verbatim and case-sensitive on externalid: ${path}`, async (c) => {
      const tag = fresh("x")
      const keys = [
        `${tag} Key-1`,
        `${tag} key-1`,
        `${tag} Key-1 `,
        `${tag} Key-11`,
        `${tag} ключ/键?&=%+#`,
        `${tag}\ttab\nline`
      ]
      const made = await putRows(
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
    const facts = cancel
      ? "[EP-15][FIELD-13][A-08][TASKSTATUSES-03][EPR-22][X-05]"
      : "[A-09][EP-22][X-03][INVOICELINES-61][CARRIERSERVICES-21][APBILLLINES-21]"
    it(`${facts}[A-10][A-16] ${cancel ? "hides cancelled rows by default" : "is accepted without effect"}: ${path}`, async (c) => {
      const externalid = fresh("cx")
      const [live, dead] = await putRows(c, path, [{ externalid }, { externalid, ...(cancel ? { cancel } : {}) }])
      const shown = cancel ? [live] : [live, dead]
      assert.deepEqual(await listIds(c, path, { externalid }), shown)
      assert.deepEqual(await listIds(c, path, { externalid, cancel: "false" }), shown)
      assert.deepEqual(await listIds(c, path, { externalid, cancel: "any" }), [live, dead])
      // the one list where true means cancelled only.
      const expected = path === "taskstatuses" ? [dead] : [live, dead]
      assert.deepEqual(await listIds(c, path, { externalid, cancel: "true" }), expected)
      for (const value of ["maybe", "1", "TRUE", "yes"])
        refused(await c.get(`/${path}?cancel=${value}`), "invalid_enum", "cancel")
      assert.strictEqual((await c.get(`/${path}?cancel=`)).status, 400)
    })
  }
})

keptPromises()
