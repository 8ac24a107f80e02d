/**
 * Reads of single records and the inbox queue: slow and failing reads, expired leases and claimed batches, against the
 * reference server and Postgres.
 */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { Budget, makeOwn } from "../../../src/budget/Budget.ts"
import type { ConnectorShape } from "../../../src/connector/Connector.ts"
import * as CircuitBreaker from "../../../src/sync/CircuitBreaker.ts"
import { compareWithRow } from "../../../src/inbox/CompareWithRow.ts"
import * as InboxStore from "../../../src/inbox/InboxStore.ts"
import { processDue } from "../tasks/working.ts"
import { type Limits, fetchRecords } from "../../../src/inbox/RecordFetcher.ts"
import { type Table, tableOf } from "../../../src/warehouse/Table.ts"
import { layerSource, makeCompany } from "../../support/source.ts"
import { testOf } from "../../support/suite.ts"
import { until } from "../../support/until.ts"
import { assertEach } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

const path = "salesmen"
const table = tableOf(serviceV2.resources.get(path)!)
const tables: ReadonlyMap<string, Table> = new Map([[path, table]])

const stand = layerSource([table])

/** A new company whose source has this number of records. */
const makeStand = Effect.fnUntraced(function* (
  records: number,
  budget?: Budget["Service"],
  retry = { attemptsMax: 2, backoffBase: Duration.millis(5), backoffMax: Duration.millis(10) }
) {
  const making = makeCompany(tables, { requestTimeout: Duration.seconds(20), retry })
  const one = yield* budget === undefined ? making : Effect.provideService(making, Budget, budget)
  const { id, name, sql } = one
  const { connector: client } = one.company
  /** The requested records. */
  const requestedIds: Array<string> = []
  const connector: ConnectorShape = {
    ...client,
    get: (resource, recordId) =>
      Effect.suspend(() => {
        requestedIds.push(recordId)
        return client.get(resource, recordId)
      })
  }
  const company = { ...one.company, connector }
  yield* one.put(
    path,
    Array.from({ length: records }, (_, at) => ({ id: at + 1, name: `s${at + 1}` }))
  )
  let events = 0
  /** Inserts an event into the inbox as the receiver would. */
  const accept = (recordId: number | null, more: { readonly stamp?: string; readonly bytes?: number } = {}) =>
    sql`insert into tributary.inbox (company, event_id, event_type, resource, record_id, record_modified_at, sent_at, body)
        values (${name}, ${`evt_${id}_${(events += 1)}`}, 'salesmen.updated', ${path}, ${recordId === null ? null : String(recordId)},
                ${more.stamp ?? null}, tributary.now(), ${Buffer.alloc(more.bytes ?? 2, " ")})`
  const inbox = sql<{ state: string; attempts: number; reason: string | null; wait_ms: number }>`
    select state, attempts, coalesce(resolution, last_error) as reason, (extract(epoch from next_attempt_at - tributary.now()) * 1000)::float8 as wait_ms
      from tributary.inbox where company = ${name} order by id`
  const take = InboxStore.fetchDue({ company: name, resource: path, inFlight: [], countMax: 500 })
  const runs = sql<{ status: string; error_kind: string | null }>`
    select status, error_kind from tributary.runs where company_id = ${id} order by id`
  /** Reads the due events and no later ones. `isOther` means that another resource waits. */
  const read = Effect.fnUntraced(function* (
    limits: Partial<Limits>,
    more: { readonly isOther?: boolean; readonly identifyTimeout?: Duration.Duration } = {}
  ) {
    const dueEvents = yield* take
    const breaker = yield* CircuitBreaker.make(company, {
      identifyTimeout: more.identifyTimeout ?? Duration.seconds(5)
    })
    return yield* fetchRecords(
      { company, breaker },
      { companyId: BigInt(id), tables, table },
      {
        first: dueEvents.map((event) => ({ recordId: event.recordId!, events: [event] })),
        more: () => Effect.succeed(more.isOther === true ? null : []),
        idleTimeout: Duration.zero,
        limits,
        onResolved: () => {}
      }
    )
  })
  const drain = processDue(company)
  return { ...one, accept, inbox, take, runs, requestedIds, read, drain }
})

