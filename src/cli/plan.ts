/**
 * `tributary plan`: an estimate of the requests and minutes of the next sync or backfill, and of the age of its result.
 *
 * Promise: no row and no checkpoint is changed. The source gets requests only for resources that were never read, and
 * none with `--no-probe`. These requests use permits of the shared budget.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readBudgets } from "../budget/BudgetState.ts"
import { companyFingerprint } from "../budget/TokenFingerprint.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { plan, type PlannedCompany, type PlannedResource, type PlannedTotals, totalsOf } from "../sync/Estimate.ts"
import type { Certainty } from "../sync/ReadEstimate.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import { company, resources, resultCommand, switchFlag, url } from "./Command.ts"
import { codeOfFailures, type ExitCode, exitCode, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { onTargets } from "./Targets.ts"
import { type Range, rangeOf, since, until } from "./TimeRange.ts"

/** The rate budget of a token, and its present use. */
interface BudgetNow {
  /** Companies with the same name share the budget. */
  readonly fingerprint: string
  /** The configured limit; null without one. */
  readonly requestsPerMinute: number | null
  /** The limit at present: lower for a while after a 429. */
  readonly effectivePerMinute: number | null
  /** Requests that programs on this warehouse made, or may still make, within this minute. */
  readonly usedNow: number
  /** How long requests are paused, as the source requested. */
  readonly pausedMs: number
}

interface CompanyPlan extends PlannedCompany {
  readonly totals: PlannedTotals
  readonly budget: BudgetNow
  /** At the whole rate budget; null without a limit. */
  readonly minutes: number | null
}

interface PlanCommandReport {
  /** What is planned: a sync, or a backfill of this range. */
  readonly backfill: Range | null
  readonly companies: ReadonlyArray<CompanyPlan>
  readonly requests: number
  readonly certainty: Certainty
  /** Of the company that takes longest, or of all where they share one budget. */
  readonly minutes: number | null
}

/** Reads the budget of a token without taking part in it. */
const budgetNow = Effect.fnUntraced(function* (settings: Configuration, name: string) {
  const company = settings.companies.find((one) => one.name === name)!
  const fingerprint = companyFingerprint(company)
  const [budget] = yield* readBudgets([fingerprint])
  const { requestsPerMinute } = company.installation
  const allowed = budget?.allowed ?? requestsPerMinute
  return {
    fingerprint,
    requestsPerMinute,
    effectivePerMinute:
      requestsPerMinute === null || allowed === null ? requestsPerMinute : Math.min(requestsPerMinute, allowed),
    usedNow: budget?.used ?? 0,
    pausedMs: budget?.pausedMs ?? 0
  } satisfies BudgetNow
})

interface PlanOptions {
  readonly full: boolean
  readonly backfill: Range | null
  readonly probe: boolean
}

const tenths = (value: number) => Math.round(value * 10) / 10

/** Plans; the warehouse is provided. */
export const run = Effect.fn("plan.run")(function* (
  settings: Configuration,
  options: PlanOptions,
  targets: ReadonlyArray<SyncCompany>
) {
  const { backfill } = options
  // Read before the plan sends requests, which would count as used.
  const budgets = yield* Effect.forEach(targets, ({ name }) => budgetNow(settings, name))
  const { companies } = yield* plan({
    companies: targets.map((target) => ({
      ...target,
      companyId: settings.companies.find(({ name }) => name === target.name)?.companyId ?? null
    })),
    datasets: settings.datasets,
    full: options.full,
    freshnessOf: settings.freshnessOf,
    probe: options.probe,
    concurrency: settings.concurrency,
    ...(backfill === null ? {} : { backfill })
  })
  const plans = companies.map((company, index): CompanyPlan => {
    const totals = totalsOf(company)
    const budget = budgets[index]!
    const { effectivePerMinute } = budget
    const minutes =
      effectivePerMinute === null ? null : tenths(totals.requests / effectivePerMinute + budget.pausedMs / 60_000)
    return { ...company, totals, budget, minutes }
  })
  const timed = plans.flatMap(({ budget, minutes }) => (minutes === null ? [] : [{ ...budget, minutes }]))
  // Companies of one budget wait for each other.
  const shared = [...Map.groupBy(timed, ({ fingerprint }) => fingerprint).values()].map((all) =>
    all.reduce((sum, { minutes }) => sum + minutes, 0)
  )
  const certainties = plans.map(({ totals }) => totals.certainty)
  return {
    backfill,
    companies: plans,
    requests: plans.reduce((sum, { totals }) => sum + totals.requests, 0),
    certainty: (["atLeast", "about", "atMost"] as const).find((one) => certainties.includes(one)) ?? ("exact" as const),
    minutes: shared.length === 0 ? null : tenths(Math.max(...shared))
  } satisfies PlanCommandReport
})

// ------------------------------------------------------------------------------------------------------------ for people

const certaintyPrefix: Readonly<Record<Certainty, string>> = {
  exact: "",
  about: "about ",
  atMost: "at most about ",
  atLeast: "at least ",
  unknown: "at least "
}

