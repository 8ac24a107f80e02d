import * as Duration from "effect/Duration"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { next, type ResourceSchedule, type Timing, wrongCron } from "../../src/tasks/Cron.ts"

const schedule = (timing: Timing, more: Partial<ResourceSchedule> = {}): ResourceSchedule => ({
  timing,
  missed: "once",
  jitterMax: Duration.zero,
  ...more
})
const cron = (expression: string, timeZone = "UTC", more: Partial<ResourceSchedule> = {}) =>
  schedule({ kind: "cron", expression, timeZone }, more)
const every = (everyMs: number, more: Partial<ResourceSchedule> = {}) =>
  schedule({ kind: "every", interval: Duration.millis(everyMs) }, more)
const at = (text: string) => Date.parse(text)
const minute = 60_000

/** Consecutive times of a schedule, with each run beginning at its time. */
const series = (of: ResourceSchedule, from: string, count: number): ReadonlyArray<string> => {
  const times: Array<string> = []
  for (let began = at(from); times.length < count;) {
    const time = next(of, began + 1, "k", began)!
    times.push(new Date(time).toISOString().replace(":00.000Z", "Z"))
    began = time
  }
  return times
}

describe("the schedule calculation", () => {
  it("measures an interval from the last run, and runs missed times once or skips them, as configured", () => {
    assert.isNull(next(schedule({ kind: "off" }), 0, "k", null))
    assert.isNull(next(schedule({ kind: "off" }), 0, "k", 5))
    const tenMinutes = 10 * minute
    const hourly = "0 * * * *"
    const began = at("2026-05-01T10:00:00Z")
    const cases: ReadonlyArray<readonly [of: ResourceSchedule, now: string, began: number | null, expected: string]> = [
      // A first run: at once, and for cron at the next time.
      [every(tenMinutes, { jitterMax: null }), "10:20", null, "10:20"],
      [cron(hourly), "10:20", null, "11:00"],
      [every(tenMinutes), "10:01", began, "10:10"],
      [every(tenMinutes), "13:25", began, "13:25"],
      [every(tenMinutes, { missed: "skip" }), "13:25", began, "13:30"],
      [cron(hourly), "13:25", began, "13:25"],
      [cron(hourly, "UTC", { missed: "skip" }), "13:25", began, "14:00"]
    ]
    for (const [of, now, last, expected] of cases) {
      assert.strictEqual(next(of, at(`2026-05-01T${now}:00Z`), "k", last), at(`2026-05-01T${expected}:00Z`))
    }
  })

  it("keeps the local time across daylight saving changes, and runs a skipped or repeated daily time once", () => {
    for (const [of, from, expected] of [
      [
        cron("0 3 * * *", "America/New_York"),
        "2026-03-06T12:00:00Z",
        ["2026-03-07T08:00Z", "2026-03-08T07:00Z", "2026-03-09T07:00Z"]
      ],
      [cron("30 2 * * *", "Europe/Berlin"), "2026-03-28T12:00:00Z", ["2026-03-29T01:30Z", "2026-03-30T00:30Z"]],
      [cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00:00Z", ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]],
      // An hourly time is used in both hours.
      [
        cron("0 * * * *", "Europe/Berlin"),
        "2026-10-24T22:30:00Z",
        ["2026-10-24T23:00Z", "2026-10-25T00:00Z", "2026-10-25T01:00Z", "2026-10-25T02:00Z"]
      ]
    ] as const) {
      assert.deepStrictEqual(series(of, from, expected.length), expected)
    }
  })

  it("rejects invalid cron expressions and dates that never occur", () => {
    assert.isUndefined(wrongCron("*/5 6-22 * * 1-5"))
    assert.isUndefined(wrongCron("0 0 29 2 *"))
    assert.match(wrongCron("61 * * * *") ?? "", /is no cron expression/)
    assert.match(wrongCron("hourly") ?? "", /is no cron expression/)
    assert.match(wrongCron("0 0 30 2 *") ?? "", /matches no time/)
  })

  it("spreads resources over the jitter, identically each time", () => {
    const began = at("2026-05-01T10:00:00Z")
    const of = every(10 * minute, { jitterMax: null })
    const times = Array.from({ length: 200 }, (_, index) => next(of, began, `company resource${index}`, began)!)
    const offsets = times.map((time) => time - began - 10 * minute)
    assert.isAtLeast(Math.min(...offsets), 0)
    assert.isBelow(Math.max(...offsets), minute)
    for (const quarter of [0, 1, 2, 3]) {
      const inQuarter = offsets.filter((offset) => Math.floor(offset / (minute / 4)) === quarter).length
      assert.isAbove(inQuarter, 25, `quarter ${quarter} of the jitter`)
    }
    assert.strictEqual(next(of, began, "company resource7", began), times[7])
  })

  const timing: fc.Arbitrary<Timing> = fc.oneof(
    fc
      .integer({ min: 1_000, max: 3 * 86_400_000 })
      .map((ms): Timing => ({ kind: "every", interval: Duration.millis(ms) })),
    fc
      .tuple(
        fc.constantFrom("*/5 * * * *", "30 2 * * *", "0 */3 * * 1-5", "15 4 1 * *", "*/20 * * * * *", "59 23 31 12 *"),
        fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
      )
      .map(([expression, timeZone]): Timing => ({ kind: "cron", expression, timeZone }))
  )
  const schedules: fc.Arbitrary<ResourceSchedule> = fc.record({
    timing,
    missed: fc.constantFrom("once", "skip"),
    jitterMax: fc.option(fc.integer({ min: 0, max: 3_600_000 }).map(Duration.millis))
  })
  const instant = fc.integer({ min: at("2024-01-01T00:00:00Z"), max: at("2032-01-01T00:00:00Z") })
  const since = fc.option(fc.integer({ min: 0, max: 5 * 86_400_000 }), { nil: null })

  it("never returns a time in the past, nor an earlier time for a later instant", () => {
    fc.assert(
      fc.property(schedules, instant, since, fc.integer({ min: 0, max: 86_400_000 }), (of, now, age, later) => {
        const began = age === null ? null : now - age
        const one = next(of, now, "k", began)!
        const two = next(of, now + later, "k", began)!
        assert.isAtLeast(one, now)
        assert.isAtLeast(two, one)
        if (one >= now + later) assert.strictEqual(two, one, "the time stays the same until it has come")
      }),
      { numRuns: 100 }
    )
  })

  it("returns the current instant for a first run that is due now", () => {
    const of = cron("*/5 * * * *")
    const due = at("2026-05-01T10:05:00Z")
    for (const early of [11, 1, 0]) assert.strictEqual(next(of, due - early, "k", null), due)
    assert.strictEqual(next(of, due + 1, "k", null), due + 5 * minute)
  })

  it("keeps a skipped time that is used an hour later, seen from within that hour", () => {
    const of = cron("30 2 * * *", "Europe/Berlin", { missed: "skip", jitterMax: null })
    const used = at("2024-03-31T01:30:00Z")
    for (const early of [86_400_000 - 1, 40 * minute, 30 * minute, 29 * minute, 1, 0]) {
      assert.strictEqual(next(of, used - early, "k", at("2024-03-30T01:29:00Z")), used, `${early} ms before`)
    }
  })

  it("never returns a time before the schedule or beyond the jitter", () => {
    fc.assert(
      fc.property(schedules, instant, fc.integer({ min: 0, max: 5 * 86_400_000 }), fc.string(), (of, now, age, key) => {
        const began = now - age
        const time = next(of, now, key, began)!
        const plain = next({ ...of, jitterMax: Duration.zero }, now, key, began)!
        const { timing } = of
        const jitterDefault = timing.kind === "every" ? Math.min(Duration.toMillis(timing.interval) / 10, minute) : 0
        const jitterMs = Duration.toMillis(of.jitterMax ?? jitterDefault)
        // Without its jitter the same time may already have passed.
        assert.isBelow(time - Math.max(plain, now), jitterMs + 1)
        assert.isAtMost(next({ ...of, jitterMax: Duration.zero }, time - jitterMs, key, began)!, time)
      }),
      { numRuns: 100 }
    )
  })
})
