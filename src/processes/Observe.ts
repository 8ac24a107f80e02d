/**
 * What a process of `tributary serve` knows and SQL does not: the installation and the rate budget of each of its companies,
 * and problems of its machine. It stores them for `tributary.problems`.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { repeatResting } from "../time/Resting.ts"
import { type Kind, kindTraits } from "../status/ProblemKinds.ts"

/** A company of `serve`. */
export interface ObservedCompany {
  readonly company: string
  /** The name of its installation, or the host of its address. */
  readonly installation: string
  /** The key of its rate budget. */
  readonly budget: string
}

/** A problem of the machine, for a row of `tributary.problems`. */
export interface ObservedProblem {
  readonly kind: Kind
  readonly subject: string
  readonly level: number
  readonly what: string
  readonly remedy: string
  readonly command: string | null
}

export const observedStatement = Statement.make({
  name: "store what a process observes",
  params: ["text", "jsonb"],
  // A company whose source has answered only now has no budget yet.
  columns: { isIncomplete: "bool" },
  text: `with observed as (
           update tributary.processes set observed = $2::jsonb where process_id = $1 and observed <> $2::jsonb)
         select exists (select from tributary.companies
                         where budget is null and seen_at > (select tributary.now() - interval '1 hour')) as "isIncomplete"`
})

export const companiesStatement = Statement.make({
  name: "store the installations and budgets of companies",
  params: ["text"],
  text: `update tributary.companies c set installation = n.installation, budget = n.budget
    from jsonb_to_recordset($1::text::jsonb) as n(company text, installation text, budget text)
   where c.company = n.company and (c.installation, c.budget) is distinct from (n.installation, n.budget)`
})

const everyMs = 15_000
/** The rest, as a multiple of the time that the work took. */
const restShare = 20

/** Stores both until it is interrupted. */
export const observeForever = <E, R>(
  processId: string,
  companies: () => ReadonlyArray<ObservedCompany>,
  problems: Effect.Effect<ReadonlyArray<ObservedProblem>, E, R>
) => {
  let stored = ""
  const observe = Effect.gen(function* () {
    const rows = (yield* problems).map((one) => ({ ...one, critical_from: kindTraits[one.kind].criticalFrom }))
    const [row] = yield* Statement.run(observedStatement, [processId, JSON.stringify(rows)])
    const now = JSON.stringify(companies())
    if (now === stored && row?.isIncomplete !== true) return
    yield* Statement.run(companiesStatement, [now])
    stored = now
  })
  return repeatResting(observe, () => ({ times: restShare, leastMs: everyMs }))
}
