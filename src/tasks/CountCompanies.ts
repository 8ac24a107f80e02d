/**
 * The counts of each company's resources by state: `tributary.company_states`.
 *
 * Promise: a company is counted within seconds after a failure, a pause, a dead letter, a gap, a rejected row or a
 * quarantine entry, and when one of its resources may have become late. Counting takes a small share of one core. A
 * process that is killed leaves the last counts with their time.
 */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { transaction } from "../postgres/Transaction.ts"
import { repeatResting } from "../time/Resting.ts"

/** Worst first. */
export const companyStates = ["failing", "late", "attention", "never-synced", "blocked", "paused", "fresh"] as const
export type State = (typeof companyStates)[number]

/** Signs of trouble beside the resources, by company; a company without any has no row. */
const signsOf = {
  dead_letters: "dead_letters",
  gaps: "gap",
  rejected: "rejected",
  subscriptions_down: "subscription",
  quarantined: "quarantine"
}
const alerts = `
  select company, ${Object.entries(signsOf)
    .map(([sign, kind]) => `coalesce(sum(size) filter (where kind = '${kind}'), 0)::bigint as ${sign}`)
    .join(", ")}
    from tributary.other_problems where company is not null and kind in ('${Object.values(signsOf).join("','")}') group by company`

/** A company in trouble is counted again after this time, also without a sign of a change. */
const againSeconds = 15

export const dueStatement = Statement.make({
  name: "find companies to count",
  params: ["int4"],
  columns: { company: "text", isNew: "bool" },
  text: `select c.company, s.company is null as "isNew"
    from tributary.companies c
    left join tributary.company_states s using (company)
    left join (${alerts}) a using (company)
    left join (select company, max(updated_at) as at from tributary.tasks
                where failures > 0 or paused_at is not null group by 1) t using (company)
    cross join (select tributary.now() as at) now
   where s.company is null or s.late_at <= now.at or t.at > s.counted_at
      or (s.state in ('failing', 'late', 'never-synced', 'paused') and s.counted_at < now.at - interval '${againSeconds} seconds')
      or (coalesce(a.dead_letters, 0), coalesce(a.gaps, 0), coalesce(a.rejected, 0), coalesce(a.subscriptions_down, 0), coalesce(a.quarantined, 0))
         <> (s.dead_letters, s.gaps, s.rejected, s.subscriptions_down, s.quarantined)
   order by s.counted_at nulls first, c.company limit $1::int`
})

/**
 * A resource whose target has passed although it is not late, because a proof of another kind makes it fresh, is looked at
 * again after a minute.
 */
export const countStatement = Statement.make({
  name: "count the states of companies",
  params: ["text[]"],
  text: `with stated as (
    select company, resource, now.at, fresh_at + target as late_at, error, remedy, lateness as share, is_failing,
           case state when 'quarantine' then 'fresh' else state end as state
      from tributary.resource_states cross join (select tributary.now() as at) now where company = any($1::text[])),
  counted as (
    select company, count(*) as resources, min(at) as at,
           min(greatest(late_at, at + interval '1 minute')) filter (where state = 'fresh') as late_at,
           count(*) filter (where state = 'failing') as failing, count(*) filter (where state = 'late') as late,
           count(*) filter (where state = 'never-synced') as never_synced, count(*) filter (where state = 'blocked') as blocked,
           count(*) filter (where state = 'paused') as paused, count(*) filter (where state = 'fresh') as fresh,
           coalesce(max(share) filter (where state in ('failing', 'late')), 0) as lateness
      from stated group by company),
  worst as (
    select distinct on (company) company, resource, error, remedy
      from stated where state in ('failing', 'late')
     order by company, is_failing desc, share desc, resource),
  whole as (
    select w.company, c.at, c.late_at, c.resources, c.failing, c.late, c.never_synced, c.blocked, c.paused, c.fresh, c.lateness,
           worst.resource as worst_resource, worst.error, worst.remedy, coalesce(a.quarantined, 0) as quarantined,
           coalesce(a.dead_letters, 0) as dead_letters, coalesce(a.gaps, 0) as gaps, coalesce(a.rejected, 0) as rejected,
           coalesce(a.subscriptions_down, 0) as subscriptions_down,
           case when c.failing > 0 then 'failing' when c.late > 0 then 'late' when a.company is not null then 'attention'
                when c.never_synced > 0 or c.resources is null then 'never-synced'
                when c.blocked > 0 then 'blocked' when c.paused > 0 then 'paused' else 'fresh' end as state
      -- A company that is being deleted ends before, and gets no states afterwards.
      from (select company from tributary.companies where company = any($1::text[]) for key share) w
      left join counted c using (company) left join worst using (company)
      left join (${alerts}) a using (company))
  insert into tributary.company_states as s (company, counted_at, late_at, state, severity, resources, failing, late, never_synced,
         blocked, paused, fresh, lateness, quarantined, dead_letters, gaps, rejected, subscriptions_down, worst_resource, error, remedy)
  select company, coalesce(at, tributary.now()), late_at, state,
         1000000 * (7 - array_position(array['${companyStates.join("','")}'], state)) + least(999999, 1000 * coalesce(lateness, 0)),
         coalesce(resources, 0), coalesce(failing, 0), coalesce(late, 0), coalesce(never_synced, 0), coalesce(blocked, 0),
         coalesce(paused, 0), coalesce(fresh, 0), coalesce(lateness, 0), quarantined, dead_letters, gaps, rejected,
         subscriptions_down, worst_resource, error, remedy
    from whole order by company
  on conflict (company) do update
     set (counted_at, late_at, state, severity, resources, failing, late, never_synced, blocked, paused, fresh, lateness,
          quarantined, dead_letters, gaps, rejected, subscriptions_down, worst_resource, error, remedy)
       = (excluded.counted_at, excluded.late_at, excluded.state, excluded.severity, excluded.resources, excluded.failing,
          excluded.late, excluded.never_synced, excluded.blocked, excluded.paused, excluded.fresh, excluded.lateness,
          excluded.quarantined, excluded.dead_letters, excluded.gaps, excluded.rejected, excluded.subscriptions_down,
          excluded.worst_resource, excluded.error, excluded.remedy)`
})

/** Forgets the states of removed companies. */
const forget = Query.run(
  control
    .deleteFrom("tributary.company_states")
    .where("company", "not in", (of) => of.selectFrom("tributary.companies").select("company"))
)

/** The maximum number of companies that one statement counts. */
const batchMax = 200
const lookEveryMs = 5_000
/** The rest after a count, as a multiple of its time; shorter while companies were never counted. */
const restShare = 20
const restShareNew = 2

/** Counts the companies that are due, at most so many; answers them. */
export const countDue = Effect.fnUntraced(function* (companiesMax: number = batchMax) {
  const due = yield* Statement.run(dueStatement, [companiesMax])
  if (due.length === 0) return due
  const count = Statement.run(countStatement, [due.map(({ company }) => company)])
  yield* transaction(Effect.andThen(Query.withoutCompilation, count))
  return due
})

/** Counts the states of all companies until it is interrupted. */
export const countForever: Sql.Query<never> = Effect.andThen(
  forget,
  repeatResting(countDue(), (due) => {
    const isFirst = due.length === batchMax && due.some(({ isNew }) => isNew)
    return isFirst ? { times: restShareNew, leastMs: 0 } : { times: restShare, leastMs: lookEveryMs }
  })
)
