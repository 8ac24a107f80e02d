/** Malformed requests: the server rejects them with an envelope and keeps running. */
import { assert, describe, it } from "vitest"
import {
  fresh,
  idOf,
  keptPromises,
  newCompany,
  page,
  refused,
  refusedEntries,
  send,
  succeeded,
  useServer,
  type Company
} from "./harness.ts"
import { RESOURCES } from "./resources.ts"
import { makeSalesman } from "./world.ts"

useServer()

const raw = (
  c: Company,
  body: string | Buffer,
  path = "/salesmen",
  method = "POST",
  headers: Record<string, string> = {}
) => c.send({ method, path, raw: body, headers })

describe("a request body", () => {
  it("[CODE-02][D-03] is 400 invalid_json if it is not JSON", async () => {
    const c = await newCompany()
    for (const body of [
      "{",
      '{"name":"x"',
      "{name:'x'}",
      '{"name":"x",}',
      "name=x",
      "undefined",
      "NaN",
      '{"name":"x"}}',
      '{"a":1}{"b":2}',
      "'x'",
      '{"name":"a\nb"}',
      "<xml/>",
      '{"name":01}',
      "[1,]"
    ]) {
      refused(await raw(c, body), "invalid_json")
    }
    const id = idOf(await makeSalesman(c))
    refused(await raw(c, "{", `/salesmen/${id}`, "PATCH"), "invalid_json")
    refused(await raw(c, "[{]", "/salesmen/batch"), "invalid_json")
  })

  it("[CODE-02] is 400 if it is empty where one is required", async () => {
    const c = await newCompany()
    for (const body of ["", " "]) {
      const answer = await raw(c, body)
      assert.strictEqual(answer.status, 400)
    }
  })

  for (const { path, ops, make } of RESOURCES) {
    it(`[D-07][CODE-03] is 400 invalid_request if it is no object: ${path}`, async () => {
      const c = await newCompany()
      for (const body of ["[]", '"x"', "1", "null", "true", "[{}]"])
        refused(await raw(c, body, `/${path}`), "invalid_request")
      if (!ops.includes("U")) return
      const id = idOf(await make(c))
      for (const body of ["[]", '"x"', "1", "null"])
        refused(await raw(c, body, `/${path}/${id}`, "PATCH"), "invalid_request")
    })
  }

  it("[D-08] is accepted under any content type if it is JSON, and invalid_json otherwise", async () => {
    const c = await newCompany()
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/xml",
      "application/json; charset=utf-8",
      "nonsense"
    ]) {
      succeeded(await raw(c, JSON.stringify({ name: fresh() }), "/salesmen", "POST", { "content-type": type }), 201)
      refused(await raw(c, "name=x", "/salesmen", "POST", { "content-type": type }), "invalid_json")
    }
  })

  it("[CODE-05] has unknown fields if their names are special in JavaScript", async () => {
    const c = await newCompany()
    for (const name of [
      "__proto__",
      "constructor",
      "prototype",
      "hasOwnProperty",
      "toString",
      "valueOf",
      "then",
      " ",
      "name ",
      "Name"
    ]) {
      refused(await raw(c, `{"name":${JSON.stringify(fresh())},${JSON.stringify(name)}:1}`), "unknown_parameter")
    }
    assert.isEmpty(await c.list("/salesmen"))
    page(await (await newCompany()).get("/salesmen"))
  })

  it("[CODE-05] with a field or parameter without a name names no field", async () => {
    const c = await newCompany()
    const id = idOf(await makeSalesman(c))
    const answers = [
      await c.get("/salesmen?=5"),
      await c.get("/salesmen?limit=1&=x"),
      await c.get("/salesmen?="),
      await c.get(`/salesmen/${id}?=5`),
      await c.get("/webhooks?=5"),
      await raw(c, '{"name":"x","":1}'),
      await raw(c, '{"":1}', `/salesmen/${id}`, "PATCH"),
      await raw(c, '{"url":"https://example.com","events":["orders.created"],"":1}', "/webhooks")
    ]
    for (const answer of answers) {
      refused(answer, "unknown_parameter")
      assert.notProperty((answer.json as { readonly error: object }).error, "field", answer.text)
    }
    const line = '{"customerid":1,"lines":[{"qtyorder":"1","":1}]}'
    refused(await raw(c, line, "/orders"), "unknown_parameter", "lines[0]")
    refused(await raw(c, '{"name":"x","custom_fields":{"":1}}'), "unknown_value", "custom_fields")
  })

  it("[D-01] with a string of a million characters is rejected as too long only", async () => {
    const c = await newCompany()
    refusedEntries(await c.post("/salesmen", { name: "x".repeat(1_000_000) }), "name:too_long")
  })

  it("[CODE-04] with nesting a hundred thousand levels deep is rejected", async () => {
    const c = await newCompany()
    const deep = `{"name":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
    const answer = await raw(c, deep)
    assert.strictEqual(answer.status, 400)
    refused(await raw(c, "[".repeat(100_000)), "invalid_json")
    page(await c.get("/salesmen"))
  })

  it("[CODE-05] with a thousand unknown fields is rejected once", async () => {
    const c = await newCompany()
    const body = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, i]))
    const answer = await c.post("/salesmen", { name: "x", ...body })
    assert.strictEqual(answer.status, 400)
  })

  it("[GEN-01] with invalid UTF-8 does not stop the server", async () => {
    const c = await newCompany()
    const answer = await raw(c, Buffer.from([0x7b, 0x22, 0x6e, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0x22, 0x7d]))
    assert.strictEqual(answer.status, 400)
    page(await c.get("/salesmen"))
  })
})

describe("a request", () => {
  it("[C-13][CODE-09] to a path outside the catalogue is 404", async () => {
    const c = await newCompany()
    for (const path of [
      "/nosuchthing",
      "/nosuchthing/1",
      "/salesmen/1/nosuchthing",
      "/salesmen/1/batch/2",
      "/",
      "/__proto__",
      "/constructor",
      "/toString",
      "/__proto__/1",
      "/%00",
      "/salesman",
      "/salesmen%2F1"
    ]) {
      for (const method of ["GET", "POST"]) {
        const answer = await c.send({ method, path, ...(method === "POST" ? { body: {} } : {}) })
        refused(answer, "not_found")
      }
    }
  })

  it("[GEN-07][VER-01][C-13] outside the base address is 404", async () => {
    const c = await newCompany()
    for (const path of ["/", "/salesmen", "/!/api/v1/salesmen", "/!/api/v3/salesmen", "/api/v2/salesmen"]) {
      const answer = await c.send({ method: "GET", path, absolute: true })
      refused(answer, "not_found")
    }
  })

  it("[AUTH-12] with a very long token is 401 unauthorized", async () => {
    refused(
      await send({ method: "GET", path: "/salesmen", headers: { authorization: `Bearer ${"x".repeat(4000)}` } }),
      "unauthorized"
    )
  })
})

keptPromises()
