/**
 * The page size of lists where none is configured. The documents state no maximum (spec LIM-13), so the client requests
 * large pages and learns from the answers.
 *
 * Promise: a list is read with the largest size that the source accepts, as far as it is one of {@link sizes}. A size that
 * the source refuses, or answers too slowly, costs at most two requests, and is not repeated for a day. Where the source
 * accepts no size, none is sent.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { PageSize, SourcePageSizes } from "../../../src/connector/PageSizes.ts"
import type { SourceError, SourceReason } from "../../../src/connector/SourceError.ts"
import * as MonotonicClock from "../../../src/time/MonotonicClock.ts"

/** Sizes that are tried, ascending. A source that refuses the first one gets the second one: its limit for batches. */
const sizes = [100, 250, 500, 1_000, 2_500]
const firstSize = 1_000
const secondSize = 250

/** How long a size that was refused is not tried again. */
const retryAfterMs = Duration.toMillis(Duration.days(1))

/** Attempts at a size while there is a smaller one: the size may be the reason of the failure. */
const attemptsMax = 2
/** The same for a new size that was not answered in time: a second attempt would take as long again. */
const timeoutsMax = 1

/** A size to request. */
export interface Candidate {
  /** Null sends no size. */
  readonly size: number | null
  /** Whether the source has not accepted it yet. */
  readonly isNew: boolean
}

/** The next larger size that may be tried now; null when there is none. */
const largerSize = ({ accepted, refused, triedAt }: PageSize, nowMs: number): number | null => {
  const isWaiting = nowMs - triedAt < retryAfterMs
  if (accepted === null) return isWaiting ? null : secondSize
  const larger = sizes.filter((size) => size > accepted)
  if (refused === null) return larger[0] ?? null
  if (isWaiting) return null
  const between = larger.filter((size) => size < refused)
  return between[between.length >> 1] ?? larger.find((size) => size >= refused) ?? null
}

/** The next smaller size; null for none. */
const smallerSize = (size: number): number | null => sizes.findLast((one) => one < size) ?? null

/** The sizes to request, the preferred one first. `mayTry`: whether a size may be tried that was not accepted yet. */
export const candidates = (known: PageSize | null, mayTry: boolean, nowMs: number): ReadonlyArray<Candidate> => {
  const none: Candidate = { size: null, isNew: false }
  if (known === null) {
    return mayTry ? [{ size: firstSize, isNew: true }, { size: secondSize, isNew: true }, none] : [none]
  }
  const { accepted } = known
  const larger = mayTry ? largerSize(known, nowMs) : null
  const smaller = accepted === null ? null : accepted > secondSize ? secondSize : smallerSize(accepted)
  const usual = [accepted, smaller].flatMap((size): ReadonlyArray<Candidate> =>
    size === null ? [] : [{ size, isNew: false }]
  )
  return [...(larger === null ? [] : [{ size: larger, isNew: true }]), ...usual, none]
}

/** What an answer shows about its size. */
export interface Measured {
  /** The size that the answer names; null where it names none. On the last page it may be the number of its records. */
  readonly stated: number | null
  readonly records: number
  /** When the answered attempt began, in milliseconds on the program's monotonic clock. */
  readonly beganAt: number
}

/** What a page shows; null when it shows nothing new. */
const learned = (
  known: PageSize | null,
  { size, isNew }: Candidate,
  failed: ReadonlyArray<Candidate>,
  { stated, isSlow }: { readonly stated: number | null; readonly isSlow: boolean },
  nowMs: number
): PageSize | null => {
  const refused = [...failed.flatMap((one) => one.size ?? []), ...(known?.refused ? [known.refused] : [])]
  const smallest = refused.length === 0 ? null : Math.min(...refused)
  if (size === null) return failed.length === 0 ? null : { accepted: null, refused: smallest, triedAt: nowMs }
  if (isSlow) return { accepted: smallerSize(size), refused: size, triedAt: nowMs }
  if (stated !== null && stated >= 1 && stated < size) return { accepted: stated, refused: size, triedAt: nowMs }
  if (failed.length > 0) return { accepted: size, refused: smallest, triedAt: nowMs }
  return isNew
    ? { accepted: size, refused: smallest !== null && smallest > size ? smallest : null, triedAt: nowMs }
    : null
}

