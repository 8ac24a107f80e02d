/** Requests for pages and records: parameters, response metadata and paging. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import * as TestClock from "effect/testing/TestClock"
import type { ConnectorShape, Page, PageRequest } from "../../src/connector/Connector.ts"
import type { SourceReason } from "../../src/connector/SourceError.ts"
import { plain, things } from "../support/tiny.ts"
import * as ScriptedHttp from "./ScriptedHttp.ts"
import { answers, failureOf, list, refuses, type Step, token } from "./ScriptedHttp.ts"
import { test } from "../support/suite.ts"
import { valuesOf } from "../support/rows.ts"
import { assertEach } from "../support/assertions.ts"

const first: PageRequest = { resource: things, since: null, token: null }
const page = list([{ id: 1 }])
type Options = Parameters<typeof ScriptedHttp.make>[1]

/** Scans to the end. Returns the pages and the requested paths. */
const scan = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>, options?: Options, request: PageRequest = first) {
  const { connector, sent } = yield* ScriptedHttp.make(steps, options)
  const pages: Array<Page> = []
  let next: string | null = null
  do {
    const one: Page = yield* connector.page({ ...request, token: next })
    pages.push(one)
    next = one.next
  } while (next !== null)
  return {
    pages,
    paths: sent.map(({ path }) => path),
    ids: pages.flatMap(({ records }) => records.map(({ id }) => id))
  }
})

const brokenBy = (steps: ReadonlyArray<Step>, options?: Options) =>
  Effect.map(
    failureOf(scan(steps, options)),
    ({ message, reason }): Extract<SourceReason, { _tag: "PagingBroken" }> => {
      assert(reason._tag === "PagingBroken", message)
      return reason
    }
  )

const numbered = (from: number, count: number) => Array.from({ length: count }, (_, at) => ({ id: from + at }))

describe("a page request", () => {
  test("has exactly the parameters that the catalogue states, and the token in its header only", function* () {
    const since = "2026-01-01T00:00:00.000001+02:00"
    for (const [path, request, options] of [
      ["/things?cancel=any", first],
      ["/plains", { ...first, resource: plain }],
      ["/things?limit=250&cancel=any", first, { pageSize: 250 }],
      ["/things?modifiedsince=2026-01-01T00%3A00%3A00.000001%2B02%3A00", { ...first, since }],
      ["/plains", { ...first, resource: plain, since }],
      ["/things?cancel=any&include=custom_fields", first, { includeCustomFields: true }]
    ] as ReadonlyArray<readonly [path: string, request: PageRequest, options?: Options]>) {
      const { connector, sent } = yield* ScriptedHttp.make([page], options)
      yield* connector.page(request)
      assert.strictEqual(sent[0]!.path, path)
      assert.strictEqual(sent[0]!.headers["authorization"], `Bearer ${token}`)
      assert.strictEqual(sent[0]!.headers["accept"], "application/json")
      assert.strictEqual(sent[0]!.headers["traceparent"], undefined)
    }
  })

  test("omits include after the resource rejected it", function* () {
    const refusal = refuses(400, "invalid_enum", { field: "include" })
    const options = { includeCustomFields: true }
    const { connector, sent } = yield* ScriptedHttp.make([refusal, page, page, page], options)
    yield* connector.page(first)
    yield* connector.page(first)
    yield* connector.page({ ...first, resource: plain })
    assert.deepStrictEqual(valuesOf(sent, "path"), [
      "/things?cancel=any&include=custom_fields",
      "/things?cancel=any",
      "/things?cancel=any",
      "/plains?include=custom_fields"
    ])
  })
})

