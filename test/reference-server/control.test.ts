import { assert, describe, it } from "vitest"
import { dataOf, idsOf, linesOf, order, readAll, server, ship } from "./support.ts"
import type { Json } from "./support.ts"
import { assertEach } from "../support/assertions.ts"
import { valuesOf } from "../support/rows.ts"

describe("the control plane", () => {
  it("keeps records exactly as they were sent", () => {
    const { call, control } = server()
    const body =
      '{"company":1,"resource":"customers","records":[{"id":77,"customercode":"A\\u0000\\ud800","creditlimit":1.50,' +
      '"rate":1.10,"big":12345678901234567890,"deep":{"n":1e2,"z":null},"salesmanid":null}],"at":"2020-01-01T00:00:00Z"}'
    const response = control("POST", "/records", body)
    assert.strictEqual(response.status, 200)
    const text = call("GET", "/customers/77").text
    for (const part of [
      '"customercode":"A\\u0000\\ud800"',
      '"creditlimit":1.50',
      '"rate":1.10',
      '"big":12345678901234567890',
      '"deep":{"n":1e2,"z":null}',
      '"lastchangedate":"2020-01-01T00:00:00.000000Z"',
      '"entrydate":"2020-01-01T00:00:00.000000Z"'
    ]) {
      assert.include(text, part)
    }
    assert.strictEqual(control("GET", "/state?company=1&resource=customers").text, `${text}\n`)
    assert.strictEqual(response.text, `{"records":[${text}]}`)
  })

  it("changes only the given fields of a record, and completes reference pairs", () => {
    const { call, control } = server()
    const { id } = call("POST", "/salesmen", { name: "Ann" }).body
    const records = [{ id: 5, customercode: "A", name: "First", salesmanid: id }]
    control("POST", "/records", { company: 1, resource: "customers", records })
    assert.strictEqual(call("GET", "/customers/5").body["salesman"], "Ann")
    control("POST", "/records", { company: 1, resource: "customers", records: [{ id: 5, cancel: true }] })
    assert.deepInclude(call("GET", "/customers/5").body, { customercode: "A", name: "First", cancel: true })
    assert.isAbove(Number(call("POST", "/customers", { customercode: "B" }).body["id"]), 5)
  })

  it("lists late records at their time, and hides records without one from modifiedsince", () => {
    const { call, control } = server()
    const put = (record: Json, at?: string) =>
      control("POST", "/records", { company: 1, resource: "salesmen", records: [record], ...(at ? { at } : {}) })
    put({ name: "late" }, "2026-03-01T00:00:00Z")
    put({ name: "none", lastchangedate: null })
    put({ name: "odd", lastchangedate: "soon" })
    const since = (instant: string) => dataOf(call("GET", `/salesmen?modifiedsince=${instant}`)).map(({ name }) => name)
    assert.deepStrictEqual(since("2026-03-01T00:00:00Z"), ["late"])
    assert.deepStrictEqual(since("2026-03-01T00:00:00.000001Z"), [])
    assert.lengthOf(dataOf(call("GET", "/salesmen")), 3)
  })

  it("pages past records with times in a far future", () => {
    const { call, control } = server()
    const records = ["a", "b", "c"].map((name) => ({ name, lastchangedate: "9999-12-31T23:59:59.999999Z" }))
    control("POST", "/records", { company: 1, resource: "salesmen", records })
    const { records: read } = readAll(call, "/salesmen?modifiedsince=2000-01-01T00:00:00Z&limit=1")
    assert.deepStrictEqual(valuesOf(read, "name"), ["a", "b", "c"])
  })

  it("removes a row from the API and records the removal in the history", () => {
    const { call, control } = server()
    const { id } = call("POST", "/salesmen", { name: "Ann" }).body
    assert.strictEqual(control("POST", "/remove", { company: 1, resource: "salesmen", id }).status, 200)
    assert.strictEqual(call("GET", `/salesmen/${String(id)}`).status, 404)
    assert.lengthOf(dataOf(call("GET", "/salesmen?modifiedsince=2000-01-01T00:00:00Z")), 0)
    const history = linesOf(control("GET", "/history?company=1&resource=salesmen").text)
    assert.deepStrictEqual(valuesOf(history, "op"), ["insert", "delete"])
  })

  it("returns every committed version in commit order, and none of a rejected write", () => {
    const { call, control } = server()
    const made = order(call)
    const before = linesOf(control("GET", "/history").text).length
    assert.strictEqual(ship(call, made, "11").status, 422)
    assert.strictEqual(linesOf(control("GET", "/history").text).length, before)
    assert.strictEqual(ship(call, made, "10").status, 201)
    const history = linesOf(control("GET", "/history").text)
    const seqs = history.map(({ seq }) => Number(seq))
    assert.deepStrictEqual(
      seqs,
      seqs.toSorted((a, b) => a - b)
    )
    assert.deepStrictEqual(
      history
        .slice(before)
        .map(({ resource, op }) => `${String(resource)} ${String(op)}`)
        .sort(),
      ["orderlines update", "orders update", "shipmentlines insert", "shipments insert"]
    )
    const last = new Map(history.map(({ resource, id, record }) => [`${String(resource)} ${String(id)}`, record]))
    for (const record of linesOf(control("GET", "/state?company=1&resource=orders").text)) {
      assert.deepStrictEqual(last.get(`orders ${String(record["id"])}`), record)
    }
  })

  it("does not move the clock out of the years that it can show", () => {
    const { control, defects } = server()
    const before = control("GET", "/clock").text
    for (const move of [
      { advanceSeconds: 1e12 },
      { advanceSeconds: 1e300 },
      { advanceSeconds: -1e12 },
      { now: "1969-12-31T23:59:59Z" },
      { now: "9999-12-31T23:59:59Z", advanceSeconds: 1 }
    ]) {
      const { status, body } = control("POST", "/clock", { ...move, manual: false })
      assert.strictEqual(status, 400, JSON.stringify(move))
      assert.strictEqual(body["error"], "the clock must stay in the years 1970 to 9999")
      assert.strictEqual(control("GET", "/clock").text, before)
    }
    assert.deepStrictEqual(defects, [])
  })

  it("records requests without tokens", () => {
    const { caller, token, control } = server()
    const secret = token()
    caller(secret)("GET", `/salesmen?externalid=${secret}`)
    caller(secret)("GET", `/${secret}`)
    caller("svct_0123456789")("GET", "/me")
    const { text, body } = control("GET", "/requests")
    assert.notInclude(text, secret)
    const requests = body["requests"] as ReadonlyArray<Json>
    assertEach(requests, ({ method, status }) => [method, status], [
      ["GET", 200],
      ["GET", 404],
      ["GET", 401]
    ])
    assert.isNumber(requests[0]!["tokenid"])
    assert.isNull(requests[2]!["tokenid"])
  })

  it("answers 404 to unknown calls", () => {
    const { control } = server()
    for (const path of ["/nothing", "/"]) assert.strictEqual(control("GET", path).status, 404)
  })
})

