/** The permits of one lease: how many are left, how many were used, and how long they are valid. */
import type { SettledPermits } from "./PermitPolicy.ts"

/** All times are on the process's monotonic clock, in milliseconds. */
export interface LeasedPermits {
  readonly leaseId: bigint | null
  left: number
  used: number
  usedAt: number
  /** After this time the permits must not be used. */
  readonly validUntil: number
}

export const noPermits: Readonly<LeasedPermits> = { leaseId: null, left: 0, used: 0, usedAt: 0, validUntil: 0 }

export const usePermit = (permits: LeasedPermits, at: number): void => {
  permits.left -= 1
  permits.used += 1
  permits.usedAt = at
}

/** The usage to report, so that the store reclaims the unused permits; null without a lease. */
export const settledPermits = ({ leaseId, used, usedAt }: LeasedPermits, at: number): SettledPermits | null =>
  leaseId === null ? null : { id: leaseId, used, ageMs: Math.max(0, at - usedAt) }
