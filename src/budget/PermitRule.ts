/**
 * The rule of a rate budget: pure functions from its state, a question and a time to the next state and the answer.
 * A store in memory and the one in Postgres both apply it.
 *
 * Promise: permits that are used while they are valid never number more than the limit in any minute. So a server never
 * answers 429 because of that limit, whether it counts by fixed windows, by sliding ones, or fills a bucket. Permits that
 * a process does not use count as used.
 *
 * Within the limit, each class leaves a share of it to the more urgent ones:
 * - urgent requests may use all of it.
 * - live requests may use half of it at once, and go at an even pace beyond. So a large sync does not use up the permits
 *   of a whole minute. They may be one permit ahead of the pace, and leave half of what backfills leave.
 * - backfills go at the even pace from the beginning, and leave a two-hundredth. While others leave them nothing, they may
 *   use every tenth permit, so that they are never starved.
 * While the rate is lowered after a 429, every class goes at the even pace.
 *
 * A Retry-After is obeyed up to a cap that depends on the sender: 24 h with the error body of the API, 1 h for a 429
 * without it. For another answer without it the cap is 1 min, four times that after each probe with the same answer, up to
 * 1 h. After a pause that ended before its Retry-After one permit is granted, the probe; the others follow its answer.
 */

/** The class of a request: how near its freshness target is. */
export type PriorityClass = "urgent" | "live" | "backfill"

/** The most urgent first. */
export const classes: ReadonlyArray<PriorityClass> = ["urgent", "live", "backfill"]

export type ByClass<A> = Readonly<Record<PriorityClass, A>>

export const forAll = <A>(value: A): ByClass<A> => ({ urgent: value, live: value, backfill: value })

export const sumOf = ({ urgent, live, backfill }: ByClass<number>): number => urgent + live + backfill

/**
 * The sender of the answer that requested a pause: `source` with the error body of the API, `intermediary` without it (a
 * proxy, a firewall).
 */
export type PauseOrigin = "source" | "intermediary"

/** The answer that requested a pause. */
export interface PauseCause {
  readonly origin: PauseOrigin
  readonly status: number
  /** Method and path of the request; null where the caller did not name it. */
  readonly request: string | null
}

/** A pause as an answer requested it. */
export interface PauseRequest extends PauseCause {
  /** Its Retry-After. */
  readonly statedMs: number
  /** Whether it counts as a 429 of the token: then other programs use the token too. */
  readonly limited: boolean
}

/** A pause that is in force: the answer that requested it, for how long, and how long ago. */
export interface PauseReport extends PauseCause {
  readonly statedMs: number
  readonly agoMs: number
}

/** What the rule remembers, besides what people and other programs read. All times are milliseconds since 1970. */
export interface RuleMemory {
  /** The time up to which the even pace is used. */
  readonly pacedAt: number
  /** When a backfill last got a permit. */
  readonly backfillAt: number
  /** The rate after the last 429; it rises again from that time on. */
  readonly lowered: { readonly to: number; readonly at: number } | null
  /** The answer that requested the last pause, and when it came. */
  readonly pausedBy: (PauseCause & { readonly statedMs: number; readonly at: number }) | null
  /** Pauses in a row that ended before their Retry-After. */
  readonly cappedPauses: number
  /** A probe is under way; another one may be sent after this time. */
  readonly probeUntil: number
  /** A request whose long Retry-After pauses no other request, since others were answered. */
  readonly exemptRequest: string | null
}

/** The state of one token's rate budget. */
export interface PermitState {
  /** The limit; null for none but Retry-After. */
  readonly perMinute: number | null
  /** The time of the state. */
  readonly at: number
  /** Permits, by the slot at whose end they stop counting; the first one is the slot of `at`. */
  readonly used: ReadonlyArray<number>
  readonly pausedUntil: number
  /** How often the source answered 429, and when it last did. */
  readonly refusals: number
  readonly refusedAt: number | null
  readonly memory: RuleMemory
}

