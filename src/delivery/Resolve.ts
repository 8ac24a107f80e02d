/** What a round changes: a pure function of its attempts. */
import * as Plan from "./Plan.ts"
import * as RetryPolicy from "./RetryPolicy.ts"
import type { Attempt } from "./Sending.ts"
import type { EndpointRow, Waiting } from "./SenderStore.ts"
import type { Change } from "../changes/ChangeFeed.ts"

/** A row of `tributary.change_retries`. */
export interface Wait {
  readonly position: bigint
  readonly company: bigint
  readonly resource: string
  readonly record: bigint | null
  readonly state: "waiting" | "dead"
  readonly attempts: number
  readonly failed: number | null
  readonly next: number
  readonly error: string | null
}

export interface Resolution {
  /** Positions that are delivered. */
  readonly delivered: ReadonlyArray<bigint>
  readonly waits: ReadonlyArray<Wait>
  /** The results of the attempts, for the log. */
  readonly results: ReadonlyArray<"delivered" | "failed" | "dead">
  /** Why the deliveries end; null where they go on. */
  readonly endReason: string | null
  readonly failingSinceMs: number | null
  readonly failures: number
  readonly nextAttemptMs: number | null
  readonly hasSuccess: boolean
  /** The endpoint accepts messages again: what waits is due at once. */
  readonly isRecovered: boolean
}

export interface ResolveOptions {
  readonly row: Pick<EndpointRow, "failures" | "failingSinceMs" | "nextAttemptMs" | "succeededMs" | "retryHours">
  readonly waiting: ReadonlyArray<Waiting>
  readonly attempts: ReadonlyArray<Attempt>
  /** New changes that were not sent. */
  readonly unsent: ReadonlyArray<Change>
  readonly nowMs: number
  /** From 0 to 1. */
  readonly random: () => number
}

const unsentWait = (change: Change, nowMs: number): Wait => ({
  position: change.position,
  company: change.companyId,
  resource: change.resource,
  record: change.id,
  state: "waiting",
  attempts: 0,
  failed: null,
  next: nowMs,
  error: null
})

/** The records whose earliest change has failed, after the round. */
const countFailed = (
  waiting: ReadonlyArray<Waiting>,
  delivered: ReadonlySet<bigint>,
  failed: ReadonlyArray<Attempt>
) => {
  const now = new Set(failed.flatMap(({ items }) => items.map(({ key }) => key)))
  const earlier = waiting.filter(({ position }) => !delivered.has(position))
  const keyOf = Plan.makeKeys(earlier)
  for (const one of earlier) if (one.attempts > 0) now.add(keyOf(one, one.recordId))
  return now.size
}

export const resolve = ({ row, waiting, attempts, unsent, nowMs, random }: ResolveOptions): Resolution => {
  const failed = attempts.filter(({ isDelivered }) => !isDelivered)
  const hasSuccess = failed.length < attempts.length
  const hasFailed = failed.length > 0
  const delivered = attempts.flatMap(({ isDelivered, items }) =>
    isDelivered ? items.map(({ change }) => change.position) : []
  )
  const isWide = countFailed(waiting, new Set(delivered), failed) >= RetryPolicy.failedRecordsMax
  const isFailing = !hasSuccess && hasFailed
  const failingSinceMs = hasSuccess ? null : (row.failingSinceMs ?? (isFailing ? nowMs : null))
  const failures = hasSuccess ? 0 : row.failures + (isFailing ? 1 : 0)
  const retryMs = row.retryHours * 3_600_000
  const isGone = failed.some(({ status }) => status === RetryPolicy.goneStatus)
  const isFaultOfEndpoint = isFailing && (isWide || failed.some(({ status }) => !RetryPolicy.isFaultOfMessage(status)))
  const isDead = isGone || (isFaultOfEndpoint && failingSinceMs !== null && nowMs - failingSinceMs >= retryMs)
  const states = failed.map(({ status, items }) => {
    const since = Math.min(...items.map(({ waiting: one }) => one?.failedMs ?? nowMs))
    const worksOtherwise =
      hasSuccess ||
      (row.succeededMs !== null && row.succeededMs > since) ||
      (RetryPolicy.isFaultOfMessage(status) && !isWide)
    return worksOtherwise && !isGone && nowMs - since >= retryMs ? "dead" : "waiting"
  })
  const waits = failed.flatMap((attempt, index) =>
    attempt.items.map(({ change, waiting: one }): Wait => {
      const failuresOfChange = (one?.attempts ?? 0) + 1
      const pauseMs = Math.max(
        RetryPolicy.pauseMs(failuresOfChange, random()),
        RetryPolicy.boundedRetryAfterMs(attempt.retryAfterMs ?? 0)
      )
      return {
        ...unsentWait(change, nowMs),
        state: states[index]!,
        attempts: failuresOfChange,
        failed: one?.failedMs ?? nowMs,
        next: nowMs + pauseMs,
        error: attempt.error
      }
    })
  )
  const limitedMs = failed.flatMap(({ status, retryAfterMs }) =>
    retryAfterMs !== null && (status === 429 || status === 503) ? RetryPolicy.boundedRetryAfterMs(retryAfterMs) : []
  )
  const pausesMs = [...(isFailing && isWide ? [RetryPolicy.endpointPauseMs(failures, random())] : []), ...limitedMs]
  return {
    delivered,
    waits: [...waits, ...unsent.map((change) => unsentWait(change, nowMs))],
    results: attempts.map((one) =>
      one.isDelivered ? "delivered" : states[failed.indexOf(one)] === "dead" ? "dead" : "failed"
    ),
    endReason: isGone
      ? "it answered 410: it is gone"
      : isDead
        ? `it accepted nothing for ${row.retryHours} hours; the last failure: ${failed.at(-1)!.error}`
        : null,
    failingSinceMs,
    failures,
    nextAttemptMs: isDead || pausesMs.length === 0 ? null : nowMs + Math.max(...pausesMs),
    hasSuccess,
    isRecovered: hasSuccess && row.nextAttemptMs !== null && row.failures > 0
  }
}
