/** Subscriptions against the reference server in its dialects, and against scripted failures. */
import { inspect } from "node:util"
import { assert, describe } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Fiber, Redacted } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { Deliveries, type ServiceClient } from "../../connectors/service-v2/client/index.ts"
import type { SourceError } from "../../src/connector/SourceError.ts"
import {
  describeAnswer,
  type Attempt,
  type LogPage,
  type LogRequest,
  type Subscriptions
} from "../../src/connector/Subscriptions.ts"
import { eventServer, receiver } from "../reference-server/eventsSupport.ts"
import { beginning } from "../reference-server/support.ts"
import type { Json } from "../reference-server/support.ts"
import * as ScriptedHttp from "./ScriptedHttp.ts"
import { answers, failureOf, list, refuses } from "./ScriptedHttp.ts"
import { clientOf, networkOf } from "./ServerHttp.ts"
import { test } from "../support/suite.ts"
import { valuesOf } from "../support/rows.ts"
import { assertEach } from "../support/assertions.ts"

const definition = { url: receiver, events: ["customers.created", "customers.updated"], description: "Ours" }
const canary = "whsec_canary0123456789abcdefghijklmnopqrstuvwxyz"

/** A server, and the subscriptions of one of its tokens. */
const world = Effect.fnUntraced(function* (
  dialect: Json = {},
  options: Partial<ServiceClient.ServiceClientOptions> = {}
) {
  const server = eventServer()
  if (Object.keys(dialect).length > 0) yield* Effect.promise(() => server.plane("PUT", "/dialect", dialect))
  const { http, requests } = networkOf(server.served, () => Effect.succeed(null))
  const pausesMs: Array<number> = []
  const make = (secret: string) =>
    Effect.map(clientOf(http, secret, options, pausesMs), (connector) => connector.subscriptions!)
  return { ...server, requests, pausesMs, make, subscriptions: yield* make(server.token()) }
})

/** The subscriptions of a source that answers with these steps. */
const scripted = (steps: ReadonlyArray<ScriptedHttp.Step>, options?: Parameters<typeof ScriptedHttp.make>[1]) =>
  Effect.map(ScriptedHttp.make(steps, options), (made) => ({ ...made, subscriptions: made.connector.subscriptions! }))
const once = { retry: { backoffBase: Duration.zero, attemptsMax: 1 } }
const shown = { id: 1, url: receiver, events: ["a.created"], description: null, paused: false }

/** Every entry of a delivery log, page by page. */
const logOf = Effect.fnUntraced(function* ({ deliveries }: Subscriptions, request: Omit<LogRequest, "token">) {
  const attempts: Array<Attempt> = []
  let pages = 0
  let token: string | null = null
  do {
    const page: LogPage = yield* deliveries({ ...request, token })
    attempts.push(...page.attempts)
    token = page.next
    pages++
  } while (token !== null)
  return { attempts, pages }
})

const customers = (
  call: (method: string, path: string, body?: unknown) => { readonly status: number },
  count: number
) =>
  Array.from({ length: count }, (_, at) => {
    assert.strictEqual(call("POST", "/customers", { customercode: `C${at}`, name: "Name" }).status, 201)
  })

