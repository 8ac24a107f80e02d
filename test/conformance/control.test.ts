/** The control plane of the reference server (section 5.3 of the design). */
import { afterAll, afterEach, assert, describe, it } from "vitest"
import {
  advance,
  control,
  controlRaw,
  fresh,
  freeze,
  idOf,
  ids,
  isRow,
  keptPromises,
  micros,
  mint,
  newCompany,
  ndjson,
  page,
  refused,
  row,
  send,
  serverNow,
  stamp,
  state,
  succeeded,
  text,
  thaw,
  useServer,
  type Answer,
  type Company,
  type Row
} from "./harness.ts"
import { RESOURCES } from "./resources.ts"
import { makeSalesman } from "./world.ts"

useServer()
afterEach(async () => {
  await control("DELETE", "/faults")
})
afterAll(thaw)

const fault = (rule: Row, more: Row = {}) => control("POST", "/faults", { rules: [rule], ...more })

/** One request that may get any answer, or none. */
async function attempt(
  c: Company,
  sent: { method: string; path: string; body?: unknown; timeoutMs?: number }
): Promise<Answer | undefined> {
  try {
    return await c.send({ ...sent, faulty: true })
  } catch {
    return undefined
  }
}

describe("tokens of the control plane", () => {
  it("[AUTH-08] are created with an id of their own by POST /tokens", async () => {
    const c = await newCompany()
    const one = await mint({ company: c.id })
    const two = await mint({ company: c.id })
    assert.notStrictEqual(one.token, two.token)
    assert.notStrictEqual(one.tokenid, two.tokenid)
    assert.isDefined(one.tokenid)
    const me = succeeded(await send({ method: "GET", path: "/me", token: one.token }))
    assert.strictEqual(me["tokenid"], one.tokenid)
  })

  it("[AUTH-14] show their expiry in /me", async () => {
    const c = await newCompany()
    const expires = stamp((await serverNow()) + 86_400n * 1_000_000n)
    const { token } = await mint({ company: c.id, expires })
    assert.strictEqual(micros(succeeded(await send({ method: "GET", path: "/me", token }))["expires"]), micros(expires))
  })
})

describe("the clock of the control plane", () => {
  it("[E-02] stops when manual, moves on request, and runs again", async () => {
    const now = await freeze()
    assert.strictEqual(await serverNow(), now)
    await advance(90)
    assert.strictEqual(await serverNow(), now + 90n * 1_000_000n)
    await control("POST", "/clock", { now: stamp(now + 200n * 1_000_000n) })
    assert.strictEqual(await serverNow(), now + 200n * 1_000_000n)
    await thaw()
    const later = await serverNow()
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.isTrue((await serverNow()) > later)
  })

  it("[A-06][FIELD-14] stamps records", async () => {
    const c = await newCompany()
    const now = await freeze()
    const record = await makeSalesman(c)
    await thaw()
    assert.isTrue(micros(record["lastchangedate"]) >= now)
    assert.isTrue(micros(record["lastchangedate"]) < now + 1_000_000n)
  })
})

describe("records of the control plane", () => {
  it("[FIELD-01] have the given ids or the next ones, and are returned as stored", async () => {
    const c = await newCompany()
    const [stored] = await c.put("salesmen", [{ id: 700_001, name: "given" }])
    assert.strictEqual(idOf(row(stored)), 700_001)
    const [next, after] = await c.put("salesmen", [{ name: "next" }, { name: "after" }])
    assert.isTrue(idOf(row(next)) !== 700_001 && idOf(row(after)) !== idOf(row(next)))
    assert.strictEqual((await c.read("salesmen", 700_001))["name"], "given")
    const made = await makeSalesman(c)
    assert.notInclude([700_001, idOf(row(next)), idOf(row(after))], idOf(made))
  })

  it("[FIELD-14] have lastchangedate and entrydate set to `at`", async () => {
    const c = await newCompany()
    const at = "2025-03-04T05:06:07.000089Z"
    const [salesman] = await c.put("salesmen", [{ name: "x" }], at)
    assert.strictEqual(micros((await c.read("salesmen", idOf(row(salesman))))["lastchangedate"]), micros(at))
    const [shipment] = await c.put("shipments", [{}], at)
    const shown = await c.read("shipments", idOf(row(shipment)))
    assert.strictEqual(micros(shown["lastchangedate"]), micros(at))
    assert.strictEqual(micros(shown["entrydate"]), micros(at))
  })

  it("[FIELD-01] replace an older version", async () => {
    const c = await newCompany()
    const id = idOf(await makeSalesman(c, { email1: "old" }))
    await c.put("salesmen", [{ ...(await c.read("salesmen", id)), email1: "new", cancel: true }])
    assert.deepInclude(await c.read("salesmen", id), { email1: "new", cancel: true })
    assert.lengthOf(await c.list("/salesmen?cancel=any"), 1)
  })

  it("[GEN-10] may break rules: odd values are stored and shown", async () => {
    const c = await newCompany()
    const name = "a name that is longer than the fifty characters which the field holds"
    await c.put("salesmen", [{ name }, { name }])
    assert.deepEqual(
      (await c.list("/salesmen")).map((record) => record["name"]),
      [name, name]
    )
  })

  for (const each of RESOURCES) {
    it(`[FIELD-13] appear in the state of ${each.path} as in a list, also cancelled ones`, async () => {
      const c = await newCompany()
      await each.make(c)
      if (each.path !== "invoiceterms") await c.put(each.path, [each.cancel ? { cancel: true } : {}])
      const byId = (a: Row, b: Row) => idOf(a) - idOf(b)
      const listed = await c.list(`/${each.path}?cancel=any&limit=250`)
      assert.deepEqual((await state(c.id, each.path)).toSorted(byId), listed.toSorted(byId))
    })
  }

  it("[GEN-06] are separated by company in the state", async () => {
    const a = await newCompany()
    const b = await newCompany()
    await makeSalesman(a)
    assert.lengthOf(await state(a.id, "salesmen"), 1)
    assert.isEmpty(await state(b.id, "salesmen"))
  })

  it("[A-19] disappear without a trace after remove", async () => {
    const c = await newCompany()
    const kept = idOf(await makeSalesman(c))
    const gone = idOf(await makeSalesman(c))
    const before = text(page(await c.get("/salesmen")).syncedThrough)
    await control("POST", "/remove", { company: c.id, resource: "salesmen", id: gone })
    refused(await c.get(`/salesmen/${gone}`), "not_found")
    assert.deepEqual(ids(await c.list("/salesmen?cancel=any")), [kept])
    assert.deepEqual(ids(await state(c.id, "salesmen")), [kept])
    assert.notInclude(ids(await c.list(`/salesmen?modifiedsince=${before}`)), gone)
  })
})

