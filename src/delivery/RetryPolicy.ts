/**
 * When a failed change is sent again, and when its endpoint is tried again. Times are of the warehouse's clock.
 *
 * The pause after a failure grows threefold from 5 s to 4 hours, with a jitter of a fifth. An endpoint that accepts
 * nothing is tried with one message at a time, at most 10 minutes apart.
 */
const firstPauseMs = 5_000
const pauseMaxMs = 4 * 3_600_000
const endpointPauseMaxMs = 600_000
/** A longer Retry-After is shortened to this time. */
const retryAfterMaxMs = 6 * 3_600_000
const jitterShare = 0.2

/** So many records have failed without a success before the whole endpoint pauses. */
export const failedRecordsMax = 5

/** `random` is from 0 to 1. */
const withJitter = (ms: number, random: number): number => Math.round(ms * (1 + jitterShare * (2 * random - 1)))

/** The pause of a change after this number of failures. */
export const pauseMs = (failures: number, random: number): number =>
  withJitter(Math.min(pauseMaxMs, firstPauseMs * 3 ** Math.min(20, failures - 1)), random)

/** The pause of an endpoint after this number of rounds without a success. */
export const endpointPauseMs = (rounds: number, random: number): number =>
  withJitter(Math.min(endpointPauseMaxMs, firstPauseMs * 2 ** Math.min(20, rounds - 1)), random)

export const boundedRetryAfterMs = (ms: number): number => Math.min(retryAfterMaxMs, ms)

/** Statuses that are about the message. Any other failure is one of the endpoint. */
const messageFaults: ReadonlySet<number> = new Set([400, 406, 409, 412, 413, 415, 422])

/** The endpoint is gone for good: nothing is sent again. */
export const goneStatus = 410

export const isDelivered = (status: number): boolean => status >= 200 && status < 300

export const isFaultOfMessage = (status: number | null): boolean => status !== null && messageFaults.has(status)
