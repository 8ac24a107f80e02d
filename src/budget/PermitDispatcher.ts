/**
 * The dispatcher of one process: it leases permits from a store and hands them to the requests that wait.
 *
 * One fiber runs {@link serve}. Requests are added beside it, and wake it. A crash loses nothing: permits that were
 * leased and not used count as used until their time is over.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { type BudgetError, BudgetPaused, BudgetUnavailable } from "./BudgetError.ts"
import { type LeasedPermits, noPermits, settledPermits, usePermit } from "./LeasedPermits.ts"
import { type ByClass, classes, type PauseCause, type PermitGrant, type PriorityClass } from "./PermitPolicy.ts"
import type { PermitStore, PermitStoreError } from "./PermitStore.ts"
import {
  addWaiter,
  failWaiters,
  hasWaiters,
  nextWaiter,
  type PermitWaiter,
  type PermitWaiters,
  removeWaiter
} from "./PermitWaiters.ts"
import { noPause, pauseReport, pauseRequest, type ProcessPause, startPause, updatePause } from "./ProcessPause.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Backoff from "../time/Backoff.ts"

const retryDelayMinMs = 250
const retryDelayMaxMs = 5_000
/** The bounds of the time that leased permits stay valid; it follows the time that the store takes to answer. */
const validMinMs = 1_000
const validMaxMs = 15_000
/** Requests that came within this time are expected again: where limits are high, their permits are leased ahead. */
const leaseAheadMs = 100
/** At most this part of a minute's limit is leased ahead: a second. */
const leaseAheadShare = 60
/** Maximum time until a pause that a person ended is over for this process. */
const recheckMs = 5_000

const forAll = (value: number): ByClass<number> => ({ urgent: value, live: value, backfill: value })

/** All times are on the process's monotonic clock, in milliseconds. */
export interface PermitDispatcher {
  readonly store: PermitStore
  readonly now: () => number
  /** A request that would wait longer than this for the end of a pause fails. */
  readonly pauseWaitMaxMs: number
  /** When the store does not answer for this long, the requests that wait fail. */
  readonly unavailableMaxMs: number
  readonly waiters: PermitWaiters
  readonly pause: ProcessPause
  /** Opens when a request, a pause or the end of the probe needs the dispatcher. */
  readonly wakeUp: Latch.Latch
  /** Before this time the store has no permit for the class. */
  leaseAt: ByClass<number>
  permits: LeasedPermits
  /** How long permits are to be valid: the store's last answers decide. */
  validMs: number
  leasedAt: number
  usedSinceLease: number
  unavailableSince: number | null
  consecutiveFailures: number
}

export const makeDispatcher = (
  store: PermitStore,
  clock: Clock.Clock,
  limits: { readonly pauseWaitMaxMs: number; readonly unavailableMaxMs: number }
): PermitDispatcher => ({
  ...limits,
  store,
  now: () => MonotonicClock.nowMs(clock),
  waiters: { urgent: [], live: [], backfill: [] },
  pause: noPause(),
  wakeUp: Latch.makeUnsafe(false),
  leaseAt: forAll(0),
  permits: { ...noPermits },
  validMs: validMinMs,
  leasedAt: Number.NEGATIVE_INFINITY,
  usedSinceLease: 0,
  unavailableSince: null,
  consecutiveFailures: 0
})

// ------------------------------------------------------------------------------------------------ requests and answers

const hasPermit = ({ pause, permits }: PermitDispatcher, at: number) =>
  permits.left > 0 && at < permits.validUntil && at >= pause.until

const consume = (dispatcher: PermitDispatcher, at: number) => {
  usePermit(dispatcher.permits, at)
  dispatcher.usedSinceLease += 1
}

/** Waits for a permit. A request that is interrupted waits no more. */
export const takePermit = (
  dispatcher: PermitDispatcher,
  priority: { readonly class: PriorityClass; readonly dueAt: number }
): Effect.Effect<void, BudgetError> =>
  Effect.callback((resume) => {
    const { now, waiters, wakeUp } = dispatcher
    const at = now()
    if (!hasWaiters(waiters) && hasPermit(dispatcher, at)) {
      consume(dispatcher, at)
      return resume(Effect.void)
    }
    const waiter: PermitWaiter = { dueAt: priority.dueAt, resume }
    addWaiter(waiters, priority.class, waiter)
    wakeUp.openUnsafe()
    return Effect.sync(() => removeWaiter(waiters, priority.class, waiter))
  })

/** Begins a pause here at once, and reports it to the store. */
export const pauseRequests = (
  dispatcher: PermitDispatcher,
  statedMs: number,
  isLimit: boolean,
  cause?: PauseCause
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const isCapped = startPause(dispatcher.pause, pauseRequest(statedMs, isLimit, cause), dispatcher.now())
    // After a capped pause comes a probe: no permit from before it is used then.
    if (isCapped) dispatcher.permits = { ...dispatcher.permits, left: 0 }
    dispatcher.wakeUp.openUnsafe()
    // Where the store does not answer, the pause is reported before the next lease.
    return Effect.ignore(reportPause(dispatcher))
  })