layer(stand, { excludeTestServices: true, timeout: "60 seconds" })("RecordFetcher and the inbox queue", (it) => {
  const test = testOf(it)
  test("reads other records while some reads hang, and postpones the hanging ones", function* () {
    const { faults, noFaults, accept, inbox, read, runs } = yield* makeStand(6)
    const rules = [1, 2, 3, 4].map((id) => ({ path: `/${path}/${id}`, kind: "delay", ms: 20_000 }))
    yield* faults(...rules)
    for (const id of [1, 2, 3, 4, 5, 6]) yield* accept(id)
    const reading = yield* Effect.forkChild(read({ stuckAfter: Duration.millis(200) }))
    yield* until("the inbox", inbox, (events) => events[4]!.state === "done" && events[5]!.state === "done")
    yield* Fiber.interrupt(reading)
    assert.isTrue((yield* inbox).slice(0, 4).every(({ attempts, reason }) => attempts === 0 && reason === null))
    const outcome = yield* read({ readTimeout: Duration.millis(300) })
    yield* noFaults
    assert.deepStrictEqual([outcome.status, outcome.totals.records], ["done", 0])
    for (const { state, attempts, reason } of (yield* inbox).slice(0, 4)) {
      assert.deepStrictEqual([state, attempts], ["pending", 1])
      assert.match(reason!, /GET \/salesmen\/\d: no whole answer within 300 ms/)
    }
    assert.deepStrictEqual(valuesOf(yield* runs, "status"), ["abandoned", "done"])
  })

  test("releases the records it has not started when another resource waits", function* () {
    const { faults, noFaults, accept, inbox, read, requestedIds } = yield* makeStand(30)
    yield* faults({ path: `/${path}`, kind: "delay", ms: 20_000 })
    for (let id = 1; id <= 30; id += 1) yield* accept(id)
    const outcome = yield* read({ gracePeriod: Duration.millis(300) }, { isOther: true })
    yield* noFaults
    assert.deepStrictEqual([outcome.status, outcome.totals.records], ["done", 0])
    assert.deepStrictEqual(requestedIds, ["1", "2", "3", "4"])
    for (const { state, attempts, reason } of yield* inbox) {
      assert.deepStrictEqual([state, attempts, reason], ["pending", 0, null])
    }
  })

  test("completes the retries of a record when another resource waits", function* () {
    const retry = { attemptsMax: 4, backoffBase: Duration.millis(400), backoffMax: Duration.millis(400) }
    const { faults, noFaults, accept, inbox, read } = yield* makeStand(1, undefined, retry)
    yield* faults({ path: `/${path}/1`, kind: "status", status: 500 })
    yield* accept(1)
    const outcome = yield* read({ gracePeriod: Duration.millis(50) }, { isOther: true })
    yield* noFaults
    assert.strictEqual(outcome.status, "done")
    const [event] = yield* inbox
    assert.deepStrictEqual([event!.state, event!.attempts], ["pending", 1])
    assert.match(event!.reason!, /GET \/salesmen\/1: .*500/)
  })

  test("excludes the wait for the rate budget from its timeouts", function* () {
    const budget = yield* makeOwn(null)
    const { accept, inbox, read, runs } = yield* makeStand(1, budget)
    yield* accept(1)
    yield* budget.pause(Duration.millis(2_500))
    const outcome = yield* read({ stuckAfter: Duration.millis(100), readTimeout: Duration.millis(1_200) })
    assert.deepStrictEqual([outcome.status, outcome.totals.records], ["done", 1])
    assert.isAtLeast(outcome.durationMs, 1_300)
    assertEach(yield* inbox, ({ state, attempts }) => `${state} ${attempts}`, ["done 0"])
    assert.lengthOf(yield* runs, 1)
  })

  test("keeps the backoff of a failed record when more events of it arrive", function* () {
    const { faults, noFaults, accept, inbox, drain } = yield* makeStand(2)
    yield* faults({ path: `/${path}/2`, kind: "status", status: 500 })
    // A read of another record shows each time that the source responds.
    for (let at = 0; at < 3; at += 1) {
      yield* accept(2)
      yield* accept(1)
      yield* drain
    }
    const failed = (yield* inbox).filter((_, at) => at % 2 === 0)
    assert.deepStrictEqual(
      failed.map(({ state, attempts }) => [state, attempts]),
      Array.from({ length: 3 }, () => ["pending", 1])
    )
    assert.isTrue(failed.every(({ wait_ms }) => wait_ms <= 10_000))
    yield* noFaults
    // One read resolves all events of the record, including those that are not due yet.
    yield* accept(2)
    yield* drain
    assert.isTrue((yield* inbox).every(({ state }) => state === "done"))
  })

  test("claims some postponed events together with due events of the same record", function* () {
    const { sql, name, accept, take } = yield* makeStand(0)
    yield* sql`
          insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, body, last_error, next_attempt_at)
          select ${name}, ${name} || n, 'salesmen.updated', ${path}, '7', tributary.now(), ''::bytea, 'postponed',
                 tributary.now() + interval '1 hour'
            from generate_series(1, 400) n`
    assert.lengthOf(yield* take, 0)
    yield* accept(8)
    assert.deepStrictEqual(valuesOf(yield* take, "recordId"), ["8"])
    yield* accept(7)
    const events = yield* take
    assert.deepStrictEqual([events.length, events.at(-1)!.recordId], [102, "7"])
    const ids = events.map(({ id }) => id)
    assert.deepStrictEqual(
      ids,
      ids.toSorted((a, b) => (a < b ? -1 : 1))
    )
    // An event that is not due keeps its time, unless it is resolved.
    yield* InboxStore.resolve(
      ids.map((id) => ({ id, state: "pending", reason: "again", isAttempt: true, pauseMs: 5_000 }))
    )
    const [again] = yield* sql<{ count: bigint }>`
          select count(*) as count from tributary.inbox where company = ${name} and attempts = 1`
    assert.strictEqual(again!.count, 2n)
    yield* InboxStore.resolve(ids.map((id) => ({ id, state: "done", reason: null })))
    const [done] = yield* sql<{ count: bigint }>`
          select count(*) as count from tributary.inbox where company = ${name} and state = 'done'`
    assert.strictEqual(done!.count, 102n)
  })

  test("claims events up to a byte limit, and at least one event of any size", function* () {
    const { accept, take } = yield* makeStand(0)
    const mebibyte = 1024 * 1024
    for (const [at, size] of [5, 5, 5].entries()) yield* accept(at + 1, { bytes: size * mebibyte })
    assert.deepStrictEqual(valuesOf(yield* take, "recordId"), ["1", "2"])
    const other = yield* makeStand(0)
    yield* other.accept(1, { bytes: 9 * mebibyte })
    yield* other.accept(2)
    assert.deepStrictEqual(valuesOf(yield* other.take, "recordId"), ["1"])
  })

  test("skips an event only if the row's timestamp is newer in every digit", function* () {
    const { id, sql, accept, take } = yield* makeStand(0)
    yield* sql`insert into erp.salesmen (_company_id, id, lastchangedate, _origin, _observed_at)
                   values (${id}, 1, '2026-01-01T00:00:00.500000Z', 'scan', tributary.now() - interval '1 hour')`
    const stamps = {
      "2025-12-31T23:59:59Z": true,
      "2026-01-01T00:00:00Z": false,
      "2026-01-01T00:00:00.4Z": true,
      "2026-01-01T00:00:00.5Z": false,
      "2026-01-01T00:00:00.499999Z": true,
      "2026-01-01T00:00:00.500000Z": false,
      "2026-01-01T00:00:00.500001Z": false
    }
    for (const stamp of Object.keys(stamps)) yield* accept(1, { stamp })
    const events = yield* take
    const compared = yield* compareWithRow(table, BigInt(id), events)
    assert.deepStrictEqual(
      events.map((event) => [event.stamp, compared.get(event.id)!.skipReason]),
      Object.entries(stamps).map(([stamp, isNewer]) => [stamp, isNewer ? "the warehouse holds a newer version" : null])
    )
  })

  test("ignores a row read before the warehouse clock was set back when it resolves an event", function* () {
    const { id, sql, accept, take } = yield* makeStand(0)
    yield* accept(1)
    const events = yield* take
    const reasonAfter = (when: string) =>
      Effect.gen(function* () {
        yield* sql`delete from erp.salesmen where _company_id = ${id}`
        yield* sql`insert into erp.salesmen (_company_id, id, _origin, _observed_at)
                       values (${id}, 1, 'scan', tributary.now() + ${when}::interval)`
        return (yield* compareWithRow(table, BigInt(id), events)).get(events[0]!.id)!.skipReason
      })
    assert.strictEqual(yield* reasonAfter("0 s"), "the record was read after the event had come")
    assert.isNull(yield* reasonAfter("1 h"))
  })
})
