/** The requests of a rehearsal to its sandbox. */
import { assert } from "@effect/vitest"
import * as Rehearse from "../../../src/outbox/Rehearse.ts"
import { makeStand, people, stand } from "./stand.ts"
import { suite } from "../../support/suite.ts"
import { valuesOf } from "../../support/rows.ts"

suite("a rehearsal", stand, (test) => {
  test("looks up only the externalids that a record may have, cancelled and differently spelled ones too", function* () {
    const one = yield* makeStand()
    const [same, cancelled, spelled, ...others] = people(40)
    yield* one.put([same!, { ...cancelled!, cancel: true }, { ...spelled!, externalid: "P-2" }])
    const rehearsal = Rehearse.make({
      connector: one.company.connector,
      resource: one.options.table.resource,
      operation: "create",
      batchRecordsMax: 10,
      useBatch: true,
      isLoaded: () => true
    })
    const before = yield* one.reads
    const inputs = [same!, cancelled!, spelled!, ...others].map((record, index) => ({
      line: index + 1,
      externalid: record.externalid,
      recordId: null,
      text: JSON.stringify(record)
    }))
    yield* rehearsal.write(inputs.slice(0, 20))
    yield* rehearsal.write(inputs.slice(20))
    const lookups = (yield* one.reads)
      .slice(before.length)
      .flatMap((path) => new URLSearchParams(path.split("?")[1]).get("externalid") ?? [])
    assert.sameMembers([...new Set(lookups)], ["p-0", "p-1", "p-2"])
    const { outcomes, rejected } = rehearsal.report()
    assert.deepStrictEqual(outcomes, { adopted: 1, created: others.length })
    assert.deepStrictEqual(valuesOf(rejected, "line"), [2, 3])
  })
})
