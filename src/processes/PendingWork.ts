/**
 * A watch for pending work: one statement finds the companies with due events or refetch requests.
 *
 * Promise: while a company has such work, its workers are woken each second. Companies without work cost nothing.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"

export const pendingWorkStatement = Statement.make({
  name: "find companies with pending work",
  columns: { company: "text" },
  // The recursions jump from company to company in an index. Their cost does not grow with the events.
  text: `with recursive due as (
           (select company, resource, next_attempt_at from tributary.inbox
             where state = 'pending' and resource is not null order by company, resource, next_attempt_at limit 1)
           union all
           select n.company, n.resource, n.next_attempt_at from due d cross join lateral (
             select company, resource, next_attempt_at from tributary.inbox
              where state = 'pending' and resource is not null and (company, resource) > (d.company, d.resource)
              order by company, resource, next_attempt_at limit 1) n
         ), arrived as (
           (select company from tributary.inbox where state = 'pending' order by company limit 1)
           union all
           select n.company from arrived a cross join lateral (
             select company from tributary.inbox where state = 'pending' and company > a.company order by company limit 1) n
         ), requested as (
           (select company_id from tributary.refetch_requests order by company_id limit 1)
           union all
           select n.company_id from requested r cross join lateral (
             select company_id from tributary.refetch_requests where company_id > r.company_id order by company_id limit 1) n
         )
         select company from due where next_attempt_at <= tributary.now()
         -- An event of a resource that the source's documents do not name is resolved without a read.
         union select a.company from arrived a where exists (
           select from tributary.inbox i where i.company = a.company and i.state = 'pending' and i.resource is null)
         union select c.company from tributary.companies c join requested using (company_id)`
})

/** A latch, or what opens one. */
export interface Wakeable {
  readonly openUnsafe: () => unknown
}

const interval = Duration.seconds(1)

/** Opens the latches of the companies with pending work, each second. */
export const watch = (workers: ReadonlyMap<string, Wakeable>): Effect.Effect<never, DatabaseError, SqlClient> =>
  Statement.run(pendingWorkStatement).pipe(
    Effect.map((companies) => {
      for (const { company } of companies) workers.get(company)?.openUnsafe()
    }),
    Effect.andThen(Effect.sleep(interval)),
    Effect.forever
  )
