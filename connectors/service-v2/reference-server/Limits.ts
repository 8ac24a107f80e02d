/** The limits of the service, which the control plane may change. */
import { limits } from "../catalogue/limits.ts"

export interface Limits {
  /** Null means no limit. */
  readonly requestsPerMinute: number | null
  readonly rateScope: "token" | "user" | "install"
  readonly testCallsPerMinute: number
  readonly failureThreshold: number
  readonly attemptsPerEvent: number
  /** Seconds between two delivery cycles (H-24). */
  readonly cycleSeconds: number
  /** Hours for which the old secret still signs after a rotation (H-08). */
  readonly rotationHours: number
  /** Whether deliveries may be sent to addresses that are not public (H-22). */
  readonly allowPrivateReceivers: boolean
}

export const plainLimits: Limits = {
  requestsPerMinute: limits.requestsPerMinute,
  rateScope: "token",
  testCallsPerMinute: limits.webhookTestsPerMinute,
  failureThreshold: limits.webhookFailuresMax,
  attemptsPerEvent: limits.webhookAttemptsMax,
  cycleSeconds: 300,
  rotationHours: 24,
  allowPrivateReceivers: false
}
