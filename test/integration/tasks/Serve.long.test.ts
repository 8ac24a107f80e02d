/**
 * Two `tributary serve` on one warehouse: one is suspended or loses its connections or its tables, or a `sync` runs
 * beside them. The warehouse ends equal.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { until } from "../../support/until.ts"
import { awaitTakeover, makeInstallation, resource, type RunRow } from "./serving.ts"

/** The number of pages that all runs have landed. */
const landedIn = (runs: ReadonlyArray<RunRow>): bigint => runs.reduce((sum, { pages }) => sum + pages, 0n)

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
          yield* awaitTakeover(task, owner!)
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
