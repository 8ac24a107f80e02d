/**
 * Backfills beside live runs: interrupted and resumed, repeated, with a range, two at once, and never with an older row
 * version.
 */
import { assert, describe, layer } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { ServerFault } from "../../../src/connector/SourceError.ts"
import { type Table, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { type SyncMode, syncResource } from "../../../src/sync/SyncResource.ts"
import { layerWarehouse } from "../../support/postgres.ts"
import {
  failing,
  pages,
  plain,
  record,
  type Script,
  scripted,
  type ScriptedSource,
  things
} from "../../support/tiny.ts"
import { flowing } from "../../support/until.ts"

const tables = { things: tableOf(things), plain: tableOf(plain) }

const warehouse = Layer.effectDiscard(TablePlan.apply([tables.things, tables.plain])).pipe(
  Layer.provideMerge(layerWarehouse)
)

let companies = 0n
const company = () => (companies += 1n)

const everything = { since: null, until: null }

interface Options extends SyncMode {
  readonly table?: Table
  readonly batchRecordsMax?: number
}

const run = (
  source: ScriptedSource,
  companyId: bigint,
  { table = tables.things, batchRecordsMax = 5_000, ...mode }: Options = {}
) => syncResource({ companyId, connector: source.connector, table }, { batchRecordsMax, mode })

const backfill = (source: ScriptedSource, companyId: bigint, options: Options = {}) =>
  run(source, companyId, { backfill: everything, ...options })

const live = (companyId: bigint, table = "things") =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<{ id: bigint; name: string; _version: bigint; _run_id: bigint; xmin: string }>(
      `select id, name, _version, _run_id, xmin::text as xmin from erp.${table}
        where _company_id = $1 and _deleted_at is null order by id`,
      [companyId]
    )
  )

const namesOf = (companyId: bigint, table = "things") =>
  Effect.map(live(companyId, table), (rows) => rows.map(({ name }) => name))

const history = (companyId: bigint) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<{ id: bigint; name: string; _op: string; open: boolean; ordered: boolean }>(
      `select id, record ->> 'name' as name, _op, _valid_to is null as open,
              _valid_to is null or _valid_to >= _valid_from as ordered
         from erp_history.things where _company_id = $1 order by id, _version`,
      [companyId]
    )
  )

