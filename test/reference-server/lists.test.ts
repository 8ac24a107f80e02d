import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "vitest"
import { codeOf, dataOf, errorOf, idsOf, linesOf, metaOf, readAll, server } from "./support.ts"
import type { Server } from "./support.ts"

const terms = (world: Server, count: number, at?: string) => {
  const records = Array.from({ length: count }, (_, index) => ({
    name: `P${at ?? ""}${index}`,
    cancel: index % 5 === 4
  }))
  const response = world.control("POST", "/records", {
    company: 1,
    resource: "salesmen",
    records,
    ...(at ? { at } : {})
  })
  assert.strictEqual(response.status, 200, response.text)
  return idsOf(response.body["records"] as ReadonlyArray<Record<string, unknown>>)
}

describe("lists of the reference server", () => {
  it("return every record once, by id, for any page size", () => {
    const world = server()
    const ids = terms(world, 37)
    for (const limit of [1, 7, 36, 37, 38, 250]) {
      const { records } = readAll(world.call, `/salesmen?cancel=any&limit=${limit}`)
      assert.deepStrictEqual(idsOf(records), ids)
    }
  })

  it("return records with one stamp once, in pages smaller than the tie", () => {
    const world = server()
    terms(world, 23, "2026-03-01T00:00:00Z")
    terms(world, 2, "2026-02-01T00:00:00Z")
    const { records, synced } = readAll(world.call, "/salesmen?modifiedsince=2026-02-01T00:00:00Z&limit=4")
    assert.strictEqual(records.length, 25)
    assert.strictEqual(new Set(idsOf(records)).size, 25)
    assert.strictEqual(synced.length, 1)
    const after = readAll(world.call, "/salesmen?modifiedsince=2026-03-01T00:00:00.000001Z&limit=4")
    assert.strictEqual(after.records.length, 0)
  })

  it("lose no unchanged record while others change between pages", () => {
    const world = server()
    const ids = terms(world, 40, "2026-03-01T00:00:00Z")
    let turn = 0
    const changed = new Set<number>()
    const { records, synced } = readAll(world.call, "/salesmen?modifiedsince=2026-01-01T00:00:00Z&limit=3", () => {
      const id = ids[(turn * 7) % ids.length]!
      if (turn++ >= 6) return
      changed.add(id)
      world.control("POST", "/clock", { advanceSeconds: 1 })
      world.call("PATCH", `/salesmen/${id}`, { email1: `${turn}@example.com` })
    })
    for (const id of ids) {
      const times = idsOf(records).filter((other) => other === id).length
      if (!changed.has(id)) assert.strictEqual(times, 1, `${id}`)
    }
    // A read from the first position returns the changes that this read missed.
    const later = readAll(world.call, `/salesmen?modifiedsince=${String(synced[0])}&limit=3`)
    for (const id of changed) assert.include(idsOf(later.records), id)
  })

  it("return every commit after synced_through, also under the same stamp", () => {
    const world = server()
    terms(world, 1)
    const synced = String(metaOf(world.call("GET", "/salesmen"))["synced_through"])
    world.call("POST", "/salesmen", { name: "same instant" })
    assert.include(
      dataOf(world.call("GET", `/salesmen?modifiedsince=${synced}`)).map(({ name }) => name),
      "same instant"
    )
  })

  it("hide cancelled records by default, and return them with modifiedsince", () => {
    const world = server()
    terms(world, 10)
    const count = (query: string) => dataOf(world.call("GET", `/salesmen?${query}`)).length
    assert.deepStrictEqual(
      ["", "cancel=false", "cancel=true", "cancel=any", "modifiedsince=2020-01-01T00:00:00Z"].map(count),
      [8, 8, 10, 10, 10]
    )
    assert.strictEqual(count("modifiedsince=2020-01-01T00:00:00Z&cancel=false"), 8)
    world.control("PUT", "/dialect", { cancelTrue: "only" })
    assert.strictEqual(count("cancel=true"), 2)
  })

  it("filter exactly, in part, and by external key", () => {
    const world = server()
    world.call("POST", "/salesmen", { name: "Ann Archer", externalid: "X1" })
    world.call("POST", "/salesmen", { name: "Bob Barker" })
    const names = (query: string) => dataOf(world.call("GET", `/salesmen?${query}`)).map(({ name }) => name)
    assert.deepStrictEqual(names("name=ARCH"), ["Ann Archer"])
    assert.deepStrictEqual(names("name=ar"), ["Ann Archer", "Bob Barker"])
    assert.deepStrictEqual(names("externalid=X1"), ["Ann Archer"])
    assert.deepStrictEqual(names("externalid=x1"), [])
    assert.deepStrictEqual(names("name=bob&externalid=X1"), [])
  })

  it("reject each invalid query with its own code", () => {
    const world = server()
    const refusal = (query: string, path = "/invoicelines") => {
      const response = world.call("GET", `${path}?${query}`)
      return [response.status, codeOf(response), errorOf(response)["field"]]
    }
    assert.deepStrictEqual(refusal("colour=red"), [400, "unknown_parameter", "colour"])
    assert.deepStrictEqual(refusal("page=2"), [400, "unknown_parameter", "page"])
    assert.deepStrictEqual(refusal("cancel=maybe"), [400, "invalid_enum", "cancel"])
    assert.deepStrictEqual(refusal("invoiceid=abc"), [400, "invalid_type", "invoiceid"])
    assert.deepStrictEqual(refusal("invoiceid="), [400, "invalid_type", "invoiceid"])
    assert.deepStrictEqual(refusal("modifiedsince=yesterday"), [400, "invalid_type", "modifiedsince"])
    assert.deepStrictEqual(refusal("modifiedsince=2026-03-01"), [400, "invalid_type", "modifiedsince"])
    assert.deepStrictEqual(refusal("modifiedsince=2026-03-01T00:00:00Z", "/payments"), [
      400,
      "unknown_parameter",
      "modifiedsince"
    ])
    assert.deepStrictEqual(refusal("include=lines"), [400, "invalid_enum", "include"])
    assert.deepStrictEqual(refusal("invoiceid=1&invoiceid=2"), [400, "invalid_request", "invoiceid"])
    assert.deepStrictEqual(refusal("limit=0"), [400, "invalid_request", "limit"])
    assert.deepStrictEqual(refusal("limit=251"), [400, "invalid_request", "limit"])
    assert.deepStrictEqual(refusal("cursor=nonsense"), [400, "invalid_request", "cursor"])
    assert.deepStrictEqual(refusal("description=%zz"), [400, "invalid_request", "%zz"])
  })

  it("continue from a cursor alone, and not in another order", () => {
    const world = server()
    terms(world, 9)
    const first = world.call("GET", "/salesmen?limit=2&cancel=any")
    const next = String(metaOf(first)["next_cursor"])
    const second = world.call("GET", `/salesmen?cursor=${next}`)
    assert.strictEqual(dataOf(second).length, 2)
    assert.strictEqual(metaOf(second)["limit"], 2)
    assert.strictEqual(
      codeOf(world.call("GET", `/salesmen?modifiedsince=2020-01-01T00:00:00Z&cursor=${next}`)),
      "invalid_request"
    )
  })

  it("agree with the state of the control plane", () => {
    const world = server({ data: "demo" })
    for (const path of ["orders", "invoicelines", "payments", "shipments", "invoiceterms"]) {
      const { records } = readAll(world.call, `/${path}?cancel=any&limit=250`)
      const state = linesOf(world.control("GET", `/state?company=1&resource=${path}`).text)
      assert.deepStrictEqual(records, [...state])
    }
  })
})

