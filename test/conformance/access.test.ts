/** Access: tokens, scopes, companies, licences, and the order of the checks. */
import { assert, describe, it } from "vitest"
import {
  advance,
  baseUrl,
  challenge,
  companyOf,
  control,
  etagOf,
  idOf,
  ids,
  integer,
  isRow,
  keptPromises,
  mint,
  newCompany,
  page,
  refused,
  row,
  send,
  serverNow,
  stamp,
  succeeded,
  tokenFor,
  useServer,
  type Answer
} from "./harness.ts"
import { CHANGE, RESOURCES } from "./resources.ts"
import { makeCustomer, makeSalesman } from "./world.ts"

useServer()

function unauthorized(answer: Answer, code: string): void {
  refused(answer, code)
  const { scheme, params } = challenge(answer)
  assert.strictEqual(scheme, "Bearer")
  assert.strictEqual(params["error"], "invalid_token")
  assert.isNotEmpty(params["realm"] ?? "")
}

function outOfScope(answer: Answer, scope: string): void {
  refused(answer, "insufficient_scope")
  const { scheme, params } = challenge(answer)
  assert.strictEqual(scheme, "Bearer")
  assert.strictEqual(params["error"], "insufficient_scope")
  assert.strictEqual(params["scope"], scope)
  assert.isNotEmpty(params["realm"] ?? "")
}

describe("a token", () => {
  it("[AUTH-01][AUTH-06][C-07][GEN-07][GEN-08][VER-01] suffices as a bearer token over plain HTTP", async () => {
    assert.match(await baseUrl(), /^http:\/\/.*\/!\/api\/v2$/)
    const c = await newCompany()
    page(await c.get("/salesmen"))
  })

  it("[C-01][AUTH-18] is challenged by WWW-Authenticate with quoted parameters", async () => {
    const c = await newCompany()
    const anonymous = await send({ method: "GET", path: "/salesmen" })
    assert.match(String(anonymous.headers["www-authenticate"]), /^Bearer realm="[^"]+", error="invalid_token"/)
    const answer = await (await c.with("users:read")).get("/salesmen")
    assert.match(String(answer.headers["www-authenticate"]), /\bscope="setup:read"/)
  })

  it("[C-06][AUTH-08] is not issued, listed or revoked under any path", async () => {
    const c = await newCompany()
    for (const path of ["tokens", "token", "accesstokens", "oauth/token"]) {
      refused(await c.get(`/${path}`), "not_found")
      refused(await c.post(`/${path}`, {}), "not_found")
    }
  })

  it("[AUTH-12][AUTH-18] is required: no Authorization header is 401 unauthorized", async () => {
    unauthorized(await send({ method: "GET", path: "/salesmen" }), "unauthorized")
    unauthorized(await send({ method: "POST", path: "/salesmen", body: { name: "x" } }), "unauthorized")
  })

  it("[AUTH-12][AUTH-18] in a malformed Authorization header is 401 unauthorized", async () => {
    const { token } = await newCompany()
    for (const authorization of [
      "",
      "Bearer",
      "Bearer ",
      token,
      `Basic ${token}`,
      `Token ${token}`,
      `Bearer${token}`,
      `Bearer ${token} extra`,
      `Bearer "${token}"`
    ]) {
      unauthorized(await send({ method: "GET", path: "/salesmen", headers: { authorization } }), "unauthorized")
    }
  })

  it("[AUTH-12] that is unknown is 401 unauthorized, also if one letter differs", async () => {
    const { token } = await newCompany()
    unauthorized(await send({ method: "GET", path: "/salesmen", token: "any-token" }), "unauthorized")
    unauthorized(await send({ method: "GET", path: "/salesmen", token: `${token}x` }), "unauthorized")
    unauthorized(await send({ method: "GET", path: "/salesmen", token: token.slice(0, -1) }), "unauthorized")
    for (const token of ["__proto__", "constructor", "toString"]) {
      unauthorized(await send({ method: "GET", path: "/salesmen", token }), "unauthorized")
    }
  })

  it("[AUTH-05] is not accepted in the query string", async () => {
    const c = await newCompany()
    for (const name of ["access_token", "token", "authorization"]) {
      unauthorized(await send({ method: "GET", path: `/salesmen?${name}=${c.token}` }), "unauthorized")
      const answer = await c.get(`/salesmen?${name}=x`)
      refused(answer, "unknown_parameter", name)
    }
  })

  it("[VER-02] is not replaced by the HMAC parameters of version 1", async () => {
    const path = "/salesmen?auth%5Burl%5D=x&auth%5Btime%5D=1&auth%5Bhash%5D=0"
    unauthorized(await send({ method: "GET", path }), "unauthorized")
  })

  it("[AUTH-13][AUTH-04][AUTH-18] is rejected from the next request after its revocation", async () => {
    const c = await newCompany()
    page(await c.get("/salesmen"))
    await control("POST", "/tokens/revoke", { token: c.token })
    unauthorized(await c.get("/salesmen"), "token_revoked")
    unauthorized(await c.post("/salesmen", { name: "x" }), "token_revoked")
  })

  it("[AUTH-14][AUTH-18] past its expiry is 401 token_expired", async () => {
    const c = await newCompany()
    const { token } = await mint({ company: c.id, expires: "2020-01-01T00:00:00Z" })
    unauthorized(await send({ method: "GET", path: "/salesmen", token }), "token_expired")
  })

  it("[C-03] that is revoked and expired is token_revoked", async () => {
    const c = await newCompany()
    const { token } = await mint({ company: c.id, expires: "2020-01-01T00:00:00Z" })
    await control("POST", "/tokens/revoke", { token })
    unauthorized(await send({ method: "GET", path: "/salesmen", token }), "token_revoked")
  })

  it("[AUTH-03][AUTH-14] without an expiry outlives one with an expiry", async () => {
    const c = await newCompany()
    const expires = stamp((await serverNow()) + 3600n * 1_000_000n)
    const { token } = await mint({ company: c.id, expires })
    page(await send({ method: "GET", path: "/salesmen", token }))
    await advance(3601)
    unauthorized(await send({ method: "GET", path: "/salesmen", token }), "token_expired")
    await advance(400 * 86_400)
    page(await c.get("/salesmen"))
  })

  it("[AUTH-02][GEN-04][GEN-05] reads and writes its own company only", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const ofA = await makeSalesman(a)
    const ofB = await makeSalesman(b)
    assert.deepEqual(ids(await a.list("/salesmen")), [idOf(ofA)])
    assert.deepEqual(ids(await b.list("/salesmen")), [idOf(ofB)])
    refused(await a.get(`/salesmen?company=${b.id}`), "unknown_parameter", "company")
    refused(await a.post("/salesmen", { name: "x", companyid: b.id }), "unknown_parameter", "companyid")
  })
})

