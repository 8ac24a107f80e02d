/** The /webhooks endpoints. */
import { assert, describe, it } from "vitest"
import { eventServer, logOf, receiver, subscribe, verify } from "./eventsSupport.ts"
import { beginning, codeOf, dataOf, errorOf, idsOf, metaOf } from "./support.ts"
import type { Json, HttpReply } from "./support.ts"

const beginningSeconds = Date.parse(beginning) / 1000
const events = ["orders.created", "webhooks.test"]

const refused = (response: HttpReply, status: number, code: string, field?: string) => {
  assert.strictEqual(response.status, status, response.text)
  assert.strictEqual(codeOf(response), code)
  assert.strictEqual(errorOf(response)["field"], field)
}

describe("a subscription of the reference server", () => {
  it("is created with every given field, and returns its secret once", () => {
    const { call } = eventServer()
    const response = call("POST", "/webhooks", { url: receiver, events, description: "Ours", paused: true })
    assert.strictEqual(response.status, 201)
    const { secret, secret_note: note, ...object } = response.body
    assert.deepStrictEqual(object, {
      id: 1,
      url: receiver,
      events,
      description: "Ours",
      paused: true,
      failcount: 0,
      lastdeliverydate: null,
      disableddate: null,
      cancel: false
    })
    assert.match(String(secret), /^whsec_/)
    assert.isString(note)
    const read = call("GET", "/webhooks/1")
    assert.deepStrictEqual(read.body, object)
    assert.deepStrictEqual(dataOf(call("GET", "/webhooks")), [object])
    assert.deepStrictEqual(call("PATCH", "/webhooks/1", { paused: true }).body, object)
    assert.strictEqual(read.headers["ETag"], response.headers["ETag"])
    assert.notStrictEqual(subscribe(call, events).secret, secret)
  })

  it("can be created disabled", () => {
    const { call } = eventServer()
    const { record } = subscribe(call, events, { enabled: false })
    assert.strictEqual(record["disableddate"], "2026-03-16T09:00:00.000000Z")
    assert.isNull(subscribe(call, events, { enabled: true }).record["disableddate"])
  })

  it("is rejected at creation with the code of its invalid field", () => {
    const { call } = eventServer()
    const make = (more: Json) => call("POST", "/webhooks", { url: receiver, events, ...more })
    refused(make({ url: "http://receiver.example/" }), 422, "unsupported_value", "url")
    refused(make({ url: "no address" }), 422, "unsupported_value", "url")
    refused(make({ events: ["*"] }), 422, "unknown_value", "events[0]")
    refused(make({ events: ["orders.created", "orders.eaten"] }), 422, "unknown_value", "events[1]")
    refused(make({ events: ["Orders.created"] }), 422, "unknown_value", "events[0]")
    refused(make({ colour: "red" }), 400, "unknown_parameter", "colour")
    refused(make({ secret: "x".repeat(20) }), 400, "unknown_parameter", "secret")
    refused(make({ url: 7 }), 400, "invalid_type", "url")
    refused(make({ events: "orders.created" }), 400, "invalid_type", "events")
    refused(make({ events: [7] }), 400, "invalid_type", "events[0]")
    refused(make({ paused: "yes" }), 400, "invalid_type", "paused")
    refused(make({ enabled: null }), 400, "invalid_type", "enabled")
    refused(make({ events: [] }), 400, "invalid_request", "events")
    refused(make({ url: `https://x.example/${"a".repeat(483)}` }), 400, "invalid_request", "url")
    refused(make({ description: "d".repeat(101) }), 400, "invalid_request", "description")
    const missing = call("POST", "/webhooks", {})
    refused(missing, 400, "invalid_request", "url")
    assert.deepStrictEqual(
      (errorOf(missing)["errors"] as ReadonlyArray<Json>).map(({ field, code }) => [field, code]),
      [
        ["url", "required"],
        ["events", "required"]
      ]
    )
    refused(call("POST", "/webhooks", "[]"), 400, "invalid_request")
    refused(call("POST", "/webhooks", "{"), 400, "invalid_json")
    assert.lengthOf(dataOf(call("GET", "/webhooks?cancel=any")), 0)
    assert.strictEqual(make({ url: `https://x.example/${"a".repeat(482)}`, description: "é".repeat(100) }).status, 201)
  })

  it("is updated in part, and ignores read-only fields", () => {
    const { call } = eventServer()
    const { id, record } = subscribe(call, events, { description: "Ours" })
    const { secret: _, secret_note: __, ...object } = record
    const patch = (body: unknown) => call("PATCH", `/webhooks/${id}`, body)
    const next = { url: "https://other.example/", events: ["salesmen.created"], description: null, paused: true }
    assert.deepStrictEqual(patch({ ...next, id: 9, failcount: 9, cancel: true }).body, { ...object, ...next })
    refused(patch({}), 400, "invalid_request")
    refused(patch({ id: 9, cancel: true, failcount: 3 }), 400, "invalid_request")
    refused(patch({ colour: "red" }), 400, "unknown_parameter", "colour")
    refused(patch({ secret: "short" }), 400, "invalid_request", "secret")
    refused(patch({ secret: "x".repeat(256) }), 400, "invalid_request", "secret")
    refused(patch({ secret: null }), 400, "invalid_type", "secret")
    refused(patch({ url: "http://other.example/" }), 422, "unsupported_value", "url")
    refused(patch({ url: null }), 400, "invalid_request", "url")
    refused(patch({ events: ["*"] }), 422, "unknown_value", "events[0]")
    refused(call("PATCH", "/webhooks/99", { colour: "red" }), 400, "unknown_parameter", "colour")
    refused(call("PATCH", "/webhooks/99", { paused: true }), 404, "not_found")
    assert.deepStrictEqual(call("GET", `/webhooks/${id}`).body, { ...object, ...next })
    assert.strictEqual(patch({ secret: "x".repeat(16) }).status, 200)
  })

  it("is updated only in the state that If-Match names", () => {
    const { call } = eventServer()
    const { id } = subscribe(call, events)
    const { headers } = call("GET", `/webhooks/${id}`)
    const patch = (description: string) =>
      call("PATCH", `/webhooks/${id}`, { description }, { "if-match": headers["ETag"]! })
    assert.strictEqual(patch("first").status, 200)
    const stale = patch("second")
    refused(stale, 409, "stale_record")
    assert.deepInclude(errorOf(stale)["current"] as Json, { description: "first" })
  })

  it("is visible to its own token only", () => {
    const { call, caller, token } = eventServer()
    const { id } = subscribe(call, events)
    const other = caller(token())
    for (const [method, path] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/test"],
      ["GET", "/deliveries"]
    ]) {
      refused(other(method!, `/webhooks/${id}${path}`), 404, "not_found")
    }
    refused(other("PATCH", `/webhooks/${id}`, { paused: true }), 404, "not_found")
    assert.lengthOf(dataOf(other("GET", "/webhooks?cancel=any")), 0)
    refused(call("GET", "/webhooks/x"), 404, "not_found")
  })

  it("requires the setup scopes, and answers 405 to other methods", () => {
    const { call, caller, token } = eventServer()
    const { id } = subscribe(call, events)
    const reader = caller(token({ scopes: ["setup:read"] }))
    assert.strictEqual(reader("GET", "/webhooks").status, 200)
    for (const [method, path, scope] of [
      ["POST", "/webhooks", "setup:write"],
      ["PATCH", `/webhooks/${id}`, "setup:write"],
      ["POST", `/webhooks/${id}/test`, "setup:write"],
      ["DELETE", `/webhooks/${id}`, "setup:cancel"]
    ]) {
      const response = reader(method!, path!)
      refused(response, 403, "insufficient_scope")
      assert.include(response.headers["WWW-Authenticate"], scope)
    }
    const put = call("PUT", `/webhooks/${id}`, {})
    refused(put, 405, "method_not_allowed")
    assert.strictEqual(put.headers["Allow"], "GET, PATCH, DELETE")
    assert.strictEqual(call("GET", `/webhooks/${id}/test`).headers["Allow"], "POST")
    refused(call("GET", `/webhooks/${id}/nothing`), 404, "not_found")
    refused(call("GET", `/webhooks/${id}/deliveries/1`), 404, "not_found")
  })

  it("is cancelled for good, and receives nothing afterwards", async () => {
    const { call, ask, cycle } = eventServer()
    const { id } = subscribe(call, ["salesmen.created"])
    const { id: kept } = subscribe(call, ["salesmen.created"])
    call("POST", "/salesmen", { name: "A" })
    const gone = call("DELETE", `/webhooks/${id}`)
    assert.strictEqual(gone.status, 200)
    assert.strictEqual(gone.body["cancel"], true)
    assert.deepStrictEqual(call("DELETE", `/webhooks/${id}`).body, gone.body)
    assert.deepStrictEqual(
      (await cycle()).map(({ webhookid }) => webhookid),
      [kept]
    )
    assert.deepStrictEqual(call("GET", `/webhooks/${id}`).body, gone.body)
    assert.deepStrictEqual(idsOf(dataOf(call("GET", "/webhooks"))), [kept])
    assert.deepStrictEqual(idsOf(dataOf(call("GET", "/webhooks?cancel=true"))), [id, kept])
    assert.deepStrictEqual(idsOf(dataOf(call("GET", "/webhooks?cancel=any"))), [id, kept])
    refused(call("GET", "/webhooks?cancel=maybe"), 400, "invalid_enum", "cancel")
    refused(call("PATCH", `/webhooks/${id}`, { paused: false }), 422, "rule_violation")
    refused(await ask("POST", `/webhooks/${id}/test`), 422, "rule_violation")
    assert.lengthOf(logOf(call, id), 0)
  })

  it("is listed in pages as records are", () => {
    const { call, control } = eventServer()
    for (let index = 0; index < 5; index++) subscribe(call, events)
    const first = call("GET", "/webhooks?limit=2&cancel=any")
    assert.deepStrictEqual(idsOf(dataOf(first)), [1, 2])
    assert.deepInclude(metaOf(first), { limit: 2, has_more: true })
    const second = call("GET", `/webhooks?cursor=${String(metaOf(first)["next_cursor"])}`)
    assert.deepStrictEqual(idsOf(dataOf(second)), [3, 4])
    refused(call("GET", "/webhooks?modifiedsince=2026-01-01T00:00:00Z"), 400, "unknown_parameter", "modifiedsince")
    control("PUT", "/dialect", { paging: "page", itemsKey: "resource" })
    const page = call("GET", "/webhooks?limit=2&page=3").body
    assert.deepStrictEqual(idsOf(page["webhooks"] as ReadonlyArray<Json>), [5])
    assert.deepStrictEqual(page["_meta"], { limit: 2, page: 3, total: 5, has_more: false })
    control("PUT", "/dialect", { paging: "link", itemsKey: "bare" })
    const bare = call("GET", "/webhooks?limit=4")
    assert.lengthOf(JSON.parse(bare.text) as [], 4)
    assert.match(bare.headers["Link"]!, /\/!\/api\/v2\/webhooks\?limit=4&cursor=[\w-]+>; rel="next"$/)
  })

  it("is created once per Idempotency-Key", () => {
    const { call } = eventServer()
    const make = () => call("POST", "/webhooks", { url: receiver, events }, { "idempotency-key": "once" })
    assert.strictEqual(make().text, make().text)
    assert.lengthOf(dataOf(call("GET", "/webhooks")), 1)
  })
})

