/**
 * The advisory lock of a lane, on the lock session of its process (postgres/SessionLocks.ts), and that of new checkpoints:
 * their names and their SQL.
 */

export const nameOf = (companyId: bigint, resource: string, lane: string): string =>
  `tributary:${companyId}:${resource}${lane === "live" ? "" : `:${lane}`}`

/** The name of the lock of a landing transaction of the lane. */
export const landingNameOf = (companyId: bigint, resource: string, lane: string): string =>
  `${nameOf(companyId, resource, lane)}:landing`

/** The key of the lock, for rows with company, resource and lane. */
export const keySql = (row: string): string =>
  `hashtextextended('tributary:' || ${row}.company_id || ':' || ${row}.resource ||
     case when ${row}.lane = 'live' then '' else ':' || ${row}.lane end, 0)`

/**
 * The key of the lock that a transaction has which ends the runs of a resource, or of a company by its number: no checkpoint
 * is made meanwhile, which it would not see.
 */
export const newCheckpointsKeySql = (subject: string): string =>
  `hashtextextended('tributary:new checkpoints:' || ${subject}, 0)`

/** The sessions that have the lock of a key, or of `any (...)` of some. */
export const holdersSql = (key: string): string =>
  `select pid from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32 | objid::bigint) = ${key}`

/** Whether a process has the lock, for rows with company, resource and lane. */
export const isHeldSql = (row: string): string => `exists (${holdersSql(keySql(row))})`