describe("a subscription", () => {
  test("is created, returned, updated and cancelled", function* () {
    const { subscriptions, requests } = yield* world()
    const { subscription, secret } = yield* subscriptions.create(definition)
    assert.deepStrictEqual(subscription, {
      id: "1",
      ...definition,
      paused: false,
      failCount: 0,
      lastDeliveryAt: null,
      disabledAt: null,
      cancelled: false
    })
    assert.match(Redacted.value(secret), /^whsec_[\w-]{43}$/)
    assert.deepStrictEqual(yield* subscriptions.get("1"), subscription)
    assert.deepStrictEqual(yield* subscriptions.list, [subscription])
    assert.isNull(yield* subscriptions.get("2"))
    assert.isNull(yield* subscriptions.get("1/test"))
    const paused = yield* subscriptions.update("1", {
      paused: true,
      events: ["invoices.posted"],
      description: "Hers"
    })
    assert.deepStrictEqual(paused, {
      ...subscription,
      paused: true,
      events: ["invoices.posted"],
      description: "Hers"
    })
    const cancelled = yield* subscriptions.cancel("1")
    assert.deepStrictEqual(cancelled, { ...paused, cancelled: true })
    assert.deepStrictEqual(yield* subscriptions.cancel("1"), cancelled)
    assert.deepStrictEqual(yield* subscriptions.list, [])
    assert.isTrue((yield* subscriptions.get("1"))?.cancelled)
    const keys = requests.filter(({ method }) => method !== "GET").map(({ key }) => key)
    assert.isTrue(keys.every((key) => /^[0-9a-f]{32}$/.test(key ?? "")))
    assert.strictEqual(new Set(keys).size, keys.length)
    assert.isTrue(requests.every(({ method, key }) => method !== "GET" || key === undefined))
  })

  test("is not found for another token, and is disabled by a 410 response until it is enabled", function* () {
    const { subscriptions, make, token, call, reply, cycle } = yield* world()
    const { subscription } = yield* subscriptions.create(definition)
    const other = yield* make(token())
    assert.isNull(yield* other.get("1"))
    assert.deepStrictEqual(yield* other.list, [])
    const requestsByOther: ReadonlyArray<Effect.Effect<unknown, SourceError>> = [
      other.update("1", { paused: true }),
      other.cancel("1"),
      other.test("1"),
      other.deliveries({ id: "1", token: null })
    ]
    for (const one of requestsByOther) assert.strictEqual((yield* failureOf(one)).reason._tag, "NotFound")
    reply(() => 410)
    customers(call, 1)
    yield* Effect.promise(cycle)
    assert.strictEqual((yield* subscriptions.get(subscription.id))?.disabledAt, "2026-03-16T09:00:00.000000Z")
    const current = yield* subscriptions.update(subscription.id, { enabled: true })
    assert.isNull(current.disabledAt)
    assert.strictEqual(current.failCount, 0)
    reply(() => 204)
    assert.strictEqual(call("POST", "/customers", { customercode: "D", name: "Name" }).status, 201)
    yield* Effect.promise(cycle)
    assert.strictEqual((yield* subscriptions.get(subscription.id))?.lastDeliveryAt, "2026-03-16T09:00:00.000000Z")
  })

  test("signs with both secrets during a rotation", function* () {
    const { subscriptions, call, cycle, sent } = yield* world()
    const { subscription, secret } = yield* subscriptions.create(definition)
    const next = Redacted.make(canary)
    assert.deepStrictEqual(yield* subscriptions.update(subscription.id, { secret: next }), subscription)
    customers(call, 1)
    yield* Effect.promise(cycle)
    const { headers, body } = sent[0]!
    const signature = Object.entries(headers).find(([name]) => name.toLowerCase() === "svc-signature")?.[1]
    for (const secrets of [[secret], [next]]) {
      const verification = Deliveries.deliveryReader.verify(
        { signature, body, receivedAt: Date.parse(beginning) },
        { secrets, tolerance: Duration.seconds(300), aheadMax: Duration.seconds(60) }
      )
      assert.strictEqual(verification._tag, "Genuine")
    }
  })
})

