/** Failures of a source: their classification, retries and pauses. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import * as TestClock from "effect/testing/TestClock"
import type { ConnectorShape, WriteRequest } from "../../src/connector/Connector.ts"
import type { Handling, SourceError, SourceReason } from "../../src/connector/SourceError.ts"
import { things } from "../support/tiny.ts"
import * as ScriptedHttp from "./ScriptedHttp.ts"
import {
  answers,
  fails,
  hangs,
  hangsInBody,
  list,
  neverEnds,
  refuses,
  resetsInBody,
  type Step
} from "./ScriptedHttp.ts"
import { test } from "../support/suite.ts"
import { assertEach } from "../support/assertions.ts"

const first = { resource: things, since: null, token: null }
const byToken = { ...first, token: JSON.stringify({ cursor: "c1", step: 1, mark: "c1" }) }
const good = list([{ id: 1 }])
const html = answers(200, "<!doctype html><title>Sign in</title>", { "content-type": "text/html" })

/** Advances the clock until the effect ends. */
const runToEnd = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Effect.result(effect))
    yield* TestClock.adjust("2 hours")
    return yield* Fiber.join(fiber)
  })

type Options = Parameters<typeof ScriptedHttp.make>[1]

/** Runs the script. Returns the failure and the times of the requests. */
const failing = Effect.fnUntraced(function* (
  steps: ReadonlyArray<Step>,
  ask: (connector: ConnectorShape) => Effect.Effect<unknown, SourceError> = (connector) => connector.page(first),
  options?: Options
) {
  const scripted = yield* ScriptedHttp.make(steps, options)
  const outcome = yield* runToEnd(ask(scripted.connector))
  assert(outcome._tag === "Failure", "the request should fail")
  assert.strictEqual(scripted.left.length, 0, "the script should be used up")
  return { ...scripted, error: outcome.failure, reason: outcome.failure.reason }
})

const succeeding = Effect.fnUntraced(function* (
  steps: ReadonlyArray<Step>,
  ask: (connector: ConnectorShape) => Effect.Effect<unknown, SourceError> = (connector) => connector.page(first),
  options?: Options
) {
  const scripted = yield* ScriptedHttp.make(steps, options)
  const outcome = yield* runToEnd(ask(scripted.connector))
  if (outcome._tag === "Failure") throw outcome.failure
  assert.strictEqual(scripted.left.length, 0, "the script should be used up")
  return { ...scripted, value: outcome.success }
})

const write: WriteRequest = {
  resource: things,
  operation: "create",
  id: null,
  body: `{"name":"é"}`,
  idempotencyKey: "key-1",
  ifMatch: null
}
const writing = (connector: ConnectorShape) => connector.write(write)
const batching = (connector: ConnectorShape) => connector.write({ ...write, operation: "batch", body: "[{}]" })
const me = answers(200, { companyid: 1, scopes: [] })
const times = <A>(count: number, item: A): Array<A> => Array.from({ length: count }, () => item)

