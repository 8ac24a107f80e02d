/** The OpenAPI document of the reference server, compared with its behaviour. */
import { Validator } from "@seriousme/openapi-schema-validator"
import { assert, describe, it } from "vitest"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { contract } from "../support/contract.ts"
import type { Json, Server, HttpReply } from "./support.ts"
import { codeOf, order, postedInvoice, server } from "./support.ts"

type Tree = Readonly<Record<string, Readonly<Record<string, Json>>>>

const textOf = ({ served }: Server, headers: Record<string, string> = {}) =>
  served.handle({ method: "GET", url: "/!/api/v2/openapi.json", headers, body: null })

const plain = server({ data: "demo" })
plain.control("PUT", "/limits", { requestsPerMinute: null })
const document = JSON.parse(textOf(plain).body) as Json
const paths = document["paths"] as Tree
const openapi = contract(document)

/** Sends a request and validates the response against the document. */
const asking =
  (call: Server["call"]) =>
  (method: string, url: string, body?: unknown, headers: Record<string, string> = {}): HttpReply => {
    const response = call(method, url, body, headers)
    const problems = openapi.answerProblems({ method, url }, { ...response, text: response.text })
    assert.deepStrictEqual(problems, [], `${method} ${url} ${response.status}`)
    if (response.status < 300 && response.status !== 207) {
      const text = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body)
      assert.deepStrictEqual(openapi.requestProblems({ method, url, headers, text }), [], `${method} ${url}`)
    }
    return response
  }

const ask = asking(plain.call)

describe("the OpenAPI document", () => {
  it("is valid, always the same, and needs no token", async () => {
    const { status, headers, body } = textOf(plain)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers["Content-Type"], "application/json")
    assert.strictEqual(textOf(plain, { authorization: "Bearer unknown" }).body, body)
    const { valid, errors } = await new Validator().validate(JSON.parse(body) as Record<string, unknown>)
    assert.deepStrictEqual(errors ?? [], [])
    assert.isTrue(valid)
    const { served } = plain
    const put = served.handle({ method: "PUT", url: "/!/api/v2/openapi.json", headers: {}, body: null })
    assert.deepStrictEqual([put.status, put.headers["Allow"]], [405, "GET"])
  })

  it("has every resource and operation of the catalogue, and the webhooks", () => {
    const verbs = { L: ["", "get"], C: ["", "post"], B: ["/batch", "post"] } as const
    const onOne = { R: "get", U: "patch", D: "delete" } as const
    let count = 0
    for (const { path, operations } of serviceV2.resources.values()) {
      for (const letter of operations) {
        const [below, verb] = letter in verbs ? verbs[letter as "L"] : ["/{id}", onOne[letter as "R"]]
        assert.property(paths[`/${path}${below}`] ?? {}, verb, `${path} ${letter}`)
        count++
      }
    }
    assert.isAbove(count, 100)
    assert.property(paths, "/me")
    assert.sameMembers(Object.keys(paths["/webhooks"]!), ["get", "post"])
    assert.sameMembers(Object.keys(paths["/webhooks/{id}"]!), ["get", "patch", "delete"])
    for (const path of ["/orders/{id}/invoice", "/invoices/{id}/post", "/webhooks/{id}/test"]) {
      assert.property(paths[path]!, "post")
    }
  })

  it("has no operation that the server does not route", () => {
    for (const [template, item] of Object.entries(paths)) {
      for (const method of Object.keys(item)) {
        const response = plain.call(method.toUpperCase(), template.replace("{id}", "999999"))
        assert.notStrictEqual(response.status, 405, `${method} ${template}`)
        if (!template.includes("{id}")) assert.notStrictEqual(response.status, 404, `${method} ${template}`)
      }
    }
  })

  it("lists every code, under its own status", () => {
    const listed = new Map<string, Set<number>>()
    const visit = (node: unknown, status: number) => {
      if (typeof node !== "object" || node === null) return
      const codes = (node as { properties?: { code?: { enum?: ReadonlyArray<string> }; message?: unknown } }).properties
      if (codes?.message !== undefined && codes.code?.enum !== undefined && !("field" in node)) {
        for (const code of codes.code.enum) listed.set(code, (listed.get(code) ?? new Set()).add(status))
      }
      for (const member of Object.values(node)) visit(member, status)
    }
    const { responses } = document["components"] as Tree
    for (const [name, response] of Object.entries(responses!)) {
      const status = /^Refused(\d+)_/.exec(name)?.[1] ?? (name === "MethodNotAllowed" ? "405" : "404")
      visit(response, Number(status))
    }
    for (const { code, status } of serviceV2.errorCodes) {
      // Codes of operations that are not implemented are listed too.
      if (!listed.has(code)) continue
      assert.deepStrictEqual([...listed.get(code)!], [status], code)
    }
    assert.isAtLeast(listed.size, serviceV2.errorCodes.length - 2)
  })
})

