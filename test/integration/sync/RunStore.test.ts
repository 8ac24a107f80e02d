/** RunStore, for runs whose processes end without closing them. */
import { assert } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { Lane } from "../../../src/land/Checkpoint.ts"
import { noTotals, type Outcome } from "../../../src/sync/Outcome.ts"
import * as RunStore from "../../../src/sync/RunStore.ts"
import { things } from "../../support/tiny.ts"
import { openSession, warehouse } from "./syncing.ts"
import { suite } from "../../support/suite.ts"
import { sql } from "../../support/postgres.ts"

/** An open run. Closing its scope releases the lock, like the death of its process. */
const begin = Effect.fnUntraced(function* (companyId: bigint, lane: Lane) {
  const scope = yield* Scope.make()
  const { runId } = yield* Scope.provide(openSession(companyId, lane, "fetch"), scope)
  return { runId, vanish: Scope.close(scope, Exit.void) }
})

const done = (companyId: bigint, runId: bigint): Outcome => ({
  companyId,
  resource: things.path,
  status: "done",
  lane: "records",
  kind: "fetch",
  resumed: false,
  runId,
  cursor: null,
  durationMs: 1,
  totals: noTotals,
  massDeleteBlocked: null,
  notes: [],
  failure: null
})

const readRuns = Effect.fnUntraced(function* (companyId: bigint) {
  const rows = yield* sql<{ id: bigint; status: string; error_kind: string | null; is_ended: boolean }>`
    select id, status, error_kind, finished_at is not null as is_ended from tributary.runs
     where company_id = ${companyId} order by id`
  return new Map(rows.map(({ id, status, error_kind, is_ended }) => [id, [status, error_kind, is_ended]]))
})

suite("a run whose process is dead", warehouse, (test) => {
  test("is marked abandoned in every lane, while active runs stay running", function* () {
    // Dead runs of other tests are not counted.
    yield* RunStore.markAbandoned
    const [companyId, other] = [1n, 2n]
    const live = yield* begin(companyId, "live")
    const records = yield* begin(companyId, "records")
    const push = yield* begin(companyId, "push")
    const elsewhere = yield* begin(other, "records")
    assert.strictEqual(yield* RunStore.markAbandoned, 0)
    yield* live.vanish
    yield* records.vanish
    assert.strictEqual(yield* RunStore.markAbandoned, 2)
    assert.strictEqual(yield* RunStore.markAbandoned, 0)
    const runs = yield* readRuns(companyId)
    assert.deepStrictEqual(runs.get(live.runId), ["abandoned", "ProcessLost", true])
    assert.deepStrictEqual(runs.get(records.runId), ["abandoned", "ProcessLost", true])
    assert.deepStrictEqual(runs.get(push.runId), ["running", null, false])
    assert.deepStrictEqual((yield* readRuns(other)).get(elsewhere.runId), ["running", null, false])
    yield* Effect.andThen(push.vanish, elsewhere.vanish)
  })

  test("is corrected by its own late outcome, unless the next run has marked it abandoned", function* () {
    const companyId = 3n
    const late = yield* begin(companyId, "records")
    yield* late.vanish
    yield* RunStore.markAbandoned
    yield* RunStore.close(late.runId, done(companyId, late.runId))
    assert.deepStrictEqual((yield* readRuns(companyId)).get(late.runId), ["done", null, true])
    yield* RunStore.close(late.runId, { ...done(companyId, late.runId), status: "failed" })
    assert.deepStrictEqual((yield* readRuns(companyId)).get(late.runId), ["done", null, true])

    const before = yield* begin(companyId, "records")
    yield* before.vanish
    const after = yield* begin(companyId, "records")
    yield* RunStore.close(before.runId, done(companyId, before.runId))
    assert.deepStrictEqual((yield* readRuns(companyId)).get(before.runId), ["abandoned", null, true])
    yield* after.vanish
  })

  test("is not ended by another run that had its id before a restore", function* () {
    const companyId = 4n
    const run = yield* begin(companyId, "live")
    const outcome: Outcome = { ...done(companyId, run.runId), lane: "live" }
    const strangers: ReadonlyArray<Outcome> = [
      { ...outcome, resource: "another" },
      { ...outcome, companyId: 5n },
      { ...outcome, lane: "records" }
    ]
    for (const stranger of strangers) {
      yield* RunStore.close(run.runId, stranger)
      yield* RunStore.abandon(run.runId, stranger)
      assert.deepStrictEqual((yield* readRuns(companyId)).get(run.runId), ["running", null, false])
    }
    yield* RunStore.abandon(run.runId, outcome)
    assert.deepStrictEqual((yield* readRuns(companyId)).get(run.runId), ["abandoned", "Interrupted", true])
    yield* run.vanish
  })
})
