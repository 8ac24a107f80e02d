/** `serve`, which pushes the rows of the outbox. `examples.ts` has the cases of `tributary push`. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { firstLine } from "../support/reference.ts"
import { until } from "../support/until.ts"
import { makeWorld, type World } from "../support/world.ts"

/** Customers at the source whose externalid begins with the prefix. */
const sourceCustomers = (world: World, prefix: string) =>
  Effect.map(
    Effect.promise(() => world.reference.lines("/state?company=1&resource=customers")),
    (lines) =>
      lines
        .map((line) => JSON.parse(line) as { externalid: string | null; creditlimit: string; cancel: boolean })
        .filter(({ externalid }) => externalid?.startsWith(`${prefix}-`) === true)
  )

describe("tributary serve", () => {
  it.live(
    "pushes rows inserted into the outbox, and counts them in the metrics",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          world.configure(`webhooks: { listen: "127.0.0.1:0" }
schedule: { default: off }
dashboard: { listen: off }
`)
          const serving = yield* Effect.acquireRelease(
            Effect.sync(() => world.command(["serve", "--json"])),
            ({ child, done }) =>
              Effect.promise(() => {
                child.kill("SIGTERM")
                return done
              })
          )
          const { listening } = JSON.parse(yield* Effect.promise(() => firstLine(serving))) as {
            readonly listening: string
          }
          yield* world.query(`insert into tributary.outbox (resource, operation, externalid, record) values
            ('customers', 'create', null, '{"externalid": "S-1", "customercode": "SERVE01", "name": "Served"}'),
            ('customers', 'create', null, '{"externalid": "S-2", "customercode": "SERVE02", "nickname": "x"}'),
            ('customers', 'update', 'S-1', '{"creditlimit": "7.50"}')`)
          const rows = yield* until(
            "the outcome",
            world.query<{ state: string; outcome: string; code: string; field: string }>(
              "select state, outcome, code, field from tributary.outbox order by id"
            ),
            (outboxRows) => outboxRows.every(({ state }) => state === "done" || state === "rejected")
          )
          assert.deepStrictEqual(rows, [
            { state: "done", outcome: "created", code: null, field: null },
            { state: "rejected", outcome: null, code: "invalid", field: "nickname" },
            { state: "done", outcome: "updated", code: null, field: null }
          ] as unknown as typeof rows)
          const [record] = yield* sourceCustomers(world, "S")
          assert.deepInclude(record!, { externalid: "S-1", creditlimit: "7.5000" })

          const metrics = yield* until(
            "the outcome",
            Effect.promise(async () => (await fetch(`${listening}/metrics`)).text()),
            (text) => text.includes('tributary_outbox_refused{company="main"} 1')
          )
          assert.include(metrics, 'tributary_outbox_waiting{company="main"} 0')
          assert.include(metrics, 'tributary_push_records_last_minute{company="main",outcome="updated"} 1')
          const status = yield* world.run(["push", "status"])
          assert.include(status.stdout, "customers of main: 1 created, 1 updated, 1 refused")
          assert.include(status.stdout, "tributary push retry customers --company main --refused")
        })
      ),
    { timeout: 120_000 }
  )
})
