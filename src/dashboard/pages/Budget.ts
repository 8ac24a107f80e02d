/**
 * `/budget`: the rate budget of each token, its use, and the work that waits. Several are charts on one scale and a table;
 * one is shown in detail.
 */
import * as Effect from "effect/Effect"
import { describePause } from "../../budget/Pause.ts"
import { type BudgetState, readBudgets, worstBudgets } from "../../budget/BudgetState.ts"
import * as Activity from "../../status/Activity.ts"
import * as SampleBudget from "../../tasks/SampleBudget.ts"
import { pausesTrend } from "../ActivityCharts.ts"
import { budgetChart, budgetLanes, refusalsOf } from "../BudgetChart.ts"
import { clock, hourMs } from "../../web/Times.ts"
import { stateHead } from "../../web/StateHead.ts"
import { html, type Html, page, pageRoute, type PageRequest, type Route, type ShownCompany } from "../Page.ts"
import { ago, badge, buttonLink, count, duration, facts, none, section, table } from "../../web/Components.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { ofQuery } from "../Params.ts"
import { detailedMax } from "../../status/CompanyStates.ts"
import { companySearch, textOf } from "./Companies.ts"

/** Samples are 15 s apart; one may be missing. */
const gapMs = 40_000

/** A token's budget and the companies that share it. */
interface Shared {
  readonly fingerprint: string
  readonly companies: ReadonlyArray<string>
  readonly limit: number | null
}

/** Whether fewer requests are allowed than configured, after a 429. */
const isSlowed = ({ allowed, configured, isProbing }: BudgetState): boolean =>
  isProbing || (allowed !== null && configured !== null && allowed < configured)

/** Whether nearly all that is allowed is used. */
const isFull = ({ allowed, used }: BudgetState): boolean => allowed !== null && used >= 0.95 * allowed

/** The state as a badge. */
const state = (budget: BudgetState, now: Date): Html => {
  const { pausedUntil } = budget
  if (pausedUntil !== null) return badge("warn", `paused for ${duration(pausedUntil.getTime() - now.getTime())}`)
  if (budget.isProbing) return badge("warn", "probing with one request")
  if (isSlowed(budget)) return badge("warn", "slowed after a 429")
  if (isFull(budget)) return badge("busy", "in full use")
  return badge("good", "free")
}

const stateFacts = (budget: BudgetState, now: Date): Html => {
  const { allowed, configured, pausedUntil, lastRefusalAt } = budget
  return facts([
    ["State", state(budget, now)],
    [
      "Used now",
      html`${count(budget.used)}${allowed === null ? "" : ` of ${count(allowed)}`} requests a
      minute${allowed !== null && configured !== null && allowed < configured ? `, ${count(configured)} configured` : ""}`
    ],
    pausedUntil === null
      ? null
      : [
          "Pause",
          html`until ${ago(pausedUntil, now)}, ${clock(pausedUntil)}:
            ${budget.pausedBy === null ? "an answer requested a pause" : visible(describePause(budget.pausedBy))}. To
            end it: <code>tributary budget release</code>`
        ],
    [
      "Refused (429)",
      html`${plural(budget.refusals, "time")}${lastRefusalAt === null ? "" : html`, last ${ago(lastRefusalAt, now)}`}`
    ],
    ["Last request", ago(budget.askedAt, now)]
  ])
}

/** The samples by minute, newest first. */
const minutes = (points: ReadonlyArray<SampleBudget.Sample>): ReadonlyArray<ReadonlyArray<string>> => {
  const refused = new Map(refusalsOf(points).map(({ at, refusals }) => [at, refusals]))
  const allowedOf = (own: ReadonlyArray<SampleBudget.Sample>) =>
    own.flatMap(({ allowed }) => (allowed === null ? [] : [allowed]))
  return [...Map.groupBy(points, ({ at }) => clock(at))]
    .reverse()
    .map(([minute, own]) => [
      minute,
      count(Math.max(...own.map(({ used }) => used))),
      allowedOf(own).length === 0 ? "no limit" : count(Math.min(...allowedOf(own))),
      own.some(({ isPaused }) => isPaused) ? "yes" : "no",
      count(own.reduce((sum, { at }) => sum + (refused.get(at) ?? 0), 0))
    ])
}

const lastHour = (now: Date) => ({ from: new Date(now.getTime() - hourMs), to: now, gapMs })

const noSample = html`<p class="hint">
  There is no sample of the last hour. tributary serve takes one every 15 seconds while it runs.
</p>`