describe("a user of a token", () => {
  const people = [
    ["is no supervisor", { supervisor: false }],
    ["is inactive", { active: false }]
  ] as const
  for (const [what, more] of people) {
    it(`[AUTH-09][AUTH-16][AUTH-20] who ${what} is 403 forbidden`, async () => {
      const c = await newCompany()
      const { token } = await mint({ company: c.id, ...more })
      const answer = await send({ method: "GET", path: "/salesmen", token })
      refused(answer, "forbidden")
      assert.isUndefined(answer.headers["www-authenticate"])
    })
  }

  it("[AUTH-09][AUTH-16] who is supervisor of another company is 403 forbidden", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const { token } = await mint({ company: a.id, usercompany: b.id })
    refused(await send({ method: "GET", path: "/salesmen", token }), "forbidden")
    refused(await send({ method: "POST", path: "/salesmen", token, body: { name: "x" } }), "forbidden")
    assert.isEmpty(await a.list("/salesmen"))
    assert.isEmpty(await b.list("/salesmen"))
  })

  it("[C-05][AUTH-09] must be a supervisor for /me too", async () => {
    const c = await newCompany()
    const { token } = await mint({ company: c.id, supervisor: false })
    refused(await send({ method: "GET", path: "/me", token }), "forbidden")
  })
})

