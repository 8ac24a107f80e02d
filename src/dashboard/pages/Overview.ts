/**
 * The first page: whether all is well and since when, what needs a person, and pictures of the health and of the last
 * day. Each company has this page of its own. Where there are many companies, `Companies.ts` lists them by their counted
 * states instead.
 */
import * as Effect from "effect/Effect"
import { matches } from "../../catalogue/Protection.ts"
import { html, page, redirect, type Html, type PageRequest, type Route, type ShownCompany } from "../Page.ts"
import * as Activity from "../../status/Activity.ts"
import { detailedMax } from "../../status/CompanyStates.ts"
import * as Invariants from "../../status/Invariants.ts"
import { kindTraits } from "../../status/ProblemKinds.ts"
import * as Problems from "../../status/Problems.ts"
import * as Resources from "../../status/Resources.ts"
import { ago, badge, duration, section, table, type Tone } from "../../web/Components.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { lastDay, totalsHint } from "../ActivityCharts.ts"
import { clock, dayMs, hourMs, minute, moving, timeElement } from "../../web/Times.ts"
import { actionLink } from "../Format.ts"
import { healthTiles } from "../HealthPicture.ts"
import { needsPart, numbers, shownMax } from "../NeedsList.ts"
import { companyNamed, ofPath, ofQuery } from "../Params.ts"
import { companiesPage, installationsPart } from "./Companies.ts"

const minuteMs = 60_000

/** What a page of these companies is made from. */
interface Reading {
  readonly states: ReadonlyArray<Resources.ResourceState>
  readonly problems: ReadonlyArray<Problems.Problem>
  readonly groups: ReadonlyArray<Problems.ProblemGroup>
  /** Violations that are not confirmed yet. */
  readonly unconfirmed: number
  /** Null where they are stored only for all companies together. */
  readonly hours: ReadonlyArray<Activity.Hour> | null
  /** The end of the last minute of the day in which something failed, was late or had a gap; null without one. */
  readonly lastTrouble: Date | null
}

const isTrouble = ({ lateness_max: lateness, failed_runs: failed, gaps }: Activity.Hour): boolean =>
  (lateness ?? 0) > 1 || failed + gaps > 0

const readLastTrouble = Effect.fnUntraced(function* (
  names: ReadonlyArray<string>,
  hours: ReadonlyArray<Activity.Hour>,
  now: Date
) {
  const hour = hours.findLast(isTrouble)
  if (hour === undefined) return null
  // Minutes are kept for a day, and of many resources only by company.
  const [minute] = yield* Activity.readLastTrouble(names, hour.at)
  // Of many resources, minutes have no ages.
  const isKnown = !((hour.lateness_max ?? 0) > 1) || minute?.isLate === true
  const at = isKnown ? (minute?.at ?? null) : null
  const end = at === null ? hour.at.getTime() + hourMs : at.getTime() + minuteMs
  return new Date(Math.min(end, now.getTime()))
})

/** The page of all companies also has the problems of the whole warehouse; a pause of all pushes concerns each company. */
const read = Effect.fnUntraced(function* (request: PageRequest, company: ShownCompany | null) {
  const { now } = request
  const companies = company === null ? request.companies : [company]
  const names = companies.map(({ name }) => name)
  const hours = yield* Activity.readHoursOf(names, request.companies.length)
  const problems = (yield* Problems.read(names)).filter(
    (one) => company === null || one.company !== null || one.kind === "restore"
  )
  return {
    states: yield* Resources.read(companies),
    problems,
    groups: Problems.grouped(problems),
    unconfirmed: yield* Invariants.unconfirmed(names),
    hours,
    lastTrouble: yield* readLastTrouble(names, hours ?? [], now)
  } satisfies Reading
})

/** The badge of the state: the worst tone of the problems. */
const overallState = (groups: ReadonlyArray<Problems.ProblemGroup>): readonly [tone: Tone, word: string] =>
  groups.length === 0
    ? ["good", "All is well"]
    : [groups.some(({ severity }) => severity === "critical") ? "bad" : "warn", "Not all is well"]

