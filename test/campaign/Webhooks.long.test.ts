/** A small campaign of deliveries: chaos on the way, forgeries, the receiver and Postgres killed, one heal. */
import { assert, describe, it } from "vitest"
import { webhookCampaign } from "./WebhookCampaign.ts"

const timeoutMs = 240_000

describe("a campaign of deliveries", () => {
  it(
    "loses nothing that was acknowledged, believes nothing that was forged, and ends equal to the source",
    async () => {
      const { counts, forged, problems, sums } = await webhookCampaign({
        deliveries: 300,
        kills: 1,
        postgresKills: 1,
        companies: 3,
        seed: 7,
        tell: () => {}
      })
      assert.deepStrictEqual(problems, [])
      // What a campaign is about has happened.
      assert.isAtLeast(counts["attempts of the sender"]!, 300)
      assert.isAtLeast(Object.keys(forged).length, 10)
      assert.strictEqual(sums["kills of the receiver"], 1)
      assert.strictEqual(sums["kills of the postgres"], 1)
    },
    timeoutMs
  )
})
