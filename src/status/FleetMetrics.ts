/**
 * The bound on labels of `/metrics`, and the metrics of all companies together.
 *
 * Promise: the number of series does not grow with the companies. Up to {@link labelledMax} companies have metrics of
 * their own. Of more, the worst {@link worstMax} have, by the order of their counted states. The rule is in
 * `docs/reference/metrics.md`.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import { companyStates } from "../tasks/CountCompanies.ts"
import * as CompanyStates from "./CompanyStates.ts"
import * as Metrics from "./Metrics.ts"
import { kinds, severities } from "./ProblemKinds.ts"
import * as Problems from "./Problems.ts"

/** More companies than this do not all have metrics of their own. */
export const labelledMax = 100
/** The companies with metrics of their own where there are more. */
export const worstMax = 20

export const isBounded = (companies: number): boolean => companies > labelledMax

/** The companies with metrics of their own. */
export const labelled = (companies: ReadonlyArray<string>): Sql.Query<ReadonlyArray<string>> =>
  isBounded(companies.length)
    ? Effect.map(CompanyStates.list(companies, CompanyStates.anyCompany, null, worstMax), (worst) =>
        worst.map(({ company }) => company)
      )
    : Effect.succeed(companies)

const resourceStates = ["failing", "late", "never_synced", "blocked", "paused", "fresh"] as const

const readTotals = (companies: ReadonlyArray<string>): Sql.Query<ReadonlyArray<Metrics.Metric>> =>
  Effect.map(CompanyStates.readSummary(companies), ({ amounts, byState, outdatedMs, uncounted }) => [
    Metrics.gauge("tributary_companies", "Companies by state, as last counted; uncounted: not counted yet.", [
      ...companyStates.map((state) => ({ labels: { state }, value: byState[state] })),
      { labels: { state: "uncounted" }, value: uncounted }
    ]),
    Metrics.gauge(
      "tributary_resources",
      "Resources of all companies by state, as last counted.",
      resourceStates.map((name) => ({ labels: { state: name.replace("_", "-") }, value: amounts[name] }))
    ),
    Metrics.gauge("tributary_companies_outdated_seconds", "The age of the oldest count that is out of date; else 0.", [
      { value: (outdatedMs ?? 0) / 1000 }
    ])
  ])

/** The metrics of the installations, where there are several: of many those with the worst companies. */
const readInstallations = (
  companies: ReadonlyArray<CompanyStates.InstallationMember>
): Sql.Query<ReadonlyArray<Metrics.Metric>> =>
  Effect.map(CompanyStates.readInstallations(companies), (all) =>
    all.length === 0
      ? []
      : [
          Metrics.gauge(
            "tributary_installation_companies",
            "Companies of an installation by state, as last counted.",
            all
              .slice(0, isBounded(all.length) ? worstMax : labelledMax)
              .flatMap(({ byState, installation }) =>
                companyStates.map((state) => ({ labels: { installation, state }, value: byState[state] }))
              )
          )
        ]
  )

/** The problems that a person may have to resolve, as `tributary.problems` has them. */
const readProblems = (companies: ReadonlyArray<string>): Sql.Query<ReadonlyArray<Metrics.Metric>> =>
  Effect.map(Problems.read(companies), (problems) => {
    const numbers = Problems.numbersOf(problems)
    return [
      Metrics.gauge(
        "tributary_problems",
        "Problems that a person may have to resolve, by kind, as tributary.problems has them; 0 where there is none.",
        kinds.flatMap((kind) =>
          severities.map((severity) => ({
            labels: { kind, severity },
            value: numbers.find((one) => one.kind === kind && one.severity === severity)?.number ?? 0
          }))
        )
      )
    ]
  })

/** The metrics of all these companies together, and of their installations. */
export const readFleetMetrics = (companies: ReadonlyArray<CompanyStates.InstallationMember>) => {
  const names = companies.map(({ name }) => name)
  return Effect.map(Effect.all([readTotals(names), readProblems(names), readInstallations(companies)]), (metrics) =>
    metrics.flat()
  )
}