describe("a page", () => {
  test("has its records from any of the known envelopes", function* () {
    const items = [{ id: 1, price: "1.10" }]
    for (const body of [items, { data: items }, { results: items }, { items }, { records: items }, { things: items }]) {
      assert.deepStrictEqual((yield* scan([answers(200, body)])).ids, ["1"])
    }
    const { ids } = yield* scan([answers(200, { data: [{ id: 9 }], rows: items })], { itemsKey: "rows" })
    assert.deepStrictEqual(ids, ["1"])
  })

  test("has what its answer states: its position, its source, its size and the source's time", function* () {
    const at = "2026-01-01T00:00:00.1+00:00"
    for (const position of [at, "", null, 1_700_000_000, true, [at], { at }, "a\u0000b", undefined]) {
      const { pages } = yield* scan([list([], { has_more: false, synced_through: position })])
      assert.strictEqual(pages[0]!.syncedThrough, position === at ? at : null)
    }
    for (const body of [{}, { _meta: null }, { _meta: [] }, { _meta: "x" }].map((meta) => ({
      data: [{ id: 1 }],
      ...meta
    }))) {
      const { pages } = yield* scan([answers(200, body)])
      assert.deepInclude(pages[0], { syncedThrough: null })
      assert.lengthOf(pages[0]!.records, 1)
    }
    assert.isNull((yield* scan([answers(200, [{ id: 1 }])])).pages[0]!.syncedThrough)
    for (const [date, expected] of [
      ["Sat, 21 Nov 2026 05:49:43 GMT", "2026-11-21T05:49:43Z"],
      ["Saturday, 21-Nov-26 05:49:43 GMT", "2026-11-21T05:49:43Z"],
      ["Sat, 31 Nov 2026 05:49:43 GMT", null],
      ["2026-11-21T05:49:43Z", null],
      ["soon", null],
      [undefined, null]
    ] as const) {
      const { pages } = yield* scan([list([], { has_more: false }, date === undefined ? {} : { date })])
      assert.strictEqual(pages[0]!.answeredAt, expected)
    }
    const { pages } = yield* scan([list([{ id: 1 }], { has_more: false }, { "Svc-Request-Id": "req-7" })])
    assert.deepInclude(pages[0], {
      source: "GET /things?cancel=any [request req-7]",
      bytes: `{"data":[{"id":1}],"_meta":{"has_more":false}}`.length,
      attempts: 1
    })
    const named = yield* scan([list([], { has_more: false }, { "x-trace": "t-1", "x-request-id": "no" })], {
      requestIdHeader: "X-Trace"
    })
    assert.include(named.pages[0]!.source, "[request t-1]")
  })

  test("has the monotonic start time of the attempt that was answered", function* () {
    const { connector } = yield* ScriptedHttp.make([
      refuses(503, "server_error", {}, { "retry-after": "2" }),
      page,
      answers(200, { id: 5 })
    ])
    yield* TestClock.adjust(1000)
    const reading = yield* Effect.forkChild(connector.page(first))
    yield* TestClock.adjust(10_000)
    const { attempts, beganAt } = yield* Fiber.join(reading)
    const one = yield* connector.get(things, "5")
    assert.strictEqual(attempts, 2)
    assert.isAtLeast(beganAt, 3000)
    assert.isBelow(beganAt, 11_000)
    assert.strictEqual(one.beganAt, 11_000)
  })

  test("reports a record that does not fit and returns the others", function* () {
    const { pages } = yield* scan([answers(200, `{"_meta":{"has_more":false},"data":[{"id":1},{"id":2,"price":1e5}]}`)])
    assertEach(pages[0]!.rejected, ({ id, field, bytes }) => ({ id, field, bytes }), [
      { id: "2", field: "price", bytes: `{"id":2,"price":1e5}` }
    ])
  })
})