describe("a request that is not retried", () => {
  type Expected = Readonly<Record<string, unknown>>
  const scope = (parameters: string) =>
    refuses(403, "insufficient_scope", {}, { "www-authenticate": `Bearer ${parameters}` })
  const unauthorized = (code: string, answer = refuses(401, code)): readonly [Step, Expected] => [
    answer,
    { _tag: "Unauthorized", code, isSuspicion: true }
  ]
  const forbidden = (code: string, more: Expected = {}, answer = refuses(403, code)): readonly [Step, Expected] => [
    answer,
    { _tag: "Forbidden", code, ...more }
  ]
  const refused = (
    status: number,
    code: string,
    more: Expected = {},
    answer = refuses(status, code)
  ): readonly [Step, Expected] => [answer, { _tag: "Refused", status, code, ...more }]
  const terminal: ReadonlyArray<readonly [step: Step, expected: Expected]> = [
    unauthorized("unauthorized"),
    unauthorized("token_revoked"),
    unauthorized("token_expired"),
    // Stated by the header alone, and by a code that belongs to another status.
    unauthorized(
      "unauthorized",
      answers(401, null, { "www-authenticate": `Bearer realm="api", error="invalid_token"` })
    ),
    unauthorized("token_revoked", refuses(400, "token_revoked")),
    forbidden(
      "insufficient_scope",
      { scope: "setup:read", stops: "resource", isSuspicion: false },
      scope(`realm="api", error="insufficient_scope", scope="setup:read"`)
    ),
    forbidden(
      "insufficient_scope",
      { scope: "setup:read" },
      scope("realm=api, error=insufficient_scope, scope=setup:read")
    ),
    forbidden("forbidden", { scope: null, stops: "resource", isSuspicion: true }),
    forbidden("feature_not_licensed", { stops: "resource" }),
    forbidden("record_limit_reached"),
    [refuses(404, "not_found"), { _tag: "NotFound", detail: "about not_found" }],
    refused(400, "unknown_parameter", { field: "limit" }, refuses(400, "unknown_parameter", { field: "limit" })),
    refused(400, "batch_too_large"),
    refused(405, "method_not_allowed"),
    refused(409, "cannot_cancel"),
    refused(409, "duplicate"),
    refused(409, "idempotency_replay"),
    refused(413, "request_too_large", { field: null }, answers(413, "<html>")),
    refused(413, "request_too_large", {}, answers(413)),
    refused(415, "not_batchable"),
    refused(422, "rule_violation", { detail: "about rule_violation" }),
    refused(422, "brand_new"),
    [refuses(501, "not_implemented"), { _tag: "NotImplemented" }],
    [
      answers(302, null, { location: "https://elsewhere.test/" }),
      { _tag: "Redirected", status: 302, to: "https://elsewhere.test/", isSuspicion: true }
    ]
  ]
  test("fails with the reason that the answer states, as a read, a write and a batch", function* () {
    for (const [step, expected] of terminal) {
      for (const ask of [undefined, writing, batching]) {
        const { reason, sent } = yield* failing([step, ...(expected["isSuspicion"] === true ? [me] : [])], ask)
        assert.strictEqual(sent.filter(({ path }) => path !== "/me").length, 1)
        const actual = Object.keys(expected).map((key) => [
          key,
          key in reason ? reason[key as keyof SourceReason] : reason.handling[key as keyof Handling]
        ])
        assert.deepStrictEqual<unknown>(Object.fromEntries(actual), expected)
      }
    }
  })

  test("returns the current record with stale_record, and the problems with invalid_request", function* () {
    for (const key of ["current", "record", "data"]) {
      const { reason } = yield* failing([refuses(409, "stale_record", { [key]: { id: 1, name: "now" } })], writing)
      assert.deepInclude(reason, { _tag: "Refused", current: { id: 1, name: "now" } })
    }
    const errors = [{ field: "lines[0].quantity", code: "required", message: "is required" }]
    const { reason } = yield* failing([refuses(400, "invalid_request", { errors })], writing)
    assert.deepInclude(reason, { _tag: "Refused", problems: errors })
  })

  test("fails with TooLarge if a response exceeds the limit", function* () {
    for (const step of [answers(200, "x".repeat(2000)), neverEnds, answers(200, "{}", { "content-length": "99999" })]) {
      const { reason, sent } = yield* failing([step], undefined, { answerBytesMax: 1000 })
      assert(reason._tag === "TooLarge")
      assert.strictEqual(reason.bytesMax, 1000)
      assert.strictEqual(sent.length, 1)
    }
  })

  test("fails with PageTokenRefused only if the source rejects the page token", function* () {
    const byLink = { ...first, token: `{"url":"/things?cancel=any&after=7","step":1,"mark":"x"}` }
    const noCursor = refuses(400, "invalid_request", { field: "cursor" })
    for (const [tag, request, step] of [
      ["PageTokenRefused", byToken, noCursor],
      ["PageTokenRefused", byToken, refuses(400, "invalid_cursor")],
      ["PageTokenRefused", byToken, refuses(422, "rule_violation", { field: "cursor" })],
      ["PageTokenRefused", byToken, refuses(404, "not_found")],
      ["PageTokenRefused", byToken, refuses(410, "gone")],
      ["PageTokenRefused", byToken, answers(410, "gone")],
      ["PageTokenRefused", byLink, refuses(400, "invalid_request", { field: "after" })],
      ["Refused", first, noCursor],
      ["Refused", byToken, refuses(400, "invalid_type", { field: "modifiedsince" })]
    ] as const) {
      assert.strictEqual((yield* failing([step], (connector) => connector.page(request))).reason._tag, tag)
    }
  })

  test("fails without a request if the page token has a foreign form", function* () {
    for (const token of [
      "",
      "c1",
      "{}",
      `{"cursor":"x"}`,
      `{"offset":100,"step":1,"mark":""}`,
      `{"page":2,"size":null,"most":null,"step":1,"mark":""}`,
      `{"page":2,"step":1,"mark":"","edge":{"first":"1","last":"2","before":"/things","overlap":0}}`,
      `{"page":2,"size":0,"most":1,"step":1,"mark":"","edge":{"first":"1","last":"2","before":"/x","overlap":0}}`,
      `{"page":2,"size":1,"most":1,"step":1,"mark":"","edge":{"first":"1","last":"2","before":"/../../x","overlap":0}}`,
      `{"offset":100,"step":1,"mark":"","edge":{"first":"1","last":"2","before":null,"overlap":-1}}`,
      `{"offset":100,"step":1,"mark":"","edge":{"last":"2","before":null,"overlap":1}}`,
      `{"url":"https://elsewhere.test/","step":1,"mark":"x"}`,
      `{"url":"/../../../x","step":1,"mark":"x"}`
    ]) {
      const { reason, sent } = yield* failing([], (connector) => connector.page({ ...first, token }))
      assert.strictEqual(reason._tag, "PageTokenRefused", token)
      assert.strictEqual(sent.length, 0)
    }
  })
})

