/**
 * Push requests without a known outcome that no process resolves by itself.
 *
 * Promise: a request is here only where no push of its resource runs, and the next one begins only when a person acts, or
 * fails in the same way until then. A process of `serve` sends rows that were inserted by SQL again. It sends no rows of a
 * push whose command has ended, and none of a paused company. The statement reads open requests only, by an index.
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
         s.is_paused as "isPaused", coalesce(l.is_refused, false) as "isRefused", l.error, l.remedy
    from requests r
    left join tributary.companies k using (company)
    cross join lateral (select k.company_id, r.resource, 'push' as lane) lane
    cross join lateral (
      select exists (select from tributary.company_settings c where c.company = r.company and c.paused_at is not null) as is_paused) s
    left join lateral (
      select status = 'failed' and error_kind in ('${lastingKinds.join("','")}') as is_refused, error, remedy
        from tributary.runs
       where company_id = k.company_id and resource = r.resource and lane = 'push' and status <> 'running'
       order by id desc limit 1) l on true
   where case when not s.is_paused
                   and exists (select from tributary.processes_alive p where r.company = any(p.companies))
                   and exists (select from tributary.outbox o where o.company = r.company and o.resource = r.resource
                                  and o.state in ('pending', 'in_flight') and o.push_id is null)
              then coalesce(l.is_refused, false)
              else not ${LaneLock.isHeldSql("lane")} end
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
export const stepOf = ({ company, resource, push, isPaused, isRefused, remedy }: UnresolvedRequests): string =>
  isPaused
    ? `resume it: npx tributary company resume ${company}`
    : isRefused && remedy !== null
      ? remedy
      : `continue the push: npx tributary push retry ${push ?? `${resource} --company ${company}`}`
