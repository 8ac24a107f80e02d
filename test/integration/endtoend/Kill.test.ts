/**
 * `sync` killed with -9 at random moments, while records change at the source: the warehouse ends equal, and no page of
 * the first load is landed twice.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../../support/world.ts"

const kills = 30
const rows = 20_000
const seed = 7

/** A small generator of its own, so that a failing run can be repeated by its seed. */
const random = (state: number) => () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return state / 2 ** 32
}

describe("a sync that is killed", () => {
  it.live(
    `${kills} times with -9 ends equal to the source, each page landed once`,
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "scale", "--rows", String(rows)], company: 1 })
          world.configure("budget: { requests_per_minute: unlimited }\nsync: { batch_records: 500 }\n")
          // Slow enough that most kills meet a scan at work.
          yield* world.control("POST", "/faults", { rules: [{ path: "/invoicelines", kind: "delay", ms: 8 }] })
          const chance = random(seed)
          const signals: Array<string | null> = []
          for (let round = 0; signals.filter((signal) => signal === "SIGKILL").length < kills; round += 1) {
            assert.isBelow(round, kills * 3, "the sync ends before it can be killed")
            // Something changes at the source each time, so that there is always work to be interrupted.
            const ids = Array.from({ length: 300 }, () => 1 + Math.floor(chance() * rows))
            yield* world.control("POST", "/records", {
              company: 1,
              resource: "invoicelines",
              records: [...new Set(ids)].map((id) => ({ id, description: `round ${round}` }))
            })
            const command = world.command(["sync", "invoicelines", "--json"])
            // From before the first connection to after the last page.
            const delayMs = 200 + Math.floor(chance() * 1_500)
            yield* Effect.sleep(delayMs)
            command.child.kill("SIGKILL")
            signals.push((yield* Effect.promise(() => command.done)).signal)
          }
          yield* world.control("DELETE", "/faults")
          const last = yield* world.run(["sync", "invoicelines", "--json"])
          assert.strictEqual(last.code, 0, last.stderr)
          const comparison = yield* world.compare("invoicelines")
          assert.deepStrictEqual(comparison.differences.slice(0, 5), [])
          assert.strictEqual(comparison.source, rows)

          const [full] = yield* world.query<{ pages: number; records: number; runs: number; ended: number }>(
            `select sum(pages)::int as pages, sum(records)::int as records, count(*)::int as runs,
                    (count(*) filter (where status in ('done', 'abandoned')))::int as ended
               from tributary.runs where resource = 'invoicelines' and kind = 'full'`
          )
          // Nothing of the first load was landed twice, however often it was interrupted.
          assert.strictEqual(full!.records, rows)
          assert.strictEqual(full!.ended, full!.runs)
          const [abandoned] = yield* world.query<{ n: number }>(
            `select count(*)::int as n from tributary.runs where status = 'abandoned'`
          )
          assert.isAtLeast(abandoned!.n, Math.floor(kills / 3))
        })
      ),
    { timeout: 180_000 }
  )
})