const checkpoint = (companyId: bigint, lane: "live" | "backfill", name = "things") =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql<{ cursor: string | null; full_scan_at: Date | null; scan_pages: bigint | null; fence: bigint }>`
      select cursor, full_scan_at, scan_pages, fence from tributary.checkpoints
       where company_id = ${companyId} and resource = ${name} and lane = ${lane}`.pipe(Effect.map((rows) => rows[0]))
  )

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000Z`
const thing = (id: number, name: string, second: number) =>
  record(things, { id: String(id), name, lastchangedate: at(second) })

const five = [1, 2, 3, 4, 5].map((n) => ({ records: [thing(n, `n${n}`, n)], syncedThrough: at(10 + n) }))

/** The source, with an effect before the response to a request. */
const before = (
  source: ScriptedSource,
  when: (token: string | null) => boolean,
  what: Effect.Effect<unknown>
): ScriptedSource => ({
  ...source,
  connector: {
    ...source.connector,
    page: (request) =>
      when(request.token) ? Effect.andThen(what, source.connector.page(request)) : source.connector.page(request)
  }
})

/** A script that fails at a page. */
const failingAt =
  (token: string | null, script: Script): Script =>
  (request) => {
    if (request.token === token) throw failing(new ServerFault({ status: 500, code: "x", retryAfter: null }))
    return script(request)
  }

describe("a backfill", () => {
  layer(warehouse, { timeout: "60 seconds" })("against Postgres", (it) => {
    it.effect("resumes from any interrupted page and lands each page once", () =>
      Effect.gen(function* () {
        for (const token of [null, "p1", "p2", "p3", "p4"]) {
          const companyId = company()
          const source = scripted(companyId, failingAt(token, pages(...five)))
          const broken = yield* backfill(source, companyId)
          const done = token === null ? 0 : Number(token.slice(1))
          assert.deepStrictEqual([broken.status, broken.totals.records], ["failed", done])
          source.script = pages(...five)
          source.requests.length = 0
          const outcome = yield* backfill(source, companyId)
          assert.deepStrictEqual(
            [outcome.status, outcome.lane, outcome.resumed, outcome.totals.records],
            ["done", "backfill", done > 0, 5 - done]
          )
          assert.lengthOf(source.requests, 5 - done)
          assert.deepStrictEqual(yield* namesOf(companyId), ["n1", "n2", "n3", "n4", "n5"])
        }
      })
    )

    it.effect("of another range starts again, and of the same range resumes", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, failingAt("p2", pages(...five)))
        const january = { since: at(0), until: at(50) }
        yield* backfill(source, companyId, { backfill: january })
        source.script = pages(...five)
        const other = yield* backfill(source, companyId, { backfill: { since: at(1), until: at(50) } })
        assert.deepStrictEqual([other.resumed, other.totals.pages], [false, 5])
        source.script = failingAt("p3", pages(...five))
        yield* backfill(source, companyId, { backfill: january })
        source.script = pages(...five)
        const same = yield* backfill(source, companyId, { backfill: january })
        assert.deepStrictEqual([same.resumed, same.totals.pages], [true, 2])
      })
    )

    it.effect("that is repeated changes no row", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages(...five))
        yield* backfill(source, companyId)
        const first = yield* live(companyId)
        const again = yield* backfill(source, companyId)
        assert.deepStrictEqual([again.status, again.totals.unchanged, again.totals.updated], ["done", 5, 0])
        assert.deepStrictEqual(yield* live(companyId), first)
        assert.lengthOf(yield* history(companyId), 5)
      })
    )

    it.effect("keeps newer versions that a live run lands between its pages", () =>
      Effect.gen(function* () {
        const companyId = company()
        const old = scripted(companyId, pages(...five))
        yield* run(old, companyId)
        const sql = yield* SqlClient.SqlClient
        // Between pages three and four of the backfill, live syncing lands newer versions of later records.
        const newer = scripted(
          companyId,
          pages({ records: [thing(2, "live 2", 30), thing(4, "live 4", 30)], syncedThrough: at(40) })
        )
        const context = yield* Effect.context<Effect.Services<ReturnType<typeof run>>>()
        const sync = Effect.provideContext(run(newer, companyId), context)
        const stale = before(
          scripted(
            companyId,
            pages(...[1, 2, 3, 4, 5].map((n) => ({ records: [thing(n, `back ${n}`, n)], syncedThrough: at(20) })))
          ),
          (token) => token === "p3",
          sync
        )
        const outcome = yield* backfill(stale, companyId)
        assert.strictEqual((yield* live(companyId))[3]!.name, "live 4")
        assert.isTrue((yield* namesOf(companyId)).includes("live 2"))
        const versions = yield* history(companyId)
        assert.isTrue(versions.every(({ ordered }) => ordered))
        assert.deepStrictEqual(
          versions.filter(({ id }) => id === 4n).map(({ name, open }) => [name, open]),
          [
            ["n4", false],
            ["live 4", true]
          ]
        )
        assert.strictEqual((yield* checkpoint(companyId, "live"))!.cursor, at(40))
        assert.strictEqual(outcome.totals.deleted, 0)
        const [runs] = yield* sql<{ n: number }>`
          select count(*)::int as n from tributary.runs where company_id = ${companyId} and status = 'running'`
        assert.strictEqual(runs!.n, 0)
      })
    )

    it.effect("lands changes within its range including both bounds, and no others", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(
          companyId,
          pages({ records: five.flatMap(({ records }) => records), syncedThrough: at(20) })
        )
        const outcome = yield* backfill(source, companyId, { backfill: { since: at(2), until: at(4) } })
        assert.strictEqual(outcome.kind, "incremental")
        assert.strictEqual(source.requests[0]!.since, at(2))
        // A real source omits records before `since`. The scripted one returns them.
        assert.deepStrictEqual(yield* namesOf(companyId), ["n1", "n2", "n3", "n4"])
        assert.strictEqual((yield* checkpoint(companyId, "live"))!.cursor, null)
        // The end of a day has nine digits.
        const whole = company()
        const day = { since: null, until: "2026-01-01T00:00:03.999999999Z" }
        yield* backfill({ ...source, connector: { ...source.connector } }, whole, { backfill: day })
        assert.deepStrictEqual(yield* namesOf(whole), ["n1", "n2", "n3"])
        // A backfill with a range is not a full scan: it proves no deletion and sets no live cursor.
        assert.strictEqual((yield* checkpoint(whole, "live"))!.full_scan_at, null)
      })
    )

    it.effect("of a resource without modifiedsince reads every record for any range", () =>
      Effect.gen(function* () {
        const companyId = company()
        const rows = [1, 2, 3].map((n) => record(plain, { id: String(n), name: `p${n}` }))
        const source = scripted(companyId, pages({ records: rows.slice(0, 2) }, { records: rows.slice(2) }))
        const options = { table: tables.plain, backfill: { since: at(2), until: null } }
        const outcome = yield* backfill(source, companyId, options)
        assert.deepStrictEqual([outcome.kind, outcome.totals.inserted], ["full", 3])
        assert.isTrue(source.requests.every(({ since }) => since === null))
        // The record is deleted at the source, and the backfill read everything.
        source.script = pages({ records: rows.slice(0, 2) })
        assert.strictEqual((yield* backfill(source, companyId, options)).totals.deleted, 1)
        assert.deepStrictEqual(yield* namesOf(companyId, "plains"), ["p1", "p2"])
      })
    )

    it.effect("of all records into an empty warehouse sets the live cursor", () =>
      Effect.gen(function* () {
        const companyId = company()
        const source = scripted(companyId, pages(...five))
        yield* backfill(source, companyId)
        assert.strictEqual((yield* checkpoint(companyId, "live"))!.cursor, at(11))
        source.script = pages({ records: [thing(3, "later", 20)], syncedThrough: at(30) })
        source.requests.length = 0
        const outcome = yield* run(source, companyId)
        assert.deepStrictEqual([outcome.kind, outcome.totals.updated], ["incremental", 1])
        assert.strictEqual(source.requests[0]!.since, "2025-12-31T23:55:11.000000Z")
        // Later backfills do not change the live cursor.
        source.script = pages({ records: [thing(1, "n1", 1)], syncedThrough: at(5) })
        yield* backfill(source, companyId, { acceptDeletions: true })
        assert.strictEqual((yield* checkpoint(companyId, "live"))!.cursor, at(30))
      })
    )

    it.effect("waits briefly for another backfill of the same resource", () =>
      Effect.gen(function* () {
        const companyId = company()
        const reached = yield* Deferred.make<void>()
        const gate = yield* Deferred.make<void>()
        const source = before(
          scripted(companyId, pages(...five)),
          (token) => token === "p2",
          Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(gate))
        )
        const first = yield* Effect.forkChild(backfill(source, companyId))
        yield* Deferred.await(reached)
        const second = yield* Effect.forkChild(backfill(scripted(companyId, pages(...five)), companyId))
        yield* Deferred.succeed(gate, undefined)
        const outcomes = yield* flowing(Effect.all([Fiber.join(first), Fiber.join(second)]))
        assert.deepStrictEqual(
          outcomes.map(({ status, totals }) => [status, totals.inserted, totals.unchanged]),
          [
            ["done", 5, 0],
            ["done", 0, 5]
          ]
        )
      })
    )

    it.effect("fails with AlreadyRunning when another backfill of the resource takes long", () =>
      Effect.gen(function* () {
        const companyId = company()
        const reached = yield* Deferred.make<void>()
        const gate = yield* Deferred.make<void>()
        const source = before(
          scripted(companyId, pages(...five)),
          (token) => token === "p2",
          Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(gate))
        )
        const first = yield* Effect.forkChild(backfill(source, companyId))
        yield* Deferred.await(reached)
        const clock = yield* Clock.Clock
        // The pauses between attempts pass at once; time limits do not.
        const sleeplessClock = Object.assign(Object.create(clock) as Clock.Clock, {
          sleep: (duration: Duration.Duration) =>
            Duration.toMillis(duration) < 1_000 ? Effect.void : clock.sleep(duration)
        })
        const second = yield* backfill(scripted(companyId, pages(...five)), companyId).pipe(
          Effect.provideService(Clock.Clock, sleeplessClock)
        )
        assert.strictEqual(second.failure?.kind, "AlreadyRunning")
        // Live syncing uses another lane and does not wait.
        const sync = yield* run(scripted(companyId, pages(...five)), companyId).pipe(
          Effect.provideService(Clock.Clock, sleeplessClock)
        )
        assert.strictEqual(sync.status, "done")
        yield* Deferred.succeed(gate, undefined)
        assert.strictEqual((yield* Fiber.join(first)).status, "done")
        assert.lengthOf(yield* live(companyId), 5)
      })
    )

    it.effect("and a concurrent live full scan delete exactly the missing rows", () =>
      Effect.gen(function* () {
        const companyId = company()
        const all = [1, 2, 3, 4, 5, 6].map((n) => thing(n, `n${n}`, n))
        yield* run(scripted(companyId, pages({ records: all, syncedThrough: at(10) })), companyId)
        const context = yield* Effect.context<Effect.Services<ReturnType<typeof run>>>()
        // Record 2 is deleted before both scans. Record 5 is deleted after the backfill has read it and before the live
        // scan starts. Record 7 is new, and only the live scan returns it.
        const now = [1, 3, 4, 6].map((n) => all[n - 1]!)
        const liveScan = scripted(
          companyId,
          pages({ records: now.slice(0, 2), syncedThrough: at(20) }, { records: [...now.slice(2), thing(7, "n7", 15)] })
        )
        let swept: { readonly deleted: number } | undefined
        const sweep = Effect.provideContext(
          Effect.map(run(liveScan, companyId, { full: true }), ({ totals }) => {
            swept = totals
          }),
          context
        )
        const source = before(
          scripted(
            companyId,
            pages(
              { records: [all[0]!, all[2]!], syncedThrough: at(18) },
              { records: [all[3]!, all[4]!], syncedThrough: at(18) },
              { records: [all[5]!], syncedThrough: at(18) }
            )
          ),
          (token) => token === "p2",
          sweep
        )
        const outcome = yield* backfill(source, companyId)
        assert.strictEqual(swept?.deleted, 2)
        assert.deepStrictEqual([outcome.status, outcome.totals.deleted], ["done", 0])
        assert.deepStrictEqual(yield* namesOf(companyId), ["n1", "n3", "n4", "n6", "n7"])
        assert.deepStrictEqual(
          (yield* history(companyId)).filter(({ _op }) => _op === "delete").map(({ id }) => id),
          [2n, 5n]
        )
      })
    )
  })
})
