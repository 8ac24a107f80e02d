/** Webhook subscriptions: the object, its endpoints, its owner, and its valid values. */
import { afterAll, afterEach, assert, beforeAll, describe } from "vitest"
import {
  advance,
  allowed,
  companyOf,
  control,
  controlRaw,
  etagOf,
  freeze,
  fresh,
  idOf,
  ids,
  integer,
  it,
  keptPromises,
  micros,
  mint,
  newCompany,
  outOfScope,
  page,
  refused,
  refusedEntries,
  row,
  succeeded,
  text,
  thaw,
  TIMESTAMP,
  useServer,
  valuesOf,
  type Answer,
  type Row
} from "./harness.ts"
import { allowPrivate, cycle, envelope, startReceiver, subscribe, trust, verifies, type Receiver } from "./receiver.ts"
import { makeSalesman } from "./world.ts"
import { assertEach } from "../support/assertions.ts"

useServer()

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(async () => {
  await receiver.close()
})
afterEach(async () => {
  await thaw()
})

const URL = "https://receiver.example/hook"
const good = (over: Row = {}): Row => ({ url: URL, events: ["orders.created"], ...over })
const FIELDS = [
  "cancel",
  "description",
  "disableddate",
  "events",
  "failcount",
  "id",
  "lastdeliverydate",
  "paused",
  "url"
]

/** The calls of a subscription, each with its scope. */
const calls = (id: number | string) =>
  [
    ["GET", `/webhooks/${id}`, undefined, "setup:read"],
    ["GET", `/webhooks/${id}/deliveries`, undefined, "setup:read"],
    ["PATCH", `/webhooks/${id}`, { paused: true }, "setup:write"],
    ["POST", `/webhooks/${id}/test`, undefined, "setup:write"],
    ["DELETE", `/webhooks/${id}`, undefined, "setup:cancel"]
  ] as const

