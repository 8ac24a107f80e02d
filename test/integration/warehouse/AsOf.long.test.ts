/** The records as of moments, compared with the reference server's own history. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { compare } from "../../../src/verify/Compare.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import { numbers } from "../../support/numbers.ts"
import { makeWorld, type World } from "../../support/world.ts"

const resources = [...serviceV2.resources.values()]
const steps = 25
const resourcesOfStep = 18

/** One line of the server's history, with the record byte for byte. */
interface Change {
  readonly seq: number
  readonly op: string
  readonly id: number
  readonly record: string
}

const changeOf = (line: string): Change => ({
  ...(JSON.parse(line) as Omit<Change, "record">),
  record: line.slice(line.indexOf('"record":') + '"record":'.length, -1)
})

/** The records after the changes up to this one. */
const recordsAt = (changes: ReadonlyArray<Change>, seq: number): ReadonlyMap<number, string> => {
  const records = new Map<number, string>()
  for (const change of changes) {
    if (change.seq > seq) break
    if (change.op === "delete") records.delete(change.id)
    else records.set(change.id, change.record)
  }
  return records
}

const historyOf = (world: World, { path }: Resource) =>
  Effect.map(
    Effect.promise(() => world.reference.lines(`/history?company=1&resource=${path}`)),
    (lines) => lines.map(changeOf)
  )

/** A text whose change alone makes a new version of a record. */
const textOf = ({ fields }: Resource): string | undefined =>
  fields.find(({ type, reference }) => type._tag === "string" && reference === null)?.name

/** A moment of the warehouse, and the last change of the server that it knows. */
interface Moment {
  readonly time: string
  readonly position: string
  readonly seq: number
}

/** Changes records of some resources, removes one where the next read finds that, and syncs. */
const change = Effect.fnUntraced(function* (world: World, step: number, below: (limit: number) => number) {
  const isFull = step % 2 === 1
  const chosen = Array.from({ length: resourcesOfStep }, (_, place) => {
    return resources[(step * resourcesOfStep + place) % resources.length]!
  })
  let seq = 0
  for (const resource of chosen) {
    const put = (id: number) => {
      const text = textOf(resource)
      const record = { id, ...(text === undefined ? {} : { [text]: `step ${step}` }) }
      return world.control("POST", "/records", { company: 1, resource: resource.path, records: [record] })
    }
    const present = [...recordsAt(yield* historyOf(world, resource), Infinity).keys()]
    for (let count = Math.min(2, present.length); count > 0; count -= 1) yield* put(present[below(present.length)]!)
    // Some of these numbers were removed before: the record comes back.
    yield* put(900_000 + below(3))
    const removed = present[below(present.length)]
    if (isFull && removed !== undefined) {
      yield* world.control("POST", "/remove", { company: 1, resource: resource.path, id: removed })
    }
    seq = (yield* historyOf(world, resource)).at(-1)!.seq
  }
  const paths = chosen.map(({ path }) => path)
  const run = yield* world.run(
    step % 5 === 2 ? ["backfill", ...paths] : ["sync", ...paths, ...(isFull ? ["--full"] : [])]
  )
  assert.strictEqual(run.code, 0, run.stdout + run.stderr)
  const [now] = yield* world.query<{ time: string; position: string }>(
    "select clock_timestamp()::text as time, last_position::text as position from tributary.change_feed"
  )
  return { ...now!, seq } satisfies Moment
})

describe("the records as of a moment", () => {
  it.live(
    "of every resource equal the server's own history at 50 moments, with removed records, ones that came back, and backfills",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const first = yield* world.run(["sync"])
          assert.strictEqual(first.code, 0, first.stdout + first.stderr)
          const below = numbers(20_261_031)
          const moments: Array<Moment> = []
          for (let step = 0; step < steps; step += 1) moments.push(yield* change(world, step, below))
          const histories = new Map<Resource, ReadonlyArray<Change>>()
          for (const resource of resources) histories.set(resource, yield* historyOf(world, resource))
          const deletions = [...histories.values()].flat().filter(({ op }) => op === "delete")
          assert.isAbove(deletions.length, resources.length)

          const context = yield* Layer.build(
            sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(world.databaseUrl))))
          )
          const compareAll = Effect.fnUntraced(function* (asOf: string, mode: string, seq: number) {
            const sql = yield* SqlClient.SqlClient
            yield* sql`select set_config('tributary.as_of', ${asOf}, true), set_config('tributary.as_of_mode', ${mode}, true)`
            const compareOne = Effect.fnUntraced(function* (resource: Resource) {
              const records = recordsAt(histories.get(resource)!, seq)
              const table = tableOf(resource)
              const comparison = yield* compare({ ...table, current: table.asOf }, 1n, records.values())
              const equal = { source: records.size, warehouse: records.size, differences: [] }
              assert.deepStrictEqual(comparison, equal, `${resource.path} as of ${asOf} (${mode})`)
            })
            yield* Effect.forEach(resources, compareOne, { discard: true })
          })
          const compareAt = (asOf: string, mode: string, seq: number) =>
            Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(compareAll(asOf, mode, seq))).pipe(
              Effect.provideContext(context),
              Effect.orDie
            )
          for (const { time, position, seq } of moments) {
            yield* compareAt(time, "warehouse", seq)
            yield* compareAt(`position ${position}`, "warehouse", seq)
          }
          // Each step read every change before the next one, so that the source's times choose the same records.
          for (const { time, seq } of moments.filter((_, step) => step % 3 === 0)) yield* compareAt(time, "source", seq)
        })
      ),
    { timeout: 600_000 }
  )
})
