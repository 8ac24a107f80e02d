/** Failures: errors of every documented code, retries, lost answers, cancellation. */
import { inspect } from "node:util"
import { assert, describe, it } from "vitest"
import { serviceV2 } from "../../../../connectors/service-v2/catalogue/index.ts"
import * as Sdk from "../../../../connectors/service-v2/sdk/index.ts"
import { certificate } from "../../../support/certificate.ts"
import { startRecording } from "../../../support/recording.ts"
import { rejection, thrownBy, useReference } from "./support.ts"
import { cellsOf, valuesOf } from "../../../support/rows.ts"
import { assertEach } from "../../../support/assertions.ts"

const sdk = useReference()
const { company, faults } = sdk

const failureOf = async (promise: Promise<unknown>): Promise<Sdk.ServiceApiError> => {
  const error = await rejection(promise)
  assert(error instanceof Sdk.ServiceApiError, String(error))
  return error
}

const classes: Readonly<Record<number, abstract new (...args: never) => Sdk.ServiceApiError>> = {
  400: Sdk.BadRequestError,
  401: Sdk.AuthenticationError,
  403: Sdk.PermissionError,
  404: Sdk.NotFoundError,
  405: Sdk.BadRequestError,
  409: Sdk.ConflictError,
  415: Sdk.BadRequestError,
  422: Sdk.RuleError,
  429: Sdk.RateLimitError,
  500: Sdk.ServerError,
  501: Sdk.NotImplementedError
}