describe("a scan", () => {
  test("follows next_cursor and keeps the other parameters", function* () {
    const { paths, ids } = yield* scan(
      [
        list(numbered(1, 2), { has_more: true, next_cursor: "a+b/=" }),
        list([], { has_more: true, next_cursor: "c2" }),
        list(numbered(3, 1), { has_more: false, next_cursor: null })
      ],
      { pageSize: 2 },
      { ...first, since: "2026-01-01T00:00:00Z" }
    )
    assert.deepStrictEqual(ids, ["1", "2", "3"])
    assert.deepStrictEqual(paths, [
      "/things?limit=2&modifiedsince=2026-01-01T00%3A00%3A00Z",
      "/things?limit=2&modifiedsince=2026-01-01T00%3A00%3A00Z&cursor=a%2Bb%2F%3D",
      "/things?limit=2&modifiedsince=2026-01-01T00%3A00%3A00Z&cursor=c2"
    ])
  })

  test("follows _meta.next, absolute or relative", function* () {
    const { paths } = yield* scan([
      list(numbered(1, 1), { next: `${ScriptedHttp.baseUrl}/things?after=1` }),
      list(numbered(2, 1), { next: "/install/!/api/v2/things?after=2" }),
      list(numbered(3, 1), { next: "?after=3" }),
      list(numbered(4, 1), { next: null })
    ])
    assert.deepStrictEqual(paths.slice(1), ["/things?after=1", "/things?after=2", "/things?after=3"])
  })

  test("follows a Link header, also after a bare array", function* () {
    const next = (query: string) => ({
      link: `<${ScriptedHttp.baseUrl}/things?p=0>; rel="first", <${ScriptedHttp.baseUrl}/things${query}>; title="a, b"; rel="next last"`
    })
    const { paths, ids } = yield* scan([
      answers(200, numbered(1, 100), next("?p=1")),
      answers(200, numbered(101, 100), next("?p=2")),
      answers(200, numbered(201, 100), { link: `<${ScriptedHttp.baseUrl}/things?p=0>; rel=first` })
    ])
    assert.strictEqual(ids.length, 300)
    assert.deepStrictEqual(paths.slice(1), ["/things?p=1", "/things?p=2"])
  })

  test("by page number without a limit reads the previous page once more", function* () {
    const [one, two] = [list(numbered(1, 2), {}), list(numbered(3, 1), { limit: 2 })]
    const untilEmpty = yield* scan([one, two, one, list([], {}), two], { paging: { mode: "page" } })
    assert.deepStrictEqual(untilEmpty.paths, [
      "/things?cancel=any",
      "/things?cancel=any&page=2",
      "/things?cancel=any",
      "/things?cancel=any&page=3",
      "/things?cancel=any&page=2"
    ])
    assert.deepStrictEqual(untilEmpty.ids, ["1", "2", "3"])
    assert.strictEqual(untilEmpty.pages[1]!.attempts, 2)
    const more = list(numbered(1, 2), { has_more: true })
    const zeroBased = yield* scan([more, list(numbered(3, 2), { has_more: false }), more], {
      paging: { mode: "page", pageParameter: "p", pageFirst: 0 }
    })
    assert.deepStrictEqual(zeroBased.paths, ["/things?cancel=any", "/things?cancel=any&p=1", "/things?cancel=any"])
    assert.strictEqual((yield* scan([list(numbered(1, 100), {})], { paging: { mode: "none" } })).ids.length, 100)
  })

  test("by offset starts each page with the last record of the previous page", function* () {
    const options = { paging: { mode: "offset", offsetParameter: "skip" } } as const
    const untilFlag = yield* scan(
      [list(numbered(1, 2), { has_more: true }), list(numbered(2, 2), { has_more: false })],
      options
    )
    assert.deepStrictEqual(untilFlag.paths, ["/things?cancel=any", "/things?cancel=any&skip=1"])
    assert.deepStrictEqual(untilFlag.ids, ["1", "2", "3"])
    const one = list(numbered(1, 2), { limit: 2 })
    const untilEmpty = yield* scan(
      [one, list(numbered(2, 1), { limit: 2 }), list([], {}), list(numbered(2, 1))],
      options
    )
    assert.deepStrictEqual(untilEmpty.paths, [
      "/things?cancel=any",
      "/things?cancel=any&skip=1",
      "/things?cancel=any&skip=2",
      "/things?cancel=any&skip=1"
    ])
    assert.deepStrictEqual(untilEmpty.ids, ["1", "2"])
  })

  test("ends at a page that is not full or announces the end", function* () {
    for (const meta of [{ limit: 3 }, { has_more: false, limit: 2 }, { next_cursor: null, limit: 2 }, {}]) {
      assert.deepStrictEqual((yield* scan([list(numbered(1, 2), meta)])).ids, ["1", "2"])
    }
  })
})

