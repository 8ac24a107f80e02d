import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { syncResource } from "../../../src/sync/SyncResource.ts"
import { clockIs, execute } from "../../support/postgres.ts"
import { pages } from "../../support/tiny.ts"
import {
  at,
  checkpoint,
  disturbed,
  failingAt,
  list,
  live,
  page,
  run,
  synced,
  tables,
  thing,
  warehouse
} from "./syncing.ts"
import { suite } from "../../support/suite.ts"

interface Row {
  readonly id: bigint
  readonly kind: string
  readonly status: string
  readonly quiet_runs: number
  readonly quiet_since: Date | null
  readonly started_at: Date
  readonly finished_at: Date
  readonly cursor_to: string | null
  readonly requests: bigint
  readonly error_kind: string | null
}

const ledger = (companyId: bigint) =>
  execute<Row>("select * from tributary.runs where company_id = $1 order by id", [companyId])

/** The number of quiet runs in each row of the ledger. */
const quietRuns = (companyId: bigint) => Effect.map(ledger(companyId), (rows) => rows.map((row) => row.quiet_runs))

/** A source whose first scan is complete, and that has nothing new. */
const quietSource = Effect.fnUntraced(function* () {
  const own = yield* synced(list(10, thing(1, "one", 1)))
  own.source.script = list(20)
  return own
})

suite("a run that finds nothing", warehouse, (test, it) => {
  test("moves the cursor, and shares its row with the quiet runs before it", function* () {
    const { companyId, source } = yield* quietSource()
    /** A resource is as fresh as the begin of its read. */
    const runFreshly = Effect.gen(function* () {
      const [before] = yield* execute<{ now: Date }>("select tributary.now() as now")
      const outcome = yield* run(source, companyId)
      const [fresh] = yield* execute<{ at: Date }>(
        "select fresh_at as at from tributary.freshness where company_id = $1",
        [companyId]
      )
      assert.isAtLeast(fresh!.at.getTime(), before!.now.getTime())
      return outcome
    })
    const first = yield* runFreshly
    const [, before] = yield* ledger(companyId)
    source.script = list(30)
    const second = yield* runFreshly
    const [full, quiet, ...others] = yield* ledger(companyId)
    assert.deepStrictEqual(others, [])
    assert.deepInclude(full!, { kind: "full", status: "done", quiet_runs: 0 })
    assert.deepInclude(quiet!, {
      kind: "incremental",
      status: "done",
      quiet_runs: 2,
      cursor_to: at(30),
      requests: 2n
    })
    assert.deepStrictEqual([first.status, second.status], ["done", "done"])
    assert.deepStrictEqual([first.runId, second.runId], [quiet!.id, quiet!.id])
    assert.deepStrictEqual(quiet!.quiet_since, before!.started_at)
    assert.isAbove(quiet!.started_at.getTime(), before!.started_at.getTime())
    assert.isAtLeast(quiet!.finished_at.getTime(), quiet!.started_at.getTime())
    assert.deepInclude(yield* checkpoint(companyId), { cursor: at(30), fence: 3n })
  })

  test("has a row of its own after a time in which the resource may have become late", function* () {
    const { companyId, source } = yield* quietSource()
    yield* run(source, companyId)
    /** Three runs ten minutes apart, the last of them so many minutes ago; and one now. */
    const rowsAfter = Effect.fnUntraced(function* (minutes: number) {
      yield* execute(
        `update tributary.runs set quiet_runs = 3, started_at = tributary.now() - $2::int * interval '1 minute',
                    finished_at = tributary.now() - $2::int * interval '1 minute', quiet_since = tributary.now() - ($2::int + 20) * interval '1 minute'
              where company_id = $1 and quiet_runs > 0`,
        [companyId, minutes]
      )
      yield* run(source, companyId)
      return yield* quietRuns(companyId)
    })
    assert.deepStrictEqual(yield* rowsAfter(14), [0, 4])
    assert.deepStrictEqual(yield* rowsAfter(20), [0, 3, 1])
  })

  test("has a row of its own after a run that found something or failed, or when a person follows it", function* () {
    const { companyId, source } = yield* quietSource()
    yield* run(source, companyId)
    source.script = list(30, thing(2, "two", 25))
    yield* run(source, companyId)
    source.script = list(40)
    yield* run(source, companyId)
    source.script = failingAt(null, list(40))
    const failed = yield* run(source, companyId)
    source.script = list(50)
    yield* run(source, companyId)
    yield* syncResource({ companyId, connector: source.connector, table: tables.things }, { isFollowed: true })
    const rows = yield* ledger(companyId)
    assert.strictEqual(failed.runId, rows[4]!.id)
    assert.deepStrictEqual(
      rows.map(({ status, error_kind: kind, quiet_runs: runs }) => `${kind ?? status} ${runs}`),
      ["done 0", "done 1", "done 0", "done 1", "ServerFault 0", "done 1", "done 0"]
    )
  })

  test("is recorded from its begin when a later page has records, or its only record goes to quarantine", function* () {
    const bad = { id: "9", field: "name", reason: "holds a NUL character", bytes: '{"id":9}' }
    for (const [script, status, inserted] of [
      [pages(page(20), page(21, thing(3, "three", 15))), "done", 1],
      [pages({ ...page(20), rejected: [bad] }), "quarantined", 0]
    ] as const) {
      const { companyId, source } = yield* quietSource()
      source.script = script
      const outcome = yield* run(source, companyId)
      assert.deepStrictEqual([outcome.status, outcome.totals.inserted], [status, inserted])
      assert.deepStrictEqual(yield* quietRuns(companyId), [0, 0])
      assert.strictEqual((yield* checkpoint(companyId)).cursor, at(20))
    }
  })

  test("moves nothing where another run has taken over", function* () {
    const { companyId, source } = yield* quietSource()
    const takeover = execute("update tributary.checkpoints set fence = fence + 1 where company_id = $1", [companyId])
    assert.strictEqual((yield* run(yield* disturbed(source, null, takeover), companyId)).failure?.kind, "FenceLost")
    assert.strictEqual((yield* checkpoint(companyId)).cursor, at(10))
    assert.isTrue((yield* quietRuns(companyId)).every((runs) => runs === 0))
  })

  it.effect.each([
    { what: "its table was truncated", statement: "truncate erp.things" },
    { what: "the warehouse's clock was set", statement: clockIs("clock_timestamp() + interval ''1 hour''") }
  ])("moves nothing where $what: the next attempt reads every record", ({ statement }) =>
    Effect.gen(function* () {
      const { companyId, source } = yield* quietSource()
      const change = Effect.tap(execute(statement), () =>
        Effect.sync(() => {
          source.script = list(30, thing(1, "one", 1))
        })
      )
      const outcome = yield* run(yield* disturbed(source, null, change), companyId).pipe(
        Effect.ensuring(Effect.orDie(execute(clockIs("clock_timestamp()"))))
      )
      assert.strictEqual(outcome.status, "done", outcome.failure?.message)
      assert.strictEqual((yield* checkpoint(companyId)).cursor, at(30))
      assert.isTrue((yield* quietRuns(companyId)).every((runs) => runs === 0))
      assert.lengthOf(yield* live(companyId), 1)
    })
  )
})
