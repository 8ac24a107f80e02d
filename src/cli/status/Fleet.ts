/** The output of `tributary status` where there are many companies: totals, and the companies by severity. */
import * as Effect from "effect/Effect"
import * as Activity from "../../status/Activity.ts"
import * as CompanyStates from "../../status/CompanyStates.ts"
import * as Invariants from "../../status/Invariants.ts"
import * as Outbox from "../../status/Outbox.ts"
import * as Problems from "../../status/Problems.ts"
import * as Schedule from "../../status/Schedule.ts"
import { companyStates, type State } from "../../tasks/CountCompanies.ts"
import * as Output from "../Output.ts"
import { activityLines, damageLines, installationLines, invariantLines } from "./Format.ts"
import { problemLines } from "../Problems.ts"

/** Companies that are listed for people. */
const listedMax = 20
/** Companies that are listed as JSON. */
const listedJsonMax = 100
const errorMax = 100

/** The state of all companies, and the worst of them, or the worst in a state. */
export const readFleet = Effect.fn("status.readFleet")(function* (
  names: ReadonlyArray<string>,
  members: ReadonlyArray<CompanyStates.InstallationMember>,
  state: State | null,
  damaged: ReadonlyArray<string> = []
) {
  const summary = yield* CompanyStates.readSummary(names)
  const schedule = yield* Schedule.readProcesses
  return {
    ...summary,
    installations: yield* CompanyStates.readInstallations(members),
    processes: schedule!.processes,
    problems: yield* Problems.read(names),
    outbox: yield* Outbox.total,
    invariants: yield* Invariants.summary(null),
    activity: yield* Activity.readTotals,
    damaged,
    state,
    worst: yield* CompanyStates.list(names, { ...CompanyStates.anyCompany, state }, null, listedJsonMax)
  }
})
export type FleetReport = Effect.Success<ReturnType<typeof readFleet>>

const words: Readonly<Record<CompanyStates.Amount, readonly [one: string, many: string]>> = {
  resources: ["resource", "resources"],
  failing: ["failing", "failing"],
  late: ["late", "late"],
  never_synced: ["never synced", "never synced"],
  blocked: ["blocked", "blocked"],
  paused: ["paused", "paused"],
  fresh: ["fresh", "fresh"],
  quarantined: ["record in quarantine", "records in quarantine"],
  dead_letters: ["dead letter", "dead letters"],
  gaps: ["open gap", "open gaps"],
  rejected: ["rejected record", "rejected records"],
  subscriptions_down: ["subscription not active", "subscriptions not active"]
}
const resourceAmounts = ["failing", "late", "never_synced", "blocked", "paused", "fresh"] as const
const signAmounts = ["quarantined", "dead_letters", "gaps", "rejected", "subscriptions_down"] as const

const amountsOf = (
  of: Readonly<Record<CompanyStates.Amount, number>>,
  names: ReadonlyArray<CompanyStates.Amount>
): string => Output.list(names.map((name) => (of[name] === 0 ? "" : Output.plural(of[name], ...words[name]))))

const companyTable = (companies: ReadonlyArray<CompanyStates.CompanyState>): string =>
  Output.table(
    ["company", "state", "failing", "late", "fresh", "counted", "worst resource, and other signs"],
    companies.map((one) => [
      one.company,
      one.state,
      Output.count(one.failing),
      Output.count(one.late),
      `${Output.count(one.fresh)}/${Output.count(one.resources)}`,
      `${Output.elapsed(one.countedMs)} ago`,
      Output.list([
        one.worstResource === null
          ? ""
          : `${one.worstResource}${one.error === null ? "" : `: ${one.error.slice(0, errorMax)}`}`,
        amountsOf(one, signAmounts)
      ])
    ]),
    ["left", "left", "right", "right", "right", "right"]
  )

export const fleetLines = (report: FleetReport): ReadonlyArray<string> => {
  const {
    companies,
    uncounted,
    byState,
    installations,
    amounts,
    outdatedMs,
    processes,
    outbox,
    invariants,
    activity,
    state,
    worst
  } = report
  const shown = worst.slice(0, listedMax)
  const inStates = companyStates.map((one) => Output.counted(byState[one], one))
  const signs = amountsOf(amounts, signAmounts)
  const matching = state === null ? companies - uncounted : byState[state]
  return [
    `  ${Output.plural(companies, "company", "companies")}: ${Output.list([...inStates, Output.counted(uncounted, "not counted yet")])}`,
    `  ${Output.plural(amounts.resources, "resource")}: ${amountsOf(amounts, resourceAmounts)}`,
    ...(signs === "" ? [] : [`  ${signs}`]),
    processes > 0
      ? `  processes of serve: ${Output.count(processes)} alive`
      : "  processes of serve: none alive: nothing runs by schedule and nothing is counted; start one with: tributary serve",
    ...(outdatedMs === null ? [] : [`  counts are up to ${Output.elapsed(outdatedMs)} old`]),
    ...(outbox.waiting + outbox.rejected === 0
      ? []
      : [
          `  outbox: ${Output.count(outbox.waiting)} waiting, ${Output.count(outbox.rejected)} rejected; see them with tributary push status`
        ]),
    ...problemLines(report.problems),
    ...damageLines(report.damaged),
    ...activityLines(activity),
    ...invariantLines(invariants),
    ...installationLines(installations),
    "",
    ...(shown.length === 0 ? [] : [companyTable(shown), ""]),
    `  ${Output.count(shown.length)} of ${Output.plural(matching, "company", "companies")}${state === null ? "" : ` ${state}`}, the worst first; ` +
      "--company NAME shows one, --state STATE others, --all every resource"
  ]
}
