import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { canonical, canonicalNumber, NotJson, NumberToken, parse, print } from "../../src/json/Json.ts"
import { IdSet } from "../../src/verify/Compare.ts"
import { instantOf, plainDecimal } from "../../src/verify/Expected.ts"
import { chanceOfFinding, numbersBetween } from "../../src/verify/Sample.ts"

describe("the JSON parser for comparison", () => {
  it("parses what JSON.parse parses", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        assert.deepStrictEqual(JSON.parse(print(parse(text))), JSON.parse(text))
        assert.strictEqual(canonical(parse(text)), canonical(parse(JSON.stringify(JSON.parse(text), null, 2))))
      })
    )
  })

  it("keeps every digit, and distinguishes names with escapes", () => {
    const value = parse('{"a":1.10,"big":12345678901234567890.10,"\\\\":0,"\\"":1,"e":1E+2}')
    assert.strictEqual(print(value), '{"a":1.10,"big":12345678901234567890.10,"\\\\":0,"\\"":1,"e":1E+2}')
    assert.strictEqual(canonical(value), '{"\\"":1,"\\\\":0,"a":1.10,"big":12345678901234567890.10,"e":100}')
    assert.deepStrictEqual(parse(" -0.0 "), new NumberToken("-0.0"))
  })

  it("rejects invalid JSON", () => {
    const numbers = ["01", "1.", ".5", "+1", "-", "NaN", "1e"]
    const values = ["", " ", "nul", "tru", '"', '"\n"', '"\\x"', "[1] 2"]
    const nested = ["{", "[1", "[1,]", '{"a"}', '{"a":}', "{a:1}", '{"a":1,}', "[".repeat(5_000)]
    for (const text of [...numbers, ...values, ...nested]) assert.throws(() => parse(text), NotJson, undefined, text)
  })

  it("prints numbers as Postgres prints a numeric", () => {
    const pairs = { "1e2": "100", "1.50e1": "15.0", "12e-1": "1.2", "-0.00": "0.00", "0.5e-3": "0.0005", "10": "10" }
    for (const [sent, kept] of Object.entries(pairs)) assert.strictEqual(canonicalNumber(sent), kept, sent)
  })
})

describe("values for comparison", () => {
  it("compare decimals and instants by their value", () => {
    assert.strictEqual(plainDecimal("-00012.3400"), "-12.34")
    assert.strictEqual(plainDecimal("-0.000"), "0")
    assert.isNull(plainDecimal("1e3"))
    assert.strictEqual(instantOf("2026-01-01T01:30:00+01:30")!.text, "2026-01-01T00:00:00.000000Z")
    assert.strictEqual(instantOf("2025-12-31T23:00:00.5-01")!.text, "2026-01-01T00:00:00.500000Z")
    assert.strictEqual(instantOf("0001-01-01")!.text, "0001-01-01T00:00:00.000000Z")
    assert.isTrue(instantOf("2026-01-01T00:00:00.0000001Z")!.isFiner)
    assert.isFalse(instantOf("2026-01-01T00:00:00.1234560Z")!.isFiner)
    for (const text of ["infinity", "2026-01-01T00:00:00", "44-03-15 BC", ""]) assert.isNull(instantOf(text), text)
  })

  it("include a set that counts distinct and repeated ids", () => {
    const ids = new IdSet()
    for (let id = 5_000; id > 0; id--) ids.add(String(id * 2))
    ids.add("9223372036854775807")
    ids.add("2")
    ids.add("-3")
    assert.deepStrictEqual(ids.counts(), { distinct: 5_002, repeated: 1 })
    assert.isTrue([2n, 10_000n, -3n, 9223372036854775807n].every((id) => ids.has(id)))
    assert.isFalse([1n, 9_999n, 10_002n, -4n].some((id) => ids.has(id)))
    assert.isFalse(new IdSet().has(1n))
  })
})

describe("a random sample", () => {
  it("is the same for the same seed, and within the range", () => {
    const drawn = numbersBetween(7, 20, 10n, 1_000n)
    assert.deepStrictEqual(numbersBetween(7, 20, 10n, 1_000n), drawn)
    assert.notDeepEqual(numbersBetween(8, 20, 10n, 1_000n), drawn)
    assert.strictEqual(new Set(drawn).size, 20)
    assert.isTrue(drawn.every((id) => BigInt(id) >= 10n && BigInt(id) <= 1_000n))
    assert.isAtMost(numbersBetween(1, 20, 1n, 5n).length, 5)
  })

  it("has the computed chance of finding a difference", () => {
    assert.strictEqual(chanceOfFinding(0, 100, 1), 0)
    assert.strictEqual(chanceOfFinding(100, 100, 1), 1)
    assert.strictEqual(chanceOfFinding(10, 100, 0), 0)
    assert.closeTo(chanceOfFinding(1, 100, 25), 0.25, 1e-12)
    assert.closeTo(chanceOfFinding(2, 4, 2), 1 - (2 / 4) * (1 / 3), 1e-12)
  })
})