const measured = (points: ReadonlyArray<SampleBudget.Sample>, now: Date): Html =>
  points.length === 0
    ? noSample
    : html`${budgetChart(points, { id: "budget", ...lastHour(now) })}
        <details id="budget-table">
          <summary>The same as a table</summary>
          ${table(
            "Minute by minute, newest first",
            "Minute, #Used at most, #Allowed at least, Paused, #Refused (429)",
            minutes(points)
          )}
        </details>`

/** A budget with its state and the samples of the last hour. */
interface Measured extends Shared {
  readonly budget: BudgetState | undefined
  readonly points: ReadonlyArray<SampleBudget.Sample>
}

const withoutLimit = html`<p>
  No limit is configured (<code>requests_per_minute</code>), so that nothing is counted; only pauses that the source
  requests are kept.
</p>`

/** One budget in detail. */
const inDetail = ({ companies, limit, budget, points }: Measured, now: Date): Html => {
  const isOne = companies.length === 1
  return section(
    "budget-heading",
    `${isOne ? "Company" : "Companies"} ${companies.map(visible).join(", ")}`,
    html`${isOne ? "" : html`<p>These companies share one budget.</p>`} ${limit === null ? withoutLimit : ""}
    ${
      budget === undefined
        ? html`<p>No request has been made yet.</p>`
        : html`${stateFacts(limit === null && budget.configured === null ? { ...budget, allowed: null } : budget, now)}
          ${limit === null && points.length === 0 ? "" : measured(points, now)}`
    }`
  )
}

/** Charts that are drawn beneath each other. */
const chartsMax = 12
const namesMax = 3

const linkOf = ({ companies }: Shared): Html => {
  const further = companies.length - namesMax
  return html`<a href="${address("/budget", { company: companies[0] ?? null })}"
      >${companies.slice(0, namesMax).map(visible).join(", ")}</a
    >${further > 0 ? ` and ${count(further)} more` : ""}`
}

const peakOf = (points: ReadonlyArray<SampleBudget.Sample>): number => Math.max(0, ...points.map(({ used }) => used))

/** Paused ones, slowed ones, those in full use, then by the highest share of the limit in use within the hour. */
const worstFirst = (all: ReadonlyArray<Measured>): ReadonlyArray<Measured> => {
  const rankOf = ({ budget }: Measured) =>
    budget === undefined ? 4 : [budget.pausedUntil !== null, isSlowed(budget), isFull(budget), true].indexOf(true)
  const shareOf = ({ points }: Measured) =>
    Math.max(0, ...points.map(({ used, allowed }) => (allowed === null ? 0 : used / allowed)))
  return all.toSorted((one, other) => rankOf(one) - rankOf(other) || shareOf(other) - shareOf(one))
}

const chartWords = (shown: ReadonlyArray<Measured>, further: number): string => {
  const paused = shown.filter(({ points }) => points.some(({ isPaused }) => isPaused)).length
  const refused = shown.filter(({ points }) => refusalsOf(points).length > 0).length
  return `${plural(shown.length, "budget")} on one scale, the worst first: ${count(paused)} paused and ${count(refused)} refused (429) within the hour.${
    further === 0 ? "" : ` ${plural(further, "further budget")} ${further === 1 ? "is" : "are"} only in the table.`
  }`
}

/** Several budgets: a chart of each on one scale, and a table of all. */
const several = (caption: string, all: ReadonlyArray<Measured>, now: Date): Html => {
  const drawn = all.filter(({ points }) => points.length > 0).slice(0, chartsMax)
  return html`${
    drawn.length === 0
      ? noSample
      : budgetLanes(
          drawn.map((one) => ({
            name: html`${linkOf(one)} <span class="figure">at most ${count(peakOf(one.points))}</span>`,
            points: one.points
          })),
          { id: "budgets", ...lastHour(now) },
          chartWords(drawn, all.length - drawn.length)
        )
  }
  ${table(
    caption,
    "Company, State, #Used now, #Allowed, #Highest in the hour, #Refused (429)",
    all.map((one) => [
      linkOf(one),
      one.budget === undefined ? none("no request yet") : state(one.budget, now),
      one.budget === undefined ? "" : count(one.budget.used),
      one.limit === null && (one.budget?.configured ?? null) === null
        ? "no limit"
        : count(one.budget?.allowed ?? one.limit ?? 0),
      one.points.length === 0 ? "" : count(peakOf(one.points)),
      one.budget === undefined ? "" : count(one.budget.refusals)
    ])
  )}`
}

/** The samples of the last hour of the first of these. */
const measure = (all: ReadonlyArray<Shared>, samplesMax: number) =>
  Effect.gen(function* () {
    const budgets = new Map(
      (yield* readBudgets(all.map(({ fingerprint }) => fingerprint))).map((one) => [one.fingerprint, one])
    )
    return yield* Effect.forEach(all, (one, index) =>
      Effect.map(
        index < samplesMax ? SampleBudget.read(one.fingerprint, hourMs) : Effect.succeed([]),
        (points): Measured => ({
          ...one,
          budget: budgets.get(one.fingerprint),
          points
        })
      )
    )
  })