describe("history and journal of the control plane", () => {
  it("[GEN-03] contain every committed version in commit order, and no rejected one", async () => {
    const c = await newCompany()
    const versions = async () => ndjson(await control("GET", `/history?company=${c.id}&resource=salesmen`))
    const id = idOf(await makeSalesman(c, { email1: "first" }))
    assert.lengthOf(await versions(), 1)
    succeeded(await c.patch(`/salesmen/${id}`, { email1: "second" }))
    refused(await c.patch(`/salesmen/${id}`, { salesman: 1 }), "invalid_type")
    succeeded(await c.patch(`/salesmen/${id}`, {}))
    succeeded(await c.del(`/salesmen/${id}`))
    const all = await versions()
    assert.lengthOf(all, 3)
    const seen = all.map((version) => JSON.stringify(version))
    assert.include(seen[0], "first")
    assert.include(seen[1], "second")
    assert.include(seen[2], '"cancel":true')
  })

  it("[AUTH-05][B-11] name requests by token id, never by token", async () => {
    const c = await newCompany()
    const { token, tokenid } = await mint({ company: c.id })
    const mark = fresh("journal")
    await send({ method: "GET", path: `/salesmen?name=${mark}`, token })
    await send({ method: "GET", path: `/nosuchthing-${mark}`, token })
    await send({ method: "GET", path: `/salesmen?name=${mark}&access_token=${token}` })
    await send({ method: "GET", path: `/salesmen/${token}`, token })
    const answer = await control("GET", "/requests")
    assert.include(answer.text, mark)
    assert.include(answer.text, String(tokenid))
    assert.notInclude(answer.text, token)
    assert.notInclude(answer.text, c.token)
    assert.match(answer.text, /"status"\s*:\s*200/)
    assert.match(answer.text, /"status"\s*:\s*404/)
    assert.match(answer.text, /"status"\s*:\s*401/)
  })
})

