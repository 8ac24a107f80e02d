/** A small push campaign, and a push of a large file without faults. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { pushOnce, pushOptionsOf } from "../bench/pushes.ts"
import * as Bench from "../bench/Stand.ts"
import { pushCampaign } from "./PushCampaign.ts"

const timeoutMs = 300_000

describe("the push campaign", () => {
  it(
    "writes every record once and records its outcome, after kills of the process and Postgres",
    async () => {
      const { chaos, killed, problems, sums } = await pushCampaign({
        kills: 9,
        postgresKills: 1,
        records: 120,
        seed: 7,
        tell: () => {}
      })
      assert.deepStrictEqual(problems, [])
      // Asserts that the faults of the campaign have happened.
      assert.isAtLeast(
        Object.values(killed).reduce((sum, times) => sum + times, 0),
        9
      )
      assert.isAtLeast(Object.keys(chaos).length, 8)
      assert.isAtLeast(sums["requests found in the ledger before they were sent"]!, 20)
    },
    timeoutMs
  )
})

describe("a push of 20,000 records without faults", () => {
  let stand: Bench.Stand
  beforeAll(async () => {
    stand = await Bench.open()
  }, timeoutMs)
  afterAll(() => stand.close())

  it(
    "sends 80 batch requests, creates each record once and reports every record",
    async () => {
      const records = 20_000
      const source = await stand.source(["--data", "empty"], { pageSize: null })
      const run = await pushOnce(stand, source, pushOptionsOf(stand, records), records)
      assert.deepInclude(run, { notOnce: 0, shown: records, byPush: records })
      assert.deepInclude(run.serverCalls, { writes: 80, batches: 80 })
      assert.deepInclude(run.counts, { created: records, refused: 0, different: 0, waiting: 0, sending: 0 })
    },
    timeoutMs
  )
})
