/** Access: tokens, scopes, companies, licences, and the order of the checks. */
import { assert, describe } from "vitest"
import {
  advance,
  baseUrl,
  challenge,
  companyOf,
  control,
  idOf,
  ids,
  isRow,
  it,
  keptPromises,
  mint,
  newCompany,
  outOfScope,
  page,
  refused,
  send,
  serverNow,
  stamp,
  succeeded,
  tokenFor,
  useServer,
  type Answer
} from "./harness.ts"
import { CHANGE, RESOURCES } from "./resources.ts"
import { makeSalesman } from "./world.ts"

useServer()

function unauthorized(answer: Answer, code: string): void {
  refused(answer, code)
  const { scheme, params } = challenge(answer)
  assert.strictEqual(scheme, "Bearer")
  assert.strictEqual(params["error"], "invalid_token")
  assert.isNotEmpty(params["realm"] ?? "")
}

describe("a token", () => {
  it("[AUTH-01][AUTH-06][C-07][GEN-07][GEN-08][VER-01] suffices as a bearer token over plain HTTP", async () => {
    assert.match(await baseUrl(), /^http:\/\/.*\/!\/api\/v2$/)
    const c = await newCompany()
    page(await c.get("/salesmen"))
  })

  it("[C-01][AUTH-18] is challenged by WWW-Authenticate with quoted parameters", async (c) => {
    const anonymous = await send({ method: "GET", path: "/salesmen" })
    assert.match(String(anonymous.headers["www-authenticate"]), /^Bearer realm="[^"]+", error="invalid_token"/)
    const answer = await (await c.with("users:read")).get("/salesmen")
    assert.match(String(answer.headers["www-authenticate"]), /\bscope="setup:read"/)
  })

  it("[AUTH-12][AUTH-18] is required in its form: any other or no Authorization header is 401 unauthorized", async ({
    token
  }) => {
    const unknown = ["any-token", `${token}x`, token.slice(0, -1), "__proto__", "constructor", "x".repeat(4000)]
    const malformed = ["", "Bearer", "Bearer ", token, `Basic ${token}`, `Token ${token}`, `Bearer${token}`]
    for (const authorization of [
      undefined,
      ...malformed,
      `Bearer ${token} extra`,
      `Bearer "${token}"`,
      ...unknown.map((each) => `Bearer ${each}`)
    ]) {
      const headers = authorization === undefined ? {} : { authorization }
      unauthorized(await send({ method: "GET", path: "/salesmen", headers }), "unauthorized")
      unauthorized(await send({ method: "POST", path: "/salesmen", headers, body: { name: "x" } }), "unauthorized")
    }
  })

  it("[AUTH-05][VER-02] is not accepted in the query string, nor replaced by the HMAC parameters of version 1", async (c) => {
    const path = "/salesmen?auth%5Burl%5D=x&auth%5Btime%5D=1&auth%5Bhash%5D=0"
    unauthorized(await send({ method: "GET", path }), "unauthorized")
    for (const name of ["access_token", "token", "authorization"]) {
      unauthorized(await send({ method: "GET", path: `/salesmen?${name}=${c.token}` }), "unauthorized")
      refused(await c.get(`/salesmen?${name}=x`), "unknown_parameter", name)
    }
  })

  it("[AUTH-13][AUTH-04][AUTH-18] is rejected from the next request after its revocation", async (c) => {
    page(await c.get("/salesmen"))
    await control("POST", "/tokens/revoke", { token: c.token })
    unauthorized(await c.get("/salesmen"), "token_revoked")
    unauthorized(await c.post("/salesmen", { name: "x" }), "token_revoked")
  })

  it("[AUTH-14][AUTH-18][C-03] past its expiry is 401 token_expired, and token_revoked once it is revoked", async (c) => {
    const { token } = await mint({ company: c.id, expires: "2020-01-01T00:00:00Z" })
    unauthorized(await send({ method: "GET", path: "/salesmen", token }), "token_expired")
    await control("POST", "/tokens/revoke", { token })
    unauthorized(await send({ method: "GET", path: "/salesmen", token }), "token_revoked")
  })

  it("[AUTH-03][AUTH-14] without an expiry outlives one with an expiry", async (c) => {
    const expires = stamp((await serverNow()) + 3600n * 1_000_000n)
    const { token } = await mint({ company: c.id, expires })
    page(await send({ method: "GET", path: "/salesmen", token }))
    await advance(3601)
    unauthorized(await send({ method: "GET", path: "/salesmen", token }), "token_expired")
    await advance(400 * 86_400)
    page(await c.get("/salesmen"))
  })

  it("[AUTH-02][GEN-04][GEN-05] reads and writes its own company only", async (a, b) => {
    const ofA = await makeSalesman(a)
    const ofB = await makeSalesman(b)
    assert.deepEqual(ids(await a.list("/salesmen")), [idOf(ofA)])
    assert.deepEqual(ids(await b.list("/salesmen")), [idOf(ofB)])
    refused(await a.get(`/salesmen?company=${b.id}`), "unknown_parameter", "company")
    refused(await a.post("/salesmen", { name: "x", companyid: b.id }), "unknown_parameter", "companyid")
  })
})

