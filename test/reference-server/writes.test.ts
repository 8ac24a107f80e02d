import { assert, describe, it } from "vitest"
import { codeOf, dataOf, errorOf, order, server } from "./support.ts"
import type { Json } from "./support.ts"

describe("request bodies", () => {
  it("are rejected with the code of one problem, or with a list of several", () => {
    const { call } = server()
    const refusal = (body: unknown, path = "/items") => {
      const response = call("POST", path, body)
      return [response.status, codeOf(response), errorOf(response)["field"] ?? null]
    }
    assert.deepStrictEqual(refusal("{"), [400, "invalid_json", null])
    assert.deepStrictEqual(refusal(""), [400, "invalid_json", null])
    assert.deepStrictEqual(refusal([]), [400, "invalid_request", null])
    assert.deepStrictEqual(refusal('"text"'), [400, "invalid_request", null])
    assert.deepStrictEqual(refusal({ sku: "A", colour: 1 }), [400, "unknown_parameter", "colour"])
    assert.deepStrictEqual(refusal({}), [400, "invalid_request", "sku"])
    assert.deepStrictEqual(refusal({ sku: null }), [400, "invalid_request", "sku"])
    assert.deepStrictEqual(refusal({ sku: 5 }), [400, "invalid_type", "sku"])
    assert.deepStrictEqual(refusal({ sku: "A", price: 5 }), [400, "invalid_type", "price"])
    assert.deepStrictEqual(refusal({ sku: "A", price: "1.0000000" }), [400, "invalid_precision", "price"])
    assert.deepStrictEqual(refusal({ sku: "A".repeat(256) }), [400, "invalid_request", "sku"])
    assert.deepStrictEqual(refusal({ sku: "A", taxable: 1 }), [400, "invalid_type", "taxable"])
    assert.deepStrictEqual(refusal({ customerid: 1, status: "lost" }, "/orders"), [400, "invalid_enum", "status"])
    const several = call("POST", "/items", { price: "x", taxable: "no" })
    assert.strictEqual(codeOf(several), "invalid_request")
    assert.deepStrictEqual(
      (errorOf(several)["errors"] as ReadonlyArray<Json>).map(({ field, code }) => [field, code]),
      [
        ["sku", "required"],
        ["price", "invalid_type"],
        ["taxable", "invalid_type"]
      ]
    )
  })

  it("are rejected with the position of a problem in lines", () => {
    const { call } = server()
    const { id, lines } = order(call)
    const response = call("POST", "/shipments", {
      orderid: id,
      lines: [{ orderlineid: lines[0]!["id"], quantity: "1" }, { orderlineid: lines[1]!["id"] }]
    })
    assert.strictEqual(errorOf(response)["field"], "lines[1].quantity")
    assert.strictEqual(errorOf(call("POST", "/shipments", { orderid: id, lines: [{ x: 1 }] }))["field"], "lines[0].x")
    assert.strictEqual(codeOf(call("POST", "/shipments", { orderid: id, lines: [] })), "invalid_request")
    assert.strictEqual(codeOf(call("POST", "/shipments", { orderid: id, lines: {} })), "invalid_type")
  })

  it("are limited by characters, not by code units", () => {
    const { call } = server()
    assert.strictEqual(call("POST", "/salesmen", { name: "😀".repeat(50) }).status, 201)
    assert.strictEqual(call("POST", "/salesmen", { name: "😀".repeat(51) }).status, 400)
  })

  it("may contain read-only fields, which are ignored, and short decimals", () => {
    const { call } = server()
    const response = call("POST", "/salesmen", { id: 99, lastchangedate: 5, name: "Ann", commissionrate: "2.5" })
    assert.strictEqual(response.status, 201)
    assert.notStrictEqual(response.body["id"], 99)
    assert.strictEqual(response.body["commissionrate"], "2.500")
    assert.strictEqual(response.body["salesman"], false)
    assert.isNull(response.body["email1"])
  })

  it("accept a day or an instant for a date, and return a day", () => {
    const { call } = server()
    const made = (return_date: string) => call("POST", "/rmareturns", { return_date }).body["return_date"]
    assert.strictEqual(made("2026-02-28"), "2026-02-28")
    assert.strictEqual(made("2026-02-28T23:59:59.9Z"), "2026-02-28")
    assert.strictEqual(codeOf(call("POST", "/rmareturns", { return_date: "2026-02-30" })), "invalid_type")
    assert.strictEqual(codeOf(call("POST", "/rmareturns", { return_date: "28.2.2026" })), "invalid_type")
  })

  it("are checked for form before any record is looked up", () => {
    const { call } = server()
    assert.strictEqual(codeOf(call("POST", "/payments", { invoiceid: 999, amount: 5 })), "invalid_type")
    assert.strictEqual(codeOf(call("PATCH", "/salesmen/999", { name: 5 })), "invalid_type")
    assert.strictEqual(codeOf(call("PATCH", "/salesmen/999", { name: "X" })), "not_found")
  })
})

