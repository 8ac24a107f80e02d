/**
 * The pause of a rate budget, as one process knows it.
 *
 * It begins at once with an answer that requests it, even where the permit store does not answer. The store then decides
 * how long it lasts. After a pause that ended before its Retry-After, one request is the probe.
 */
import {
  firstPauseMaxMs,
  type PauseCause,
  type PauseReport,
  type PauseRequest,
  type PermitGrant
} from "./PermitPolicy.ts"

/** All times are on the process's monotonic clock, in milliseconds. */
export interface ProcessPause {
  until: number
  /** The answer that requested the pause, and the time of its report. */
  pausedBy: (PauseReport & { readonly at: number }) | null
  /** A requested pause that the store does not know yet. */
  unreported: (PauseRequest & { readonly at: number }) | null
  /** How often a person had ended a pause, by the last answer of the store. */
  releases: number | null
  /** The time of the last check whether a person ended the pause. */
  checkedAt: number
  /** The time at which this process received the probe; null when it has none to report. */
  probedAt: number | null
}

export const noPause = (): ProcessPause => ({
  until: 0,
  pausedBy: null,
  unreported: null,
  releases: null,
  checkedAt: 0,
  probedAt: null
})

const endOf = (request: PauseRequest, from: number) => from + Math.min(request.statedMs, firstPauseMaxMs(request))

export const pauseRequest = (statedMs: number, isLimit: boolean, cause?: PauseCause): PauseRequest => ({
  origin: cause?.origin ?? "source",
  status: cause?.status ?? (isLimit ? 429 : 503),
  request: cause?.request ?? null,
  statedMs,
  limited: isLimit
})

/** Begins or lengthens the pause; returns whether it is capped, so that a probe follows it. */
export const startPause = (pause: ProcessPause, request: PauseRequest, at: number): boolean => {
  const { limited, origin, request: name, statedMs, status } = request
  const until = endOf(request, at)
  // One report covers both: the longer pause, and whether one of them was a 429.
  const before = pause.unreported
  pause.unreported =
    before !== null && endOf(before, before.at) > until
      ? { ...before, limited: before.limited || limited }
      : { ...request, at, limited: limited || before?.limited === true }
  if (until > pause.until) {
    pause.until = until
    pause.pausedBy = { origin, status, request: name, statedMs, agoMs: 0, at }
  }
  pause.checkedAt = at
  pause.probedAt = null
  return until < at + statedMs
}

/** Updates the pause from the store: a pause of another process, its end by a person, the probe. */
export const updatePause = (pause: ProcessPause, grant: PermitGrant, at: number): void => {
  if (pause.releases !== null && grant.releases !== pause.releases) pause.until = 0
  pause.releases = grant.releases
  if (grant.pausedMs > 0) pause.until = Math.max(pause.until, at + grant.pausedMs)
  if (grant.pausedBy !== null) pause.pausedBy = { ...grant.pausedBy, at }
  if (grant.isProbe) pause.probedAt = at
}

/** The answer that requested the pause, with its age at that time. */
export const pauseReport = ({ pausedBy }: ProcessPause, now: number): PauseReport | null => {
  if (pausedBy === null) return null
  const { agoMs, at, origin, request, statedMs, status } = pausedBy
  return { origin, status, request, statedMs, agoMs: agoMs + Math.max(0, now - at) }
}