describe("an error", () => {
  it("has the class, the code and the status of every documented code", async () => {
    const retryable = new Set(["rate_limited", "server_error", "request_in_progress"])
    const shared = await company({ maxAttempts: 1, maxRetryWaitMs: 0 })
    for (const { status, code } of serviceV2.errorCodes) {
      // A 429 pauses its client.
      const { client, token } = status === 429 ? await company({ maxAttempts: 1, maxRetryWaitMs: 0 }) : shared
      const error = {
        code,
        message: `about ${token}`,
        field: "name",
        errors: [{ field: "a[0].b", code, message: "m" }]
      }
      const headers = { "content-type": "application/json", "retry-after": "0" }
      await faults({ kind: "status", status, headers, body: JSON.stringify({ error }), times: 1, method: "POST" })
      const failure = await failureOf(client.customers.create({ customercode: code }))
      assert.strictEqual(failure.code, code)
      assert.strictEqual(failure.status, status, code)
      assert(failure instanceof classes[status]!, `${code} is a ${failure.name}`)
      assert.strictEqual(failure.isRetryable, retryable.has(code), code)
      assert.isAbove(failure.remedy.length, 10, code)
      assert.isString(failure.idempotencyKey)
      assert.notInclude(inspect(failure, { depth: 9, showHidden: true }), token)
      if (status === 400 || status === 409 || status === 422) {
        if (code === "request_in_progress") continue
        assert.strictEqual(failure.field, "name")
        assert.deepStrictEqual(failure.errors, [{ field: "a[0].b", code, message: "m" }])
      }
    }
  })

  it("names the fields, the scope and the request id that the service sends", async () => {
    const { client } = await company()
    const wrong = await failureOf(client.customers.create({ customercode: "X", creditlimit: "1.23456" }))
    assert.deepStrictEqual([wrong.code, wrong.field, wrong.status], ["invalid_precision", "creditlimit", 400])
    assert.isString(wrong.requestId)
    const input = { customercode: 5, creditlimit: 7 } as unknown as Sdk.CustomersCreate
    const several = await failureOf(client.customers.create(input))
    assert.strictEqual(several.code, "invalid_request")
    assert.deepStrictEqual(several.errors.map(({ field }) => field).sort(), ["creditlimit", "customercode"])
    const reader = await sdk.client({ token: await sdk.token({ company: 1, scopes: ["customers:read"] }) })
    const denied = await failureOf(reader.customers.create({ customercode: "X" }))
    assert(denied instanceof Sdk.PermissionError)
    assert.deepStrictEqual([denied.code, denied.scope], ["insufficient_scope", "customers:write"])
    const absent = await failureOf(client.orders.get(4_000_000))
    assert(absent instanceof Sdk.NotFoundError)
    assert.isString(absent.requestId)
  })

  it("never contains the token, whatever the service and a proxy send back", async () => {
    const { client, token } = await company({ maxAttempts: 1 })
    const body = `<html>Authorization: Bearer ${token}</html>`
    await faults({ kind: "html", status: 502, body, times: 1 })
    const html = await failureOf(client.customers.get(1))
    const location = `https://elsewhere.example/?t=${token}`
    await faults({ kind: "status", status: 302, headers: { location }, times: 1 })
    const moved = await failureOf(client.customers.get(1))
    assert.strictEqual(moved.code, "redirected")
    await faults({ kind: "status", status: 500, headers: { "x-request-id": `for ${token}` }, times: 1 })
    const failed = await failureOf(client.customers.get(1))
    assert.include(failed.requestId, "for [token]")
    for (const one of [html, moved, failed]) assert.notInclude(inspect(one, { depth: 9, showHidden: true }), token)
  })

  it("says that a record may exist when the answer to its write does not fit the catalogue", async () => {
    const { client } = await company()
    const headers = { "content-type": "application/json" }
    const wide = '{"id":1,"customercode":"WIDE","salesmanid":9007199254740993}'
    const results = `{"results":[{"index":0,"status":201,"record":${wide}}]}`
    const fault = { kind: "status", method: "POST", headers, times: 1 }
    await faults(
      { ...fault, status: 201, path: "/customers", body: `{"data":${wide}}` },
      { ...fault, status: 207, path: "/customers/batch", body: results }
    )
    const options = { idempotencyKey: "wide-1" }
    const one = await failureOf(client.customers.create({ customercode: "WIDE" }, options))
    assert(one instanceof Sdk.InvalidRecordError)
    assert.deepStrictEqual([one.isOutcomeUnknown, one.idempotencyKey, one.id], [true, "wide-1", "1"])
    const { items } = await client.customers.batch([{ customercode: "WIDE" }], { idempotencyKey: "wide-2" })
    assert(items[0]?.status === "unknown")
    assert.deepStrictEqual([items[0].error.isOutcomeUnknown, items[0].error.idempotencyKey], [true, "wide-2"])
  })

  it("does not come from a log that throws, and neither log nor client shows the token", async () => {
    const entries: Array<Sdk.LogEntry> = []
    const log = (entry: Sdk.LogEntry) => {
      entries.push(entry)
      throw new Error("the disk is full")
    }
    const { client, token } = await company({ log })
    await client.customers.create({ customercode: "LOG" })
    const { method, path, status } = entries[0]!
    assert.deepStrictEqual([method, path, status], ["POST", "/customers", 201])
    assert.notInclude(inspect([entries, client], { depth: 9, showHidden: true, getters: true }), token)
  })

  it("is thrown at once for wrong options, and names the option", () => {
    const right = { baseUrl: "https://erp.example.com/!/api/v2", token: "secret-token" }
    const wrong: ReadonlyArray<readonly [string, Partial<Sdk.ClientOptions>]> = [
      ["baseUrl", { baseUrl: "erp" }],
      ["baseUrl", { baseUrl: "http://erp.example.com/!/api/v2" }],
      ["baseUrl", { baseUrl: "https://user:pass@erp.example.com/!/api/v2" }],
      ["token", { token: "two words" }],
      ["pageSize", { pageSize: 0 }],
      ["maxAttempts", { maxAttempts: 1.5 }],
      ["requestsPerMinute", { requestsPerMinute: -1 }]
    ]
    for (const [field, options] of wrong) {
      const caught = thrownBy(() => Sdk.createClient({ ...right, ...options }))
      assert(caught instanceof Sdk.ConfigurationError, field)
      assert.strictEqual(caught.field, field)
    }
  })

  it("names a wrong argument before anything is sent", async () => {
    const { client } = await company()
    for (const id of ["", "1/2", "0", "abc", 1.5, Number.NaN, -1]) {
      assert.strictEqual((await failureOf(client.customers.get(id))).code, "invalid_argument")
    }
    const large = { customercode: "A", creditlimit: 1n } as unknown as Sdk.CustomersCreate
    assert.strictEqual((await failureOf(client.customers.create(large))).code, "invalid_argument")
    const badKey = client.customers.create({ customercode: "A" }, { idempotencyKey: "with space" })
    assert.strictEqual((await failureOf(badKey)).code, "invalid_argument")
    assert.strictEqual(client.usage().requests, 0)
  })
})