export const emptyState = (perMinute: number | null): PermitState => ({
  perMinute,
  at: 0,
  used: [],
  pausedUntil: 0,
  refusals: 0,
  refusedAt: null,
  memory: {
    pacedAt: 0,
    backfillAt: 0,
    lowered: null,
    pausedBy: null,
    cappedPauses: 0,
    probeUntil: 0,
    exemptRequest: null
  }
})

export interface PermitRequest {
  readonly wanted: ByClass<number>
  /** How long the permits may be used. */
  readonly validMs: number
}

export interface PermitGrant {
  readonly granted: ByClass<number>
  /** When to request again the permits that were not granted. */
  readonly waitMs: number
  /** How long no request may be sent; no permit is granted then. */
  readonly pausedMs: number
  /** The answer that requested the pause; null without a pause. */
  readonly pausedBy: PauseReport | null
  /** The one permit after a capped pause: the end of its request is to be reported. */
  readonly isProbe: boolean
}

/**
 * How long a permit counts. Half a second longer than the window, since requests take different times to arrive: one that
 * is sent late and fast must not overtake one that was sent a minute before and slowly.
 */
const spanMs = 60_500
const slotMs = 250
/** The longest wait until a process asks again, and the time for which an unused pace is kept. */
const beatMs = 1_000
const slotOf = (ms: number) => Math.floor(ms / slotMs)
const between = (least: number, value: number, most: number) => Math.max(least, Math.min(value, most))

/** The state at this time. After the clock was set back, all times go back with it, so that nothing lasts longer. */
const advance = (state: PermitState, nowMs: number): PermitState => {
  const backMs = Math.max(0, state.at - nowMs)
  if (backMs === 0) return { ...state, at: nowMs, used: state.used.slice(slotOf(nowMs) - slotOf(state.at)) }
  const back = (ms: number) => Math.max(0, ms - backMs)
  const { backfillAt, lowered, pacedAt, probeUntil } = state.memory
  return {
    ...state,
    at: nowMs,
    // The end of the first slot may be nearer than it was.
    used: [0, ...state.used],
    pausedUntil: back(state.pausedUntil),
    memory: {
      ...state.memory,
      pacedAt: back(pacedAt),
      backfillAt: back(backfillAt),
      lowered: lowered === null ? null : { ...lowered, at: back(lowered.at) },
      probeUntil: back(probeUntil)
    }
  }
}

const total = (used: ReadonlyArray<number>) => used.reduce((sum, one) => sum + one, 0)

/** The permits that count at this time. */
export const usedAt = (state: PermitState, nowMs: number): number => total(advance(state, nowMs).used)

/** The limit at this time: after a 429 it rises by a twentieth of what is configured in each minute. */
export const allowedAt = (perMinute: number, { lowered }: RuleMemory, nowMs: number): number => {
  if (lowered === null) return perMinute
  const risen = (perMinute * 0.05 * Math.max(0, nowMs - lowered.at)) / spanMs
  return between(1, Math.floor(lowered.to + risen + 1e-9), perMinute)
}

