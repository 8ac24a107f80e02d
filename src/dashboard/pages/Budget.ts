/** `/budget`: the rate budget of each token, its use, and the work that waits. */
import * as Effect from "effect/Effect"
import { describePause } from "../../budget/Pause.ts"
import { type BudgetState, readBudgets, worstBudgets } from "../../budget/BudgetState.ts"
import * as Activity from "../../status/Activity.ts"
import * as SampleBudget from "../../tasks/SampleBudget.ts"
import { budgetChart, budgetKeys, refusalsOf } from "../BudgetChart.ts"
import { clock, dayMs, hourMs } from "../../web/Times.ts"
import { seriesMax } from "../../tasks/WriteActivity.ts"
import { stateHead } from "../../web/StateHead.ts"
import { trend } from "../../web/Trend.ts"
import { html, type Html, page, type PageRequest, type Route, type ShownCompany } from "../Page.ts"
import { ago, badge, count, duration, none, table, facts } from "../../web/Components.ts"
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

const waiting = (budget: BudgetState): string => {
  const who = [
    ...(budget.urgentWaits ? ["a person (urgent)"] : []),
    ...(budget.liveWaits ? ["following the source (live)"] : []),
    ...(budget.backfillWaits ? ["backfills"] : [])
  ]
  return who.length === 0 ? "nothing" : who.join(", ")
}

/** Whether fewer requests are allowed than configured, after a 429. */
const isSlowed = ({ allowed, configured, isProbing }: BudgetState): boolean =>
  isProbing || (allowed !== null && configured !== null && allowed < configured)