describe("a request that is retried", () => {
  const passing: ReadonlyArray<readonly [name: string, step: Step, expected: SourceReason["_tag"]]> = [
    ["500 server_error", refuses(500, "server_error"), "ServerFault"],
    ["502 from a proxy", answers(502, "<html>Bad Gateway</html>"), "ServerFault"],
    ["503 without a body", answers(503), "ServerFault"],
    ["408", answers(408), "ServerFault"],
    ["423", answers(423), "ServerFault"],
    ["connection refused", fails("ECONNREFUSED"), "Unreachable"],
    ["connection reset", fails("ECONNRESET"), "Unreachable"],
    ["connection reset in the body", resetsInBody(`{"data":[{"id":1`), "Unreachable"],
    ["a body shorter than it was declared", answers(200, `{"data":[]}`, { "content-length": "500" }), "Unreachable"],
    ["no response in time", hangs, "TimedOut"],
    ["no complete body in time", hangsInBody(`{"data":[`), "TimedOut"],
    ["HTML", html, "Malformed"],
    ["an empty body", answers(200), "Malformed"],
    ["half a JSON", answers(200, `{"data":[{"id":1},`), "Malformed"],
    ["JSON with text behind it", answers(200, `{"data":[]}}`), "Malformed"],
    ["bytes that are not UTF-8", answers(200, Uint8Array.of(0x7b, 0xff, 0x7d)), "Malformed"],
    ["a body in a compression that was not requested", answers(200, "x", { "content-encoding": "br" }), "Malformed"],
    ["a damaged compressed body", answers(200, `{"data":[]}`, { "content-encoding": "gzip" }), "Unreachable"]
  ]
  test("succeeds after one failure, and fails after the maximum of attempts", function* () {
    for (const [name, step, expected] of passing) {
      const { value, sent, connector } = yield* succeeding([step, good])
      assert.strictEqual((value as { readonly attempts: number }).attempts, 2, name)
      assert.strictEqual(sent.length, 2)
      assert.strictEqual(sent[0]!.path, sent[1]!.path)
      assert.deepInclude(yield* connector.usage, { requests: 2, retries: 1, rateLimited: 0 })
      const failed = yield* failing(times(4, step), undefined, { retry: { attemptsMax: 4 } })
      assert.strictEqual(failed.reason._tag, expected, name)
      assert.isTrue(failed.reason.handling.isRetryable)
      assert.strictEqual(failed.sent.length, 4)
      assert.strictEqual(failed.error.request.attempts, 4)
    }
  })

  test("fails as Malformed after three JSON responses without a list, or error responses in a foreign form", function* () {
    const bodies = [{}, { rows: [] }, "3", "null", { data: { items: [] } }]
    for (const step of [...bodies.map((body) => answers(200, body)), refuses(200, "server_error")]) {
      const { reason, sent } = yield* failing(times(3, step))
      assert.strictEqual(reason._tag, "Malformed")
      assert.strictEqual(sent.length, 3)
    }
    for (const status of [400, 401, 403, 404, 409, 422]) {
      for (const body of ["<html>", null, `{"message":"no"}`, `{"error":"no"}`]) {
        const { reason } = yield* failing(times(3, answers(status, body)))
        assert(reason._tag === "Malformed")
        assert.include(reason.detail, `status ${status}`)
      }
    }
    assert.strictEqual((yield* succeeding([answers(404, "<html>"), good])).sent.length, 2)
  })

  test("waits between retries with doubled, jittered and capped backoff", function* () {
    const retry = { backoffBase: Duration.seconds(1), backoffMax: Duration.seconds(8) }
    const { sent } = yield* failing(times(8, refuses(500, "server_error")), undefined, { retry })
    const pauses = sent.slice(1).map(({ at }, index) => at - sent[index]!.at)
    for (const [index, ceiling] of [1000, 2000, 4000, 8000, 8000, 8000, 8000].entries()) {
      assert.isAtLeast(pauses[index]!, ceiling / 2)
      assert.isAtMost(pauses[index]!, ceiling)
    }
  })

  test("waits for the Retry-After of a 503, and has a timeout for each attempt that includes its body", function* () {
    const unavailable = refuses(503, "server_error", {}, { "retry-after": "40" })
    const { sent: attempts, pausesMs } = yield* succeeding([unavailable, good])
    assert.strictEqual(attempts[1]!.at - attempts[0]!.at, 40_000)
    assert.deepStrictEqual(pausesMs, [40_000])
    const { sent } = yield* succeeding([hangsInBody("{"), hangs, good], undefined, {
      requestTimeout: Duration.seconds(5),
      retry: { backoffBase: Duration.zero }
    })
    assertEach(sent, ({ at }) => at - sent[0]!.at, [0, 5000, 10_000])
  })
})

