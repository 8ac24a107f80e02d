/** Create, update and cancel: the rules of every resource, and malformed requests. */
import { assert, describe } from "vitest"
import {
  advance,
  challenge,
  etagOf,
  fresh,
  idOf,
  ids,
  it,
  keptPromises,
  micros,
  newCompany,
  page,
  query,
  refused,
  refusedEntries,
  row,
  send,
  succeeded,
  useServer,
  type Company
} from "./harness.ts"
import { CHANGE, dated, resource, RESOURCES, shownRecord } from "./resources.ts"
import { makeSalesman } from "./world.ts"

useServer()

describe("a create", () => {
  for (const each of RESOURCES) {
    const { path, body } = each
    it(`[EP-06][A-13][FIELD-12][F-04][${each.facts.row}] returns 201 with the bare record and its ETag, also with a used externalid: POST /${path}`, async (c) => {
      const externalid = `${fresh()} <Größe>\t\n"'\\ 数\u{1F600}  `
      for (const _ of [1, 2]) {
        const answer = await c.post(`/${path}`, { ...(await body(c)), externalid })
        const record = succeeded(answer, 201)
        assert.strictEqual(record["externalid"], externalid)
        if (each.ops.includes("R")) etagOf(answer)
        const shown = await shownRecord(c, each, idOf(record))
        for (const [name, value] of Object.entries(shown)) assert.deepEqual(record[name], value, name)
      }
      assert.lengthOf(await c.list(`/${path}${query({ externalid })}`), 2)
    })

    it(`[FIELD-15][F-14][D-12] ignores read-only fields: POST /${path}`, async (c) => {
      const readOnly: Record<string, unknown> = { id: 999_999_999 }
      for (const { name, kind, sample, readOnly: ignored } of each.fields) {
        if (ignored) readOnly[name] = kind === "int" ? 999_999 : sample
      }
      const record = succeeded(await c.post(`/${path}`, { ...(await body(c)), ...readOnly }), 201)
      for (const [name, value] of Object.entries(readOnly)) assert.notStrictEqual(record[name], value, name)
    })

    it(`[CODE-05][D-03] rejects an unknown field before any other check, and creates nothing: POST /${path}`, async (c) => {
      const payload = await body(c)
      const before = (await c.list(`/${path}?cancel=any&limit=250`)).length
      const error = refused(await c.post(`/${path}`, { ...payload, bogus: 1 }), "unknown_parameter", "bogus")
      assert.include(String(error["message"]), "externalid")
      refused(await c.post(`/${path}`, { bogus: 1 }), "unknown_parameter", "bogus")
      refused(await c.post(`/${path}`, { ...payload, constructor: 1 }), "unknown_parameter", "constructor")
      refused(
        await c.send({ method: "POST", path: `/${path}`, raw: `{"__proto__":{"x":1}}` }),
        "unknown_parameter",
        "__proto__"
      )
      if (path !== "invoiceterms") {
        assert.strictEqual((await c.list(`/${path}?cancel=any&limit=250`)).length - before, 0)
      }
    })
  }

  it("[F-12][RMARETURNS-19][ARDAILYCLOSES-20] accepts entrydate for returns and daily closes, by default now, and in no write shape", async (c) => {
    const entrydate = "2020-05-06T07:08:09Z"
    for (const path of ["rmareturns", "ardailycloses"]) {
      assert.strictEqual(micros((await c.create(path, { entrydate }))["entrydate"]), micros(entrydate))
      assert.isTrue(micros((await c.create(path, {}))["entrydate"]) > micros("2026-01-01T00:00:00Z"))
    }
    for (const path of ["shipments", "payments", "orderdeposits", "invoicelines"])
      await c.refuses(`/${path}`, { ...(await resource(path).body(c)), entrydate }, "unknown_parameter", "entrydate")
  })
})

it("a field of a body [ERR-06][CODE-03][D-02] is named with each other problem in one invalid_request", async (c) => {
  const answer = await c.post("/salesmen", { salesman: 1, commissionrate: "1.2345", email1: "x".repeat(51) })
  refusedEntries(
    answer,
    "name:required",
    "salesman:invalid_type",
    "commissionrate:invalid_precision",
    "email1:too_long"
  )
  const shipment = {
    orderid: "1",
    lines: [
      { orderlineid: 1, quantity: 1 },
      { orderlineid: 2, quantity: "1.1234567" }
    ]
  }
  refusedEntries(
    await c.post("/shipments", shipment),
    "orderid:invalid_type",
    "lines[0].quantity:invalid_type",
    "lines[1].quantity:invalid_precision"
  )
  const rma = await c.post("/rmareturns", { total_credit: 1, return_date: 5 })
  refusedEntries(rma, "total_credit:invalid_type", "return_date:invalid_type")
})

