/** A short run of the fuzzer in process; `npm run fuzz` runs a long one. */
import { assert, it } from "vitest"
import { fuzz, printFailure } from "./fuzz.ts"

it(
  "a random request is answered as the OpenAPI document says and leaves the records valid",
  { timeout: 600_000 },
  async () => {
    const seed = 20260316
    const figures = await fuzz({ requests: 1500, seed, answerMsMax: null, failuresMax: 3 })
    assert.strictEqual(figures.failures.map((failure) => printFailure(failure, seed)).join("\n"), "")
    assert.isUndefined(figures.byStatus["500"])
    // A run whose requests are all rejected would prove nothing.
    const [succeeded, operations] = figures.succeeded
    assert.isAbove(succeeded, operations * 0.6)
    assert.isAbove(figures.commits, 300)
    assert.isAbove(figures.codes.size, 20)
  }
)
