import { assert, describe } from "@effect/vitest"
import { Data, Effect, Logger } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as Supervisor from "../../src/processes/Supervisor.ts"
import { test } from "../support/suite.ts"

class Failed extends Data.TaggedError("Failed")<{ readonly message: string }> {}

/** Supervises a part. Returns the number of its starts after each advance of the clock, and the log lines. */
const supervised = Effect.fnUntraced(function* (
  part: (attempt: number) => Effect.Effect<unknown, Failed>,
  advances: ReadonlyArray<number>
) {
  const messages: Array<string> = []
  const logger = Logger.make<unknown, void>(({ message }) => {
    messages.push(String(message))
  })
  let startCount = 0
  yield* Supervisor.runForever(
    "the part",
    Effect.suspend(() => part((startCount += 1)))
  ).pipe(Effect.provide(Logger.layer([logger])), Effect.forkScoped({ startImmediately: true }))
  const counts: Array<number> = []
  for (const seconds of advances) {
    yield* TestClock.adjust(seconds * 1000)
    counts.push(startCount)
  }
  return { counts, messages }
})

const fails = () => Effect.fail(new Failed({ message: "no" }))

describe("the supervisor", () => {
  test("restarts a failed part with growing delays up to one minute", function* () {
    const { counts } = yield* supervised(fails, [0, 1, 1, 1, 4, 8, 16, 32, 60, 59, 1])
    assert.deepStrictEqual(counts, [1, 2, 2, 3, 4, 5, 6, 7, 8, 8, 9])
  })

  test("logs the first failure at once and at most one per minute", function* () {
    const { messages } = yield* supervised(fails, [0, 1, 2, 4, 8, 16])
    assert.deepStrictEqual(messages, ["the part: no; next start in 1 s"])
    const later = yield* supervised(fails, [0, 1, 2, 4, 8, 16, 32])
    assert.lengthOf(later.messages, 2)
    assert.match(later.messages[1]!, /^the part: no, 7 times in a row; next start in 60 s$/)
  })

  test("restarts after a defect and after an end, and resets its delay after a good minute", function* () {
    const { counts } = yield* supervised(
      (begun) =>
        begun === 1
          ? Effect.die(new Error("fault"))
          : begun === 2
            ? Effect.void
            : Effect.delay(Effect.void, "70 seconds"),
      [0, 1, 2, 70, 1]
    )
    assert.deepStrictEqual(counts, [1, 2, 3, 3, 4])
  })
})
