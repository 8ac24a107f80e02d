/** The tool `violations`: the records that violate an invariant, and the rules. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"
import * as Invariants from "../status/Invariants.ts"
import { answer, cut, Id, idOf, toolFailure, ToolFailure } from "./Answer.ts"
import { readAnswer } from "./Capabilities.ts"
import { companyOf } from "./Names.ts"

type Severity = Invariants.InvariantSummary["severity"]
const severities = ["warning", "critical"] as const satisfies ReadonlyArray<Severity>

const rowsDefault = 50
const rowsMax = 500
const rulesMax = 200
const textCharactersMax = 2_000

export const violations = Tool.make("violations", {
  description:
    "Shows which rules about the records (invariants) are violated: each rule with its severity and counts, and the " +
    "records that violate one, with the reason and since when, critical rules first. A violation is open when it is " +
    "still the same after all tables of its rule were read again; before, it is unconfirmed, and only counted.",
  parameters: Schema.Struct({
    invariant: Schema.optionalKey(
      Schema.String.check(Schema.isMaxLength(200)).annotate({ description: "Only this rule, by its name" })
    ),
    company: Schema.optionalKey(
      Schema.String.check(Schema.isMaxLength(200)).annotate({ description: "Only this company, by name or number" })
    ),
    severity: Schema.optionalKey(Schema.Literals(severities)),
    limit: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: rowsMax })).annotate({
        description: `The maximum number of records; default ${rowsDefault}`
      })
    )
  }),
  success: answer(
    Schema.Struct({
      invariants: Schema.Array(
        Schema.Struct({
          name: Schema.String,
          severity: Schema.Literals(severities),
          statement: Schema.String.annotate({ description: "What holds for every record" }),
          resources: Schema.Array(Schema.String),
          open: Schema.Finite,
          unconfirmed: Schema.Finite,
          failed: Schema.Finite.annotate({ description: "Companies for which it could not be evaluated" }),
          waiting: Schema.Finite.annotate({ description: "Companies of which a table was not read to its end yet" }),
          error: Schema.NullOr(Schema.String),
          evaluated_at: Schema.NullOr(Schema.String)
        })
      ),
      violations: Schema.Array(
        Schema.Struct({
          invariant: Schema.String,
          severity: Schema.Literals(severities),
          company_id: Id,
          resource: Schema.String,
          record_id: Id,
          detail: Schema.String,
          first_seen_at: Schema.String,
          since: Schema.String.annotate({ description: "When it was confirmed" })
        })
      )
    })
  ),
  failure: ToolFailure
})

/** The open violations of these rules. */
const readOpen = (rules: ReadonlyArray<string>, companyId: bigint | null, max: number) =>
  Query.run(
    control
      .selectFrom("tributary.violations as v")
      .innerJoin("tributary.invariants as i", "i.name", "v.invariant")
      .select(["v.invariant", "i.severity", "v.company_id as companyId", "v.resource", "v.record_id as recordId"])
      .select(["v.detail", "v.first_seen_at as firstSeenAt", "v.opened_at as openedAt"])
      .where((is) => is.and([is("v.ended_at", "is", null), is("v.opened_at", "is not", null)]))
      .where("v.invariant", "=", Query.anyOf(rules))
      .$if(companyId !== null, (open) => open.where("v.company_id", "=", companyId))
      .orderBy("i.severity")
      .orderBy("v.opened_at")
      .orderBy("v.id")
      .limit(max)
  )

const unknown = (given: string, names: ReadonlyArray<string>) =>
  Effect.fail(
    toolFailure(
      "unknown_invariant",
      `There is no invariant ${given}.`,
      names.length === 0
        ? "No rule was evaluated yet: the operator runs tributary sync."
        : `Name one of: ${names.slice(0, rulesMax).join(", ")}.`
    )
  )

export const handle = (given: {
  readonly invariant?: string
  readonly company?: string
  readonly severity?: Severity
  readonly limit?: number
}) =>
  readAnswer(
    Effect.gen(function* () {
      const { invariant = null, severity = null, limit = rowsDefault } = given
      const company = given.company === undefined ? null : yield* companyOf(given.company)
      const companyId = company?.companyId ?? null
      const all = yield* Invariants.summary(companyId === null ? null : [companyId])
      if (invariant !== null && !all.some(({ name }) => name === invariant)) {
        const names = all.map(({ name }) => name)
        return yield* unknown(invariant, names)
      }
      const rules = all
        .filter(({ name }) => invariant === null || name === invariant)
        .filter((one) => severity === null || one.severity === severity)
      const names = rules.map(({ name }) => name)
      const found = yield* readOpen(names, companyId, limit)
      const open = rules.reduce((sum, one) => sum + one.open, 0)
      return {
        data: {
          invariants: rules.slice(0, rulesMax).map((one) => ({
            name: one.name,
            severity: one.severity,
            statement: cut(one.statement, textCharactersMax),
            resources: one.resources,
            open: one.open,
            unconfirmed: one.unconfirmed,
            failed: one.failed,
            waiting: one.waiting,
            error: one.error === null ? null : cut(one.error, textCharactersMax),
            evaluated_at: one.evaluatedAt?.toISOString() ?? null
          })),
          violations: found.map((one) => ({
            invariant: one.invariant,
            severity: one.severity,
            company_id: idOf(one.companyId),
            resource: one.resource,
            record_id: idOf(one.recordId),
            detail: one.detail,
            first_seen_at: one.firstSeenAt.toISOString(),
            since: (one.openedAt ?? one.firstSeenAt).toISOString()
          }))
        },
        scope: {
          resources: [...new Set(rules.flatMap(({ resources }) => resources))],
          company: company?.company ?? null
        },
        remarks: [
          ...(open > found.length
            ? [`${found.length} of ${open} violations are shown; at most 1,000 of a rule and company are stored.`]
            : []),
          ...(rules.some(({ failed, waiting }) => failed + waiting > 0)
            ? ["Some rules were not evaluated for every company: failed and waiting say which."]
            : []),
          ...(rules.length > rulesMax ? [`The first ${rulesMax} rules are shown.`] : [])
        ]
      }
    })
  )
