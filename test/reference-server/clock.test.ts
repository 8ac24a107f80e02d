import { assert, describe, it } from "vitest"
import { serverClock } from "../../connectors/service-v2/reference-server/ServerClock.ts"
import { printDay, printInstant, readDay, readInstant } from "../../connectors/service-v2/reference-server/time.ts"

describe("the server's clock", () => {
  it("follows its source forwards only, unless it is set", () => {
    let source = 1000
    const clock = serverClock(() => source)
    source = 2000
    assert.strictEqual(clock.now(), 2000)
    source = 1500
    assert.strictEqual(clock.now(), 2000)
    clock.set(500)
    assert.strictEqual(clock.now(), 500)
    source = 1600
    assert.strictEqual(clock.now(), 600)
    clock.reset()
    assert.strictEqual(clock.now(), 1600)
  })

  it("stops where it was set, and continues from there", () => {
    let source = 1000
    const clock = serverClock(() => source)
    clock.setManual(true)
    source = 9000
    assert.strictEqual(clock.now(), 1000)
    clock.advance(5)
    clock.setManual(false)
    source = 9100
    assert.strictEqual(clock.now(), 1105)
    clock.elsewhen(() => {
      clock.set(1)
      assert.strictEqual(clock.now(), 1)
    })
    assert.strictEqual(clock.now(), 1105)
  })
})

describe("instants and days", () => {
  it("are parsed from the form in which they are printed", () => {
    for (const text of ["2026-03-16T09:00:00.000000Z", "1969-12-31T23:59:59.999999Z", "2199-12-31T23:59:59.000001Z"]) {
      assert.strictEqual(printInstant(readInstant(text)!), text)
    }
    assert.strictEqual(printDay(readInstant("2024-02-29T23:59:59Z")!), "2024-02-29")
    assert.strictEqual(readInstant("2026-03-16t09:00:00.1234567+00:00"), readInstant("2026-03-16T09:00:00.123456Z"))
  })

  it("are rejected if they are invalid or not in UTC", () => {
    for (const text of ["2026-03-16", "2026-03-16T09:00:00", "2026-03-16T09:00:00+01:00", "2026-03-16T24:00:00Z", ""]) {
      assert.isNull(readInstant(text), text)
    }
    for (const text of ["2026-02-29", "2026-13-01", "2026-1-1", "0000-01-01", "2026-01-00"])
      assert.isNull(readDay(text), text)
  })
})
