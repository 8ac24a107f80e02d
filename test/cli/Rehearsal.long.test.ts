/**
 * Rehearsals compared with the pushes themselves, over records that are drawn from the catalogue and the demo data: right and
 * wrong references, cancelled records, keys that exist, closed periods, amounts that are too high.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { Resource } from "../../src/catalogue/Resource.ts"
import type { Operation } from "../../src/outbox/Push.ts"
import { shapeOf, type WriteColumn } from "../../src/outbox/WriteSchema.ts"
import { Chance } from "../fuzz/Chance.ts"
import { makeWorld, type World } from "../support/world.ts"
import { liveTest } from "../support/live.ts"

type Json = Readonly<Record<string, unknown>>

interface Rejected {
  readonly line: number
  readonly code: string
  readonly field: string | null
}

interface RehearsalOutput {
  readonly rehearsal: { readonly rejected: ReadonlyArray<Rejected>; readonly uncertain: ReadonlyArray<Rejected> }
}

const absent = 987_654

/** Draws values of write fields from the records of the source. */
const makeDraw = (random: () => number, records: (resource: string) => ReadonlyArray<Json>) => {
  const pick = <A>(from: ReadonlyArray<A>): A | undefined => from[Math.floor(random() * from.length)]
  const digits = (count: number) => Math.floor(random() * 10 ** count)
  const valueOf = (field: WriteColumn): unknown => {
    if (field.refers !== null) {
      const { resource, by } = field.refers
      const found = random() < 0.12 ? undefined : pick(records(resource))
      return by === null ? (found?.["id"] ?? absent) : (found?.[by] ?? "NO SUCH CODE")
    }
    if (field.values !== null) return pick(field.values)?.value
    switch (field.type._tag) {
      case "integer":
        return 1 + digits(1)
      case "decimal":
        return `${digits(random() < 0.2 ? 7 : 2)}.${"5".slice(0, field.type.scale)}`.replace(/\.$/, "")
      case "boolean":
        return random() < 0.5
      case "string":
        return `text ${digits(4)}`.slice(0, field.type.maxLength ?? 20)
      case "date":
        return random() < 0.2 ? "2019-05-05" : new Date().toISOString().slice(0, 10)
      case "timestamp":
        return new Date().toISOString()
      case "list":
        return field.lines === null ? undefined : [membersOf([...field.lines.values()], 0.4)]
    }
  }
  const membersOf = (fields: ReadonlyArray<WriteColumn>, share: number): Json =>
    Object.fromEntries(
      fields.flatMap((field) => {
        if (field.name === serviceV2.traits.roles.cancelled) return []
        const value = field.required || random() < share ? valueOf(field) : undefined
        return value === undefined || value === null ? [] : [[field.name, value] as const]
      })
    )
  return { pick, membersOf }
}

const inputOf = (
  resource: Resource,
  operation: Operation,
  draw: ReturnType<typeof makeDraw>,
  records: ReadonlyArray<Json>,
  count: number,
  prefix: string
): ReadonlyArray<Json> => {
  const ids = new Set<unknown>()
  return Array.from({ length: count }, (_, index) => {
    if (operation === "create") {
      const key = resource.key?.field
      const known = draw.pick(records)
      const body = {
        ...draw.membersOf([...shapeOf(resource, "create").values()], 0.3),
        externalid: `${prefix}-${index}`
      }
      // Some keys exist.
      const value = key === undefined || !(key in body) || index % 5 > 0 ? null : (known?.[key] ?? null)
      return value === null ? body : { ...body, [key!]: value }
    }
    const id = index % 9 === 8 ? absent + index : draw.pick(records)?.["id"]
    if (ids.has(id)) return null
    ids.add(id)
    if (operation === "cancel") return { id }
    const changed = draw.membersOf([...shapeOf(resource, "update").values()], 0.15)
    const one = draw.pick(Object.entries(draw.membersOf([...shapeOf(resource, "update").values()], 1)))
    return { id, ...(one === undefined ? {} : { [one[0]]: one[1] }), ...changed }
  }).filter((record) => record !== null)
}

const run = (world: World, args: ReadonlyArray<string>) => world.run(args)