describe("a scan with broken paging", () => {
  test("fails if a page announces more without a position, or a full page announces nothing", function* () {
    yield* brokenBy([list(numbered(1, 2), { has_more: true })])
    yield* brokenBy([list(numbered(1, 2), { has_more: true, next_cursor: null })])
    yield* brokenBy([list(numbered(1, 2), { has_more: true })], { paging: { mode: "none" } })
    yield* brokenBy([list([], { has_more: true })], { paging: { mode: "page" } })
    yield* brokenBy([list(numbered(1, 2), { limit: 2 })])
    yield* brokenBy([list(numbered(1, 2), {})], { pageSize: 2 })
    yield* brokenBy([answers(200, numbered(1, 100))])
  })

  test("fails if a page repeats, at once or later", function* () {
    const leadsTo = (cursor: string) => list([{ id: 1 }], { has_more: true, next_cursor: cursor })
    yield* brokenBy([leadsTo("a"), leadsTo("a")])
    yield* brokenBy([leadsTo("a"), leadsTo("b"), leadsTo("b")])
    // A cycle of three tokens that begins at the third page is detected within two rounds.
    const circle = ["a", "b", "c", "d", "e", "c", "d", "e", "c", "d", "e", "c", "d", "e"]
    const { connector } = yield* ScriptedHttp.make(circle.map(leadsTo))
    let next: string | null = null
    let pages = 0
    const around = Effect.gen(function* () {
      for (;;) {
        const one: Page = yield* connector.page({ ...first, token: next })
        next = one.next
        pages++
      }
    })
    assert.strictEqual((yield* failureOf(around)).reason._tag, "PagingBroken")
    assert.isAtMost(pages, 10)
    yield* brokenBy([list(numbered(1, 2), {}), list(numbered(1, 2), {})], { paging: { mode: "page" } })
  })

  test("fails if the source ignores the page number, offset or limit", function* () {
    const all = { has_more: true }
    const byOffset = { paging: { mode: "offset" } } as const
    const byPage = { paging: { mode: "page" }, pageSize: 5 } as const
    for (const [details, steps, options] of [
      [/the same page comes again/, [list(numbered(1, 5), all), list(numbered(1, 5), all)], byOffset],
      [
        /the same page comes again/,
        [list(numbered(1, 5), all), list(numbered(1, 5), {})],
        { paging: { mode: "page" } }
      ],
      [/the same page comes again/, [list(numbered(1, 5), all), list(numbered(1, 4), all)], byPage],
      [/5 records, but at most 4/, [list(numbered(1, 5), all), list(numbered(6, 5), all)], byPage],
      [/2 of more records, but 4/, [list(numbered(1, 5), all), list(numbered(3, 2), all)], byPage],
      [/an empty page announces more/, [list(numbered(1, 5), all), list([], all)], { paging: { mode: "page" } }]
    ] as const) {
      assert.match((yield* brokenBy(steps, options)).detail, details)
    }
  })

  test("fails if a link leaves the base address or carries the token", function* () {
    for (const link of [
      "https://elsewhere.test/install/!/api/v2/things?p=2",
      "http://erp.test/install/!/api/v2/things?p=2",
      "https://erp.test:8443/install/!/api/v2/things",
      "https://user:pass@erp.test/install/!/api/v2/things",
      "//elsewhere.test/things",
      "/install/!/api/v1/things",
      "/install/!/api/v2/../../secret",
      "/install/!/api/v2/%2e%2e/secret",
      "/install/!/api/v2evil/things",
      "\\\\elsewhere.test\\things",
      "javascript:alert(1)",
      `?p=2&access_token=${token}`
    ]) {
      assert.notInclude((yield* brokenBy([list(numbered(1, 1), { next: link })])).detail, token)
      yield* brokenBy([list(numbered(1, 1), {}, { link: `<${link}>; rel=next` })], { paging: { mode: "link" } })
    }
  })
})

describe("a record request", () => {
  const get = (step: Step, options?: Options) =>
    Effect.flatMap(ScriptedHttp.make([step, step, step], options), ({ connector, sent }) =>
      Effect.map(connector.get(things, "5"), (reading) => ({ ...reading, path: sent[0]!.path }))
    )

  test("returns the record, its bytes where it does not fit, or none, and fails for another record", function* () {
    const record = { id: 5, name: "x", lastchangedate: "2026-01-01T00:00:00Z" }
    for (const body of [record, { data: record }, { data: record, _meta: {} }]) {
      const found = yield* get(answers(200, body, { etag: '"v1"' }))
      assert.deepStrictEqual([found.record?.id, found.version, found.path], ["5", '"v1"', "/things/5"])
    }
    assert.strictEqual((yield* get(answers(200, record))).version, "2026-01-01T00:00:00Z")
    assert.isNull((yield* get(answers(200, record, { etag: '"v1"' }), { precondition: "none" })).version)
    assert.isNull((yield* get(answers(200, record), { precondition: "etag" })).version)
    assert.deepInclude(yield* get(refuses(404, "not_found")), { record: null, rejected: null })
    const misfit = yield* get(answers(200, `{"data": {"id":5, "price":"1.23456"} }`))
    assert.deepStrictEqual([misfit.record, misfit.rejected?.bytes], [null, `{"id":5, "price":"1.23456"}`])
    for (const body of [{ id: 6 }, { data: {} }, { name: "x" }]) {
      const error = yield* failureOf(get(answers(200, body), { retry: { backoffBase: Duration.zero } }))
      assert.strictEqual(error.reason._tag, "Malformed", JSON.stringify(body))
    }
  })
})