describe("a retry", () => {
  it("does not wait longer than allowed, and sends nothing before Retry-After", async () => {
    const { client } = await company({ maxRetryWaitMs: 500 })
    await faults({ kind: "status", status: 429, code: "rate_limited", headers: { "retry-after": "60" } })
    const first = await failureOf(client.customers.get(1))
    assert(first instanceof Sdk.RateLimitError)
    assert.deepStrictEqual([first.code, first.retryAfterMs, first.isRetryable], ["rate_limited", 60_000, true])
    const { requests } = client.usage()
    const second = await failureOf(client.customers.get(1))
    assert(second instanceof Sdk.RateLimitError)
    assert.strictEqual(second.code, "paused")
    assert.isAbove(second.retryAfterMs!, 50_000)
    assert.strictEqual(client.usage().requests, requests)
  })

  it("stays within its own rate", async () => {
    const { client } = await company({ requestsPerMinute: 3, pageSize: 10 })
    for (const _ of [1, 2, 3]) await client.customers.list().toArray()
    const controller = new AbortController()
    const fourth = failureOf(client.customers.list({}, { signal: controller.signal }).toArray())
    // It waits for a permit, whether the abort comes before or during the wait.
    setImmediate(() => controller.abort())
    assert.strictEqual((await fourth).code, "aborted")
    assert.strictEqual(client.usage().requests, 3)
  })

  it("that ends with a refusal of the request keeps the outcome of the lost answer unknown", async () => {
    const { client } = await company({ maxRetryWaitMs: 100 })
    await faults(
      { kind: "dropResponse", method: "POST", path: "/customers", times: 1 },
      { kind: "status", status: 429, code: "rate_limited", headers: { "retry-after": "60" }, method: "POST", times: 1 }
    )
    const after = await failureOf(client.customers.create({ customercode: "AFTER" }))
    assert.deepStrictEqual([after.code, after.isOutcomeUnknown], ["rate_limited", true])
    await sdk.control("DELETE", "/faults")
    const { client: other } = await company({ maxRetryWaitMs: 100 })
    await faults({ kind: "status", status: 429, code: "rate_limited", headers: { "retry-after": "60" }, times: 1 })
    const first = await failureOf(other.customers.create({ customercode: "FIRST" }))
    assert.deepStrictEqual([first.code, first.isOutcomeUnknown], ["rate_limited", false])
    const unsent = await failureOf(other.customers.create({ customercode: "FIRST" }))
    assert.deepStrictEqual([unsent.code, unsent.isOutcomeUnknown], ["paused", false])
  })

  it("by the caller under the key of the error has one effect", async () => {
    const { client, token } = await company({ maxAttempts: 1 })
    await faults({ kind: "dropResponse", method: "POST", path: "/shiptos", times: 1 })
    const customer = await client.customers.create({ customercode: "K" })
    const input = { customerid: customer.id, name: "Dock 4" }
    const failure = await failureOf(client.shiptos.create(input))
    assert(failure instanceof Sdk.ConnectionError)
    assert.strictEqual(failure.isOutcomeUnknown, true)
    const later = await sdk.client({ token })
    const made = await later.shiptos.create(input, { idempotencyKey: failure.idempotencyKey! })
    assert.deepStrictEqual(valuesOf(await later.shiptos.list().toArray(), "id"), [made.id])
    const reused = await failureOf(
      later.shiptos.create({ ...input, name: "x" }, { idempotencyKey: failure.idempotencyKey! })
    )
    assert.deepStrictEqual([reused.code, reused.isOutcomeUnknown], ["idempotency_replay", false])
  })
})

describe("a batch", () => {
  it("gives every record its own result", async () => {
    const { client } = await company()
    await client.customers.create({ customercode: "USED" })
    const inputs = [
      { customercode: "ONE" },
      { customercode: "USED" },
      { customercode: "TWO", creditlimit: "x" },
      { customercode: "THREE" }
    ]
    const { items, failures, idempotencyKey } = await client.customers.batch(inputs, { idempotencyKey: "import-1" })
    assert.strictEqual(idempotencyKey, "import-1")
    assert.deepStrictEqual(cellsOf(items, "index", "status"), [
      [0, "created"],
      [1, "rejected"],
      [2, "rejected"],
      [3, "created"]
    ])
    assertEach(failures, (one) => (one.status === "rejected" ? one.error.code : one.status), [
      "duplicate",
      "invalid_type"
    ])
    // The same call again: the first answer.
    const again = await client.customers.batch(inputs, { idempotencyKey: "import-1" })
    assert.deepStrictEqual(valuesOf(again.items, "status"), valuesOf(items, "status"))
    assert.strictEqual((await client.customers.list().toArray()).length, 3)
  })

  const many = (count: number) => Array.from({ length: count }, (_, at) => ({ customercode: `M${at}` }))

  it("sends at most 250 records at once, and results in the order given", async () => {
    const { client } = await company()
    const { items } = await client.customers.batch(many(501))
    assert.strictEqual(client.usage().requests, 3)
    for (const [at, item] of items.entries()) {
      assert(item.status === "created")
      assert.deepStrictEqual([item.index, item.record.customercode], [at, `M${at}`])
    }
    assert.deepStrictEqual((await client.customers.batch([])).items, [])
  })

  it("keeps the results of its first requests when a later one fails, and can be repeated", async () => {
    const { client } = await company({ maxAttempts: 1 })
    await faults({ kind: "dropResponse", method: "POST", path: "/customers/batch", after: 1, times: 1 })
    const failure = await failureOf(client.customers.batch(many(600), { idempotencyKey: "load-1" }))
    assert(failure instanceof Sdk.IncompleteBatchError)
    const count = (status: string) => failure.results.filter((one) => one.status === status).length
    assert.deepStrictEqual([count("created"), count("unknown"), count("notSent")], [250, 250, 100])
    assert(failure.cause instanceof Sdk.ConnectionError)
    await sdk.control("DELETE", "/faults")
    assert.deepStrictEqual((await client.customers.batch(many(600), { idempotencyKey: "load-1" })).failures, [])
    assert.strictEqual((await client.customers.list().toArray()).length, 600)
  })
})