describe("subscription lists", () => {
  test("are read to their end in every dialect", function* () {
    for (const dialect of [
      {},
      { itemsKey: "bare" },
      { itemsKey: "resource" },
      { itemsKey: "results", paging: "link" },
      { itemsKey: "bare", paging: "page" },
      { paging: "page" },
      { paging: "offset" }
    ] as ReadonlyArray<Json>) {
      const counted = dialect["itemsKey"] !== "bare" && (dialect["paging"] === "page" || dialect["paging"] === "offset")
      const paging = counted ? { paging: { mode: dialect["paging"] as "page" | "offset" } } : {}
      const { subscriptions, call, cycle, requests } = yield* world(dialect, { pageSize: 3, ...paging })
      const made = yield* Effect.forEach(Array.from({ length: 8 }), () => subscriptions.create(definition))
      yield* subscriptions.cancel("4")
      const ids = (yield* subscriptions.list).map(({ id }) => id)
      const expected = made.map(({ subscription }) => subscription.id).filter((id) => id !== "4")
      assert.deepStrictEqual(ids, expected, JSON.stringify(dialect))
      assert.isTrue(requests.some(({ path }) => path.startsWith("/webhooks?limit=3")))

      customers(call, 7)
      yield* Effect.promise(cycle)
      const { attempts, pages } = yield* logOf(subscriptions, { id: "1", eventType: "customers.created" })
      assert.lengthOf(new Set(attempts.map(({ eventId }) => eventId)), 7)
      assert.isAtLeast(pages, 3)
      assert.deepStrictEqual(attempts[0], {
        eventId: attempts[0]!.eventId,
        eventType: "customers.created",
        resource: "customers",
        attempts: 1,
        delivered: true,
        abandoned: false,
        responseCode: 204,
        disables: false,
        responseBody: "",
        durationMs: 7,
        at: "2026-03-16T09:00:00.000000Z"
      })
    }
  })

  test("of deliveries have the documented filters and the newest first", function* () {
    const { subscriptions, call, reply, cycle, advance, requests } = yield* world()
    yield* subscriptions.create({ ...definition, events: [...definition.events, "webhooks.test"] })
    reply(({ type }) => (type === "customers.updated" ? { status: 500, body: "no\0t \u00e9" } : 204))
    customers(call, 1)
    call("PATCH", "/customers/1", { name: "Other" })
    for (let attempt = 0; attempt < 4; attempt++) {
      yield* Effect.promise(cycle)
      yield* Effect.promise(() => advance(300))
    }
    yield* subscriptions.test("1")
    const listAttempts = (request: Omit<LogRequest, "id" | "token">) =>
      Effect.map(logOf(subscriptions, { id: "1", ...request }), ({ attempts }) =>
        attempts.map(({ eventType, attempts: count }) => `${eventType} ${count}`)
      )
    const failing = [3, 2, 1].map((count) => `customers.updated ${count}`)
    assert.deepStrictEqual(yield* listAttempts({}), ["webhooks.test 1", ...failing, "customers.created 1"])
    assert.deepStrictEqual(yield* listAttempts({ abandoned: true }), ["customers.updated 3"])
    assert.deepStrictEqual(yield* listAttempts({ delivered: true }), ["webhooks.test 1", "customers.created 1"])
    assert.deepStrictEqual(yield* listAttempts({ delivered: false, eventType: "customers.updated" }), failing)
    assert.include(requests.at(-1)!.path, "/webhooks/1/deliveries?delivered=false&eventtype=customers.updated")
    const { attempts } = yield* logOf(subscriptions, { id: "1", abandoned: true })
    assert.deepInclude(attempts[0], { responseCode: 500, responseBody: "no\uFFFDt \u00e9", resource: "customers" })
    assert.isNull((yield* logOf(subscriptions, { id: "1", eventType: "webhooks.test" })).attempts[0]!.resource)
    const strange = yield* failureOf(subscriptions.deliveries({ id: "1", token: "strange" }))
    assert.strictEqual(strange.reason._tag, "PageTokenRefused")
  })

  const entry = {
    eventid: "evt_1",
    eventtype: "a.created",
    attempts: 1,
    delivered: false,
    abandoned: false,
    responsecode: null,
    responsebody: null,
    durationms: null,
    entrydate: "2026-03-16T09:00:00Z"
  }

  test("keep the known fields of an entry and reject an incomplete entry", function* () {
    const exact = '{"data":[{"id":9007199254740993,"url":"https://x.test/","events":[],"paused":true,"new":{"id":1}}]}'
    const { subscriptions } = yield* scripted([answers(200, exact), list([{ ...entry, responsecode: 0, new: 1 }])])
    assert.deepStrictEqual(yield* subscriptions.list, [
      {
        id: "9007199254740993",
        url: "https://x.test/",
        events: [],
        description: null,
        paused: true,
        failCount: null,
        lastDeliveryAt: null,
        disabledAt: null,
        cancelled: false
      }
    ])
    const { attempts } = yield* subscriptions.deliveries({ id: "1", token: null })
    assert.deepInclude(attempts[0], { responseCode: null, responseBody: "", durationMs: null, delivered: false })

    const wrong: ReadonlyArray<readonly [entry: Json, values: Readonly<Record<string, ReadonlyArray<unknown>>>]> = [
      [shown, { id: [undefined, 0, 1.5], events: ["a.created", [1]], url: [null], paused: [null] }],
      [shown, { cancel: ["no"], description: [5], disableddate: [5], lastdeliverydate: ["\0"] }],
      [entry, { eventid: [undefined, ""], eventtype: ["\0"], attempts: ["1"] }],
      [entry, { delivered: [null], abandoned: [undefined], entrydate: [7] }]
    ]
    for (const [right, fields] of wrong) {
      for (const [name, values] of Object.entries(fields)) {
        for (const value of values) {
          const { subscriptions: other } = yield* scripted([list([{ ...right, [name]: value }])], once)
          const log = Effect.asVoid(other.deliveries({ id: "1", token: null }))
          const { reason } = yield* failureOf(right === shown ? Effect.asVoid(other.list) : log)
          assert(reason._tag === "Malformed", `${name} ${JSON.stringify(value)}`)
          assert.include(reason.detail, name)
        }
      }
    }
  })

  test("restart if their pages moved", function* () {
    const more = { has_more: true, next_cursor: "c" }
    const { subscriptions } = yield* scripted([
      list([shown], more),
      refuses(400, "invalid_request", { field: "cursor" }),
      list([shown], more),
      list([{ ...shown, id: 2 }])
    ])
    assert.deepStrictEqual(valuesOf(yield* subscriptions.list, "id"), ["1", "2"])
  })
})

