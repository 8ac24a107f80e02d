/** Idempotency-Key: a request has one effect, even if its response is lost. */
import { randomUUID } from "node:crypto"
import { afterAll, afterEach, assert, describe } from "vitest"
import {
  advance,
  companyOf,
  control,
  freeze,
  fresh,
  idOf,
  isDecimal,
  it,
  keptPromises,
  newCompany,
  refused,
  row,
  succeeded,
  thaw,
  tokenFor,
  useServer,
  type Answer
} from "./harness.ts"
import { RESOURCES } from "./resources.ts"
import { makeDraft, makePosted, makeSalesman } from "./world.ts"
import { assertCount } from "../support/assertions.ts"

useServer()
afterAll(thaw)
afterEach(async () => {
  await control("DELETE", "/faults")
})

const keyed = (key: string) => ({ "idempotency-key": key })

function replayed(answer: Answer, original: Answer): void {
  assert.strictEqual(answer.status, original.status, answer.text)
  assert.strictEqual(answer.text, original.text)
  assert.strictEqual(answer.headers["idempotent-replayed"], "true")
  assert.isUndefined(original.headers["idempotent-replayed"])
}

const conflict = (answer: Answer) => refused(answer, "idempotency_replay")

describe("a repeated request with one key", () => {
  for (const { path, body } of RESOURCES) {
    it(`[EP-02][EP-01][B-09][B-11] creates one record and returns one response: POST /${path}`, async (c) => {
      const payload = { ...(await body(c)), externalid: fresh("idem") }
      const key = randomUUID()
      const first = await c.post(`/${path}`, payload, keyed(key))
      succeeded(first, 201)
      for (const _ of [1, 2]) replayed(await c.post(`/${path}`, payload, keyed(key)), first)
      assert.lengthOf(await c.list(`/${path}?externalid=${payload.externalid}`), 1)
    })
  }

  it("[EP-02][EP-01] is replayed for PATCH and DELETE without a second effect", async (c) => {
    const id = idOf(await makeSalesman(c))
    const patched = await c.patch(`/salesmen/${id}`, { email1: "a" }, keyed("patch"))
    succeeded(await c.patch(`/salesmen/${id}`, { email1: "b" }))
    replayed(await c.patch(`/salesmen/${id}`, { email1: "a" }, keyed("patch")), patched)
    assert.strictEqual((await c.read("salesmen", id))["email1"], "b")
    const cancelled = await c.del(`/salesmen/${id}`, keyed("delete"))
    assert.strictEqual(succeeded(cancelled)["cancel"], true)
    succeeded(await c.patch(`/salesmen/${id}`, { email1: "c" }))
    replayed(await c.del(`/salesmen/${id}`, keyed("delete")), cancelled)
  })

  it("[EP-02][J-07] replays the posting of an invoice", async (c) => {
    const url = `/invoices/${idOf(await makeDraft(c))}/post`
    const first = await c.post(url, {}, keyed("post"))
    succeeded(first)
    replayed(await c.post(url, {}, keyed("post")), first)
  })

  it("[EP-02] pays an invoice once, also with ten concurrent requests", async (c) => {
    const invoiceid = idOf(await makePosted(c))
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => c.post("/payments", { invoiceid, amount: "10" }, keyed("pay")))
    )
    for (const answer of answers) {
      if (answer.status === 201) continue
      refused(answer, "request_in_progress")
      assert.strictEqual(answer.headers["retry-after"], "1")
    }
    const done = answers.filter((answer) => answer.status === 201)
    assert.isNotEmpty(done)
    assert.lengthOf(new Set(done.map((answer) => answer.text)), 1)
    assertCount(done, (answer) => answer.headers["idempotent-replayed"] === undefined, 1)
    isDecimal((await c.read("invoices", invoiceid))["invoicepaid"], "10", 4)
  })

  it("[CODE-13][EP-02][B-10] writes a large batch once, also concurrently", async (c) => {
    const items = Array.from({ length: 250 }, (_, i) => ({ name: `n${i}` }))
    const [one, two] = await Promise.all([
      c.post("/salesmen/batch", items, keyed("big")),
      c.post("/salesmen/batch", items, keyed("big"))
    ])
    for (const answer of [one, two]) {
      if (answer.status !== 207) refused(answer, "request_in_progress")
    }
    assert.include([one.status, two.status], 207)
    assert.lengthOf(await c.list("/salesmen?limit=250"), 250)
    assert.strictEqual((await c.post("/salesmen/batch", items, keyed("big"))).headers["idempotent-replayed"], "true")
  })

  it("[CODE-13][EP-02][B-10][ERR-08] is 409 with Retry-After while the first runs, and then returns its response", async (c) => {
    await control("POST", "/faults", { rules: [{ method: "POST", path: "/rmareturns", kind: "delay", times: 1 }] })
    const post = () => c.post("/rmareturns", { externalid: "slow" }, keyed("slow"))
    const slow = post()
    let waiting = await c.get("/rmareturns?limit=1")
    for (let i = 0; i < 50 && waiting.status !== 409; i += 1) {
      const early = await Promise.race([slow, post()])
      if (early.status === 409) waiting = early
    }
    refused(waiting, "request_in_progress")
    assert.strictEqual(waiting.headers["retry-after"], "1")
    const first = await slow
    succeeded(first, 201)
    replayed(await post(), first)
    assert.lengthOf(await c.list("/rmareturns"), 1)
  })

  it("[B-05][B-04] has no special effect on GET", async (c) => {
    const id = idOf(await makeSalesman(c))
    const get = (path: string) => c.send({ method: "GET", path, headers: keyed("get") })
    succeeded(await get(`/salesmen/${id}`))
    const again = await get("/salesmen")
    succeeded(again)
    assert.isUndefined(again.headers["idempotent-replayed"])
  })
})

