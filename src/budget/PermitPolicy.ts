/**
 * Which permits may be given now: the rule of the budget, without a clock and without a place.
 *
 * Promise: whatever is asked and whenever, permits that are used within their lease never number more than the limit in
 * any window of the span, so that no server provokes a 429 with that limit, whether it counts by fixed windows, by
 * sliding ones, or fills a bucket. `tributary.lease_permits` in Postgres is the same rule; a test holds them equal.
 *
 * Within the limit, by class:
 * - urgent work may use all of it; the other two leave it a two-hundredth.
 * - live work may use half of the window at once and goes at an even pace beyond; so that a large sync does not leave
 *   everybody without a permit for the rest of a minute.
 * - backfills go at an even pace from the beginning, and yield to whoever waits with something nearer; but of every ten
 *   permits one is theirs, so that they are never starved.
 * While the effective rate is lowered after a 429, everybody goes at the even pace.
 *
 * A Retry-After is obeyed to the letter up to a bound that depends on who sent it: 24 h with the error body of the API,
 * 1 h for a 429 without it, 1 min for another answer without it, four times that after each probe that met the same, up
 * to 1 h. After a pause that ended before its Retry-After one permit is granted, the probe; the others follow its answer.
 */

/** How near a broken promise is. */
export type PriorityClass = "urgent" | "live" | "backfill"

export const classes: ReadonlyArray<PriorityClass> = ["urgent", "live", "backfill"]

export type ByClass<A> = Readonly<Record<PriorityClass, A>>

/** The window of the limit. */
export const windowMs = 60_000
/**
 * A permit counts this much longer than the window, since requests take different times to arrive: one that is sent
 * late and fast must not overtake one that was sent a minute before and slowly.
 */
export const guardMs = 500

/** A lease with this much more before it than any has was made by a clock that was set back since. */
const clockSlackMs = 20_000

/** Permits that were given and still count. */
export interface CountedLease {
  readonly id: bigint
  readonly permits: number
  readonly backfill: number
  readonly countedUntil: number
}

/** The sender of the answer that requested a pause: `source` with the error body of the API; `intermediary` without (a proxy, a firewall). */
export type PauseOrigin = "source" | "intermediary"

/** The answer that asked for a pause. */
export interface PauseCause {
  readonly origin: PauseOrigin
  readonly status: number
  /** Method and path of the request; null where an earlier version did not say. */
  readonly request: string | null
}

/** A pause as an answer asked for it. */
export interface PauseRequest extends PauseCause {
  /** Its Retry-After. */
  readonly statedMs: number
  /** Whether it counts as a 429 of the token: then others use it too. */
  readonly limited: boolean
}

/** A pause that is in force: who asked for it, for how long, and how long ago. */
export interface PauseReport extends PauseCause {
  readonly statedMs: number
  readonly agoMs: number
}

/** What is known of one token; times in milliseconds of whoever keeps it. */
export interface PermitState {
  readonly leases: ReadonlyArray<CountedLease>
  readonly lowered: { readonly to: number; readonly at: number } | null
  readonly heldUntil: number
  /** The answer that asked for the last pause, and when it came. */
  readonly heldBy: (PauseCause & { readonly statedMs: number; readonly at: number }) | null
  /** Pauses in a row that ended before their Retry-After. */
  readonly cutHolds: number
  /** A probe is under way; another one may be sent after this time. */
  readonly probeUntil: number | null
  /** A request whose long Retry-After pauses no other request, since others were answered. */
  readonly exemptRequest: string | null
  /** How often a person ended a pause. */
  readonly releases: number
  readonly pacedAt: number | null
  /** Until when somebody of the class is known to wait. */
  readonly waitsUntil: ByClass<number | null>
}

export const emptyPermitState: PermitState = {
  leases: [],
  lowered: null,
  heldUntil: 0,
  heldBy: null,
  cutHolds: 0,
  probeUntil: null,
  exemptRequest: null,
  releases: 0,
  pacedAt: null,
  waitsUntil: { urgent: null, live: null, backfill: null }
}

/** What a lease came to: how many of its permits were used, the last of them so long ago. */
export interface SettledPermits {
  readonly id: bigint
  readonly used: number
  readonly ageMs: number
}

export interface PermitRequest {
  readonly wanted: ByClass<number>
  /** How long the permits may be used. */
  readonly validMs: number
  readonly settled: SettledPermits | null
}

export interface PermitGrant {
  readonly leaseId: bigint | null
  readonly granted: ByClass<number>
  /** When to ask again for what was not granted. */
  readonly waitMs: number
  /** How long nobody may send; nothing is granted then. */
  readonly heldMs: number
  readonly effectivePerMinute: number
  /** The answer that requested the pause; null where there is none, or where nothing is known of it. */
  readonly heldBy: PauseReport | null
  /** The one permit after a pause that was cut: what becomes of it is to be reported. */
  readonly isProbe: boolean
  readonly releases: number
}

