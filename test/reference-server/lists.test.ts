import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "vitest"
import { dataOf, idsOf, metaOf, readAll, server } from "./support.ts"
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

describe("a dialect of the reference server", () => {
  it("returns pages shorter than the limit although more follow", () => {
    const world = server()
    const ids = terms(world, 30)
    world.control("PUT", "/dialect", { pageSizes: 7 })
    assert.deepStrictEqual(idsOf(readAll(world.call, "/salesmen?cancel=any&limit=10").records), ids)
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