describe("creating a subscription", () => {
  it("[WEBHOOK-13][WEBHOOK-11][WEBHOOK-01][EVT-01][SIG-06][X-22] returns 201 with the object, the secret and its note", async (c) => {
    const answer = await c.post("/webhooks", good({ description: "to the warehouse" }))
    const record = succeeded(answer, 201)
    integer(record["id"])
    assert.deepInclude(record, { url: URL, description: "to the warehouse", paused: false, events: ["orders.created"] })
    assert.isString(record["secret"])
    assert.isNotEmpty(text(record["secret_note"]))
    assert.notProperty(record, "enabled")
    assert.sameMembers(Object.keys(record), [...FIELDS, "secret", "secret_note"])
  })

  it("[WEBHOOK-11][SIG-06] returns the secret in no later response", async (c) => {
    const created = await c.create("webhooks", good())
    const url = `/webhooks/${idOf(created)}`
    const secret = text(created["secret"])
    for (const answer of [
      await c.get(url),
      await c.get("/webhooks"),
      await c.patch(url, { description: "x" }),
      await c.patch(url, { secret: "a-secret-of-my-own-making" }),
      await c.get("/webhooks?cancel=any"),
      await c.del(url)
    ]) {
      assert.notInclude(answer.text, secret)
      assert.notInclude(answer.text, "a-secret-of-my-own-making")
      assert.notInclude(answer.text, '"secret"')
      assert.notInclude(answer.text, "secret_note")
    }
  })

  it("[H-09] generates a secret of whsec_ and 32 random bytes each time", async (c) => {
    const secrets = new Set<string>()
    for (let i = 0; i < 5; i += 1) {
      const secret = text((await c.create("webhooks", good()))["secret"])
      assert.match(secret, /^whsec_[A-Za-z0-9_-]{43}=?$/)
      secrets.add(secret)
    }
    assert.strictEqual(secrets.size, 5)
  })

  it("[WEBHOOK-13][EP-02] with a repeated key creates one subscription and returns the same secret", async (c) => {
    const key = { "idempotency-key": fresh("hook") }
    const first = await c.post("/webhooks", good(), key)
    assert.strictEqual((await c.post("/webhooks", good(), key)).text, first.text)
    assert.lengthOf(await c.list("/webhooks"), 1)
  })

  it("[WEBHOOK-10][H-12][X-30][STATE-18] with enabled false creates or makes a disabled subscription; true is the default", async (c) => {
    assert.match(text((await c.create("webhooks", good({ enabled: false })))["disableddate"]), TIMESTAMP)
    const made = await c.create("webhooks", good({ enabled: true }))
    assert.isNull(made["disableddate"])
    const now = await freeze()
    const url = `/webhooks/${idOf(made)}`
    const disabled = succeeded(await c.patch(url, { enabled: false }))
    assert.strictEqual(micros(disabled["disableddate"]), now)
    const reenabled = succeeded(await c.patch(url, { enabled: true }))
    assert.isNull(reenabled["disableddate"])
    for (const record of [made, disabled, reenabled]) assert.notProperty(record, "enabled")
  })

  it("[WEBHOOK-14][WEBHOOK-16][D-11][EP-12][CODE-03] requires url and events, and names both; neither becomes null", async (c) => {
    refusedEntries(await c.post("/webhooks", {}), "url:required", "events:required")
    refusedEntries(await c.post("/webhooks", { url: URL }), "events:required")
    refusedEntries(await c.post("/webhooks", { events: ["orders.created"] }), "url:required")
    assert.isEmpty(await c.list("/webhooks"))
    const id = idOf(await c.create("webhooks", good()))
    for (const name of ["url", "events"])
      refusedEntries(await c.patch(`/webhooks/${id}`, { [name]: null }), `${name}:required`)
    assert.deepInclude(await c.read("webhooks", id), good())
  })

  it("[EVT-05][WEBHOOK-02][WEBHOOK-14][CODE-29] accepts an https url only", async (c) => {
    for (const url of ["http://receiver.example/hook", "HTTP://receiver.example", "ftp://receiver.example/x"]) {
      refused(await c.post("/webhooks", good({ url })), "unsupported_value", "url")
    }
    for (const url of ["receiver.example/hook", "not a url", "", "https://"])
      assert.include([400, 422], (await c.post("/webhooks", good({ url }))).status, url)
    assert.isEmpty(await c.list("/webhooks"))
    const id = idOf(await c.create("webhooks", good()))
    refused(await c.patch(`/webhooks/${id}`, { url: "http://receiver.example" }), "unsupported_value", "url")
    assert.strictEqual((await c.read("webhooks", id))["url"], URL)
  })

  it("[EVT-03][EVT-04][WEBHOOK-03][WEBHOOK-14][CODE-26][VER-04][H-01][H-02] accepts listed event names, and rejects * and unknown names as unknown_value", async (c) => {
    for (const name of [
      "*",
      "orders.*",
      "*.created",
      "nosuchthing.created",
      "orders.exploded",
      "orders",
      "Orders.Created",
      ""
    ]) {
      refused(await c.post("/webhooks", good({ events: [name] })), "unknown_value", "events[0]")
    }
    refused(await c.post("/webhooks", good({ events: ["orders.created", "*"] })), "unknown_value", "events[1]")
    const id = idOf(await c.create("webhooks", good()))
    refused(await c.patch(`/webhooks/${id}`, { events: ["*"] }), "unknown_value", "events[0]")
    assert.deepEqual((await c.read("webhooks", id))["events"], ["orders.created"])
    assert.lengthOf(await c.list("/webhooks"), 1)
  })

  it("[LIM-09][WEBHOOK-02][WEBHOOK-04][D-01] accepts a url of 500 characters and a description of 100", async (c) => {
    const url = (length: number) => "https://receiver.example/".padEnd(length, "x")
    assert.strictEqual((await c.create("webhooks", good({ url: url(500) })))["url"], url(500))
    refusedEntries(await c.post("/webhooks", good({ url: url(501) })), "url:too_long")
    const record = await c.create("webhooks", good({ description: "ä".repeat(100) }))
    assert.strictEqual(record["description"], "ä".repeat(100))
    refusedEntries(await c.post("/webhooks", good({ description: "ä".repeat(101) })), "description:too_long")
  })

  it("[WEBHOOK-02][WEBHOOK-03][WEBHOOK-04][WEBHOOK-05][WEBHOOK-10][WEBHOOK-13][WEBHOOK-14][WEBHOOK-16][CODE-04][CODE-05][H-11] rejects a value of a wrong type in every field, and any other field", async (c) => {
    const url = `/webhooks/${idOf(await c.create("webhooks", good()))}`
    const refuse = async (body: Row, code: string, field: string) => {
      await c.refuses("/webhooks", good(body), code, field)
      refused(await c.patch(url, body), code, field)
    }
    for (const [name, wrong] of [
      ["url", [1, true, {}, ["x"]]],
      ["description", [1, true, {}]],
      ["events", ["orders.created", 1, {}, true]],
      ["paused", ["true", 1, {}]],
      ["enabled", ["true", 1, {}]]
    ] as const) {
      for (const value of wrong) await refuse({ [name]: value }, "invalid_type", name)
    }
    for (const name of ["bogus", "companyid", "externalid", "signing_secret"])
      await refuse({ [name]: "x" }, "unknown_parameter", name)
    for (const events of [[1], []]) assert.strictEqual((await c.post("/webhooks", good({ events }))).status, 400)
  })

  it("[FIELD-15][WEBHOOK-05][WEBHOOK-06][WEBHOOK-07][WEBHOOK-08][WEBHOOK-09] starts without failures and deliveries, whatever is sent in read-only fields", async (c) => {
    const sent = {
      id: 999_999_999,
      failcount: 7,
      disableddate: "2026-01-01T00:00:00Z",
      lastdeliverydate: "2026-01-01T00:00:00Z",
      cancel: true
    }
    for (const more of [{}, sent]) {
      const record = await c.create("webhooks", good(more))
      assert.notStrictEqual(record["id"], sent.id)
      const fresh = { failcount: 0, disableddate: null, lastdeliverydate: null, cancel: false }
      assert.deepInclude(record, { ...fresh, paused: false, description: null })
    }
    assert.strictEqual((await c.create("webhooks", good({ paused: true })))["paused"], true)
  })
})