describe("references", () => {
  it("resolve by either half, and return both", () => {
    const { call } = server()
    const ann = call("POST", "/salesmen", { name: "Ann" }).body
    const bodies = [{ salesmanid: ann["id"] }, { salesman: "Ann" }, { salesman: "ANN", salesmanid: ann["id"] }]
    for (const [index, body] of bodies.entries()) {
      const { body: customer } = call("POST", "/customers", { customercode: `C${index}`, ...body })
      assert.strictEqual(customer["salesmanid"], ann["id"])
      assert.strictEqual(customer["salesman"], "Ann")
    }
  })

  it("are rejected if unknown, ambiguous, cancelled by code, or contradictory", () => {
    const { call, control } = server()
    const refusal = (body: Json, path = "/customers") => {
      const response = call("POST", path, { ...(path === "/customers" ? { customercode: "C" } : {}), ...body })
      return [response.status, codeOf(response), errorOf(response)?.["field"]]
    }
    const ann = call("POST", "/salesmen", { name: "Ann" }).body["id"]
    call("POST", "/salesmen", { name: "Bob" })
    const gone = call("POST", "/salesmen", { name: "Gone" }).body["id"]
    call("DELETE", `/salesmen/${String(gone)}`)
    assert.deepStrictEqual(refusal({ salesmanid: 999 }), [422, "unknown_value", "salesmanid"])
    assert.deepStrictEqual(refusal({ salesman: "Unknown" }), [422, "unknown_value", "salesman"])
    assert.deepStrictEqual(refusal({ salesman: "Gone" }), [422, "unknown_value", "salesman"])
    assert.deepStrictEqual(refusal({ salesman: "Bob", salesmanid: ann }), [422, "conflicting_reference", "salesman"])
    const records = [{ name: "Twin" }, { name: "Twin" }]
    control("POST", "/records", { company: 1, resource: "carriers", records })
    assert.deepStrictEqual(refusal({ carrier: "Twin" }, "/carrierservices"), [422, "ambiguous_value", "carrier"])
    assert.strictEqual(call("POST", "/customers", { customercode: "D", salesmanid: gone }).status, 201)
  })

  it("follow a changed code in every record that shows it", () => {
    const { call } = server()
    const { id, bolts } = order(call)
    call("PATCH", `/items/${String(bolts["id"])}`, { sku: "NUT" })
    const { body } = call("GET", `/orders/${id}`)
    assert.strictEqual((body["lines"] as ReadonlyArray<Json>)[0]!["item"], "NUT")
    assert.strictEqual(dataOf(call("GET", `/orderlines?orderid=${id}`))[0]!["item"], "NUT")
  })

  it("are cleared by null", () => {
    const { call } = server()
    call("POST", "/salesmen", { name: "Ann" })
    const { id } = call("POST", "/customers", { customercode: "C", salesman: "Ann" }).body
    const { body } = call("PATCH", `/customers/${String(id)}`, { salesman: null })
    assert.isNull(body["salesmanid"])
    assert.isNull(body["salesman"])
  })
})

