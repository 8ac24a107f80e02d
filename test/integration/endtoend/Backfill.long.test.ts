/** Backfills killed with -9 while syncs run and records change: the warehouse ends equal to the source. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../../support/world.ts"

const rows = 1_500
const kills = 3
const seed = 11

const random = (state: number) => () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return state / 2 ** 32
}

describe("a killed backfill", () => {
  it.live(
    `ends equal to the source after ${kills} kills with -9 and concurrent syncs`,
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "scale", "--rows", String(rows)], company: 1 })
          world.configure(
            "budget: { requests_per_minute: unlimited }\npaging: { page_size: 25 }\nsync: { batch_records: 50 }\n"
          )
          // Slow enough that most kills interrupt a scan.
          yield* world.control("POST", "/faults", { rules: [{ path: "/invoicelines", kind: "delay", ms: 40 }] })
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
          /** Pages that the running backfill has landed; null when none runs. */
          const landedPages = Effect.map(
            world.query<{ pages: number }>(
              `select pages::int as pages from tributary.runs
                where resource = 'invoicelines' and lane = 'backfill' and status = 'running' order by id desc limit 1`
            ),
            (runs) => runs[0]?.pages ?? null
          )
          const first = yield* world.run(["sync", "invoicelines", "--json"])
          assert.strictEqual(first.code, 0, first.stderr)
          for (let round = 0; round < kills; round += 1) {
            yield* change(round)
            const had = (yield* landedPages) ?? 0
            const sync = world.command(["sync", "invoicelines", "--json"])
            const command = world.command(["backfill", "invoicelines"])
            const until = 1 + Math.floor(chance() * 8)
            // The next run closes the run that the last kill left open. It begins with no landed page.
            let isNew = had === 0
            for (let pages: number | null = null; pages === null || !isNew || pages < until;) {
              if (command.child.exitCode !== null) break
              pages = yield* landedPages
              isNew ||= pages !== null && pages < had
            }
            command.child.kill("SIGKILL")
            assert.strictEqual((yield* Effect.promise(() => command.done)).signal, "SIGKILL")
            yield* change(round + 1_000)
            const { code, stderr } = yield* Effect.promise(() => sync.done)
            assert.strictEqual(code, 0, stderr)
          }
          yield* world.control("DELETE", "/faults")
          const last = yield* world.run(["backfill", "invoicelines"])
          assert.strictEqual(last.code, 0, last.stderr)
          assert.match(last.stderr, /invoicelines: resumes at page \d+/)
          const synced = yield* world.run(["sync", "invoicelines", "--json"])
          assert.strictEqual(synced.code, 0, synced.stderr)
          const comparison = yield* world.compare("invoicelines")
          assert.deepStrictEqual(comparison.differences.slice(0, 5), [])
          assert.strictEqual(comparison.source, rows)
          const [runs] = yield* world.query<{ abandoned: number; resumed: number; open: number; disordered: number }>(
            `select (count(*) filter (where status = 'abandoned'))::int as abandoned,
                    (count(*) filter (where resumed))::int as resumed,
                    (count(*) filter (where status = 'running'))::int as open,
                    (select count(*)::int from erp_history.invoicelines where _valid_to < _valid_from) as disordered
               from tributary.runs where resource = 'invoicelines' and lane = 'backfill'`
          )
          assert.deepStrictEqual([runs!.abandoned, runs!.resumed], [kills, kills])
          assert.deepStrictEqual([runs!.open, runs!.disordered], [0, 0])
        })
      ),
    { timeout: 120_000 }
  )
})