describe("a 429 response", () => {
  test("pauses for its Retry-After where its body is cut or never ends", function* () {
    for (const step of [resetsInBody, hangsInBody]) {
      const cut = step(`{"error":`, 429, { "retry-after": "90" })
      const { sent, pausesMs } = yield* succeeding([cut, good])
      assert.deepStrictEqual(pausesMs, [90_000])
      assert.isAtLeast(sent[1]!.at - sent[0]!.at, 90_000)
    }
  })

  const limited = (headers: Readonly<Record<string, string>> = {}) => refuses(429, "rate_limited", {}, headers)
  const waited = (headers: Readonly<Record<string, string>>, options?: Options) =>
    Effect.map(succeeding([limited(headers), good], undefined, options), ({ sent, pausesMs }) => {
      assert.strictEqual(pausesMs.length, 1, "the budget should be paused")
      assert.isAtLeast(sent[1]!.at - sent[0]!.at, pausesMs[0]!)
      return sent[1]!.at - sent[0]!.at
    })

  test("pauses for Retry-After in seconds, or until its date by the Date header or the local clock", function* () {
    const date = "Wed, 21 Oct 2026 07:28:00 GMT"
    assert.strictEqual(yield* waited({ "retry-after": "Thu, 01 Jan 1970 00:00:12 GMT" }), 12_000)
    assert.strictEqual(yield* waited({ date, "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" }), 30_000)
    assert.strictEqual(yield* waited({ "retry-after": "7" }), 7000)
  })

  test("pauses with backoff from one second if Retry-After is missing or invalid", function* () {
    for (const headers of [
      {},
      { "retry-after": "soon" },
      { "retry-after": "-5" },
      { "retry-after": "0" },
      { date: "Wed, 21 Oct 2026 07:28:00 GMT", "retry-after": "Wed, 21 Oct 2026 07:27:00 GMT" }
    ]) {
      const waitMs = yield* waited(headers)
      assert.isAtLeast(waitMs, 500)
      assert.isAtMost(waitMs, 1000)
    }
    const { sent } = yield* succeeding([...times(4, limited()), good])
    assert.isAtLeast(sent[4]!.at - sent[3]!.at, 4000)
  })

  test("does not count as one of the attempts, and fails the request after the maximum wait", function* () {
    const { connector } = yield* succeeding(
      [...times(20, limited({ "retry-after": "5" })), refuses(500, "server_error"), good],
      undefined,
      { retry: { attemptsMax: 2 } }
    )
    assert.deepInclude(yield* connector.usage, { requests: 22, retries: 21, rateLimited: 20 })
    const { reason } = yield* failing(times(4, limited({ "retry-after": "30" })), undefined, {
      rateLimitedWaitMax: Duration.seconds(100)
    })
    assert.strictEqual(reason._tag, "RateLimited")
  })

  test("with a huge Retry-After fails the request and blocks others until then", function* () {
    const scripted = yield* ScriptedHttp.make([limited({ "retry-after": "86400" }), good])
    const outcome = yield* runToEnd(scripted.connector.page(first))
    assert(outcome._tag === "Failure")
    assert.deepStrictEqual(outcome.failure.retryAfter, Duration.days(1))
    const soon = yield* runToEnd(scripted.connector.page(first))
    assert(soon._tag === "Failure")
    assert.deepStrictEqual(soon.failure.retryAfter, Duration.hours(22))
    assert.strictEqual(scripted.sent.length, 1)
    yield* TestClock.adjust("1 day")
    assert.strictEqual((yield* runToEnd(scripted.connector.page(first)))._tag, "Success")
    assert.strictEqual(scripted.sent.length, 2)
  })
})

