/** What is proved about the deliveries of a subscription. */
import { assert, describe, it } from "@effect/vitest"
import { deliveryStateOf } from "../../src/subscriptions/SubscriptionStore.ts"

describe("the delivery state of a subscription", () => {
  const lastDeliveryAt = "2026-03-01T10:00:00Z"
  const untested = { testedAt: null, testError: null, testedAfter: null }
  const active = { state: "active", failCount: 0, lastDeliveryAt, ...untested } as const

  const testedAt = "2026-03-01T11:00:00Z"
  const failed = { ...active, testedAt, testError: "no answer arrived", testedAfter: lastDeliveryAt }
  const first = { ...failed, testedAfter: null }
  it("is unproven until a delivery, failing after a failed one, and that of a failed test until a later one", () => {
    for (const [expected, state] of [
      ["delivers", active],
      ["delivers", { ...active, failCount: null }],
      ["unproven", { ...active, lastDeliveryAt: null }],
      ["unproven", { ...active, failCount: null, lastDeliveryAt: null }],
      ["failing", { ...active, failCount: 2n }],
      ["failing", { ...active, failCount: 1, lastDeliveryAt: null }],
      ["test_failed", failed],
      ["delivers", { ...failed, lastDeliveryAt: "2026-03-01T12:00:00Z" }],
      ["delivers", { ...failed, testError: null }],
      ["test_failed", { ...first, lastDeliveryAt: null }],
      ["delivers", first],
      ["delivers", { ...active, testedAt, lastDeliveryAt: null }],
      ["paused", { ...active, state: "paused" }],
      ["disabled", { ...active, state: "disabled" }],
      ["deleted", { ...active, state: "deleted" }]
    ] as const) {
      assert.strictEqual(deliveryStateOf(state), expected)
    }
  })
})
