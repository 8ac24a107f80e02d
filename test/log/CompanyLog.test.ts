import { assert, describe } from "@effect/vitest"
import { Data, Effect, Layer, Logger } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as CompanyLog from "../../src/log/CompanyLog.ts"
import * as Supervisor from "../../src/processes/Supervisor.ts"
import { test } from "../support/suite.ts"

class Failed extends Data.TaggedError("Failed")<{ readonly message: string }> {}

/** The lines that the effect logs, and those that the end of its scope adds. */
const linesOf = (effect: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => {
      lines.push(String(message))
    })
    yield* effect.pipe(Effect.provide(CompanyLog.layer.pipe(Layer.provideMerge(Logger.layer([logger])))))
    return lines
  })

const outage = (companies: number, from = 1) =>
  Effect.forEach(
    Array.from({ length: companies }, (_, index) => `c${from + index}`),
    (name) =>
      Effect.logWarning(`company ${name}: nothing is synced: no answer; next attempt in 4 s`).pipe(
        CompanyLog.about(name)
      ),
    { discard: true }
  )

describe("the log of companies", () => {
  test("logs one condition of 500 companies by its first and one line with the number of the others", function* () {
    const lines = yield* linesOf(Effect.andThen(outage(500), TestClock.adjust("5 seconds")))
    assert.deepStrictEqual(lines, [
      "company c1: nothing is synced: no answer; next attempt in 4 s",
      "company c500: nothing is synced: no answer; next attempt in 4 s (499 other companies since the first: c2, c3, c4, c5, c6 and 494 more)"
    ])
  })

  test("repeats a condition at most once a minute, and logs at its end what is left", function* () {
    const lines = yield* linesOf(
      Effect.gen(function* () {
        yield* outage(2)
        yield* TestClock.adjust("5 seconds")
        for (let round = 0; round < 11; round += 1) {
          yield* outage(1, 10 + round)
          yield* TestClock.adjust("5 seconds")
        }
        yield* outage(1, 40)
      })
    )
    assert.lengthOf(lines, 3)
    assert.match(lines[1]!, /\(1 other company since the first: c2\)$/)
    assert.match(lines[2]!, /\(12 other companies since the first: c10, c11, c12, c13, c14 and 7 more\)$/)
  })

  test("keeps the lines of other conditions, of lower levels, and of the process", function* () {
    const lines = yield* linesOf(
      Effect.gen(function* () {
        yield* outage(1)
        yield* Effect.logWarning("company c2: the token is refused").pipe(CompanyLog.about("c2"))
        yield* Effect.logInfo("c3: succeeds again").pipe(CompanyLog.about("c3"))
        yield* Effect.logInfo("c4: succeeds again").pipe(CompanyLog.about("c4"))
        yield* Effect.logWarning("the warehouse is gone")
        yield* Effect.logWarning("the warehouse is gone")
      })
    )
    assert.lengthOf(lines, 6)
  })

  test("groups the failures of services that belong to companies", function* () {
    const lines = yield* linesOf(
      Effect.gen(function* () {
        yield* Effect.forEach(
          ["c1", "c2", "c3"],
          (name) =>
            Supervisor.runForever(
              `company ${name}: processing events`,
              Effect.fail(new Failed({ message: "no connection" }))
            ).pipe(CompanyLog.about(name), Effect.forkScoped({ startImmediately: true })),
          { discard: true }
        )
        yield* TestClock.adjust("5 seconds")
      }).pipe(Effect.scoped)
    )
    assert.strictEqual(lines[0], "company c1: processing events: no connection; next start in 1 s")
    assert.match(lines[1]!, /^company c3: .*\(2 other companies since the first: c2, c3\)$/)
    assert.lengthOf(lines, 2)
  })
})