describe("a write", () => {
  test("is retried with the same bytes and key until a result arrives, alone and in a batch", function* () {
    const passing = [fails("ECONNRESET"), refuses(500, "server_error")]
    const results = { results: [{ index: 0, status: 201, record: { id: 5 } }] }
    const inBatch = [
      answers(207, { results: null }),
      ...passing,
      hangs,
      resetsInBody(`{"results":[`),
      refuses(429, "rate_limited", {}, { "retry-after": "2" }),
      refuses(409, "request_in_progress", {}, { "retry-after": "1" }),
      answers(207, `{"results":[{"index":0,`),
      answers(207, results)
    ]
    const alone = [...passing, answers(201, { id: 5 }, { "idempotent-replayed": "true" })]
    for (const [ask, path, body, steps, expected] of [
      [writing, "/things", write.body, alone, { status: 201, body: `{"id":5}` }],
      [batching, "/things/batch", "[{}]", inBatch, { status: 207 }]
    ] as const) {
      const { sent, value } = yield* succeeding(steps, ask, { retry: { attemptsMax: 20 } })
      assert.strictEqual(sent.length, steps.length)
      for (const request of sent) {
        assert.deepInclude(request, { method: "POST", path, body })
        assert.strictEqual(request.headers["idempotency-key"], "key-1")
        assert.strictEqual(request.headers["content-type"], "application/json")
      }
      const items = [{ _tag: "WriteSucceeded", index: 0, id: "5", record: null, rejected: null }]
      assert.deepInclude(value, { ...expected, items })
    }
  })

  test("fails as Malformed if its response exceeds the limit, and with texts that Postgres can store", function* () {
    for (const ask of [writing, batching]) {
      const large = yield* failing(times(3, answers(201, "x".repeat(2000))), ask, { answerBytesMax: 1000 })
      assert(large.reason._tag === "Malformed")
      assert.include(large.reason.detail, "larger than 1000 bytes")
      assert.strictEqual(large.sent.length, 3)
    }
    const errors = [{ field: "a\0b", code: "x", message: "m".repeat(2000) }]
    const { reason } = yield* failing([refuses(400, "odd\0code", { message: "\0\ud800", errors })], writing)
    assert(reason._tag === "Refused")
    assert.deepInclude(reason, { code: "oddcode", detail: "\ufffd" })
    assert.deepStrictEqual(reason.problems, [{ field: "ab", code: "x", message: "m".repeat(500) }])
  })

  test("checks mayBeSent before each attempt", function* () {
    let checks = 0
    const mayBeSent = Effect.sync(() => {
      checks += 1
      return checks < 3
    })
    const scripted = yield* ScriptedHttp.make([refuses(500, "server_error"), refuses(500, "server_error")])
    const outcome = yield* runToEnd(scripted.connector.write({ ...write, mayBeSent }))
    assert.strictEqual(checks, 3)
    assert.strictEqual(scripted.left.length, 0)
    const reason = outcome._tag === "Failure" ? outcome.failure.reason : null
    assert.deepInclude(reason, { _tag: "SendCancelled", attempts: 2 })
    assert.isFalse(reason?.handling.isRetryable)
  })

  test("waits for a pause that began during the mayBeSent check", function* () {
    const scripted = yield* ScriptedHttp.make([
      refuses(429, "rate_limited", {}, { "retry-after": "5" }),
      answers(201, { id: 5 }),
      answers(201, { id: 6 })
    ])
    const slow = { ...write, mayBeSent: Effect.delay(Effect.succeed(true), "1 second") }
    const { write: send } = scripted.connector
    yield* runToEnd(Effect.all([send(write), send(slow)], { concurrency: "unbounded" }))
    assertEach(scripted.sent, ({ at }) => at >= 5000, [false, true, true])
  })

  test("waits for request_in_progress without pausing other requests", function* () {
    const { sent, pausesMs } = yield* succeeding(
      [
        refuses(409, "request_in_progress", {}, { "retry-after": "3" }),
        refuses(409, "request_in_progress"),
        answers(201, { id: 5 })
      ],
      writing
    )
    assert.strictEqual(sent.length, 3)
    assert.isAtLeast(sent[1]!.at, 3000)
    assert.deepStrictEqual(pausesMs, [])
  })
})