test("a retried create of a subscription creates no second subscription and returns the secret", function* () {
  const { subscriptions, plane, requests, sent } = yield* world({}, { retry: { backoffBase: Duration.zero } })
  const spoil = (...rules: ReadonlyArray<Json>) => Effect.promise(() => plane("POST", "/faults", { rules }))
  yield* spoil({ kind: "dropResponse", method: "POST", path: "/webhooks", times: 2 })
  const { subscription, secret } = yield* subscriptions.create(definition)
  assert.match(Redacted.value(secret), /^whsec_/)
  assert.strictEqual(requests.length, 3)
  assert.strictEqual(new Set(requests.map(({ key }) => key)).size, 1)
  assert.deepStrictEqual(yield* subscriptions.list, [subscription])
  yield* spoil({ kind: "dropResponse", method: "POST", path: "/webhooks", times: 1 })
  yield* subscriptions.test(subscription.id)
  assert.lengthOf(sent, 1)
})

describe("cancelling a subscription", () => {
  test("pauses it if the source does not offer cancel", function* () {
    const isPaused = { ...shown, paused: true }
    for (const step of [
      refuses(405, "method_not_allowed"),
      answers(405, "<html>"),
      refuses(501, "not_implemented"),
      refuses(404, "not_found")
    ]) {
      const { subscriptions, sent } = yield* scripted([answers(200, shown), step, answers(200, isPaused)])
      assert.deepInclude(yield* subscriptions.cancel("1"), { paused: true, cancelled: false })
      assertEach(sent, ({ method, path, body }) => `${method} ${path} ${body ?? ""}`, [
        "GET /webhooks/1 ",
        "DELETE /webhooks/1 ",
        'PATCH /webhooks/1 {"paused":true}'
      ])
      assert.notStrictEqual(sent[1]!.headers["idempotency-key"], sent[2]!.headers["idempotency-key"])
    }
    const { subscriptions, sent } = yield* scripted([answers(200, isPaused), refuses(405, "method_not_allowed")])
    assert.deepInclude(yield* subscriptions.cancel("1"), { paused: true, cancelled: false })
    assert.lengthOf(sent, 2)
  })

  test("succeeds with any 2xx response, also one of the state before, and fails if it is forbidden", function* () {
    const successes = [
      answers(204),
      ...[{ ok: true }, { ...shown, cancel: true }, shown].map((body) => answers(200, body))
    ]
    for (const success of successes) {
      const { subscriptions } = yield* scripted([answers(200, shown), success])
      assert.isTrue((yield* subscriptions.cancel("1")).cancelled)
    }
    const { subscriptions } = yield* scripted([answers(200, shown), refuses(403, "insufficient_scope")])
    assert.strictEqual((yield* failureOf(subscriptions.cancel("1"))).reason._tag, "Forbidden")
  })
})

