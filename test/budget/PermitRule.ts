/**
 * The rule of a rate budget, stated once more in TypeScript: which permits may be given now. It has no clock and no store.
 * `PostgresPermitStore.test.ts` compares it with the functions in Postgres, which the product uses.
 */
import { Effect, Scope } from "effect"
import { type BudgetOptions, fromPermitStore } from "../../src/budget/Budget.ts"
import {
  type ByClass,
  classes,
  type PauseCause,
  pauseMaxMs,
  type PauseRequest,
  type PermitGrant,
  type PermitRequest,
  type PriorityClass,
  type SettledPermits
} from "../../src/budget/PermitPolicy.ts"
import { type PermitStore, spanMsDefault } from "../../src/budget/PermitStore.ts"
import * as MonotonicClock from "../../src/time/MonotonicClock.ts"

/** A lease that counts longer than any lease can, by more than this, is from before the clock was set back. */
const clockSlackMs = 20_000

/** Permits that were given and still count. */
export interface CountedLease {
  readonly id: bigint
  readonly permits: number
  readonly backfill: number
  readonly countsUntil: number
}

/** The state of one token's rate budget; times are in milliseconds of the store's clock. */
export interface PermitState {
  readonly leases: ReadonlyArray<CountedLease>
  readonly lowered: { readonly to: number; readonly at: number } | null
  readonly pausedUntil: number
  /** The answer that requested the last pause, and when it came. */
  readonly pausedBy: (PauseCause & { readonly statedMs: number; readonly at: number }) | null
  /** Pauses in a row that ended before their Retry-After. */
  readonly cappedPauses: number
  /** A probe is under way; another one may be sent after this time. */
  readonly probeUntil: number | null
  /** A request whose long Retry-After pauses no other request, since others were answered. */
  readonly exemptRequest: string | null
  /** How often a person ended a pause. */
  readonly releases: number
  readonly pacedAt: number | null
  /** The time until which a request of the class is known to wait. */
  readonly waitsUntil: ByClass<number | null>
}

export const emptyPermitState: PermitState = {
  leases: [],
  lowered: null,
  pausedUntil: 0,
  pausedBy: null,
  cappedPauses: 0,
  probeUntil: null,
  exemptRequest: null,
  releases: 0,
  pacedAt: null,
  waitsUntil: { urgent: null, live: null, backfill: null }
}

type Permits = Omit<PermitGrant, "pausedBy" | "isProbe" | "releases">

/** As Postgres keeps a time. */
const toMicros = (ms: number) => Math.round(ms * 1000) / 1000

const effectiveLimits = (state: PermitState, perMinute: number, nowMs: number, spanMs: number): number => {
  const { lowered } = state
  if (lowered === null) return perMinute
  return Math.min(perMinute, lowered.to + (perMinute * 0.05 * Math.max(0, nowMs - lowered.at)) / spanMs)
}

const settle = (leases: ReadonlyArray<CountedLease>, settled: SettledPermits | null, nowMs: number, spanMs: number) =>
  leases.flatMap((lease) => {
    if (settled === null || lease.id !== settled.id) return [lease]
    if (settled.used <= 0) return []
    const countsUntil = Math.min(lease.countsUntil, toMicros(nowMs - settled.ageMs + spanMs))
    const permits = Math.min(lease.permits, settled.used)
    return [{ ...lease, permits, backfill: Math.min(lease.backfill, settled.used), countsUntil }]
  })