describe("the scopes of a token", () => {
  for (const { path, area, ops, make, body } of RESOURCES) {
    it(`[SCOPE-24][AUTH-10][AUTH-15][AUTH-19][SCOPE-01][C-04] are required on ${path}: each operation needs its own access to ${area}`, async () => {
      const c = await newCompany()
      const id = idOf(await make(c))
      const payload = await body(c)
      const needs: Array<readonly [string, string, unknown, "read" | "write" | "cancel"]> = [
        ["GET", `/${path}`, undefined, "read"],
        ["POST", `/${path}`, payload, "write"],
        ["POST", `/${path}/batch`, [payload], "write"]
      ]
      if (ops.includes("R")) needs.push(["GET", `/${path}/${id}`, undefined, "read"])
      if (ops.includes("U")) needs.push(["PATCH", `/${path}/${id}`, {}, "write"])
      if (ops.includes("D")) needs.push(["DELETE", `/${path}/${id}`, undefined, "cancel"])
      const others = (access: string) => ["read", "write", "cancel"].filter((each) => each !== access)
      for (const [method, url, sentBody, access] of needs) {
        const token = await tokenFor(c.id, ...others(access).map((each) => `${area}:${each}`), "users:read")
        outOfScope(await send({ method, path: url, token, body: sentBody }), `${area}:${access}`)
      }
      for (const [method, url, sentBody, access] of needs) {
        const token = await tokenFor(c.id, `${area}:${access}`)
        const answer = await send({ method, path: url, token, body: sentBody })
        assert.isBelow(answer.status, 300, `${method} ${url} with ${area}:${access}: ${answer.text}`)
      }
    })
  }

  it("[SCOPE-03][SCOPE-04][C-04] with write only allow a create and its response, not reading or cancelling", async () => {
    const c = await newCompany()
    const writer = await c.with("setup:write")
    const created = await makeSalesman(writer, { email1: "a@b.example" })
    assert.strictEqual(created["email1"], "a@b.example")
    outOfScope(await writer.get(`/salesmen/${idOf(created)}`), "setup:read")
    outOfScope(await writer.del(`/salesmen/${idOf(created)}`), "setup:cancel")
    assert.strictEqual((await c.read("salesmen", idOf(created)))["cancel"], false)
  })

  it("[SCOPE-05][SCOPE-10][RES-14] of one area give no access to another", async () => {
    const c = await newCompany()
    const orders = await c.with("orders:read", "orders:write", "orders:cancel")
    outOfScope(await orders.get("/payments"), "payments:read")
    outOfScope(await orders.get("/orderdeposits"), "payments:read")
    outOfScope(await orders.get("/shipments"), "shipments:read")
    outOfScope(await orders.get("/invoicelines"), "invoices:read")
    outOfScope(await orders.get("/salesmen"), "setup:read")
    page(await orders.get("/rmareturns"))
    page(await orders.get("/orders"))
  })

  it("[SCOPE-06][SCOPE-08][SCOPE-09][SCOPE-11][SCOPE-14][SCOPE-15][SCOPE-22][SCOPE-23] of an area cover its resources", async () => {
    const c = await newCompany()
    const covered: Readonly<Record<string, readonly string[]>> = {
      customers: ["customers", "shiptos"],
      orders: ["orders", "orderlines", "rmareturns"],
      invoices: ["invoices", "invoicelines"],
      shipments: ["shipments", "shipmentlines"],
      items: ["items"],
      glaccounts: ["glaccounts"],
      setup: ["salesmen", "invoiceterms", "carrierservices"],
      users: ["users"]
    }
    for (const [area, paths] of Object.entries(covered)) {
      const reader = await c.with(`${area}:read`)
      for (const path of paths) page(await reader.get(`/${path}`))
      const stranger = await c.with("gltransactions:read")
      for (const path of paths) outOfScope(await stranger.get(`/${path}`), `${area}:read`)
    }
  })

  it("[AUTH-11] that include every scope reach every resource", async () => {
    const c = await newCompany()
    for (const { path } of RESOURCES) page(await c.get(`/${path}`))
  })

  it("[SPECIAL-10][RES-04][C-05] are returned by /me with company and user for any valid token", async () => {
    const c = await newCompany()
    const scoped = await c.with("orders:read", "payments:cancel")
    const me = succeeded(await scoped.get("/me"))
    assert.sameMembers(me["scopes"] as string[], ["orders:read", "payments:cancel"])
    assert.strictEqual(me["companyid"], c.id)
    assert.isNull(me["expires"])
    assert.isTrue(Number.isInteger(me["userid"]))
    assert.isTrue(Array.isArray(me["features"]))
    assert.isTrue(isRow(me["resources"]))
    for (const key of ["tokenid", "user"]) assert.property(me, key)
    for (const method of ["POST", "PATCH", "DELETE", "PUT"]) {
      const answer = await scoped.send({ method, path: "/me", body: {} })
      refused(answer, "method_not_allowed")
    }
  })
})

