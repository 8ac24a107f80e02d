/** Waiting for what real programs do, by asking and never by the clock alone. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

/** Asks until the answer is as wanted; the last answer is in the failure. */
export const until = <A>(what: string, question: Effect.Effect<A>, wanted: (answer: A) => boolean, seconds = 30) => {
  let last: A | undefined
  return question.pipe(
    Effect.tap((answer) =>
      Effect.sync(() => {
        last = answer
      })
    ),
    Effect.repeat({ until: wanted, schedule: Schedule.spaced("50 millis") }),
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
