/** `tributary backfill`: its arguments, its output, and its effect on the live cursor. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { rangeOf, Time } from "../../src/cli/TimeRange.ts"
import { pace } from "../../src/cli/SyncProgress.ts"
import { makeWorld } from "../support/world.ts"

const isTime = (text: string) => Schema.decodeUnknownResult(Time)(text)._tag === "Success"

const range = (since: string | null, until: string | null) =>
  rangeOf(Option.fromNullishOr(since), Option.fromNullishOr(until))

describe("the time range of a backfill", () => {
  it("accepts dates and UTC instants and rejects any other text", () => {
    for (const text of ["2026-01-31", "2024-02-29", "2026-01-31T08:00:00Z", "2026-01-31T08:00:00.123456789Z"]) {
      assert.isTrue(isTime(text), text)
    }
    for (const text of [
      "",
      "yesterday",
      "2026-02-30",
      "2025-02-29",
      "2026-13-01",
      "2026-1-1",
      "2026-01-31T24:00:00Z",
      "2026-01-31T08:00:00",
      "2026-01-31T08:00:00+02:00",
      "2026-01-31 08:00:00Z",
      "2026-01-31T08:00:00Z'"
    ]) {
      assert.isFalse(isTime(text), text)
    }
  })

  it.effect("includes both ends, and a date covers its whole day", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* range("2026-01-01", "2026-01-01"), {
        since: "2026-01-01T00:00:00Z",
        until: "2026-01-01T23:59:59.999999999Z"
      })
      assert.deepStrictEqual(yield* range(null, null), { since: null, until: null })
      assert.strictEqual(
        (yield* range("2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.11Z")).since,
        "2026-01-01T00:00:00.1Z"
      )
      for (const [since, until] of [
        ["2026-01-02", "2026-01-01"],
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"],
        ["2026-01-01T00:00:00.2Z", "2026-01-01T00:00:00.19Z"]
      ] as const) {
        const failed = yield* Effect.flip(range(since, until))
        assert.strictEqual(failed.code, 1)
        assert.include(failed.message, "--since must be before --until")
      }
    })
  )
})

describe("the displayed speed of a run", () => {
  it("includes the remaining time when the total is known", () => {
    const totals = { records: 41_000, requests: 80 }
    assert.strictEqual(pace(totals, 500, null), "")
    assert.strictEqual(pace(totals, 10_000, null), "4,100 records/s, 480 requests/min")
    assert.strictEqual(
      pace(totals, 10_000, { records: 410_000, requests: 800 }),
      "4,100 records/s, 480 requests/min, about 90 s left".replace("90 s", "2 min")
    )
    assert.strictEqual(
      pace(totals, 10_000, { records: 82_000, requests: null }),
      "4,100 records/s, 480 requests/min, about 10 s left"
    )
    // More records arrived than expected: the remaining time is unknown.
    assert.strictEqual(pace(totals, 10_000, { records: 30_000, requests: 60 }), "4,100 records/s, 480 requests/min")
    assert.strictEqual(pace({ records: 10, requests: 5 }, 10_000, null), "1 records/s, 30 requests/min")
  })
})

describe("tributary backfill", () => {
  it.live(
    "rejects an invalid range, reads the requested range and leaves the live cursor unchanged",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          world.configure("paging: { page_size: 20 }\nrequests: { attempts_max: 1 }\n")
          const rejected = yield* world.run(["backfill", "--since", "last week"])
          assert.strictEqual(rejected.code, 1)
          assert.strictEqual(rejected.stdout, "")
          assert.include(rejected.stderr, "2026-01-31T08:00:00Z")
          const upside = yield* world.run(["backfill", "--since", "2026-02-01", "--until", "2026-01-01"])
          assert.strictEqual(upside.code, 1)
          assert.include(upside.stderr, "--since must be before --until")
          const unknown = yield* world.run(["backfill", "nonsense"])
          assert.strictEqual(unknown.code, 2)
          assert.include(unknown.stderr, 'there is no resource "nonsense"')

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

          const odd = yield* world.run(["plan", "--since", "2026-01-01"])
          assert.strictEqual(odd.code, 1)
          assert.include(odd.stderr, "add --backfill")
        })
      ),
    { timeout: 90_000 }
  )
})
