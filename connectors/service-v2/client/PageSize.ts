/**
 * The page size of lists where none is configured. The documents state no maximum (spec LIM-13), so the client requests
 * large pages and learns from the answers.
 *
 * Promise: a list is read with the largest size that the source accepts, as far as it is one of {@link sizes}. A size that
 * the source refuses, or answers too slowly, costs at most two requests, and is not repeated for a day. Where the source
 * accepts no size, none is sent: then a list is read and judged as without this module. So is a list whose first page names
 * neither a next page nor an end, since the source may have cut it.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { PageSize, SourcePageSizes } from "../../../src/connector/PageSizes.ts"
import { PageTokenRefused, SourceError, type SourceReason } from "../../../src/connector/SourceError.ts"
import * as MonotonicClock from "../../../src/time/MonotonicClock.ts"
import type { Call } from "./Exchange.ts"
import { plural } from "../../../src/text/Count.ts"

/** Sizes that are tried, ascending. A source that refuses the first one gets the second one: its limit for batches. */
const sizes = [100, 250, 500, 1_000, 2_500]
const firstSize = 1_000
const secondSize = 250

/** An answer that names a smaller size is not believed: some count the records of the page. */
const statedMin = 100

/** How long a size that was refused is not tried again. */
const retryAfterMs = Duration.toMillis(Duration.days(1))

/** Attempts at a size while there is a smaller one: the size may be the reason of the failure. */
const attemptsMax = 2
/** The same for a new size, except after a fault of the server. */
const newAttemptsMax = 1