describe("an update", () => {
  for (const each of RESOURCES) {
    const { path, ops, make } = each
    if (!ops.includes("U")) continue
    it(`[EP-09][A-13] changes the given fields and nothing else: PATCH /${path}/{id}`, async (c) => {
      const id = idOf(await make(c))
      const before = await c.read(path, id)
      const answer = await c.patch(`/${path}/${id}`, CHANGE)
      const after = succeeded(answer)
      etagOf(answer)
      assert.deepInclude(after, CHANGE)
      for (const [name, value] of Object.entries(before)) {
        if (name in CHANGE || name === "lastchangedate") continue
        assert.deepEqual(after[name], value, name)
      }
      assert.deepEqual(await c.read(path, id), after)
    })

    it(`[D-10][D-12][FIELD-15] without fields, or with read-only ones, is 200 and no change: PATCH /${path}/{id}`, async (c) => {
      const id = idOf(await make(c))
      const before = await c.get(`/${path}/${id}`)
      await advance(2)
      for (const nothing of [
        {},
        { id: 5 },
        { id: id + 1 },
        ...(dated(each) ? [{ lastchangedate: "2001-01-01T00:00:00Z" }] : [])
      ]) {
        const answer = await c.patch(`/${path}/${id}`, nothing)
        assert.deepEqual(succeeded(answer), row(before.json))
        assert.strictEqual(etagOf(answer), etagOf(before))
      }
    })

    it(`[CODE-05][D-01][D-11] has the checks of a create, and clears a field with null: PATCH /${path}/{id}`, async (c) => {
      const id = idOf(await make(c))
      const url = `/${path}/${id}`
      const before = succeeded(await c.patch(url, { externalid: "there" }))
      refused(await c.patch(url, { ...CHANGE, bogus: 1 }), "unknown_parameter", "bogus")
      refusedEntries(await c.patch(url, { externalid: "x".repeat(101) }), "externalid:too_long")
      refused(await c.patch(url, { externalid: 5 }), "invalid_type", "externalid")
      assert.deepEqual(await c.read(path, id), before)
      assert.isNull(succeeded(await c.patch(url, { externalid: null }))["externalid"])
    })
  }
})

describe("a cancellation", () => {
  for (const each of RESOURCES) {
    const { path, ops, make } = each
    if (!ops.includes("D")) continue
    const isDocument = ["shipments", "payments", "rmareturns"].includes(path)
    it(`[EP-10][STATE-12][GEN-09][FIELD-13][B-01][D-13] flags and hides the record once, which stays readable; a later PATCH is ${isDocument ? "refused" : "allowed"}: DELETE /${path}/{id}`, async (c) => {
      const id = idOf(await make(c))
      const answer = await c.del(`/${path}/${id}`)
      const cancelled = succeeded(answer)
      etagOf(answer)
      assert.strictEqual(cancelled["id"], id)
      assert.strictEqual(cancelled["cancel"], true)
      assert.notInclude(ids(await c.list(`/${path}?limit=250`)), id)
      assert.include(ids(await c.list(`/${path}?limit=250&cancel=any`)), id)
      await advance(2)
      assert.deepEqual(succeeded(await c.del(`/${path}/${id}`)), cancelled)
      assert.deepEqual(await c.read(path, id), cancelled)
      const later = await c.patch(`/${path}/${id}`, CHANGE)
      if (isDocument) {
        refused(later, "rule_violation")
        assert.deepEqual(await c.read(path, id), cancelled)
      } else assert.deepInclude(succeeded(later), { ...CHANGE, cancel: true })
    })
  }
})

it("a custom field [F-17][A-12][FIELD-16][RES-03] is written if defined, shown if included, and unknown_value otherwise", async (c) => {
  await c.put("customfields", [{ name: "shoesize", resource: "salesmen" }])
  const record = await makeSalesman(c, { custom_fields: { shoesize: "44" } })
  assert.notProperty(await c.read("salesmen", idOf(record)), "custom_fields")
  const shown = succeeded(await c.get(`/salesmen/${idOf(record)}?include=custom_fields`))
  assert.deepInclude(row(shown["custom_fields"]), { shoesize: "44" })
  succeeded(await c.patch(`/salesmen/${idOf(record)}`, { custom_fields: { shoesize: "45" } }))
  const [listed] = await c.list("/salesmen?include=custom_fields")
  assert.deepInclude(row(row(listed)["custom_fields"]), { shoesize: "45" })
  refused(await c.post("/salesmen", { name: fresh("s"), custom_fields: { hat: "L" } }), "unknown_value")
  refused(await c.post("/invoiceterms", { verbal: fresh("t"), custom_fields: { shoesize: "1" } }), "unknown_value")
})

/** The verbs of a single record. */
const itemVerbs = (ops: readonly string[]): string[] =>
  Object.entries({ R: "GET", U: "PATCH", D: "DELETE" }).flatMap(([op, verb]) => (ops.includes(op) ? [verb] : []))

