/** The time range of a backfill. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schema } from "effect"
import { rangeOf, Time } from "../../src/cli/TimeRange.ts"
import { test } from "../support/suite.ts"

const isTime = (text: string) => Schema.decodeUnknownResult(Time)(text)._tag === "Success"

const range = (since: string | null, until: string | null) =>
  rangeOf(Option.fromNullishOr(since), Option.fromNullishOr(until))

describe("the time range of a backfill", () => {
  it("accepts dates and UTC instants and rejects any other text", () => {
    for (const text of ["2026-01-31", "2024-02-29", "2026-01-31T08:00:00Z", "2026-01-31T08:00:00.123456789Z"]) {
      assert.isTrue(isTime(text), text)
    }
    for (const text of [
      "",
      "yesterday",
      "2026-02-30",
      "2025-02-29",
      "2026-13-01",
      "2026-1-1",
      "2026-01-31T24:00:00Z",
      "2026-01-31T08:00:00",
      "2026-01-31T08:00:00+02:00",
      "2026-01-31 08:00:00Z",
      "2026-01-31T08:00:00Z'"
    ]) {
      assert.isFalse(isTime(text), text)
    }
  })

  test("includes both ends, and a date covers its whole day", function* () {
    assert.deepStrictEqual(yield* range("2026-01-01", "2026-01-01"), {
      since: "2026-01-01T00:00:00Z",
      until: "2026-01-01T23:59:59.999999999Z"
    })
    assert.deepStrictEqual(yield* range(null, null), { since: null, until: null })
    assert.strictEqual(
      (yield* range("2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.11Z")).since,
      "2026-01-01T00:00:00.1Z"
    )
    for (const [since, until] of [
      ["2026-01-02", "2026-01-01"],
      ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"],
      ["2026-01-01T00:00:00.2Z", "2026-01-01T00:00:00.19Z"]
    ] as const) {
      const failed = yield* Effect.flip(range(since, until))
      assert.strictEqual(failed.code, 1)
      assert.include(failed.message, "--since must be before --until")
    }
  })
})