describe("a refusal of the control plane", () => {
  const rule = (more: Json) => ({ rules: [{ kind: "delay" }, { kind: "status", ...more }] })
  const cases: ReadonlyArray<readonly [method: string, path: string, body: unknown, sentence: string]> = [
    ["POST", "/reset", { data: "some" }, "data must be empty, demo or scale"],
    ["POST", "/reset", { date: "demo" }, 'there is no "date" here; there are: data, rows, seed'],
    ["POST", "/reset", "[]", "the body must be a JSON object"],
    ["POST", "/reset", "{", "JSON"],
    ["POST", "/tokens", { company: 1, scopes: ["orders:own"] }, "scopes"],
    ["POST", "/tokens/revoke", { token: "svct_none" }, "token"],
    ["POST", "/clock", { now: "noon" }, "now"],
    ["PUT", "/companies/x", {}, "id must be a whole number from 1"],
    ["PUT", "/limits", { speed: 1 }, "speed"],
    ["POST", "/records", { company: 1, resource: "nothing", records: [] }, "nothing"],
    ["POST", "/records", { company: 1, resource: "orders", records: [{ id: 0 }] }, "id"],
    ["POST", "/remove", { company: 1, resource: "orders", id: 5 }, "5"],
    ["POST", "/faults", { rules: [{ kind: "flood" }] }, "kind"],
    ["POST", "/tokens", { scopes: ["*"] }, "company must be a whole number from 1"],
    ["PUT", "/limits", { requestsPerMinute: 1.5 }, "requestsPerMinute must be a whole number from 0, or null"],
    [
      "PUT",
      "/companies/1",
      { features: { jobs: 1 } },
      "features must be an object of modules and true or false; see features.jobs"
    ],
    ["PUT", "/companies/1", { recordLimits: { orders: 1 } }, "recordLimits: orders is not capped"],
    ["PUT", "/dialect", { paging: "scroll" }, "the switch paging takes cursor, page, offset, link"],
    ["POST", "/faults", rule({ rate: 2 }), "rules[1].rate must be from 0 to 1"],
    ["POST", "/faults", { rules: [1] }, "rules must be an array of rules; see rules[0]"],
    ["POST", "/records", { company: 1, resource: "orders", records: [{}, 5] }, "see records[1]"],
    ["GET", "/state?company=one&resource=orders", undefined, "company must be a whole number from 1"],
    ["GET", "/state?company=1&resource=orders&id=7", undefined, "there are: company, resource, include"],
    ["GET", "/clock?now=noon", undefined, 'there is no "now" here; nothing is expected'],
    ["POST", "/cycle", { times: 2 }, 'there is no "times" here; nothing is expected']
  ]

  it.each(cases)("names the field: %s %s %j", (method, path, body, sentence) => {
    const { control } = server()
    const before = control("GET", "/history").text
    const { status, body: refusal } = control(method, path, body)
    assert.strictEqual(status, 400)
    assert.include(refusal["error"], sentence)
    assert.strictEqual(control("GET", "/history").text, before)
  })

  it("leaves numbers of rules and records as they were sent", () => {
    const { call, control } = server()
    control("POST", "/faults", '{"rules":[{"kind":"status","status":503,"rate":1.0,"body":{"wait":1.50}}],"seed":2}')
    assert.strictEqual(call("GET", "/me").text, '{"wait":1.50}')
    control("POST", "/clock", '{"advanceSeconds":1e1}')
    assert.strictEqual(control("GET", "/clock").body["now"], "2026-03-16T09:00:10.000000Z")
  })
})

