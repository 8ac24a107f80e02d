import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { ServerFault } from "../../../src/connector/SourceError.ts"
import { syncResource } from "../../../src/sync/SyncResource.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { clockIs, layerWarehouse } from "../../support/postgres.ts"
import { failing, pages, record, scripted, type ScriptedSource, things } from "../../support/tiny.ts"

const table = tableOf(things)
const warehouse = Layer.effectDiscard(TablePlan.apply([table])).pipe(Layer.provideMerge(layerWarehouse))

let companies = 0n
const company = () => (companies += 1n)

const run = (source: ScriptedSource, companyId: bigint, options: { readonly isFollowed?: boolean } = {}) =>
  syncResource({ companyId, connector: source.connector, table }, options)

interface Row {
  readonly id: bigint
  readonly kind: string
  readonly status: string
  readonly quiet_runs: number
  readonly quiet_since: Date | null
  readonly started_at: Date
  readonly finished_at: Date
  readonly cursor_from: string | null
  readonly cursor_to: string | null
  readonly requests: bigint
  readonly error_kind: string | null
}

const ledger = (companyId: bigint) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<Row>`select * from tributary.runs where company_id = ${companyId} order by id`
  )

const checkpoint = (companyId: bigint) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ cursor: string; fence: bigint }>`
        select cursor, fence from tributary.checkpoints where company_id = ${companyId}`,
      (rows) => rows[0]!
    )
  )

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000Z`
const thing = (id: number, second: number) =>
  record(things, { id: String(id), name: `thing ${id}`, lastchangedate: at(second) })
const nothing = (second: number) => pages({ records: [], syncedThrough: at(second) })

/** A source whose first scan is complete. */
const synced = Effect.fnUntraced(function* (companyId: bigint) {
  const source = scripted(companyId, pages({ records: [thing(1, 1)], syncedThrough: at(10) }))
  yield* run(source, companyId)
  return source
})

describe("a run that finds nothing", () => {
  layer(warehouse, { timeout: "60 seconds" })("against Postgres", (it) => {
    it.effect("moves the cursor, and shares its row with the quiet runs before it", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = yield* synced(companyId)
        source.script = nothing(20)
        const first = yield* run(source, companyId)
        const [, before] = yield* ledger(companyId)
        source.script = nothing(30)
        const second = yield* run(source, companyId)
        const rows = yield* ledger(companyId)
        const quiet = rows[1]!
        assert.deepStrictEqual(
          rows.map(({ kind, status, quiet_runs: quietRuns }) => [kind, status, quietRuns]),
          [
            ["full", "done", 0],
            ["incremental", "done", 2]
          ]
        )
        assert.deepStrictEqual([first.status, second.status], ["done", "done"])
        assert.deepStrictEqual([first.runId, second.runId], [quiet.id, quiet.id])
        assert.deepStrictEqual([quiet.cursor_to, quiet.requests], [at(30), 2n])
        assert.deepStrictEqual(quiet.quiet_since, before!.started_at)
        assert.isAbove(quiet.started_at.getTime(), before!.started_at.getTime())
        assert.isAtLeast(quiet.finished_at.getTime(), quiet.started_at.getTime())
        assert.deepStrictEqual(yield* checkpoint(companyId), { cursor: at(30), fence: 3n })
      })
    )

    it.effect("has a row of its own after a time in which the resource may have become late", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = yield* synced(companyId)
        const sql = yield* SqlClient.SqlClient
        source.script = nothing(20)
        yield* run(source, companyId)
        /** Three runs ten minutes apart, the last of them so many minutes ago; and one now. */
        const rowsAfter = Effect.fnUntraced(function* (minutes: number) {
          yield* sql.unsafe(
            `update tributary.runs set quiet_runs = 3, started_at = tributary.now() - $2::int * interval '1 minute',
                    finished_at = tributary.now() - $2::int * interval '1 minute', quiet_since = tributary.now() - ($2::int + 20) * interval '1 minute'
              where company_id = $1 and quiet_runs > 0`,
            [companyId, minutes]
          )
          yield* run(source, companyId)
          return (yield* ledger(companyId)).flatMap(({ quiet_runs: runs }) => (runs > 0 ? [runs] : []))
        })
        assert.deepStrictEqual(yield* rowsAfter(14), [4])
        assert.deepStrictEqual(yield* rowsAfter(20), [3, 1])
      })
    )

    it.effect("makes the resource as fresh as the begin of its read", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = yield* synced(companyId)
        const sql = yield* SqlClient.SqlClient
        source.script = nothing(20)
        for (let runs = 0; runs < 2; runs++) {
          const [{ now }] = yield* sql<{ now: Date }>`select tributary.now() as now`.pipe(
            Effect.map((rows) => [rows[0]!] as const)
          )
          yield* run(source, companyId)
          const fresh = yield* sql<{ fresh_at: Date }>`
            select fresh_at from tributary.freshness where company_id = ${companyId}`
          assert.isAtLeast(fresh[0]!.fresh_at.getTime(), now.getTime())
        }
      })
    )

    it.effect("has a row of its own after a run that found something", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = yield* synced(companyId)
        source.script = nothing(20)
        yield* run(source, companyId)
        source.script = pages({ records: [thing(2, 25)], syncedThrough: at(30) })
        yield* run(source, companyId)
        source.script = nothing(40)
        yield* run(source, companyId)
        assert.deepStrictEqual(
          (yield* ledger(companyId)).map(({ status, quiet_runs: quietRuns }) => [status, quietRuns]),
          [
            ["done", 0],
            ["done", 1],
            ["done", 0],
            ["done", 1]
          ]
        )
      })
    )

    it.effect("is recorded from its begin when a later page has records", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = yield* synced(companyId)
        source.script = pages(
          { records: [], syncedThrough: at(20) },
          { records: [thing(3, 15)], syncedThrough: at(21) }
        )
        const outcome = yield* run(source, companyId)
        const [, found] = yield* ledger(companyId)
        assert.deepStrictEqual([outcome.totals.inserted, found!.status, found!.quiet_runs], [1, "done", 0])
        assert.strictEqual((yield* checkpoint(companyId)).cursor, at(20))
      })
    )

    it.effect("has a row of its own when a person follows it", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = yield* synced(companyId)
        source.script = nothing(20)
        yield* run(source, companyId)
        yield* run(source, companyId, { isFollowed: true })
        assert.deepStrictEqual(
          (yield* ledger(companyId)).map(({ status, quiet_runs: quietRuns }) => [status, quietRuns]),
          [
            ["done", 0],
            ["done", 1],
            ["done", 0]
          ]
        )
      })
    )

    it.effect("is not one whose only record goes to quarantine", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = yield* synced(companyId)
        const bad = { id: "9", field: "name", reason: "holds a NUL character", bytes: '{"id":9}' }
        source.script = pages({ records: [], rejected: [bad], syncedThrough: at(20) })
        const outcome = yield* run(source, companyId)
        assert.deepStrictEqual([outcome.status, outcome.totals.quarantined], ["quarantined", 1])
        assert.strictEqual((yield* ledger(companyId))[1]!.quiet_runs, 0)
      })
    )

    /** Runs a sync during whose first read a statement is executed. The second read returns every record. */
    const disturbed = Effect.fnUntraced(function* (companyId: bigint, statement: string) {
      const sql = yield* SqlClient.SqlClient
      const source = yield* synced(companyId)
      const { page } = source.connector
      source.script = nothing(20)
      const read: ScriptedSource["connector"]["page"] = (request) =>
        Effect.tap(page(request), () => {
          if (source.requests.length > 2) return Effect.void
          source.script = pages({ records: [thing(1, 1)], syncedThrough: at(30) })
          return Effect.orDie(sql.unsafe(statement))
        })
      return yield* syncResource({ companyId, connector: { ...source.connector, page: read }, table })
    })

    it.effect("moves nothing where another run has taken over", () =>
      Effect.gen(function* () {
        const companyId = company()
        const statement = `update tributary.checkpoints set fence = fence + 1, identity_fence = identity_fence + 1 where company_id = ${companyId}`
        const outcome = yield* disturbed(companyId, statement)
        assert.strictEqual(outcome.failure?.kind, "FenceLost")
        assert.strictEqual((yield* checkpoint(companyId)).cursor, at(10))
        assert.lengthOf(
          (yield* ledger(companyId)).filter(({ quiet_runs: quietRuns }) => quietRuns > 0),
          0
        )
      })
    )

    for (const [what, statement] of [
      ["its table was truncated", "truncate erp.things"],
      ["the warehouse's clock was set", clockIs("clock_timestamp() + interval ''1 hour''")]
    ] as const) {
      it.effect(`moves nothing where ${what}: the next attempt reads every record`, () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const companyId = company()
          const outcome = yield* Effect.ensuring(
            disturbed(companyId, statement),
            Effect.orDie(sql.unsafe(clockIs("clock_timestamp()")))
          )
          assert.strictEqual(outcome.status, "done", outcome.failure?.message)
          assert.strictEqual((yield* checkpoint(companyId)).cursor, at(30))
          assert.lengthOf(
            (yield* ledger(companyId)).filter(({ quiet_runs: quietRuns }) => quietRuns > 0),
            0
          )
          assert.lengthOf(yield* sql`select from erp.things where _company_id = ${companyId}`, 1)
        })
      )
    }

    it.effect("has a row with its error when it fails, and the next quiet run follows it", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = yield* synced(companyId)
        source.script = () => {
          throw failing(new ServerFault({ status: 500, code: null, retryAfter: null }))
        }
        const failed = yield* run(source, companyId)
        source.script = nothing(20)
        yield* run(source, companyId)
        const rows = yield* ledger(companyId)
        assert.strictEqual(failed.runId, rows[1]!.id)
        assert.deepStrictEqual(
          rows.map(({ status, error_kind: kind, quiet_runs: quietRuns }) => [status, kind, quietRuns]),
          [
            ["done", null, 0],
            ["failed", "ServerFault", 0],
            ["done", null, 1]
          ]
        )
      })
    )
  })
})
