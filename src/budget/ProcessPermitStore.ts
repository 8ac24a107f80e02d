/**
 * The permit store of one process without a warehouse.
 *
 * Promise: it grants no more permits than the limit in any window. A restart forgets the permits of the process before, so
 * that the source may answer 429 once.
 */
import * as Effect from "effect/Effect"
import type { ByClass, PermitRequest } from "./PermitPolicy.ts"
import { classes } from "./PermitPolicy.ts"
import { type PermitStore, spanMsDefault, unlimited } from "./PermitStore.ts"

/** Permits that were granted together. */
interface Lease {
  readonly id: bigint
  count: number
  /** When they no longer count. */
  endsAt: number
}

/** Reclaims the unused permits of a lease. */
const settle = (leases: ReadonlyArray<Lease>, { settled }: PermitRequest, at: number) => {
  const lease = leases.find(({ id }) => id === settled?.id)
  if (lease === undefined || settled === null) return
  lease.count = settled.used
  lease.endsAt = at - settled.ageMs + spanMsDefault
}

/** A store with this limit; `now` is the monotonic clock in milliseconds. */
export const make = (now: () => number, perMinute: number): PermitStore => {
  const pauses = unlimited(now)
  let leases: ReadonlyArray<Lease> = []
  let nextId = 1n
  return {
    ...pauses,
    perMinute,
    lease: (request) =>
      Effect.map(pauses.lease(request), (grant) => {
        const at = now()
        settle(leases, request, at)
        leases = leases.filter(({ count, endsAt }) => count > 0 && endsAt > at)
        if (grant.pausedMs > 0) return { ...grant, effectivePerMinute: perMinute }
        let free = perMinute - leases.reduce((sum, { count }) => sum + count, 0)
        const granted = { urgent: 0, live: 0, backfill: 0 }
        for (const one of classes) {
          granted[one] = Math.max(0, Math.min(free, request.wanted[one]))
          free -= granted[one]
        }
        const count = sumOf(granted)
        const id = nextId++
        // Permits may be used until the end of their lease, and count from then.
        if (count > 0) leases = [...leases, { id, count, endsAt: at + request.validMs + spanMsDefault }]
        const waitMs = count < sumOf(request.wanted) ? Math.min(...leases.map(({ endsAt }) => endsAt)) - at : 0
        return { ...grant, leaseId: count > 0 ? id : null, granted, waitMs, effectivePerMinute: perMinute }
      })
  }
}

const sumOf = (permits: ByClass<number>) => classes.reduce((sum, one) => sum + permits[one], 0)
