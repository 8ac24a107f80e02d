/**
 * A watch for pending work: one statement finds the companies with due events, refetch requests, or rows in the outbox.
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
  columns: { company: "text", hasEvents: "bool", hasRows: "bool" },
  // The recursions jump from company to company in an index. Their cost does not grow with the events or rows.
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
         ), inserted as (
           (select company from tributary.outbox
             where state in ('pending', 'in_flight') and push_id is null order by company limit 1)
           union all
           select n.company from inserted i cross join lateral (
             select company from tributary.outbox
              where state in ('pending', 'in_flight') and push_id is null and company > i.company order by company limit 1) n
         )
         select company, bool_or(events) as "hasEvents", bool_or(not events) as "hasRows" from (
           select company, true as events from due where next_attempt_at <= tributary.now()
           -- An event of a resource that the source's documents do not name is resolved without a read.
           union all select a.company, true from arrived a where exists (
             select from tributary.inbox i where i.company = a.company and i.state = 'pending' and i.resource is null)
           union all select c.company, true from tributary.companies c join requested using (company_id)
           union all select company, false from inserted
         ) work group by company`
})

/** A latch, or what opens one. */
export interface Wakeable {
  readonly openUnsafe: () => unknown
}

/** What wakes the workers, by company. */
export interface Workers {
  readonly events: ReadonlyMap<string, Wakeable>
  readonly outbox: ReadonlyMap<string, Wakeable>
}

const interval = Duration.seconds(1)

/** Opens the latches of the companies with pending work, each second. */
export const watch = ({ events, outbox }: Workers): Effect.Effect<never, DatabaseError, SqlClient> =>
  Statement.run(pendingWorkStatement).pipe(
    Effect.map((companies) => {
      for (const { company, hasEvents, hasRows } of companies) {
        if (hasEvents) events.get(company)?.openUnsafe()
        if (hasRows) outbox.get(company)?.openUnsafe()
      }
    }),
    Effect.andThen(Effect.sleep(interval)),
    Effect.forever
  )
