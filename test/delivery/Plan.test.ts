/** The plan of a round, and what becomes of its changes: order for any changes and failures. */
import { assert, describe, it } from "vitest"
import * as fc from "fast-check"
import type { Change } from "../../src/changes/ChangeFeed.ts"
import * as Message from "../../src/delivery/Message.ts"
import * as Plan from "../../src/delivery/Plan.ts"
import * as Resolve from "../../src/delivery/Resolve.ts"
import * as RetryPolicy from "../../src/delivery/RetryPolicy.ts"
import type { Attempt } from "../../src/delivery/Sending.ts"
import { valuesOf } from "../support/rows.ts"

const change = (position: number, id: number | null): Change => ({
  position: BigInt(position),
  resume: `${position}-1f`,
  companyId: 1n,
  resource: "things",
  id: id === null ? null : BigInt(id),
  version: 1n,
  op: id === null ? "truncate" : "update",
  before: null,
  after: `{"amount":1.10,"big":12345678901234567890.10}`,
  changed: null,
  origin: null,
  source: null,
  runId: null,
  observedAt: null,
  landedAt: new Date(0)
})

const waitingOf = (position: number, id: number | null, attempts: number, nextAttemptMs: number): Plan.Entry => ({
  position: BigInt(position),
  companyId: 1n,
  resource: "things",
  recordId: id === null ? null : BigInt(id),
  attempts,
  failedMs: attempts === 0 ? null : 0,
  nextAttemptMs
})

const ids = fc.oneof(
  { weight: 9, arbitrary: fc.integer({ min: 1, max: 5 }) },
  { weight: 1, arbitrary: fc.constant(null) }
)
const waitings = fc.array(fc.record({ id: ids, attempts: fc.nat(3), nextMs: fc.integer({ min: 0, max: 20 }) }), {
  maxLength: 15
})

describe("a plan", () => {
  it("sends the changes of a record in order, and none past one that waits", () => {
    fc.assert(
      fc.property(
        waitings,
        fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 15 }),
        fc.constantFrom(1, 2, 10),
        fc.integer({ min: 1, max: 20 }),
        (earlier, later, batchMax, max) => {
          // A truncate makes what waits before it obsolete.
          const begin = Math.max(
            0,
            earlier.findLastIndex(({ id }) => id === null)
          )
          const waiting = earlier
            .slice(begin)
            .map(({ id, attempts, nextMs }, index) => waitingOf(index + 1, id, attempts, nextMs))
          const due = Plan.dueOf(waiting, 10, max)
          const fresh = later.map((id, index) => waitingOf(100 + index, id, 0, 0))
          const { lanes, behind } = Plan.make({ waiting, due, fresh, batchMax })
          const sent = lanes.flat(2)
          assert.strictEqual(sent.length + behind.length, due.length + fresh.length)
          const keyOf = Plan.makeKeys(waiting)
          const laneOf = new Map<string, number>()
          for (const [lane, messages] of lanes.entries()) {
            const reached = new Map<string, bigint>()
            for (const message of messages) {
              assert.isAtMost(message.length, batchMax)
              for (const one of message) {
                const { key } = one
                assert.strictEqual(key, keyOf(one))
                assert.isTrue((reached.get(key) ?? 0n) < one.position)
                reached.set(key, one.position)
                assert.strictEqual(laneOf.get(key) ?? lane, lane)
                laneOf.set(key, lane)
              }
            }
          }
          for (const one of sent) {
            const missed = waiting.filter(
              (before) =>
                before.position < one.position &&
                keyOf(before) === one.key &&
                !sent.some((other) => other.position === before.position)
            )
            assert.deepStrictEqual(missed, [])
          }
        }
      )
    )
  })

  it("tries a failing endpoint by the change that was tried least", () => {
    const waiting = [waitingOf(1, 1, 4, 99), waitingOf(2, 2, 0, 99), waitingOf(3, 1, 0, 0)]
    assert.deepStrictEqual(valuesOf(Plan.probeOf(waiting), "position"), [2n])
    assert.deepStrictEqual(Plan.probeOf([]), [])
  })
})

