/** The events of the reference server: what fires them, when they are sent, and in which order. */
import { Stripe } from "stripe"
import { assert, describe, it } from "vitest"
import { signature } from "../../connectors/service-v2/reference-server/events/signature.ts"
import { eventServer, subscribe } from "./eventsSupport.ts"
import { codeOf, dataOf, type Json } from "./support.ts"

describe("a delivery cycle", () => {
  it("runs periodically while the clock runs", async () => {
    const { call, served, plane, sent } = eventServer()
    subscribe(call, ["salesmen.created"])
    call("POST", "/salesmen", { name: "A" })
    await served.tick()
    assert.lengthOf(sent, 0)
    await plane("PUT", "/limits", { cycleSeconds: 1 })
    await plane("POST", "/clock", { manual: false })
    await served.tick()
    assert.lengthOf(sent, 0)
    served.world.clock.advance(1_000_000)
    await served.tick()
    assert.lengthOf(sent, 1)
  })

  it("loses its state in a reset, which aborts its open attempts", async () => {
    const aborted: Array<boolean> = []
    const { call, caller, control, token, cycle, plane } = eventServer({
      network: () => ({
        send: (_, signal) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              aborted.push(true)
              resolve({ status: null, body: new Uint8Array(), durationms: 0, failure: "given up" })
            })
          })
      })
    })
    subscribe(call, ["salesmen.created"])
    for (const name of ["A", "B"]) call("POST", "/salesmen", { name })
    const running = cycle()
    await Promise.resolve()
    control("POST", "/reset", {})
    assert.lengthOf(await running, 1)
    assert.deepStrictEqual(aborted, [true])
    assert.lengthOf((await plane("GET", "/deliveries")).body["deliveries"] as [], 0)
    assert.lengthOf(dataOf(caller(token())("GET", "/webhooks")), 0)
  })
})

describe("the test call of a subscription", () => {
  it("is sent once per Idempotency-Key, and reports if it still runs", async () => {
    const { call, ask, reply, sent } = eventServer()
    const { id } = subscribe(call, ["webhooks.test"])
    let release: (reply: number) => void = () => {}
    reply(() => new Promise((resolve) => (release = resolve)))
    const key = { "idempotency-key": "test once" }
    const first = ask("POST", `/webhooks/${id}/test`, key)
    const early = await ask("POST", `/webhooks/${id}/test`, key)
    assert.deepStrictEqual([early.status, codeOf(early)], [409, "request_in_progress"])
    release(200)
    const { text } = await first
    const again = await ask("POST", `/webhooks/${id}/test`, key)
    assert.strictEqual(again.text, text)
    assert.strictEqual(again.headers["Idempotent-Replayed"], "true")
    assert.lengthOf(sent, 1)
  })

  it("appears in the request journal once it is answered", async () => {
    const { call, ask, control, defects } = eventServer()
    const { id } = subscribe(call, ["webhooks.test"])
    await ask("POST", `/webhooks/${id}/test`)
    const { requests } = control("GET", "/requests").body
    assert.deepInclude((requests as ReadonlyArray<Json>).at(-1)!, { path: `/webhooks/${id}/test`, status: 200 })
    assert.deepStrictEqual(defects, [])
  })
})

/** The same scheme of signatures. */
const stripe = new Stripe("sk_test_unused")

it("a signature of the server is accepted by stripe's constructEvent with one secret and with two", () => {
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
