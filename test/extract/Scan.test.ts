import * as Duration from "effect/Duration"
import { assert, describe, it } from "vitest"
import { before, earlier, isInstant } from "../../src/connector/Instant.ts"
import { plan as planned, type ScanPlan } from "../../src/extract/Scan.ts"
import { engineDefault } from "../../src/sync/EngineSettings.ts"
import type { Resource } from "../../src/catalogue/Resource.ts"
import type { Checkpoint, OpenScan } from "../../src/land/Checkpoint.ts"
import { plain, things } from "../support/tiny.ts"

const nothing: Checkpoint = {
  scanRefetchGeneration: null,
  fence: 1n,
  cursor: null,
  fullScanAt: null,
  overlapMs: 0,
  fullScanReason: null,
  scan: null,
  adoptsSource: false
}
const day = 24 * 60 * 60 * 1000
const nowMs = 100 * day
const anyPlan = (resource: Resource, checkpoint: Checkpoint, full: boolean, settings = engineDefault) =>
  planned(resource, checkpoint, { full }, settings, nowMs)
const plan = (...of: Parameters<typeof anyPlan>): ScanPlan => {
  const result = anyPlan(...of)
  if (result.kind === "children") assert.fail("this is not a scan")
  return result
}
const open = (kind: OpenScan["kind"]): OpenScan => ({
  kind,
  since: kind === "full" ? null : "c0",
  until: null,
  token: "p3",
  pages: 3,
  syncedThrough: "c1",
  beganAt: 1
})

describe("the plan of a scan", () => {
  it("is full without a cursor, and for a resource without modifiedsince", () => {
    assert.strictEqual(plan(things, nothing, false).kind, "full")
    assert.strictEqual(plan(plain, { ...nothing, cursor: "c1" }, false).kind, "full")
  })

  it("is incremental from the cursor, unless a full scan is requested", () => {
    const checkpoint = { ...nothing, cursor: "2026-01-01T00:00:00.000001Z" }
    assert.deepStrictEqual(plan(things, checkpoint, false), {
      kind: "incremental",
      since: "2025-12-31T23:55:00.000001Z",
      until: null,
      resume: null,
      cursor: "2026-01-01T00:00:00.000001Z",
      overlapMs: 300_000,
      reason: null
    })
    const exact = { ...engineDefault, overlap: Duration.zero }
    assert.strictEqual(plan(things, checkpoint, false, exact).since, "2026-01-01T00:00:00.000001Z")
    const widened = { ...checkpoint, overlapMs: 3_600_000 }
    assert.strictEqual(plan(things, widened, false).since, "2025-12-31T23:00:00.000001Z")
    assert.strictEqual(plan(things, checkpoint, true).since, null)
  })

  it("resumes an open scan, except an incremental one if a full scan is requested", () => {
    assert.strictEqual(plan(things, { ...nothing, scan: open("full") }, false).resume?.token, "p3")
    assert.strictEqual(plan(things, { ...nothing, scan: open("full") }, true).resume?.token, "p3")
    const incremental = { ...nothing, cursor: "c0", scan: open("incremental") }
    assert.strictEqual(plan(things, incremental, false).resume?.token, "p3")
    assert.isNull(plan(things, incremental, true).resume)
  })
})

describe("a periodic full scan", () => {
  const swept = { ...nothing, cursor: "2026-01-01T00:00:00Z", fullScanAt: nowMs - 2 * day }

  it("is planned if the last full scan is old, or if requested", () => {
    assert.strictEqual(plan(things, swept, false).kind, "incremental")
    assert.strictEqual(plan(things, { ...swept, fullScanAt: nowMs - 8 * day }, false).kind, "full")
    assert.strictEqual(
      plan(things, swept, false, { ...engineDefault, fullScanInterval: Duration.days(1) }).kind,
      "full"
    )
    assert.strictEqual(
      plan(things, { ...swept, fullScanAt: 0 }, false, { ...engineDefault, fullScanInterval: Duration.infinity }).kind,
      "incremental"
    )
    const full = plan(things, { ...swept, fullScanReason: "because" }, false)
    assert.deepStrictEqual([full.kind, full.reason], ["full", "because"])
  })

  it("alternates with scans of changed parents' children for a resource without cursor", () => {
    const settings = { ...engineDefault, cursorlessScanInterval: Duration.days(3) }
    assert.strictEqual(anyPlan(plain, swept, false).kind, "full")
    assert.strictEqual(anyPlan(plain, swept, false, settings).kind, "children")
    assert.strictEqual(anyPlan(plain, swept, true, settings).kind, "full")
    assert.strictEqual(anyPlan(plain, { ...swept, fullScanAt: nowMs - 3 * day }, false, settings).kind, "full")
    assert.strictEqual(anyPlan(plain, nothing, false, settings).kind, "full")
  })
})

describe("a cursor moved back", () => {
  const cases: ReadonlyArray<readonly [string, number, string]> = [
    ["2026-01-01T00:00:00Z", 300_000, "2025-12-31T23:55:00Z"],
    ["2026-01-01T00:00:00.123456789Z", 1, "2026-01-01T00:00:00.122456789Z"],
    ["2026-01-01T00:00:00.1Z", 50, "2026-01-01T00:00:00.0Z"],
    ["2026-01-01T00:00:00.000000Z", 0, "2026-01-01T00:00:00.000000Z"],
    ["2016-12-31T23:59:60Z", 1000, "2016-12-31T23:59:58Z"],
    ["1970-01-01T00:00:01Z", 60_000, "1970-01-01T00:00:00Z"],
    ["opaque", 1000, "opaque"]
  ]
  it.each(cases)("from %s by %i ms is %s", (cursor, by, expected) => assert.strictEqual(before(cursor, by), expected))
})

describe("the earlier of two cursors", () => {
  const cases: ReadonlyArray<readonly [string | null, string | null, string | null]> = [
    ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z"],
    ["2026-01-01T00:00:01Z", "2026-01-01T00:00:00.999999999Z", "2026-01-01T00:00:00.999999999Z"],
    ["2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.10Z", "2026-01-01T00:00:00.1Z"],
    ["2026-01-01T00:00:00.10Z", "2026-01-01T00:00:00.2Z", "2026-01-01T00:00:00.10Z"],
    ["opaque-b", "opaque-a", "opaque-b"],
    [null, "2026-01-01T00:00:00Z", null],
    ["2026-01-01T00:00:00Z", null, "2026-01-01T00:00:00Z"]
  ]
  it.each(cases)("of %s and %s is %s", (first, second, expected) =>
    assert.strictEqual(earlier(first, second), expected)
  )
})

describe("isInstant", () => {
  for (const [text, expected] of [
    ["2026-02-28T00:00:00Z", true],
    ["2026-12-31T23:59:60.5Z", true],
    ["2026-02-30T00:00:00Z", false],
    ["2026-02-28T25:00:00Z", false],
    ["2026-02-28", false],
    ["token", false],
    [null, false]
  ] as const)
    it(`returns ${expected} for ${text}`, () => assert.strictEqual(isInstant(text), expected))
})