it("a message has the records digit by digit, and an id of its changes", () => {
  const companies = new Map([[1n, "north"]])
  const one = Message.make([change(7, 3)], { isBatch: false, companies })
  assert.strictEqual(one.id, "chg_7_1f")
  assert.include(one.body, `"after":{"amount":1.10,"big":12345678901234567890.10}`)
  assert.include(one.body, `"type":"things.update"`)
  const batch = (...changes: ReadonlyArray<Change>) => Message.make(changes, { isBatch: true, companies })
  assert.strictEqual(batch(change(7, 3)).id, one.id)
  assert.strictEqual(batch(change(7, 3), change(8, 3)).id, batch(change(7, 3), change(8, 3)).id)
  assert.notStrictEqual(
    batch(change(7, 3), change(8, 3), change(10, 3)).id,
    batch(change(7, 3), change(9, 3), change(10, 3)).id
  )
})

describe("the resolution of a round", () => {
  const hourMs = 3_600_000
  const row = {
    kind: "changes" as const,
    failures: 0,
    failingSinceMs: null,
    nextAttemptMs: null,
    succeededMs: null,
    retryHours: 72
  }
  const attemptOf = (id: number, status: number, entry = waitingOf(id, id, 0, 0)): Attempt => ({
    items: [{ ...entry, key: `1/things/${id}` }],
    id: `chg_${id}`,
    status,
    retryAfterMs: null,
    error: status < 300 ? null : `HTTP ${status}`,
    mayHaveArrived: false,
    durationMs: 1
  })
  const resolve = (attempts: ReadonlyArray<Attempt>, more: Partial<Resolve.ResolveOptions["row"]> = {}, nowMs = 0) =>
    Resolve.resolve({
      row: { ...row, ...more },
      waiting: [],
      attempts,
      unsent: [],
      isIdempotent: true,
      nowMs,
      random: () => 0.5
    })

  it("pauses the endpoint only when several records fail without a success", () => {
    const many = [1, 2, 3, 4, 5].map((id) => attemptOf(id, 500))
    assert.strictEqual(resolve(many).nextAttemptMs, 5_000)
    assert.isNull(resolve(many.slice(1)).nextAttemptMs)
    assert.isNull(resolve([...many, attemptOf(6, 204)]).nextAttemptMs)
    assert.isTrue(resolve([attemptOf(1, 204)], { failures: 3, nextAttemptMs: 1 }).isRecovered)
  })

  it("makes a dead letter of a change that fails alone, and ends an endpoint that accepts nothing", () => {
    const old = waitingOf(1, 1, 20, 0)
    const late = 73 * hourMs
    const alone = resolve([attemptOf(1, 500, old)], { succeededMs: late - 1 }, late)
    assert.deepStrictEqual([alone.results, alone.endReason], [["dead"], null])
    const nothing = resolve([attemptOf(1, 500, old)], { failingSinceMs: 0 }, late)
    assert.deepStrictEqual([nothing.results, nothing.endReason !== null], [["failed"], true])
    const rejected = resolve([attemptOf(1, 422, old)], { failingSinceMs: 0 }, late)
    assert.deepStrictEqual([rejected.results, rejected.endReason], [["dead"], null])
  })

  it("waits longer after each failure, up to hours, and never longer than bounded by Retry-After", () => {
    const pauses = [1, 2, 3, 9, 30].map((failures) => RetryPolicy.pauseMs(failures, 0.5))
    assert.deepStrictEqual(pauses, [5_000, 15_000, 45_000, 4 * hourMs, 4 * hourMs])
    assert.strictEqual(RetryPolicy.endpointPauseMs(20, 0.5), 600_000)
    assert.strictEqual(RetryPolicy.boundedRetryAfterMs(100 * hourMs), 6 * hourMs)
    assert.isBelow(RetryPolicy.pauseMs(1, 0), RetryPolicy.pauseMs(1, 1))
  })
})
