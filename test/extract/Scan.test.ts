import { assert, describe, it } from "vitest"
import { earlier, plan } from "../../src/extract/Scan.ts"
import type { Checkpoint, OpenScan } from "../../src/land/Checkpoint.ts"
import { plain, things } from "../support/tiny.ts"

const nothing: Checkpoint = { fence: 1n, cursor: null, fullScanAt: null, scan: null }
const open = (kind: OpenScan["kind"]): OpenScan => ({
  kind,
  since: kind === "full" ? null : "c0",
  token: "p3",
  pages: 3,
  syncedThrough: "c1",
  beganAt: 1
})

describe("the plan of a scan", () => {
  it("is full without a cursor, and for a resource without modifiedsince", () => {
    assert.strictEqual(plan(things, nothing, { full: false }).kind, "full")
    assert.strictEqual(plan(plain, { ...nothing, cursor: "c1" }, { full: false }).kind, "full")
  })

  it("is incremental from the cursor, unless a full one is wished", () => {
    const checkpoint = { ...nothing, cursor: "2026-01-01T00:00:00.000001Z" }
    assert.deepStrictEqual(plan(things, checkpoint, { full: false }), {
      kind: "incremental",
      since: "2026-01-01T00:00:00.000001Z",
      resume: null
    })
    assert.strictEqual(plan(things, checkpoint, { full: true }).since, null)
  })

  it("goes on with a scan in progress, except with an incremental one when a full one is wished", () => {
    assert.strictEqual(plan(things, { ...nothing, scan: open("full") }, { full: false }).resume?.token, "p3")
    assert.strictEqual(plan(things, { ...nothing, scan: open("full") }, { full: true }).resume?.token, "p3")
    const incremental = { ...nothing, cursor: "c0", scan: open("incremental") }
    assert.strictEqual(plan(things, incremental, { full: false }).resume?.token, "p3")
    assert.isNull(plan(things, incremental, { full: true }).resume)
  })
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
  for (const [first, second, expected] of cases) {
    it(`of ${first} and ${second} is ${expected}`, () => assert.strictEqual(earlier(first, second), expected))
  }
})
