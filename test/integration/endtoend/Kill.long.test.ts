/**
 * `sync` killed with -9 at random points while records change at the source. The warehouse ends equal, and no page of
 * the first load is landed twice. A point is a request or a landing, never a time, so that every machine tests the
 * same.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Chance } from "../../fuzz/Chance.ts"
import { type Moment, never, openTap } from "../../support/tap.ts"
import { makeWorld } from "../../support/world.ts"

const kills = 12
const rows = 4_000
const seed = 7

/** A point at which a process is killed. */
const draw = (chance: Chance) => {
  const request = { kind: "request", number: chance.between(2, 9) } as const
  const landing = { kind: "landing", number: chance.between(1, 4) } as const
  return chance.pick([
    { ...request, stage: "asked" },
    { ...request, stage: "answered" },
    { ...request, stage: "half" },
    { ...landing, stage: "opened" },
    { ...landing, stage: "rows" },
    { ...landing, stage: "commit" },
    { ...landing, stage: "committed" },
    { ...landing, stage: "confirmed" }
  ] as const)
}

const isAt = (place: ReturnType<typeof draw>, moment: Moment) =>
  moment.kind === place.kind && moment.number === place.number && moment.stage === place.stage

describe("a killed sync", () => {
  it.live(
    `ends equal to the source after ${kills} kills with -9, each page landed once`,
    () =>
      Effect.scoped(
        Effect.gen(function* () {
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
          const chance = new Chance(seed)
          for (let killed = 0, round = 0; killed < kills; round += 1) {
            assert.isBelow(round, kills * 3, "the sync ends before it can be killed")
            // Records change at the source each time, so that every sync has work to interrupt.
            const ids = Array.from({ length: 300 }, () => chance.between(1, rows))
            yield* world.control("POST", "/records", {
              company: 1,
              resource: "invoicelines",
              records: [...new Set(ids)].map((id) => ({ id, description: `round ${round}` }))
            })
            const place = draw(chance)
            const kill: { now: (() => void) | null } = { now: null }
            tap.watch((moment) => {
              if (kill.now === null || !isAt(place, moment)) return
              kill.now()
              return never
            })
            const command = world.command(["sync", "invoicelines", "--json"], env)
            kill.now = () => command.child.kill("SIGKILL")
            const { signal, code, stderr } = yield* Effect.promise(() => command.done)
            if (signal !== "SIGKILL") {
              assert.strictEqual(code, 0, stderr)
              continue
            }
            killed += 1
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
          // The first request identifies the company. The run is opened before the second one.
          assert.strictEqual(abandoned!.n, kills)
        })
      ),
    { timeout: 120_000 }
  )
})
