/**
 * Repair of subscriptions: an unknown or changed address, secrets of a restored warehouse, failed rotations, and a
 * source that lacks operations.
 */
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as SigningSecrets from "../../../src/subscriptions/SigningSecrets.ts"
import * as SubscriptionStore from "../../../src/subscriptions/SubscriptionStore.ts"
import * as Subscriptions from "../../../src/subscriptions/Subscriptions.ts"
import { did, kindOf, refusal, stand, warehouse } from "./subscribing.ts"
import { suite } from "../../support/suite.ts"
import { flowing } from "../../support/until.ts"
import { assertCount, assertEach } from "../../support/assertions.ts"
import { sql } from "../../support/postgres.ts"

/** Returns an effect that restores the current secrets of a company. */
const backUp = Effect.fnUntraced(function* (company: string) {
  const rows = yield* sql<{ subscription: string; sealed: string; state: string }>`
    select subscription_id as subscription, encode(sealed, 'base64') as sealed, state
      from tributary.webhook_secrets where company = ${company}`
  return Effect.gen(function* () {
    yield* sql`delete from tributary.webhook_secrets where company = ${company}`
    for (const { subscription, sealed, state } of rows) {
      yield* sql`insert into tributary.webhook_secrets (company, subscription_id, sealed, state)
                 values (${company}, ${subscription}, decode(${sealed}, 'base64'), ${state})`
    }
  })
})