const permitsOf = (
  state: PermitState,
  request: PermitRequest,
  perMinute: number,
  nowMs: number,
  spanMs: number,
  newId: bigint
): readonly [PermitState, Permits] => {
  const { wanted } = request
  const leases = settle(state.leases, request.settled, nowMs, spanMs)
    .filter(({ countsUntil }) => countsUntil > nowMs)
    .map((one) =>
      one.countsUntil > nowMs + spanMs + clockSlackMs ? { ...one, countsUntil: toMicros(nowMs + spanMs) } : one
    )
  const effectivePerMinute = effectiveLimits(state, perMinute, nowMs, spanMs)
  const pausedMs = Math.max(0, state.pausedUntil - nowMs)
  if (pausedMs > 0 || classes.every((one) => wanted[one] === 0)) {
    const granted = { urgent: 0, live: 0, backfill: 0 }
    return [
      { ...state, leases },
      { leaseId: null, granted, waitMs: 0, pausedMs, effectivePerMinute }
    ]
  }

  const counted = leases.reduce((sum, { permits }) => sum + permits, 0)
  const low = leases.reduce((sum, { backfill }) => sum + backfill, 0)
  const nextFree = leases.reduce((least, { countsUntil }) => Math.min(least, countsUntil), Number.POSITIVE_INFINITY)
  const beatMs = spanMs / 60
  const allowed = Math.max(1, Math.floor(effectivePerMinute + 1e-9))
  const isSlowed = allowed < perMinute
  const urgentShare = Math.floor(allowed / 200)
  const everyMs = spanMs / (allowed - urgentShare)
  const depthMs = Math.max(beatMs, 2 * everyMs)
  let paced = Math.min(nowMs, Math.max(state.pacedAt ?? nowMs - depthMs, nowMs - depthMs))
  let credits = Math.floor((nowMs - paced) / everyMs + 1e-3)
  let room = allowed - counted
  const pay = (permits: number) => {
    credits -= permits
    paced += permits * everyMs
  }
  const isWaiting = (one: PriorityClass) => {
    const until = state.waitsUntil[one]
    return until !== null && until > nowMs && (one === "backfill" || until <= nowMs + 3 * beatMs)
  }

  let urgent = Math.max(0, Math.min(wanted.urgent, room))
  if (isSlowed) {
    urgent = Math.min(urgent, credits)
    pay(urgent)
  }
  room -= urgent + urgentShare

  let yields = wanted.urgent === 0 && isWaiting("urgent")
  const kept = low * 10 < allowed && (wanted.backfill > 0 || isWaiting("backfill")) ? 1 : 0
  const freeLive = isSlowed ? 0 : Math.max(0, Math.floor((allowed + 1) / 2) - counted - urgent)
  let live = 0
  if (!yields) {
    live = Math.max(0, Math.min(wanted.live, room - kept, freeLive + Math.max(0, credits - kept)))
    pay(Math.max(0, live - freeLive))
    room -= live
  }

  yields ||= live < wanted.live || (wanted.live === 0 && isWaiting("live"))
  let backfill = Math.max(0, Math.min(wanted.backfill, room, credits))
  if (yields) backfill = Math.min(backfill, kept)
  pay(backfill)
  room -= backfill

  let waitMs = 0
  if (urgent < wanted.urgent || live < wanted.live || backfill < wanted.backfill) {
    const isUrgent = urgent < wanted.urgent
    const isPaced = isUrgent ? isSlowed : live < wanted.live ? live >= freeLive : true
    const byWindow = (isUrgent ? room + urgentShare : room) >= 1 ? 0 : Math.min(nextFree, nowMs + spanMs) - nowMs
    const byPace = !isPaced || credits >= 1 ? 0 : paced + everyMs - nowMs
    const least = Math.max(byWindow, byPace)
    waitMs = Math.ceil(Math.max(1, Math.min(least <= 0 ? everyMs : least, beatMs)))
  }

  const permits = urgent + live + backfill
  const newLeases: ReadonlyArray<CountedLease> =
    permits === 0 ? [] : [{ id: newId, permits, backfill, countsUntil: toMicros(nowMs + request.validMs + spanMs) }]
  const granted = { urgent, live, backfill }
  const waitsUntil = (one: PriorityClass) =>
    wanted[one] === 0 ? state.waitsUntil[one] : granted[one] < wanted[one] ? toMicros(nowMs + waitMs + beatMs) : null
  return [
    {
      ...state,
      leases: [...leases, ...newLeases],
      pacedAt: toMicros(paced),
      waitsUntil: { urgent: waitsUntil("urgent"), live: waitsUntil("live"), backfill: waitsUntil("backfill") }
    },
    { leaseId: permits === 0 ? null : newId, granted, waitMs, pausedMs: 0, effectivePerMinute }
  ]
}

/** The permits without a limit. */
const unlimited = (wanted: ByClass<number>, pausedMs: number): Permits => ({
  leaseId: null,
  granted: pausedMs > 0 ? { urgent: 0, live: 0, backfill: 0 } : wanted,
  waitMs: 0,
  pausedMs,
  effectivePerMinute: Number.POSITIVE_INFINITY
})

/** Leases permits; `newId` is for the lease, if there is one. Without a limit every wanted permit is granted. */
export const leasePermits = (
  before: PermitState,
  request: PermitRequest,
  perMinute: number | null,
  nowMs: number,
  spanMs: number,
  newId: bigint
): readonly [PermitState, PermitGrant] => {
  const { urgent, live, backfill } = request.wanted
  const state = { ...before, pausedUntil: Math.min(before.pausedUntil, nowMs + pauseMaxMs.source) }
  const { cappedPauses, pausedBy, pausedUntil, probeUntil, releases } = state
  const isProbing = cappedPauses > 0 && pausedUntil <= nowMs && urgent + live + backfill > 0
  const isProbeOut = isProbing && probeUntil !== null && probeUntil > nowMs && probeUntil <= nowMs + probeMs
  const one = (isWanted: boolean) => (!isProbeOut && isWanted ? 1 : 0)
  const wanted = isProbing
    ? { urgent: one(urgent > 0), live: one(urgent === 0 && live > 0), backfill: one(urgent === 0 && live === 0) }
    : request.wanted
  const [next, permits] =
    perMinute === null
      ? [state, unlimited(wanted, Math.max(0, pausedUntil - nowMs))]
      : permitsOf(state, { ...request, wanted }, perMinute, nowMs, spanMs, newId)
  const isProbe = isProbing && classes.some((each) => permits.granted[each] > 0)
  return [
    isProbe ? { ...next, probeUntil: nowMs + probeMs } : next,
    {
      ...permits,
      waitMs: isProbe || isProbeOut ? 1000 : permits.waitMs,
      pausedBy:
        permits.pausedMs > 0 && pausedBy !== null
          ? {
              origin: pausedBy.origin,
              status: pausedBy.status,
              request: pausedBy.request,
              statedMs: pausedBy.statedMs,
              agoMs: Math.max(0, nowMs - pausedBy.at)
            }
          : null,
      isProbe,
      releases
    }
  ]
}