it("a user of a token [AUTH-09][AUTH-16][AUTH-20][C-05] who is inactive, or no supervisor of the company, is 403 forbidden", async (a, b) => {
  for (const more of [{ supervisor: false }, { active: false }, { usercompany: b.id }]) {
    const { token } = await mint({ company: a.id, ...more })
    const answer = await send({ method: "GET", path: "/salesmen", token })
    refused(answer, "forbidden")
    assert.isUndefined(answer.headers["www-authenticate"])
    refused(await send({ method: "POST", path: "/salesmen", token, body: { name: "x" } }), "forbidden")
    refused(await send({ method: "GET", path: "/me", token }), "forbidden")
  }
  assert.isEmpty(await a.list("/salesmen"))
  assert.isEmpty(await b.list("/salesmen"))
})

describe("the scopes of a token", () => {
  for (const { path, area, ops, make, body } of RESOURCES) {
    it(`[SCOPE-24][AUTH-10][AUTH-15][AUTH-19][SCOPE-01][SCOPE-07][SCOPE-10][SCOPE-12][SCOPE-13][SCOPE-17][SCOPE-18][SCOPE-19][SCOPE-21][SCOPE-22][C-04] are required on ${path}: each operation needs its own access to ${area}`, async (c) => {
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

  it("[SCOPE-03][SCOPE-04][C-04] with write only allow a create and its response, not reading or cancelling", async (c) => {
    const writer = await c.with("setup:write")
    const created = await makeSalesman(writer, { email1: "a@b.example" })
    assert.strictEqual(created["email1"], "a@b.example")
    outOfScope(await writer.get(`/salesmen/${idOf(created)}`), "setup:read")
    outOfScope(await writer.del(`/salesmen/${idOf(created)}`), "setup:cancel")
    assert.strictEqual((await c.read("salesmen", idOf(created)))["cancel"], false)
  })

  it("[SCOPE-05][SCOPE-10][RES-14] of one area give no access to another", async (c) => {
    const orders = await c.with("orders:read", "orders:write", "orders:cancel")
    outOfScope(await orders.get("/payments"), "payments:read")
    outOfScope(await orders.get("/orderdeposits"), "payments:read")
    outOfScope(await orders.get("/shipments"), "shipments:read")
    outOfScope(await orders.get("/invoicelines"), "invoices:read")
    outOfScope(await orders.get("/salesmen"), "setup:read")
    page(await orders.get("/rmareturns"))
    page(await orders.get("/orders"))
  })

  it("[SPECIAL-10][RES-04][C-05] are returned by /me with company and user for any valid token", async (c) => {
    const scoped = await c.with("orders:read", "payments:cancel")
    const me = succeeded(await scoped.get("/me"))
    assert.sameMembers(me["scopes"] as string[], ["orders:read", "payments:cancel"])
    assert.strictEqual(me["companyid"], c.id)
    assert.isNull(me["expires"])
    assert.isTrue(Number.isInteger(me["userid"]))
    assert.isTrue(Array.isArray(me["features"]))
    assert.isTrue(isRow(me["resources"]))
    for (const key of ["tokenid", "user"]) assert.property(me, key)
    for (const method of ["POST", "PATCH", "DELETE", "PUT"])
      refused(await scoped.probe(method, "/me"), "method_not_allowed")
  })
})

describe("the order of the checks (C-02)", () => {
  it("[C-02][AUTH-11][C-13] puts 401 before forbidden, and both before an unknown path, a wrong verb and scope", async (c) => {
    const forbidden = companyOf(c.id, (await mint({ company: c.id, supervisor: false, scopes: [] })).token)
    const narrow = await c.with("users:read")
    for (const [method, path, code] of [
      ["GET", "/nosuchthing", "not_found"],
      ["PUT", "/salesmen", "method_not_allowed"],
      ["DELETE", "/invoicelines/1", "method_not_allowed"],
      ["GET", "/salesmen", "insufficient_scope"]
    ] as const) {
      unauthorized(await send({ method, path }), "unauthorized")
      refused(await forbidden.send({ method, path }), "forbidden")
      refused(await narrow.send({ method, path }), code)
    }
    unauthorized(await send({ method: "POST", path: "/salesmen", raw: "{" }), "unauthorized")
  })

  it("[C-02] puts scope before body, parameters and id, so that existence never leaks", async (c) => {
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

  it("[C-02][AUTH-17][AUTH-20][C-08] puts a licence before scope, and leaves other resources working", async (c) => {
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
    if (path === "invoiceterms") continue
    it(`[GEN-06][CODE-09][TASKSTATUSES-10] hides another company's record: ${path} answers as if it did not exist`, async (a, b) => {
      const id = idOf(await make(a))
      assert.include(ids(await a.list(`/${path}`)), id)
      assert.isEmpty(await b.list(`/${path}?cancel=any`))
      if (!ops.includes("R")) return
      const before = await a.read(path, id)
      for (const answer of [
        ...(ops.includes("U") ? [await b.patch(`/${path}/${id}`, CHANGE)] : []),
        ...(ops.includes("D") ? [await b.del(`/${path}/${id}`)] : [])
      ]) {
        refused(answer, "not_found")
      }
      assert.deepEqual(await a.read(path, id), before)
      // The answer does not distinguish a foreign record from an absent one.
      const [foreign, absent] = [await b.get(`/${path}/${id}`), await b.get(`/${path}/999999999`)]
      refused(foreign, "not_found")
      assert.strictEqual(foreign.text.replaceAll(String(id), "#"), absent.text.replaceAll("999999999", "#"))
    })
  }
})

keptPromises()
