/** What a round changes: a pure function of its attempts. */
import * as Plan from "./Plan.ts"
import * as RetryPolicy from "./RetryPolicy.ts"
import type { Attempt } from "./Sending.ts"
import type { EndpointRow } from "./SenderStore.ts"

/** A row of `tributary.change_retries`. */
export interface Wait extends Plan.Entry {
  readonly state: "waiting" | "sending" | "dead"
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
  readonly row: Pick<
    EndpointRow,
    "kind" | "failures" | "failingSinceMs" | "nextAttemptMs" | "succeededMs" | "retryHours"
  >
  readonly waiting: ReadonlyArray<Plan.Entry>
  readonly attempts: ReadonlyArray<Attempt>
  /** New changes that were not sent. */
  readonly unsent: ReadonlyArray<Plan.Entry>
  /** Whether the receiver recognizes a message that it has, so that one with an unknown outcome is sent again. */
  readonly isIdempotent: boolean
  readonly nowMs: number
  /** From 0 to 1. */
  readonly random: () => number
}

/** The records whose earliest change has failed, after the round. */
const countFailed = (
  waiting: ReadonlyArray<Plan.Entry>,
  delivered: ReadonlySet<bigint>,
  failed: ReadonlyArray<Attempt>
) => {
  const now = new Set(failed.flatMap(({ items }) => items.map(({ key }) => key)))
  const earlier = waiting.filter(({ position }) => !delivered.has(position))
  const keyOf = Plan.makeKeys(earlier)
  for (const one of earlier) if (one.attempts > 0) now.add(keyOf(one))
  return now.size
}

export const resolve = (options: ResolveOptions): Resolution => {
  const { row, waiting, attempts, unsent, isIdempotent, nowMs, random } = options
  const failed = attempts.filter(({ error }) => error !== null)
  const hasSuccess = failed.length < attempts.length
  const hasFailed = failed.length > 0
  const delivered = attempts.flatMap(({ error, items }) =>
    error === null ? items.map(({ position }) => position) : []
  )
  const isWide = countFailed(waiting, new Set(delivered), failed) >= RetryPolicy.failedRecordsMax
  const isFailing = !hasSuccess && hasFailed
  const failingSinceMs = hasSuccess ? null : (row.failingSinceMs ?? (isFailing ? nowMs : null))
  const failures = hasSuccess ? 0 : row.failures + (isFailing ? 1 : 0)
  const retryMs = row.retryHours * 3_600_000
  // An alert route never ends: nothing would announce that it did.
  const canEnd = row.kind === "changes"
  const isGone = canEnd && failed.some(({ status }) => status === RetryPolicy.goneStatus)
  const isFaultOfEndpoint = isFailing && (isWide || failed.some(({ status }) => !RetryPolicy.isFaultOfMessage(status)))
  const isDead = isGone || (canEnd && isFaultOfEndpoint && failingSinceMs !== null && nowMs - failingSinceMs >= retryMs)
  const states = failed.map(({ status, items, mayHaveArrived }) => {
    if (mayHaveArrived && !isIdempotent) return "dead"
    const since = Math.min(...items.map(({ failedMs }) => failedMs ?? nowMs))
    const worksOtherwise =
      !canEnd ||
      hasSuccess ||
      (row.succeededMs !== null && row.succeededMs > since) ||
      (RetryPolicy.isFaultOfMessage(status) && !isWide)
    return worksOtherwise && !isGone && nowMs - since >= retryMs ? "dead" : "waiting"
  })
  const waits = failed.flatMap((attempt, index) =>
    attempt.items.map((item): Wait => {
      const pauseMs = Math.max(
        RetryPolicy.pauseMs(item.attempts + 1, random()),
        RetryPolicy.boundedRetryAfterMs(attempt.retryAfterMs ?? 0)
      )
      return {
        ...item,
        state: states[index]!,
        attempts: item.attempts + 1,
        failedMs: item.failedMs ?? nowMs,
        nextAttemptMs: nowMs + pauseMs,
        error:
          attempt.mayHaveArrived && !isIdempotent
            ? `${attempt.error}; the receiver may have the message`
            : attempt.error
      }
    })
  )
  const limitedMs = failed.flatMap(({ status, retryAfterMs }) =>
    retryAfterMs !== null && (status === 429 || status === 503) ? RetryPolicy.boundedRetryAfterMs(retryAfterMs) : []
  )
  const pausesMs = [...(isFailing && isWide ? [RetryPolicy.endpointPauseMs(failures, random())] : []), ...limitedMs]
  return {
    delivered,
    waits: [...waits, ...unsent.map((one): Wait => ({ ...one, state: "waiting", error: null }))],
    results: attempts.map((one) =>
      one.error === null ? "delivered" : states[failed.indexOf(one)] === "dead" ? "dead" : "failed"
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
