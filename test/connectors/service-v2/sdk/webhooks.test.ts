/** Verification of deliveries, signed here as the API's documents say, and subscriptions. */
import { createHmac } from "node:crypto"
import { inspect } from "node:util"
import { assert, describe, it } from "vitest"
import * as Sdk from "../../../../connectors/service-v2/sdk/index.ts"
import { rejection, thrownBy, useReference } from "./support.ts"
import { valuesOf } from "../../../support/rows.ts"

const sdk = useReference()

const secret = "whsec_first-secret-of-the-subscription"
const now = Date.parse("2026-03-16T09:00:00Z")
const seconds = now / 1000

const envelope = (type: string, data: string, id = "evt_1") =>
  `{"id":"${id}","type":"${type}","createdate":"2026-03-16T08:59:58Z","companyid":7,"data":${data}}`

const customer = '{"id":12,"customercode":"NORTH","creditlimit":"9007199254740993.0001","cancel":false}'
const body = envelope("customers.updated", customer)

/** `v1 = hex(HMAC-SHA256(secret, t + "." + raw body))`. */
const sign = (text: string, key: string, t = seconds) =>
  createHmac("sha256", key).update(`${t}.`).update(text).digest("hex")

const headers = (signature: string) => ({ "Svc-Signature": signature, "Svc-Delivery-Attempt": "2" })
const signed = (text: string, key = secret, t = seconds) => headers(`t=${t},v1=${sign(text, key, t)}`)

const refusal = (delivery: Sdk.WebhookDeliveryInput): Sdk.WebhookVerificationError => {
  const error = thrownBy(() => Sdk.verifyWebhook(delivery))
  assert(error instanceof Sdk.WebhookVerificationError)
  assert.notInclude(inspect(error, { depth: 9, showHidden: true }), secret)
  return error
}

describe("verifyWebhook", () => {
  it("returns the typed event of a delivery with a valid signature, in any form of body and headers", () => {
    const event = Sdk.verifyWebhook({ body, headers: signed(body), secrets: secret, now })
    assert(event.resource === "customers")
    assert.deepStrictEqual(
      { ...event, data: { ...event.data } },
      {
        id: "evt_1",
        type: "customers.updated",
        companyId: 7,
        createdAt: "2026-03-16T08:59:58Z",
        attempt: 2,
        resource: "customers",
        recordId: 12,
        data: { id: 12, customercode: "NORTH", creditlimit: "9007199254740993.0001", cancel: false }
      }
    )
    const bytes = new TextEncoder().encode(body)
    const given = [new Headers(signed(body)), signed(body), { "svc-signature": [signed(body)["Svc-Signature"]] }]
    for (const one of given) {
      for (const text of [bytes, Buffer.from(bytes), body]) {
        assert.strictEqual(Sdk.verifyWebhook({ body: text, headers: one, secrets: [secret], now }).id, "evt_1")
      }
    }
  })

  it("refuses forged, stale and malformed deliveries, each with its status", () => {
    const forged = refusal({ body: body.replace("NORTH", "SOUTH"), headers: signed(body), secrets: secret, now })
    assert.deepStrictEqual([forged.code, forged.status], ["forged", 401])
    const otherTime = headers(`t=${seconds - 1},v1=${sign(body, secret)}`)
    assert.strictEqual(refusal({ body, headers: otherTime, secrets: secret, now }).code, "forged")
    assert.strictEqual(refusal({ body, headers: signed(body, ""), secrets: ["", secret], now }).code, "forged")
    for (const t of [seconds - 301, seconds + 301]) {
      assert.strictEqual(refusal({ body, headers: signed(body, secret, t), secrets: secret, now }).code, "stale")
    }
    assert.strictEqual(
      Sdk.verifyWebhook({ body, headers: signed(body, secret, seconds - 300), secrets: secret, now }).id,
      "evt_1"
    )
    const early = { body, headers: signed(body, secret, seconds + 300), secrets: secret, now }
    assert.strictEqual(Sdk.verifyWebhook(early).id, "evt_1")
    assert.match(refusal({ ...early, aheadSeconds: 60 }).message, /300 s in the future, and 60 s are allowed/)
    const late = { body, headers: signed(body, secret, seconds - 500), secrets: secret, now: new Date(now) }
    assert.strictEqual(Sdk.verifyWebhook({ ...late, toleranceSeconds: 600 }).id, "evt_1")
    for (const none of [{}, headers(""), headers(`v1=${sign(body, secret)}`), headers(`t=${seconds}`)]) {
      const malformed = refusal({ body, headers: none, secrets: secret, now })
      assert.deepStrictEqual([malformed.code, malformed.status], ["malformed", 401])
    }
    const noEvent = refusal({ body: "[]", headers: signed("[]"), secrets: secret, now })
    assert.deepStrictEqual([noEvent.code, noEvent.status], ["no_event", 400])
    // Without a time the clock decides, and this delivery is old by then.
    assert.strictEqual(refusal({ body, headers: signed(body), secrets: secret }).code, "stale")
  })

  it("names a body that was parsed and a missing secret as mistakes of the program", () => {
    const wrong: ReadonlyArray<readonly [string, Partial<Record<"body" | "secrets", unknown>>]> = [
      ["body", { body: JSON.parse(body) as unknown }],
      ["body", { body: undefined }],
      ["secrets", { secrets: "" }],
      ["secrets", { secrets: [] }],
      ["secrets", { secrets: undefined }]
    ]
    for (const [field, more] of wrong) {
      const delivery = { body, headers: signed(body), secrets: secret, now, ...(more as object) }
      const caught = thrownBy(() => Sdk.verifyWebhook(delivery))
      assert(caught instanceof Sdk.ConfigurationError, field)
      assert.deepStrictEqual([caught.field, caught.code], [field, "invalid_argument"])
    }
  })

  it("gives what it does not know as JSON, and no record that does not fit", () => {
    const test = envelope("webhooks.test", '{"long":0.1000000000000000055,"n":1}')
    const event = Sdk.verifyWebhook({ body: test, headers: signed(test), secrets: secret, now })
    assert.strictEqual(event.resource, null)
    assert.deepStrictEqual({ ...(event.data as object) }, { long: "0.1000000000000000055", n: 1 })
    const odd = envelope("customers.created", '{"id":12,"creditlimit":"many"}')
    const invalid = Sdk.verifyWebhook({ body: odd, headers: signed(odd), secrets: secret, now })
    assert.deepStrictEqual([invalid.resource, invalid.recordId, invalid.data], ["customers", 12, null])
  })
})

