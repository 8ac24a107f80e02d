/** Create, update and cancel: the rules of every resource, and the content of a body. */
import { assert, describe, it } from "vitest"
import {
  advance,
  allowed,
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
import { dated, FIELDS, resource, RESOURCES, shownRecord } from "./resources.ts"
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
      if (dated(path)) readOnly["lastchangedate"] = "2001-01-01T00:00:00Z"
      if (path === "payments" || path === "invoicelines") readOnly["old_id"] = "mine"
      if (path === "payments") {
        readOnly["cancel_userid"] = 4
        readOnly["bankstatement_cleardate"] = "2026-01-01"
        readOnly["datereceivedandvoucherid"] = 3
        readOnly["pendingarachbankrecdatereceived"] = "x"
      }
      if (path === "orderdeposits")
        Object.assign(readOnly, {
          voucherid: 999_999,
          last4ofcard: "9999",
          bankdepositid: 5,
          cctransactionid: 5,
          ccterminalid: 5
        })
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

    it(`[FIELD-12][LIM-12][D-01] accepts an externalid of 100 characters: POST /${path}`, async () => {
      const c = await newCompany()
      const payload = await body(c)
      refusedEntries(await c.post(`/${path}`, { ...payload, externalid: "x".repeat(101) }), "externalid:too_long")
      const record = succeeded(await c.post(`/${path}`, { ...payload, externalid: "é".repeat(100) }), 201)
      assert.strictEqual(record["externalid"], "é".repeat(100))
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

    it(`[CODE-04][D-02] rejects an externalid of a wrong type: POST /${path}`, async () => {
      const c = await newCompany()
      const payload = await body(c)
      for (const externalid of [1, true, {}, ["x"]]) {
        refused(await c.post(`/${path}`, { ...payload, externalid }), "invalid_type", "externalid")
      }
    })
  }

  it("[EP-12][F-13] requires the keys of lookups, and nothing else", async () => {
    const c = await newCompany()
    const error = refusedEntries(await c.post("/salesmen", {}), "name:required")
    assert.strictEqual(error["code"], "invalid_request")
    refusedEntries(await c.post("/invoiceterms", { netduedays: 3 }), "verbal:required")
    refusedEntries(await c.post("/salesmen", { name: null }), "name:required")
    succeeded(await c.post("/carrierservices", {}), 201)
    succeeded(await c.post("/rmareturns", {}), 201)
  })

  it("[F-13] sets absent fields to false, 0 or null", async () => {
    const c = await newCompany()
    const record = await makeSalesman(c)
    for (const name of ["salesman", "servicerep", "cancel"]) assert.strictEqual(record[name], false, name)
    for (const name of ["email1", "phone1", "externalid"]) assert.isNull(record[name], name)
  })

  it("[A-14][FIELD-08][FIELD-09] returns a full record of each object-shaped resource as sent", async () => {
    const c = await newCompany()
    const salesman = {
      name: "Ann",
      salesman: true,
      servicerep: true,
      commissionrate: "12.345",
      email1: "a@b.example",
      phone1: "+1 5",
      externalid: "e"
    }
    assert.deepInclude(await c.create("salesmen", salesman), salesman)
    const term = {
      verbal: fresh("2/10 net 30"),
      netduedays: 30,
      discountpercent: "2.000",
      discountdays: 10,
      ar: true,
      ap: false,
      externalid: "e"
    }
    assert.deepInclude(await c.create("invoiceterms", term), term)
    const service = {
      description: "Ground",
      abbreviation: "GD",
      sortorder: 3,
      not_on_b2b: 1,
      onquote: 0,
      box1_charge: "1.23456",
      box_addl: "0.00001",
      require_shippernum: 1,
      showvalue: 0,
      code: "GND",
      methodmarkupflat: "-2.5000",
      saturdaydelivery: "Y",
      allowonpointofsaleorders: true,
      externalid: "e"
    }
    assert.deepInclude(await c.create("carrierservices", service), service)
    const rma = {
      return_date: "2026-02-03",
      taxid: 5,
      taxid2: 6,
      taxid3: 7,
      taxcredit: "1.00001",
      taxcredit2: "2.00000",
      taxcredit3: "3.00000",
      shipping_credit: "4.00000",
      restock_fee: "5.00000",
      total_credit: "15.00001",
      externalid: "e"
    }
    assert.deepInclude(await c.create("rmareturns", rma), rma)
  })

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
  const sample: ReadonlyArray<readonly [string, Record<string, unknown>]> = [
    ["salesmen", { name: "x" }],
    ["invoiceterms", { verbal: "x" }],
    ["carrierservices", {}],
    ["rmareturns", {}]
  ]
  const lengths: Readonly<Record<string, number>> = {
    "salesmen.name": 50,
    "salesmen.email1": 50,
    "salesmen.phone1": 20,
    "invoiceterms.verbal": 30,
    "carrierservices.description": 50,
    "carrierservices.abbreviation": 50,
    "carrierservices.code": 10,
    "carrierservices.saturdaydelivery": 1
  }
  for (const [path, base] of sample) {
    for (const field of FIELDS[path] ?? []) {
      if (field.maintained === true || field.name === "entrydate" || field.name === "cancel") continue
      const { fact, name, kind } = field
      const wrong: unknown[] =
        kind === "int"
          ? ["7", 1.5, true, {}, [1]]
          : kind === "bool"
            ? [1, 0, "true", {}, "false"]
            : kind === "string" || kind === "day"
              ? [1, true, {}, ["x"]]
              : [1, 1.5, true, {}, ["1"]]
      it(`[${fact}][CODE-04][D-02] rejects a value of another type: ${path}.${name}`, async () => {
        const c = await newCompany()
        for (const value of wrong) {
          refused(await c.post(`/${path}`, { ...base, [name]: value }), "invalid_type", name)
        }
      })

      const length = lengths[`${path}.${name}`]
      if (length !== undefined) {
        it(`[${fact}][FIELD-10][LIM-12][D-01] accepts ${length} characters: ${path}.${name}`, async () => {
          const c = await newCompany()
          const tag = length > 10 ? fresh("") : ""
          const error = refusedEntries(
            await c.post(`/${path}`, { ...base, [name]: "ä".repeat(length + 1) }),
            `${name}:too_long`
          )
          assert.strictEqual(error["field"], name)
          const value = tag + "ä".repeat(length - tag.length)
          assert.strictEqual((await c.create(path, { ...base, [name]: value }))[name], value)
        })
      }
    }
  }

  it("[FIELD-10][D-01] that is the code half of a reference has a maximum length too", async () => {
    const c = await newCompany()
    refusedEntries(await c.post("/rmareturns", { invoice: "x".repeat(31) }), "invoice:too_long")
    refusedEntries(await c.post("/rmareturns", { voucher: "x".repeat(51) }), "voucher:too_long")
    refusedEntries(await c.post("/carrierservices", { carrier: "x".repeat(101) }), "carrier:too_long")
  })

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

  it("[FIELD-11][F-01] of a date accepts both forms and truncates to the UTC day", async () => {
    const c = await newCompany()
    const forms: ReadonlyArray<readonly [string, string]> = [
      ["2026-02-28", "2026-02-28"],
      ["2024-02-29", "2024-02-29"],
      ["2026-02-28T23:59:59Z", "2026-02-28"],
      ["2026-02-28T00:00:00.000001Z", "2026-02-28"]
    ]
    for (const [sent, shown] of forms) {
      assert.strictEqual((await makeReturn(c, { return_date: sent }))["return_date"], shown, sent)
    }
  })

  it("[FIELD-11] of a date rejects an invalid date", async () => {
    const c = await newCompany()
    for (const value of [
      "yesterday",

      "2026-02-30",
      "2025-02-29",
      "2026-13-01",
      "2026-1-1",
      "01/02/2026",
      "20260101",
      "2026-01-01 10:00"
    ]) {
      const answer = await c.post("/rmareturns", { return_date: value })
      assert.strictEqual(answer.status, 400, value)
      const error = row(row(answer.json)["error"])
      assert.strictEqual(error["field"], "return_date", value)
    }
  })
})

