/**
 * The memory of the checks of one company in one process: a check of a quiet company is one request.
 *
 * Promise: a delivery log is left unread only if the list of subscriptions shows that it has no new entry. Each attempt
 * changes the failure count or the time of the last delivery. The log must have been read twice while both were as they
 * are now: the time may have a resolution of a second. The newest entry must agree with that time, so a source that does
 * not report it is read in each check. A subscription that was disabled by one answer and enabled again shows the same
 * values; so everything is read at least each hour.
 */
import type { Identity } from "../connector/Connector.ts"
import type { SubscriptionRow } from "../subscriptions/SubscriptionStore.ts"

export interface CheckMemory {
  /** The identity of the company at the last check that read everything; null before the first. */
  identity: Identity | null
  /** When everything was last read, in milliseconds by the warehouse's clock. */
  readAtMs: number
  /** What the list showed at the last reads of each log, and how often the log was read since. */
  readonly logs: Map<string, { readonly shown: string; readonly reads: number }>
}

export const make = (): CheckMemory => ({ identity: null, readAtMs: 0, logs: new Map() })

/** Time after which a check reads everything, also of a quiet company. */
const readEveryMs = 3_600_000
const readsMin = 2

/** The known identity; null if this check has to read everything. */
export const identityOf = ({ identity, readAtMs }: CheckMemory, atMs: number): Identity | null =>
  atMs >= readAtMs && atMs - readAtMs < readEveryMs ? identity : null

const shownBy = ({ failCount, lastDeliveryAt }: SubscriptionRow): string => `${failCount} ${lastDeliveryAt}`

/** Whether the list shows that the log has no entry that was not read. */
export const isLogKnown = ({ logs }: CheckMemory, row: SubscriptionRow): boolean => {
  const log = logs.get(row.id)
  const isQuiet = row.state === "active" && row.unhealthyReason === null && row.failCount === 0n
  return isQuiet && log !== undefined && log.reads >= readsMin && log.shown === shownBy(row)
}

/** Remembers a read of a log; `newestAt` is the time of its newest entry. */
export const rememberLog = ({ logs }: CheckMemory, row: SubscriptionRow, newestAt: string | null): void => {
  const shown = shownBy(row)
  const { lastDeliveryAt } = row
  // The time of the last delivery may be given in whole seconds.
  const agrees =
    newestAt === null || (lastDeliveryAt !== null && Date.parse(newestAt) < Date.parse(lastDeliveryAt) + 1000)
  const before = logs.get(row.id)
  if (!agrees) logs.delete(row.id)
  else logs.set(row.id, { shown, reads: before?.shown === shown ? before.reads + 1 : 1 })
}