describe("a different request with the same key", () => {
  it("[EP-02][CODE-12][B-07] with another body, even by a space, is 409 idempotency_replay, and writes nothing", async (c) => {
    const raw = (text: string) => c.send({ method: "POST", path: "/salesmen", raw: text, headers: keyed("bytes") })
    const first = await raw('{"name":"a"}')
    succeeded(first, 201)
    for (const other of ['{"name":"b"}', '{"name": "a"}', '{"name":"a"}\n']) conflict(await raw(other))
    assert.lengthOf(await c.list("/salesmen"), 1)
    replayed(await raw('{"name":"a"}'), first)
  })

  it("[B-06][B-07] with another path or method is 409 idempotency_replay", async (c) => {
    const body = { externalid: "x" }
    succeeded(await c.post("/rmareturns", body, keyed("k")), 201)
    conflict(await c.post("/carrierservices", body, keyed("k")))
    const id = idOf(await makeSalesman(c))
    succeeded(await c.patch(`/salesmen/${id}`, body, keyed("p")))
    conflict(await c.patch(`/salesmen/${idOf(await makeSalesman(c))}`, body, keyed("p")))
    conflict(await c.del(`/salesmen/${id}`, keyed("p")))
    assert.isEmpty(await c.list("/carrierservices"))
  })

  it("[B-06] with another token is independent", async (c) => {
    const other = companyOf(c.id, await tokenFor(c.id, "*"))
    const stranger = await newCompany()
    const one = await c.post("/rmareturns", { externalid: "x" }, keyed("k"))
    const two = await other.post("/rmareturns", { externalid: "y" }, keyed("k"))
    const three = await stranger.post("/rmareturns", { externalid: "z" }, keyed("k"))
    assert.deepEqual(
      [one, two, three].map((answer) => succeeded(answer, 201)["externalid"]),
      ["x", "y", "z"]
    )
  })

  it("[B-06] is one only if the key is equal in case and every character", async (c) => {
    for (const key of ["Key", "key", "key.", "__proto__", "constructor", "a b", "!~"]) {
      const answer = await c.post("/rmareturns", { externalid: key }, keyed(key))
      assert.strictEqual(succeeded(answer, 201)["externalid"], key)
    }
    assert.lengthOf(await c.list("/rmareturns"), 7)
  })
})

it("an idempotency key [B-05] has 1 to 255 characters", async (c) => {
  succeeded(await c.post("/rmareturns", {}, keyed("k".repeat(255))), 201)
  refused(await c.post("/rmareturns", {}, keyed("k".repeat(256))), "invalid_request")
  refused(await c.post("/rmareturns", {}, keyed("")), "invalid_request")
  refused(await c.post("/rmareturns", {}, keyed("a\tb")), "invalid_request")
  assert.lengthOf(await c.list("/rmareturns"), 1)
})

