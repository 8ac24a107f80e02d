/** What is proved about the deliveries of a subscription. */
import { assert, describe, it } from "@effect/vitest"
import { deliveryStateOf } from "../../src/subscriptions/SubscriptionStore.ts"

describe("the delivery state of a subscription", () => {
  const lastDeliveryAt = "2026-03-01T10:00:00Z"
  const untested = { testedAt: null, testError: null, testedAfter: null }
  const active = { state: "active", failCount: 0, lastDeliveryAt, ...untested } as const

  it("is unproven until something was delivered", () => {
    assert.strictEqual(deliveryStateOf(active), "delivers")
    assert.strictEqual(deliveryStateOf({ ...active, failCount: null }), "delivers")
    assert.strictEqual(deliveryStateOf({ ...active, lastDeliveryAt: null }), "unproven")
    assert.strictEqual(deliveryStateOf({ ...active, failCount: null, lastDeliveryAt: null }), "unproven")
  })

  it("is failing after a failed delivery, also where an earlier one arrived", () => {
    assert.strictEqual(deliveryStateOf({ ...active, failCount: 2n }), "failing")
    assert.strictEqual(deliveryStateOf({ ...active, failCount: 1, lastDeliveryAt: null }), "failing")
  })

  it("is that of a failed test until a later delivery or a test that arrives", () => {
    const testedAt = "2026-03-01T11:00:00Z"
    const failed = { ...active, testedAt, testError: "no answer arrived", testedAfter: lastDeliveryAt }
    assert.strictEqual(deliveryStateOf(failed), "test_failed")
    assert.strictEqual(deliveryStateOf({ ...failed, lastDeliveryAt: "2026-03-01T12:00:00Z" }), "delivers")
    assert.strictEqual(deliveryStateOf({ ...failed, testError: null }), "delivers")
    const first = { ...failed, testedAfter: null }
    assert.strictEqual(deliveryStateOf({ ...first, lastDeliveryAt: null }), "test_failed")
    assert.strictEqual(deliveryStateOf(first), "delivers")
    assert.strictEqual(deliveryStateOf({ ...active, testedAt, lastDeliveryAt: null }), "delivers")
  })

  it("is that of the source where it does not deliver", () => {
    for (const state of ["paused", "disabled", "deleted"] as const)
      assert.strictEqual(deliveryStateOf({ ...active, state }), state)
  })
})
