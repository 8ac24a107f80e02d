/**
 * The phases of a run on a time axis, and the answers of the source.
 *
 * Promise: the memory is bounded however long the run is. The axis has at most {@link slotsMax} slots; when the run is
 * longer, two neighbours become one. A phase that overlaps another one (reading is ahead of landing), or itself (requests
 * in parallel), counts each time. What is recorded is stored when the run ends; a killed process leaves none.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type RequestObserver, RequestTimes } from "../connector/Connector.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** The phases: waiting for a permit of the rate budget, a request in flight, the pause before a retry, a landing. */
export const phaseNames = ["budget", "request", "retry", "landing"] as const
export type PhaseName = (typeof phaseNames)[number]

const slotsMax = 120
const slotMsMin = 5
/** Further kinds of answers count as `other`. */
const answersMax = 20

const Phase = Schema.Struct({
  /** Total time in milliseconds. */
  ms: Schema.Number,
  /** How many times it was entered. */
  times: Schema.Number,
  /** The longest time in milliseconds. */
  longest_ms: Schema.Number,
  /** Milliseconds in each slot of the axis; slots at the end without any are left out. */
  slots: Schema.Array(Schema.Number)
})

/** The stored form, `tributary.runs.phases`. */
export const RunPhases = Schema.Struct({
  /** Time from the start of the work to its end, in milliseconds. */
  took_ms: Schema.Number,
  /** Length of a slot in milliseconds. */
  slot_ms: Schema.Number,
  phases: Schema.Struct({ budget: Phase, request: Phase, retry: Phase, landing: Phase }),
  /** The answers by kind: a status, or the kind of a failure with its status. */
  answers: Schema.Array(
    Schema.Struct({
      answer: Schema.String,
      requests: Schema.Number,
      /** Requests that were sent again because of it, and the time until then in milliseconds. */
      retries: Schema.Number,
      retry_ms: Schema.Number
    })
  )
})
export type RunPhases = typeof RunPhases.Type
type Answer = RunPhases["answers"][number]

export interface PhaseRecorder {
  /** Adds a time; both ends are on the monotonic clock, in milliseconds. */
  readonly record: (name: PhaseName, fromMs: number, toMs: number) => void
  /** The observer of the requests of the run. */
  readonly observe: RequestObserver
  /** What was recorded until this time of the monotonic clock. */
  readonly read: (nowMs: number) => RunPhases
}

const whole = (ms: number): number => Math.round(ms)

/** A recorder whose axis begins at this time of the monotonic clock. */
export const make = (originMs: number): PhaseRecorder => {
  let slotMs = slotMsMin
  const make = () => ({ ms: 0, times: 0, longest_ms: 0, slots: new Float64Array(slotsMax) })
  const phases = { budget: make(), request: make(), retry: make(), landing: make() }
  const answers = new Map<string, { -readonly [Name in keyof Answer]: Answer[Name] }>()

  const widen = () => {
    slotMs *= 2
    for (const name of phaseNames) {
      const { slots } = phases[name]
      for (let index = 0; index < slotsMax; index++)
        slots[index] = index * 2 < slotsMax ? slots[index * 2]! + slots[index * 2 + 1]! : 0
    }
  }
  const record: PhaseRecorder["record"] = (name, fromMs, toMs) => {
    const phase = phases[name]
    const from = Math.max(0, fromMs - originMs)
    const to = Math.max(from, toMs - originMs)
    phase.ms += to - from
    phase.times += 1
    phase.longest_ms = Math.max(phase.longest_ms, to - from)
    for (let length = slotMs * slotsMax; length <= to; length *= 2) widen()
    for (let index = Math.floor(from / slotMs); index * slotMs < to; index++)
      phase.slots[index]! += Math.min(to, (index + 1) * slotMs) - Math.max(from, index * slotMs)
  }
  const answerOf = (answer: string) => {
    const name = answers.has(answer) || answers.size < answersMax ? answer : "other"
    const known = answers.get(name)
    if (known !== undefined) return known
    const added = { answer: name, requests: 0, retries: 0, retry_ms: 0 }
    answers.set(name, added)
    return added
  }
  const observe: RequestObserver = (phase, fromMs, toMs, answer) => {
    record(phase, fromMs, toMs)
    if (answer === null) return
    const counted = answerOf(answer)
    if (phase === "request") counted.requests += 1
    if (phase !== "retry") return
    counted.retries += 1
    counted.retry_ms += toMs - fromMs
  }
  const shown = ({ ms, times, longest_ms, slots }: (typeof phases)[PhaseName]) => ({
    ms: whole(ms),
    times,
    longest_ms: whole(longest_ms),
    slots: Array.from(slots.subarray(0, slots.findLastIndex((value) => whole(value) > 0) + 1), whole)
  })
  const read = (nowMs: number): RunPhases => ({
    took_ms: whole(Math.max(0, nowMs - originMs)),
    slot_ms: slotMs,
    phases: {
      budget: shown(phases.budget),
      request: shown(phases.request),
      retry: shown(phases.retry),
      landing: shown(phases.landing)
    },
    answers: [...answers.values()].map((one) => ({ ...one, retry_ms: whole(one.retry_ms) }))
  })
  return { record, observe, read }
}

/** Runs the effect, and adds the time that it takes, also where it fails. */
export const timed = <A, E, R>(
  recorder: PhaseRecorder,
  name: PhaseName,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.Clock, (clock) => {
    const fromMs = MonotonicClock.nowMs(clock)
    return Effect.ensuring(
      effect,
      Effect.sync(() => recorder.record(name, fromMs, MonotonicClock.nowMs(clock)))
    )
  })

/** Records the requests of the effect with the recorder of their time. */
export const observed = <A, E, R>(recorderOf: () => PhaseRecorder, effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, RequestTimes, (...observation) => recorderOf().observe(...observation))
