/** The tools `problems`, `freshness` and `gaps_and_quarantine`: how current and how complete the warehouse is. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Statement from "../postgres/Statement.ts"
import { kinds, severities } from "../status/ProblemKinds.ts"
import * as Problems from "../status/Problems.ts"
import * as Quarantine from "../status/Quarantine.ts"
import { answer, cut, Id, idOf, ToolFailure } from "./Answer.ts"
import { readAnswer } from "./Capabilities.ts"
import { companyOf, resourceOf } from "./Names.ts"

const freshnessMax = 500
const entriesDefault = 50
const entriesMax = 200
const reasonCharactersMax = 2_000

const Selection = {
  company: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(200)).annotate({ description: "Its name or number" })
  ),
  resource: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200)))
} as const

interface Selected {
  readonly company?: string
  readonly resource?: string
}

const Counts = Schema.Struct({ resources: Schema.Int, late: Schema.Int, never_synced: Schema.Int })

export const freshness = Tool.make("freshness", {
  description:
    "Shows how current the data is: for each resource of each company the time before which every change is in the " +
    "warehouse, its age and its target. The rows are in freshness, the least current first.",
  parameters: Schema.Struct(Selection),
  success: answer(Counts),
  failure: ToolFailure
})

export const freshnessCountsStatement = Statement.make({
  name: "count resources by freshness",
  params: ["text?", "text?"],
  columns: Statement.columns("int4", "resources", "late", "never"),
  text: `select count(*)::int as resources, (count(*) filter (where is_late))::int as late,
                (count(*) filter (where fresh_at is null))::int as never
           from tributary.freshness where ($1::text is null or resource = $1) and ($2::text is null or company = $2)`
})

const scopeOf = Effect.fnUntraced(function* ({ company, resource }: Selected) {
  const found = company === undefined ? null : yield* companyOf(company)
  const path = resource === undefined ? null : yield* resourceOf(resource)
  return { path, resources: path === null ? null : [path], company: found?.company ?? null, found }
})

export const handleFreshness = (given: Selected) =>
  readAnswer(
    Effect.gen(function* () {
      const { company, path, resources } = yield* scopeOf(given)
      const [counts] = yield* Statement.run(freshnessCountsStatement, [path, company])
      return {
        data: { resources: counts!.resources, late: counts!.late, never_synced: counts!.never },
        scope: { resources, company, rowsMax: freshnessMax }
      }
    })
  )

export const problems = Tool.make("problems", {
  description:
    "Shows every problem that a person may have to resolve: failing and late resources, quarantine, events and pushes that " +
    "failed, violated invariants and more, the worst first, each with what to do. An empty list means that all is well.",
  parameters: Schema.Struct({ company: Selection.company }),
  success: answer(
    Schema.Struct({
      problems: Schema.Array(
        Schema.Struct({
          kind: Schema.Literals(kinds),
          company: Schema.NullOr(Schema.String),
          subject: Schema.String,
          severity: Schema.Literals(severities),
          size: Schema.Finite,
          since: Schema.NullOr(Schema.String),
          what: Schema.String,
          what_to_do: Schema.String,
          is_consequence: Schema.Boolean
        })
      )
    })
  ),
  failure: ToolFailure
})

const problemsMax = 200

export const handleProblems = (given: Pick<Selected, "company">) =>
  readAnswer(
    Effect.gen(function* () {
      const { company } = yield* scopeOf(given)
      const all = yield* Problems.read(company === null ? null : [company])
      return {
        data: {
          problems: all.slice(0, problemsMax).map((one) => ({
            kind: one.kind,
            company: one.company,
            subject: one.subject,
            severity: one.severity,
            size: one.size,
            since: one.since?.toISOString() ?? null,
            what: cut(one.what, reasonCharactersMax),
            what_to_do: cut(Problems.stepOf(one), reasonCharactersMax),
            is_consequence: one.isConsequence
          }))
        },
        scope: { resources: null, company },
        remarks:
          all.length > problemsMax ? [`The worst ${problemsMax} of ${all.length} are shown; give a company.`] : []
      }
    })
  )

export const gapsAndQuarantine = Tool.make("gaps_and_quarantine", {
  description:
    "Shows what may be missing: open delivery gaps (in open_gaps) and quarantine, which has the records that could not be " +
    "landed, with the reason. The tables are complete where both are empty.",
  parameters: Schema.Struct({
    ...Selection,
    state: Schema.optionalKey(Schema.Literals(["open", "resolved", "all"])),
    limit: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: entriesMax })).annotate({
        description: `The maximum number of quarantine entries; default ${entriesDefault}`
      })
    )
  }),
  success: answer(
    Schema.Struct({
      open_quarantine: Schema.Array(Schema.Struct({ company_id: Id, resource: Schema.String, entries: Schema.Int })),
      quarantine: Schema.Array(
        Schema.Struct({
          id: Id,
          company_id: Id,
          resource: Schema.String,
          record_id: Schema.NullOr(Schema.String),
          field: Schema.NullOr(Schema.String),
          reason: Schema.String,
          times: Schema.Finite,
          first_seen_at: Schema.String,
          last_seen_at: Schema.String,
          resolved_at: Schema.NullOr(Schema.String)
        })
      )
    })
  ),
  failure: ToolFailure
})

export const handleGaps = (given: Selected & { readonly state?: Quarantine.EntryState; readonly limit?: number }) =>
  readAnswer(
    Effect.gen(function* () {
      const { state = "open", limit = entriesDefault } = given
      const { company, found, path, resources } = yield* scopeOf(given)
      const companyId = found?.companyId ?? null
      const entries = yield* Quarantine.list({ companyId, resource: path, state }, null, limit)
      const open = yield* Quarantine.open(entriesMax)
      return {
        data: {
          open_quarantine: open
            .filter((one) => companyId === null || one.companyId === companyId)
            .filter(({ resource }) => path === null || resource === path)
            .map((one) => ({ company_id: idOf(one.companyId), resource: one.resource, entries: one.open })),
          quarantine: entries.map((entry) => ({
            id: idOf(entry.id),
            company_id: idOf(entry.companyId),
            resource: entry.resource,
            record_id: entry.recordId,
            field: entry.field,
            reason: cut(entry.reason, reasonCharactersMax),
            times: entry.times,
            first_seen_at: entry.firstSeenAt.toISOString(),
            last_seen_at: entry.lastSeenAt.toISOString(),
            resolved_at: entry.resolvedAt?.toISOString() ?? null
          }))
        },
        scope: { resources, company, rowsMax: entriesMax },
        remarks:
          entries.length === limit ? [`The newest ${limit} entries are shown; give a larger limit or a resource.`] : []
      }
    })
  )
