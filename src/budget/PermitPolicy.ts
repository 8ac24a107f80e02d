/**
 * The policy of a rate budget: its permits, and the pauses that answers request.
 *
 * `tributary.lease_permits` in Postgres is the rule that grants them. Promise: permits that are used within their lease
 * never number more than the limit in any window of the span. So a server never answers 429 because of that limit, whether
 * it counts by fixed windows, by sliding ones, or fills a bucket. `test/budget/PermitRule.ts` states the rule once more, in
 * TypeScript; a test compares the two.
 *
 * Within the limit, by class:
 * - urgent requests may use all of it; the other two leave them a two-hundredth.
 * - live requests may use half of the window at once, and go at an even pace beyond. So a large sync does not use up the
 *   permits of a whole minute.
 * - backfills go at an even pace from the beginning, and yield to requests that wait with a nearer target. Of every ten
 *   permits one is theirs, so that they are never starved.
 * While the effective rate is lowered after a 429, every class goes at the even pace.
 *
 * A Retry-After is obeyed up to a cap that depends on the sender: 24 h with the error body of the API, 1 h for a 429
 * without it. For another answer without it the cap is 1 min, four times that after each probe with the same answer, up to
 * 1 h. After a pause that ended before its Retry-After one permit is granted, the probe; the others follow its answer.
 */

/** The class of a request: how near its freshness target is. */
export type PriorityClass = "urgent" | "live" | "backfill"

export const classes: ReadonlyArray<PriorityClass> = ["urgent", "live", "backfill"]

export type ByClass<A> = Readonly<Record<PriorityClass, A>>

/**
 * The sender of the answer that requested a pause: `source` with the error body of the API, `intermediary` without it (a
 * proxy, a firewall).
 */
export type PauseOrigin = "source" | "intermediary"

/** The answer that requested a pause. */
export interface PauseCause {
  readonly origin: PauseOrigin
  readonly status: number
  /** Method and path of the request; null where an earlier version did not store it. */
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

/** The usage of a lease: how many of its permits were used, and how long ago the last one was. */
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
  /** When to request again the permits that were not granted. */
  readonly waitMs: number
  /** How long no request may be sent; no permit is granted then. */
  readonly pausedMs: number
  readonly effectivePerMinute: number
  /** The answer that requested the pause; null without a pause, or where the answer is not known. */
  readonly pausedBy: PauseReport | null
  /** The one permit after a capped pause: the end of its request is to be reported. */
  readonly isProbe: boolean
  readonly releases: number
}

/** The longest pause, by the sender of the answer that requested it. A request is tried again after it, whatever it says. */
export const pauseMaxMs = { source: 24 * 3_600_000, intermediary: 3_600_000 } as const
const intermediaryFirstMs = 60_000

/** The cap of a first pause. The store raises it after each probe with the same answer. */
export const firstPauseMaxMs = ({ limited, origin }: Pick<PauseRequest, "limited" | "origin">): number =>
  origin === "source" || limited ? pauseMaxMs[origin] : intermediaryFirstMs