describe("a record of the reference server", () => {
  it("rejects a key that is used, in any case, also by a cancelled record", () => {
    const { call } = server()
    const { id } = call("POST", "/salesmen", { name: "Ann" }).body
    const response = call("POST", "/salesmen", { name: "aNN" })
    assert.deepStrictEqual([response.status, codeOf(response)], [409, "duplicate"])
    call("DELETE", `/salesmen/${String(id)}`)
    assert.strictEqual(codeOf(call("POST", "/salesmen", { name: "ANN" })), "duplicate")
    const other = call("POST", "/salesmen", { name: "Bob" }).body["id"]
    assert.strictEqual(codeOf(call("PATCH", `/salesmen/${String(other)}`, { name: "ann" })), "duplicate")
    assert.strictEqual(call("PATCH", `/salesmen/${String(other)}`, { name: "BOB" }).status, 200)
  })

  it("supports If-Match in each form, and is returned if stale", () => {
    const { call, control } = server()
    const made = call("POST", "/salesmen", { name: "Ann" })
    const id = String(made.body["id"])
    const etag = made.headers["ETag"]!
    const patch = (ifMatch: string, phone1: string) => {
      control("POST", "/clock", { advanceSeconds: 1 })
      return call("PATCH", `/salesmen/${id}`, { phone1 }, { "if-match": ifMatch })
    }
    const second = patch(etag, "1")
    assert.strictEqual(second.status, 200)
    const stale = patch(etag, "2")
    assert.strictEqual(codeOf(stale), "stale_record")
    assert.deepStrictEqual(errorOf(stale)["current"], second.body)
    const third = patch(String(second.body["lastchangedate"]), "3")
    assert.strictEqual(third.status, 200)
    assert.strictEqual(patch(`"${String(third.body["lastchangedate"])}"`, "4").status, 200)
    assert.strictEqual(patch("*", "5").status, 200)
    assert.strictEqual(call("GET", `/salesmen/${id}`).headers["ETag"], call("GET", `/salesmen/${id}`).headers["ETag"])
    control("PUT", "/dialect", { etag: false })
    assert.notProperty(call("GET", `/salesmen/${id}`).headers, "ETag")
  })

  it("does not change with an empty update", () => {
    const { call, control } = server()
    const made = call("POST", "/salesmen", { name: "Ann" })
    control("POST", "/clock", { advanceSeconds: 5 })
    for (const body of [{}, { id: 5 }, { name: "Ann" }, { cancel: false }]) {
      const response = call("PATCH", `/salesmen/${String(made.body["id"])}`, body)
      assert.strictEqual(response.text, made.text)
      assert.strictEqual(response.headers["ETag"], made.headers["ETag"])
    }
  })

  it("is cancelled with the cancel scope only, once, and for good", () => {
    const { call, caller, token } = server()
    const writer = caller(token({ scopes: ["setup:write"] }))
    const { id } = call("POST", "/salesmen", { name: "Ann" }).body
    const path = `/salesmen/${String(id)}`
    assert.strictEqual(codeOf(writer("DELETE", path)), "insufficient_scope")
    assert.strictEqual(codeOf(writer("PATCH", path, { cancel: true })), "insufficient_scope")
    const cancelled = call("PATCH", path, { cancel: true })
    assert.strictEqual(cancelled.body["cancel"], true)
    assert.strictEqual(call("DELETE", path).text, cancelled.text)
    assert.strictEqual(codeOf(call("PATCH", path, { cancel: false })), "rule_violation")
  })

  it("is not cancelled while it is in use", () => {
    const { call } = server()
    const { id } = call("POST", "/salesmen", { name: "Ann" }).body
    call("POST", "/customers", { customercode: "C", salesmanid: id })
    assert.strictEqual(codeOf(call("DELETE", `/salesmen/${String(id)}`)), "cannot_cancel")
  })

  it("keeps defined custom fields, and rejects others", () => {
    const { call, control } = server()
    const records = [{ name: "region", resource: "customers", acceptedvalues: "North,South" }]
    control("POST", "/records", { company: 1, resource: "customfields", records })
    const make = (custom_fields: Json) => call("POST", "/customers", { customercode: "C", custom_fields })
    assert.strictEqual(codeOf(make({ colour: "red" })), "unknown_value")
    assert.strictEqual(codeOf(make({ region: { file: "x" } })), "unsupported_value")
    assert.strictEqual(codeOf(make({ region: "West" })), "unsupported_value")
    const { id } = make({ region: "North" }).body
    assert.deepStrictEqual(call("GET", `/customers/${String(id)}?include=custom_fields`).body["custom_fields"], {
      region: "North"
    })
    assert.notProperty(call("GET", `/customers/${String(id)}`).body, "custom_fields")
  })
})

describe("batches", () => {
  it("write each record on its own, in order", () => {
    const { call } = server()
    const response = call("POST", "/salesmen/batch", [
      { name: "Ann" },
      { name: 5 },
      { name: "ann" },
      7,
      { name: "Bob" }
    ])
    assert.strictEqual(response.status, 207)
    const results = response.body["results"] as ReadonlyArray<Json>
    assert.deepStrictEqual(
      results.map(({ index, status }) => [index, status]),
      [
        [0, 201],
        [1, 400],
        [2, 409],
        [3, 400],
        [4, 201]
      ]
    )
    assert.strictEqual((results[2]!["error"] as Json)["code"], "duplicate")
    assert.strictEqual((results[4]!["record"] as Json)["name"], "Bob")
    assert.lengthOf(dataOf(call("GET", "/salesmen")), 2)
  })

  it("accept 250 records and not 251, an empty array, and only arrays", () => {
    const { call } = server()
    const names = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `N${index}` }))
    assert.strictEqual(call("POST", "/salesmen/batch", names(250)).status, 207)
    assert.strictEqual(codeOf(call("POST", "/salesmen/batch", names(251))), "batch_too_large")
    assert.deepStrictEqual(call("POST", "/salesmen/batch", []).body, { results: [] })
    assert.strictEqual(codeOf(call("POST", "/salesmen/batch", {})), "invalid_request")
    const file = call("POST", "/salesmen/batch", [{ path: "/shipments/1/pdf" }])
    assert.deepStrictEqual([file.status, codeOf(file)], [415, "not_batchable"])
  })

  it("have the keys of the single response", () => {
    const { call } = server()
    const { customer } = order(call)
    const invoice = call("POST", "/invoices", { customerid: customer["id"] }).body
    const line = { invoiceid: invoice["id"], description: "Work", quantity: "2", price: "3" }
    const results = call("POST", "/invoicelines/batch", [line, line]).body["results"] as ReadonlyArray<Json>
    assert.deepStrictEqual(
      results.map(({ record }) => (record as Json)["invoicetotal"]),
      ["6.0000", "12.0000"]
    )
  })
})

