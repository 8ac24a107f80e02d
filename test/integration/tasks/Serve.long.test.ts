/**
 * Two `tributary serve` on one warehouse: one is killed, suspended or stopped, or loses its connections, or a `sync`
 * runs beside them. The other one acquires its tasks within fifteen seconds, and the warehouse ends equal.
 */
import { createInterface } from "node:readline"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { until } from "../../support/until.ts"
import { makeWorld } from "../../support/world.ts"

const resource = "invoicelines"
const takeOverMaxMs = 15_000

interface TaskRow {
  readonly owner: string | null
  readonly status: string | null
  readonly error: string | null
  readonly run_id: bigint | null
  readonly failures: number
  readonly running: boolean
}
interface RunRow {
  readonly id: bigint
  readonly status: string
  readonly pages: bigint
  readonly resumed: boolean
  readonly error: string | null
}

/** An installation with a slow source, a resource of many small pages, and queries of its state. */
const makeInstallation = Effect.gen(function* () {
  const world = yield* makeWorld({ data: ["--data", "scale", "--rows", "400"], company: 1 })
  world.configure(`companies:
  - { name: north, resources: [${resource}] }
webhooks: { listen: "127.0.0.1:0" }
dashboard: { listen: "127.0.0.1:0" }
schedule: { default: { every: 1h, jitter_seconds: 0 } }
paging: { page_size: 10 }
sync: { batch_records: 10 }
budget: { requests_per_minute: unlimited }
`)
  /** Starts a process. `ready` is its line. */
  const serve = Effect.gen(function* () {
    const command = world.command(["serve", "--json"])
    let stderrText = ""
    command.child.stderr!.on("data", (chunk: Buffer) => (stderrText += chunk.toString()))
    const line = new Promise<string>((resolve, reject) => {
      createInterface({ input: command.child.stdout! }).once("line", resolve)
      void command.done.then(({ code, stderr }) => reject(new Error(`serve ended with ${code}: ${stderr}`)))
    })
    const ready = yield* Effect.promise(() => line).pipe(
      Effect.timeoutOrElse({
        duration: 30_000,
        orElse: () => Effect.die(new Error(`serve was not ready within 30 s: ${stderrText}`))
      })
    )
    return { ...command, ready: JSON.parse(ready) as Readonly<Record<string, unknown>>, stderrText: () => stderrText }
  })
  const task = Effect.map(
    world.query<TaskRow>(
      `select process_id as owner, status, error, run_id, failures, process_id is not null as running
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
  const slowly = (ms: number) =>
    world.control("POST", "/faults", { rules: [{ path: `/${resource}`, kind: "delay", ms }] })
  const quickly = world.control("DELETE", "/faults")
  /** Waits until a run of the resource has landed some pages and is still active. */
  const isReading = (what: string) =>
    until(what, runs, (all) => all.some(({ status, pages }) => status === "running" && pages >= 3n))
  const isDone = until("the task is done", task, (row) => row?.status === "done" && !row.running)
  const isEqual = Effect.gen(function* () {
    assert.deepStrictEqual((yield* world.compare(resource)).differences, [])
    const [{ count } = { count: 0 }] = yield* world.query<{ count: number }>(
      `select count(*)::int as count from erp.${resource}`
    )
    assert.isAbove(count, 100)
    assert.deepStrictEqual(
      (yield* runs).filter(({ status }) => status === "running"),
      []
    )
  })
  const ask = world.query(
    `update tributary.tasks set requested_at = tributary.now(), requested_by = 'test', full_requested = true
      where resource = '${resource}' and kind = 'sync'`
  )
  return { world, serve, task, runs, slowly, quickly, isReading, isDone, isEqual, ask }
})

/** The number of pages that all runs have landed. */
const landedIn = (runs: ReadonlyArray<RunRow>): bigint => runs.reduce((sum, { pages }) => sum + pages, 0n)

/** The time until another process has the task. */
const awaitTakeover = Effect.fnUntraced(function* (
  task: Effect.Effect<TaskRow | undefined>,
  owner: string,
  how: string
) {
  const from = performance.now()
  yield* until(
    "another process acquires the task",
    task,
    (row) => row !== undefined && row.owner !== null && row.owner !== owner
  )
  const ms = performance.now() - from
  console.log(`  ${how}: acquired after ${(ms / 1000).toFixed(1)} s`)
  assert.isBelow(ms, takeOverMaxMs)
})

describe("two serve processes", () => {
  it.live(
    "recreate a dropped column or table while they run, and fill it",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { world, serve, runs, isDone, isEqual, ask } = yield* makeInstallation
          yield* serve
          yield* isDone
          const columns = world.query<{ columns: number }>(
            `select count(*)::int as columns from information_schema.columns
            where table_schema = 'erp' and table_name = '${resource}' and column_name = 'itemid'`
          )
          const statements = [
            `alter table erp.${resource} drop column itemid cascade`,
            `drop table erp.${resource} cascade`
          ]
          for (const statement of statements) {
            yield* world.query(statement)
            yield* until("the column exists again", columns, ([row]) => row?.columns === 1, 60)
            const before = (yield* runs).length
            yield* ask
            yield* until("a run fills it again", runs, (all) =>
              all.slice(before).some(({ status }) => status === "done")
            )
            yield* isEqual
          }
        })
      ),
    180_000
  )

  it.live(
    "show the page while a table cannot be created",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { world, serve } = yield* makeInstallation
          yield* Effect.promise(() => world.command(["sync"]).done)
          yield* world.query(`drop table erp.${resource} cascade`)
          yield* world.query(`create view erp.${resource} as select 1 as id`)
          const { ready, stderrText } = yield* serve
          yield* until("the process reports the view", Effect.sync(stderrText), (text) =>
            text.includes(`erp.${resource}`)
          )
          yield* until(
            "the page responds",
            Effect.promise(() => fetch(String(ready["dashboard"]))),
            ({ status }) => status === 200
          )
        })
      ),
    { timeout: 120_000 }
  )

  it.live(
    "acquire the tasks of a killed process within 15 s and resume its run",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { serve, task, runs, slowly, quickly, isReading, isDone, isEqual } = yield* makeInstallation
          yield* slowly(400)
          const first = yield* serve
          assert.isTrue(first.ready["ready"])
          assert.match(String(first.ready["dashboard"]), /^http:\/\/127\.0\.0\.1:\d+$/)
          yield* until(
            "the page responds",
            Effect.promise(() => fetch(String(first.ready["dashboard"]))),
            ({ status }) => status === 200
          )
          yield* isReading("the first process reads")
          const second = yield* serve
          const { owner } = (yield* task)!
          first.child.kill("SIGKILL")
          yield* awaitTakeover(task, owner!, "killed with -9")
          yield* until("the other process reads", runs, (all) => all.length === 2 && all[1]!.status === "running")
          const [killed, next] = yield* runs
          assert.strictEqual(killed!.status, "abandoned")
          assert.isTrue(next!.resumed, "it resumes where the killed process stopped")
          yield* quickly
          yield* isDone
          yield* isEqual
          assert.strictEqual(second.child.exitCode, null)
        })
      ),
    { timeout: 120_000 }
  )

  it.live(
    "fence off a process that was suspended and continues later",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { serve, task, slowly, quickly, isReading, isDone, isEqual, runs } = yield* makeInstallation
          yield* slowly(400)
          const first = yield* serve
          yield* isReading("the first process reads")
          yield* serve
          const { owner } = (yield* task)!
          first.child.kill("SIGSTOP")
          yield* awaitTakeover(task, owner!, "stopped")
          yield* until("the other process reads", runs, (all) => all.at(-1)!.status === "running" && all.length === 2)
          first.child.kill("SIGCONT")
          yield* quickly
          yield* isDone
          const finalTask = yield* task
          assert.strictEqual(finalTask!.failures, 0)
          yield* isEqual
          assert.strictEqual(first.child.exitCode, null, "the process continues to serve")
          first.child.kill("SIGTERM")
          assert.strictEqual((yield* Effect.promise(() => first.done)).code, 0)
        })
      ),
    { timeout: 120_000 }
  )

  it.live(
    "stop within seconds on SIGTERM with no open run, and at once on a second one",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { world, serve, task, runs, slowly, quickly, isReading, isDone, isEqual, ask } = yield* makeInstallation
          yield* slowly(400)
          const first = yield* serve
          yield* isReading("the first process reads")
          const from = performance.now()
          first.child.kill("SIGTERM")
          assert.strictEqual((yield* Effect.promise(() => first.done)).code, 0)
          const ms = performance.now() - from
          console.log(`  SIGTERM during a run: ended after ${(ms / 1000).toFixed(1)} s`)
          assert.isBelow(ms, 6_000)
          assert.deepInclude((yield* task)!, { owner: null, status: "interrupted" })
          assert.deepInclude((yield* runs)[0]!, {
            status: "abandoned",
            error: "stopped: the process was asked to end"
          })

          // Another process continues at once, because nothing has to expire.
          const again = performance.now()
          const second = yield* serve
          yield* until("the next process reads", runs, (all) => all.length === 2)
          console.log(`  the next process reads ${((performance.now() - again) / 1000).toFixed(1)} s after its start`)
          yield* quickly
          yield* isDone
          yield* isEqual

          yield* slowly(400)
          yield* ask
          yield* until("the requested scan runs", runs, (all) => all.at(-1)!.status === "running")
          // The rows of its tasks are locked, so that it cannot finish its shutdown.
          yield* Effect.forkScoped(world.query("select pg_sleep(20) from (select 1 from tributary.tasks for update) s"))
          yield* until(
            "the rows are locked",
            world.query("select 1 from tributary.tasks for update skip locked"),
            (free) => free.length === 0
          )
          const signalledAt = performance.now()
          second.child.kill("SIGTERM")
          yield* until("the process reports its shutdown", Effect.sync(second.stderrText), (text) =>
            text.includes("stopping")
          )
          assert.isNull(second.child.exitCode)
          // A signal right after the first one counts as the same signal, forwarded by other processes.
          yield* until(
            "the process exits",
            Effect.sync(() => second.child.kill("SIGTERM") && second.child.exitCode === null),
            (isThere) => !isThere
          )
          assert.strictEqual((yield* Effect.promise(() => second.done)).code, 130)
          assert.isBelow(performance.now() - signalledAt, 5_000)
        })
      ),
    { timeout: 120_000 }
  )

  it.live(
    "resume a run after the warehouse drops every connection",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { world, serve, task, runs, slowly, quickly, isReading, isDone, isEqual } = yield* makeInstallation
          yield* slowly(250)
          const one = yield* serve
          for (let drops = 0; drops < 3; drops += 1) {
            yield* isReading("a run reads")
            const before = landedIn(yield* runs)
            yield* world.query(
              `select pg_terminate_backend(pid) from pg_stat_activity
                where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
            )
            // A run holds no connection while it reads, so it continues, or another run resumes.
            yield* until("a run lands again", runs, (all) => landedIn(all) > before, 20)
          }
          yield* quickly
          yield* isDone
          assert.strictEqual((yield* task)!.failures, 0)
          yield* isEqual
          assert.strictEqual(one.child.exitCode, null)
        })
      ),
    { timeout: 120_000 }
  )

  it.live(
    "run beside a sync command and count its run",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { world, serve, task, runs, slowly, isReading, isDone, isEqual, quickly } = yield* makeInstallation
          yield* slowly(250)
          const sync = world.command(["sync", "--json"])
          yield* isReading("the sync reads")
          yield* serve
          yield* until("serve has created the task", task, (row) => row !== undefined)
          assert.strictEqual((yield* task)!.failures, 0)
          yield* quickly
          assert.strictEqual((yield* Effect.promise(() => sync.done)).code, 0)
          yield* isDone
          const all = yield* runs
          assert.deepInclude((yield* task)!, { failures: 0, error: null, run_id: all.at(-1)!.id })
          assert.lengthOf(all, 1, "serve does not repeat the work of the sync")
          yield* isEqual
        })
      ),
    { timeout: 120_000 }
  )
})
