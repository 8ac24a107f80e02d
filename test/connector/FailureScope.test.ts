/** The scope of a refused request: its resource, unless the source refuses the identity, too. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as FailureScope from "../../src/connector/FailureScope.ts"
import {
  Forbidden,
  NotFound,
  Redirected,
  ServerFault,
  type SourceError,
  type SourceReason,
  Unauthorized
} from "../../src/connector/SourceError.ts"
import { failing, scripted, things } from "../support/tiny.ts"
import { test } from "../support/suite.ts"

const revoked = new Unauthorized({ kind: "revoked", code: "token_revoked" })
const forbidden = new Forbidden({ kind: "user", code: "forbidden", scope: null, detail: "no" })
const redirected = new Redirected({ status: 302, to: "https://elsewhere.test/" })
const unavailable = new ServerFault({ status: 503, code: null, retryAfter: null })
const suspicions: ReadonlyArray<SourceReason> = [
  revoked,
  forbidden,
  redirected,
  new Forbidden({ kind: "other", code: "ip_blocked", scope: null, detail: "no" })
]

/** A source that refuses every request but the identity, with counted questions. */
const makeSource = Effect.fnUntraced(function* (reason: SourceReason) {
  const source = { reason, identity: null as SourceReason | null, questions: 0 }
  const refused = Effect.suspend(() => Effect.fail(failing(source.reason)))
  const { connector } = scripted(1n, () => ({ records: [], next: null }))
  const scoped = yield* FailureScope.make({
    ...connector,
    identify: Effect.suspend(() => {
      source.questions += 1
      return source.identity === null ? connector.identify : Effect.fail(failing(source.identity))
    }).pipe(Effect.delay("20 millis")),
    page: () => refused,
    rawPage: () => refused,
    get: () => refused,
    write: () => refused
  })
  const page = Effect.flip(scoped.page({ resource: things, since: null, token: null }))
  const requests: ReadonlyArray<Effect.Effect<SourceError, unknown>> = [
    page,
    Effect.flip(scoped.rawPage({ resource: things, since: null, token: null })),
    Effect.flip(scoped.get(things, "1")),
    Effect.flip(
      scoped.write({ resource: things, operation: "create", id: null, body: "{}", idempotencyKey: "k", ifMatch: null })
    )
  ]
  return { source, scoped, page, requests }
})

/** Runs the effect to its end. */
const toEnd = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("2 seconds")
    return yield* Fiber.join(fiber)
  })

describe("the scope of a refused request", () => {
  test("is its resource while the source accepts the identity", function* () {
    for (const reason of suspicions) {
      const { requests } = yield* makeSource(reason)
      for (const request of requests) {
        const error = yield* toEnd(request)
        assert.strictEqual(error.stops, "resource")
        assert.strictEqual(error.reason, reason)
        assert.match(error.remedy, /^the source accepts the token elsewhere/)
      }
    }
  })

  test("is the company when the source refuses the identity", function* () {
    for (const reason of [revoked, forbidden, redirected, new NotFound({ detail: "no" })]) {
      const { source, requests } = yield* makeSource(forbidden)
      source.identity = reason
      for (const request of requests) {
        const error = yield* toEnd(request)
        assert.strictEqual(error.stops, "company")
        assert.strictEqual(error.reason, reason, "the error is that of the identity")
      }
      assert.strictEqual(source.questions, 1, "a refusal of the identity stands for a while")
    }
  })

  test("is its resource when the identity has no final answer, and needs no question for other failures", function* () {
    const { source, page } = yield* makeSource(redirected)
    source.identity = unavailable
    const error = yield* toEnd(page)
    assert.strictEqual(error.stops, "resource")
    assert.strictEqual(error.remedy, redirected.handling.remedy)
    const scope = new Forbidden({ kind: "scope", code: "insufficient_scope", scope: "shop:read", detail: "no" })
    for (const reason of [unavailable, new NotFound({ detail: "no" }), scope]) {
      const other = yield* makeSource(reason)
      assert.notStrictEqual((yield* toEnd(other.page)).stops, "company")
      assert.strictEqual(other.source.questions, 0)
    }
  })

  test("is found by one question of all requests that fail together", function* () {
    for (const identity of [null, revoked]) {
      const { source, page } = yield* makeSource(forbidden)
      source.identity = identity
      const many = Array.from({ length: 86 }, () => page)
      const errors = yield* toEnd(Effect.all(many, { concurrency: "unbounded" }))
      assert.strictEqual(source.questions, 1)
      assert.isTrue(errors.every(({ stops }) => stops === (identity === null ? "resource" : "company")))
    }
  })

  test("is asked again after a while, and for a refusal of another kind", function* () {
    const { source, page, scoped } = yield* makeSource(forbidden)
    yield* toEnd(page)
    yield* toEnd(page)
    assert.strictEqual(source.questions, 1)
    source.reason = revoked
    source.identity = revoked
    assert.strictEqual((yield* toEnd(page)).stops, "company", "a revoked token is noticed at once")
    yield* TestClock.adjust("1 minute")
    source.identity = null
    assert.strictEqual((yield* toEnd(page)).stops, "resource")
    assert.strictEqual(source.questions, 3)
    source.identity = revoked
    yield* TestClock.adjust("1 minute")
    yield* toEnd(page)
    source.identity = null
    assert.strictEqual(
      (yield* toEnd(Effect.flip(scoped.identify))).stops,
      "company",
      "a refusal is not questioned at once"
    )
    assert.strictEqual(source.questions, 4)
    // A token that was replaced is accepted by the next identification, and nothing stays stopped.
    yield* TestClock.adjust("5 seconds")
    yield* toEnd(scoped.identify)
    assert.strictEqual((yield* toEnd(page)).stops, "resource")
  })
})
