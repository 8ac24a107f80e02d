/** Waiting for real programs, by polling and never by the clock alone. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

/** Repeats a question until the answer is as expected. The failure contains the last answer. */
export const until = <A, R = never>(
  what: string,
  question: Effect.Effect<A, never, R>,
  isExpected: (answer: A) => boolean,
  seconds = 30
) => {
  let last: A | undefined
  return question.pipe(
    Effect.tap((answer) =>
      Effect.sync(() => {
        last = answer
      })
    ),
    Effect.repeat({ until: isExpected, schedule: Schedule.spaced("50 millis") }),
    Effect.timeoutOrElse({
      duration: seconds * 1000,
      orElse: () =>
        Effect.die(
          new Error(
            `${what}: not within ${seconds} s; last: ${JSON.stringify(last, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value))}`
          )
        )
    })
  )
}