it("[EP-08][EP-09][EP-10][CODE-09][D-06][I-14][SHIPMENTS-20][PAYMENTS-53][X-09] an absent id is 404 for every verb", async (c) => {
  const absent = ["999999999", "abc", "0", "-1", "1.5", "1e3", "99999999999999999999999", "%20", "null"]
  for (const { path, ops } of RESOURCES) {
    for (const verb of itemVerbs(ops)) {
      for (const id of absent) refused(await c.probe(verb, `/${path}/${id}`), "not_found")
    }
  }
})

describe("a verb", () => {
  const verbs = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"]
  for (const { path, ops, facts } of RESOURCES) {
    it(`[CODE-10][I-01][EP-23][D-16][EP-04][X-04][X-06][INVOICELINES-58][ORDERDEPOSITS-28][ARDAILYCLOSES-25][${facts.ops}] that the resource does not offer is 405 with Allow: ${path}`, async (c) => {
      for (const [url, good] of [
        [`/${path}`, ["GET", "POST"]],
        [`/${path}/1`, itemVerbs(ops)]
      ] as ReadonlyArray<readonly [string, string[]]>) {
        for (const method of verbs) {
          if (good.includes(method)) continue
          const answer = await c.probe(method, url)
          assert.strictEqual(answer.status, 405, `${method} ${url}`)
          assert.includeMembers(String(answer.headers.allow).split(/, */), good, `Allow of ${method} ${url}`)
          if (method === "HEAD") assert.strictEqual(answer.text, "")
          else refused(answer, "method_not_allowed")
        }
      }
    })
  }

  it("[D-16][EP-04] without a token is 401, whatever it is", async () => {
    for (const method of verbs) {
      const anonymous = await send({ method, path: "/salesmen" })
      assert.strictEqual(anonymous.status, 401, method)
      assert.strictEqual(challenge(anonymous).params["error"], "invalid_token")
    }
  })
})

const raw = (
  c: Company,
  body: string | Buffer,
  path = "/salesmen",
  method = "POST",
  headers: Record<string, string> = {}
) => c.send({ method, path, raw: body, headers })

describe("a request body", () => {
  it("[CODE-02][D-03] is 400 invalid_json if it is not JSON, and 400 if it is empty", async (c) => {
    for (const body of ["", " "]) assert.strictEqual((await raw(c, body)).status, 400)
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

  for (const { path, ops, make } of RESOURCES) {
    it(`[D-07][CODE-03] is 400 invalid_request if it is no object: ${path}`, async (c) => {
      for (const body of ["[]", '"x"', "1", "null", "true", "[{}]"])
        refused(await raw(c, body, `/${path}`), "invalid_request")
      if (!ops.includes("U")) return
      const id = idOf(await make(c))
      for (const body of ["[]", '"x"', "1", "null"])
        refused(await raw(c, body, `/${path}/${id}`, "PATCH"), "invalid_request")
    })
  }

  it("[D-08] is accepted under any content type if it is JSON, and invalid_json otherwise", async (c) => {
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

  it("[CODE-05] has unknown fields if their names are special in JavaScript", async (c) => {
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

  it("[CODE-05] with a field or parameter without a name names no field", async (c) => {
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

  it("[D-01] with a string of a million characters is rejected as too long only", async (c) => {
    refusedEntries(await c.post("/salesmen", { name: "x".repeat(1_000_000) }), "name:too_long")
  })

  it("[CODE-04][GEN-01] with nesting a hundred thousand levels deep or invalid UTF-8 does not stop the server", async (c) => {
    const deep = `{"name":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
    const invalid = Buffer.from([0x7b, 0x22, 0x6e, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0x22, 0x7d])
    for (const body of [deep, invalid]) assert.strictEqual((await raw(c, body)).status, 400)
    refused(await raw(c, "[".repeat(100_000)), "invalid_json")
    page(await c.get("/salesmen"))
  })
})

describe("a request", () => {
  it("[C-06][C-13][CODE-09][AUTH-08] to a path outside the catalogue is 404, also to one for tokens", async (c) => {
    for (const path of [
      "",
      "/nosuchthing",
      "/nosuchthing/1",
      "/Customers",
      "/customers/1/nosuchthing",
      "/vendortypes",
      "/salesmen/1/nosuchthing",
      "/salesmen/1/batch/2",
      "/",
      "/__proto__",
      "/constructor",
      "/toString",
      "/__proto__/1",
      "/%00",
      "/salesman",
      "/salesmen%2F1",
      "/tokens",
      "/token",
      "/accesstokens",
      "/oauth/token"
    ]) {
      for (const method of ["GET", "POST"]) refused(await c.probe(method, path), "not_found")
    }
  })

  it("[GEN-07][VER-01][C-13] outside the base address is 404", async (c) => {
    for (const path of ["/", "/salesmen", "/!/api/v1/salesmen", "/!/api/v3/salesmen", "/api/v2/salesmen"]) {
      const answer = await c.send({ method: "GET", path, absolute: true })
      refused(answer, "not_found")
    }
  })
})

keptPromises()
