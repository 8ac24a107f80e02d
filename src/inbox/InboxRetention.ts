/** Retention of the inbox: removes old events, closed delivery gaps and former processes. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

export interface PurgeOptions {
  /** How long resolved events and closed gaps are kept. */
  readonly keepMs: number
  /** How many resolved events are kept at most; default 2,000,000. */
  readonly resolvedMax?: number | undefined
  /** How many dead letters are kept at most; default 100,000. */
  readonly deadMax?: number | undefined
}

export interface PurgeResult {
  /** Resolved events. */
  readonly events: number
  readonly dead: number
  readonly gaps: number
  readonly processes: number
}

const resolvedMaxDefault = 2_000_000
/** Dead letters are kept longer than the source keeps events that it gave up (30 days). */
export const deadDays = 90
const deadMaxDefault = 100_000
const purgeBatch = 5_000

/**
 * Removes old rows, the oldest first. Pending events and open gaps always stay, and so does the last process of each set
 * of companies. A dead letter stays for {@link deadDays}, unless there are too many. A removed event that is delivered
 * again is processed again, which does no harm.
 */
export const purge = Effect.fnUntraced(function* (
  options: PurgeOptions
): Effect.fn.Return<PurgeResult, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const agedMs = (ms: number) => sql`tributary.now() - ${ms}::float8 * interval '1 millisecond'`
  const before = agedMs(options.keepMs)

  const isResolved = sql`state in ('done', 'skipped')`
  const isDead = sql`state = 'dead_letter'`
  const remove = (which: typeof isResolved, limit: number) =>
    sql`delete from tributary.inbox where id = any(array(
      select id from tributary.inbox where ${which} order by resolved_at limit ${limit} for update skip locked)) returning 1`
  const aged = Effect.fnUntraced(function* (which: typeof isResolved, oldest: typeof before) {
    for (let events = 0; ;) {
      const removed = yield* remove(sql`${which} and resolved_at < ${oldest}`, purgeBatch)
      events += removed.length
      if (removed.length < purgeBatch) return events
    }
  })
  const beyond = Effect.fnUntraced(function* (which: typeof isResolved, most: number) {
    const [counted] = yield* sql<{
      readonly count: bigint
    }>`select count(*) as count from tributary.inbox where ${which}`
    const excess = Number(counted?.count ?? 0n) - most
    for (let events = 0; ;) {
      const limit = Math.min(excess - events, purgeBatch)
      const removed = limit <= 0 ? [] : yield* remove(which, limit)
      events += removed.length
      if (removed.length === 0) return events
    }
  })
  const events =
    (yield* aged(isResolved, before)) + (yield* beyond(isResolved, options.resolvedMax ?? resolvedMaxDefault))
  const dead =
    (yield* aged(isDead, agedMs(Math.max(options.keepMs, deadDays * 86_400_000)))) +
    (yield* beyond(isDead, options.deadMax ?? deadMaxDefault))

  // The source's log shows an abandoned event for 30 days. Its gap must be known until then.
  const gaps = yield* sql`
    delete from tributary.delivery_gaps
     where closed_at < ${before} and (events = '{}' or closed_at < tributary.now() - interval '31 days') returning 1`
  const processes = yield* sql`
    delete from tributary.processes old
     where greatest(stopped_at, heartbeat_at) < ${before}
       and exists (select from tributary.processes later
                    where later.companies @> old.companies and later.started_at > old.started_at
                      and greatest(later.stopped_at, later.heartbeat_at) > greatest(old.stopped_at, old.heartbeat_at))
    returning 1`
  return { events, dead, gaps: gaps.length, processes: processes.length }
})
