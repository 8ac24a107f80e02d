/** The state of the rate budgets, as the warehouse stores it. Reading it sends no request to the source. */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { allowedAt, isProbing, pauseReport, type PauseReport, release, usedAt } from "./PermitRule.ts"
import { change, rows, stateOf } from "./PostgresPermitStore.ts"

/** The state of one token's budget. */
export interface BudgetState {
  readonly fingerprint: string
  /** The time of the warehouse's clock. */
  readonly readAt: Date
  /** Permits that count now: those of the last minute. */
  readonly used: number
  readonly configured: number | null
  /** The limit at present: lower than configured for a while after a 429. Null without a limit. */
  readonly allowed: number | null
  /** The end of the pause; null without a pause. */
  readonly pausedUntil: Date | null
  /** How long the pause still lasts. */
  readonly pausedMs: number
  /** The answer that requested the pause; null without a pause. */
  readonly pausedBy: PauseReport | null
  /** A pause ended before its Retry-After: one request is sent, the probe, and the others wait for its answer. */
  readonly isProbing: boolean
  /** How often the source answered 429. */
  readonly refusals: number
  readonly lastRefusalAt: Date | null
  /** When a process last got a permit. */
  readonly askedAt: Date
}

/** The budgets of these tokens; with `idleMs` without those that are not paused and gave no permit for as long. */
export const readBudgets = (
  fingerprints: ReadonlyArray<string>,
  idleMs: number | null = null
): Sql.Query<ReadonlyArray<BudgetState>> => {
  const named = rows.where("fingerprint", "=", Query.anyOf(fingerprints))
  const active = named.where((is) =>
    is.or([is("updated_at", ">", Query.nowPlus(-(idleMs ?? 0))), is("retry_after_at", ">", Query.now)])
  )
  return Effect.map(Query.run(idleMs === null ? named : active), (read) =>
    read.map((row): BudgetState => {
      const state = stateOf(row)
      const now = row.now.getTime()
      return {
        fingerprint: row.fingerprint,
        readAt: row.now,
        used: usedAt(state, now),
        configured: state.perMinute,
        allowed: state.perMinute === null ? null : allowedAt(state.perMinute, state.memory, now),
        pausedUntil: state.pausedUntil > now ? row.retry_after_at : null,
        pausedMs: Math.max(0, state.pausedUntil - now),
        pausedBy: pauseReport(state, now),
        isProbing: isProbing(state, now),
        refusals: state.refusals,
        lastRefusalAt: row.last_429_at,
        askedAt: row.updated_at
      }
    })
  )
}

export const worstStatement = Statement.make({
  name: "find budgets that slow requests down",
  params: ["int4"],
  columns: { fingerprint: "text" },
  text: `select b.fingerprint from tributary.budgets b cross join (select tributary.now() as now) n
        where b.retry_after_at > n.now or (b.rule ->> 'cappedPauses')::integer > 0
               or b.last_429_at > n.now - interval '1 hour'
               or b.updated_at > n.now - interval '15 seconds'
                  and (select sum(permits) from unnest(b.used) permits) >= 0.95 * b.requests_per_minute
        order by b.retry_after_at > n.now desc nulls last, b.last_429_at desc nulls last, b.fingerprint limit $1::int`
})

/** The budgets that are paused, were refused within an hour, or are nearly used up; paused ones first. */
export const worstBudgets = (budgetsMax: number): Sql.Query<ReadonlyArray<string>> =>
  Effect.map(Statement.run(worstStatement, [budgetsMax]), (worst) => worst.map(({ fingerprint }) => fingerprint))

/** Ends a pause, for every process. Returns whether there was one. */
export const releaseBudget = (fingerprint: string): Sql.Query<boolean> => change(fingerprint, release)