/** The permits that the limit leaves to each class; `state` is of `nowMs`. */
const share = (
  state: PermitState,
  perMinute: number,
  { validMs, wanted }: PermitRequest,
  nowMs: number
): readonly [state: PermitState, granted: ByClass<number>, waitMs: number] => {
  const { memory } = state
  const allowed = allowedAt(perMinute, memory, nowMs)
  const isSlowed = allowed < perMinute
  const reserved = Math.floor(allowed / 200)
  const everyMs = spanMs / (allowed - reserved)
  const counted = total(state.used)
  const paced = Math.max(memory.pacedAt, nowMs - Math.max(beatMs, 2 * everyMs))
  const credits = Math.floor((nowMs - paced) / everyMs + 1e-3)
  let room = allowed - counted

  const urgent = between(0, wanted.urgent, Math.max(0, isSlowed ? Math.min(room, credits + 2) : room))
  room -= urgent
  let paid = isSlowed ? urgent : 0
  const isTenth = wanted.backfill > 0 && nowMs >= memory.backfillAt + 10 * everyMs
  const kept = isTenth && room >= 1 && (!isSlowed || credits - paid + 2 >= 1) ? 1 : 0

  const atOnce = isSlowed ? 0 : Math.max(0, Math.ceil(allowed / 2) - counted - urgent)
  const liveMax = Math.min(room - kept - Math.floor(reserved / 2), atOnce + Math.max(0, credits - paid - kept + 1))
  const live = between(0, wanted.live, Math.max(0, liveMax))
  room -= live
  paid += Math.max(0, live - atOnce)

  const backfill = between(0, wanted.backfill, Math.max(kept, Math.min(room - reserved, credits - paid)))
  room -= backfill
  const pacedAt = paced + (paid + backfill) * everyMs

  const granted = { urgent, live, backfill }
  const permits = sumOf(granted)
  const slot = slotOf(nowMs)
  const last = Math.ceil((nowMs + validMs + spanMs) / slotMs) - 1 - slot
  const used = [...state.used]
  while (used.length <= last) used.push(0)
  used[last]! += permits
  const isFull = room <= reserved
  const next = isFull ? (slot + 1 + used.findIndex((one) => one > 0)) * slotMs : pacedAt + everyMs
  const isRefused = classes.some((one) => granted[one] < wanted[one])
  return [
    { ...state, used, memory: { ...memory, pacedAt, backfillAt: backfill > 0 ? nowMs : memory.backfillAt } },
    granted,
    isRefused ? Math.ceil(between(1, next - nowMs, beatMs)) : 0
  ]
}

/** Whether a pause ended before its Retry-After, so that one request is sent, the probe, and the others wait. */
export const isProbing = ({ memory, pausedUntil }: PermitState, nowMs: number): boolean =>
  memory.cappedPauses > 0 && pausedUntil <= nowMs

/** The answer that requested the pause that is in force; null without one. */
export const pauseReport = ({ memory: { pausedBy }, pausedUntil }: PermitState, nowMs: number): PauseReport | null => {
  if (pausedBy === null || pausedUntil <= nowMs) return null
  const { at, origin, request, statedMs, status } = pausedBy
  return { origin, status, request, statedMs, agoMs: Math.max(0, nowMs - at) }
}

/** A probe that is not answered within this time is followed by another one. */
const probeMs = 60_000

/**
 * Grants permits. Without a limit every wanted one is granted, except in a pause. The state stays the same object where
 * nothing is to be stored.
 */
export const take = (
  before: PermitState,
  request: PermitRequest,
  perMinute: number | null,
  nowMs: number
): readonly [PermitState, PermitGrant] => {
  const state = { ...advance(before, nowMs), perMinute }
  const pausedMs = Math.max(0, state.pausedUntil - nowMs)
  const isOne = isProbing(state, nowMs)
  const isProbeOut = isOne && state.memory.probeUntil > nowMs
  const first = classes.find((one) => request.wanted[one] > 0)
  const one = first === undefined ? forAll(0) : { ...forAll(0), [first]: 1 }
  const wanted = pausedMs > 0 || isProbeOut ? forAll(0) : isOne ? one : request.wanted
  const [next, granted, waitMs] =
    perMinute === null ? [state, wanted, 0] : share(state, perMinute, { ...request, wanted }, nowMs)
  const isGranted = sumOf(granted) > 0
  const isProbe = isOne && isGranted
  const grant = {
    granted,
    waitMs: isProbe || isProbeOut ? beatMs : waitMs,
    pausedMs,
    pausedBy: pauseReport(state, nowMs),
    isProbe
  }
  if (isProbe) return [{ ...next, memory: { ...next.memory, probeUntil: nowMs + probeMs } }, grant]
  const isSame = nowMs >= before.at && (!isGranted || perMinute === null)
  return [isSame ? before : next, grant]
}

/** The longest pause, by the sender of the answer that requested it. A request is tried again after it, whatever it says. */
export const pauseMaxMs = { source: 24 * 3_600_000, intermediary: 3_600_000 } as const
const intermediaryFirstMs = 60_000
/** The longest time that a clock and a database can represent, with room. */
const statedMaxMs = 1e12

