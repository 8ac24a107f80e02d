/** The read model of invariants: their states over all companies, and their violations. */
import * as Effect from "effect/Effect"
import type { Severity } from "../invariants/Invariant.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

export const summaryStatement = Statement.make({
  name: "read the state of invariants",
  params: ["int8[]?"],
  columns: {
    name: "text",
    severity: Statement.as<Severity>("text"),
    ...Statement.columns("text", "statement", "comment"),
    resources: "text[]",
    /** Companies for which it was evaluated, waits for a resource, or failed at last. */
    ...Statement.columns("float8", "evaluated", "waiting", "failed"),
    /** Confirmed violations, and those that are not confirmed yet. */
    ...Statement.columns("float8", "open", "unconfirmed"),
    /** Why it failed or waits, for one of these companies. */
    error: "text?",
    evaluatedAt: "timestamptz?"
  },
  text: `select i.name, i.severity, i.statement, i.comment, i.resources, count(s.evaluated_at)::float8 as evaluated,
         count(*) filter (where s.state = 'waiting')::float8 as waiting,
         count(*) filter (where s.state = 'failed')::float8 as failed,
         coalesce(sum(s.open_violations), 0)::float8 as open,
         coalesce(sum(s.violations - s.open_violations), 0)::float8 as unconfirmed,
         coalesce(min(s.error) filter (where s.state = 'failed'), min(s.error)) as error,
         max(s.evaluated_at) as "evaluatedAt"
    from tributary.invariants i left join tributary.invariant_states s
      on s.invariant = i.name and ($1::bigint[] is null or s.company_id = any ($1))
   group by i.name
   order by coalesce(sum(s.open_violations), 0) = 0, count(*) filter (where s.state = 'failed') = 0,
         coalesce(sum(s.violations - s.open_violations), 0) = 0, i.severity, i.name`
})

/** The state of a rule, over all companies that were asked for. */
export type InvariantSummary = Statement.RowOf<typeof summaryStatement>

/** All rules, those with violations first, for these companies; null is all. */
export const summary = (companyIds: ReadonlyArray<bigint> | null): Sql.Query<ReadonlyArray<InvariantSummary>> =>
  Statement.run(summaryStatement, [companyIds])

/** A current violation is open or unconfirmed. */
export const violationStates = ["current", "ended", "all"] as const
export type ViolationState = (typeof violationStates)[number]

export interface ViolationFilter {
  readonly invariant: string
  readonly companyId: bigint | null
  readonly state: ViolationState
}

const violationColumns = {
  ...Statement.columns("int8", "id", "companyId", "recordId"),
  ...Statement.columns("text", "resource", "detail"),
  firstSeenAt: "timestamptz",
  ...Statement.columns("timestamptz?", "openedAt", "endedAt")
} as const
export type ListedViolation = Statement.RowOf<Statement.Statement<[], typeof violationColumns>>

const conditions: Readonly<Record<ViolationState, string>> = {
  current: "ended_at is null",
  ended: "ended_at is not null",
  all: "true"
}

/** The newest violations below an id, newest first. */
export const violations = (
  { invariant, companyId, state }: ViolationFilter,
  before: bigint | null,
  rowsMax: number
): Sql.Query<ReadonlyArray<ListedViolation>> =>
  Sql.newestRows(
    `select id, company_id as "companyId", resource, record_id as "recordId", detail, first_seen_at as "firstSeenAt",
            opened_at as "openedAt", ended_at as "endedAt" from tributary.violations where ${conditions[state]}`,
    {
      "invariant = ?": invariant,
      "company_id = ?::bigint": companyId?.toString() ?? null,
      "id < ?::bigint": before?.toString() ?? null
    },
    rowsMax
  )

/** The command that lists the violations of a rule. */
export const listCommand = (invariant: string): string =>
  `tributary query "select company_id, resource, record_id, detail from tributary.violations where invariant = '${invariant}' and ended_at is null"`

export const unconfirmedStatement = Statement.make({
  name: "count unconfirmed violations",
  params: ["text[]"],
  columns: { violations: "float8" },
  text: `select coalesce(sum(s.violations - s.open_violations), 0)::float8 as violations
    from tributary.invariant_states s join tributary.companies c on c.company_id = s.company_id where c.company = any ($1)`
})

/** How many current violations of these companies are not confirmed yet. */
export const unconfirmed = (companies: ReadonlyArray<string>): Sql.Query<number> =>
  Effect.map(Statement.run(unconfirmedStatement, [companies]), ([row]) => row?.violations ?? 0)

const violatedMax = 1_000

export const violatedStatement = Statement.make({
  name: "find violated invariants",
  params: ["text[]", "int4"],
  columns: {
    ...Statement.columns("text", "company", "invariant", "statement"),
    severity: Statement.as<Severity>("text"),
    open: "int8",
    detail: "text?",
    since: "timestamptz?"
  },
  text: `select c.company, s.invariant, i.statement, i.severity, s.open_violations as open, v.detail, v.opened_at as since
    from tributary.invariant_states s
    join tributary.invariants i on i.name = s.invariant
    join tributary.companies c on c.company_id = s.company_id
    left join lateral (
      select o.detail, o.opened_at from tributary.violations o
       where o.invariant = s.invariant and o.company_id = s.company_id and o.ended_at is null and o.opened_at is not null
       order by o.opened_at, o.id limit 1) v on true
   where s.open_violations > 0 and c.company = any ($1)
   order by i.severity, s.invariant, c.company limit $2::int`
})
/** A rule that a company violates, with the oldest open violation. */
export type Violated = Statement.RowOf<typeof violatedStatement>

/** The rules that these companies violate, with the oldest open violation of each. */
export const violated = (companies: ReadonlyArray<string>) => Statement.run(violatedStatement, [companies, violatedMax])

export const failedStatement = Statement.make({
  name: "find failed invariants",
  columns: { ...Statement.columns("text", "invariant", "error"), severity: Statement.as<Severity>("text") },
  text: `select distinct on (s.invariant) s.invariant, coalesce(s.error, '') as error, i.severity
           from tributary.invariant_states s join tributary.invariants i on i.name = s.invariant
          where s.state = 'failed' order by s.invariant, s.company_id`
})
/** A rule that cannot be evaluated. */
export type Failed = Statement.RowOf<typeof failedStatement>

/** The rules that cannot be evaluated for a company, with one of the reasons. */
export const failed = Statement.run(failedStatement)
