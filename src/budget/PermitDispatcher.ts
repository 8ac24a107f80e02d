/**
 * The dispatcher of one process: it takes permits from a store for the requests that wait.
 *
 * One fiber runs {@link serve}. Requests are added beside it, and wake it. Permits are taken for the requests that wait at
 * that moment, so that a process learns of a pause before its next request; a permit that comes too late is lost. A pause
 * begins here at once, even where the store does not answer. The store then decides how long it lasts.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { type BudgetError, BudgetPaused, BudgetUnavailable } from "./BudgetError.ts"
import * as PermitRule from "./PermitRule.ts"
import type { PermitStore, PermitStoreError } from "./PermitStore.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Backoff from "../time/Backoff.ts"

const { classes, forAll } = PermitRule

const retryDelayMinMs = 250
const retryDelayMaxMs = 5_000
/** The bounds of the time that permits stay valid; it follows the time that the store takes to answer. */
const validMinMs = 200
const validFirstMs = 500
const validMaxMs = 15_000
/** Maximum time until a pause that another process reported is in force here, where no limit makes this process ask. */
const freeMs = 250
/** Maximum time until a pause that a person ended is over for this process. */
const recheckMs = 5_000

/** The priority of a request. */
export interface Priority {
  /** urgent: a person or a process waits for it; live: follows the source; backfill: everything else. */
  readonly class: PermitRule.PriorityClass
  /** When the freshness target is missed, in milliseconds since 1970; earlier ones go first within a class. */
  readonly dueAt: number
}

interface Waiter extends Priority {
  readonly resume: (effect: Effect.Effect<void, BudgetError>) => void
}

/** All times are on the process's monotonic clock, in milliseconds. */
export interface PermitDispatcher {
  readonly store: PermitStore
  readonly now: () => number
  /** A request that would wait longer than this for the end of a pause fails. */
  readonly pauseWaitMaxMs: number
  /** When the store does not answer for this long, the requests that wait fail. */
  readonly unavailableMaxMs: number
  /** The next one first. */
  readonly waiters: Array<Waiter>
  /** Opens when a request, a pause or the end of the probe needs the dispatcher. */
  readonly wakeUp: Latch.Latch
  /** Pauses that the store does not know yet. */
  readonly unreported: Array<PermitRule.PauseRequest & { readonly at: number }>
  readonly reporting: Semaphore.Semaphore
  /** The pause as this process knows it. */
  pause: PermitRule.PermitState
  pauseBeganAt: number
  /** The time of the last check whether a person ended the pause. */
  checkedAt: number
  /** When this process received the probe; null when it has none to report. */
  probedAt: number | null
  /** Without a limit: until when requests need no answer of the store. */
  freeUntil: number
  /** Before this time the store has no permit for the class. */
  askAt: PermitRule.ByClass<number>
  /** How long permits are to be valid: the store's last answers decide. */
  validMs: number
  unavailableSince: number | null
  failures: number
}

export const makeDispatcher = (
  store: PermitStore,
  clock: Clock.Clock,
  limits: { readonly pauseWaitMaxMs: number; readonly unavailableMaxMs: number }
): PermitDispatcher => ({
  ...limits,
  store,
  now: () => MonotonicClock.nowMs(clock),
  waiters: [],
  wakeUp: Latch.makeUnsafe(false),
  unreported: [],
  reporting: Semaphore.makeUnsafe(1),
  pause: PermitRule.emptyState(null),
  pauseBeganAt: 0,
  checkedAt: 0,
  probedAt: null,
  freeUntil: 0,
  askAt: forAll(0),
  validMs: validFirstMs,
  unavailableSince: null,
  failures: 0
})

// ------------------------------------------------------------------------------------------------ requests and answers

const isFree = ({ freeUntil, now }: PermitDispatcher) => now() < freeUntil

export const isPaused = ({ now, pause }: PermitDispatcher): boolean => now() < pause.pausedUntil

const isBefore = (one: Priority, other: Priority): boolean =>
  one.class === other.class ? one.dueAt < other.dueAt : classes.indexOf(one.class) < classes.indexOf(other.class)

/** Waits for a permit. A request that is interrupted waits no more. */
export const takePermit = (dispatcher: PermitDispatcher, priority: Priority): Effect.Effect<void, BudgetError> =>
  Effect.callback((resume) => {
    const { waiters, wakeUp } = dispatcher
    if (isFree(dispatcher)) return resume(Effect.void)
    const waiter: Waiter = { ...priority, resume }
    const later = waiters.findIndex((other) => isBefore(waiter, other))
    waiters.splice(later < 0 ? waiters.length : later, 0, waiter)
    wakeUp.openUnsafe()
    return Effect.sync(() => remove(waiters, waiter))
  })

const remove = (waiters: Array<Waiter>, waiter: Waiter) => {
  const index = waiters.indexOf(waiter)
  if (index >= 0) waiters.splice(index, 1)
}