describe("the order of the checks (C-02)", () => {
  it("[C-02] puts 401 before an unknown path and a wrong verb", async () => {
    unauthorized(await send({ method: "GET", path: "/nosuchthing" }), "unauthorized")
    unauthorized(await send({ method: "PUT", path: "/salesmen" }), "unauthorized")
    unauthorized(await send({ method: "POST", path: "/salesmen", raw: "{" }), "unauthorized")
  })

  it("[C-02][AUTH-11] puts forbidden before an unknown path, a wrong verb and scope", async () => {
    const c = await newCompany()
    const { token } = await mint({ company: c.id, supervisor: false, scopes: [] })
    refused(await send({ method: "GET", path: "/nosuchthing", token }), "forbidden")
    refused(await send({ method: "PUT", path: "/salesmen", token }), "forbidden")
    refused(await send({ method: "GET", path: "/salesmen", token }), "forbidden")
  })

  it("[C-02][C-13] puts an unknown path and a wrong verb before scope", async () => {
    const c = await newCompany()
    const none = await c.with("users:read")
    refused(await none.get("/nosuchthing"), "not_found")
    refused(await none.send({ method: "PUT", path: "/salesmen", body: {} }), "method_not_allowed")
    refused(await none.send({ method: "DELETE", path: "/invoicelines/1" }), "method_not_allowed")
  })

  it("[C-02] puts scope before body, parameters and id, so that existence never leaks", async () => {
    const c = await newCompany()
    const id = idOf(await makeSalesman(c))
    const reader = await c.with("setup:read")
    outOfScope(await reader.post("/salesmen", { bogus: 1 }), "setup:write")
    outOfScope(await reader.send({ method: "POST", path: "/salesmen", raw: "{" }), "setup:write")
    outOfScope(await reader.patch(`/salesmen/${id}`, {}), "setup:write")
    outOfScope(await reader.patch("/salesmen/999999999", {}), "setup:write")
    outOfScope(await reader.del("/salesmen/999999999"), "setup:cancel")
    const writer = await c.with("setup:write")
    outOfScope(await writer.get("/salesmen/999999999"), "setup:read")
    outOfScope(await writer.get("/salesmen?bogus=1"), "setup:read")
  })

  it("[C-02][AUTH-17][AUTH-20][C-08] puts a licence before scope, and leaves other resources working", async () => {
    const c = await newCompany()
    const none = await c.with("users:read")
    await c.settings({ features: { estimating: false } })
    const answer = await c.get("/estquotepricelists")
    refused(answer, "feature_not_licensed")
    assert.isUndefined(answer.headers["www-authenticate"])
    refused(await none.get("/estquotepricelists"), "feature_not_licensed")
    page(await c.get("/salesmen"))
    await c.settings({ features: { estimating: true } })
    page(await c.get("/estquotepricelists"))
  })
})

describe("the separation of companies", () => {
  for (const { path, ops, make } of RESOURCES) {
    if (path === "invoiceterms" || !ops.includes("R")) continue
    it(`[GEN-06][CODE-09] hides another company's record: ${path} answers as if it did not exist`, async () => {
      const a = await newCompany()
      const b = await newCompany()
      const record = await make(a)
      const id = idOf(record)
      const before = await a.read(path, id)
      for (const answer of [
        await b.get(`/${path}/${id}`),
        ...(ops.includes("U") ? [await b.patch(`/${path}/${id}`, CHANGE)] : []),
        ...(ops.includes("D") ? [await b.del(`/${path}/${id}`)] : [])
      ]) {
        refused(answer, "not_found")
      }
      assert.isEmpty(await b.list(`/${path}?cancel=any`))
      assert.deepEqual(await a.read(path, id), before)
      // The answer does not distinguish a foreign record from an absent one.
      const foreign = row(row((await b.get(`/${path}/${id}`)).json)["error"])
      const absent = row(row((await b.get(`/${path}/999999999`)).json)["error"])
      assert.deepEqual(Object.keys(foreign).sort(), Object.keys(absent).sort())
      assert.strictEqual(
        String(foreign["message"]).replaceAll(String(id), "#"),
        String(absent["message"]).replaceAll("999999999", "#")
      )
    })
  }

  for (const { path, ops, make } of RESOURCES) {
    if (path === "invoiceterms" || ops.includes("R")) continue
    it(`[GEN-06] limits a list to the token's company: ${path}`, async () => {
      const a = await newCompany()
      const b = await newCompany()
      const record = await make(a)
      assert.include(ids(await a.list(`/${path}`)), idOf(record))
      assert.isEmpty(await b.list(`/${path}?cancel=any`))
      assert.isEmpty(await b.list(`/${path}?externalid=`))
    })
  }

  it("[GEN-06] rejects an ETag of another company", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const made = await a.post("/salesmen", { name: "Ann" })
    const id = integer(row(made.json)["id"])
    refused(await b.patch(`/salesmen/${id}`, { name: "Eve" }, { "if-match": etagOf(made) }), "not_found")
  })

  it("[CODE-11][GEN-06] leaves a key of one company free in another", async () => {
    const a = await newCompany()
    const b = await newCompany()
    await a.create("salesmen", { name: "Ann" })
    await b.create("salesmen", { name: "Ann" })
    await makeCustomer(a, { customercode: "C1" })
    await makeCustomer(b, { customercode: "C1" })
  })

  it("[GEN-04] shows the same records to two tokens of one company", async () => {
    const a = await newCompany()
    const other = companyOf(a.id, await tokenFor(a.id, "*"))
    const record = await makeSalesman(a)
    assert.deepEqual(await other.read("salesmen", idOf(record)), await a.read("salesmen", idOf(record)))
  })
})

describe("a request without a token", () => {
  it("[C-05] returns the description of the API at /openapi.json", async () => {
    const document = succeeded(await send({ method: "GET", path: "/openapi.json" }))
    assert.match(String(document["openapi"]), /^3\./)
    const paths = Object.keys(row(document["paths"]))
    for (const { path } of RESOURCES)
      assert.isTrue(
        paths.some((each) => each.endsWith(`/${path}`)),
        path
      )
  })
})

keptPromises()