describe("the store of responses (B-08)", () => {
  it("[B-08] replays a 400, 404, 409 and 422, even after their cause ended", async (c) => {
    const blocker = idOf(await makeSalesman(c, { name: "Ann" }))
    const duplicate = await c.post("/salesmen", { name: "Ann" }, keyed("409"))
    refused(duplicate, "duplicate")
    const invalid = await c.post("/salesmen", {}, keyed("400"))
    refused(invalid, "invalid_request")
    const absent = await c.patch("/salesmen/999999999", { email1: "x" }, keyed("404"))
    refused(absent, "not_found")
    const unknown = await c.post("/carrierservices", { carrier: "Later" }, keyed("422"))
    refused(unknown, "unknown_value")
    succeeded(await c.patch(`/salesmen/${blocker}`, { name: "Bea" }))
    await c.put("carriers", [{ name: "Later" }])
    replayed(await c.post("/salesmen", { name: "Ann" }, keyed("409")), duplicate)
    replayed(await c.post("/salesmen", {}, keyed("400")), invalid)
    replayed(await c.patch("/salesmen/999999999", { email1: "x" }, keyed("404")), absent)
    replayed(await c.post("/carrierservices", { carrier: "Later" }, keyed("422")), unknown)
    succeeded(await c.post("/carrierservices", { carrier: "Later" }, keyed("new")), 201)
  })

  it("[B-08] does not replay a 403, and applies the request after its cause ended", async (c) => {
    await c.settings({ recordLimits: { customers: 0 } })
    const body = { customercode: "C", name: "x" }
    refused(await c.post("/customers", body, keyed("k")), "record_limit_reached")
    await c.settings({ recordLimits: { customers: 10 } })
    const done = await c.post("/customers", body, keyed("k"))
    succeeded(done, 201)
    replayed(await c.post("/customers", body, keyed("k")), done)
  })

  it("[B-08] does not replay a 429", async (c) => {
    await freeze()
    await control("PUT", "/limits", { requestsPerMinute: 1 })
    try {
      succeeded(await c.get("/salesmen"))
      refused(await c.post("/rmareturns", {}, keyed("k")), "rate_limited")
      await advance(61)
      succeeded(await c.post("/rmareturns", {}, keyed("k")), 201)
    } finally {
      await control("PUT", "/limits", { requestsPerMinute: 600 })
      await thaw()
    }
    assert.lengthOf(await c.list("/rmareturns"), 1)
  })

  it("[B-08][CODE-32][ERR-11][D-15] does not replay a 500, and the retry writes", async (c) => {
    await control("POST", "/faults", { rules: [{ method: "POST", kind: "status", code: 500, times: 1 }] })
    const failed = await c.send({ method: "POST", path: "/rmareturns", body: {}, headers: keyed("k"), faulty: true })
    assert.strictEqual(failed.status, 500)
    assert.isEmpty(await c.list("/rmareturns"))
    const done = await c.post("/rmareturns", {}, keyed("k"))
    succeeded(done, 201)
    replayed(await c.post("/rmareturns", {}, keyed("k")), done)
  })

  it("[B-12][EP-02][B-08] returns by its key a response that was lost on the way", async (c) => {
    await control("POST", "/faults", { rules: [{ method: "POST", kind: "dropResponse", times: 1 }] })
    const body = { externalid: "once" }
    const sent = { method: "POST", path: "/rmareturns", body, headers: keyed("k"), faulty: true, timeoutMs: 5000 }
    assert.isNull(await c.send(sent).catch(() => null), "no answer arrived")
    assert.lengthOf(await c.list("/rmareturns"), 1)
    const again = await c.post("/rmareturns", body, keyed("k"))
    assert.strictEqual(succeeded(again, 201)["externalid"], "once")
    assert.strictEqual(again.headers["idempotent-replayed"], "true")
    assert.lengthOf(await c.list("/rmareturns"), 1)
  })

  it("[B-08] lasts 24 hours", async (c) => {
    const first = await c.post("/rmareturns", {}, keyed("k"))
    await advance(23 * 3600)
    replayed(await c.post("/rmareturns", {}, keyed("k")), first)
    await advance(2 * 3600)
    const later = await c.post("/rmareturns", {}, keyed("k"))
    assert.isUndefined(later.headers["idempotent-replayed"])
    assert.notStrictEqual(succeeded(later, 201)["id"], row(first.json)["id"])
    assert.lengthOf(await c.list("/rmareturns"), 2)
  })
})

keptPromises()