export interface Options {
  readonly stored: Effect.Effect<SourcePageSizes>
  /** The parameter of a request that holds the size. */
  readonly parameter: string
  /** A page that takes longer than this is too large. */
  readonly slowAfter: Duration.Duration
}

/** A request of a page, as far as its size is concerned. */
export interface PageCall<A> {
  readonly resource: string
  /** Whether a size may be tried that was not accepted yet. */
  readonly mayTry: boolean
  /** The page of one size. `attemptsMaxOf`: how often it is requested after a failure; null for no bound of its own. */
  readonly page: (
    size: number | null,
    attemptsMaxOf: ((reason: SourceReason) => number) | null
  ) => Effect.Effect<A, SourceError>
  readonly measure: (page: A) => Measured
}

/** Requests a page with the largest size that the source accepts. */
export type RequestSized = <A extends { readonly attempts: number }>(call: PageCall<A>) => Effect.Effect<A, SourceError>

export const make = ({ stored, parameter, slowAfter }: Options): RequestSized => {
  const oneTrial = Semaphore.makeUnsafe(1)

  /** Whether the failure of a request may be due to its size. */
  const isAboutSize = (reason: SourceReason, isNew: boolean): boolean => {
    switch (reason._tag) {
      case "TimedOut":
      case "TooLarge":
        return true
      case "ServerFault":
        return isNew
      case "Refused":
        return reason.field === parameter || (isNew && reason.field === null)
      default:
        return false
    }
  }

  const choose = Effect.fnUntraced(function* (resource: string, mayTry: boolean) {
    const clock = yield* Clock.Clock
    const sizesOfSource = yield* stored
    const known = yield* sizesOfSource.of(resource)
    return { clock, known, sizesOfSource, sizes: candidates(known, mayTry, clock.currentTimeMillisUnsafe()) }
  })

  const tryInOrder = Effect.fnUntraced(function* <A extends { readonly attempts: number }>({
    resource,
    mayTry,
    page,
    measure
  }: PageCall<A>) {
    const { clock, known, sizesOfSource, sizes } = yield* choose(resource, mayTry)
    const failed: Array<Candidate> = []
    let attempts = 0
    for (const candidate of sizes.slice(0, -1)) {
      const { size, isNew } = candidate
      const bound = (reason: SourceReason) => {
        if (isNew && reason._tag === "TimedOut") return timeoutsMax
        return isAboutSize(reason, isNew) ? attemptsMax : Number.POSITIVE_INFINITY
      }
      const result = yield* Effect.result(page(size, bound))
      if (Result.isSuccess(result)) return yield* accepted(candidate, result.success)
      const { reason, request } = result.failure
      if (!isAboutSize(reason, isNew)) return yield* result.failure
      attempts += request.attempts ?? 1
      failed.push(candidate)
    }
    const last = sizes.at(-1)!
    return yield* accepted(last, yield* page(last.size, null))

    function accepted(candidate: Candidate, answer: A) {
      const { stated, records, beganAt } = measure(answer)
      const tookMs = MonotonicClock.nowMs(clock) - beganAt
      const isSlow = candidate.size !== null && tookMs > Duration.toMillis(slowAfter) && records > candidate.size / 2
      const found = learned(known, candidate, failed, { stated, isSlow }, clock.currentTimeMillisUnsafe())
      const stores = found === null ? Effect.void : sizesOfSource.store(resource, found)
      return Effect.as(stores, { ...answer, attempts: answer.attempts + attempts })
    }
  })

  return (call) =>
    Effect.flatMap(choose(call.resource, call.mayTry), ({ sizes: [first] }) =>
      // One request tries a new size; the others wait for its result.
      first?.isNew === true ? oneTrial.withPermit(tryInOrder(call)) : tryInOrder(call)
    )
}