describe("an update", () => {
  for (const each of RESOURCES) {
    const { path, ops, make, change } = each
    if (!ops.includes("U")) continue
    it(`[EP-09][A-13] changes the given fields and nothing else: PATCH /${path}/{id}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      const before = await c.read(path, id)
      const answer = await c.patch(`/${path}/${id}`, change)
      const after = succeeded(answer)
      etagOf(answer)
      assert.deepInclude(after, change)
      for (const [name, value] of Object.entries(before)) {
        if (name in change || name === "lastchangedate") continue
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
        ...(dated(path) ? [{ lastchangedate: "2001-01-01T00:00:00Z" }] : [])
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
      refused(await c.patch(`/${path}/${id}`, { ...change, bogus: 1 }), "unknown_parameter", "bogus")
      assert.deepEqual(await c.read(path, id), before)
    })

    it(`[EP-09] answers 404 to an absent id: PATCH /${path}/{id}`, async () => {
      const c = await newCompany()
      for (const id of ["999999999", "abc", "0", "-1"]) refused(await c.patch(`/${path}/${id}`, change), "not_found")
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
    const { path, ops, make, change } = each
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
      const answer = await c.patch(`/${path}/${id}`, change)
      if (isDocument) {
        refused(answer, "rule_violation")
        assert.deepEqual(await c.read(path, id), cancelled)
      } else assert.deepInclude(succeeded(answer), { ...change, cancel: true })
    })

    if (path === "shipments" || path === "payments") continue
    it(`[D-14] is not undone by PATCH with cancel false: ${path}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      succeeded(await c.del(`/${path}/${id}`))
      refused(await c.patch(`/${path}/${id}`, { cancel: false }), "rule_violation")
      assert.strictEqual((await c.read(path, id))["cancel"], true)
    })

    it(`[F-11][SCOPE-04][X-28] by PATCH with cancel true requires the cancel scope: ${path}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      const writer = await c.with(`${each.area}:write`)
      const answer = await writer.patch(`/${path}/${id}`, { cancel: true })
      refused(answer, "insufficient_scope")
      assert.strictEqual(challenge(answer).params["scope"], `${each.area}:cancel`)
      assert.strictEqual((await c.read(path, id))["cancel"], false)
      assert.strictEqual(succeeded(await writer.patch(`/${path}/${id}`, { cancel: false }))["cancel"], false)
      const canceller = await c.with(`${each.area}:write`, `${each.area}:cancel`)
      assert.strictEqual(succeeded(await canceller.patch(`/${path}/${id}`, { cancel: true }))["cancel"], true)
      assert.strictEqual((await c.read(path, id))["cancel"], true)
    })

    it(`[F-11] by POST with cancel true requires the cancel scope too: POST /${path}`, async () => {
      const c = await newCompany()
      const writer = await c.with(`${each.area}:write`)
      const payload = await each.body(c)
      refused(await writer.post(`/${path}`, { ...payload, cancel: true }), "insufficient_scope")
      assert.strictEqual(succeeded(await writer.post(`/${path}`, { ...payload, cancel: false }), 201)["cancel"], false)
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
    it(`[CODE-10][I-01][EP-23][D-16][EP-04][${facts.ops}] that the resource does not offer is 405 with Allow: ${path}`, async () => {
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

  it("[INVOICELINES-58][ORDERDEPOSITS-28][CARRIERSERVICES-01][X-04][X-06][I-01] to retrieve, change or cancel invoice lines, deposits and carrier services is rejected", async () => {
    const c = await newCompany()
    for (const path of ["invoicelines", "orderdeposits", "carrierservices"]) {
      const id = idOf(await resource(path).make(c))
      for (const answer of [
        await c.get(`/${path}/${id}`),
        await c.patch(`/${path}/${id}`, {}),
        await c.del(`/${path}/${id}`)
      ]) {
        const allow = allowed(answer)
        assert.notInclude(allow, "PATCH")
        assert.notInclude(allow, "DELETE")
      }
      await shownRecord(c, resource(path), id)
    }
  })

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