/** The time, with its date where it is not of the last day, and how long ago. */
const sinceElement = (at: Date, now: Date): Html => {
  const lengthMs = Math.max(0, now.getTime() - at.getTime())
  return html`${timeElement(at, lengthMs < dayMs ? clock(at) : minute(at))} (${moving(duration(lengthMs))})`
}

/** Since when all is well, or since when not, as far as the data says it. */
const sinceWords = ({ groups, hours, lastTrouble }: Reading, now: Date): Html | string => {
  if (groups.length > 0) {
    const known = groups.filter(({ since }) => since !== null)
    const [oldest] = known.toSorted((one, other) => one.since!.getTime() - other.since!.getTime())
    if (oldest === undefined) return ""
    return html`since
    ${sinceElement(oldest.since!, now)}${
      groups.indexOf(oldest) < shownMax
        ? ""
        : html`, oldest: ${kindTraits[oldest.kind].word}, ${visible(oldest.first.subject)}`
    }.`
  }
  if (lastTrouble !== null) return html`The last late resource, failed run or open gap was ${ago(lastTrouble, now)}.`
  const first = hours?.[0]
  if (first === undefined) return ""
  // The first hour may have begun before the first run.
  const knownMs = now.getTime() - first.at.getTime() - hourMs
  return knownMs < hourMs
    ? "No run of the last day failed, and no resource was late."
    : `No run failed and no resource was late for at least the last ${duration(knownMs)}.`
}

/** The pause of all resources. */
interface Pause {
  /** When the last one was paused. */
  readonly since: Date
  /** Who paused them, as far as it is known. */
  readonly by: ReadonlyArray<string>
  readonly companies: ReadonlyArray<string>
}

/** Null unless every resource that has a task is paused. */
const pauseOf = (states: ReadonlyArray<Resources.ResourceState>): Pause | null => {
  const scheduled = states.flatMap(({ task }) => task ?? [])
  const since = scheduled.flatMap(({ pausedAt }) => pausedAt?.getTime() ?? [])
  return since.length === 0 || since.length < scheduled.length
    ? null
    : {
        since: new Date(Math.max(...since)),
        by: [...new Set(scheduled.flatMap(({ pausedBy }) => pausedBy ?? []))],
        companies: [...new Set(scheduled.map(({ company }) => company))]
      }
}

const requestersMax = 3

const pauseWords = ({ since, by, companies }: Pause, now: Date): Html => {
  const shown = by.slice(0, requestersMax).map(visible)
  const others = by.length - shown.length
  const requesters = [...shown, ...(others > 0 ? [plural(others, "other")] : [])]
  return html`since ${sinceElement(since, now)}${requesters.length === 0 ? "" : `, by ${requesters.join(", ")}`}: no
  resource runs by its schedule. Next:
  ${companies.map((company, index) => html`${index === 0 ? "" : ", "}<a href="${address("/confirm/resume-company", { company })}">resume ${visible(company)}</a>`)}.`
}

/** The state in one sentence. */
const stateSentence = (reading: Reading, companies: number, now: Date): Html => {
  const { groups, states } = reading
  if (states.length === 0) {
    return html`<p class="overall quiet">
      ${badge("quiet", "Empty")} No resource is known yet: the first tasks are created when the source has answered and
      the configuration names a resource.
    </p>`
  }
  const pause = pauseOf(states)
  const isPause = pause !== null && groups.length === 0
  const [tone, word] = isPause ? (["quiet", "Paused"] as const) : overallState(groups)
  return html`<p class="overall ${tone}">
    ${badge(tone, word)} ${isPause ? "" : sinceWords(reading, now)}
    ${pause === null ? "" : html`${isPause ? "" : "All resources are paused "}${pauseWords(pause, now)}`}
    <span class="none">${plural(states.length, "resource")} of ${plural(companies, "company", "companies")}</span>
  </p>`
}