describe("reading a subscription", () => {
  it("[WEBHOOK-12][WEBHOOK-15][A-01][A-13] returns the same object in a list and a retrieve", async (c) => {
    const first = idOf(await c.create("webhooks", good()))
    const second = idOf(await c.create("webhooks", good()))
    const list = page(await c.get("/webhooks"))
    assert.deepEqual(ids(list.data), [first, second])
    assert.deepEqual(list.data[0], await c.read("webhooks", first))
    assert.sameMembers(Object.keys(row(list.data[0])), FIELDS)
    assert.deepEqual(ids(await c.list("/webhooks?limit=1")), [first, second])
  })

  it("[WEBHOOK-15][CODE-09][EVT-02][H-04] answers 404 to an absent id, and to every token but its own", async (c, stranger) => {
    const other = companyOf(c.id, (await mint({ company: c.id })).token)
    const id = idOf(await c.create("webhooks", good()))
    const before = await c.read("webhooks", id)
    for (const [one, ids] of [
      [c, ["999999999", "abc", "0", "-1"]],
      [other, [id]],
      [stranger, [id]]
    ] as const) {
      for (const [method, path, body] of ids.flatMap(calls))
        refused(await one.send({ method, path, body }), "not_found")
    }
    assert.isEmpty(await other.list("/webhooks?cancel=any"))
    assert.deepEqual(await c.read("webhooks", id), before)
  })

  it("[WEBHOOK-12][WEBHOOK-09][WEBHOOK-19][H-13][EP-15] hides a cancelled subscription from lists by default, and still retrieves it", async (c) => {
    const live = idOf(await c.create("webhooks", good()))
    const dead = idOf(await c.create("webhooks", good()))
    assert.strictEqual(succeeded(await c.del(`/webhooks/${dead}`))["cancel"], true)
    assert.deepEqual(ids(await c.list("/webhooks")), [live])
    assert.deepEqual(ids(await c.list("/webhooks?cancel=false")), [live])
    assert.deepEqual(ids(await c.list("/webhooks?cancel=any")), [live, dead])
    assert.include(ids(await c.list("/webhooks?cancel=true")), dead)
    refused(await c.get("/webhooks?cancel=maybe"), "invalid_enum", "cancel")
    assert.strictEqual((await c.read("webhooks", dead))["cancel"], true)
    refused(await c.get("/webhooks?bogus=1"), "unknown_parameter", "bogus")
  })

  it("[EVT-01][WEBHOOK-12][WEBHOOK-13][WEBHOOK-15][WEBHOOK-16][WEBHOOK-17][WEBHOOK-18][SCOPE-24] requires for each call its own scope of setup", async (c) => {
    const id = idOf(await c.create("webhooks", good()))
    for (const [method, path, body, scope] of [
      ["GET", "/webhooks", undefined, "setup:read"],
      ["POST", "/webhooks", good(), "setup:write"],
      ...calls(id)
    ] as const) {
      const others = ["setup:read", "setup:write", "setup:cancel"].filter((each) => each !== scope)
      outOfScope(await (await c.with(...others)).send({ method, path, body }), scope)
    }
  })

  it("[CODE-10][D-16] answers 405 with Allow to other verbs", async (c) => {
    const id = idOf(await c.create("webhooks", good()))
    for (const [method, path] of [
      ["PATCH", "/webhooks"],
      ["DELETE", "/webhooks"],
      ["PUT", `/webhooks/${id}`],
      ["POST", `/webhooks/${id}`],
      ["GET", `/webhooks/${id}/test`],
      ["POST", `/webhooks/${id}/deliveries`]
    ] as const) {
      assert.isNotEmpty(allowed(await c.probe(method, path)))
    }
  })
})

