/**
 * Ten thousand companies with 86 resources each, as rows: how long the pages, `status`, `/metrics` and `doctor` take.
 *
 * The readers run below the commands: a configuration file of 10,000 companies takes seconds to read, so that such
 * companies are rows of a table.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { serve } from "../../../src/cli/doctor/Webhooks.ts"
import { about } from "../../../src/cli/doctor/Finding.ts"
import { fleetLines, readFleet } from "../../../src/cli/status/Fleet.ts"
import * as InboxMetrics from "../../../src/status/InboxMetrics.ts"
import * as Metrics from "../../../src/status/Metrics.ts"
import * as OpenNumbers from "../../../src/status/OpenNumbers.ts"
import * as OutboxMetrics from "../../../src/status/OutboxMetrics.ts"
import * as SyncMetrics from "../../../src/status/SyncMetrics.ts"
import * as CountCompanies from "../../../src/tasks/CountCompanies.ts"
import { boundAt, boundMs } from "../../package/Start.ts"
import { companyName, fillFleet, fingerprintOf } from "../../support/fleet.ts"
import { ask, shownCompany, showing } from "../../support/pages.ts"
import { layerWarehouse } from "../../support/postgres.ts"

const one = shownCompany("any", 1n)
const companies = Array.from({ length: 10_000 }, (_, index) => ({
  ...one,
  name: companyName(index + 1),
  fingerprint: fingerprintOf(index + 1)
}))
const names = companies.map(({ name }) => name)

const pages = [
  "/",
  "/?state=late",
  "/?text=c0999",
  "/resources",
  "/resources?state=late",
  "/resources?company=c00100",
  "/companies/c00100",
  "/companies/c00100/r03",
  "/runs",
  "/runs?company=c00100",
  "/runs?status=failed",
  "/?sign=quarantined",
  "/?order=name&after=0%20c05000",
  "/processes",
  "/processes/p1",
  "/webhooks/events",
  "/webhooks/events?time=hour&state=dead_letter",
  "/webhooks/events?time=day&resource=r02&company=c00003",
  "/outbox/rows",
  "/outbox/rows?state=rejected",
  "/outbox/rows?state=pending&company=c00005",
  "/quarantine?company=c00075",
  "/quarantine?state=resolved",
  "/invariants?invariant=rule-1",
  "/endpoints",
  "/budget",
  "/budget?company=c00100",
  "/webhooks",
  "/webhooks?company=c00001",
  "/outbox",
  "/quarantine",
  "/invariants",
  "/records"
]
/** The median server time of a page over loopback. */
const pageMaxMs = 300
const pageMaxBytes = 200_000
/** No page lists all companies. */
const namesMax = 210
const views = 7
const readMaxMs = 1_000
/** Every page reads them. */
const numbersMaxMs = 2
/** A longer read leaves metrics out (`src/status/Metrics.ts`). */
const metricsMaxMs = 2_000

/** How much longer work takes on this machine than on the one for which the limits are promised. */
const slowness = boundAt(process.execPath, { cwd: process.cwd(), env: process.env }) / boundMs

/** The median of several times of a page, after a first view. */
const median = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const times: Array<number> = []
  for (let round = 0; round < views; round += 1) {
    const beganMs = performance.now()
    yield* effect
    times.push(Math.round(performance.now() - beganMs))
  }
  return times.toSorted((a, b) => a - b)[views >> 1]!
})

/** The shortest of several times: other programs of the machine only add to it. */
const shortest = Effect.fnUntraced(function* <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) {
  const times: Array<number> = []
  for (let round = 0; round < 4; round += 1) {
    const beganMs = performance.now()
    yield* effect
    times.push(Math.round(performance.now() - beganMs))
  }
  console.log(`${what}: ${times.join(", ")} ms`)
  return Math.min(...times)
})

layer(layerWarehouse, { excludeTestServices: true, timeout: "10 minutes" })("ten thousand companies", (it) => {
  it.effect(
    "are counted in parts, and then pages, status, metrics and doctor answer within their limits",
    () =>
      Effect.gen(function* () {
        yield* fillFleet(companies.length, 86)
        const beganMs = performance.now()
        while ((yield* CountCompanies.countDue()).some(({ isNew }) => isNew));
        console.log(`first count: ${Math.round(performance.now() - beganMs)} ms`)
        assert.isBelow(yield* shortest("a look for due companies", CountCompanies.countDue()), readMaxMs * slowness)

        const url = yield* showing(companies)
        for (const path of pages) {
          const { status, text } = yield* ask(`${url}${path}`)
          assert.strictEqual(status, 200, path)
          assert.isBelow(Buffer.byteLength(text), pageMaxBytes, path)
          assert.isBelow(new Set(text.match(/\bc\d{5}\b/g)).size, namesMax, `${path} lists companies`)
          const ms = yield* median(ask(`${url}${path}`))
          console.log(`${path}: ${ms} ms, ${Math.round(Buffer.byteLength(text) / 1000)} kB`)
          assert.isBelow(ms, pageMaxMs * slowness, path)
        }
        const numbersMs = yield* shortest("the numbers of the menu", OpenNumbers.read)
        assert.isAtMost(numbersMs, Math.ceil(numbersMaxMs * slowness))
        const report = yield* readFleet(names, null)
        assert.include(fleetLines(report)[0]!, "10,000 companies: 100 failing, 100 late")
        assert.isBelow(yield* shortest("status", readFleet(names, null)), readMaxMs * slowness)
        assert.isBelow(yield* shortest("doctor", serve(about("serve"), names)), readMaxMs * slowness)

        const usage = one.connector.usage
        // Every read makes its own cache: this is the first read of a process.
        const sync = SyncMetrics.make(() => companies.map(({ name, fingerprint }) => ({ name, fingerprint, usage })))
        const metrics = Effect.gen(function* () {
          const all = [yield* sync, yield* InboxMetrics.make(() => names), yield* OutboxMetrics.make(() => names)]
          return Metrics.render((yield* Effect.all(all)).flat())
        })
        const lines = (yield* metrics).split("\n").length
        console.log(`lines of /metrics: ${lines}`)
        assert.isAbove(lines, 1_000)
        assert.isBelow(lines, 20_000)
        assert.isBelow(yield* shortest("/metrics", metrics), metricsMaxMs)
      }).pipe(Effect.scoped),
    600_000
  )
})