const sharedOf = (companies: ReadonlyArray<ShownCompany>): ReadonlyArray<Shared> =>
  [...Map.groupBy(companies, ({ fingerprint }) => fingerprint)].map(([fingerprint, own]) => ({
    fingerprint,
    companies: own.map(({ name }) => name),
    limit: own.flatMap(({ requestsPerMinute }) => requestsPerMinute ?? [])[0] ?? null
  }))

const listedMax = 50
/** Budgets among which those of this process are looked for. */
const worstMax = 500

export type Model = Effect.Success<ReturnType<typeof load>>

/**
 * The budgets of all companies, or of one, the worst first. Where there are many, those of the companies that a person
 * searches for, else those that slow requests down.
 */
const load = Effect.fn("page.budget")(function* (request: PageRequest) {
  const { companies, now } = request
  const all = sharedOf(companies)
  const chosen = ofQuery(request, "company")
  const text = textOf(request)
  const isMany = all.length > detailedMax && chosen === null
  const byFingerprint = new Map(all.map((one) => [one.fingerprint, one]))
  const found = !isMany
    ? all.filter((one) => chosen === null || one.companies.includes(chosen))
    : text === null
      ? yield* Effect.map(worstBudgets(worstMax), (worst) =>
          worst.flatMap((fingerprint) => byFingerprint.get(fingerprint) ?? [])
        )
      : all.filter((one) => one.companies.some((name) => name.toLowerCase().includes(text.toLowerCase())))
  const shown = isMany
    ? yield* measure(found.slice(0, listedMax), chartsMax)
    : worstFirst(yield* measure(found, detailedMax))
  const counted = isMany ? all : found
  const names = counted.flatMap((one) => one.companies)
  return {
    isMany,
    text,
    /** The budgets that the sentence counts, and their companies. */
    budgets: counted.length,
    companies: names.length,
    found: found.length,
    shown,
    hours: yield* Activity.readHoursOf(names, companies.length),
    now
  }
})

const head = ({ isMany, text, budgets, companies, shown, hours, now }: Model): Html => {
  // Of the companies that a person searches for, the worst is not that of all.
  const counted = isMany && text !== null ? [] : shown
  const states = counted.flatMap(({ budget }) => budget ?? [])
  const paused = states.filter(({ pausedUntil }) => pausedUntil !== null).length
  const slowed = states.filter(isSlowed).length
  const full = states.filter(isFull).length
  const worst = counted.find(({ budget }) => budget !== undefined && (budget.pausedUntil !== null || isSlowed(budget)))
  const company = worst?.companies[0] ?? null
  return stateHead({
    title: "Rate budget",
    about:
      "The requests per minute that each token may send to its source, for all processes of this warehouse together.",
    tone: paused + slowed > 0 ? "warn" : full > 0 ? "busy" : budgets === 0 ? "quiet" : "good",
    word: paused > 0 ? "paused" : slowed > 0 ? "slowed" : full > 0 ? "in full use" : budgets === 0 ? "none" : "free",
    sentence: html`${plural(budgets, "budget")} of ${plural(companies, "company", "companies")}: ${count(paused)} paused
    by the source, ${count(slowed)} slowed after a 429, ${count(full)} in full use.
    ${company === null ? "" : `The worst: ${visible(company)}.`}`,
    actions:
      company === null
        ? null
        : html`${buttonLink(address("/budget", { company }), "Open the worst")} It ends by itself. Only if the source
            agrees, end it with <code>tributary budget release</code>.`,
    trend: hours === null ? null : pausesTrend(hours, now, budgets)
  })
}

const listOf = ({ isMany, text, found, shown, now }: Model): Html => {
  const [only] = shown
  if (isMany) {
    return html`${text === null ? html`<p>Those that are paused, slowed or in full use:</p>` : ""}
      <div class="controls">${companySearch("/budget", text)}</div>
      ${
        only === undefined
          ? html`<p>${text === null ? "None: all are free." : "No company matches."}</p>`
          : several(`Budgets${found > listedMax ? `, the first ${listedMax} of ${count(found)}` : ""}`, shown, now)
      }`
  }
  if (only === undefined) return html`<p>No such company is configured.</p>`
  return shown.length === 1 ? inDetail(only, now) : several("Budgets, the worst first", shown, now)
}

export const view = (model: Model) =>
  page({ title: "Budget", section: "budget", body: html`${head(model)} ${listOf(model)}` })

export const routes: ReadonlyArray<Route> = [pageRoute({ path: "/budget", load, view })]