describe("a response without a complete subscription", () => {
  test("makes create look up the newest matching subscription", function* () {
    const like = { url: receiver, events: [...definition.events].reverse(), description: "Ours", paused: false }
    const incomplete = answers(201, { ...like, events: undefined, secret: canary, secret_note: "once" })
    const others = [{ id: 9 }, { id: 10 }, { id: 11, url: "https://x.test/" }, { id: 12, events: ["a.created"] }]
    const { subscriptions, sent } = yield* scripted([incomplete, list(others.map((one) => ({ ...like, ...one })))])
    const { subscription, secret } = yield* subscriptions.create(definition)
    assert.strictEqual(subscription.id, "10")
    assert.strictEqual(Redacted.value(secret), canary)
    assert.lengthOf(sent, 2)
    const { subscriptions: other } = yield* scripted([incomplete, list([])])
    assert.strictEqual((yield* failureOf(other.create(definition))).reason._tag, "Malformed")
  })

  test("makes update read the subscription again", function* () {
    const changed = [{ ok: true }, { url: receiver, paused: true }].map((body) => answers(200, body))
    for (const step of [answers(204), answers(202), ...changed]) {
      const { subscriptions, sent } = yield* scripted([step, answers(200, { ...shown, paused: true })])
      assert.isTrue((yield* subscriptions.update("1", { paused: true })).paused)
      assert.deepStrictEqual(valuesOf(sent, "method"), ["PATCH", "GET"])
    }
  })

  test("leaves open whether the change was made, and does not confirm a new secret", function* () {
    const rotate = ({ update }: Subscriptions) => update("1", { secret: Redacted.make(canary) })
    for (const body of ["<html>Sign in</html>", null, { error: { code: "server_error", message: "no" } }]) {
      for (const [before, change] of [
        [[], rotate],
        [[], ({ test }: Subscriptions) => test("1")],
        [[answers(200, shown)], ({ cancel }: Subscriptions) => cancel("1")]
      ] as const) {
        const { subscriptions } = yield* scripted([...before, answers(200, body)], once)
        const error = yield* failureOf<unknown, SourceError, never>(change(subscriptions))
        assert.strictEqual(error.reason._tag, "Malformed")
      }
    }
    for (const body of [{}, { data: {} }]) {
      const { subscriptions } = yield* scripted([answers(200, body)], once)
      assert.strictEqual((yield* failureOf(rotate(subscriptions))).reason._tag, "Malformed")
    }
  })
})

describe("a test delivery", () => {
  test("returns the receiver's response", function* () {
    const { subscriptions, reply, sent } = yield* world()
    yield* subscriptions.create(definition)
    const good = yield* subscriptions.test("1")
    assert.deepInclude(good, {
      eventId: String(sent[0]!.envelope["id"]),
      responseCode: 204,
      responseBody: "",
      durationMs: 7,
      delivered: true
    })
    assert.deepInclude(JSON.parse(good.raw) as Json, { responsecode: 204, delivered: true })
    reply(() => ({ status: 503, body: "busy" }))
    assert.deepInclude(yield* subscriptions.test("1"), { responseCode: 503, responseBody: "busy", delivered: false })
    reply(() => null)
    const silent = yield* subscriptions.test("1")
    assert.deepInclude(silent, { responseCode: null, delivered: false, isSilent: true })
    assert.strictEqual(describeAnswer(silent), "no answer arrived")
  })

  test("is read by its values under any of the known field names", function* () {
    const cases: ReadonlyArray<readonly [answer: Json, read: Json]> = [
      [
        { status_code: 200, body: "ok", round_trip_ms: 12.5 },
        { responseCode: 200, responseBody: "ok", durationMs: 12.5, delivered: true, eventId: null }
      ],
      [
        { event_id: "evt_9", response: { status: 404, body: "none" }, elapsed: 3, status: "failed" },
        { responseCode: 404, responseBody: "none", durationMs: 3, delivered: false, eventId: "evt_9" }
      ],
      [
        { message: "sent", code: 7 },
        { responseCode: null, responseBody: null, durationMs: null, delivered: false, isSilent: false }
      ]
    ]
    for (const [answer, read] of cases) {
      const { connector } = yield* ScriptedHttp.make([answers(200, answer)])
      const result = yield* connector.subscriptions!.test("1")
      assert.deepInclude(result, read)
      assert.strictEqual(result.raw, JSON.stringify(answer))
      assert.strictEqual(
        describeAnswer(result),
        result.responseCode === null
          ? `the source names no status: ${result.raw}`
          : `the receiver answered ${result.responseCode}`
      )
    }
  })

  test("over its own rate limit waits without pausing other requests", function* () {
    const { subscriptions, pausesMs, requests, sent, advance } = yield* world()
    yield* subscriptions.create(definition)
    for (let count = 0; count < 10; count++) yield* subscriptions.test("1")
    const eleventh = yield* Effect.forkChild(subscriptions.test("1"))
    yield* Effect.yieldNow.pipe(Effect.repeat({ until: () => requests.length === 12, times: 10_000 }))
    assert.lengthOf(requests, 12)
    assert.lengthOf(yield* subscriptions.list, 1)
    assert.deepStrictEqual(pausesMs, [])
    assert.lengthOf(sent, 10)
    yield* Effect.promise(() => advance(60))
    yield* TestClock.adjust("60 seconds")
    assert.isTrue((yield* Fiber.join(eleventh)).delivered)
    assert.lengthOf(sent, 11)
    assert.deepStrictEqual(pausesMs, [])
  })
})