const failWaiters = ({ waiters }: PermitDispatcher, error: BudgetError) => {
  for (const { resume } of waiters.splice(0)) resume(Effect.fail(error))
}

/** Begins a pause here at once, and reports it to the store. */
export const pauseRequests = (
  dispatcher: PermitDispatcher,
  statedMs: number,
  limited: boolean,
  cause: PermitRule.PauseCause = { origin: "source", status: limited ? 429 : 503, request: null }
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const at = dispatcher.now()
    const request = { ...cause, statedMs, limited }
    const before = isPaused(dispatcher) ? dispatcher.pause : PermitRule.emptyState(null)
    dispatcher.pause = PermitRule.pause(before, request, null, at)
    dispatcher.pauseBeganAt = at
    dispatcher.checkedAt = at
    dispatcher.probedAt = null
    dispatcher.freeUntil = 0
    dispatcher.unreported.push({ ...request, at })
    dispatcher.wakeUp.openUnsafe()
    // Where the store does not answer, the pause is reported before the next question.
    return Effect.ignore(reportPauses(dispatcher))
  })

/** Reports the end of the probe. The end of any other attempt changes nothing. */
export const reportAttempt = (
  dispatcher: PermitDispatcher,
  request: string,
  sentAt: number,
  isAnswered: boolean
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { probedAt, wakeUp } = dispatcher
    if (probedAt === null || sentAt < probedAt) return Effect.void
    dispatcher.probedAt = null
    dispatcher.askAt = forAll(0)
    // If it fails, another probe is sent after a while.
    return Effect.andThen(
      Effect.ignore(endProbe(dispatcher, request, isAnswered)),
      Effect.sync(() => wakeUp.openUnsafe())
    )
  })

// ----------------------------------------------------------------------------------------------------------- the store

const endProbe = ({ store }: PermitDispatcher, request: string, isAnswered: boolean) =>
  store.change((state) => [PermitRule.endProbe(state, request, isAnswered), null])

/** Reports the pauses that the store does not know; the store decides how long they last. */
export const reportPauses = (dispatcher: PermitDispatcher): Effect.Effect<void, PermitStoreError> => {
  const { now, reporting, store, unreported } = dispatcher
  const reportAll = Effect.gen(function* () {
    for (let [first] = unreported; first !== undefined; [first] = unreported) {
      const request = { ...first, statedMs: Math.max(0, first.statedMs - (now() - first.at)) }
      const pausedMs = yield* store.change((before, nowMs) => {
        const state = PermitRule.pause(before, request, store.perMinute, nowMs)
        return [state, Math.max(0, state.pausedUntil - nowMs)]
      })
      unreported.shift()
      if (unreported.length === 0) dispatcher.pause = { ...dispatcher.pause, pausedUntil: now() + pausedMs }
    }
  })
  return Semaphore.withPermits(reporting, 1, reportAll)
}

/** Updates the pause from the store's: one of another process may have begun. The store's clock ends none early. */
const learnPause = (
  dispatcher: PermitDispatcher,
  { pausedBy, pausedMs }: Pick<PermitRule.PermitGrant, "pausedBy" | "pausedMs">
) => {
  const arrived = dispatcher.now()
  const { memory, pausedUntil } = dispatcher.pause
  dispatcher.pause = {
    ...dispatcher.pause,
    pausedUntil: Math.max(pausedUntil, arrived + pausedMs),
    memory: pausedBy === null ? memory : { ...memory, pausedBy: { ...pausedBy, at: arrived - pausedBy.agoMs } }
  }
}

/** Looks whether a person has ended the pause. */
const checkPause = Effect.fnUntraced(function* (dispatcher: PermitDispatcher) {
  const at = dispatcher.now()
  yield* reportPauses(dispatcher)
  const { isReleased, ...inForce } = yield* dispatcher.store.change((state, nowMs) => [
    state,
    {
      isReleased: PermitRule.isReleased(state),
      pausedMs: Math.max(0, state.pausedUntil - nowMs),
      pausedBy: PermitRule.pauseReport(state, nowMs)
    }
  ])
  const isKnown = dispatcher.unreported.length === 0 && dispatcher.pauseBeganAt <= at
  if (isReleased && isKnown) dispatcher.pause = { ...dispatcher.pause, pausedUntil: 0 }
  else learnPause(dispatcher, inForce)
})

/** Takes permits, and learns of a pause and of the probe. */
const take = Effect.fnUntraced(function* (dispatcher: PermitDispatcher, wanted: PermitRule.ByClass<number>) {
  const { now, store, validMs } = dispatcher
  const at = now()
  const grant = yield* store.take({ wanted, validMs })
  const arrived = now()
  dispatcher.validMs = Math.min(validMaxMs, Math.max(validMinMs, 4 * (arrived - at), 0.95 * validMs))
  learnPause(dispatcher, grant)
  if (grant.isProbe) dispatcher.probedAt = arrived
  return { ...grant, at, isLate: arrived >= at + validMs || isPaused(dispatcher) }
})