describe("a rehearsal", () => {
  for (const seed of [1, 2]) {
    liveTest(
      `rejects what the source rejects, and nothing else (seed ${seed})`,
      function* () {
        const world = yield* makeWorld({ data: ["--data", "demo", "--seed", String(seed)], company: 1 })
        yield* world.control("POST", "/records", {
          company: 1,
          resource: "ledgerperiods",
          records: [{ startdate: "2019-01-01", enddate: "2019-12-31", closed: true }]
        })
        const synced = yield* run(world, ["sync"])
        assert.strictEqual(synced.code, 0, synced.stderr)
        const state = new Map<string, ReadonlyArray<Json>>()
        for (const path of serviceV2.resources.keys()) {
          const lines = yield* Effect.promise(() => world.reference.lines(`/state?company=1&resource=${path}`))
          state.set(
            path,
            lines.map((line) => JSON.parse(line) as Json)
          )
        }
        const recordsOf = (path: string) => state.get(path) ?? []
        const chance = new Chance(seed)
        const draw = makeDraw(() => chance.next(), recordsOf)
        const counts = { records: 0, actual: 0, predicted: 0, same: 0, sameCode: 0 }
        const wrong: Array<string> = []
        const skipped: Array<string> = []
        const inputs = [...serviceV2.resources.values()].flatMap((resource) =>
          (
            [
              ["create", "C"],
              ["update", "U"],
              ["cancel", "D"]
            ] as const
          ).flatMap(([operation, letter]) =>
            resource.operations.includes(letter) && (operation === "create" || recordsOf(resource.path).length > 3)
              ? [{ resource, operation }]
              : []
          )
        )
        for (const [index, { resource, operation }] of inputs.entries()) {
          if (index % 9 !== seed) continue
          const records = inputOf(resource, operation, draw, recordsOf(resource.path), 12, `R${seed}-${index}`)
          const file = `${index}.ndjson`
          writeFileSync(join(world.folder, file), records.map((record) => `${JSON.stringify(record)}\n`).join(""))
          const flags = operation === "create" ? [] : [`--${operation}`]
          const push = ["push", resource.path, "--from", file, ...flags, "--json"]
          const rehearsed = yield* run(world, [...push, "--rehearse", "--dry-run"])
          if (rehearsed.code === 2) {
            skipped.push(`${operation} ${resource.path}: ${rehearsed.stdout.slice(0, 160)}`)
            continue
          }
          const { rehearsal } = JSON.parse(rehearsed.stdout) as RehearsalOutput
          assert.deepStrictEqual(rehearsal.uncertain, [], "the warehouse has every resource")
          const pushed = yield* run(world, push)
          const report = JSON.parse(pushed.stdout) as { readonly push: number; readonly state: string }
          assert.match(report.state, /^finished/, pushed.stderr)
          const all = yield* world.query<Rejected>(
            `select line::int as line, code, field from tributary.outbox where state = 'rejected' and push_id = ${report.push}`
          )
          const predicted = new Map(rehearsal.rejected.map((one) => [one.line, one]))
          const actual = new Map(all.map((one) => [one.line, one]))
          counts.records += records.length
          counts.actual += actual.size
          counts.predicted += predicted.size
          for (const [line, one] of actual) {
            const found = predicted.get(line)
            if (found !== undefined) counts.same += 1
            if (found?.code === one.code) counts.sameCode += 1
            else wrong.push(`${operation} ${resource.path} line ${line}: ${one.code}, predicted ${found?.code}`)
          }
          const surplus = [...predicted.values()].filter(({ line }) => !actual.has(line))
          assert.deepStrictEqual(surplus, [], `${operation} ${resource.path}: predicted, and did not happen`)
          yield* run(world, ["sync"])
        }
        assert.isAtMost(skipped.length, 2, skipped.join("\n"))
        assert.isAtLeast(counts.actual, 20)
        assert.isAtLeast(counts.records - counts.actual, 20, "most of some inputs are accepted")
        assert.isAtLeast(counts.same / counts.actual, 0.95, wrong.join("\n"))
        assert.isAtLeast(counts.sameCode / counts.actual, 0.9, wrong.join("\n"))
      },
      600_000
    )
  }
})
