/**
 * Backfills beside live runs: interrupted and resumed, repeated, with a range, two at once, and never with an older row
 * version.
 */
import { assert } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Fiber } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { execute } from "../../support/postgres.ts"
import { pages, scripted, type ScriptedSource } from "../../support/tiny.ts"
import {
  at,
  checkpoint,
  company,
  disturbed,
  failingAt,
  history,
  list,
  live,
  page,
  plains,
  run,
  type RunOptions,
  tables,
  thing,
  upTo,
  valuesOf,
  warehouse,
  newSource
} from "./syncing.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

const everything = { since: null, until: null }

const backfill = (source: ScriptedSource, companyId: bigint, options: RunOptions = {}) =>
  run(source, companyId, { backfill: everything, ...options })

/** Five pages of one record each. */
const five = pages(...upTo(5).map((n) => page(10 + n, thing(n, `n${n}`, n))))
const fiveNames = ["n1", "n2", "n3", "n4", "n5"]

suite("a backfill", warehouse, (test) => {
  test("of another range starts again, and of the same range resumes", function* () {
    const { companyId, source } = newSource(five)
    const january = { since: at(0), until: at(50) }
    for (const [failsAt, range, resumed, requests] of [
      ["p2", { since: at(1), until: at(50) }, false, 5],
      ["p3", january, true, 2]
    ] as const) {
      source.script = failingAt(failsAt, five)
      yield* backfill(source, companyId, { backfill: january })
      source.script = five
      const outcome = yield* backfill(source, companyId, { backfill: range })
      assert.deepStrictEqual([outcome.resumed, outcome.totals.pages], [resumed, requests])
    }
  })

  test("of all records sets the live cursor of an empty warehouse, and changes no row when it is repeated", function* () {
    const { companyId, source } = newSource(five)
    yield* backfill(source, companyId)
    assert.strictEqual((yield* checkpoint(companyId)).cursor, at(11))
    const first = yield* live(companyId)
    const again = yield* backfill(source, companyId)
    assert.deepStrictEqual([again.status, again.totals.unchanged, again.totals.updated], ["done", 5, 0])
    assert.deepStrictEqual(yield* live(companyId), first)
    assert.lengthOf(yield* history(companyId), 5)
    source.script = list(30, thing(3, "later", 20))
    const outcome = yield* run(source, companyId)
    assert.deepStrictEqual([outcome.kind, outcome.totals.updated], ["incremental", 1])
    assert.strictEqual(source.requests.at(-1)!.since, at(11 - 300))
    // Later backfills do not change the live cursor.
    source.script = list(5, thing(1, "n1", 1))
    yield* backfill(source, companyId, { acceptDeletions: true })
    assert.strictEqual((yield* checkpoint(companyId)).cursor, at(30))
  })

  test("keeps newer versions that a live run lands between its pages", function* () {
    const companyId = company()
    yield* run(scripted(companyId, five), companyId)
    // Between pages three and four of the backfill, live syncing lands newer versions of later records.
    const newer = scripted(companyId, list(40, thing(2, "live 2", 30), thing(4, "live 4", 30)))
    const old = scripted(companyId, pages(...upTo(5).map((n) => page(20, thing(n, `back ${n}`, n)))))
    const sync = run(newer, companyId)
    const outcome = yield* backfill(yield* disturbed(old, "p3", sync, "before"), companyId)
    const [, second, , fourth] = yield* valuesOf(companyId)
    assert.deepStrictEqual([second, fourth], ["live 2", "live 4"])
    const versions = yield* history(companyId)
    assert.isTrue(versions.every(({ isOrdered }) => isOrdered))
    assertEach(
      versions.filter(({ id }) => id === 4),
      ({ name, open }) => [name, open],
      [
        ["n4", false],
        ["live 4", true]
      ]
    )
    assert.strictEqual((yield* checkpoint(companyId)).cursor, at(40))
    assert.strictEqual(outcome.totals.deleted, 0)
    assert.lengthOf(
      yield* execute("select from tributary.runs where company_id = $1 and status = 'running'", [companyId]),
      0
    )
  })

  test("lands changes within its range including both bounds, and no others", function* () {
    // A real source omits records before `since`. The scripted one returns them.
    for (const [since, until, names] of [
      [at(2), at(4), fiveNames.slice(0, 4)],
      // The end of a day has nine digits.
      [null, "2026-01-01T00:00:03.999999999Z", fiveNames.slice(0, 3)]
    ] as const) {
      const { companyId, source } = newSource(list(20, ...upTo(5).map((n) => thing(n, `n${n}`, n))))
      const outcome = yield* backfill(source, companyId, { backfill: { since, until } })
      assert.strictEqual(outcome.kind, since === null ? "full" : "incremental")
      assert.strictEqual(source.requests[0]!.since, since)
      assert.deepStrictEqual(yield* valuesOf(companyId), [...names])
      // A backfill with a range is not a full scan: it proves no deletion and sets no live cursor.
      assert.deepInclude(yield* checkpoint(companyId), { cursor: null, full_scan_at: null })
    }
  })

  test("of a resource without modifiedsince reads every record for any range", function* () {
    const { companyId, source } = newSource(pages(page(null, ...plains("x", 1, 2)), page(null, ...plains("x", 3))))
    const options = { table: tables.plain, backfill: { since: at(2), until: null } }
    const outcome = yield* backfill(source, companyId, options)
    assert.deepStrictEqual([outcome.kind, outcome.totals.inserted], ["full", 3])
    assert.isTrue(source.requests.every(({ since }) => since === null))
    // The record is deleted at the source, and the backfill read everything.
    source.script = list(null, ...plains("x", 1, 2))
    assert.strictEqual((yield* backfill(source, companyId, options)).totals.deleted, 1)
    assert.lengthOf(yield* live(companyId, "plains"), 2)
  })

  test("fails with AlreadyRunning when another backfill of the resource takes long", function* () {
    const companyId = company()
    const reached = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    const held = Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(gate))
    const source = yield* disturbed(scripted(companyId, five), "p2", held, "before")
    const first = yield* Effect.forkChild(backfill(source, companyId))
    yield* Deferred.await(reached)
    const clock = yield* Clock.Clock
    // The pauses between attempts pass at once; time limits do not.
    const sleeplessClock = Object.assign(Object.create(clock) as Clock.Clock, {
      sleep: (duration: Duration.Duration) =>
        Duration.toMillis(duration) < 1_000 ? Effect.void : clock.sleep(duration)
    })
    const sleepless = Effect.provideService(Clock.Clock, sleeplessClock)
    const second = yield* sleepless(backfill(scripted(companyId, five), companyId))
    assert.strictEqual(second.failure?.kind, "AlreadyRunning")
    // Live syncing uses another lane and does not wait.
    assert.strictEqual((yield* sleepless(run(scripted(companyId, five), companyId))).status, "done")
    yield* Deferred.succeed(gate, undefined)
    assert.strictEqual((yield* Fiber.join(first)).status, "done")
    assert.lengthOf(yield* live(companyId), 5)
  })

  test("and a concurrent live full scan delete exactly the missing rows", function* () {
    const companyId = company()
    const all = upTo(7).map((n) => thing(n, `n${n}`, n))
    const only = (...ids: ReadonlyArray<number>) => ids.map((id) => all[id - 1]!)
    yield* run(scripted(companyId, list(10, ...only(1, 2, 3, 4, 5, 6))), companyId)
    // Record 2 is deleted before both scans. Record 5 is deleted after the backfill has read it and before the live
    // scan starts. Record 7 is new, and only the live scan returns it.
    const liveScan = scripted(companyId, pages(page(20, ...only(1, 3)), page(null, ...only(4, 6, 7))))
    let swept = 0
    // A minute after the read: the clock of the process stands still otherwise, and the warehouse's does not.
    const sweep = Effect.map(
      Effect.andThen(TestClock.adjust(60_000), run(liveScan, companyId, { full: true })),
      ({ totals }) => {
        swept = totals.deleted
      }
    )
    const source = scripted(companyId, pages(page(18, ...only(1, 3)), page(18, ...only(4, 5)), page(18, ...only(6))))
    const outcome = yield* backfill(yield* disturbed(source, "p2", sweep), companyId)
    assert.strictEqual(swept, 2)
    assert.deepStrictEqual([outcome.status, outcome.totals.deleted], ["done", 0])
    assert.deepStrictEqual(yield* valuesOf(companyId), ["n1", "n3", "n4", "n6", "n7"])
    assert.deepStrictEqual(
      (yield* history(companyId)).filter(({ op }) => op === "delete").map(({ id }) => id),
      [2, 5]
    )
  })
})
