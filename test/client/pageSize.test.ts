/** The page size that the client finds out, against every way in which a source may treat the parameter. */
import { assert, describe } from "@effect/vitest"
import { type Duration, Effect, Fiber } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { PagingMode } from "../../connectors/service-v2/client/Paging.ts"
import type { Page } from "../../src/connector/Connector.ts"
import { fromMap, PageSizes } from "../../src/connector/PageSizes.ts"
import { type Json, server } from "../reference-server/support.ts"
import { failureOf } from "./ScriptedHttp.ts"
import { clientOf, networkOf } from "./ServerHttp.ts"
import { test } from "../support/suite.ts"
import { assertCount } from "../support/assertions.ts"

const records = 1_000

type Answer = { readonly status: number; readonly body: string }
/** What stands between client and server: an answer of its own, or null to pass the request on. */
type Intercept = (path: string) => Effect.Effect<Answer | null>

const refusal = (code: string, field: string | null): Answer => ({
  status: 400,
  body: JSON.stringify({ error: { code, message: "no", ...(field === null ? {} : { field }) } })
})

/** A company with 1,000 salesmen and 1,000 areas, and a client that finds the page size out. */
const open = Effect.fnUntraced(function* (dialect: Json, pageSize: "discover" | number = "discover") {
  const { control, token, served } = server()
  control("PUT", "/limits", { requestsPerMinute: null })
  const change = (more: Json) => assert.strictEqual(control("PUT", "/dialect", more).status, 200)
  change({ paging: "cursor", ...dialect })
  for (const resource of ["salesmen", "areas"]) {
    for (const id of served.world.store.table(1, resource).order.slice()) {
      control("POST", "/remove", { company: 1, resource, id })
    }
    const all = Array.from({ length: records }, (_, at) => ({ id: at + 1, name: `record ${at}` }))
    const at = "2026-01-01T00:00:00.000001Z"
    assert.strictEqual(control("POST", "/records", { company: 1, resource, records: all, at }).status, 200)
  }
  const hooks: { intercept: Intercept } = { intercept: () => Effect.succeed(null) }
  const { http, requests } = networkOf(served, (path) =>
    Effect.map(hooks.intercept(path), (own) => (own === null ? null : new Response(own.body, { status: own.status })))
  )
  const stored = fromMap(new Map())
  const mode: PagingMode = dialect["paging"] === "page" || dialect["paging"] === "offset" ? dialect["paging"] : "auto"
  const connector = yield* clientOf(http, token(), { pageSize, paging: { mode } }).pipe(
    Effect.provideService(PageSizes, { of: () => Effect.succeed(stored) })
  )
  /** Reads a list to its end; returns its numbers of records and of requests. */
  const scan = Effect.fnUntraced(function* (resource = "salesmen", since: string | null = null) {
    const from = requests.length
    const ids = new Set<string>()
    let attempts = 0
    for (let token: string | null = null; ;) {
      const page: Page = yield* connector.page({ resource: serviceV2.resources.get(resource)!, since, token })
      for (const { id } of page.records) ids.add(id)
      attempts += page.attempts
      token = page.next
      if (token === null) break
    }
    const own = requests.slice(from).flatMap(({ path }) => (path.includes(`/${resource}`) ? [path] : []))
    assert.strictEqual(attempts, own.length, "every request is counted")
    return { ids: ids.size, requests: own.map((path) => new URLSearchParams(path.split("?")[1])) }
  })
  const limits = ({ requests: all }: { readonly requests: ReadonlyArray<URLSearchParams> }) =>
    all.map((query) => query.get("limit"))
  return { change, hooks, limits, scan, requests, stored }
})

/** The result of the effect, which ends in this time. */
const within = <A, E>(time: Duration.Input, effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust(time)
    return yield* Fiber.join(fiber)
  })

