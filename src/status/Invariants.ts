/** The read model of invariants: their states over all companies, and their violations. */
import * as Effect from "effect/Effect"
import type { Severity } from "../invariants/Invariant.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"

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

const listed = control
  .selectFrom("tributary.violations")
  .select(["id", "company_id as companyId", "resource", "record_id as recordId", "detail"])
  .select(["first_seen_at as firstSeenAt", "opened_at as openedAt", "ended_at as endedAt"])
export type ListedViolation = Query.RowOf<typeof listed>

/** The newest violations below an id, newest first. */
export const violations = ({ invariant, companyId, state }: ViolationFilter, before: bigint | null, rowsMax: number) =>
  Query.run(
    listed
      .where((is) => is.and(Query.given({ invariant, company_id: companyId })))
      .$if(state !== "all", (all) => all.where("ended_at", state === "current" ? "is" : "is not", null))
      .$if(before !== null, (all) => all.where("id", "<", before))
      .orderBy("id", "desc")
      .limit(rowsMax)
  )

/** The command that lists the violations of a rule. */
export const listCommand = (invariant: string): string =>
  `tributary query "select company_id, resource, record_id, detail from tributary.violations where invariant = '${invariant}' and ended_at is null"`

/** How many current violations of these companies are not confirmed yet. */
export const unconfirmed = (companies: ReadonlyArray<string>) =>
  Effect.map(
    Query.first(
      control
        .selectFrom("tributary.invariant_states as s")
        .innerJoin("tributary.companies as c", "c.company_id", "s.company_id")
        .select((of) =>
          of.cast<number | null>(of.fn.sum(of("s.violations", "-", of.ref("s.open_violations"))), "float8").as("sum")
        )
        .where("c.company", "=", Query.anyOf(companies))
    ),
    (row) => row?.sum ?? 0
  )