describe("faults of the control plane", () => {
  it("apply to the requests that their rules match, by seed", () => {
    const { call, control } = server()
    const rules = (...faultRules: ReadonlyArray<Json>) => control("POST", "/faults", { rules: faultRules, seed: 3 })
    const statuses = (path: string, count: number) => Array.from({ length: count }, () => call("GET", path).status)
    rules({ kind: "status", status: 503, path: "/salesmen", after: 1, times: 2 })
    assert.deepStrictEqual(statuses("/salesmen", 5), [200, 503, 503, 200, 200])
    assert.deepStrictEqual(statuses("/orders", 2), [200, 200])
    rules({ kind: "status", status: 503, path: "/orders/*/invoice", method: "post" })
    assert.strictEqual(call("POST", "/orders/1/invoice").status, 503)
    assert.strictEqual(call("GET", "/orders").status, 200)
    rules({ kind: "status", status: 500, rate: 0.5 })
    const first = statuses("/salesmen", 40)
    assert.includeMembers(first, [200, 500])
    rules({ kind: "status", status: 500, rate: 0.5 })
    assert.deepStrictEqual(statuses("/salesmen", 40), first)
    control("DELETE", "/faults")
    assert.deepStrictEqual(new Set(statuses("/salesmen", 5)), new Set([200]))
  })

  it("answer with the configured response instead of the server's", () => {
    const { call, control } = server()
    const under = (rule: Json) => {
      control("POST", "/faults", { rules: [rule] })
      return call("GET", "/salesmen")
    }
    assert.strictEqual(under({ kind: "status", status: 429 }).headers["Retry-After"], "1")
    assert.notProperty(under({ kind: "status", status: 429, headers: {} }).headers, "Retry-After")
    assert.deepStrictEqual(under({ kind: "status", status: 503, body: { down: true } }).body, { down: true })
    assert.deepInclude(under({ kind: "status", code: "token_revoked", status: 401 }).body["error"], {
      code: "token_revoked"
    })
  })

  it("apply the write or skip it, depending on their kind", () => {
    const { served, call, control, token } = server()
    const authorization = `Bearer ${token()}`
    const post = (kind: string, name: string) => {
      control("POST", "/faults", { rules: [{ kind, method: "POST" }] })
      const body = Buffer.from(JSON.stringify({ name }))
      return served.handle({ method: "POST", url: "/!/api/v2/salesmen", headers: { authorization }, body }).wire
    }
    for (const kind of ["reset", "html", "garbage", "status"]) post(kind, `not ${kind}`)
    assert.deepStrictEqual(dataOf(call("GET", "/salesmen")), [])
    for (const kind of ["dropResponse", "truncate", "slowBody", "delay"]) {
      assert.strictEqual(post(kind, `done ${kind}`)?.kind, kind)
    }
    assert.lengthOf(idsOf(dataOf(call("GET", "/salesmen"))), 4)
  })
})
