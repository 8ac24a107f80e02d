/** Create, update and cancel: the rules of every resource, and the content of a body. */
import { assert, describe, it } from "vitest"
import {
  advance,
  challenge,
  entries,
  etagOf,
  fresh,
  idOf,
  keptPromises,
  micros,
  newCompany,
  plusDays,
  refused,
  refusedEntries,
  row,
  send,
  succeeded,
  today,
  useServer,
  type Answer
} from "./harness.ts"
import { CHANGE, dated, resource, RESOURCES, shownRecord } from "./resources.ts"
import { makeReturn, makeSalesman, makeTerm } from "./world.ts"

useServer()

describe("a create", () => {
  for (const each of RESOURCES) {
    const { path, body } = each
    it(`[EP-06][A-13][${each.facts.row}] returns 201 with the bare record and its ETag: POST /${path}`, async () => {
      const c = await newCompany()
      const externalid = fresh("ext")
      const answer = await c.post(`/${path}`, { ...(await body(c)), externalid })
      const record = succeeded(answer, 201)
      assert.strictEqual(record["externalid"], externalid)
      if (each.ops.includes("R")) etagOf(answer)
      const shown = await shownRecord(c, each, idOf(record))
      for (const [name, value] of Object.entries(shown)) assert.deepEqual(record[name], value, name)
    })

    it(`[FIELD-15][F-14][D-12] ignores read-only fields: POST /${path}`, async () => {
      const c = await newCompany()
      const readOnly: Record<string, unknown> = { id: 999_999_999 }
      for (const { name, kind, sample, readOnly: ignored } of each.fields) {
        if (ignored) readOnly[name] = kind === "int" ? 999_999 : sample
      }
      const record = succeeded(await c.post(`/${path}`, { ...(await body(c)), ...readOnly }), 201)
      for (const [name, value] of Object.entries(readOnly)) assert.notStrictEqual(record[name], value, name)
    })

    it(`[CODE-05][D-03] rejects an unknown field before any other check, and creates nothing: POST /${path}`, async () => {
      const c = await newCompany()
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
        const grown = (await c.list(`/${path}?cancel=any&limit=250`)).length - before
        assert.strictEqual(grown, 0)
      }
    })

    it(`[FIELD-12] stores externalid verbatim: POST /${path}`, async () => {
      const c = await newCompany()
      const externalid = " <Größe>\t\n\"'\\ 数\u{1F600}  "
      const record = succeeded(await c.post(`/${path}`, { ...(await body(c)), externalid }), 201)
      assert.strictEqual(record["externalid"], externalid)
      assert.strictEqual((await shownRecord(c, each, idOf(record)))["externalid"], externalid)
    })

    it(`[F-04] accepts a used externalid: POST /${path}`, async () => {
      const c = await newCompany()
      const externalid = fresh("twice")
      succeeded(await c.post(`/${path}`, { ...(await body(c)), externalid }), 201)
      succeeded(await c.post(`/${path}`, { ...(await body(c)), externalid }), 201)
      assert.lengthOf(await c.list(`/${path}?externalid=${externalid}`), 2)
    })
  }

  it("[F-12] accepts entrydate for rmareturns, and not in the other write shapes", async () => {
    const c = await newCompany()
    const record = await makeReturn(c, { entrydate: "2020-05-06T07:08:09Z" })
    assert.strictEqual(micros(record["entrydate"]), micros("2020-05-06T07:08:09Z"))
    for (const path of ["shipments", "payments", "orderdeposits", "invoicelines"]) {
      const payload = await resource(path).body(c)
      refused(
        await c.post(`/${path}`, { ...payload, entrydate: "2020-05-06T07:08:09Z" }),
        "unknown_parameter",
        "entrydate"
      )
    }
  })
})

