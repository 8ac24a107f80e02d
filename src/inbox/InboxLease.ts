/**
 * Leases on the events of one resource.
 *
 * A lease keeps two processes from processing the same events. It only saves requests: no guarantee depends on it.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"

/** A lease that its process does not renew ends after this. */
const leaseMs = 10_000

/** The result of an attempt to acquire a lease. */
export interface Lease {
  readonly isOurs: boolean
  /** Whether it belonged to another process, which let it expire. */
  readonly tookOver: boolean
}

export const acquireStatement = Statement.make({
  name: "acquire a lease of the inbox",
  params: ["text", "text", "text", "float8"],
  columns: { tookOver: "bool" },
  text: `with previous as (select owner from tributary.inbox_leases where company = $1 and resource = $2)
         insert into tributary.inbox_leases as c (company, resource, owner, expires_at)
         values ($1, $2, $3, tributary.now() + $4::float8 * interval '1 millisecond')
         on conflict (company, resource) do update set owner = excluded.owner, expires_at = excluded.expires_at
           where c.owner = excluded.owner or c.expires_at <= tributary.now()
         returning coalesce((select owner from previous) <> c.owner, false) as "tookOver"`
})

/** Acquires or renews the lease, unless another process has it. */
export const acquire = (company: string, resource: string, owner: string): Statement.Named<Lease> =>
  Effect.map(Statement.runNamed(acquireStatement, [company, resource, owner, leaseMs]), ([row]) => ({
    isOurs: row !== undefined,
    tookOver: row?.tookOver ?? false
  }))

export const releaseStatement = Statement.make({
  name: "release a lease of the inbox",
  params: ["text", "text", "text"],
  text: "delete from tributary.inbox_leases where company = $1 and resource = $2 and owner = $3"
})

export const release = (company: string, resource: string, owner: string): Statement.Named<void> =>
  Effect.asVoid(Statement.runNamed(releaseStatement, [company, resource, owner]))