describe("responses, compared with the OpenAPI document", () => {
  it("conform for every list and record", () => {
    for (const { path, operations, specials } of serviceV2.resources.values()) {
      const { body } = ask("GET", `/${path}?cancel=any&limit=20`)
      ask("GET", `/${path}?include=custom_fields&limit=1`)
      for (const wrong of ["limit=0", "limit=x", "cancel=maybe", "colour=1", "limit=1&limit=2", "cursor=abc"]) {
        assert.strictEqual(ask("GET", `/${path}?${wrong}`).status, 400)
      }
      for (const { id } of (body["data"] as ReadonlyArray<Json>).slice(0, 3)) {
        if (operations.includes("R")) ask("GET", `/${path}/${String(id)}?include=custom_fields`)
        for (const { method, name } of specials) {
          if (method === "GET" && !/pdf|boxlabels/.test(name)) ask(method, `/${path}/${String(id)}/${name}`)
        }
      }
      if (operations.includes("R")) assert.strictEqual(ask("GET", `/${path}/999999`).status, 404)
    }
  })

  it("conform for writes", () => {
    const { id, lines } = order(plain.call)
    const invoice = postedInvoice(plain.call, "100")
    const shipped = { orderid: id, lines: [{ orderlineid: lines[0]!["id"], quantity: "1.5" }] }
    assert.strictEqual(ask("POST", "/shipments", shipped).status, 201)
    assert.strictEqual(ask("POST", "/payments", { invoiceid: invoice["id"], amount: "10", method: 2 }).status, 201)
    const batch = ask("POST", "/payments/batch", [{ invoiceid: invoice["id"], amount: "1" }, { amount: 1 }, 5])
    const results = batch.body["results"] as ReadonlyArray<Json>
    assert.deepStrictEqual(
      results.map(({ status }) => status),
      [201, 400, 400]
    )
    assert.strictEqual(ask("POST", `/orders/${id}/invoice`, { invoicedate: "2026-03-16" }).status, 201)
    const made = ask("POST", "/salesmen", { name: "Ada", externalid: null }, { "idempotency-key": "ada" })
    const again = ask("POST", "/salesmen", { name: "Ada", externalid: null }, { "idempotency-key": "ada" })
    assert.strictEqual(again.headers["Idempotent-Replayed"], "true")
    assert.strictEqual(ask("POST", "/salesmen", { name: "Eve" }, { "idempotency-key": "ada" }).status, 409)
    const url = `/salesmen/${String(made.body["id"])}`
    assert.strictEqual(codeOf(ask("PATCH", url, { name: "Bo" }, { "if-match": '"v0"' })), "stale_record")
    assert.strictEqual(ask("PATCH", url, { name: "Bo" }, { "if-match": made.headers["ETag"]! }).status, 200)
    assert.strictEqual(ask("POST", "/salesmen", { name: "bo" }).status, 409)
    assert.strictEqual(ask("DELETE", url).status, 200)
    const hook = { url: "https://receiver.example/hook", events: ["orders.created"], description: null }
    const subscription = ask("POST", "/webhooks", hook)
    assert.strictEqual(subscription.status, 201)
    const hookUrl = `/webhooks/${String(subscription.body["id"])}`
    assert.strictEqual(ask("GET", hookUrl).status, 200)
    assert.strictEqual(ask("PATCH", hookUrl, {}).status, 400)
    assert.strictEqual(ask("PATCH", hookUrl, { paused: true }).status, 200)
    assert.strictEqual(ask("GET", `${hookUrl}/deliveries?delivered=true`).status, 200)
    assert.strictEqual(ask("POST", "/webhooks", { ...hook, url: "http://receiver.example" }).status, 422)
    assert.strictEqual(ask("DELETE", hookUrl).status, 200)
  })

  it("conform for rejections of each status", () => {
    const { token, caller, control } = plain
    assert.strictEqual(asking(caller("unknown"))("GET", "/orders").status, 401)
    assert.strictEqual(asking(caller(token({ scopes: ["orders:read"] })))("POST", "/customers", {}).status, 403)
    assert.strictEqual(asking(caller(token({ active: false })))("GET", "/me").status, 403)
    assert.strictEqual(ask("GET", "/nowhere").status, 404)
    assert.strictEqual(ask("PUT", "/orders").status, 405)
    assert.strictEqual(ask("POST", "/orders", "{").status, 400)
    assert.strictEqual(ask("POST", "/orders", { customerid: 1, colour: 1, ordertype: "x" }).status, 400)
    assert.strictEqual(ask("POST", "/orders", { customerid: 999999 }).status, 422)
    assert.strictEqual(ask("POST", "/payments/batch", [{ path: "/invoices/1/pdf" }]).status, 415)
    control("POST", "/faults", { rules: [{ kind: "status", status: 500, path: "/me", times: 1 }] })
    assert.strictEqual(ask("GET", "/me").status, 500)
    control("PUT", "/limits", { requestsPerMinute: 0 })
    assert.strictEqual(ask("GET", "/me").status, 429)
    control("PUT", "/limits", { requestsPerMinute: null })
    assert.strictEqual(ask("GET", "/me").status, 200)
  })

  it("are reported by the validator if they are altered", () => {
    const response = plain.call("GET", "/payments?limit=1")
    const altered = (text: string) => openapi.answerProblems({ method: "GET", url: "/payments" }, { ...response, text })
    assert.deepStrictEqual(altered(response.text), [])
    assert.isNotEmpty(altered(response.text.replace(/"amount":"[^"]+"/, '"amount":"1.5"')))
    assert.isNotEmpty(altered(response.text.replace(/"amount":"[^"]+"/, '"amount":1.5')))
    assert.isNotEmpty(altered(response.text.replace(/"amount":"[^"]+",/, "")))
    assert.isNotEmpty(altered(response.text.replace('"amount"', '"colour":1,"amount"')))
    assert.isNotEmpty(altered(response.text.replace('"has_more"', '"hasmore"')))
    const headers = { ...response.headers, "Svc-Request-Id": undefined }
    assert.isNotEmpty(openapi.answerProblems({ method: "GET", url: "/payments" }, { ...response, headers }))
    assert.isNotEmpty(openapi.requestProblems({ method: "GET", url: "/payments?limit=251", headers: {}, text: null }))
    const text = JSON.stringify({ invoiceid: 1, amount: "1.00001" })
    assert.isNotEmpty(openapi.requestProblems({ method: "POST", url: "/payments", headers: {}, text }))
  })
})
