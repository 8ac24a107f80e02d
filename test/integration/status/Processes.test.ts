/** Which process owns which companies, as the tables state it. */
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type * as SqlClient from "effect/sql/SqlClient"
import * as OwnedBuckets from "../../../src/processes/OwnedBuckets.ts"
import { bucketOf } from "../../../src/processes/Ownership.ts"
import * as Heartbeats from "../../../src/processes/Processes.ts"
import * as Processes from "../../../src/status/Processes.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { until } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"

const companies = ["east", "north", "west"]

const owners = Effect.map(Effect.orDie(Processes.read(companies)), ({ processes, withoutOwner }) => ({
  ...Object.fromEntries(
    processes.map(({ processId, companies: owned }) => [processId, owned.map(({ company }) => company)])
  ),
  none: withoutOwner
}))

suite("the status of processes", layerWarehouse, (test) => {
  test("shows the owner of each company, while it is alive", function* () {
    const context = yield* Effect.context<SqlClient.SqlClient>()
    const shows = (expected: object) =>
      until(
        "the owners",
        Effect.provideContext(owners, context),
        (all) => JSON.stringify(all) === JSON.stringify(expected)
      )
    yield* shows({ none: companies })

    yield* Heartbeats.heartbeat("one", companies, { host: "a.example", pid: 41, companyRevision: 0n })
    yield* Heartbeats.heartbeat("two", companies)
    const [one, two] = [OwnedBuckets.make("one"), OwnedBuckets.make("two")]
    const storing = yield* Effect.forkScoped(one.store)
    yield* Effect.forkScoped(two.store)
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* one.own(bucketOf("east"))
        yield* one.own(bucketOf("north"))
        yield* two.own(bucketOf("west"))
        yield* shows({ one: ["east", "north"], two: ["west"], none: [] })
        const [first] = (yield* Processes.read(["east"])).processes
        assert.deepInclude(first!, { host: "a.example", pid: 41 })
        assert.isBelow(first!.silentMs, 60_000)
      })
    )
    yield* shows({ one: [], two: [], none: companies })

    // A bucket that moves: its next owner replaces the former one.
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* one.own(bucketOf("east"))
        yield* shows({ one: ["east"], two: [], none: ["north", "west"] })
        yield* Fiber.interrupt(storing)
        yield* two.own(bucketOf("east"))
        yield* shows({ one: [], two: ["east"], none: ["north", "west"] })
        // As by the former owner's last statement, which is executed late.
        yield* sql`update tributary.bucket_owners set process_id = 'one'`
        yield* shows({ one: [], two: ["east"], none: ["north", "west"] })
        yield* sql`update tributary.processes set heartbeat_at = heartbeat_at - interval '2 minutes' where process_id = 'two'`
        yield* shows({ one: [], none: companies })
      })
    )
  })
})
