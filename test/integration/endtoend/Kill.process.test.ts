/**
 * `sync` killed with -9 at each stage of a request and of a landing, while records change at the source. The warehouse
 * ends equal, and no page of the first load is landed twice.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Moment, never, openTap } from "../../support/tap.ts"
import { makeWorld } from "../../support/world.ts"
import { liveTest } from "../../support/live.ts"

const rows = 2_000

/** The moments of the kills. The first request identifies the company, and the run is opened before the second. */
const places = [
  { kind: "request", number: 2, stage: "asked" },
  { kind: "landing", number: 2, stage: "commit" },
  { kind: "request", number: 6, stage: "answered" },
  { kind: "landing", number: 1, stage: "committed" },
  { kind: "landing", number: 1, stage: "opened" },
  { kind: "landing", number: 2, stage: "rows" },
  { kind: "request", number: 3, stage: "half" },
  { kind: "landing", number: 1, stage: "confirmed" }
] as const

const isAt = (place: (typeof places)[number], moment: Moment) =>
  moment.kind === place.kind && moment.number === place.number && moment.stage === place.stage

liveTest(
  "a killed sync ends equal to the source after a kill with -9 at each stage, each page landed once",
  function* () {
    const world = yield* makeWorld({ data: ["--data", "scale", "--rows", String(rows)], company: 1 })
    world.configure(
      "budget: { requests_per_minute: unlimited }\nsync: { batch_records: 200 }\npaging: { page_size: 100 }\n"
    )
    const { databaseUrl, reference } = world
    const tap = yield* Effect.acquireRelease(
      Effect.promise(() => openTap({ baseUrl: reference.baseUrl, databaseUrl })),
      (one) => Effect.promise(() => one.close())
    )
    const env = { DATABASE_URL: tap.databaseUrl, SERVICE_API_URL: tap.baseUrl }
    for (const [round, place] of places.entries()) {
      // Records change at the source each time, so that every sync has work to interrupt.
      yield* world.control("POST", "/records", {
        company: 1,
        resource: "invoicelines",
        records: Array.from({ length: 300 }, (_, at) => ({
          id: 1 + ((round * 211 + at * 5) % rows),
          description: `round ${round}`
        }))
      })
      const kill: { now: (() => void) | null } = { now: null }
      tap.watch((moment) => {
        if (kill.now === null || !isAt(place, moment)) return
        kill.now()
        return never
      })
      const command = world.command(["sync", "invoicelines", "--json"], env)
      kill.now = () => command.child.kill("SIGKILL")
      const { signal, stderr } = yield* Effect.promise(() => command.done)
      assert.strictEqual(signal, "SIGKILL", `${JSON.stringify(place)} was not reached: ${stderr}`)
    }
    tap.watch(() => undefined)
    // At the same address. Another address would be another source.
    const last = yield* world.run(["sync", "invoicelines", "--json"], env)
    assert.strictEqual(last.code, 0, last.stderr)
    const comparison = yield* world.compare("invoicelines")
    assert.deepStrictEqual(comparison.differences.slice(0, 5), [])
    assert.strictEqual(comparison.source, rows)

    const [full] = yield* world.query<{ records: number; runs: number; ended: number }>(
      `select sum(records)::int as records, count(*)::int as runs,
                    (count(*) filter (where status in ('done', 'abandoned')))::int as ended
               from tributary.runs where resource = 'invoicelines' and kind = 'full'`
    )
    // No page of the first load was landed twice, despite the interruptions.
    assert.strictEqual(full!.records, rows)
    assert.strictEqual(full!.ended, full!.runs)
    assert.isAtLeast(full!.runs, 4)
    const [abandoned] = yield* world.query<{ n: number }>(
      `select count(*)::int as n from tributary.runs where status = 'abandoned'`
    )
    assert.strictEqual(abandoned!.n, places.length)
  }
)
