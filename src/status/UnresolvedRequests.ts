/**
 * Push requests without a known outcome that no process resolves by itself.
 *
 * Promise: a request is here only where no push of its resource runs, and the next one begins only when a person acts, or
 * fails in the same way until then. A process of `serve` sends rows that were inserted by SQL again. It sends no rows of a
 * push whose command has ended, and none of a paused company or of a resource that is not synced. The statement reads open
 * requests only, by an index.
 */
import * as Effect from "effect/Effect"
import * as PushPause from "../outbox/PushPause.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import type { FailureKind } from "../sync/Outcome.ts"
import * as LaneLock from "../warehouse/LaneLock.ts"

/** Failures that every later push meets until a person removes the cause. */
const lastingKinds: ReadonlyArray<FailureKind> = [
  "Unauthorized",
  "Forbidden",
  "NotFound",
  "Refused",
  "NotImplemented",
  "TooLarge",
  "Redirected",
  "PagingBroken",
  "SourceChanged",
  "NewerCatalogue"
]

export const unresolvedStatement = Statement.make({
  name: "read push requests that a person must resolve",
  params: ["text[]?"],
  columns: {
    ...Statement.columns("text", "company", "resource"),
    requests: "float8",
    /** When the oldest one was stored, which is not after its first send. */
    since: "timestamptz",
    /** The push of its rows; null where they were inserted by SQL. */
    push: "int8?",
    /** Whether the company is paused. */
    isPaused: "bool",
    /** Whether a process of `serve` pushes the resource. */
    isServed: "bool",
    /** Whether the last push failed for a reason that a person must remove. */
    isRefused: "bool",
    /** Why the last push ended early, and what to do; null where it did not, or no push has ended yet. */
    ...Statement.columns("text?", "error", "remedy")
  },
  text: `with requests as (
    select company, resource, count(*)::float8 as requests, min(created_at) as since, min(id) as oldest
      from tributary.push_requests
     where state = 'open' and ($1::text[] is null or company = any($1::text[])) group by 1, 2)
  select r.company, r.resource, r.requests, r.since,
         (select o.push_id from tributary.outbox o
           where o.request_id = r.oldest and o.state = 'in_flight' and o.push_id is not null limit 1) as push,
         s.is_paused as "isPaused", v.is_served as "isServed", coalesce(l.is_refused, false) as "isRefused", l.error, l.remedy
    from requests r
    left join tributary.companies k using (company)
    cross join lateral (select k.company_id, r.resource, 'push' as lane) lane
    cross join lateral (
      select exists (select from tributary.company_settings c where c.company = r.company and c.paused_at is not null) as is_paused) s
    cross join lateral (
      select not s.is_paused
             -- Hashed once: the arrays have thousands of names.
             and r.company in (select unnest(p.companies) from tributary.processes_alive p)
             and exists (select from tributary.tasks t where t.company = r.company and t.resource = r.resource and t.kind = 'sync')
             and exists (select from tributary.outbox o where o.company = r.company and o.resource = r.resource
                            and o.state in ('pending', 'in_flight') and o.push_id is null) as is_served) v
    -- Where no process pushes, a run that did not end was killed: its lock is free.
    left join lateral (
      select status = 'failed' and error_kind in ('${lastingKinds.join("','")}') as is_refused, error, remedy
        from tributary.runs
       where company_id = k.company_id and resource = r.resource and lane = 'push'
         and (status <> 'running' or not v.is_served)
       order by id desc limit 1) l on true
   where case when v.is_served then coalesce(l.is_refused, false) else not ${LaneLock.isHeldSql("lane")} end
   order by r.company, r.resource`
})

/** The requests of one resource. */
export type UnresolvedRequests = Statement.RowOf<typeof unresolvedStatement>

/** Those of these companies, or of all (null). None while all pushes are paused: the pause is the reason then. */
export const read = (companies: ReadonlyArray<string> | null): Sql.Query<ReadonlyArray<UnresolvedRequests>> =>
  Effect.flatMap(PushPause.read, (pause) =>
    pause === null ? Statement.run(unresolvedStatement, [companies]) : Effect.succeed([])
  )

/** Why they have no outcome yet. */
export const problemOf = ({ isPaused, error }: UnresolvedRequests): string =>
  isPaused ? "the company is paused" : (error ?? "the push ended before the answer")

/** What resolves them. */
export const stepOf = (one: UnresolvedRequests): string => {
  const { company, resource, push, isPaused, isServed, isRefused, remedy } = one
  if (isPaused) return `resume it: tributary company resume ${company}`
  if (isServed && isRefused && remedy !== null) return remedy
  const next = `continue the push: tributary push retry ${push ?? `${resource} --company ${company}`}`
  return isRefused && remedy !== null ? `${remedy}; then ${next}` : next
}