describe("an abort", () => {
  it("before the call sends nothing, and follows the end of the client", async () => {
    const { client } = await company()
    const reason = new Error("no longer needed")
    const failure = await failureOf(client.customers.get(1, { signal: AbortSignal.abort(reason) }))
    assert(failure instanceof Sdk.AbortedError)
    assert.deepStrictEqual([failure.cause, failure.isOutcomeUnknown], [reason, false])
    assert.strictEqual(client.usage().requests, 0)
    await client.customers.list().toArray()
    await client.close()
    assert.strictEqual((await failureOf(client.customers.get(1))).code, "aborted")
  })

  it("ends a write in flight at once, and its error says that it may have an effect", async () => {
    const controller = new AbortController()
    const hanging: typeof fetch = (_input, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener("abort", () => reject(new Error("aborted")))
        controller.abort("stop")
      })
    const { client } = await company({ fetch: hanging })
    const failure = await failureOf(client.customers.create({ customercode: "A" }, { signal: controller.signal }))
    assert.deepStrictEqual(
      [failure.code, failure.cause, failure.isOutcomeUnknown, failure.idempotencyKey === null],
      ["aborted", "stop", true, false]
    )
  })

  it("ends a wait for Retry-After, by the signal of the client too", async () => {
    const controller = new AbortController()
    const log = ({ status }: Sdk.LogEntry) => {
      if (status === 429) setImmediate(() => controller.abort())
    }
    const { client } = await company({ signal: controller.signal, log })
    await faults({ kind: "status", status: 429, code: "rate_limited", headers: { "retry-after": "50" }, times: 1 })
    assert.strictEqual((await failureOf(client.customers.list().toArray())).code, "aborted")
  })
})

it("the client's own transport trusts the given certificates and no others", async () => {
  const { cert, key } = certificate(["localhost"], ["127.0.0.1"])
  const seen: Array<string | undefined> = []
  const { port, close } = await startRecording(
    (request, _body, response) => {
      seen.push(request.headers.authorization)
      response.setHeader("content-type", "application/json").end('{"data":[],"_meta":{"has_more":false}}')
    },
    { cert, key }
  )
  const baseUrl = `https://127.0.0.1:${port}/!/api/v2`
  const trusting = Sdk.createClient({ baseUrl, token: "over-tls", pageSize: 5, transport: { ca: cert } })
  const wary = Sdk.createClient({ baseUrl, token: "over-tls", pageSize: 5, maxAttempts: 1 })
  try {
    assert.deepStrictEqual(await trusting.customers.list().toArray(), [])
    assert.strictEqual((await failureOf(wary.customers.list().toArray())).code, "unreachable")
    assert.deepStrictEqual(seen, ["Bearer over-tls"])
  } finally {
    await Promise.all([trusting.close(), wary.close()])
    await close()
  }
})

it("the caller's fetch gets the same records, and follows no redirect", async () => {
  const { client, token } = await company()
  await client.customers.batch([{ customercode: "A", creditlimit: "9007199254740993.0001" }, { customercode: "B" }])
  const agents: Array<string | null> = []
  const own: typeof fetch = (input, init) => {
    agents.push(new Headers(init?.headers).get("user-agent"))
    return fetch(input, init)
  }
  const other = await sdk.client({ token, fetch: own, userAgent: "shop/1.0", pageSize: 1 })
  assert.deepStrictEqual(await other.customers.list().toArray(), await client.customers.list().toArray())
  assert.deepStrictEqual([...new Set(agents)], ["shop/1.0"])
  await faults({ kind: "status", status: 302, headers: { location: `${sdk.baseUrl()}/customers` }, times: 1 })
  assert.strictEqual((await failureOf(other.customers.get(1))).code, "redirected")
})
