/** `tributary backfill`: its output, and its effect on the live cursor. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../support/world.ts"

describe("tributary backfill", () => {
  it.live(
    "reads the requested range, resumes after a failure, and leaves the live cursor unchanged",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          world.configure("paging: { page_size: 20 }\nrequests: { attempts_max: 1 }\n")
          // The cursor of a backfill with a range is not valid for live syncing.
          const ranged = yield* world.run([
            "backfill",
            "invoicelines",
            "--since",
            "2020-01-01",
            "--until",
            "2020-12-31"
          ])
          assert.strictEqual(ranged.code, 0, ranged.stderr)
          assert.include(ranged.stdout, "Live syncing has not read invoicelines yet")

          // The source fails and interrupts the backfill. The next command resumes it.
          const breaking = { rules: [{ path: "/invoicelines", after: 3, kind: "status", status: 500 }] }
          yield* world.control("POST", "/faults", breaking)
          const broken = yield* world.run(["backfill", "invoicelines"])
          assert.strictEqual(broken.code, 5)
          yield* world.control("DELETE", "/faults")
          const other = yield* world.run(["plan", "invoicelines", "--backfill", "--since", "2020-01-01", "--no-probe"])
          assert.include(other.stdout, "an interrupted scan of everything is abandoned at page 4")
          const resumed = yield* world.run(["backfill", "invoicelines"])
          assert.strictEqual(resumed.code, 0, resumed.stderr)
          assert.include(resumed.stderr, "invoicelines: resumes at page 4")
          assert.include(resumed.stdout, "Live syncing of invoicelines continues from here")
          assert.deepStrictEqual((yield* world.compare("invoicelines")).differences, [])

          const json = yield* world.run(["backfill", "invoicelines", "--json"])
          const report = JSON.parse(json.stdout) as {
            backfill: unknown
            live: unknown
            companies: Array<{ outcomes: Array<{ lane: string; kind: string; totals: Record<string, number> }> }>
          }
          assert.deepStrictEqual(report.backfill, { since: null, until: null })
          assert.deepStrictEqual(report.live, { follows: [], neverSynced: [] })
          const [outcome] = report.companies[0]!.outcomes
          assert.deepStrictEqual([outcome!.lane, outcome!.kind], ["backfill", "full"])
          assert.deepStrictEqual([outcome!.totals["inserted"], outcome!.totals["updated"]], [0, 0])
          const sync = yield* world.run(["sync", "invoicelines", "--json"])
          assert.include(sync.stdout, '"kind":"incremental"')
        })
      ),
    { timeout: 90_000 }
  )
})