/** The cap of a pause after this number of capped pauses in a row. */
const cappedPauseMs = ({ limited, origin }: PauseRequest, level: number): number =>
  origin === "source" || limited
    ? pauseMaxMs[origin]
    : Math.min(pauseMaxMs.intermediary, intermediaryFirstMs * 4 ** Math.min(level, 10))

/** The rate after a 429: a quarter less, at least a tenth of the configured one. */
const lower = ({ memory, perMinute }: PermitState, pausedUntil: number, nowMs: number): RuleMemory["lowered"] => {
  const { lowered } = memory
  if (perMinute === null || (lowered !== null && nowMs < lowered.at + spanMs / 6)) return lowered
  return { to: Math.max(Math.ceil(perMinute / 10), 0.75 * allowedAt(perMinute, memory, nowMs)), at: pausedUntil }
}

/** Pauses all requests, up to the cap; a 429 also lowers the rate, since other programs use the same token. */
export const pause = (
  before: PermitState,
  asked: PauseRequest,
  perMinute: number | null,
  nowMs: number
): PermitState => {
  const state = { ...advance(before, nowMs), perMinute }
  const { limited, origin, request, status } = asked
  const { memory } = state
  const statedMs = between(0, asked.statedMs, statedMaxMs)
  // Answers to requests that were in flight together count once.
  const isNew = nowMs >= state.pausedUntil
  const maxMs = cappedPauseMs(asked, isNew ? memory.cappedPauses : Math.max(0, memory.cappedPauses - 1))
  const isCapped = statedMs > maxMs
  const isExempt = request !== null && request === memory.exemptRequest && origin === "intermediary" && !limited
  if (isCapped && isExempt) return before
  const until = nowMs + Math.ceil(Math.min(statedMs, maxMs))
  const isLonger = until > state.pausedUntil
  const pausedUntil = Math.max(until, state.pausedUntil)
  const cappedPauses = isNew ? memory.cappedPauses + 1 : Math.max(1, memory.cappedPauses)
  return {
    ...state,
    pausedUntil,
    refusals: state.refusals + (limited ? 1 : 0),
    refusedAt: limited ? nowMs : state.refusedAt,
    memory: {
      ...memory,
      lowered: limited && isNew ? lower(state, pausedUntil, nowMs) : memory.lowered,
      pausedBy: isLonger ? { origin, status, request, statedMs, at: nowMs } : memory.pausedBy,
      cappedPauses: isCapped ? cappedPauses : memory.cappedPauses,
      probeUntil: 0
    }
  }
}

/** Ends the probe: answered, so that every request may be sent again, or unknown, so that another one may be sent. */
export const endProbe = (state: PermitState, request: string, isAnswered: boolean): PermitState => {
  const { exemptRequest, pausedBy, probeUntil } = state.memory
  if (probeUntil === 0) return state
  if (!isAnswered) return { ...state, memory: { ...state.memory, probeUntil: 0 } }
  const isOfIntermediary = pausedBy?.origin === "intermediary" && pausedBy.status !== 429
  const exempt = pausedBy?.request === request ? null : isOfIntermediary ? pausedBy.request : exemptRequest
  return { ...state, memory: { ...state.memory, cappedPauses: 0, probeUntil: 0, exemptRequest: exempt } }
}

/** A person ends the pause. The second value is whether there was one. */
export const release = (state: PermitState, nowMs: number): readonly [PermitState, boolean] => {
  const isInForce = state.pausedUntil > nowMs || state.memory.cappedPauses > 0
  if (!isInForce && state.pausedUntil === 0) return [state, false]
  const memory = { ...state.memory, cappedPauses: 0, probeUntil: 0, exemptRequest: null }
  return [{ ...state, pausedUntil: 0, memory }, isInForce]
}

/** Whether a person has ended the last pause. A pause that is over, also by a clock that was set forward, keeps its end. */
export const isReleased = ({ at, pausedUntil }: PermitState): boolean => at > 0 && pausedUntil === 0
