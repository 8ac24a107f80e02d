import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { make, phaseNames, RunPhases } from "../../src/sync/RunPhases.ts"

const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)

describe("the phases of a run", () => {
  it("are on one axis, also after the axis grew", () => {
    const recorder = make(1_000)
    recorder.observe("budget", 1_000, 1_100, null)
    recorder.observe("request", 1_100, 1_400, "ServerFault 503")
    recorder.observe("retry", 1_400, 2_400, "ServerFault 503")
    recorder.observe("request", 2_400, 2_500, "200")
    recorder.record("landing", 2_500, 2_600)
    const short = recorder.read(2_600)
    assert.strictEqual(short.took_ms, 1_600)
    assert.strictEqual(short.slot_ms, 20)
    assert.deepStrictEqual(short.phases.budget, { ms: 100, times: 1, longest_ms: 100, slots: [20, 20, 20, 20, 20] })
    assert.deepStrictEqual(short.phases.request.slots.slice(0, 6), [0, 0, 0, 0, 0, 20])
    assert.deepInclude(short.phases.request, { ms: 400, times: 2, longest_ms: 300 })
    assert.deepStrictEqual(short.answers, [
      { answer: "ServerFault 503", requests: 1, retries: 1, retry_ms: 1_000 },
      { answer: "200", requests: 1, retries: 0, retry_ms: 0 }
    ])
    // An hour later.
    recorder.record("landing", 3_600_000, 3_601_000)
    const long = recorder.read(3_601_000)
    assert.deepStrictEqual(long.phases.budget, { ms: 100, times: 1, longest_ms: 100, slots: [100] })
    assert.isAtMost(long.phases.landing.slots.length, 120)
    assert.strictEqual(sum(long.phases.landing.slots), 1_100)
  })

  it("keep their sums in bounded memory, whatever is recorded", () => {
    const times = fc.array(
      fc.record({
        name: fc.constantFrom(...phaseNames),
        from: fc.integer({ min: 0, max: 10_000_000 }),
        ms: fc.integer({ min: 0, max: 5_000_000 })
      }),
      { maxLength: 60 }
    )
    fc.assert(
      fc.property(times, (all) => {
        const recorder = make(0)
        for (const { name, from, ms } of all) recorder.record(name, from, from + ms)
        const read = recorder.read(20_000_000)
        assert.deepStrictEqual(Schema.decodeUnknownSync(RunPhases)(JSON.parse(JSON.stringify(read))), read)
        for (const name of phaseNames) {
          const own = all.filter((one) => one.name === name)
          const { ms, slots, times: entered } = read.phases[name]
          assert.strictEqual(entered, own.length)
          assert.strictEqual(ms, sum(own.map((one) => one.ms)))
          assert.isAtMost(slots.length, 120)
          assert.isAtMost(Math.abs(sum(slots) - ms), 60)
        }
      })
    )
  })

  it("count further kinds of answers together", () => {
    const recorder = make(0)
    for (let index = 0; index < 30; index++) recorder.observe("request", index, index + 1, `kind ${index}`)
    const { answers } = recorder.read(30)
    assert.lengthOf(answers, 21)
    assert.deepInclude(answers.at(-1), { answer: "other", requests: 10 })
  })
})
