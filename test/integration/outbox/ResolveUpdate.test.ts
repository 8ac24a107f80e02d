/** Updates and cancels from the outbox against the reference server and Postgres. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeStand, people, stand } from "./stand.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

suite("updates and cancels from the outbox", stand, (test) => {
  test("send only fields that differ, and leave equal records unchanged", function* () {
    const one = yield* makeStand()
    const before = yield* one.put(people(3))
    yield* one.insert(
      [
        { externalid: "p-0", phone1: "123" },
        { id: before[1]!["id"], commissionrate: "2.000" },
        { externalid: "p-2", commissionrate: "1.5" },
        { externalid: "p-9", phone1: "1" }
      ],
      "update"
    )
    const pushed = yield* one.push()
    assert.strictEqual(pushed.failure, null)
    const rows = yield* one.rows
    assertEach(rows, ({ outcome, code }) => outcome ?? code, ["updated", "updated", "unchanged", "not_found"])
    assert.deepStrictEqual(pushed.calls, { sent: 2, batches: 0 })
    // Before an update its record is read once, also where it is known by its externalid alone.
    yield* one.insert([{ externalid: "p-0", phone1: "456" }], "update")
    const reads = yield* one.reads
    assert.strictEqual((yield* one.push()).failure, null)
    assert.deepStrictEqual((yield* one.reads).slice(reads.length), [`/salesmen/${String(before[0]!["id"])}`])
    const now = yield* one.sourceRecords
    assertEach(now, ({ phone1, commissionrate }) => [phone1, commissionrate], [
      ["456", "1.500"],
      [null, "2.000"],
      [null, "1.500"]
    ])
    assert.deepStrictEqual((yield* one.isEqual).differences, [])
  })

  test("merge a concurrent change of other fields, and reject a change of the same field", function* () {
    const one = yield* makeStand()
    const before = yield* one.put(people(2))
    const ids = before.map(({ id }) => id)
    // The record changes between read and write: the first PATCH of each record is delayed.
    const meddled = new Set<string | null>()
    const { connector } = one.company
    const meddling: typeof connector = {
      ...connector,
      write: (request) =>
        Effect.gen(function* () {
          if (request.operation === "update" && !meddled.has(request.id)) {
            const at = ids.findIndex((id) => String(id) === request.id)
            const { id: _, lastchangedate: __, ...rest } = before[at]!
            meddled.add(request.id)
            yield* one.put([
              { ...rest, id: ids[at], ...(at === 0 ? { phone1: "theirs" } : { commissionrate: "7.000" }) }
            ])
          }
          return yield* connector.write(request)
        })
    }
    yield* one.insert(
      ids.map((id) => ({ id, commissionrate: "2.000" })),
      "update"
    )
    const pushed = yield* one.push({ concurrency: 1 }, { company: { ...one.company, connector: meddling } })
    assert.strictEqual(pushed.status, "done")
    const rows = yield* one.rows
    assert.deepStrictEqual(
      rows.map(({ outcome, code, field, conflict_retries }) => [outcome, code, field, conflict_retries]),
      [
        ["updated", null, null, 1],
        // The record that the first PATCH conflicted with was merged once before the conflict was found.
        [null, "conflict", "commissionrate", 1]
      ]
    )
    const now = yield* one.sourceRecords
    assertEach(now, ({ phone1, commissionrate }) => [phone1, commissionrate], [
      ["theirs", "2.000"],
      [null, "7.000"]
    ])
    assert.strictEqual((yield* one.calls).filter(({ state }) => state === "rejected").length, 2)
    assert.deepStrictEqual((yield* one.isEqual).differences, [])
  })

  test("cancel each record once when responses are lost", function* () {
    const one = yield* makeStand()
    yield* one.put([...people(2), { name: "gone", externalid: "p-gone", cancel: true }])
    yield* one.faults(
      { kind: "dropResponse", method: "DELETE", path: "/salesmen", times: 1 },
      { kind: "status", status: 503, method: "DELETE", path: "/salesmen", times: 1, after: 2 }
    )
    yield* one.insert(
      [{ externalid: "p-0" }, { externalid: "p-1" }, { externalid: "p-gone" }, { externalid: "p-7" }],
      "cancel"
    )
    const pushed = yield* one.push()
    yield* one.noFaults
    assert.strictEqual(pushed.failure, null)
    assert.deepStrictEqual(
      (yield* one.rows).map(({ outcome, code }) => outcome ?? code),
      ["cancelled", "cancelled", "unchanged", "not_found"]
    )
    assert.isTrue((yield* one.sourceRecords).every(({ cancel }) => cancel === true))
    assert.deepStrictEqual((yield* one.isEqual).differences, [])
  })

  test("send several rows of one record in their order", function* () {
    const one = yield* makeStand()
    const [first] = yield* one.put([{ name: "First", externalid: "f" }])
    yield* one.insert(people(30))
    yield* one.insert([{ externalid: "p-3", phone1: "1" }], "update")
    yield* one.insert(
      [
        { externalid: "p-3", phone1: "2" },
        { externalid: "f", phone1: "1" }
      ],
      "update"
    )
    yield* one.insert([{ id: first!["id"], phone1: "2" }], "update")
    yield* one.insert([{ externalid: "p-3" }, { id: first!["id"] }], "cancel")
    const pushed = yield* one.push()
    assert.strictEqual(pushed.failure, null)
    assert.deepStrictEqual([pushed.counts.created, pushed.counts.updated, pushed.counts.cancelled], [30, 4, 2])
    const records = yield* one.sourceRecords
    for (const externalid of ["p-3", "f"]) {
      const record = records.find((one) => one["externalid"] === externalid)
      assert.deepStrictEqual([record?.["phone1"], record?.["cancel"]], ["2", true])
    }
    assert.deepStrictEqual((yield* one.isEqual).differences, [])
  })
})