describe("the page size that the client finds out", () => {
  for (const paging of ["cursor", "link", "offset", "page"]) {
    test(`is the largest that the source accepts, and is kept, and no record is lost (${paging})`, function* () {
      /** At most these requests for the first list, and for the second one. */
      const requestsMax = { refused: [5, 4], clamped: [4, 4], ignored: [10, 10], unknown: [12, 10] }
      for (const [limit, most] of Object.entries(requestsMax)) {
        const { scan } = yield* open({ paging, itemsKey: paging === "link" ? "bare" : "data", limit })
        for (const [at, resource] of ["salesmen", "areas"].entries()) {
          const one = yield* scan(resource)
          assert.strictEqual(one.ids, records, limit)
          // An overlap of one record needs another page. A page with a number repeats the page before.
          const isMost = one.requests.length <= most[at]! + (paging === "offset" ? 1 : 0)
          assert.isTrue(paging === "page" || isMost, `${limit}, scan ${at + 1}`)
        }
      }
    })
  }

  test("grows where the source accepts more, and costs one request where it does not", function* () {
    const { limits, scan } = yield* open({ pageMax: 1_000 })
    assert.deepStrictEqual(limits(yield* scan()), ["1000"])
    assert.deepStrictEqual(limits(yield* scan("areas")), ["2500", "1000"])
    assert.deepStrictEqual(limits(yield* scan()), ["1000"])
  })

  test("is not what a short page states, whether more follow or not", function* () {
    for (const more of [{ has_more: false }, { has_more: true, next_cursor: "bm9uZQ" }]) {
      const { hooks, limits, scan } = yield* open({})
      const body = JSON.stringify({ data: [{ id: 1, name: "one" }], _meta: { limit: 1, ...more } })
      hooks.intercept = (path) => Effect.succeed(path.includes("cursor=") ? null : { status: 200, body })
      assert.strictEqual((yield* Effect.exit(scan()))._tag, more.has_more ? "Failure" : "Success")
      hooks.intercept = () => Effect.succeed(null)
      assert.deepStrictEqual(limits(yield* scan()).slice(0, 3), ["2500", "1000", "250"])
    }
  })

  test("shrinks where the source lowers its maximum, and is tried again a day later", function* () {
    const { change, limits, scan } = yield* open({})
    yield* scan()
    change({ pageMax: 100 })
    const lowered = yield* scan()
    assert.strictEqual(lowered.ids, records)
    assert.deepStrictEqual(limits(lowered).slice(0, 3), ["250", "100", "100"])
    assert.strictEqual((yield* scan()).requests.length, 10)
    change({ pageMax: 500 })
    assert.deepStrictEqual(new Set(limits(yield* scan())), new Set(["100"]))
    yield* TestClock.adjust("25 hours")
    assert.notInclude(limits(yield* scan()), "100")
  })

  test("is another one for a resource that accepts less", function* () {
    const { hooks, limits, scan } = yield* open({})
    hooks.intercept = (path) =>
      Effect.succeed(path.includes("/areas") && path.includes("limit=250") ? refusal("invalid_request", "limit") : null)
    yield* scan()
    assert.deepStrictEqual(limits(yield* scan("areas")).slice(0, 2), ["250", "100"])
    assert.deepStrictEqual(new Set(limits(yield* scan("areas"))), new Set(["100"]))
    assert.deepStrictEqual(new Set(limits(yield* scan("salesmen"))), new Set(["250"]))
  })

  test("shrinks when a page does not arrive in time, or late", function* () {
    const silent = yield* open({ pageMax: 5_000 })
    silent.hooks.intercept = (path) => (path.includes("limit=1000") ? Effect.never : Effect.succeed(null))
    const first = yield* within("5 minutes", silent.scan())
    assert.deepStrictEqual(silent.limits(first).slice(0, 2), ["1000", "250"])
    assert.strictEqual(first.ids, records)
    assert.strictEqual((yield* silent.scan()).requests.length, 4)

    const slow = yield* open({ pageMax: 5_000 })
    slow.hooks.intercept = (path) =>
      path.includes("limit=1000") ? Effect.delay(Effect.succeed(null), "30 seconds") : Effect.succeed(null)
    assert.deepStrictEqual(slow.limits(yield* within("5 minutes", slow.scan())), ["1000"])
    assert.deepStrictEqual(new Set(slow.limits(yield* slow.scan())), new Set(["500"]))
  })

  test("is not changed by a failure that has other reasons", function* () {
    const { hooks, limits, requests, scan, stored } = yield* open({ pageMax: 1_000 })
    hooks.intercept = () => Effect.succeed({ ...refusal("insufficient_scope", null), status: 403 })
    const error = yield* failureOf(scan())
    assert.strictEqual(error.reason._tag, "Forbidden")
    assert.lengthOf(requests, 1)
    const final = [
      refusal("invalid_request", null),
      { ...refusal("rule_violation", null), status: 422 },
      refusal("invalid_request", "cancel"),
      { ...refusal("not_implemented", null), status: 501 },
      { ...refusal("not_found", null), status: 404 }
    ]
    for (const answer of final) {
      const sent = requests.length
      hooks.intercept = () => Effect.succeed(answer)
      const refused = yield* failureOf(scan())
      assert.include(["Refused", "NotImplemented", "NotFound"], refused.reason._tag)
      assert.strictEqual(requests.length, sent + 1, `${answer.status} is sent once`)
    }
    assert.isNull(yield* stored.of("salesmen"))
    let failures = 1
    hooks.intercept = () =>
      Effect.sync(() =>
        failures-- > 0 ? { status: 500, body: '{"error":{"code":"server_error","message":"no"}}' } : null
      )
    assert.deepStrictEqual(limits(yield* within("1 minute", scan())), ["1000", "1000"])
  })

  test("is not tried by incremental scans, and not where a size is configured", function* () {
    const unknown = yield* open({})
    assert.strictEqual(unknown.limits(yield* unknown.scan("salesmen", "2026-01-01T00:00:00Z"))[0], null)
    const configured = yield* open({}, 50)
    assert.deepStrictEqual(new Set(configured.limits(yield* configured.scan())), new Set(["50"]))
  })

  test("does not hide a page that was cut without a mark", function* () {
    const { hooks, limits, scan, stored } = yield* open({})
    /** A source that cuts lists at its own size, repeats the requested one, and follows another paging style. */
    const cut = (path: string): Answer => {
      const limit = Number(new URLSearchParams(path.split("?")[1]).get("limit") ?? 100)
      const data = Array.from({ length: Math.min(limit, 300) }, (_, at) => ({ id: at + 1, name: "cut" }))
      return { status: 200, body: JSON.stringify({ data, _meta: { limit, page: 1 } }) }
    }
    hooks.intercept = (path) => Effect.succeed(cut(path))
    assert.strictEqual((yield* failureOf(scan())).reason._tag, "PagingBroken")
    assert.isNull(yield* stored.of("salesmen"))
    // A complete list without a mark is judged without a size, as before.
    const whole = JSON.stringify({ data: [{ id: 1, name: "one" }] })
    hooks.intercept = () => Effect.succeed({ status: 200, body: whole })
    assert.deepStrictEqual(limits(yield* scan()), ["1000", "250", null])
    assert.deepStrictEqual(limits(yield* scan()), [null])
    hooks.intercept = () => Effect.succeed(null)
    assert.strictEqual(limits(yield* scan("areas"))[0], "1000", "another resource is tried on its own")
  })

  test("shrinks after a refusal of the parameter in any form", function* () {
    const foreign: ReadonlyArray<Answer> = [
      refusal("invalid_request", "query.limit"),
      refusal("unknown_parameter", null),
      {
        status: 400,
        body: '{"error":{"code":"invalid_request","message":"no","errors":[{"field":"limit","code":"invalid_type","message":"no"}]}}'
      },
      { status: 400, body: "Bad Request" },
      { status: 504, body: "" }
    ]
    for (const answer of foreign) {
      const { hooks, scan } = yield* open({ limit: "unknown" })
      hooks.intercept = (path) => Effect.succeed(path.includes("limit=") ? answer : null)
      assert.strictEqual((yield* within("1 minute", scan())).ids, records, answer.body)
    }
    const isLarge = (path: string) => path.includes("areas") && /limit=(1000|2500)/.test(path)
    for (const answer of [refusal("invalid_request", "limit"), { status: 504, body: "" }]) {
      const { hooks, limits, scan } = yield* open({ pageMax: 1_000 })
      yield* scan()
      hooks.intercept = (path) => Effect.succeed(isLarge(path) ? answer : null)
      const one = yield* within("1 minute", scan("areas"))
      assert.strictEqual(one.ids, records)
      assert.strictEqual(limits(one).at(-1), "250")
    }
  })

  test("lets a scan begin again whose links name a size that is refused later, or not answered twice", function* () {
    for (const paging of ["link", "page"]) {
      const { change, hooks, scan, stored } = yield* open({ paging })
      const page = (failing: boolean) =>
        Effect.gen(function* () {
          hooks.intercept = (path) =>
            failing && path.includes("limit=250") && /cursor=|page=/.test(path) ? Effect.never : Effect.succeed(null)
          return (yield* within("20 minutes", failureOf(scan()))).reason._tag
        })
      assert.strictEqual(yield* page(true), "TimedOut")
      assert.strictEqual((yield* stored.of("salesmen"))?.accepted, 100)
      hooks.intercept = () => Effect.succeed(null)
      assert.strictEqual((yield* scan()).ids, records)

      let isLowered = false
      hooks.intercept = (path) =>
        Effect.sync(() => {
          if (/cursor=|page=/.test(path) && !isLowered) {
            isLowered = true
            change({ pageMax: 50 })
          }
          return null
        })
      assert.strictEqual((yield* failureOf(scan())).reason._tag, "PageTokenRefused")
      assert.strictEqual((yield* scan()).ids, records)
    }
  })

  test("is not sent on where numbered pages are longer", function* () {
    const { scan } = yield* open({ paging: "page", limit: "ignored", pageDefault: 1_500, pageMax: 1_500 })
    assert.strictEqual((yield* scan()).ids, records)
  })

  test("is tried once where several lists begin together", function* () {
    const { limits, requests, scan } = yield* open({})
    yield* Effect.all([scan("areas"), scan("salesmen"), scan("departments")], { concurrency: "unbounded" })
    const all = requests.map(({ path }) => new URLSearchParams(path.split("?")[1]))
    assertCount(limits({ requests: all }), (limit) => limit === "1000", 1)
  })

  test("is not waited for behind a resource that does not answer", function* () {
    const { hooks, scan } = yield* open({})
    hooks.intercept = (path) => (path.includes("/areas") ? Effect.never : Effect.as(Effect.yieldNow, null))
    yield* Effect.forkChild(Effect.ignore(scan("areas")))
    const other = yield* Effect.forkChild(scan("salesmen"))
    yield* TestClock.adjust("3 minutes")
    // At most the two trials of the other resource are waited for.
    assert.strictEqual((yield* Fiber.join(other)).ids, records)
  })
})
