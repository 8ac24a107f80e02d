/**
 * The signature check of a delivery, compared with the `stripe` package for the same scheme: each accepts the other's
 * signatures, and this check is stricter.
 */
import { createHmac } from "node:crypto"
import { Duration, Redacted } from "effect"
import fc from "fast-check"
import { Stripe } from "stripe"
import { assert, describe, it } from "vitest"
import { verify } from "../../connectors/service-v2/client/Signature.ts"

const stripe = new Stripe("sk_test_unused")
const secret = "whsec_1234567890abcdefghij"
const now = 1_790_000_000
/** Five minutes (overview, Signature); the sender's clock may be a minute ahead (H-10). */
const settings = {
  secrets: [Redacted.make(secret)],
  tolerance: Duration.seconds(300),
  aheadMax: Duration.seconds(60)
}
const body = Buffer.from('{"id":"evt_1","type":"orders.created","n":9007199254740993}')

const hmac = (t: number | string, payload: Uint8Array, key: string = secret) =>
  createHmac("sha256", key).update(`${t}.`).update(payload).digest("hex")
const check = (signature: string | undefined, payload: Uint8Array = body, more: Partial<typeof settings> = {}) =>
  verify({ signature, body: payload, receivedAt: now * 1000 }, { ...settings, ...more })._tag

describe("the signature check", () => {
  it("agrees with the stripe package in both directions", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 200, unit: "grapheme" }),
        fc.integer({ min: now - 300, max: now + 60 }),
        fc.string({ minLength: 16, maxLength: 60, unit: "grapheme-ascii" }),
        (payload, timestamp, key) => {
          const theirs = stripe.webhooks.generateTestHeaderString({ payload, secret: key, timestamp })
          const bytes = Buffer.from(payload)
          assert.strictEqual(check(theirs, bytes, { secrets: [Redacted.make(key)] }), "Genuine")
          const ours = `t=${timestamp},v1=${hmac(timestamp, bytes, key)}`
          assert.isTrue(stripe.webhooks.signature!.verifyHeader(payload, ours, key, 300, undefined, now * 1000))
        }
      ),
      { numRuns: 300 }
    )
  })

  it("accepts any v1 that matches any stored secret", () => {
    const good = hmac(now, body)
    const other = hmac(now, body, "whsec_another")
    assert.strictEqual(check(`t=${now},v1=${good}`), "Genuine")
    assert.strictEqual(check(`t=${now},v1=${other},v1=${good}`), "Genuine")
    assert.strictEqual(check(`v1=${good},t=${now},v0=ignored`), "Genuine")
    assert.strictEqual(
      check(`t=${now},v1=${other}`, body, { secrets: [Redacted.make(secret), Redacted.make("whsec_another")] }),
      "Genuine"
    )
  })

  it("uses the raw bytes of the body", () => {
    const odd = Buffer.from([0xef, 0xbb, 0xbf, 0xff, 0x00, 0x7b])
    assert.strictEqual(check(`t=${now},v1=${hmac(now, odd)}`, odd), "Genuine")
  })

  const signed = (t: number | string) => `t=${t},v1=${hmac(t, body)}`
  const cases: ReadonlyArray<readonly [string, string | undefined, string]> = [
    ["300 s old", signed(now - 300), "Genuine"],
    ["301 s old", signed(now - 301), "Stale"],
    ["a minute ahead", signed(now + 60), "Genuine"],
    ["more than a minute ahead", signed(now + 61), "Stale"],
    ["a year ahead", signed(now + 31_536_000), "Stale"],
    ["t in milliseconds", signed(now * 1000), "Malformed"],
    ["no header", undefined, "Malformed"],
    ["an empty header", "", "Malformed"],
    ["no t", `v1=${hmac(now, body)}`, "Malformed"],
    ["two t", `t=${now},t=${now},v1=${hmac(now, body)}`, "Malformed"],
    ["t with letters", `t=${now}abc,v1=${hmac(`${now}abc`, body)}`, "Malformed"],
    ["a negative t", `t=-1,v1=${hmac("-1", body)}`, "Malformed"],
    ["no v1", `t=${now}`, "Malformed"],
    ["only another scheme", `t=${now},v0=${hmac(now, body)}`, "Malformed"],
    ["upper-case hex", `t=${now},v1=${hmac(now, body).toUpperCase()}`, "Malformed"],
    ["a truncated v1", `t=${now},v1=${hmac(now, body).slice(0, 62)}`, "Malformed"],
    ["a space after the comma", `t=${now}, v1=${hmac(now, body)}`, "Malformed"],
    ["another secret", `t=${now},v1=${hmac(now, body, "whsec_wrong")}`, "Forged"],
    ["another t", `t=${now - 1},v1=${hmac(now, body)}`, "Forged"],
    ["another body", `t=${now},v1=${hmac(now, Buffer.from("{}"))}`, "Forged"],
    ["nine v1", `t=${now}${`,v1=${hmac(now, body)}`.repeat(9)}`, "Malformed"]
  ]
  it("judges the header, the age and the secret", () => {
    for (const [title, header, expected] of cases) assert.strictEqual(check(header), expected, title)
  })

  it("rejects every delivery without a secret, without a time and without a valid tolerance", () => {
    assert.strictEqual(check(signed(now), body, { secrets: [] }), "Forged")
    assert.strictEqual(check(`t=${now},v1=${hmac(now, body, "")}`, body, { secrets: [Redacted.make("")] }), "Forged")
    assert.strictEqual(verify({ signature: signed(now), body, receivedAt: Number.NaN }, settings)._tag, "Stale")
    // An invalid number of seconds counts as a tolerance of zero.
    assert.strictEqual(check(signed(now - 1), body, { tolerance: Duration.seconds(Number.NaN) }), "Stale")
  })
})
