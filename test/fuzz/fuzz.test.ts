/** A short run of the fuzzer; `npm run fuzz` runs a long one. */
import { assert, describe, it } from "vitest"
import { fuzz, printFailure } from "./fuzz.ts"

describe("a random request", () => {
  it("is answered as documented and leaves the records valid", { timeout: 60_000 }, async () => {
    const seed = 20260316
    const told = await fuzz({ requests: 3000, seed, sockets: 0.05, failuresMax: 3 })
    assert.strictEqual(told.failures.map((failure) => printFailure(failure, seed)).join("\n"), "")
    assert.isUndefined(told.byStatus["500"])
    // A run whose requests are all rejected would prove nothing.
    const [succeeded, operations] = told.succeeded
    assert.isAbove(succeeded, operations * 0.6)
    assert.isAbove(told.commits, 300)
    assert.isAbove(told.overSockets, 60)
    assert.isAbove(told.codes.size, 20)
  })
})
