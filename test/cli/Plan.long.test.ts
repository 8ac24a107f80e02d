/** `tributary plan`, compared with the number of requests that the server then records. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld, type World } from "../support/world.ts"
import { liveTest } from "../support/live.ts"

interface PlanReport {
  readonly requests: number
  readonly certainty: string
  readonly minutes: number | null
  readonly companies: ReadonlyArray<{
    readonly budget: { readonly requestsPerMinute: number; readonly usedNow: number }
    readonly resources: ReadonlyArray<{
      readonly resource: string
      readonly kind: string | null
      readonly because: string | null
      readonly skipped: string | null
      readonly records: number | null
      readonly requests: number
      readonly certainty: string
      readonly asked: number
      readonly ageMs: number | null
    }>
  }>
}

const requestsOf = (world: World) =>
  Effect.map(world.control("GET", "/requests"), (answer) => (answer as { requests: Array<unknown> }).requests.length)

const planOf = Effect.fnUntraced(function* (world: World, ...args: ReadonlyArray<string>) {
  const { code, stdout, stderr } = yield* world.run(["plan", "--json", ...args])
  assert.strictEqual(code, 0, stderr)
  const report = JSON.parse(stdout) as PlanReport
  return { report, resources: report.companies.flatMap(({ resources }) => resources) }
})

/** The number of requests that a command makes. */
const requestsOfCommand = Effect.fnUntraced(function* (world: World, args: ReadonlyArray<string>) {
  const before = yield* requestsOf(world)
  const { code, stderr } = yield* world.run(args)
  assert.strictEqual(code, 0, stderr)
  return (yield* requestsOf(world)) - before
})

const within = (predicted: number, actual: number, share: number) =>
  assert.isAtMost(Math.abs(predicted - actual), Math.max(1, share * actual), `predicted ${predicted}, made ${actual}`)

const rows = `select (select count(*) from tributary.runs)::int as runs, (select count(*) from tributary.checkpoints)::int
  as checkpoints, (select count(*) from pg_class where relkind = 'r' and relnamespace = to_regnamespace('erp'))::int as tables`

liveTest(
  "tributary plan estimates the requests of first, incremental and full syncs of demo data, and changes nothing",
  function* () {
    const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
    // A limit that yields a duration in minutes and delays no request of this test.
    world.configure("budget: { requests_per_minute: 100000 }\n")
    const blind = yield* requestsOf(world)
    const unknown = yield* planOf(world, "--no-probe")
    assert.strictEqual(yield* requestsOf(world), blind)
    assert.strictEqual(unknown.report.certainty, "atLeast")
    assert.isTrue(unknown.resources.every(({ certainty }) => certainty === "unknown"))

    const before = yield* requestsOf(world)
    const first = yield* planOf(world)
    assert.strictEqual(
      (yield* requestsOf(world)) - before,
      1 + first.resources.reduce((sum, { asked }) => sum + asked, 0)
    )
    assert.deepStrictEqual(yield* world.query(rows), [{ runs: 0, checkpoints: 0, tables: 0 }])
    assert.isTrue(first.resources.every(({ kind, ageMs }) => kind === "full" && ageMs === null))
    const text = yield* world.run(["plan"])
    assert.match(text.stdout, /The next sync takes .*\d+ requests, under a minute/)
    within(first.report.requests, yield* requestsOfCommand(world, ["sync", "--json"]), 0.1)

    const next = yield* planOf(world, "--no-probe")
    const incremental = next.resources.filter(({ kind }) => kind === "incremental")
    assert.isAbove(incremental.length, 20)
    assert.isTrue(incremental.every(({ requests, ageMs }) => requests === 1 && ageMs !== null))
    within(next.report.requests, yield* requestsOfCommand(world, ["sync", "--json"]), 0.02)

    const full = yield* planOf(world, "--no-probe", "--full")
    within(full.report.requests, yield* requestsOfCommand(world, ["sync", "--full", "--json"]), 0.05)
  }
)