suite("a subscription", warehouse, (test) => {
  test("of another receiver stays unchanged when public_url is not set", function* () {
    const at = yield* stand()
    const withoutUrl = { ...at.desired, url: null }
    const post = (url: string) => String(at.call("POST", "/webhooks", { url, events: withoutUrl.events }).body["id"])
    const foreign = post("https://elsewhere.example.com/in")
    assert.strictEqual(yield* kindOf(at.act(Subscriptions.rotate(at.company, withoutUrl, null))), "unknown")
    assert.strictEqual(yield* kindOf(at.act(Subscriptions.pause(at.company, withoutUrl, null))), "unknown")
    assert.strictEqual(yield* kindOf(at.act(Subscriptions.rotate(at.company, withoutUrl, foreign))), "foreign")
    assert.deepStrictEqual(yield* at.rows, [])
    assert.deepStrictEqual(yield* SubscriptionStore.read(at.name, withoutUrl.events), [])
    assert.isFalse((yield* at.act(Subscriptions.list(at.company, withoutUrl)))[0]!.ours)

    // A subscription whose address ends like the receiver's addresses belongs to the receiver.
    const ours = post(at.url)
    assert.strictEqual((yield* at.act(Subscriptions.rotate(at.company, withoutUrl, null))).subscription.id, ours)
    assert.deepStrictEqual(yield* at.deliver(), [true])
  })

  test("is rotated when the stored secret does not match the signatures of the source", function* () {
    const at = yield* stand()
    at.running.control("PUT", "/limits", { rotationHours: 0 })
    yield* at.ensure()
    const restore = yield* backUp(at.name)
    yield* at.act(Subscriptions.rotate(at.company, at.desired, null))
    yield* restore
    at.state.refreshesSecrets = false
    yield* flowing(at.secrets.keyring.refresh)
    assert.deepStrictEqual(yield* at.deliver(), [false])
    const repair = yield* at.ensure()
    assert.deepStrictEqual([did(repair), repair.warnings], [["rotated"], []])
    assert.include(repair.deeds[0]!.detail, "401")
    // The next cycle delivers the event that was refused, and the new one.
    assert.deepStrictEqual(new Set(yield* at.deliver()), new Set([true]))
    assert.deepStrictEqual((yield* at.ensure()).deeds, [])
  })

  test("leads to a warning when the source keeps signing with another secret", function* () {
    const at = yield* stand()
    const { subscription } = yield* at.ensure()
    yield* at.secrets.forget(at.name, subscription.id)
    yield* at.secrets.store(at.name, subscription.id, yield* at.secrets.draw, "current")
    at.state.refreshesSecrets = false
    assert.deepStrictEqual(yield* at.deliver(), [false])
    at.state.instead = (request, body) =>
      request.startsWith("PATCH") && body.includes('"secret"')
        ? { status: 200, body: at.call("GET", `/webhooks/${subscription.id}`).body }
        : undefined
    const repair = yield* at.ensure()
    assert.deepStrictEqual(did(repair), ["rotated"])
    assert.include(repair.warnings.join(), "webhooks.rotate_field")
  })

  test("keeps a new secret that the source accepted first and rejected on retry", function* () {
    const at = yield* stand()
    at.running.control("PUT", "/limits", { rotationHours: 0 })
    const { id } = (yield* at.ensure()).subscription
    at.state.trouble = (request) => (request === `PATCH /webhooks/${id}` ? "after" : undefined)
    yield* Effect.flip(at.act(Subscriptions.rotate(at.company, at.desired, null)))
    at.state.trouble = () => undefined
    let refusals = 1
    at.state.instead = (request) =>
      request === `PATCH /webhooks/${id}` && refusals-- > 0 ? refusal(400, "invalid_request") : undefined
    const repair = yield* at.ensure()
    assert.deepStrictEqual(repair.deeds, [])
    assert.match(repair.warnings.join(), /refused now.*invalid_request.*webhooks rotate/)
    assert.deepStrictEqual(yield* at.deliver(), [true])
    // Another rotation ends this state.
    refusals = 1
    yield* at.act(Subscriptions.rotate(at.company, at.desired, null))
    assert.deepStrictEqual(yield* at.states, ["previous", "previous", "current"])
    assert.deepStrictEqual(yield* at.deliver(), [true])
    assert.deepStrictEqual((yield* at.ensure()).warnings, [])
  })

  test("is paused once when it cannot be cancelled, and later commands ignore it", function* () {
    const at = yield* stand()
    const { id } = (yield* at.ensure()).subscription
    const second = String(at.call("POST", "/webhooks", { url: at.url, events: at.desired.events }).body["id"])
    at.state.instead = (request) => (request.startsWith("DELETE") ? refusal(405, "method_not_allowed") : undefined)
    assertEach((yield* at.ensure()).deeds, (deed) => [deed.did, deed.id], [["paused", second]])
    at.requests.length = 0
    assert.deepStrictEqual((yield* at.ensure()).deeds, [])
    assert.isFalse(at.requests.some((request) => request.startsWith("PATCH")))
    const { subscription } = yield* at.act(Subscriptions.rotate(at.company, at.desired, null))
    assert.strictEqual(subscription.id, id)
    assert.strictEqual((yield* Subscriptions.test(at.company, at.desired, null)).subscription.id, id)
  })

  test("keeps its id when the address of the receiver changes", function* () {
    const at = yield* stand()
    const { id } = (yield* at.ensure()).subscription
    const url = `https://new.example.com/hooks/${at.name}`
    at.state.receivesAt = url
    const moved = yield* at.ensure({ url })
    assert.deepStrictEqual([did(moved), moved.subscription.id, moved.subscription.url], [["changed"], id, url])
    assert.include(moved.deeds[0]!.detail, at.url)
    assert.deepStrictEqual(yield* at.deliver(), [true])
    // Events that fired before may have gone to the old address.
    assertEach(moved.seen, (row) => [row.id, row.state, row.unhealthyReason, row.url], [[id, "active", "missing", url]])
    // The same address in another spelling than the source's.
    const spelt = yield* at.ensure({ url: url.replace("https://new", "HTTPS://NEW").replace(".com/", ".com:443/") })
    assert.deepStrictEqual([spelt.deeds, spelt.subscription.id], [[], id])
  })

  test("at an old address leads to a warning with the command to delete it", function* () {
    const at = yield* stand()
    const { id } = (yield* at.ensure()).subscription
    const url = `https://new.example.com/hooks/${at.name}`
    const other = String(at.call("POST", "/webhooks", { url, events: at.desired.events }).body["id"])
    const moved = yield* at.ensure({ url })
    assert.deepStrictEqual([did(moved), moved.subscription.id], [["rotated"], other])
    assert.include(moved.warnings.join(), `webhooks delete ${id} --company ${at.name}`)
    assert.strictEqual(at.listed().find((one) => String(one["id"]) === id)!["url"], at.url)
    yield* at.act(Subscriptions.remove(at.company, { ...at.desired, url }, id))
    assert.deepStrictEqual((yield* at.ensure({ url })).warnings, [])
  })

  test("of a renamed company leads to a warning with the command to delete it", function* () {
    const at = yield* stand()
    const { id } = (yield* at.ensure()).subscription
    const name = `${at.name}-renamed`
    const keys = [{ name, token: Redacted.make(at.token), configured: [] }]
    const ensured = yield* Subscriptions.ensure(
      { name, connector: at.company.connector },
      { ...at.desired, url: `https://hooks.example.com/hooks/${name}` }
    ).pipe(Effect.provide(SigningSecrets.layer(keys)))
    assert.deepStrictEqual(did(ensured), ["created"])
    assert.match(
      ensured.warnings.join(),
      new RegExp(`${at.name}, still sends.*webhooks delete ${id} --company ${name}`)
    )
  })

  test("keeps both secrets while two tokens of one company are in use", function* () {
    const at = yield* stand()
    yield* at.ensure()
    const token = at.running.token({ scopes: ["*"] })
    const company = { name: at.name, connector: yield* at.connect(token) }
    const keys = [{ name: at.name, token: Redacted.make(token), configured: [] }]
    yield* Effect.provide(Subscriptions.ensure(company, at.desired), SigningSecrets.layer(keys))
    assert.deepStrictEqual(yield* at.statesFor, ["previous 720", "current null"])
    const keyring = yield* SigningSecrets.keyring([{ name: at.name, token: Redacted.make(at.token), configured: [] }])
    assert.lengthOf(keyring.of(at.name), 1)
  })

  test("reports the setting webhooks.rotate_field when the source expects another field", function* () {
    const at = yield* stand()
    yield* at.ensure()
    at.state.instead = (request) =>
      request.startsWith("PATCH")
        ? refusal(400, "unknown_parameter", { field: "secret", message: "valid are: signing_secret" })
        : undefined
    const problem = yield* Effect.flip(at.act(Subscriptions.rotate(at.company, at.desired, null)))
    assert(problem instanceof Subscriptions.SubscriptionError)
    assert.strictEqual(problem.kind, "field")
    assert.include(problem.message, "signing_secret")
    assert.include(problem.remedy, "webhooks.rotate_field")
    assert.lengthOf(yield* at.rows, 1)
  })

  test("is changed successfully although the list fails afterwards", function* () {
    const at = yield* stand()
    let isDone = false
    at.state.trouble = (request) => {
      if (request !== "GET /webhooks") isDone ||= !request.startsWith("GET")
      return isDone && request === "GET /webhooks" ? "before" : undefined
    }
    assert.deepStrictEqual(did(yield* at.ensure()), ["created"])
    for (const act of [Subscriptions.pause, Subscriptions.resume]) {
      isDone = false
      yield* at.act(act(at.company, at.desired, null))
      assert.isTrue(isDone)
    }
    isDone = false
    assert.isNotNull((yield* at.act(Subscriptions.rotate(at.company, at.desired, null))).acceptedHours)
    const there = { url: "https://elsewhere.example.com/x", events: ["areas.created"], description: "" }
    isDone = false
    assert.isFalse((yield* at.act(Subscriptions.create(at.company, at.desired, there))).ours)
    assert.deepStrictEqual(yield* at.deliver(), [true])
  })

  test("has a delivery log whose failures are found without reading all deliveries", function* () {
    const at = yield* stand()
    yield* at.ensure()
    const failing = Effect.fnUntraced(function* (cycles: number) {
      at.state.isDown = true
      for (let cycle = 0; cycle < cycles; cycle += 1) yield* at.deliver()
      at.state.isDown = false
    })
    yield* failing(3)
    at.running.control("POST", "/clock", { advanceSeconds: 3600 })
    for (let count = 0; count < 120; count += 1) yield* at.deliver()
    at.running.control("POST", "/clock", { advanceSeconds: 3600 })
    yield* failing(1)
    at.requests.length = 0
    const filter = { delivered: false, limit: 100 }
    const { attempts, isWhole } = yield* Subscriptions.deliveries(at.company, at.desired, null, filter)
    assert.isTrue(isWhole)
    assertEach(attempts, (one) => `${one.attempts} ${one.abandoned}`, ["1 false", "3 true"])
    assertCount(at.requests, (request) => request.endsWith("/deliveries"), 2)
  })
})