/** Reports the end of the probe. The end of any other attempt changes nothing. */
export const reportAttempt = (
  dispatcher: PermitDispatcher,
  request: string,
  sentAt: number,
  isAnswered: boolean
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { pause, store, wakeUp } = dispatcher
    if (pause.probedAt === null || sentAt < pause.probedAt) return Effect.void
    pause.probedAt = null
    dispatcher.leaseAt = forAll(0)
    // If it fails, another probe is sent after a while.
    return Effect.andThen(
      Effect.ignore(store.endProbe(request, isAnswered)),
      Effect.sync(() => wakeUp.openUnsafe())
    )
  })

// ----------------------------------------------------------------------------------------------------------- the store

/** Reports a pause that the store does not know; the store decides how long it lasts. */
const reportPause = ({ now, pause, store }: PermitDispatcher): Effect.Effect<void, PermitStoreError> =>
  Effect.suspend(() => {
    const reported = pause.unreported
    if (reported === null) return Effect.void
    const { at, ...request } = reported
    const statedMs = Math.max(0, request.statedMs - (now() - at))
    return Effect.map(store.pause({ ...request, statedMs }), (pausedMs) => {
      if (pause.unreported !== reported) return
      pause.unreported = null
      pause.until = now() + pausedMs
    })
  })

/** Leases permits, and updates the pause from the store's answer. */
const lease = Effect.fnUntraced(function* (dispatcher: PermitDispatcher, wanted: ByClass<number>) {
  const { now, store, validMs } = dispatcher
  const at = now()
  const grant = yield* store.lease({ wanted, validMs, settled: settledPermits(dispatcher.permits, at) })
  acceptGrant(dispatcher, grant, at, validMs)
  return grant
})

/** Keeps the granted permits. A late answer grants none: its permits are returned with the next lease. */
const acceptGrant = (dispatcher: PermitDispatcher, grant: PermitGrant, at: number, validMs: number) => {
  const { now, pause, store, waiters } = dispatcher
  const { granted } = grant
  const permits = granted.urgent + granted.live + granted.backfill
  const arrived = now()
  dispatcher.validMs = Math.min(validMaxMs, Math.max(validMinMs, 4 * (arrived - at)))
  updatePause(pause, grant, arrived)
  const isUnlimited = store.perMinute === null && grant.pausedMs <= 0 && grant.waitMs === 0
  const cacheMs = isUnlimited ? store.cacheMaxMs : Math.min(validMs, store.cacheMaxMs)
  const isLate = arrived >= at + (isUnlimited ? store.cacheMaxMs : validMs)
  dispatcher.permits = isUnlimited
    ? { ...noPermits, left: Number.POSITIVE_INFINITY, validUntil: at + cacheMs }
    : { leaseId: grant.leaseId, left: permits, used: 0, usedAt: arrived, validUntil: isLate ? 0 : at + cacheMs }
  // The requests that wait are served even where the answer took longer than permits are cached.
  if (arrived >= at + validMs || arrived < pause.until) return
  const backfills = isUnlimited ? [] : waiters.backfill.splice(0, granted.backfill)
  const othersMax = isUnlimited ? Number.POSITIVE_INFINITY : permits - backfills.length
  const others: Array<PermitWaiter> = []
  while (others.length < othersMax) {
    const next = nextWaiter(waiters)
    if (next === undefined) break
    others.push(next)
  }
  for (const waiter of [...others, ...backfills]) {
    consume(dispatcher, arrived)
    waiter.resume(Effect.void)
  }
}

/** The permits for the requests that wait, and for those that are expected within the next moment. */
const wantedPermits = ({ leasedAt, now, store, usedSinceLease, waiters }: PermitDispatcher): ByClass<number> => {
  const aheadMax = store.perMinute === null ? 0 : Math.floor(store.perMinute / leaseAheadShare)
  const ahead = aheadMax < 2 || now() - leasedAt > leaseAheadMs ? 0 : Math.min(aheadMax, 2 * usedSinceLease)
  const first = classes.find((one) => waiters[one].length > 0)
  const wanted = (one: PriorityClass) => waiters[one].length + (one === first ? ahead : 0)
  return { urgent: wanted("urgent"), live: wanted("live"), backfill: wanted("backfill") }
}

const leasePermits = Effect.fnUntraced(function* (dispatcher: PermitDispatcher) {
  const { now, pause, store } = dispatcher
  yield* reportPause(dispatcher)
  const wanted = wantedPermits(dispatcher)
  dispatcher.leasedAt = now()
  dispatcher.usedSinceLease = 0
  const grant = yield* lease(dispatcher, wanted)
  dispatcher.unavailableSince = null
  dispatcher.consecutiveFailures = 0
  if (grant.isProbe && dispatcher.permits.used === 0) {
    // The probe was not used, or it came too late: another one may be sent.
    pause.probedAt = null
    dispatcher.permits = { ...dispatcher.permits, left: 0 }
    yield* store.endProbe("", false)
  }
  if (grant.pausedMs > 0) return
  const leaseAt = { ...dispatcher.leaseAt }
  let isRefused = false
  for (const one of classes) {
    isRefused ||= wanted[one] > 0 && grant.granted[one] < wanted[one]
    if (isRefused) leaseAt[one] = now() + grant.waitMs
  }
  dispatcher.leaseAt = leaseAt
})

