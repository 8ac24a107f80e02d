/** Lists: the envelope, pages, order, and query parameters. */
import { assert, describe, it } from "vitest"
import {
  control,
  freeze,
  fresh,
  idOf,
  ids,
  isRow,
  keptPromises,
  micros,
  newCompany,
  page,
  query,
  refused,
  succeeded,
  thaw,
  useServer,
  type Company
} from "./harness.ts"
import { RESOURCES, shownRecord } from "./resources.ts"
import { makeSalesman } from "./world.ts"

useServer()

async function salesmen(c: Company, count: number): Promise<number[]> {
  const records = Array.from({ length: count }, (_, i) => ({ name: `Person ${i}` }))
  return ids(await c.put("salesmen", records))
}

describe("a list", () => {
  for (const each of RESOURCES) {
    const { path, facts, make } = each
    it(`[EP-05][EP-19][A-01][A-04][${facts.ops}][${facts.row}] has the envelope and is ordered by id: GET /${path}`, async () => {
      const c = await newCompany()
      const first = idOf(await make(c))
      const second = idOf(await make(c))
      const answer = page(await c.get(`/${path}?limit=250`))
      const seen = ids(answer.data)
      assert.isTrue(seen.includes(first) && seen.includes(second))
      assert.deepEqual(
        seen,
        [...seen].sort((x, y) => x - y)
      )
      assert.strictEqual(answer.limit, 250)
      assert.deepEqual(
        answer.data.find((record) => record["id"] === first),
        await shownRecord(c, each, first)
      )
    })

    it(`[A-05][EP-16][${facts.since}] ${each.modifiedsince ? "carries" : "needs not carry"} synced_through: GET /${path}`, async () => {
      const c = await newCompany()
      const record = await make(c)
      const answer = page(await c.get(`/${path}?limit=1`))
      if (!each.modifiedsince) return
      assert.isString(answer.syncedThrough)
      const shown = await shownRecord(c, each, idOf(record))
      assert.isTrue(micros(answer.syncedThrough) >= micros(shown["lastchangedate"]))
    })

    it(`[EP-13][FIELD-16][A-12] has custom_fields only with include: GET /${path}?include=custom_fields`, async () => {
      const c = await newCompany()
      await make(c)
      const plain = page(await c.get(`/${path}`)).data
      const included = page(await c.get(`/${path}?include=custom_fields`)).data
      assert.isNotEmpty(included)
      for (const record of plain) assert.notProperty(record, "custom_fields")
      for (const record of included) assert.isTrue(isRow(record["custom_fields"]))
    })

    it(`[EP-13][VER-04][A-11] rejects any other include: GET /${path}`, async () => {
      const c = await newCompany()
      for (const include of ["lines", "custom_fields,lines", "CUSTOM_FIELDS", ""]) {
        const answer = await c.get(`/${path}${query({ include })}`)
        if (include === "") assert.strictEqual(answer.status, 400)
        else refused(answer, "invalid_enum", "include")
      }
    })

    it(`[EP-18][CODE-05][${facts.filters}] rejects an unknown filter and names the valid ones: GET /${path}`, async () => {
      const c = await newCompany()
      for (const name of ["bogus", "id", "Limit", "page", "offset", "__proto__", "constructor", "toString"]) {
        const error = refused(await c.get(`/${path}?${name}=1`), "unknown_parameter", name)
        for (const valid of [...each.filters.map(({ name }) => name), "cancel", "externalid", "include"]) {
          assert.include(String(error["message"]), valid)
        }
        if (each.modifiedsince) assert.include(String(error["message"]), "modifiedsince")
      }
    })
  }

  it("[EP-18][APBILLLINES-17] rejects a field that is no filter of the resource as an unknown parameter", async () => {
    const c = await newCompany()
    for (const { path, fields, filters } of RESOURCES) {
      const valid = ["cancel", "externalid", ...filters.map(({ name }) => name)]
      for (const { name, pair } of fields) {
        if (!valid.includes(name)) refused(await c.get(`/${path}?${name}=1`), "unknown_parameter", name)
        if (pair !== undefined) refused(await c.get(`/${path}?${pair.code}=1`), "unknown_parameter", pair.code)
      }
    }
  })

  it("[EP-13][FIELD-16][A-12] has the same include as a retrieve: custom_fields and nothing else", async () => {
    const c = await newCompany()
    const id = idOf(await makeSalesman(c))
    assert.notProperty(await c.read("salesmen", id), "custom_fields")
    const record = succeeded(await c.get(`/salesmen/${id}?include=custom_fields`))
    assert.deepEqual(record["custom_fields"], {})
    refused(await c.get(`/salesmen/${id}?include=other`), "invalid_enum", "include")
    refused(await c.get(`/salesmen/${id}?bogus=1`), "unknown_parameter", "bogus")
  })
})

