/** A small webhook campaign: a chaos proxy, forgeries, kills of the receiver and of Postgres, one reconcile. */
import { assert, describe, it } from "vitest"
import { weaknesses, webhookCampaign } from "./WebhookCampaign.ts"

const timeoutMs = 300_000

describe("the webhook campaign", () => {
  const planned = { deliveries: 300, kills: 1, postgresKills: 1, companies: 3 }

  it(
    "keeps every acknowledged event, rejects every forgery and ends with a warehouse equal to the source",
    async () => {
      const { counts, forged, problems, sums } = await webhookCampaign({ ...planned, seed: 7, tell: () => {} })
      assert.deepStrictEqual(problems, [])
      assert.isAtLeast(Object.keys(forged).length, 10)
      // The campaign reports expected faults that did not happen.
      const did = { ...counts, ...sums }
      assert.deepStrictEqual(weaknesses(planned, did), [])
      assert.lengthOf(weaknesses({ ...planned, kills: 2, postgresKills: 2 }, did), 2)
      assert.lengthOf(weaknesses(planned, { ...did, forged: 20 }), 1)
      assert.lengthOf(weaknesses(planned, {}), 8)
    },
    timeoutMs
  )
})