/** Sends the requests that got a permit; returns whether there were any. */
const resumeWaiters = ({ waiters }: PermitDispatcher, granted: PermitRule.ByClass<number>): boolean => {
  const left = { ...granted }
  const next = waiters.filter((waiter) => (left[waiter.class] -= 1) >= 0)
  for (const waiter of next) {
    remove(waiters, waiter)
    waiter.resume(Effect.void)
  }
  return next.length > 0
}

const takeForWaiters = Effect.fnUntraced(function* (dispatcher: PermitDispatcher) {
  const { now, store, waiters } = dispatcher
  yield* reportPauses(dispatcher)
  const countOf = (one: PermitRule.PriorityClass) => waiters.filter((waiter) => waiter.class === one).length
  const wanted = { urgent: countOf("urgent"), live: countOf("live"), backfill: countOf("backfill") }
  const grant = yield* take(dispatcher, wanted)
  const { granted, isLate, isProbe, pausedMs, waitMs } = grant
  dispatcher.unavailableSince = null
  dispatcher.failures = 0
  if (store.perMinute === null && waitMs === 0 && !isPaused(dispatcher)) dispatcher.freeUntil = grant.at + freeMs
  const isUsed = !isLate && resumeWaiters(dispatcher, granted)
  if (isProbe && !isUsed) {
    // The probe was not used, or it came too late: another one may be sent.
    dispatcher.probedAt = null
    yield* endProbe(dispatcher, "", false)
  }
  if (pausedMs > 0) return
  const refused = classes.findIndex((one) => granted[one] < wanted[one])
  const askAt = (one: PermitRule.PriorityClass) =>
    refused >= 0 && classes.indexOf(one) >= refused ? now() + waitMs : dispatcher.askAt[one]
  dispatcher.askAt = { urgent: askAt("urgent"), live: askAt("live"), backfill: askAt("backfill") }
})

/** Backs off after a failure of the store; after a while the requests that wait fail. */
const backOff = Effect.fnUntraced(function* (dispatcher: PermitDispatcher, { detail }: PermitStoreError) {
  const { now, unavailableMaxMs } = dispatcher
  dispatcher.failures += 1
  if (dispatcher.unavailableSince === null) {
    dispatcher.unavailableSince = now()
    yield* Effect.logWarning(
      `The request budget does not answer (${detail}); no request is sent until it answers again`
    )
  }
  if (now() - dispatcher.unavailableSince >= unavailableMaxMs)
    failWaiters(dispatcher, new BudgetUnavailable({ detail }))
  dispatcher.askAt = forAll(now() + Backoff.delayMs(dispatcher.failures, retryDelayMinMs, retryDelayMaxMs))
})

// ------------------------------------------------------------------------------------------------------------ the loop

/** Waits until {@link PermitDispatcher.wakeUp} opens, or the time is over. */
const sleep = ({ wakeUp }: PermitDispatcher, ms: number) =>
  (ms === Number.POSITIVE_INFINITY
    ? wakeUp.await
    : Effect.timeoutOption(wakeUp.await, Duration.millis(Math.ceil(ms)))
  ).pipe(Effect.ensuring(wakeUp.close))

const waitForPause = (dispatcher: PermitDispatcher): Effect.Effect<unknown> => {
  const { checkedAt, now, pause, pauseWaitMaxMs, store } = dispatcher
  const leftMs = pause.pausedUntil - now()
  // A person ends a pause in the store that processes share; a store of this process alone needs no check.
  const checkMs = store.isShared ? checkedAt + recheckMs - now() : Number.POSITIVE_INFINITY
  if (checkMs <= 0) {
    dispatcher.checkedAt = now()
    return Effect.ignore(checkPause(dispatcher))
  }
  if (leftMs <= pauseWaitMaxMs) return sleep(dispatcher, Math.min(leftMs, checkMs))
  const by = PermitRule.pauseReport(pause, now())
  return Effect.sync(() => failWaiters(dispatcher, new BudgetPaused({ retryAfter: Duration.millis(leftMs), by })))
}

const serveNext = (dispatcher: PermitDispatcher): Effect.Effect<unknown> => {
  const { askAt, now, waiters } = dispatcher
  if (isFree(dispatcher)) for (const { resume } of waiters.splice(0)) resume(Effect.void)
  if (waiters.length === 0) return sleep(dispatcher, Number.POSITIVE_INFINITY)
  if (isPaused(dispatcher)) return waitForPause(dispatcher)
  const soonest = Math.min(...waiters.map((waiter) => askAt[waiter.class]))
  return soonest > now()
    ? sleep(dispatcher, soonest - now())
    : Effect.catchTag(takeForWaiters(dispatcher), "PermitStoreError", (error) => backOff(dispatcher, error))
}

/** Serves the requests that wait, for ever. */
export const serve = (dispatcher: PermitDispatcher): Effect.Effect<never> =>
  Effect.forever(
    Effect.suspend(() => serveNext(dispatcher)),
    { disableYield: true }
  )