describe("idempotency keys", () => {
  const key = (text: string) => ({ "idempotency-key": text })

  it("return the first response again, byte for byte, and write once", () => {
    const { call } = server()
    const first = call("POST", "/salesmen", { name: "Ann" }, key("k1"))
    const again = call("POST", "/salesmen", { name: "Ann" }, key("k1"))
    assert.strictEqual(again.text, first.text)
    assert.strictEqual(again.status, 201)
    assert.strictEqual(again.headers["ETag"], first.headers["ETag"])
    assert.strictEqual(again.headers["Idempotent-Replayed"], "true")
    assert.notProperty(first.headers, "Idempotent-Replayed")
    assert.lengthOf(dataOf(call("GET", "/salesmen")), 1)
  })

  it("reject another request, and keep rejections that need a person", () => {
    const { call } = server()
    call("POST", "/salesmen", { name: "Ann" }, key("k1"))
    assert.strictEqual(codeOf(call("POST", "/salesmen", { name: "Bob" }, key("k1"))), "idempotency_replay")
    assert.strictEqual(codeOf(call("POST", "/salesmen/batch", [{ name: "Ann" }], key("k1"))), "idempotency_replay")
    assert.strictEqual(codeOf(call("POST", "/salesmen", { name: "ann" }, key("k2"))), "duplicate")
    const replayed = call("POST", "/salesmen", { name: "ann" }, key("k2"))
    assert.strictEqual(codeOf(replayed), "duplicate")
    assert.strictEqual(replayed.headers["Idempotent-Replayed"], "true")
  })

  it("belong to a token, last 24 hours, and are printable", () => {
    const { call, caller, token, control } = server()
    call("POST", "/salesmen", { name: "Ann" }, key("k1"))
    assert.strictEqual(caller(token())("POST", "/salesmen", { name: "Bob" }, key("k1")).status, 201)
    control("POST", "/clock", { advanceSeconds: 24 * 3600 + 1 })
    assert.strictEqual(codeOf(call("POST", "/salesmen", { name: "Ann" }, key("k1"))), "duplicate")
    for (const wrong of ["", "x".repeat(256), "é"]) {
      assert.strictEqual(codeOf(call("POST", "/salesmen", { name: "Cy" }, key(wrong))), "invalid_request")
    }
  })

  it("do not keep responses that may succeed on retry", () => {
    const { call, control } = server()
    control("POST", "/faults", { rules: [{ kind: "status", status: 500, method: "POST", times: 1 }] })
    assert.strictEqual(call("POST", "/salesmen", { name: "Ann" }, key("k1")).status, 500)
    assert.strictEqual(call("POST", "/salesmen", { name: "Ann" }, key("k1")).status, 201)
    control("PUT", "/limits", { requestsPerMinute: 1 })
    assert.strictEqual(call("POST", "/salesmen", { name: "Bob" }, key("k2")).status, 429)
    control("POST", "/clock", { advanceSeconds: 61 })
    assert.strictEqual(call("POST", "/salesmen", { name: "Bob" }, key("k2")).status, 201)
  })

  it("are rejected while the first request still runs", () => {
    const { served, token, caller } = server()
    const secret = token()
    const release = served.hold({
      method: "POST",
      url: "/!/api/v2/salesmen",
      headers: { authorization: `Bearer ${secret}`, "idempotency-key": "k1" },
      body: Buffer.from('{"name":"Ann"}')
    })
    const response = caller(secret)("POST", "/salesmen", '{"name":"Ann"}', key("k1"))
    assert.strictEqual(codeOf(response), "request_in_progress")
    assert.strictEqual(response.headers["Retry-After"], "1")
    release()
    assert.strictEqual(caller(secret)("POST", "/salesmen", '{"name":"Ann"}', key("k1")).status, 201)
  })
})
