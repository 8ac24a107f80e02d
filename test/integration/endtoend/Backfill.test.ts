/**
 * Backfills killed with -9 while syncs run beside them and records change: the warehouse ends equal to the source.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../../support/world.ts"

const rows = 4_000
const kills = 4
const seed = 11

const random = (state: number) => () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return state / 2 ** 32
}

describe("a backfill that is killed", () => {
  it.live(
    `${kills} times with -9 while syncs run beside it ends equal to the source`,
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "scale", "--rows", String(rows)], company: 1 })
          world.configure("budget: { requests_per_minute: unlimited }\nsync: { batch_records: 500 }\n")
          // Slow enough that most kills meet a scan at work.
          yield* world.control("POST", "/faults", { rules: [{ path: "/invoicelines", kind: "delay", ms: 20 }] })
          const chance = random(seed)
          const change = (round: number) =>
            world.control("POST", "/records", {
              company: 1,
              resource: "invoicelines",
              records: [...new Set(Array.from({ length: 200 }, () => 1 + Math.floor(chance() * rows)))].map((id) => ({
                id,
                description: `round ${round}`
              }))
            })
          let killed = 0
          for (let round = 0; killed < kills; round += 1) {
            assert.isBelow(round, kills * 3, "the backfill ends before it can be killed")
            yield* change(round)
            const sync = world.command(["sync", "invoicelines", "--json"])
            const command = world.command(["backfill", "invoicelines"])
            yield* Effect.sleep(700 + Math.floor(chance() * 900))
            command.child.kill("SIGKILL")
            if ((yield* Effect.promise(() => command.done)).signal === "SIGKILL") killed += 1
            yield* change(round + 1_000)
            const { code, stderr } = yield* Effect.promise(() => sync.done)
            assert.strictEqual(code, 0, stderr)
          }
          // One row goes without a trace while nobody looks: only reading everything finds it.
          yield* world.control("POST", "/remove", { company: 1, resource: "invoicelines", id: 17 })
          yield* world.control("DELETE", "/faults")
          const last = yield* world.run(["backfill", "invoicelines", "--json"])
          assert.strictEqual(last.code, 0, last.stderr)
          const synced = yield* world.run(["sync", "invoicelines", "--json"])
          assert.strictEqual(synced.code, 0, synced.stderr)
          // What the interrupted backfill had met before the row went, another one finds gone.
          const again = yield* world.run(["backfill", "invoicelines", "--json"])
          assert.strictEqual(again.code, 0, again.stderr)
          const comparison = yield* world.compare("invoicelines")
          assert.deepStrictEqual(comparison.differences.slice(0, 5), [])
          assert.strictEqual(comparison.source, rows - 1)
          const [runs] = yield* world.query<{ abandoned: number; resumed: number; open: number; disordered: number }>(
            `select (count(*) filter (where status = 'abandoned'))::int as abandoned,
                    (count(*) filter (where resumed))::int as resumed,
                    (count(*) filter (where status = 'running'))::int as open,
                    (select count(*)::int from erp_history.invoicelines where _valid_to < _valid_from) as disordered
               from tributary.runs where resource = 'invoicelines' and lane = 'backfill'`
          )
          assert.isAtLeast(runs!.abandoned, 1)
          assert.isAtLeast(runs!.resumed, 1)
          assert.deepStrictEqual([runs!.open, runs!.disordered], [0, 0])
        })
      ),
    { timeout: 120_000 }
  )
})