test("a write request has the operation's path, its idempotency key and its precondition", function* () {
  const base = { resource: things, body: "{}", idempotencyKey: "k", ifMatch: null, id: null }
  for (const [request, answer, expected] of [
    [{ ...base, operation: "create" }, { id: 1 }, ["POST", "/things", "{}", "k", null]],
    [{ ...base, operation: "batch", body: "[]" }, { results: [] }, ["POST", "/things/batch", "[]", "k", null]],
    [{ ...base, operation: "update", id: "7", ifMatch: '"v1"' }, { id: 1 }, ["PATCH", "/things/7", "{}", "k", '"v1"']],
    [{ ...base, operation: "cancel", id: "7", body: null }, { id: 1 }, ["DELETE", "/things/7", null, "k", null]]
  ] as const) {
    const { connector, sent } = yield* ScriptedHttp.make([answers(200, answer)])
    yield* connector.write(request)
    const { method, path, body, headers } = sent[0]!
    assert.deepStrictEqual([method, path, body, headers["idempotency-key"], headers["if-match"] ?? null], [...expected])
  }
})

describe("the identity of a token", () => {
  const identify = (step: Step, options?: Options) =>
    Effect.flatMap(
      ScriptedHttp.make([step, step, step], options),
      ({ connector }: { readonly connector: ConnectorShape }) => connector.identify
    )

  test("is read from the reference server's form and from similar forms", function* () {
    const me = { companyid: 3, user: "ann", scopes: ["orders:read"], features: ["jobs"] }
    const expected = { companyId: 3n, user: "ann", scopes: ["orders:read"], features: ["jobs"] }
    const none = { user: null, features: null }
    for (const [body, identity] of [
      [me, expected],
      [{ data: me }, expected],
      [
        { company: { id: "12" }, user: { name: "x" }, granted: ["orders:read", "setup:write"] },
        { ...none, companyId: 12n, scopes: ["orders:read", "setup:write"] }
      ],
      [{ token: { companyid: 4, scopes: [] } }, { ...none, companyId: 4n, scopes: [] }]
    ]) {
      const { sourceNumber, ...answered } = yield* identify(answers(200, body))
      assert.deepStrictEqual<unknown>(answered, identity)
      assert.strictEqual(sourceNumber, answered.companyId)
    }
  })

  test("uses the configured company if the service does not state it", function* () {
    const options = { companyId: 9n, retry: { backoffBase: Duration.zero } }
    const expected = { companyId: 9n, sourceNumber: 9n, user: null, scopes: null, features: null }
    for (const step of [
      refuses(404, "not_found"),
      refuses(501, "not_implemented"),
      answers(404, "<html>"),
      answers(200, {})
    ]) {
      assert.strictEqual((yield* identify(step, options)).companyId, 9n)
    }
    assert.deepStrictEqual(yield* identify(refuses(405, "method_not_allowed"), options), expected)
    // The number that the service states takes precedence.
    assert.strictEqual((yield* identify(answers(200, { companyid: 3 }), options)).companyId, 3n)
    for (const step of [refuses(401, "token_revoked"), refuses(403, "forbidden")]) {
      assert.strictEqual((yield* failureOf(identify(step, options))).stops, "company")
    }
    const nameless = yield* failureOf(
      identify(answers(200, { user: "ann" }), { retry: { backoffBase: Duration.zero } })
    )
    assert.match(nameless.message, /names no company/)
  })
})