describe("updating a subscription", () => {
  it("[WEBHOOK-16][EP-09] changes url, events, description and paused, and nothing else", async (c) => {
    const before = await c.create("webhooks", good())
    const url = `/webhooks/${idOf(before)}`
    for (const change of [
      { url: "https://receiver.example/other" },
      { events: ["orders.updated", "shipments.created"] },
      { description: "new" },
      { paused: true },
      { description: null }
    ]) {
      const shown = succeeded(await c.get(url))
      const answer = await c.patch(url, change)
      assert.deepEqual(succeeded(answer), { ...shown, ...change })
      etagOf(answer)
      assert.deepEqual(succeeded(await c.get(url)), { ...shown, ...change })
    }
  })

  it("[WEBHOOK-16][D-10][H-11][CODE-03] without a writable field is 400 invalid_request", async (c) => {
    const url = `/webhooks/${idOf(await c.create("webhooks", good()))}`
    const readOnly = [{ id: 5 }, { failcount: 0 }, { disableddate: null }, { cancel: true, lastdeliverydate: null }]
    for (const body of [{}, ...readOnly]) refused(await c.patch(url, body), "invalid_request")
    assert.strictEqual(succeeded(await c.get(url))["cancel"], false)
    assert.deepInclude(succeeded(await c.patch(url, { failcount: 9, paused: true })), { failcount: 0, paused: true })
  })

  it("[WEBHOOK-16][SIG-12][H-07][H-09] accepts a new secret of 16 to 255 characters", async (c) => {
    const url = `/webhooks/${idOf(await c.create("webhooks", good()))}`
    for (const secret of ["x".repeat(15), "", "x".repeat(256)]) {
      assert.include([400, 422], (await c.patch(url, { secret })).status, `${secret.length} characters`)
    }
    refused(await c.patch(url, { secret: 1 }), "invalid_type", "secret")
    for (const secret of ["x".repeat(16), "y".repeat(255)]) succeeded(await c.patch(url, { secret }))
  })

  it("[CODE-14][EP-03] rejects a stale If-Match", async (c) => {
    const made = await c.post("/webhooks", good())
    const url = `/webhooks/${idOf(succeeded(made, 201))}`
    const etag = etagOf(await c.get(url))
    succeeded(await c.patch(url, { description: "theirs" }, { "if-match": etag }))
    refused(await c.patch(url, { description: "mine" }, { "if-match": etag }), "stale_record")
  })
})