/** Backs off after a failure of the store; after a while the requests that wait fail. */
const backOff = Effect.fnUntraced(function* (dispatcher: PermitDispatcher, { detail }: PermitStoreError) {
  const { now, unavailableMaxMs, waiters } = dispatcher
  dispatcher.consecutiveFailures += 1
  if (dispatcher.unavailableSince === null) {
    dispatcher.unavailableSince = now()
    yield* Effect.logWarning(
      `The request budget does not answer (${detail}); no request is sent until it answers again`
    )
  }
  if (now() - dispatcher.unavailableSince >= unavailableMaxMs) failWaiters(waiters, new BudgetUnavailable({ detail }))
  const delayMs = Backoff.delayMs(dispatcher.consecutiveFailures, retryDelayMinMs, retryDelayMaxMs)
  dispatcher.leaseAt = forAll(now() + delayMs)
})

/** Returns the unused permits. If it fails, they count until their time is over. */
const giveBack = (dispatcher: PermitDispatcher) =>
  Effect.suspend(() => {
    const { now, store, validMs } = dispatcher
    const settled = settledPermits(dispatcher.permits, now())
    dispatcher.permits = { ...noPermits }
    return settled === null ? Effect.void : Effect.ignore(store.lease({ wanted: forAll(0), validMs, settled }))
  })

// ------------------------------------------------------------------------------------------------------------ the loop

/** Waits until {@link PermitDispatcher.wakeUp} opens, or the time is over. */
const sleep = ({ wakeUp }: PermitDispatcher, ms: number) =>
  (ms === Number.POSITIVE_INFINITY
    ? wakeUp.await
    : Effect.timeoutOption(wakeUp.await, Duration.millis(Math.ceil(ms)))
  ).pipe(Effect.ensuring(wakeUp.close))

/** No request waits: the permits are kept while they are valid, then returned. */
const idle = (dispatcher: PermitDispatcher): Effect.Effect<unknown> => {
  const { now, permits } = dispatcher
  if (permits.leaseId === null || permits.left <= 0) return sleep(dispatcher, Number.POSITIVE_INFINITY)
  const leftMs = permits.validUntil - now()
  return leftMs > 0 ? sleep(dispatcher, leftMs) : giveBack(dispatcher)
}

/** A lease of no permit, to find out whether a person ended the pause. */
const recheckPause = (dispatcher: PermitDispatcher) =>
  Effect.ignore(Effect.andThen(reportPause(dispatcher), lease(dispatcher, forAll(0))))

const waitForPause = (dispatcher: PermitDispatcher): Effect.Effect<unknown> => {
  const { now, pause, pauseWaitMaxMs, store, waiters } = dispatcher
  const leftMs = pause.until - now()
  // A person ends a pause in the store that processes share; a store of this process alone needs no check.
  const isShared = store.cacheMaxMs < Number.POSITIVE_INFINITY
  if (isShared && now() >= pause.checkedAt + recheckMs) {
    pause.checkedAt = now()
    return recheckPause(dispatcher)
  }
  if (leftMs > pauseWaitMaxMs) {
    failWaiters(waiters, new BudgetPaused({ retryAfter: Duration.millis(leftMs), by: pauseReport(pause, now()) }))
    return Effect.void
  }
  return sleep(dispatcher, isShared ? Math.min(leftMs, Math.max(1, pause.checkedAt + recheckMs - now())) : leftMs)
}

const handOut = (dispatcher: PermitDispatcher) => {
  const at = dispatcher.now()
  while (hasPermit(dispatcher, at)) {
    const next = nextWaiter(dispatcher.waiters)
    if (next === undefined) return
    consume(dispatcher, at)
    next.resume(Effect.void)
  }
}

const serveNext = (dispatcher: PermitDispatcher): Effect.Effect<unknown> => {
  const { leaseAt, now, pause, waiters } = dispatcher
  handOut(dispatcher)
  if (!hasWaiters(waiters)) return idle(dispatcher)
  if (pause.until > now()) return waitForPause(dispatcher)
  const soonest = Math.min(...classes.map((one) => (waiters[one].length > 0 ? leaseAt[one] : Infinity)))
  return soonest > now()
    ? sleep(dispatcher, soonest - now())
    : Effect.catchTag(leasePermits(dispatcher), "PermitStoreError", (error) => backOff(dispatcher, error))
}

/** Serves the requests that wait, for ever. */
export const serve = (dispatcher: PermitDispatcher): Effect.Effect<never> =>
  Effect.forever(
    Effect.suspend(() => serveNext(dispatcher)),
    { disableYield: true }
  )

/** Returns the unused permits, and reports a pause that only this process knows. */
export const closeDispatcher = (dispatcher: PermitDispatcher): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { left, leaseId } = dispatcher.permits
    return Effect.andThen(
      Effect.ignore(reportPause(dispatcher)),
      left > 0 && leaseId !== null ? giveBack(dispatcher) : Effect.void
    )
  })