describe("the pages of a list", () => {
  it("[A-03][LIM-13] have 100 records by default, as the envelope states", async () => {
    const c = await newCompany()
    const made = await salesmen(c, 101)
    const first = page(await c.get("/salesmen"))
    assert.strictEqual(first.limit, 100)
    assert.deepEqual(ids(first.data), made.slice(0, 100))
    assert.isTrue(first.hasMore)
    const second = page(await c.get(`/salesmen?cursor=${encodeURIComponent(String(first.next))}`))
    assert.deepEqual(ids(second.data), made.slice(100))
    assert.isFalse(second.hasMore)
  })

  it("[A-03][LIM-13] have a limit from 1 to 250", async () => {
    const c = await newCompany()
    const made = await salesmen(c, 251)
    assert.deepEqual(ids(page(await c.get("/salesmen?limit=1")).data), made.slice(0, 1))
    const full = page(await c.get("/salesmen?limit=250"))
    assert.strictEqual(full.limit, 250)
    assert.deepEqual(ids(full.data), made.slice(0, 250))
    assert.isTrue(full.hasMore)
    for (const limit of ["0", "251", "-1", "1000000"]) {
      refused(await c.get(`/salesmen?limit=${limit}`), "invalid_request", "limit")
    }
  })

  it("[A-03][A-10] reject a limit that is no integer", async () => {
    const c = await newCompany()
    for (const limit of ["abc", "", "1.5", "1e1", "0x10", "%201"]) {
      const answer = await c.get(`/salesmen?limit=${limit}`)
      assert.strictEqual(answer.status, 400, limit)
      assert.strictEqual((answer.json as { error: { field?: string } }).error.field, "limit")
    }
  })

  it("[A-02][A-04] return every record once by cursor, for any page size", async () => {
    const c = await newCompany()
    const made = await salesmen(c, 23)
    for (const limit of [1, 2, 7, 11, 22, 23, 24]) {
      assert.deepEqual(ids(await c.list(`/salesmen?limit=${limit}`)), made, `limit ${limit}`)
    }
  })

  it("[A-01] end without has_more if the last record fills the page", async () => {
    const c = await newCompany()
    await salesmen(c, 4)
    const first = page(await c.get("/salesmen?limit=2"))
    const second = page(await c.get(`/salesmen?limit=2&cursor=${encodeURIComponent(String(first.next))}`))
    assert.strictEqual(second.data.length, 2)
    assert.isFalse(second.hasMore)
    assert.isNull(second.next)
  })

  it("[A-01] are one empty page if there are no records", async () => {
    const c = await newCompany()
    for (const { path } of RESOURCES) {
      if (path === "invoiceterms") continue
      const empty = page(await c.get(`/${path}`))
      assert.deepEqual(empty.data, [])
      assert.isFalse(empty.hasMore)
    }
  })

  it("[A-02][A-04] neither skip nor repeat a record while others appear or disappear", async () => {
    const c = await newCompany()
    const made = await salesmen(c, 10)
    const first = page(await c.get("/salesmen?limit=3"))
    await control("POST", "/remove", { company: c.id, resource: "salesmen", id: made[1] })
    await control("POST", "/remove", { company: c.id, resource: "salesmen", id: made[2] })
    const added = await salesmen(c, 1)
    const seen = ids(first.data)
    let next = first.next
    while (next !== null) {
      const each = page(await c.get(`/salesmen?limit=3&cursor=${encodeURIComponent(next)}`))
      seen.push(...ids(each.data))
      next = each.next
    }
    assert.deepEqual(
      seen.filter((id) => !added.includes(id)),
      made
    )
    assert.strictEqual(new Set(seen).size, seen.length)
  })

  it("[A-02] keep the filters of the first page", async () => {
    const c = await newCompany()
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

  it("[A-02] reject a cursor that the server did not issue", async () => {
    const c = await newCompany()
    await salesmen(c, 3)
    for (const cursor of ["garbage", "0", "-1", "null", "{}", "x".repeat(5000)]) {
      const answer = await c.get(`/salesmen?limit=1&cursor=${encodeURIComponent(cursor)}`)
      assert.strictEqual(answer.status, 400, `cursor ${cursor.slice(0, 40)}: ${answer.text}`)
    }
  })

  it("[GEN-06] never show another company's records through its cursor", async () => {
    const a = await newCompany()
    const b = await newCompany()
    await salesmen(a, 3)
    const ofB = await salesmen(b, 3)
    const { next } = page(await a.get("/salesmen?limit=1"))
    const answer = await b.get(`/salesmen?limit=250&cursor=${encodeURIComponent(String(next))}`)
    if (answer.status === 200) assert.isTrue(ids(page(answer).data).every((id) => ofB.includes(id)))
    else assert.strictEqual(answer.status, 400)
  })

  it("[A-16] reject a repeated parameter", async () => {
    const c = await newCompany()
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

  it("[A-05] have the server's clock at the snapshot as synced_through", async () => {
    const c = await newCompany()
    const now = await freeze()
    const answer = page(await c.get("/salesmen"))
    await thaw()
    assert.strictEqual(micros(answer.syncedThrough), now)
  })

  it("[A-04] of a large list are complete and in order", async () => {
    const c = await newCompany()
    const made: number[] = []
    for (let i = 0; i < 4; i += 1) {
      made.push(
        ...ids(
          await c.put(
            "carrierservices",
            Array.from({ length: 250 }, (_, k) => ({ code: `${i}-${k}`, description: fresh() }))
          )
        )
      )
    }
    assert.deepEqual(ids(await c.list("/carrierservices?limit=250")), made)
  }, 30_000)
})

keptPromises()