/** The state as a badge. */
const state = (budget: BudgetState, now: Date): Html => {
  const { pausedUntil } = budget
  if (pausedUntil !== null) return badge("warn", `paused for ${duration(pausedUntil.getTime() - now.getTime())}`)
  if (budget.isProbing) return badge("warn", "probing with one request")
  if (isSlowed(budget)) return badge("warn", "slowed after a 429")
  if (budget.urgentWaits || budget.liveWaits) return badge("busy", "in full use")
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
    ...(pausedUntil === null
      ? []
      : [
          [
            "Pause",
            html`until ${ago(pausedUntil, now)}, ${clock(pausedUntil)}:
              ${budget.pausedBy === null ? "an answer requested a pause" : visible(describePause(budget.pausedBy))}. To
              end it: <code>tributary budget release</code>`
          ] as const
        ]),
    [
      "Refused (429)",
      html`${plural(budget.refusals, "time")}${lastRefusalAt === null ? "" : html`, last ${ago(lastRefusalAt, now)}`}`
    ],
    ...(budget.urgentWaits || budget.liveWaits || budget.backfillWaits ? [["Waiting", waiting(budget)] as const] : []),
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

const measured = (points: ReadonlyArray<SampleBudget.Sample>, index: number, now: Date, hasKeys: boolean): Html => {
  const id = `budget-${index}`
  const options = { id, from: new Date(now.getTime() - hourMs), to: now, gapMs }
  return points.length === 0
    ? html`<p class="hint">
        There is no sample of the last hour. tributary serve takes one every 15 seconds while it runs.
      </p>`
    : html`${budgetChart(points, options, hasKeys)}
        <details id="${id}-table">
          <summary>The same as a table</summary>
          ${table(
            "Minute by minute, newest first",
            "Minute, #Used at most, #Allowed at least, Paused, #Refused (429)",
            minutes(points)
          )}
        </details>`
}

const section = (
  shared: Shared,
  index: number,
  budget: BudgetState | undefined,
  points: ReadonlyArray<SampleBudget.Sample>,
  now: Date,
  hasKeys: boolean
) => {
  const names = shared.companies.map(visible).join(", ")
  const isOne = shared.companies.length === 1
  return html`<section aria-labelledby="budget-${index}-heading">
    <h2 id="budget-${index}-heading">${isOne ? "Company" : "Companies"} ${names}</h2>
    ${isOne ? "" : html`<p>These companies share one budget.</p>`}
    ${
      shared.limit === null
        ? html`<p>
            No limit is configured (<code>requests_per_minute</code>), so that nothing is counted; only pauses that the
            source requests are kept.
          </p>`
        : ""
    }
    ${
      budget === undefined
        ? html`<p>No request has been made yet.</p>`
        : html`${
            shared.limit === null && budget.configured === null
              ? stateFacts({ ...budget, allowed: null }, now)
              : stateFacts(budget, now)
          }
          ${shared.limit === null && points.length === 0 ? "" : measured(points, index, now, hasKeys)}`
    }
  </section>`
}

/** The charts of several budgets beside each other, with one legend. */
const smallMultiples = (
  samples: ReadonlyArray<ReadonlyArray<SampleBudget.Sample>>,
  sections: ReadonlyArray<Html>
): Html => {
  const keys = new Map(samples.flatMap((points) => budgetKeys(points, gapMs)))
  return html`${
      keys.size === 0
        ? ""
        : html`<ul class="keys" aria-label="Legend of the charts">
            ${[...keys].map(([kind, word]) => html`<li class="${kind}">${word}</li>`)}
            <li>a gap has no samples</li>
          </ul>`
    }
    <div class="charts budgets">${sections}</div>`
}

const sharedOf = (companies: ReadonlyArray<ShownCompany>): ReadonlyArray<Shared> =>
  [...Map.groupBy(companies, ({ fingerprint }) => fingerprint)].map(([fingerprint, own]) => ({
    fingerprint,
    companies: own.map(({ name }) => name),
    limit: own.flatMap(({ requestsPerMinute }) => requestsPerMinute ?? [])[0] ?? null
  }))

/** What the budgets that slow requests down have in common. */
interface Totals {
  readonly budgets: number
  readonly companies: number
  /** Of those that are shown. */
  readonly states: ReadonlyArray<BudgetState>
  /** A company of the worst one; null where all are free. */
  readonly worst: string | null
}

const isFull = ({ urgentWaits, liveWaits }: BudgetState): boolean => urgentWaits || liveWaits

/** The minutes of each hour in which a source paused requests. */
const pauses = (hours: ReadonlyArray<Activity.Hour>, now: Date): Html => {
  const current = Math.floor(now.getTime() / hourMs)
  return trend(
    hours.map(({ at, paused_ms: ms }) => ({
      hoursAgo: current - Math.floor(at.getTime() / hourMs),
      kind: "paused",
      amount: Math.ceil(ms / 60_000)
    })),
    {
      id: "trend",
      title: "Minutes in which a source paused requests",
      kinds: [["paused", "in all", "warn"]],
      countedMax: null,
      clockHour: now
    }
  )
}

const head = ({ budgets, companies, states, worst }: Totals, hours: ReadonlyArray<Activity.Hour>, now: Date): Html => {
  const paused = states.filter(({ pausedUntil }) => pausedUntil !== null).length
  const slowed = states.filter(isSlowed).length
  const full = states.filter(isFull).length
  return stateHead({
    title: "Rate budget",
    about:
      "The requests per minute that each token may send to its source, for all processes of this warehouse together.",
    tone: paused + slowed > 0 ? "warn" : full > 0 ? "busy" : budgets === 0 ? "quiet" : "good",
    word: paused > 0 ? "paused" : slowed > 0 ? "slowed" : full > 0 ? "in full use" : budgets === 0 ? "none" : "free",
    sentence: html`${plural(budgets, "budget")} of ${plural(companies, "company", "companies")}: ${count(paused)} paused
    by the source, ${count(slowed)} slowed after a 429, ${count(full)} in full use.
    ${
      worst === null || paused + slowed === 0
        ? ""
        : html`The worst: <a href="${address("/budget", { company: worst })}">${visible(worst)}</a>. Next: wait, as it
            ends by itself; only if the source agrees, end it with <code>npx tributary budget release</code>.`
    }`,
    actions: null,
    trend: pauses(hours, now)
  })
}

/** The last day of these companies, as far as it is stored for each. */
const readDay = (companies: ReadonlyArray<ShownCompany>) =>
  Activity.readHours(companies.length > seriesMax.hour ? null : companies.map(({ name }) => name), dayMs)

const listedMax = 50
/** Budgets among which those of this process are looked for. */
const worstMax = 500
const namesMax = 3

/** Budgets as a table: those of the companies that a person searches for, else those that slow requests down. */
const manyBudgets = Effect.fnUntraced(function* (request: PageRequest, all: ReadonlyArray<Shared>) {
  const { now } = request
  const text = textOf(request)
  const byFingerprint = new Map(all.map((one) => [one.fingerprint, one]))
  const isNamed = ({ companies }: Shared) => companies.some((name) => name.toLowerCase().includes(text!.toLowerCase()))
  const found =
    text === null
      ? (yield* worstBudgets(worstMax)).filter((fingerprint) => byFingerprint.has(fingerprint))
      : all.filter(isNamed).map(({ fingerprint }) => fingerprint)
  const shown = found.slice(0, listedMax)
  const budgets = new Map((yield* readBudgets(shown)).map((budget) => [budget.fingerprint, budget]))
  return page({
    title: "Budget",
    section: "budget",
    body: html`${head(
        {
          budgets: all.length,
          companies: request.companies.length,
          states: text === null ? [...budgets.values()] : [],
          worst: text === null ? (byFingerprint.get(found[0] ?? "")?.companies[0] ?? null) : null
        },
        yield* readDay(request.companies),
        now
      )}
      ${text === null ? html`<p>Those that are paused or slowed, or that requests wait for:</p>` : ""}
      <div class="controls">${companySearch("/budget", text)}</div>
      ${
        shown.length === 0
          ? html`<p>${text === null ? "None: all are free." : "No company matches."}</p>`
          : table(
              found.length > listedMax ? `Budgets, the first ${listedMax}` : "Budgets",
              "Company, State, #Used, #Allowed, #Refused (429), Waiting",
              shown.map((fingerprint) => {
                const companies = byFingerprint.get(fingerprint)?.companies ?? []
                const budget = budgets.get(fingerprint)
                const further = companies.length - namesMax
                return [
                  html`<a href="${address("/budget", { company: companies[0] ?? null })}"
                      >${companies.slice(0, namesMax).map(visible).join(", ")}</a
                    >${further > 0 ? ` and ${count(further)} more` : ""}`,
                  budget === undefined ? none("no request yet") : state(budget, now),
                  budget === undefined ? "" : count(budget.used),
                  budget === undefined || budget.allowed === null ? "" : count(budget.allowed),
                  budget === undefined ? "" : count(budget.refusals),
                  budget === undefined ? "" : waiting(budget)
                ]
              })
            )
      }`
  })
})

export const routes: ReadonlyArray<Route> = [
  {
    method: "GET",
    path: "/budget",
    handle: Effect.fn("page.budget")(function* (request) {
      const { companies, now } = request
      const all = sharedOf(companies)
      const chosen = ofQuery(request, "company")
      if (all.length > detailedMax && chosen === null) return yield* manyBudgets(request, all)
      const shared = all.filter((one) => chosen === null || one.companies.includes(chosen))
      const budgets = yield* readBudgets(shared.map(({ fingerprint }) => fingerprint))
      const samples = yield* Effect.forEach(shared, ({ fingerprint }) => SampleBudget.read(fingerprint, hourMs))
      const sections = shared.map((one, index) =>
        section(
          one,
          index,
          budgets.find(({ fingerprint }) => fingerprint === one.fingerprint),
          samples[index]!,
          now,
          shared.length === 1
        )
      )
      const shown = companies.filter(({ fingerprint }) => shared.some((one) => one.fingerprint === fingerprint))
      const worstState = budgets.find(({ pausedUntil }) => pausedUntil !== null) ?? budgets.find(isSlowed)
      const worst = shown.find(({ fingerprint }) => fingerprint === worstState?.fingerprint)?.name ?? null
      return page({
        title: "Budget",
        section: "budget",
        body: html`${head(
          { budgets: shared.length, companies: shown.length, states: budgets, worst },
          yield* readDay(shown),
          now
        )}
        ${sections.length === 0 ? html`<p>No such company is configured.</p>` : sections.length === 1 ? sections : smallMultiples(samples, sections)}`
      })
    })
  }
]