/** A size to request. */
interface Candidate {
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
const candidates = (known: PageSize | null, mayTry: boolean, nowMs: number): ReadonlyArray<Candidate> => {
  const none: Candidate = { size: null, isNew: false }
  if (known === null) {
    return mayTry ? [{ size: firstSize, isNew: true }, { size: secondSize, isNew: true }, none] : [none]
  }
  const { accepted } = known
  const larger = mayTry ? largerSize(known, nowMs) : null
  const smaller = accepted === null ? null : accepted > secondSize ? secondSize : smallerSize(accepted)
  const usual = [accepted, smaller].filter((size) => size !== null).map((size) => ({ size, isNew: false }))
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
  if (stated !== null && stated >= statedMin && stated < size)
    return { accepted: stated, refused: size, triedAt: nowMs }
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
  /** Whether it is the first page of its list: later ones continue what was accepted. */
  readonly isFirst: boolean
  /** The size that the token of the page fixes, as in a link; undefined where the size is free. */
  readonly fixed: number | null | undefined
  /** The page of one size. `attemptsMaxOf`: how often it is requested after a failure. */
  readonly page: (size: number | null, attemptsMaxOf?: Call["attemptsMaxOf"]) => Effect.Effect<A, SourceError>
  readonly measure: (page: A) => Measured
}

/** Requests a page with the largest size that the source accepts. */
export type RequestSized = <A extends { readonly attempts: number }>(call: PageCall<A>) => Effect.Effect<A, SourceError>

const gatewayTimeout = 504

/**
 * Whether the failure of a request may be due to its size. A refusal is only where it says so: it names the parameter, or
 * its code is that of an unknown parameter or of too large a request. Another refusal is final for every size.
 */
const isAboutSize = (
  reason: SourceReason,
  { isFirst }: Pick<PageCall<unknown>, "isFirst">,
  parameter: string,
  isNew: boolean
): boolean => {
  switch (reason._tag) {
    case "TimedOut":
    case "TooLarge":
      return true
    case "ServerFault":
      return isNew || (isFirst && reason.status === gatewayTimeout)
    case "Refused": {
      const named = [reason.field, ...reason.problems.map(({ field }) => field)].filter((field) => field !== null)
      if (named.length > 0) return named.some((field) => field === parameter || field.endsWith(`.${parameter}`))
      return isFirst && (reason.kind === "unknownField" || reason.kind === "tooLarge")
    }
    case "PagingBroken":
      return isFirst
    case "Malformed":
      return isNew
    default:
      return false
  }
}

/** How often a request is sent after a failure that may be due to its size. */
const attemptsMaxOf = (reason: SourceReason, isNew: boolean): number =>
  isNew && reason._tag !== "ServerFault" ? newAttemptsMax : attemptsMax

const look = Effect.fnUntraced(function* (
  { stored }: Options,
  { resource, mayTry }: Pick<PageCall<unknown>, "resource" | "mayTry">
) {
  const clock = yield* Clock.Clock
  const known = yield* Effect.flatMap(stored, (sizesOfSource) => sizesOfSource.of(resource))
  return { clock, known, sizes: candidates(known, mayTry, clock.currentTimeMillisUnsafe()) }
})

const store = ({ stored }: Options, resource: string, found: PageSize | null, isOwn: boolean) =>
  found === null ? Effect.void : Effect.flatMap(stored, (all) => all.store(resource, found, isOwn))

interface Progress {
  readonly failed: Array<Candidate>
  attempts: number
  /** Whether a page named neither a next page nor an end. */
  isUnmarked: boolean
}

/** Requests the page with one size after the other; none when each failed in a way that may be due to it. */
const tryInOrder = Effect.fnUntraced(function* <A extends { readonly attempts: number }>(
  options: Options,
  { page, measure, ...call }: PageCall<A>,
  { clock, known }: Effect.Success<ReturnType<typeof look>>,
  sizes: ReadonlyArray<Candidate>,
  progress: Progress
) {
  const { failed } = progress
  for (const candidate of sizes) {
    const { size, isNew } = candidate
    const isAbout = (reason: SourceReason) => size !== null && isAboutSize(reason, call, options.parameter, isNew)
    const bound = (reason: SourceReason) => (isAbout(reason) ? attemptsMaxOf(reason, isNew) : Number.POSITIVE_INFINITY)
    const result = yield* Effect.result(page(size, size === null ? undefined : bound))
    if (Result.isFailure(result)) {
      const { reason, request } = result.failure
      if (!isAbout(reason)) return yield* result.failure
      progress.attempts += request.attempts ?? 1
      progress.isUnmarked ||= reason._tag === "PagingBroken"
      failed.push(candidate)
      continue
    }
    const { stated, records, beganAt } = measure(result.success)
    const tookMs = MonotonicClock.nowMs(clock) - beganAt
    const isSlow = size !== null && tookMs > Duration.toMillis(options.slowAfter) && records > size / 2
    const found = learned(known, candidate, failed, { stated, isSlow }, clock.currentTimeMillisUnsafe())
    yield* store(options, call.resource, found, progress.isUnmarked)
    return Option.some({ ...result.success, attempts: result.success.attempts + progress.attempts })
  }
  return Option.none<A>()
})

const requestFree = Effect.fnUntraced(function* <A extends { readonly attempts: number }>(
  options: Options,
  oneTrial: Semaphore.Semaphore,
  call: PageCall<A>
): Effect.fn.Return<A, SourceError> {
  const seen = yield* look(options, call)
  const { known, sizes } = seen
  const progress: Progress = { failed: [], attempts: 0, isUnmarked: false }
  const trials = sizes.filter(({ isNew }) => isNew)
  if (trials.length > 0) {
    // One request tries new sizes. The others wait for its result, or use the size that is known.
    const unlessChanged = Effect.flatMap(look(options, call), (now) =>
      now.known === known ? Effect.asSome(tryInOrder(options, call, seen, trials, progress)) : Effect.succeedNone
    )
    const tried =
      known === null
        ? yield* oneTrial.withPermit(unlessChanged)
        : Option.flatten(yield* oneTrial.withPermitsIfAvailable(1)(unlessChanged))
    if (Option.isSome(tried) && Option.isSome(tried.value)) return tried.value.value
    if (Option.isNone(tried) && known === null) return yield* requestFree(options, oneTrial, call)
  }
  const usual = sizes.filter(({ isNew }) => !isNew)
  return Option.getOrThrow(yield* tryInOrder(options, call, seen, usual, progress))
})

/**
 * A page whose token fixes its size. A failure that may be due to the size is stored, so that the next list is read with
 * a smaller one. This scan begins again where the size was refused, or where the page failed before for that reason.
 */
const recover = Effect.fnUntraced(function* (
  options: Options,
  call: Omit<PageCall<unknown>, "page" | "measure">,
  size: number,
  error: SourceError
) {
  const { reason, request } = error
  if (!isAboutSize(reason, call, options.parameter, false)) return yield* error
  const { clock, known } = yield* look(options, call)
  const failedBefore = known !== null && known.refused !== null && known.refused <= size
  const found = { accepted: smallerSize(size), refused: size, triedAt: clock.currentTimeMillisUnsafe() }
  if (!failedBefore) yield* store(options, call.resource, found, false)
  if (reason._tag !== "Refused" && !failedBefore) return yield* error
  const detail = `the source does not return ${plural(size, "record")} any more`
  return yield* new SourceError({ reason: new PageTokenRefused({ detail }), request })
})

export const make = (options: Options): RequestSized => {
  const oneTrial = Semaphore.makeUnsafe(1)
  return (call) => {
    if (call.fixed === undefined) return requestFree(options, oneTrial, call)
    const { fixed, page } = call
    return fixed === null ? page(null) : page(fixed).pipe(Effect.catch((error) => recover(options, call, fixed, error)))
  }
}
