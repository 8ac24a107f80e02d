import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  format,
  lineTotal,
  readDecimal,
  rescale,
  units,
  unitsOf
} from "../../connectors/service-v2/reference-server/decimal.ts"
import { assertEach } from "../support/assertions.ts"

describe("decimals", () => {
  it("are printed as parsed, padded, for every scale", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
        fc.integer({ min: 0, max: 10 }),
        (value, scale) => {
          const text = format(value, scale)
          assert.strictEqual(unitsOf(readDecimal(text)!, scale), value)
          assert.strictEqual(units(text, scale), value)
        }
      )
    )
  })

  it("have no sign for zero", () => {
    assert.strictEqual(format(unitsOf(readDecimal("-0")!, 4), 4), "0.0000")
  })

  it("are rounded half away from zero", () => {
    assertEach([25n, 24n, -25n, -24n, 5n, -5n], (value) => rescale(value, 1, 0), [3n, 2n, -3n, -2n, 1n, -1n])
  })

  it("are multiplied exactly before they are rounded", () => {
    assert.strictEqual(format(lineTotal(units("3", 6), units("0.333333", 6)), 4), "1.0000")
    assert.strictEqual(format(lineTotal(units("-1.5", 6), units("0.00005", 6)), 4), "-0.0001")
    assert.strictEqual(format(lineTotal(units("0.000001", 6), units("0.000001", 6)), 4), "0.0000")
  })
})