type Permits = Omit<PermitGrant, "heldBy" | "isProbe" | "releases">

/** As Postgres keeps a time. */
const toMicros = (ms: number) => Math.round(ms * 1000) / 1000

export const effectiveLimits = (standing: PermitState, perMinute: number, nowMs: number, spanMs: number): number => {
  const { lowered } = standing
  if (lowered === null) return perMinute
  return Math.min(perMinute, lowered.to + (perMinute * 0.05 * Math.max(0, nowMs - lowered.at)) / spanMs)
}

const settle = (leases: ReadonlyArray<CountedLease>, settled: SettledPermits | null, nowMs: number, spanMs: number) =>
  leases.flatMap((lease) => {
    if (settled === null || lease.id !== settled.id) return [lease]
    if (settled.used <= 0) return []
    const countedUntil = Math.min(lease.countedUntil, toMicros(nowMs - settled.ageMs + spanMs))
    const permits = Math.min(lease.permits, settled.used)
    return [{ ...lease, permits, backfill: Math.min(lease.backfill, settled.used), countedUntil }]
  })

const permitsOf = (
  standing: PermitState,
  ask: PermitRequest,
  perMinute: number,
  nowMs: number,
  spanMs: number,
  newId: bigint
): readonly [PermitState, Permits] => {
  const { wanted } = ask
  const leases = settle(standing.leases, ask.settled, nowMs, spanMs)
    .filter(({ countedUntil }) => countedUntil > nowMs)
    .map((one) =>
      one.countedUntil > nowMs + spanMs + clockSlackMs ? { ...one, countedUntil: toMicros(nowMs + spanMs) } : one
    )
  const effectivePerMinute = effectiveLimits(standing, perMinute, nowMs, spanMs)
  const heldMs = Math.max(0, standing.heldUntil - nowMs)
  if (heldMs > 0 || classes.every((one) => wanted[one] === 0)) {
    const granted = { urgent: 0, live: 0, backfill: 0 }
    return [
      { ...standing, leases },
      { leaseId: null, granted, waitMs: 0, heldMs, effectivePerMinute }
    ]
  }

  const counted = leases.reduce((sum, { permits }) => sum + permits, 0)
  const low = leases.reduce((sum, { backfill }) => sum + backfill, 0)
  const nextFree = leases.reduce((least, { countedUntil }) => Math.min(least, countedUntil), Number.POSITIVE_INFINITY)
  const beatMs = spanMs / 60
  const allowed = Math.max(1, Math.floor(effectivePerMinute + 1e-9))
  const isSlowed = allowed < perMinute
  const urgentShare = Math.floor(allowed / 200)
  const everyMs = spanMs / (allowed - urgentShare)
  const depthMs = Math.max(beatMs, 2 * everyMs)
  let paced = Math.min(nowMs, Math.max(standing.pacedAt ?? nowMs - depthMs, nowMs - depthMs))
  let credits = Math.floor((nowMs - paced) / everyMs + 1e-3)
  let room = allowed - counted
  const pay = (permits: number) => {
    credits -= permits
    paced += permits * everyMs
  }
  const isWaiting = (one: PriorityClass) => {
    const until = standing.waitsUntil[one]
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
  const given: ReadonlyArray<CountedLease> =
    permits === 0 ? [] : [{ id: newId, permits, backfill, countedUntil: toMicros(nowMs + ask.validMs + spanMs) }]
  const granted = { urgent, live, backfill }
  const waitsUntil = (one: PriorityClass) =>
    wanted[one] === 0 ? standing.waitsUntil[one] : granted[one] < wanted[one] ? toMicros(nowMs + waitMs + beatMs) : null
  return [
    {
      ...standing,
      leases: [...leases, ...given],
      pacedAt: toMicros(paced),
      waitsUntil: { urgent: waitsUntil("urgent"), live: waitsUntil("live"), backfill: waitsUntil("backfill") }
    },
    { leaseId: permits === 0 ? null : newId, granted, waitMs, heldMs: 0, effectivePerMinute }
  ]
}

/** What is granted without a limit. */
const unlimited = (wanted: ByClass<number>, heldMs: number): Permits => ({
  leaseId: null,
  granted: heldMs > 0 ? { urgent: 0, live: 0, backfill: 0 } : wanted,
  waitMs: 0,
  heldMs,
  effectivePerMinute: Number.POSITIVE_INFINITY
})

/** Answers an ask; `newId` is for the lease, if there is one. Without a limit every wanted permit is granted. */
export const leasePermits = (
  before: PermitState,
  ask: PermitRequest,
  perMinute: number | null,
  nowMs: number,
  spanMs: number,
  newId: bigint
): readonly [PermitState, PermitGrant] => {
  const { urgent, live, backfill } = ask.wanted
  const standing = { ...before, heldUntil: Math.min(before.heldUntil, nowMs + pauseMsMax) }
  const { cutHolds, heldBy, heldUntil, probeUntil, releases } = standing
  const isProbing = cutHolds > 0 && heldUntil <= nowMs && urgent + live + backfill > 0
  const isProbeOut = isProbing && probeUntil !== null && probeUntil > nowMs && probeUntil <= nowMs + probeMs
  const one = (isWanted: boolean) => (!isProbeOut && isWanted ? 1 : 0)
  const wanted = isProbing
    ? { urgent: one(urgent > 0), live: one(urgent === 0 && live > 0), backfill: one(urgent === 0 && live === 0) }
    : ask.wanted
  const [next, permits] =
    perMinute === null
      ? [standing, unlimited(wanted, Math.max(0, heldUntil - nowMs))]
      : permitsOf(standing, { ...ask, wanted }, perMinute, nowMs, spanMs, newId)
  const isProbe = isProbing && classes.some((each) => permits.granted[each] > 0)
  return [
    isProbe ? { ...next, probeUntil: nowMs + probeMs } : next,
    {
      ...permits,
      waitMs: isProbe || isProbeOut ? 1000 : permits.waitMs,
      heldBy:
        permits.heldMs > 0 && heldBy !== null
          ? {
              origin: heldBy.origin,
              status: heldBy.status,
              request: heldBy.request,
              statedMs: heldBy.statedMs,
              agoMs: Math.max(0, nowMs - heldBy.at)
            }
          : null,
      isProbe,
      releases
    }
  ]
}

/** No pause is longer, whatever asked for it. */
export const pauseMsMax = 24 * 3_600_000
const foreignMaxMs = 3_600_000
const foreignFirstMs = 60_000
/** What a clock and a database can hold, with room. */
const statedMaxMs = 1e12
/** A probe that is not answered within this time is followed by another one. */
const probeMs = 60_000

/** How much of a Retry-After is believed after so many pauses that were cut. */
export const cappedPauseMs = ({ limited, origin }: Pick<PauseRequest, "limited" | "origin">, level: number): number => {
  if (origin === "source") return pauseMsMax
  return limited ? foreignMaxMs : Math.min(foreignMaxMs, foreignFirstMs * 4 ** Math.min(level, 10))
}

/** Pauses all requests for as long as is believed; a 429 also lowers the rate, since others use the same token. */
export const pause = (
  standing: PermitState,
  asked: PauseRequest,
  perMinute: number | null,
  nowMs: number,
  spanMs: number
): PermitState => {
  const { limited, origin, request, status } = asked
  const statedMs = Math.min(Math.max(asked.statedMs, 0), statedMaxMs)
  // Requests that were on their way together are one sign, not many.
  const isNews = nowMs >= standing.heldUntil
  const cutBefore = standing.cutHolds
  const maxMs = cappedPauseMs(asked, isNews ? cutBefore : Math.max(0, cutBefore - 1))
  const isCut = statedMs > maxMs
  const isExempt = request !== null && request === standing.exemptRequest
  if (isCut && isExempt && origin === "intermediary" && !limited) return standing
  const until = toMicros(nowMs + Math.min(statedMs, maxMs))
  const isLonger = until > standing.heldUntil
  const next: PermitState = {
    ...standing,
    heldUntil: isLonger ? until : standing.heldUntil,
    heldBy: isLonger ? { origin, status, request, statedMs, at: nowMs } : standing.heldBy,
    cutHolds: !isCut ? cutBefore : isNews ? cutBefore + 1 : Math.max(1, cutBefore),
    probeUntil: null
  }
  const { lowered } = standing
  if (!limited || perMinute === null || !isNews || (lowered !== null && nowMs < lowered.at + spanMs / 6)) return next
  const to = Math.max(Math.ceil(perMinute / 10), 0.75 * effectiveLimits(standing, perMinute, nowMs, spanMs))
  return { ...next, lowered: { to, at: next.heldUntil } }
}

/** What became of the probe: answered, so that all may send again, or unknown, so that another one may be sent. */
export const endProbe = (standing: PermitState, request: string, isAnswered: boolean): PermitState => {
  const { exemptRequest, heldBy } = standing
  if (standing.probeUntil === null) return standing
  if (!isAnswered) return { ...standing, probeUntil: null }
  const isForeign = heldBy?.origin === "intermediary" && heldBy.status !== 429
  return {
    ...standing,
    cutHolds: 0,
    probeUntil: null,
    exemptRequest: heldBy?.request === request ? null : isForeign ? heldBy.request : exemptRequest
  }
}