test("the field of a new secret is the configured one, and rejected if the source shows that field again", function* () {
  const { subscriptions, sent } = yield* scripted([answers(200, shown)], { rotateField: "signing_secret" })
  yield* subscriptions.update("1", { secret: Redacted.make(canary), paused: false })
  assert.strictEqual(sent[0]!.body, JSON.stringify({ paused: false, signing_secret: canary }))
  for (const rotateField of ["description", "url", "id", "", "a b", "secret\n"]) {
    const exit = yield* Effect.exit(ScriptedHttp.make([], { rotateField }))
    assert(Exit.isFailure(exit), rotateField)
    assert.match(Cause.pretty(exit.cause), /rotateField/)
  }
})

describe("a webhook secret", () => {
  const textsOf = (value: unknown) => [
    inspect(value, { depth: 20, showHidden: true }),
    JSON.stringify(value),
    Exit.isExit(value) && Exit.isFailure(value) ? Cause.pretty(value.cause) : ""
  ]

  test("does not appear in the error of an incomplete response, nor in a rejection that repeats it", function* () {
    const own = "canary of the operator's own"
    const repeated = { message: own, field: own }
    const current = { secret: own }
    const creates = [
      { id: 1, events: [7], secret: canary },
      { id: canary, events: ["a.created"], url: receiver, paused: false, secret: canary },
      { secret: [canary] },
      JSON.stringify({ secret: canary }).slice(0, -1)
    ]
    const rejections = [
      refuses(422, "unsupported_value", {
        ...repeated,
        errors: [{ field: "secret", code: "too_short", message: own }],
        current
      }),
      refuses(409, "stale_record", { ...repeated, current }),
      refuses(403, "forbidden", repeated),
      answers(302, null, { location: `https://elsewhere.test/?s=${canary}` })
    ]
    for (const [step, ask] of [
      ...creates.map((body) => [answers(201, body), ({ create }: Subscriptions) => create(definition)] as const),
      ...rejections.map(
        (step) => [step, ({ update }: Subscriptions) => update("1", { secret: Redacted.make(own) })] as const
      )
    ]) {
      const { subscriptions } = yield* scripted([step], once)
      const exit = yield* Effect.exit<unknown, SourceError, never>(ask(subscriptions))
      assert(Exit.isFailure(exit))
      for (const text of textsOf(exit)) assert.notInclude(text, "canary")
    }
  })

  test("does not appear in a subscription, a test delivery or the connector", function* () {
    const { connector, subscriptions } = yield* scripted([
      answers(201, { ...shown, secret: canary, secret_note: "once" }),
      answers(200, { ...shown, secret: canary }),
      answers(200, { code: 200, secret: canary, token: ScriptedHttp.token })
    ])
    const created = yield* subscriptions.create({ ...definition, events: shown.events })
    const result = [created, yield* subscriptions.get("1"), yield* subscriptions.test("1"), connector]
    for (const text of textsOf(result)) assert.notInclude(text, "canary")
    assert.strictEqual(Redacted.value(created.secret), canary)
  })
})
