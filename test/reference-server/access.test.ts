import { assert, describe, it } from "vitest"
import { codeOf, dataOf, order, server } from "./support.ts"

describe("access to the reference server", () => {
  it("rejects an invalid token with its code and challenge", () => {
    const { served, token, caller, control } = server()
    const bare = (headers: Record<string, string>) =>
      served.handle({ method: "GET", url: "/!/api/v2/me", headers, body: null })
    for (const headers of [
      {},
      { authorization: "Basic abc" },
      { authorization: "Bearer" },
      { authorization: "Bearer unknown" }
    ]) {
      const { status, headers: answered, body } = bare(headers)
      assert.strictEqual(status, 401)
      assert.match(body, /"unauthorized"/)
      assert.strictEqual(answered["WWW-Authenticate"], 'Bearer realm="api", error="invalid_token"')
    }
    const revoked = token({ expires: "2026-03-16T09:30:00Z" })
    assert.strictEqual(caller(revoked)("GET", "/me").status, 200)
    control("POST", "/clock", { advanceSeconds: 1800 })
    assert.strictEqual(codeOf(caller(revoked)("GET", "/me")), "token_expired")
    control("POST", "/tokens/revoke", { token: revoked })
    assert.strictEqual(codeOf(caller(revoked)("GET", "/me")), "token_revoked")
    for (const options of [{ supervisor: false }, { active: false }, { usercompany: 2 }]) {
      const response = caller(token(options))("GET", "/nowhere")
      assert.deepStrictEqual([response.status, codeOf(response)], [403, "forbidden"])
      assert.notProperty(response.headers, "WWW-Authenticate")
    }
  })

  it("requires the scope of the operation and names it", () => {
    const { token, caller } = server()
    const call = caller(token({ scopes: ["orders:write"] }))
    const response = call("GET", "/orders")
    assert.deepStrictEqual([response.status, codeOf(response)], [403, "insufficient_scope"])
    assert.strictEqual(
      response.headers["WWW-Authenticate"],
      'Bearer realm="api", error="insufficient_scope", scope="orders:read"'
    )
    assert.match(call("POST", "/orders/1/invoice").headers["WWW-Authenticate"]!, /invoices:write/)
    assert.match(call("DELETE", "/orders/1").headers["WWW-Authenticate"]!, /orders:cancel/)
    assert.strictEqual(call("GET", "/me").status, 200)
  })

  it("is checked in the order of C-02", () => {
    const { token, caller, control } = server()
    const call = caller(token({ scopes: ["setup:read"] }))
    control("PUT", "/companies/1", { features: { payroll: false } })
    control("PUT", "/limits", { requestsPerMinute: 1 })
    assert.strictEqual(call("GET", "/salesmen").status, 200)
    assert.strictEqual(codeOf(call("GET", "/nowhere")), "not_found")
    assert.strictEqual(codeOf(call("PUT", "/salesmen")), "method_not_allowed")
    assert.strictEqual(codeOf(call("GET", "/prpaytypes")), "feature_not_licensed")
    assert.strictEqual(codeOf(call("GET", "/orders")), "insufficient_scope")
    assert.strictEqual(codeOf(call("GET", "/salesmen?colour=1")), "rate_limited")
    control("PUT", "/limits", { requestsPerMinute: null })
    assert.strictEqual(codeOf(call("GET", "/salesmen?colour=1")), "unknown_parameter")
  })

  it("answers 405 with the methods of the path", () => {
    const { call } = server()
    const allow = (method: string, path: string) => {
      const response = call(method, path)
      assert.strictEqual(response.status, 405)
      return response.headers["Allow"]
    }
    assert.strictEqual(allow("PUT", "/shipments"), "GET, POST")
    assert.strictEqual(allow("HEAD", "/shipments"), "GET, POST")
    assert.strictEqual(allow("OPTIONS", "/shipments/1"), "GET, PATCH, DELETE")
    assert.strictEqual(allow("GET", "/shipments/batch"), "POST")
    assert.strictEqual(allow("GET", "/invoicelines/1"), "")
    assert.strictEqual(allow("GET", "/orders/1/invoice"), "POST")
    assert.strictEqual(allow("POST", "/me"), "GET")
  })

  it("answers 404 at malformed paths and ids", () => {
    const { call } = server()
    for (const path of [
      "",
      "/",
      "/Orders",
      "/orders/",
      "/orders/1/",
      "/orders//1",
      "/orders/1/lines",
      "/%zz",
      "/shipments/1/post"
    ]) {
      assert.strictEqual(call("GET", path).status, 404, path)
    }
    for (const id of ["0", "01", "-1", "1.0", "abc", "9999999999999999999"]) {
      assert.strictEqual(codeOf(call("GET", `/orders/${id}`)), "not_found", id)
    }
  })

  it("separates companies, except for the install's shared payment terms", () => {
    const { call, caller, token } = server()
    const other = caller(token({ company: 2 }))
    const { id, customer } = order(call)
    assert.strictEqual(codeOf(other("GET", `/orders/${id}`)), "not_found")
    assert.lengthOf(dataOf(other("GET", "/customers?cancel=any")), 0)
    assert.strictEqual(codeOf(other("POST", "/orders", { customerid: customer["id"] })), "unknown_value")
    assert.strictEqual(call("POST", "/invoiceterms", { verbal: "Net 7" }).status, 201)
    assert.strictEqual(codeOf(other("POST", "/invoiceterms", { verbal: "NET 7" })), "duplicate")
    assert.lengthOf(dataOf(other("GET", "/invoiceterms?verbal=net+7")), 1)
  })

  it("counts records against the licensed limits", () => {
    const { call, control } = server()
    control("PUT", "/companies/1", { recordLimits: { customers: 1 } })
    assert.strictEqual(call("POST", "/customers", { customercode: "A" }).status, 201)
    const response = call("POST", "/customers", { customercode: "B" })
    assert.deepStrictEqual([response.status, codeOf(response)], [403, "record_limit_reached"])
    assert.strictEqual(call("POST", "/items", { sku: "A" }).status, 201)
    control("PUT", "/companies/1", { recordLimits: { customers: null } })
    assert.strictEqual(call("POST", "/customers", { customercode: "B" }).status, 201)
  })
})