describe("the test call of a subscription", () => {
  it("sends at once in any state of the subscription, and changes nothing", async () => {
    const { call, ask, cycle, reply, sent } = eventServer()
    const { id, secret } = subscribe(call, ["salesmen.created"], { paused: true, enabled: false })
    const before = call("GET", `/webhooks/${id}`).body
    reply(() => ({ status: 418, body: Buffer.from(`${"x".repeat(499)}é and more`).subarray(0, 500) }))
    const response = await ask("POST", `/webhooks/${id}/test`)
    assert.strictEqual(response.status, 200, response.text)
    assert.deepStrictEqual(Object.keys(response.body), [
      "eventid",
      "responsecode",
      "responsebody",
      "durationms",
      "delivered"
    ])
    const expected = { responsecode: 418, responsebody: "x".repeat(499), durationms: 7, delivered: false }
    assert.deepInclude(response.body, expected)
    const { envelope, headers, body } = sent[0]!
    assert.deepInclude(envelope, { id: response.body["eventid"], type: "webhooks.test", companyid: 1 })
    assert.deepStrictEqual(envelope["data"], { webhookid: id, message: "test" })
    assert.deepStrictEqual(verify(headers["Svc-Signature"]!, body, [secret], beginningSeconds).matches, [true])
    assert.strictEqual(headers["Svc-Delivery-Attempt"], "1")
    assert.deepStrictEqual(call("GET", `/webhooks/${id}`).body, before)
    assert.deepInclude(logOf(call, id)[0]!, { eventtype: "webhooks.test", attempts: 1, abandoned: false, ...expected })
    assert.lengthOf(await cycle(), 0)
    reply(() => 200)
    assert.deepInclude((await ask("POST", `/webhooks/${id}/test`, {})).body, { responsecode: 200, delivered: true })
    reply(() => null)
    assert.deepInclude((await ask("POST", `/webhooks/${id}/test`)).body, {
      responsecode: null,
      responsebody: "",
      delivered: false
    })
    refused(await ask("POST", `/webhooks/${id}/test`, { a: 1 }), 400, "unknown_parameter", "a")
    refused(await ask("POST", "/webhooks/77/test"), 404, "not_found")
  })

  it("has its own rate limit", async () => {
    const { call, ask, asking, control, token, advance } = eventServer()
    const { id } = subscribe(call, events)
    control("PUT", "/limits", { requestsPerMinute: 1 })
    for (let count = 0; count < 10; count++) assert.strictEqual((await ask("POST", `/webhooks/${id}/test`)).status, 200)
    const limited = await ask("POST", `/webhooks/${id}/test`)
    refused(limited, 429, "rate_limited")
    assert.strictEqual(limited.headers["Retry-After"], "60")
    // Test calls and other requests are counted separately, and each token has its own counters.
    await advance(30)
    assert.strictEqual((await ask("GET", "/webhooks")).status, 429)
    assert.strictEqual((await asking(token())("POST", `/webhooks/${id}/test`)).status, 404)
    await advance(30)
    assert.strictEqual((await ask("GET", "/webhooks")).status, 200)
    assert.strictEqual((await ask("POST", `/webhooks/${id}/test`)).status, 200)
    control("PUT", "/limits", { testCallsPerMinute: 1 })
    refused(await ask("POST", `/webhooks/${id}/test`), 429, "rate_limited")
  })

  it("is sent once per Idempotency-Key, and reports if it still runs", async () => {
    const { call, ask, reply, sent } = eventServer()
    const { id } = subscribe(call, events)
    let release: (reply: number) => void = () => {}
    reply(() => new Promise((resolve) => (release = resolve)))
    const key = { "idempotency-key": "test once" }
    const first = ask("POST", `/webhooks/${id}/test`, undefined, key)
    refused(await ask("POST", `/webhooks/${id}/test`, undefined, key), 409, "request_in_progress")
    release(200)
    const { text } = await first
    const again = await ask("POST", `/webhooks/${id}/test`, undefined, key)
    assert.strictEqual(again.text, text)
    assert.strictEqual(again.headers["Idempotent-Replayed"], "true")
    assert.lengthOf(sent, 1)
  })

  it("appears in the request journal once it is answered", async () => {
    const { call, ask, control, defects } = eventServer()
    const { id } = subscribe(call, events)
    await ask("POST", `/webhooks/${id}/test`)
    const { requests } = control("GET", "/requests").body
    assert.deepInclude((requests as ReadonlyArray<Json>).at(-1)!, { path: `/webhooks/${id}/test`, status: 200 })
    assert.deepStrictEqual(defects, [])
  })
})
