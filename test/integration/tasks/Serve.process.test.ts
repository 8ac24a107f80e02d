/** Two `tributary serve` on one warehouse: one is killed, or stopped by a signal. The warehouse ends equal. */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import pg from "pg"
import { makeInstallation } from "./serving.ts"
import { untilSeen } from "../../support/reference.ts"
import { liveTest } from "../../support/live.ts"

describe("two serve processes", () => {
  liveTest("acquire the tasks of a process killed with -9 and resume its run", function* () {
    const { serve, runs, hold, quickly, isReading, isDone, isEqual } = yield* makeInstallation
    yield* hold
    const first = yield* serve
    assert.isTrue(first.ready["ready"])
    assert.match(String(first.ready["dashboard"]), /^http:\/\/127\.0\.0\.1:\d+$/)
    yield* untilSeen(
      "the page responds",
      Effect.promise(() => fetch(String(first.ready["dashboard"]))),
      ({ status }) => status === 200
    )
    yield* isReading("the first process reads")
    const second = yield* serve
    // The request of the first process stays without an answer.
    yield* quickly
    first.child.kill("SIGKILL")
    yield* untilSeen("the other process reads", runs, (all) => all.length === 2)
    const [killed, next] = yield* runs
    assert.strictEqual(killed!.status, "abandoned")
    assert.isTrue(next!.resumed, "it resumes where the killed process stopped")
    yield* isDone
    yield* isEqual
    assert.strictEqual(second.child.exitCode, null)
  })

  liveTest("end with 0 on SIGTERM with no open run, and at once on a second one", function* () {
    const { world, serve, task, runs, hold, quickly, isReading, isDone, isEqual, ask } = yield* makeInstallation
    yield* hold
    const first = yield* serve
    yield* isReading("the first process reads")
    first.child.kill("SIGTERM")
    assert.strictEqual((yield* Effect.promise(() => first.done)).code, 0)
    assert.deepInclude((yield* task)!, { status: null, isDue: true })
    assert.deepInclude((yield* runs)[0]!, {
      status: "abandoned",
      error: "stopped: the process was asked to end"
    })

    // Another process continues, because nothing has to expire.
    yield* quickly
    const second = yield* serve
    yield* untilSeen("the next process reads", runs, (all) => all.length === 2)
    yield* isDone
    yield* isEqual

    yield* hold
    yield* ask
    yield* untilSeen("the requested scan runs", runs, (all) => all.at(-1)!.status === "running")
    // The rows of its runs are locked, so that it cannot finish its shutdown.
    const locks = yield* Effect.acquireRelease(
      Effect.sync(() => new pg.Client({ connectionString: world.databaseUrl })),
      (client) => Effect.promise(() => client.end())
    )
    yield* Effect.promise(() => locks.connect())
    yield* Effect.promise(() => locks.query("begin; select from tributary.runs for update"))
    second.child.kill("SIGTERM")
    yield* untilSeen("the process reports its shutdown", Effect.sync(second.stderrText), (text) =>
      text.includes("stopping")
    )
    assert.isNull(second.child.exitCode)
    // A signal right after the first one counts as the same signal, forwarded by other processes.
    yield* untilSeen(
      "the process exits",
      Effect.sync(() => second.child.kill("SIGTERM") && second.child.exitCode === null),
      (isThere) => !isThere
    )
    assert.strictEqual((yield* Effect.promise(() => second.done)).signal, "SIGTERM")
  })
})