describe("the rate limit of the reference server", () => {
  it("slides over 60 seconds and sends the time to wait", () => {
    const { call, control } = server()
    control("PUT", "/limits", { requestsPerMinute: 3 })
    const get = () => call("GET", "/salesmen")
    assert.strictEqual(get().status, 200)
    control("POST", "/clock", { advanceSeconds: 20 })
    assert.strictEqual(get().status, 200)
    assert.strictEqual(get().status, 200)
    for (let again = 0; again < 5; again++) {
      const response = get()
      assert.deepStrictEqual(
        [response.status, codeOf(response), response.headers["Retry-After"]],
        [429, "rate_limited", "40"]
      )
    }
    control("POST", "/clock", { advanceSeconds: 39.5 })
    assert.strictEqual(get().headers["Retry-After"], "1")
    control("POST", "/clock", { advanceSeconds: 0.5 })
    assert.strictEqual(get().status, 200)
    assert.strictEqual(get().headers["Retry-After"], "20")
  })

  it("counts each token alone, or the install as one", () => {
    const { token, caller, control } = server()
    const [a, b] = [caller(token()), caller(token())]
    control("PUT", "/limits", { requestsPerMinute: 1 })
    assert.deepStrictEqual([a("GET", "/me").status, b("GET", "/me").status, a("GET", "/me").status], [200, 200, 429])
    control("PUT", "/limits", { rateScope: "install" })
    assert.deepStrictEqual([a("GET", "/me").status, b("GET", "/me").status], [200, 429])
  })

  it("sends Retry-After as a date if configured", () => {
    const { call, control } = server()
    control("PUT", "/limits", { requestsPerMinute: 0 })
    control("PUT", "/dialect", { retryAfter: "date" })
    assert.strictEqual(call("GET", "/me").headers["Retry-After"], "Mon, 16 Mar 2026 09:01:01 GMT")
  })
})
