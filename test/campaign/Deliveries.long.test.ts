/** A small campaign of deliveries: real senders and receivers are killed, answers are lost, an endpoint is down for days. */
import { assert, describe, it } from "vitest"
import { deliveryCampaign } from "./DeliveryCampaign.ts"

describe("the campaign of deliveries", () => {
  it("misses no change, keeps the order of each record, and repeats changes under the same ids only", async () => {
    const planned = { changes: 4_000, kills: 4, downDays: 2, latencySeconds: 0 }
    const { arrivals, changes, duplicates, kills, problems } = await deliveryCampaign({
      ...planned,
      seed: 7,
      tell: () => {}
    })
    assert.deepStrictEqual(problems, [])
    assert.isAtLeast(changes, planned.changes)
    assert.isAtLeast(kills, planned.kills)
    // The faults happened.
    assert.isAbove(duplicates, 0)
    for (const count of Object.values(arrivals)) assert.isAtLeast(count, changes)
  }, 300_000)
})
