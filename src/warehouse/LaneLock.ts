/**
 * The lock of a run's lane, held by the lock session of its process (see postgres/SessionLocks.ts): its name, and how a
 * statement asks for it.
 */

/** What the lock is called. */
export const nameOf = (companyId: bigint, resource: string, lane: string): string =>
  `tributary:${companyId}:${resource}${lane === "live" ? "" : `:${lane}`}`

/** What the lock is called that a transaction holds while it lands for the lane. */
export const landingNameOf = (companyId: bigint, resource: string, lane: string): string =>
  `${nameOf(companyId, resource, lane)}:landing`

/** The key of the lock, in a statement whose rows (`r`, say) have its company, resource and lane. */
export const keySql = (row: string): string =>
  `hashtextextended('tributary:' || ${row}.company_id || ':' || ${row}.resource ||
     case when ${row}.lane = 'live' then '' else ':' || ${row}.lane end, 0)`

/** The sessions that hold the lock, in a statement that knows its key. */
export const holdersSql = (key: string): string =>
  `select pid from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32 | objid::bigint) = ${key}`

/** Whether anybody has a turn at the lane, in a statement whose rows have its company, resource and lane. */
export const isHeldSql = (row: string): string => `exists (${holdersSql(keySql(row))})`
