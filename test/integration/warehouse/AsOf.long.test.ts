/** The records as of moments, compared with the reference server's own history; and the command that reads them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { compare } from "../../../src/verify/Compare.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import { makeWorld } from "../../support/world.ts"

const resources = ["customers", "invoices", "salesmen"]

interface Change {
  readonly op: string
  readonly id: number
}

describe("the records as of a moment", () => {
  it.live(
    "equal the server's own history, also by the command",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const historyOf = (resource: string) =>
            Effect.promise(() => world.reference.lines(`/history?company=1&resource=${resource}`))
          const ids = new Map<string, ReadonlyArray<number>>()
          for (const resource of resources) {
            const state = yield* Effect.promise(() => world.reference.lines(`/state?company=1&resource=${resource}`))
            ids.set(
              resource,
              state.map((line) => (JSON.parse(line) as Change).id)
            )
          }
          const moments: Array<{
            readonly time: string
            readonly position: string
            readonly lines: Map<string, number>
          }> = []
          for (let step = 0; step < 6; step += 1) {
            for (const resource of resources) {
              const at = (place: number) => ids.get(resource)![(step * 3 + place) % ids.get(resource)!.length]!
              yield* world.control("POST", "/records", {
                company: 1,
                resource,
                records: [
                  { id: at(0), cancel: step % 2 === 0 },
                  { id: 900_000 + step, cancel: false }
                ]
              })
              if (step > 0) yield* world.control("POST", "/remove", { company: 1, resource, id: 900_000 + step - 1 })
            }
            const run = yield* world.run(["sync", ...resources, "invoiceterms", ...(step % 2 === 0 ? ["--full"] : [])])
            assert.strictEqual(run.code, 0, run.stdout + run.stderr)
            const [now] = yield* world.query<{ time: string; position: string }>(
              "select clock_timestamp()::text as time, last_position::text as position from tributary.change_feed"
            )
            if (step % 2 === 1) continue
            const lines = new Map<string, number>()
            for (const resource of resources) lines.set(resource, (yield* historyOf(resource)).length)
            moments.push({ ...now!, lines })
          }
          const sql = sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(world.databaseUrl))))
          const database = new URL(world.databaseUrl).pathname.slice(1)
          for (const { time, position, lines } of moments) {
            for (const asOf of [time, `position ${position}`]) {
              yield* world.query(`alter database ${database} set tributary.as_of = '${asOf}'`)
              for (const resource of resources) {
                const records = new Map<number, string>()
                for (const line of (yield* historyOf(resource)).slice(0, lines.get(resource))) {
                  const { op, id } = JSON.parse(line) as Change
                  if (op === "delete") records.delete(id)
                  else records.set(id, line.slice(line.indexOf('"record":') + '"record":'.length, -1))
                }
                const table = tableOf(serviceV2.resources.get(resource)!)
                const comparison = yield* compare({ ...table, current: table.asOf }, 1n, records.values()).pipe(
                  Effect.provide(sql),
                  Effect.orDie
                )
                const equal = { source: records.size, warehouse: records.size, differences: [] }
                assert.deepStrictEqual(comparison, equal, `${resource} as of ${asOf}`)
              }
            }
          }
          yield* world.query(`alter database ${database} reset tributary.as_of`)

          const count = "select count(*) as n from salesmen where _deleted_at is null"
          const counted = (...options: ReadonlyArray<string>) =>
            Effect.map(world.run(["query", ...options, "--json", count]), ({ stdout, stderr }) => {
              assert.match(stdout, /^\{"n":\d+\}\s*$/, stderr)
              return (JSON.parse(stdout) as { readonly n: number }).n
            })
          const first = moments[0]!
          const [before, after] = [yield* counted("--as-of", first.time), yield* counted()]
          assert.strictEqual(yield* counted("--as-of", `position ${first.position}`), before)
          assert.strictEqual(yield* counted("--as-of", "2000-01-01", "--mode", "source"), 0)
          assert.isAbove(after, 0)
          const models = yield* world.run(["query", "--as-of", first.time, "select * from receivables_aging"])
          assert.strictEqual(models.code, 0, models.stderr)
          const wrong = yield* world.run(["query", "--as-of", "some day", count])
          assert.strictEqual(wrong.code, 1, wrong.stdout)
          assert.match(wrong.stderr, /tributary\.as_of is "some day" \(Set it to a moment/)
        })
      ),
    { timeout: 180_000 }
  )
})