describe("an implausible Retry-After", () => {
  const foreign = (seconds: string, status = 503) => answers(status, "<html>", { "retry-after": seconds })
  const year = "31536000"

  test("from a proxy pauses all requests for a minute, then probes with growing pauses", function* () {
    for (const until of [year, "Fri, 31 Dec 9999 23:59:59 GMT"]) {
      const { connector, sent } = yield* ScriptedHttp.make([foreign(until), foreign(until), good, good], {
        retryAfterMax: Duration.minutes(15)
      })
      const error = yield* Effect.flip(connector.page(first))
      assert.strictEqual(error.reason._tag, "ServerFault")
      assert.deepStrictEqual(error.retryAfter, Duration.hours(1), "a caller that keeps the time does not keep a year")
      const others = yield* Effect.forkChild(
        Effect.forEach([1, 2, 3], () => Effect.result(connector.page(first)), { concurrency: "unbounded" })
      )
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(sent.length, 1, "no request within the pause")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(sent.length, 2, "one probe, although three requests wait")
      yield* TestClock.adjust("238 seconds")
      assert.strictEqual(sent.length, 2, "the probe got the same response: four minutes")
      yield* TestClock.adjust("10 seconds")
      const ends = (yield* Fiber.join(others)).map(({ _tag }) => _tag)
      assert.deepStrictEqual(ends.sort(), ["Failure", "Success", "Success"])
      assert.strictEqual(sent.length, 4)
    }
  })

  test("for one path pauses the other paths once only", function* () {
    const { connector, sent } = yield* ScriptedHttp.make([foreign(year), good, foreign(year), good], {
      retryAfterMax: Duration.minutes(15)
    })
    const failed = (path: string) =>
      Effect.gen(function* () {
        const outcome = yield* Effect.result(connector.page({ ...first, resource: { ...things, path } }))
        return outcome._tag === "Failure" ? outcome.failure.reason._tag : "answered"
      })
    assert.strictEqual(yield* failed("broken"), "ServerFault")
    const other = yield* Effect.forkChild(failed("things"))
    yield* TestClock.adjust("61 seconds")
    assert.strictEqual(yield* Fiber.join(other), "answered")
    assert.strictEqual(yield* failed("broken"), "ServerFault")
    assert.strictEqual(yield* failed("things"), "answered", "without a pause")
    assert.strictEqual(sent.length, 4)
  })

  test("from the service itself pauses for 24 hours and reports it", function* () {
    const never = "9".repeat(30)
    const { connector, sent } = yield* ScriptedHttp.make([
      refuses(503, "server_error", {}, { "retry-after": never }),
      good
    ])
    const one = yield* Effect.result(connector.page(first))
    assert(one._tag === "Failure")
    assert.deepStrictEqual(one.failure.retryAfter, Duration.days(1))
    yield* TestClock.adjust("1 hour")
    const two = yield* Effect.flip(connector.page(first))
    assert.strictEqual(two.reason._tag, "SourcePaused")
    assert.match(
      two.message,
      /not sent: requests are paused for another 82800 s: GET \/things was answered 503 by the service 60 min ago, with Retry-After more than 10 years/
    )
    assert.match(two.remedy, /tributary budget release/)
    assert.notInclude(two.message, "429")
    yield* TestClock.adjust("23 hours")
    assert.strictEqual((yield* Effect.result(connector.page(first)))._tag, "Success")
    assert.strictEqual(sent.length, 2)
  })
})
