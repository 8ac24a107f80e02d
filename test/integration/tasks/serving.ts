/** Two `tributary serve` on one warehouse with a slow source, and queries of their tasks and runs. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { firstLine, untilSeen } from "../../support/reference.ts"
import { makeWorld } from "../../support/world.ts"
import { assertNone } from "../../support/assertions.ts"

const resource = "invoicelines"

interface TaskRow {
  readonly status: string | null
  readonly isDue: boolean
}
interface RunRow {
  readonly id: bigint
  readonly status: string
  readonly pages: bigint
  readonly resumed: boolean
  readonly error: string | null
}

/** An installation with a slow source, a resource of many small pages, and queries of its state. */
export const makeInstallation = Effect.gen(function* () {
  const world = yield* makeWorld({ data: ["--data", "scale", "--rows", "400"], company: 1 })
  world.configure(`companies:
  - { name: north, resources: [${resource}] }
webhooks: { listen: "127.0.0.1:0" }
dashboard: { listen: "127.0.0.1:0" }
schedule: { default: { every: 1h, jitter_seconds: 0 } }
paging: { page_size: 10 }
sync: { batch_records: 10 }
budget: { requests_per_minute: unlimited }
requests: { timeout_seconds: 3600 }
`)
  /** Starts a process. `ready` is its line. */
  const serve = Effect.gen(function* () {
    const command = world.command(["serve", "--json"])
    let stderrText = ""
    command.child.stderr!.on("data", (chunk: Buffer) => (stderrText += chunk.toString()))
    const ready = yield* Effect.promise(() => firstLine(command))
    return { ...command, ready: JSON.parse(ready) as Readonly<Record<string, unknown>>, stderrText: () => stderrText }
  })
  const task = Effect.map(
    world.query<TaskRow>(
      `select status, next_run_at <= tributary.now() or requested_at is not null as "isDue"
         from tributary.tasks where resource = '${resource}' and kind = 'sync'`
    ),
    ([row]) => row
  )
  const runs = world
    .query<RunRow>(
      `select id, status, pages, resumed, error from tributary.runs where resource = '${resource}' order by id`
    )
    // No rows before the first process has created the tables.
    .pipe(Effect.catchDefect(() => Effect.succeed<ReadonlyArray<RunRow>>([])))
  /** The source answers the next requests for pages, and no further one: a run reads until it is ended. */
  const hold = world.control("POST", "/faults", {
    rules: [{ path: `/${resource}`, kind: "delay", after: 8, ms: 3_600_000 }]
  })
  const quickly = world.control("DELETE", "/faults")
  /** Waits until a run of the resource has landed some pages and is still active. */
  const isReading = (what: string) =>
    untilSeen(what, runs, (all) => all.some(({ status, pages }) => status === "running" && pages >= 3n))
  const isDone = untilSeen("the task is done", task, (row) => row?.status === "done" && !row.isDue)
  const isEqual = Effect.gen(function* () {
    assert.deepStrictEqual((yield* world.compare(resource)).differences, [])
    const [{ count } = { count: 0 }] = yield* world.query<{ count: number }>(
      `select count(*)::int as count from erp.${resource}`
    )
    assert.isAbove(count, 100)
    assertNone(yield* runs, ({ status }) => status === "running")
  })
  const ask = world.query(
    `update tributary.tasks set requested_at = tributary.now(), requested_by = 'test', full_requested = true
      where resource = '${resource}' and kind = 'sync'`
  )
  return { world, serve, task, runs, hold, quickly, isReading, isDone, isEqual, ask }
})