describe("subscriptions", () => {
  it("are made, listed, changed, rotated and cancelled", async () => {
    const client = await sdk.client()
    const url = "https://receiver.example.com/hooks"
    const { subscription, secret: shown } = await client.webhooks.create({ url, events: ["orders.created"] })
    assert.isAbove(shown.length, 10)
    assert.deepStrictEqual(valuesOf(await client.webhooks.list(), "id"), [subscription.id])
    const changed = await client.webhooks.update(subscription.id, { paused: true, events: ["orders.updated"] })
    assert.deepStrictEqual([changed.paused, changed.events], [true, ["orders.updated"]])
    const rotated = await client.webhooks.rotateSecret(subscription.id, "whsec_a-new-secret-of-mine-0123456789")
    assert.strictEqual(rotated.id, subscription.id)
    const log = []
    for await (const delivery of client.webhooks.deliveries(subscription.id, { delivered: false })) log.push(delivery)
    assert.deepStrictEqual(log, [])
    assert.strictEqual((await client.webhooks.cancel(subscription.id)).cancelled, true)
    assert.deepStrictEqual(await client.webhooks.list(), [])
    assert((await rejection(client.webhooks.get(4_000_000))) instanceof Sdk.NotFoundError)
  })

  it("are made once when the answer is lost, and the error says so when no attempt is left", async () => {
    const webhook = { url: "https://receiver.example.com/once", events: ["orders.created"] as const }
    const client = await sdk.client()
    const fault = { kind: "dropResponse", method: "POST", path: "/webhooks", times: 1 }
    await sdk.faults(fault)
    const { subscription } = await client.webhooks.create(webhook)
    assert.deepStrictEqual(valuesOf(await client.webhooks.list(), "id"), [subscription.id])
    const hasty = await sdk.client({ maxAttempts: 1 })
    await sdk.faults(fault)
    const lost = await rejection(hasty.webhooks.create(webhook))
    assert(lost instanceof Sdk.ConnectionError)
    assert.deepStrictEqual([lost.isOutcomeUnknown, lost.idempotencyKey], [true, null])
  })
})