const unconfirmedHint = (unconfirmed: number): Html =>
  unconfirmed === 0
    ? html``
    : html`<p class="hint">
        <a href="/invariants">${plural(unconfirmed, "violation")}</a> not confirmed yet: the next evaluation shows
        whether it lasts.
      </p>`

/** The actions on all resources of a company. */
export const companyActions = (company: string, states: ReadonlyArray<Resources.ResourceState>): Html => {
  const paused = states.filter(({ health }) => health.isPaused).length
  const about = `resources of ${visible(company)}`
  return states.length === 0
    ? html``
    : html`<p class="buttons">
        ${actionLink("sync", { company }, "Sync all now", about)}
        ${states.length > paused ? actionLink("pause-company", { company }, "Pause all", about) : ""}
        ${paused > 0 ? actionLink("resume-company", { company }, "Resume all", about) : ""}
      </p>`
}

export const unknownNumber = html`<p class="hint">
  The number of this company at the source is not known yet, so that its runs and rows cannot be shown.
</p>`

/** The resources that the company does not read; nothing where it reads all. */
const excludedPart = ({ connector, excluded = [] }: ShownCompany): Html => {
  const entries = excluded.map(({ pattern }) => ({
    pattern,
    paths: [...connector.catalogue.resources.keys()].filter((path) => matches(pattern, path)).sort()
  }))
  return entries.length === 0
    ? html``
    : section(
        "excluded",
        "Not read",
        html`<p class="hint">The warehouse keeps rows that were read before.</p>
          ${table(
            "The resources that exclude_resources leaves out",
            "Entry, Resources",
            entries.map(({ paths, pattern }) => [html`<code>${visible(pattern)}</code>`, visible(paths.join(", "))])
          )}`
      )
}

const overview = Effect.fnUntraced(function* (request: PageRequest, company: ShownCompany | null) {
  const { now } = request
  const companies = company === null ? request.companies : [company]
  const reading = yield* read(request, company)
  const { states, hours, problems, groups } = reading
  const title = company === null ? "Overview" : `Company ${visible(company.name)}`
  return page({
    title,
    section: "overview",
    body: html`<div class="head">
        <h1>${title}</h1>
        ${company === null ? "" : companyActions(company.name, states)}
      </div>
      ${stateSentence(reading, companies.length, now)}
      ${company !== null && states.some(({ companyId }) => companyId === null) ? unknownNumber : ""}
      ${
        states.length === 0
          ? ""
          : html`${numbers(problems, company?.name ?? null)} ${unconfirmedHint(reading.unconfirmed)}
            ${needsPart(groups, now)}`
      }
      ${company === null ? yield* installationsPart(companies) : ""} ${healthTiles(companies, states)}
      ${hours === null ? totalsHint("/") : lastDay(hours, now, states, company?.name ?? null)}
      ${company === null ? "" : excludedPart(company)}`
  })
})

/** Where the filters of this page led before the table had a page of its own; null without a filter. */
const formerTable = (request: PageRequest, company: string | null) => {
  const [state, text, order] = ["state", "text", "order"].map((name) => ofQuery(request, name)) as [
    string | null,
    string | null,
    string | null
  ]
  return state === null && text === null && order === null
    ? null
    : redirect(address("/resources", { company, state, text, order: order === "name" ? "resource" : null }))
}

export const routes: ReadonlyArray<Route> = [
  {
    method: "GET",
    path: "/",
    handle: Effect.fn("page.overview")(function* (request) {
      if (request.companies.length > detailedMax) return yield* companiesPage(request)
      return formerTable(request, null) ?? (yield* overview(request, null))
    })
  },
  {
    method: "GET",
    path: "/companies/:company",
    handle: Effect.fn("page.company")(function* (request) {
      const company = yield* companyNamed(request, ofPath(request, "company"))
      return formerTable(request, company.name) ?? (yield* overview(request, company))
    })
  }
]