const intermediaryFirstMs = 60_000
/** The longest time that a clock and a database can represent, with room. */
const statedMaxMs = 1e12
/** A probe that is not answered within this time is followed by another one. */
const probeMs = 60_000

/** The cap of a pause after this number of capped pauses in a row. */
const cappedPauseMs = ({ limited, origin }: Pick<PauseRequest, "limited" | "origin">, level: number): number => {
  if (origin === "source" || limited) return pauseMaxMs[origin]
  return Math.min(pauseMaxMs.intermediary, intermediaryFirstMs * 4 ** Math.min(level, 10))
}

/** Pauses all requests, up to the cap; a 429 also lowers the rate, since other programs use the same token. */
export const pause = (
  state: PermitState,
  pauseRequest: PauseRequest,
  perMinute: number | null,
  nowMs: number,
  spanMs: number
): PermitState => {
  const { limited, origin, request, status } = pauseRequest
  const statedMs = Math.min(Math.max(pauseRequest.statedMs, 0), statedMaxMs)
  // Requests that were in flight together count once.
  const isNew = nowMs >= state.pausedUntil
  const cappedBefore = state.cappedPauses
  const maxMs = cappedPauseMs(pauseRequest, isNew ? cappedBefore : Math.max(0, cappedBefore - 1))
  const isCapped = statedMs > maxMs
  const isExempt = request !== null && request === state.exemptRequest
  if (isCapped && isExempt && origin === "intermediary" && !limited) return state
  const until = toMicros(nowMs + Math.min(statedMs, maxMs))
  const isLonger = until > state.pausedUntil
  const next: PermitState = {
    ...state,
    pausedUntil: isLonger ? until : state.pausedUntil,
    pausedBy: isLonger ? { origin, status, request, statedMs, at: nowMs } : state.pausedBy,
    cappedPauses: !isCapped ? cappedBefore : isNew ? cappedBefore + 1 : Math.max(1, cappedBefore),
    probeUntil: null
  }
  const { lowered } = state
  if (!limited || perMinute === null || !isNew || (lowered !== null && nowMs < lowered.at + spanMs / 6)) return next
  const to = Math.max(Math.ceil(perMinute / 10), 0.75 * effectiveLimits(state, perMinute, nowMs, spanMs))
  return { ...next, lowered: { to, at: next.pausedUntil } }
}

/** Ends the probe: answered, so that every request may be sent again, or unknown, so that another one may be sent. */
export const endProbe = (state: PermitState, request: string, isAnswered: boolean): PermitState => {
  const { exemptRequest, pausedBy } = state
  if (state.probeUntil === null) return state
  if (!isAnswered) return { ...state, probeUntil: null }
  const isIntermediary = pausedBy?.origin === "intermediary" && pausedBy.status !== 429
  return {
    ...state,
    cappedPauses: 0,
    probeUntil: null,
    exemptRequest: pausedBy?.request === request ? null : isIntermediary ? pausedBy.request : exemptRequest
  }
}

/** A permit store in memory, which keeps the rule. */
export const memory = (perMinute: number | null): Effect.Effect<PermitStore> =>
  Effect.map(MonotonicClock.make, (now) => {
    let state = emptyPermitState
    let leases = 0n
    return {
      perMinute,
      cacheMaxMs: Number.POSITIVE_INFINITY,
      lease: (request) =>
        Effect.sync(() => {
          const [next, grant] = leasePermits(state, request, perMinute, now(), spanMsDefault, (leases += 1n))
          state = next
          return grant
        }),
      pause: (request) =>
        Effect.sync(() => {
          const at = now()
          state = pause(state, request, perMinute, at, spanMsDefault)
          return Math.max(0, state.pausedUntil - at)
        }),
      endProbe: (request, isAnswered) =>
        Effect.sync(() => {
          state = endProbe(state, request, isAnswered)
        })
    }
  })

/** A budget for one process, by the rule; null for no limit but Retry-After. */
export const processBudget = (perMinute: number | null, options: BudgetOptions = {}) =>
  Effect.gen(function* () {
    const store = yield* memory(perMinute)
    // Its fiber waits while no request does.
    return yield* Scope.provide(fromPermitStore(store, options), yield* Scope.make())
  })