const describeAge = (milliseconds: number): string => {
  const minutes = milliseconds / 60_000
  if (minutes < 1) return "under a minute"
  if (minutes < 120) return `${Math.round(minutes)} min`
  return minutes < 2 * 1440 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} days`
}

const describeMinutes = (minutes: number): string => (minutes < 1 ? "under a minute" : describeAge(minutes * 60_000))

const describeScan = ({ kind, resumesAt, skipped, failure, because }: PlannedResource): string => {
  if (skipped !== null) return "skipped"
  if (failure !== null) return "not known"
  const way = kind === "children" ? "children of changed parents" : kind === "full" ? "every record" : "changes"
  return [way, ...(resumesAt === null ? [] : [`from page ${resumesAt}`]), ...(because === null ? [] : [`(${because})`])]
    .filter((part) => part !== "")
    .join(" ")
}

/** Whether a resource needs no line of its own: one request, no records and no remark. */
const isPlain = (one: PlannedResource): boolean =>
  one.requests === 1 &&
  one.resumesAt === null &&
  one.because === null &&
  one.skipped === null &&
  one.failure === null &&
  (one.records ?? 0) === 0 &&
  one.certainty !== "unknown" &&
  one.certainty !== "atLeast"

const companyLines = (company: CompanyPlan, { backfill }: PlanCommandReport): ReadonlyArray<string> => {
  const { name, resources, failure, totals, budget, minutes } = company
  if (failure !== null) return [`company ${name}: ${failure.message}`, `  what to do: ${failure.remedy}`]
  const shown = resources.filter((one) => !isPlain(one) && one.skipped === null)
  const skipped = resources.filter((one) => one.skipped !== null)
  const plain = resources.length - shown.length - skipped.length
  const out = [`company ${name}`]
  if (shown.length > 0) {
    out.push(
      Output.table(
        ["resource", "the next run reads", "records", "requests", "known from", "age now"],
        shown.map((one) => [
          one.resource,
          describeScan(one),
          one.records === null ? "" : `${certaintyPrefix[one.certainty]}${Output.count(one.records)}`,
          Output.count(one.requests),
          one.failure?.message ?? one.basis,
          one.ageMs === null ? "never read" : describeAge(one.ageMs)
        ]),
        ["left", "left", "right", "right"]
      )
    )
  }
  if (plain > 0) {
    out.push(
      `  ${shown.length > 0 ? "and " : ""}${Output.plural(plain, "resource")} with one request each and no expected records`
    )
  }
  for (const one of skipped) out.push(`  skipped ${one.resource}: ${one.skipped}`)
  const allowed = budget.effectivePerMinute
  out.push(
    `  ${certaintyPrefix[totals.certainty]}${Output.plural(totals.requests, "request")}` +
      (allowed === null || minutes === null
        ? ", without a limit"
        : `: ${describeMinutes(minutes)} at ${Output.count(Math.floor(allowed))} a minute`) +
      (budget.usedNow > 0 ? `, of which ${Output.count(budget.usedNow)} are in use at present` : "") +
      (budget.pausedMs > 0 ? `; the source requested a pause of ${Output.duration(budget.pausedMs)} first` : "")
  )
  const promised = resources.filter(({ kind }) => kind !== null).map(({ freshnessMs }) => freshnessMs)
  if (minutes !== null && promised.length > 0 && backfill === null) {
    const least = Math.min(...promised)
    out.push(
      `  when it ends, its result is ${minutes < 1 ? "less than a minute" : `up to ${describeMinutes(minutes)}`} old` +
        (minutes * 60_000 > least ? `, which exceeds the freshness target of ${describeAge(least)}` : "")
    )
  }
  return out
}

/** The plan for people. */
const lines = (report: PlanCommandReport): ReadonlyArray<string> => {
  const { backfill } = report
  const what =
    backfill === null
      ? "The next sync"
      : backfill.since === null && backfill.until === null
        ? "A backfill of everything"
        : `A backfill from ${backfill.since ?? "the beginning"} to ${backfill.until ?? "now"}`
  return [
    ...report.companies.flatMap((company) => [...companyLines(company, report), ""]),
    `${what} takes ${certaintyPrefix[report.certainty]}${Output.plural(report.requests, "request")}` +
      (report.minutes === null ? "" : `, ${report.minutes < 1 ? "" : "about "}${describeMinutes(report.minutes)}`)
  ]
}

/** The exit code of a plan: that of its failed requests, else 0. */
const codeOf = (report: PlanCommandReport): ExitCode => {
  const failures = report.companies.flatMap((company) => [
    ...(company.failure === null ? [] : [company.failure]),
    ...company.resources.flatMap(({ failure }) => (failure === null ? [] : [failure]))
  ])
  return codeOfFailures(failures) ?? exitCode.ok
}

export const command = resultCommand({
  name: "plan",
  examples: {
    "tributary plan": "The reads, requests and minutes of the next sync",
    "tributary plan --backfill --since 2026-01-01": "The same for a backfill",
    "tributary plan --no-probe --json": "From the warehouse alone, as JSON"
  },
  flags: {
    resources: resources("plan"),
    company,
    full: switchFlag("full", "Plan a sync --full: every record, also where a cursor exists"),
    backfill: switchFlag("backfill", "Plan a backfill instead of a sync"),
    since,
    until,
    noProbe: switchFlag("no-probe", "Send no request to the source; resources that were never read stay unknown"),
    url
  },
  run: (flags, config) =>
    Effect.gen(function* () {
      const isRanged = Option.isSome(flags.since) || Option.isSome(flags.until)
      if (isRanged && !flags.backfill) {
        return yield* usageError("--since and --until belong to a backfill: add --backfill")
      }
      if (flags.full && flags.backfill) {
        return yield* usageError("--full belongs to a sync; a backfill reads everything anyway")
      }
      const range = yield* rangeOf(flags.since, flags.until)
      const options = { full: flags.full, backfill: flags.backfill ? range : null, probe: !flags.noProbe }
      const targets = { companies: flags.company, resources: flags.resources }
      return yield* onTargets({ ...flags, config }, targets, (settings, companies) => run(settings, options, companies))
    }),
  lines,
  code: codeOf
})