describe("a fault of the control plane", () => {
  it("[D-15][CODE-32] of the kind status returns that status for the given number of times", async () => {
    const c = await newCompany()
    await fault({ kind: "status", code: 503, times: 2 })
    const statuses: number[] = []
    for (let i = 0; i < 3; i += 1) statuses.push((await attempt(c, { method: "GET", path: "/salesmen" }))?.status ?? 0)
    assert.deepEqual(statuses, [503, 503, 200])
  })

  it("[D-15] of the kind status has the given headers and body", async () => {
    const c = await newCompany()
    const body = { error: { code: "rate_limited", message: "slow down" } }
    await fault({ kind: "status", code: 429, headers: { "retry-after": "7" }, body, times: 1 })
    const answer = await attempt(c, { method: "GET", path: "/salesmen" })
    assert.strictEqual(answer?.status ?? 0, 429)
    assert.strictEqual(answer?.headers["retry-after"], "7")
    assert.deepEqual(answer?.json, body)
  })

  it("[D-15] lets the first requests pass with after", async () => {
    const c = await newCompany()
    await fault({ kind: "status", code: 500, after: 2, times: 1 })
    const statuses: number[] = []
    for (let i = 0; i < 4; i += 1) statuses.push((await attempt(c, { method: "GET", path: "/salesmen" }))?.status ?? 0)
    assert.deepEqual(statuses, [200, 200, 500, 200])
  })

  it("[D-15] applies to the requests of its method and path", async () => {
    const c = await newCompany()
    await fault({ method: "POST", kind: "status", code: 500 })
    assert.strictEqual((await attempt(c, { method: "GET", path: "/salesmen" }))?.status, 200)
    assert.strictEqual((await attempt(c, { method: "POST", path: "/salesmen", body: { name: "x" } }))?.status, 500)
    await control("DELETE", "/faults")
    await fault({ path: "/salesmen", kind: "status", code: 500 })
    assert.strictEqual((await attempt(c, { method: "GET", path: "/salesmen" }))?.status, 500)
    assert.strictEqual((await attempt(c, { method: "GET", path: "/payments" }))?.status, 200)
    await control("DELETE", "/faults")
    assert.strictEqual((await attempt(c, { method: "GET", path: "/salesmen" }))?.status, 200)
    assert.isEmpty(await c.list("/salesmen"))
  })

  it("[D-15] repeats for the same rate and seed", async () => {
    const c = await newCompany()
    const run = async () => {
      await fault({ kind: "status", code: 500, rate: 0.5 }, { seed: 42 })
      const statuses: number[] = []
      for (let i = 0; i < 40; i += 1)
        statuses.push((await attempt(c, { method: "GET", path: "/salesmen" }))?.status ?? 0)
      await control("DELETE", "/faults")
      return statuses
    }
    const first = await run()
    assert.deepEqual(await run(), first)
    const failed = first.filter((status) => status === 500).length
    assert.isTrue(failed > 5 && failed < 35, `${failed} of 40`)
  })

  it("[D-15] of the kind reset breaks the connection and writes nothing", async () => {
    const c = await newCompany()
    await fault({ kind: "reset", times: 1 })
    assert.isUndefined(await attempt(c, { method: "POST", path: "/salesmen", body: { name: "x" } }))
    assert.isEmpty(await c.list("/salesmen"))
  })

  it("[D-15][B-12] of the kind dropResponse writes and loses the response", async () => {
    const c = await newCompany()
    await fault({ kind: "dropResponse", times: 1 })
    assert.isUndefined(await attempt(c, { method: "POST", path: "/salesmen", body: { name: "x" }, timeoutMs: 5000 }))
    assert.lengthOf(await c.list("/salesmen"), 1)
  })

  it("[D-15] of the kind truncate ends the body early", async () => {
    const c = await newCompany()
    await c.put(
      "salesmen",
      Array.from({ length: 50 }, (_, i) => ({ name: `n${i}` }))
    )
    await fault({ kind: "truncate", times: 1 })
    const answer = await attempt(c, { method: "GET", path: "/salesmen" })
    if (answer !== undefined) assert.isUndefined(answer.json, "a truncated body is no JSON")
    assert.lengthOf(await c.list("/salesmen"), 50)
  })

  it("[D-15] of the kinds html and garbage returns invalid JSON", async () => {
    const c = await newCompany()
    for (const kind of ["html", "garbage"]) {
      await fault({ kind, times: 1 })
      const answer = await attempt(c, { method: "GET", path: "/salesmen" })
      assert.isDefined(answer)
      assert.isFalse(isRow(answer?.json) && "data" in answer.json, kind)
      if (kind === "html") assert.match(answer?.text ?? "", /<html|<!doctype/i)
      await control("DELETE", "/faults")
    }
  })

  it("[D-15] of the kinds delay and slowBody returns a complete response late", async () => {
    const c = await newCompany()
    for (const kind of ["delay", "slowBody"]) {
      await fault({ kind, times: 1 })
      const answer = await attempt(c, { method: "GET", path: "/salesmen" })
      page(answer as Answer)
      await control("DELETE", "/faults")
    }
  })
})

describe("a request to the control plane", () => {
  it("[D-15] is 400 with a sentence if it is invalid", async () => {
    for (const [method, path, body] of [
      ["POST", "/reset", { data: "nonsense" }],
      ["POST", "/tokens", {}],
      ["POST", "/tokens", { company: "x", scopes: ["*"] }],
      ["POST", "/clock", { now: "yesterday" }],
      ["POST", "/records", { company: 1, resource: "nosuchthing", records: [] }],
      ["POST", "/faults", { rules: [{ kind: "nonsense" }] }],
      ["PUT", "/limits", { requestsPerMinute: "many" }],
      ["GET", "/state?company=1&resource=nosuchthing", undefined],
      ["GET", "/history?company=x&resource=salesmen", undefined]
    ] as const) {
      const answer = await controlRaw(method, path, body)
      assert.strictEqual(answer.status, 400, `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`)
      assert.match(answer.text, /\w+ \w+/)
    }
    assert.strictEqual((await controlRaw("POST", "/reset", undefined, "{")).status, 400)
  })

  it("[INVOICETERMS-05] resets the install to its initial records", async () => {
    const c = await newCompany()
    await makeSalesman(c)
    await control("POST", "/reset", { data: "empty" })
    const after = await newCompany()
    assert.isEmpty(await state(c.id, "salesmen"))
    assert.isNotEmpty(await after.list("/invoiceterms"))
    assert.isEmpty(await after.list("/salesmen"))
    await makeSalesman(after)
  })
})

keptPromises()