describe("a field of a body", () => {
  it("[ERR-06][CODE-03][D-02] is named with each other problem in one invalid_request", async () => {
    const c = await newCompany()
    const answer = await c.post("/salesmen", { salesman: 1, commissionrate: "1.2345", email1: "x".repeat(51) })
    refusedEntries(
      answer,
      "name:required",
      "salesman:invalid_type",
      "commissionrate:invalid_precision",
      "email1:too_long"
    )
    const rma = await c.post("/rmareturns", { total_credit: 1, return_date: 5 })
    refusedEntries(rma, "total_credit:invalid_type", "return_date:invalid_type")
  })

  it("[ERR-06] in a nested line is named with its line", async () => {
    const c = await newCompany()
    const answer = await c.post("/shipments", {
      orderid: "1",
      lines: [
        { orderlineid: 1, quantity: 1 },
        { orderlineid: 2, quantity: "1.1234567" }
      ]
    })
    refusedEntries(
      answer,
      "orderid:invalid_type",
      "lines[0].quantity:invalid_type",
      "lines[1].quantity:invalid_precision"
    )
  })
})

describe("an update", () => {
  for (const each of RESOURCES) {
    const { path, ops, make } = each
    if (!ops.includes("U")) continue
    it(`[EP-09][A-13] changes the given fields and nothing else: PATCH /${path}/{id}`, async () => {
      const c = await newCompany()
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

    it(`[D-10][D-12][FIELD-15] without fields, or with read-only ones, is 200 and no change: PATCH /${path}/{id}`, async () => {
      const c = await newCompany()
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

    it(`[CODE-05] rejects an unknown field and changes nothing: PATCH /${path}/{id}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      const before = await c.read(path, id)
      refused(await c.patch(`/${path}/${id}`, { ...CHANGE, bogus: 1 }), "unknown_parameter", "bogus")
      assert.deepEqual(await c.read(path, id), before)
    })

    it(`[EP-09] answers 404 to an absent id: PATCH /${path}/{id}`, async () => {
      const c = await newCompany()
      for (const id of ["999999999", "abc", "0", "-1"]) refused(await c.patch(`/${path}/${id}`, CHANGE), "not_found")
    })

    it(`[D-11] clears a field with null: PATCH /${path}/{id}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      succeeded(await c.patch(`/${path}/${id}`, { externalid: "there" }))
      assert.isNull(succeeded(await c.patch(`/${path}/${id}`, { externalid: null }))["externalid"])
    })

    it(`[D-01] has the checks of a create: PATCH /${path}/{id}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      refusedEntries(await c.patch(`/${path}/${id}`, { externalid: "x".repeat(101) }), "externalid:too_long")
      refused(await c.patch(`/${path}/${id}`, { externalid: 5 }), "invalid_type", "externalid")
    })
  }

  it("[D-11][F-13] rejects null for a key as required", async () => {
    const c = await newCompany()
    const id = idOf(await makeSalesman(c))
    refusedEntries(await c.patch(`/salesmen/${id}`, { name: null }), "name:required")
    const term = idOf(await makeTerm(c))
    refusedEntries(await c.patch(`/invoiceterms/${term}`, { verbal: null }), "verbal:required")
  })
})

describe("a cancellation", () => {
  for (const each of RESOURCES) {
    const { path, ops, make } = each
    if (!ops.includes("D")) continue
    const isDocument = ["shipments", "payments", "rmareturns"].includes(path)
    it(`[EP-10][STATE-12][GEN-09][FIELD-13][B-01] flags and hides the record, which stays readable: DELETE /${path}/{id}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      const answer = await c.del(`/${path}/${id}`)
      const cancelled = succeeded(answer)
      etagOf(answer)
      assert.strictEqual(cancelled["id"], id)
      assert.strictEqual(cancelled["cancel"], true)
      assert.deepEqual(await c.read(path, id), cancelled)
      const listed = (await c.list(`/${path}?limit=250`)).map(idOf)
      assert.notInclude(listed, id)
      assert.include((await c.list(`/${path}?limit=250&cancel=any`)).map(idOf), id)
    })

    it(`[D-13] returns 200 with the unchanged record when repeated: DELETE /${path}/{id}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      const first = succeeded(await c.del(`/${path}/${id}`))
      await advance(2)
      assert.deepEqual(succeeded(await c.del(`/${path}/${id}`)), first)
    })

    it(`[EP-10][I-14] answers 404 to an absent id: DELETE /${path}/{id}`, async () => {
      const c = await newCompany()
      for (const id of ["999999999", "abc", "-1"]) refused(await c.del(`/${path}/${id}`), "not_found")
    })

    it(`[D-13] makes a later PATCH ${isDocument ? "refused" : "allowed"}: ${path}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      const cancelled = succeeded(await c.del(`/${path}/${id}`))
      const answer = await c.patch(`/${path}/${id}`, CHANGE)
      if (isDocument) {
        refused(answer, "rule_violation")
        assert.deepEqual(await c.read(path, id), cancelled)
      } else assert.deepInclude(succeeded(answer), { ...CHANGE, cancel: true })
    })
  }
})

describe("a custom field", () => {
  it("[F-17][A-12][FIELD-16][RES-03] is written if defined, shown if included, and unknown_value otherwise", async () => {
    const c = await newCompany()
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
})

describe("a verb", () => {
  const verbs = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"]
  for (const { path, ops, facts } of RESOURCES) {
    it(`[CODE-10][I-01][EP-23][D-16][EP-04][X-04][X-06][INVOICELINES-58][ORDERDEPOSITS-28][ARDAILYCLOSES-25][${facts.ops}] that the resource does not offer is 405 with Allow: ${path}`, async () => {
      const c = await newCompany()
      const collection = ["GET", "POST"]
      const item = [
        ...(ops.includes("R") ? ["GET"] : []),
        ...(ops.includes("U") ? ["PATCH"] : []),
        ...(ops.includes("D") ? ["DELETE"] : [])
      ]
      for (const [url, good] of [
        [`/${path}`, collection],
        [`/${path}/1`, item]
      ] as const) {
        for (const method of verbs) {
          if (good.includes(method)) continue
          const answer: Answer = await c.send({
            method,
            path: url,
            ...(["POST", "PATCH", "PUT"].includes(method) ? { body: {} } : {})
          })
          assert.strictEqual(answer.status, 405, `${method} ${url}`)
          const allow = String(answer.headers.allow)
            .split(",")
            .map((verb) => verb.trim())
          for (const verb of good) assert.include(allow, verb, `Allow of ${method} ${url}`)
          if (method === "HEAD") assert.strictEqual(answer.text, "")
          else refused(answer, "method_not_allowed")
        }
      }
    })
  }

  it("[D-16][EP-04] HEAD or OPTIONS is 405 with Allow, and 401 without a token", async () => {
    const c = await newCompany()
    const id = idOf(await makeSalesman(c))
    for (const method of ["HEAD", "OPTIONS", "PUT"]) {
      const answer = await c.send({ method, path: `/salesmen/${id}` })
      assert.strictEqual(answer.status, 405)
      assert.include(String(answer.headers.allow), "PATCH")
      const anonymous = await send({ method, path: "/salesmen" })
      assert.strictEqual(anonymous.status, 401, method)
      assert.strictEqual(challenge(anonymous).params["error"], "invalid_token")
    }
  })
})

describe("a date of a document", () => {
  it("[I-06][WRITE-10][I-08] is the server's today by default", async () => {
    const c = await newCompany()
    const before = await today()
    const payment = await resource("payments").make(c)
    const shipment = await resource("shipments").make(c)
    const after = await today()
    assert.include([before, after], payment["datereceived"])
    assert.include([before, after], shipment["shipdate"])
    assert.notStrictEqual(payment["datereceived"], plusDays(before, -1))
    assert.isEmpty(entries({}))
  })
})

keptPromises()