describe("a dialect of the reference server", () => {
  it("places the records under another key, or under none", () => {
    const world = server()
    terms(world, 5)
    for (const itemsKey of ["results", "items", "records"]) {
      world.control("PUT", "/dialect", { itemsKey })
      assert.lengthOf(world.call("GET", "/salesmen").body[itemsKey] as ReadonlyArray<unknown>, 4)
    }
    world.control("PUT", "/dialect", { itemsKey: "resource" })
    assert.lengthOf(world.call("GET", "/salesmen").body["salesmen"] as ReadonlyArray<unknown>, 4)
    world.control("PUT", "/dialect", { itemsKey: "bare" })
    const bare = world.call("GET", "/salesmen?limit=2")
    assert.lengthOf(bare.body as unknown as ReadonlyArray<unknown>, 2)
    assert.match(bare.headers["Link"]!, /rel="next"$/)
  })

  it("pages by number, by offset and by link", () => {
    const world = server()
    const ids = terms(world, 11)
    world.control("PUT", "/dialect", { paging: "page" })
    const byPage = [1, 2, 3].flatMap((page) => dataOf(world.call("GET", `/salesmen?cancel=any&limit=4&page=${page}`)))
    assert.deepStrictEqual(idsOf(byPage), ids)
    assert.deepInclude(metaOf(world.call("GET", "/salesmen?cancel=any&limit=4&page=3")), {
      page: 3,
      total: 11,
      has_more: false
    })
    world.control("PUT", "/dialect", { paging: "offset" })
    const byOffset = [0, 4, 8].flatMap((offset) =>
      dataOf(world.call("GET", `/salesmen?cancel=any&limit=4&offset=${offset}`))
    )
    assert.deepStrictEqual(idsOf(byOffset), ids)
    world.control("PUT", "/dialect", { paging: "link" })
    const linked: Array<number> = []
    for (let path: string | undefined = "/salesmen?cancel=any&limit=4"; path !== undefined;) {
      const response = world.call("GET", path)
      linked.push(...idsOf(dataOf(response)))
      assert.notProperty(metaOf(response), "next_cursor")
      path = /<[^>]*\/v2(.*)>/.exec(response.headers["Link"] ?? "")?.[1]
    }
    assert.deepStrictEqual(linked, ids)
  })

  it("returns pages shorter than the limit although more follow", () => {
    const world = server()
    const ids = terms(world, 30)
    world.control("PUT", "/dialect", { pageSizes: 7 })
    const { records } = readAll(world.call, "/salesmen?cancel=any&limit=10")
    assert.deepStrictEqual(idsOf(records), ids)
    assert.notStrictEqual(dataOf(world.call("GET", "/salesmen?cancel=any&limit=10")).length, 10)
  })

  it("shuffles records of one stamp by seed, and returns each once", () => {
    const world = server()
    const tied = terms(world, 23, "2026-03-01T00:00:00Z")
    const before = terms(world, 3, "2026-02-01T00:00:00Z")
    const read = (limit: number) =>
      idsOf(readAll(world.call, `/salesmen?modifiedsince=2026-02-01T00:00:00Z&limit=${limit}`).records)
    assert.deepStrictEqual(read(5), [...before, ...tied])
    world.control("PUT", "/dialect", { tieOrder: 11 })
    const shuffled = read(4)
    assert.notDeepEqual(shuffled.slice(3), tied)
    assert.deepStrictEqual(
      shuffled.toSorted((a, b) => a - b),
      [...tied, ...before].toSorted((a, b) => a - b)
    )
    for (const limit of [1, 7, 250]) assert.deepStrictEqual(read(limit), shuffled)
    world.control("PUT", "/dialect", { tieOrder: 12 })
    assert.notDeepEqual(read(4), shuffled)
  })

  it("adds unknown fields and shuffles keys without changing values", () => {
    const world = server({ data: "demo" })
    const plain = dataOf(world.call("GET", "/orders?limit=20"))
    world.control("PUT", "/dialect", { extraFields: 3, keyOrder: 4 })
    const records = dataOf(world.call("GET", "/orders?limit=20"))
    assert.isTrue(records.some((record) => Object.keys(record).some((name) => name.startsWith("x_"))))
    assert.notDeepEqual(Object.keys(records[0]!), Object.keys(plain[0]!))
    for (const [index, record] of plain.entries()) assert.deepInclude(records[index]!, record)
    world.control("PUT", "/dialect", { extraFields: null, keyOrder: null })
    assert.deepStrictEqual(dataOf(world.call("GET", "/orders?limit=20")), plain)
  })

  it("excludes the instant of modifiedsince consistently", () => {
    const world = server()
    world.control("PUT", "/dialect", { modifiedSince: "exclusive" })
    terms(world, 1, "2026-03-01T00:00:00Z")
    assert.lengthOf(dataOf(world.call("GET", "/salesmen?modifiedsince=2026-03-01T00:00:00Z")), 0)
    const synced = String(metaOf(world.call("GET", "/salesmen"))["synced_through"])
    world.call("POST", "/salesmen", { name: "same instant" })
    assert.lengthOf(dataOf(world.call("GET", `/salesmen?modifiedsince=${synced}`)), 1)
    world.control("PUT", "/dialect", { syncedThrough: false })
    assert.notProperty(metaOf(world.call("GET", "/salesmen")), "synced_through")
  })

  it("clamps, ignores or does not know a limit above the maximum", () => {
    const world = server()
    terms(world, 30, "2026-03-01T00:00:00Z")
    const answerTo = (limit: string) => {
      world.control("PUT", "/dialect", { limit, pageMax: 20, pageDefault: 10 })
      return world.call("GET", "/salesmen?limit=30")
    }
    assert.strictEqual(answerTo("refused").status, 400)
    assert.lengthOf(dataOf(answerTo("clamped")), 20)
    assert.lengthOf(dataOf(answerTo("ignored")), 10)
    assert.deepInclude(answerTo("unknown"), { status: 400 })
    assert.include(JSON.stringify(answerTo("unknown")), "unknown_parameter")
  })

  it("compresses answers where the request accepts it", () => {
    const world = server()
    terms(world, 30, "2026-03-01T00:00:00Z")
    world.control("PUT", "/dialect", { compression: true })
    const headers = { authorization: `Bearer ${world.token()}`, "accept-encoding": "gzip" }
    const ask = (more: object) =>
      world.served.handle({ method: "GET", url: "/!/api/v2/salesmen", headers: { ...headers, ...more }, body: null })
    const plain = ask({ "accept-encoding": "identity" })
    const packed = ask({})
    assert.strictEqual(packed.headers["Content-Encoding"], "gzip")
    assert.deepInclude(JSON.parse(gunzipSync(packed.bytes!).toString()), { data: JSON.parse(plain.body).data })
  })

  it("is rejected with an unknown switch or value", () => {
    const world = server()
    for (const switches of [{ colour: 1 }, { itemsKey: "rows" }, { pageMax: 0 }, { etag: "no" }, { toString: 1 }]) {
      assert.strictEqual(world.control("PUT", "/dialect", switches).status, 400)
    }
    assert.strictEqual(world.control("PUT", "/dialect", { pageMax: 1000, pageDefault: 500 }).status, 200)
    assert.strictEqual(metaOf(world.call("GET", "/salesmen"))["limit"], 500)
    assert.strictEqual(world.call("GET", "/salesmen?limit=1000").status, 200)
  })
})
