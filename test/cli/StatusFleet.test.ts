/** `tributary status` of many companies. */
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { fleetLines, readFleet } from "../../src/cli/status/Fleet.ts"
import { readResources } from "../../src/cli/status/Resources.ts"
import * as Outbox from "../../src/status/Outbox.ts"
import * as Schedule from "../../src/status/Schedule.ts"
import * as Webhooks from "../../src/status/Webhooks.ts"
import * as CountCompanies from "../../src/tasks/CountCompanies.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import { companyName, fillFleet } from "../support/fleet.ts"
import { layerWarehouse as warehouse, stopClock } from "../support/postgres.ts"

const names = Array.from({ length: 120 }, (_, index) => companyName(index + 1))

describe("tributary status", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("of many companies", (it) => {
    it.effect("prints totals and the 20 worst companies, or those in a state", () =>
      Effect.gen(function* () {
        yield* stopClock
        yield* fillFleet(names.length, 6)
        assert.include(fleetLines(yield* readFleet(names, null))[0]!, "120 companies: 120 not counted yet")
        yield* CountCompanies.countDue()
        const report = yield* readFleet(names, null)
        const text = fleetLines(report).join("\n")
        assert.include(text, "  120 companies: 1 failing, 1 late, 4 attention, 1 paused, 113 fresh\n")
        assert.include(text, "  720 resources: 1 failing, 1 late, 1 paused, 717 fresh\n")
        assert.include(
          text,
          "1 record in quarantine, 1 dead letter, 1 open gap, 3 refused records, 1 subscription not active"
        )
        assert.match(text, /c00100 +failing +1 +0 +5\/6 +0 s ago +r03: the service failed \(500\)\n +c00050 +late/)
        assert.strictEqual(text.match(/^ {2}c\d{5} /gm)?.length, 20)
        assert.include(text, "20 of 120 companies, the worst first")
        assert.lengthOf(report.worst, 100, "the documented limit of --json")

        const late = fleetLines(yield* readFleet(names, "late")).join("\n")
        assert.deepStrictEqual(late.match(/^ {2}c\d{5}/gm), ["  c00050"])
        assert.include(late, "1 of 1 company late")
      })
    )

    it.effect("reads the details of the named companies only", () =>
      Effect.gen(function* () {
        const resources = yield* readResources(datasetsDefault, [2n, 75n])
        assert.deepStrictEqual(
          resources.map(({ companyId, resource, quarantined }) => [companyId, resource, quarantined]),
          [2n, 75n].flatMap((company) =>
            [1, 2, 3, 4, 5, 6].map((r) => [company, `r0${r}`, company === 75n && r === 6 ? 1 : 0])
          )
        )
        const { tasks } = yield* Schedule.readOf(["c00002"])
        assert.deepStrictEqual([...new Set(tasks.map(({ company }) => company))], ["c00002"])
        assert.deepStrictEqual(
          (yield* Webhooks.readOf(["c00001", "c00002"])).map(({ company, inbox, gaps }) => [
            company,
            inbox.dead,
            gaps.length
          ]),
          [
            ["c00001", 0, 1],
            ["c00002", 1, 0]
          ]
        )
        assert.deepStrictEqual(
          (yield* Outbox.openOf(["c00004"])).map(({ company, refused }) => [company, refused]),
          [["c00004", 3]]
        )
      })
    )
  })
})
