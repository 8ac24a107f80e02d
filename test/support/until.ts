/**
 * Waiting for a condition, by asking again.
 *
 * Under a test clock no time of the machine passes: {@link until} moves the clock between two questions, for code that
 * itself waits or polls; {@link settled} moves nothing, for an answer of a database or a peer. The timeout of the test
 * ends both. Under the clock of the machine (tests with processes) `until` asks every 50 ms and has a limit.
 */
import { Clock, Duration, Effect } from "effect"
import * as TestClock from "effect/testing/TestClock"

const everyMs = 50
/** Small, so that the clock stays near that of the warehouse. */
const flowMs = 5

/** Lets sockets and other work of the process have their turn. The millisecond saves the processor; nothing waits for it. */
export const turn = Effect.callback<void>((resume) => {
  setTimeout(() => resume(Effect.void), 1)
})

/** The effect, while the test clock moves, for code that waits on its way. */
export const flowing = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.raceFirst(effect, Effect.forever(Effect.andThen(TestClock.adjust(flowMs), turn)))

const textOf = (answer: unknown) =>
  JSON.stringify(answer, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value))

/** A question to a peer, or to a variable. */
type Question<A, E, R> = Effect.Effect<A, E, R> | (() => A)

/** Asks until the answer is as expected, and pauses before it asks again. The failure contains the last answer. */
const ask = <A, E, R>(
  what: string,
  question: Question<A, E, R>,
  isExpected: (answer: A) => boolean,
  pause: Effect.Effect<void>,
  attemptsMax: number
) => {
  let last: A | undefined
  return Effect.gen(function* () {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      last = yield* Effect.isEffect(question) ? question : Effect.sync(question)
      if (isExpected(last)) return last
      yield* pause
    }
    return yield* Effect.die(new Error(`${what}: not in time; last: ${textOf(last)}`))
  }).pipe(Effect.onInterrupt(() => Effect.sync(() => process.stderr.write(`${what}; last: ${textOf(last)}\n`))))
}

/** Repeats a question until the answer is as expected. `seconds` limits the wait under the machine's clock. */
export const until = <A, E = never, R = never>(
  what: string,
  question: Question<A, E, R>,
  isExpected: (answer: A) => boolean,
  seconds = 30,
  stepMs = everyMs
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.Clock, (clock) =>
    "adjust" in clock
      ? ask(what, question, isExpected, Effect.andThen(TestClock.adjust(stepMs), turn), Infinity)
      : ask(what, question, isExpected, clock.sleep(Duration.millis(everyMs)), (seconds * 1000) / everyMs)
  )

/** The same, for runs that compare the clock with the warehouse's: the test clock stays near it. */
export const untilNear = <A, E = never, R = never>(
  what: string,
  question: Question<A, E, R>,
  isExpected: (answer: A) => boolean
): Effect.Effect<A, E, R> => until(what, question, isExpected, undefined, flowMs)

/** The same for a condition of this process. */
export const untilTrue = (what: string, isTrue: () => boolean, seconds?: number): Effect.Effect<boolean> =>
  until(what, isTrue, (answer) => answer, seconds)

/** Repeats a question until the answer is as expected. The clock does not move. */
export const settled = <A, E = never, R = never>(
  what: string,
  question: Question<A, E, R>,
  isExpected: (answer: A) => boolean
): Effect.Effect<A, E, R> => ask(what, question, isExpected, turn, Infinity)
