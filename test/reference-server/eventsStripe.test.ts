/**
 * The signatures of the server, checked with the `stripe` package for the same scheme.
 */
import { Stripe } from "stripe"
import { assert, describe, it } from "vitest"
import { signature } from "../../connectors/service-v2/reference-server/events/signature.ts"

const stripe = new Stripe("sk_test_unused")

describe("a signature of the server", () => {
  it("is accepted by stripe's constructEvent with one secret and with two", () => {
    const t = 1_790_000_000
    const body = Buffer.from('{"id":"evt_1","type":"orders.created","data":{"note":"crème 🧾"}}')
    for (const secrets of [
      ["whsec_new_secret_of_32_bytes"],
      ["whsec_new_secret_of_32_bytes", "whsec_old_secret_of_32"]
    ]) {
      const header = signature(t, body, secrets)
      for (const secret of secrets) {
        const event = stripe.webhooks.constructEvent(body, header, secret, 300, undefined, (t + 299) * 1000)
        assert.strictEqual(event.id, "evt_1")
      }
      assert.throws(() => stripe.webhooks.constructEvent(body, header, "whsec_wrong", 300, undefined, t * 1000))
      assert.throws(() => stripe.webhooks.constructEvent(body, header, secrets[0]!, 300, undefined, (t + 301) * 1000))
    }
  })
})
