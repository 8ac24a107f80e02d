/**
 * Subscriptions and their secrets against the reference server in process and Postgres: `ensure` from any state, and
 * rotations that are killed, lost and repeated during deliveries.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Redacted } from "effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import * as Secrets from "../../../src/subscriptions/SigningSecrets.ts"
import * as SubscriptionStore from "../../../src/subscriptions/SubscriptionStore.ts"
import * as Subscriptions from "../../../src/subscriptions/Subscriptions.ts"
import { did, kindOf, stand, type Trouble, warehouse } from "./subscribing.ts"
import { flowing } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"
import { assertEach, assertNone } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"
import { sql } from "../../support/postgres.ts"

suite("a subscription", warehouse, (test) => {
  test("is created once with a working secret, and a second ensure changes nothing", function* () {
    const at = yield* stand()
    const ensured = yield* at.ensure()
    assert.deepStrictEqual([did(ensured), ensured.warnings], [["created"], []])
    assert.deepStrictEqual(yield* at.deliver(), [true])
    at.requests.length = 0
    const again = yield* at.ensure()
    assert.deepStrictEqual([again.deeds, again.warnings], [[], []])
    assert.deepStrictEqual(at.requests, ["GET /webhooks", "GET /me"])
    assert.deepStrictEqual(
      again.seen.map(({ id, state, unhealthyReason, missingEvents }) => [id, state, unhealthyReason, missingEvents]),
      [[ensured.subscription.id, "active", null, []]]
    )
    assert.isTrue(again.seen[0]!.healthyAt! > ensured.seen[0]!.healthyAt!)
  })

  test("is corrected to the configured events and state, and its unhealthy period is recorded", function* () {
    const at = yield* stand()
    const { id } = (yield* at.ensure()).subscription
    const sound = (yield* at.seen)[0]!.healthyAt
    at.call("PATCH", `/webhooks/${id}`, { paused: true, events: ["salesmen.created", "areas.created"] })
    at.call("PATCH", `/webhooks/${id}`, { enabled: false })

    const repair = yield* at.ensure()
    assert.deepStrictEqual(did(repair), ["changed"])
    assert.include(repair.deeds[0]!.detail, "salesmen.updated added, areas.created removed, resumed after a pause")
    const { subscription } = repair
    assert.deepStrictEqual(
      [subscription.paused, subscription.disabledAt, [...subscription.events].sort()],
      [false, null, ["salesmen.created", "salesmen.updated"]]
    )
    const subscriptionState = repair.seen[0]!
    assert.deepStrictEqual(
      [
        subscriptionState.state,
        subscriptionState.unhealthyReason,
        subscriptionState.healthyAt,
        subscriptionState.missingEvents
      ],
      ["active", "disabled", sound, []]
    )
    assert.isTrue(SubscriptionStore.isHealthy(subscriptionState))

    // Only reconcile, after it has recorded the gap, marks the subscription healthy.
    yield* SubscriptionStore.markHealthy(at.name, id, subscriptionState.checkedAt)
    const after = (yield* at.seen)[0]!
    assert.deepStrictEqual([after.unhealthyReason, after.healthyAt], [null, subscriptionState.checkedAt])
    assert.deepStrictEqual((yield* at.ensure()).deeds, [])
  })

  test("is the only active one at its address, and foreign subscriptions stay unchanged", function* () {
    const at = yield* stand()
    const events = at.desired.events
    const post = (url: string) => String(at.call("POST", "/webhooks", { url, events }).body["id"])
    const [first, foreign] = [post(at.url), post("https://elsewhere.example.com/x")]
    const ensured = yield* at.ensure()
    assert.deepStrictEqual([did(ensured), ensured.subscription.id], [["rotated"], first])
    const second = post(at.url)
    const third = yield* at.act(
      Effect.flatMap(at.company.connector.subscriptions!.create({ url: at.url, events, description: "" }), (one) =>
        Effect.as(at.secrets.store(at.name, one.subscription.id, one.secret, "current"), one.subscription.id)
      )
    )
    yield* at.secrets.forget(at.name, first)
    const again = yield* at.ensure()
    assert.strictEqual(again.subscription.id, third)
    assertEach(again.deeds, (deed) => [deed.did, deed.id], [
      ["cancelled", first],
      ["cancelled", second]
    ])
    assert.deepStrictEqual(
      at
        .listed()
        .map((one) => String(one["id"]))
        .sort(),
      [foreign, third].sort()
    )
    assert.deepStrictEqual(yield* at.deliver(), [true])
    assert.deepStrictEqual((yield* at.ensure()).deeds, [])
    const states = (yield* SubscriptionStore.read(at.name, events)).map(({ id, state }) => [id, state] as const)
    assert.deepStrictEqual(
      new Map(states),
      new Map([
        [first, "deleted"],
        [second, "deleted"],
        [third, "active"]
      ])
    )
  })

  test("omits unknown events, and warns of events that the token may not read", function* () {
    const at = yield* stand({ scopes: ["setup:read", "setup:write", "setup:cancel"] })
    const events = ["salesmen.created", "nothings.created", "salesmen.sold", "orders.created"]
    const ensured = yield* at.ensure({ events })
    assert.deepStrictEqual(ensured.refused, ["nothings.created", "salesmen.sold"])
    assert.deepStrictEqual(ensured.subscription.events, ["salesmen.created", "orders.created"])
    const area = serviceV2.resources.get("orders")!.area
    assert.isTrue(ensured.warnings.some((text) => text.includes("nothings.created, salesmen.sold")))
    assert.isTrue(ensured.warnings.some((text) => text.includes("orders.created") && text.includes(`${area}:read`)))
    const again = yield* at.ensure({ events })
    assert.deepStrictEqual([again.deeds, again.refused], [[], ensured.refused])
    assertEach(again.seen, ({ unhealthyReason, missingEvents }) => [unhealthyReason, missingEvents], [[null, []]])
    assert.strictEqual(yield* kindOf(at.ensure({ events: ["nothings.created"] })), "events")
  })

  test("is created once by concurrent processes", function* () {
    const at = yield* stand()
    const all = yield* flowing(Effect.all([at.ensure(), at.ensure(), at.ensure()], { concurrency: 3 }))
    assert.deepStrictEqual(all.flatMap(did), ["created"])
    assert.lengthOf(at.listed(), 1)
  })

  test("works after the next ensure when the create response or the secret was lost", function* () {
    const lost = yield* stand()
    lost.state.trouble = (request) => (request === "POST /webhooks" ? "after" : undefined)
    assert.strictEqual((yield* Effect.flip(lost.ensure()))._tag, "SourceError")
    assert.lengthOf(lost.listed(), 1)
    lost.state.trouble = () => undefined
    assert.deepStrictEqual(did(yield* lost.ensure()), ["rotated"])
    assert.deepStrictEqual(yield* lost.deliver(), [true])

    const full = yield* stand()
    yield* sql.unsafe(
      `create function public.refuse() returns trigger language plpgsql as
             'begin if new.company = ''${full.name}'' then raise exception ''disk full''; end if; return new; end'`
    )
    yield* sql`create trigger refuse before insert on tributary.webhook_secrets
                     for each row execute function public.refuse()`
    assert.strictEqual((yield* Effect.flip(full.ensure()))._tag, "DatabaseError")
    assert.lengthOf(full.listed(), 0)
    yield* sql`drop trigger refuse on tributary.webhook_secrets`
    assert.deepStrictEqual(did(yield* full.ensure()), ["created"])
    assert.deepStrictEqual(yield* full.deliver(), [true])
  })

  test("with configured secrets is not rotated automatically", function* () {
    const own = Redacted.make("a secret of the operator's own choice")
    const at = yield* stand({ configured: [own] })
    at.call("POST", "/webhooks", { url: at.url, events: at.desired.events })
    assert.deepStrictEqual((yield* at.ensure()).deeds, [])
    assert.deepStrictEqual(yield* at.rows, [])
    assert.strictEqual((yield* at.act(Subscriptions.list(at.company, at.desired)))[0]?.secret, "configured")
  })

  test("is created again after the token was replaced, without the old secret", function* () {
    const at = yield* stand()
    yield* at.ensure()
    const token = at.running.token({ scopes: ["*"] })
    const keys = [{ name: at.name, token: Redacted.make(token), configured: [] }]
    const secrets = yield* Effect.map(Secrets.SigningSecrets, (one) => one).pipe(Effect.provide(Secrets.layer(keys)))
    assert.deepStrictEqual(secrets.keyring.of(at.name), [])
    const ensured = yield* Subscriptions.ensure(
      { name: at.name, connector: yield* at.connect(token) },
      at.desired
    ).pipe(Effect.provideService(Secrets.SigningSecrets, secrets))
    assert.deepStrictEqual(did(ensured), ["created"])
    assert.lengthOf(secrets.keyring.of(at.name), 1)
    assert.deepStrictEqual(valuesOf(ensured.seen, "state"), ["deleted", "active"])
  })
  test("accepts every delivery during a rotation, with both signatures or the new one only", function* () {
    const rotating = Effect.fnUntraced(function* (rotationHours: number) {
      const at = yield* stand({ apart: true })
      at.running.control("PUT", "/limits", { rotationHours })
      yield* at.ensure()
      yield* at.deliver()
      const done = yield* Deferred.make<void>()
      const delivering = yield* Effect.forkChild(
        Effect.gen(function* () {
          while (!(yield* Deferred.isDone(done))) {
            yield* at.deliver()
            yield* Effect.yieldNow
          }
        })
      )
      // Also deliveries at the critical moments: just before and just after the request of the rotation.
      at.state.before = Effect.asVoid(at.deliver())
      for (let round = 0; round < 2; round += 1) {
        yield* at.act(Subscriptions.rotate(at.company, at.desired, null))
        yield* at.deliver()
      }
      at.state.before = Effect.void
      yield* Deferred.succeed(done, undefined)
      yield* Fiber.join(delivering)
      assert.isAbove(at.attempts.length, 6)
      assertNone(at.attempts, ({ accepted }) => !accepted)
      if (rotationHours > 0) assert.isTrue(at.attempts.some(({ signatures }) => signatures === 2))
      assert.deepStrictEqual(yield* at.statesFor, ["previous 25", "previous 25", "current null"])
    })
    yield* Effect.forEach([24, 0], rotating, { concurrency: 2 })
  })

  test("accepts both secrets after an interrupted rotation, and the next ensure completes it", function* () {
    const rotating = Effect.fnUntraced(function* (trouble: Trouble) {
      const at = yield* stand({ apart: true })
      at.running.control("PUT", "/limits", { rotationHours: 0 })
      const { id } = (yield* at.ensure()).subscription
      at.state.trouble = (request) => (request === `PATCH /webhooks/${id}` ? trouble : undefined)
      const rotation = yield* Effect.forkChild(Effect.exit(at.act(Subscriptions.rotate(at.company, at.desired, null))))
      yield* Deferred.await(at.troubled)
      // Its connections are closed at once, as if the process had been killed.
      if (trouble === "never") yield* Fiber.interrupt(rotation)
      else assert.isTrue(Exit.isFailure(yield* Fiber.join(rotation)))
      assert.deepStrictEqual(yield* at.states, ["current", "next"])
      assert.deepStrictEqual(yield* at.deliver(), [true])
      at.state.trouble = () => undefined
      const finished = yield* at.ensure()
      assert.include(finished.deeds[0]!.detail, "finished")
      assert.deepStrictEqual(yield* at.states, ["previous", "current"])
      assert.deepStrictEqual(yield* at.deliver(), [true])
      assert.deepStrictEqual((yield* at.ensure()).deeds, [])
    })
    yield* Effect.forEach(["before", "after", "never"] as const, rotating, { concurrency: 3 })
  })

  test("stays unchanged when the source rejects the new secret", function* () {
    const at = yield* stand()
    yield* at.ensure()
    const short = Redacted.make("too short")
    const failed = yield* Effect.flip(at.act(Subscriptions.rotate(at.company, at.desired, null, short)))
    assert.strictEqual(failed._tag, "SourceError")
    assert.notInclude(failed.message, "too short")
    assert.deepStrictEqual(yield* at.states, ["current"])
    assert.deepStrictEqual(yield* at.deliver(), [true])
  })

  test("accepts old secrets for a limited time and in a limited number", function* () {
    const at = yield* stand()
    const { id } = (yield* at.ensure()).subscription
    for (let round = 0; round < 3; round += 1) yield* at.act(Subscriptions.rotate(at.company, at.desired, id))
    assert.lengthOf(at.secrets.keyring.of(at.name), 4)
    const [oldest] = yield* at.rows
    yield* sql`update tributary.webhook_secrets set accepted_until = tributary.now() where id = ${oldest!.id}::bigint`
    assert.isTrue(yield* flowing(at.secrets.keyring.refresh))
    assert.lengthOf(at.secrets.keyring.of(at.name), 3)
    for (let round = 0; round < 16; round += 1) {
      yield* at.secrets.store(at.name, id, yield* at.secrets.draw, "current")
    }
    yield* at.act(Subscriptions.rotate(at.company, at.desired, id))
    assert.isFalse((yield* at.rows).some((row) => row.id === oldest!.id))
    assert.lengthOf(at.secrets.keyring.of(at.name), 16)
    assert.deepStrictEqual(yield* at.deliver(), [true])
  })

  test("reads its secrets once for concurrent requests, again if needed, and within a limit", function* () {
    const at = yield* stand()
    yield* at.ensure()
    const keyring = at.keyring()
    yield* flowing(keyring.refresh)
    // The secrets were just read; callers now wait for the next read, which all share.
    const waiting = yield* Effect.forkChild(
      Effect.all(
        Array.from({ length: 200 }, () => keyring.refresh),
        { concurrency: "unbounded" }
      )
    )
    yield* Effect.yieldNow
    yield* at.secrets.store(at.name, "77", Redacted.make("another secret altogether"), "current")
    assert.strictEqual((yield* flowing(Fiber.join(waiting))).filter((changed) => changed).length, 64)
    assert.lengthOf(keyring.of(at.name), 2)
    assert.deepStrictEqual(keyring.of("unknown"), [])
    // The secrets cannot be read, so the known ones stay in use.
    yield* sql`alter table tributary.webhook_secrets rename to hidden`
    assert.isFalse(yield* flowing(keyring.refresh))
    yield* sql`alter table tributary.hidden rename to webhook_secrets`
    assert.lengthOf(keyring.of(at.name), 2)
  })
  test("is paused, resumed, tested, listed and deleted by the commands", function* () {
    const at = yield* stand()
    const { id } = (yield* at.ensure()).subscription
    const before = (yield* at.seen)[0]!
    assert.isTrue((yield* at.act(Subscriptions.pause(at.company, at.desired, null))).paused)
    const paused = (yield* at.seen)[0]!
    assert.deepStrictEqual([paused.state, paused.unhealthyReason], ["paused", "paused"])
    assert.deepStrictEqual(yield* at.deliver(), [])
    const { result } = yield* Subscriptions.test(at.company, at.desired, null)
    assert.deepStrictEqual([result.responseCode, result.delivered], [204, true])
    const tested = (yield* at.seen)[0]!
    assert.deepStrictEqual([tested.testedAt === null, tested.testError], [false, null])
    assert.isFalse((yield* at.act(Subscriptions.resume(at.company, at.desired, id))).paused)
    const resumed = (yield* at.seen)[0]!
    assert.deepStrictEqual([resumed.state, resumed.unhealthyReason], ["active", "paused"])
    // The check at the start of the pause is the last one that proves health.
    assert.isTrue(resumed.healthyAt! >= before.healthyAt! && resumed.healthyAt! < paused.checkedAt)

    const [listing] = yield* at.act(Subscriptions.list(at.company, at.desired))
    assert.deepStrictEqual(
      [listing?.subscription.id, listing?.state, listing?.ours, listing?.secret],
      [id, "active", true, "stored"]
    )
    // The same address, as another warehouse sees it: without the secret nothing shows that it delivers there.
    const elsewhere = { ...at.company, name: `${at.name} elsewhere` }
    const [seen] = yield* at.act(Subscriptions.list(elsewhere, at.desired))
    assert.deepStrictEqual([seen?.isAtOurAddress, seen?.ours, seen?.secret], [true, false, "none"])
    assert.strictEqual(
      yield* kindOf(
        at.act(
          Subscriptions.create(at.company, at.desired, { url: at.url, events: at.desired.events, description: "" })
        )
      ),
      "exists"
    )

    // A subscription of another receiver: its secret is not accepted here.
    const there = { url: "https://elsewhere.example.com/x", events: at.desired.events, description: "" }
    const { subscription: foreign } = yield* at.act(Subscriptions.create(at.company, at.desired, there))
    const shared = Redacted.make("a secret that two receivers know")
    yield* at.act(Subscriptions.rotate(at.company, at.desired, foreign.id, shared))
    assert.strictEqual(yield* kindOf(at.act(Subscriptions.rotate(at.company, at.desired, foreign.id))), "foreign")
    assert.lengthOf(at.secrets.keyring.of(at.name), 1)

    assert.isTrue((yield* at.act(Subscriptions.remove(at.company, at.desired, id))).cancelled)
    assert.deepStrictEqual(yield* at.rows, [])
    assert.deepStrictEqual(valuesOf(yield* at.seen, "state"), ["deleted"])
    assert.strictEqual(yield* kindOf(at.act(Subscriptions.pause(at.company, at.desired, id))), "unknown")
  })

  test("has a delivery log with one line per event", function* () {
    const at = yield* stand()
    yield* at.ensure()
    yield* at.deliver()
    at.state.isDown = true
    for (let cycle = 0; cycle < 4; cycle += 1) yield* at.deliver()
    at.state.isDown = false
    yield* at.deliver()
    const log = (filter: Omit<Subscriptions.LogFilter, "limit">, limit = 100) =>
      Effect.map(Subscriptions.deliveries(at.company, at.desired, null, { ...filter, limit }), ({ attempts }) =>
        attempts.map((one) => `${one.attempts}${one.delivered ? "+" : one.abandoned ? "x" : "?"}`)
      )
    assert.deepStrictEqual(yield* log({}), ["1+", "1+", "1+", "2+", "3x", "1+"])
    assert.deepStrictEqual(yield* log({ abandoned: true }), ["3x"])
    assert.deepStrictEqual(yield* log({ delivered: true }), ["1+", "1+", "1+", "2+", "1+"])
    assert.deepStrictEqual(yield* log({ delivered: false }), ["3x"])
    assert.deepStrictEqual(yield* log({ eventType: "salesmen.updated" }), [])
    assert.deepStrictEqual(yield* log({}, 2), ["1+", "1+"])
  })
})
