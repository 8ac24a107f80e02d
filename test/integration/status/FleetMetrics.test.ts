/** `/metrics` of many companies: series of the worst of them, and totals of all. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as CountCompanies from "../../../src/tasks/CountCompanies.ts"
import * as InboxMetrics from "../../../src/status/InboxMetrics.ts"
import type * as Metrics from "../../../src/status/Metrics.ts"
import * as OutboxMetrics from "../../../src/status/OutboxMetrics.ts"
import * as SyncMetrics from "../../../src/status/SyncMetrics.ts"
import { companyName, fillFleet, fingerprintOf } from "../../support/fleet.ts"
import { layerWarehouse } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"

const many = 120
const companies = Array.from({ length: many }, (_, index) => ({
  name: companyName(index + 1),
  installation: index < 60 ? "one" : "two",
  fingerprint: fingerprintOf(index + 1),
  usage: Effect.succeed({ requests: 5, retries: 2, rateLimited: 1, bytes: 900 })
}))
const names = companies.map(({ name }) => name)

const companiesIn = (metrics: ReadonlyArray<Metrics.Metric>) =>
  new Set(metrics.flatMap(({ samples }) => samples.flatMap(({ labels }) => labels?.["company"] ?? [])))

suite("the metrics of many companies", layerWarehouse, (test) => {
  test("label the worst 20 companies, and count all of them together", function* () {
    yield* fillFleet(many, 6)
    yield* CountCompanies.countDue()
    const sync = yield* yield* SyncMetrics.make(() => companies)
    const all = [
      ...sync,
      ...(yield* yield* InboxMetrics.make(() => names)),
      ...(yield* yield* OutboxMetrics.make(() => names))
    ]
    const labelled = companiesIn(all)
    assert.strictEqual(labelled.size, 20)
    for (const worst of ["c00100", "c00050", "c00001", "c00002", "c00004", "c00075"]) {
      assert.include([...labelled], worst)
    }
    const valueOf = (name: string, labels: Readonly<Record<string, string>> = {}) =>
      all
        .find((metric) => metric.name === name)!
        .samples.find((sample) => JSON.stringify(sample.labels ?? {}) === JSON.stringify(labels))?.value
    assert.strictEqual(valueOf("tributary_companies", { state: "failing" }), 1)
    assert.strictEqual(valueOf("tributary_companies", { state: "fresh" }), 113)
    assert.strictEqual(valueOf("tributary_installation_companies", { installation: "two", state: "failing" }), 1)
    assert.strictEqual(valueOf("tributary_resources", { state: "fresh" }), 717)
    assert.strictEqual(valueOf("tributary_problems", { kind: "rejected", severity: "critical" }), 3)
    assert.strictEqual(valueOf("tributary_source_requests_total"), 600)
    assert.strictEqual(valueOf("tributary_runs_ended_total", { status: "done" }), 0)
    assert.strictEqual(valueOf("tributary_freshness_late", { company: "c00050", resource: "r04" }), 1)
  })

  test("label every company while there are few", function* () {
    assert.strictEqual(companiesIn(yield* yield* SyncMetrics.make(() => companies.slice(0, 100))).size, 100)
  })
})