describe("the test call of a subscription", () => {
  beforeAll(async () => {
    await trust(receiver)
  })

  it("[LOG-01][LOG-02][WEBHOOK-17][H-14][H-16][EVT-06] sends webhooks.test at once and returns the receiver's response", async (c) => {
    const hook = await subscribe(c, receiver, ["orders.created"])
    hook.box.answer = () => ({ status: 202, body: "thank you" })
    const result = await hook.test()
    assert.lengthOf(hook.box.received, 1)
    const sent = envelope(hook.box.received[0])
    assert.deepInclude(result, { eventid: sent["id"], responsecode: 202, responsebody: "thank you", delivered: true })
    assert.isAtLeast(integer(result["durationms"]), 0)
    assert.deepInclude(sent, { type: "webhooks.test", companyid: c.id })
    assert.deepEqual(sent["data"], { webhookid: hook.id, message: "test" })
    assert.isTrue(verifies(hook.box.received[0] as never, hook.secret))
  })

  it("[LOG-02][LIM-07] keeps 500 bytes of the response as valid text, in the result and in the log", async (c) => {
    const hook = await subscribe(c, receiver, ["orders.created"])
    const kept = async (body: string) => {
      hook.box.answer = () => ({ status: 200, body })
      const result = text((await hook.test())["responsebody"])
      assert.strictEqual((await hook.log())[0]?.["responsebody"], result)
      return result
    }
    assert.strictEqual(await kept(`${"a".repeat(499)}bc${"d".repeat(2000)}`), `${"a".repeat(499)}b`)
    const umlauts = await kept("ä".repeat(1000))
    assert.isAtMost(umlauts.length, 251)
    assert.isTrue(umlauts.startsWith("ä".repeat(249)))
  })

  it("[LOG-02][H-18] reports a rejection, a broken connection, an untrusted certificate and a missing listener", async (c) => {
    const hook = await subscribe(c, receiver, ["orders.created"])
    hook.box.answer = () => ({ status: 500, body: "no" })
    assert.deepInclude(await hook.test(), { responsecode: 500, responsebody: "no", delivered: false })
    hook.box.answer = () => ({ instead: "reset" })
    assert.deepInclude(await hook.test(), { responsecode: null, delivered: false })
    const stranger = await startReceiver()
    const box = stranger.mailbox()
    succeeded(await c.patch(hook.url, { url: box.url }))
    assert.deepInclude(await hook.test(), { responsecode: null, delivered: false })
    assert.isEmpty(box.received)
    await stranger.close()
    assert.deepInclude(await hook.test(), { responsecode: null, delivered: false })
    assert.deepEqual(valuesOf(await hook.log(), "responsecode"), [null, null, null, 500])
  })

  it("[H-15][LOG-04] is logged as webhooks.test, changes no failcount, waits for no event, and works while paused or disabled", async (c) => {
    const hook = await subscribe(c, receiver, ["salesmen.created"])
    hook.box.answer = () => ({ status: 500 })
    await makeSalesman(c)
    await cycle()
    await hook.test()
    assert.strictEqual(envelope(hook.box.received.at(-1))["type"], "webhooks.test")
    for (const change of [{ paused: true }, { enabled: false }]) {
      succeeded(await c.patch(hook.url, change))
      await hook.test()
    }
    assert.lengthOf(hook.box.received, 4)
    assert.strictEqual((await hook.show())["failcount"], 1)
    assert.lengthOf(await hook.log("?eventtype=webhooks.test"), 3)
    await cycle(3)
    assert.lengthOf(hook.box.received, 4)
  })

  it("[SIG-06][WEBHOOK-11] leaves the secret out of the control plane", async (c) => {
    const hook = await subscribe(c, receiver, ["orders.created"])
    succeeded(await c.patch(hook.url, { secret: "my-very-own-secret-of-today" }))
    await hook.test()
    for (const path of [
      "/requests",
      "/deliveries",
      `/state?company=${c.id}&resource=webhooks`,
      `/history?company=${c.id}&resource=webhooks`
    ]) {
      const answer = await controlRaw("GET", path)
      assert.notInclude(answer.text, hook.secret, path)
      assert.notInclude(answer.text, "my-very-own-secret-of-today", path)
    }
  })

  it("[LOG-03][LIM-03][WEBHOOK-17][E-05][CODE-31] is limited to ten a minute and token, then 429 with Retry-After", async (c) => {
    await freeze()
    const one = await subscribe(c, receiver, ["orders.created"])
    const two = await subscribe(c, receiver, ["orders.created"])
    for (let i = 0; i < 10; i += 1) await (i % 2 === 0 ? one : two).test()
    const limited = await c.post(`${one.url}/test`)
    refused(limited, "rate_limited")
    const wait = Number(limited.headers["retry-after"])
    assert.isTrue(Number.isInteger(wait) && wait >= 1 && wait <= 60)
    assert.lengthOf([...one.box.received, ...two.box.received], 10)
    const stranger = await subscribe(await newCompany(), receiver, ["orders.created"])
    await stranger.test()
    page(await c.get("/salesmen"))
    await advance(wait)
    await one.test()
  })

  it("[LIM-03][E-04] is counted apart from the general limit", async (c) => {
    await freeze()
    const hook = await subscribe(c, receiver, ["orders.created"])
    await advance(61)
    await control("PUT", "/limits", { requestsPerMinute: 2 })
    const answers: Answer[] = []
    for (let i = 0; i < 5; i += 1) answers.push(await c.post(`${hook.url}/test`))
    const after = [await c.get("/salesmen"), await c.get("/salesmen"), await c.get("/salesmen")]
    await control("PUT", "/limits", { requestsPerMinute: 600 })
    for (const answer of answers) succeeded(answer)
    assertEach(after, (answer) => answer.status, [200, 200, 429])
  })

  it("[H-22] calls no receiver on a private address unless the switch allows it", async (c) => {
    const hook = await subscribe(c, receiver, ["orders.created"])
    await allowPrivate(false)
    try {
      const answer = await c.post(`${hook.url}/test`)
      if (answer.status === 200) assert.strictEqual(row(answer.json)["delivered"], false)
      else assert.strictEqual(answer.status, 422)
      assert.isEmpty(hook.box.received)
    } finally {
      await allowPrivate(true)
    }
  })
})

keptPromises()
