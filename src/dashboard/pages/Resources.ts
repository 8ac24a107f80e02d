/**
 * `/resources`: the table of all resources, filtered by state, company, area and text, sorted by a column, part by part.
 * Where there are many companies, it lists one of them, and first the companies to choose from.
 */
import * as Effect from "effect/Effect"
import { html, page, PageError, pageRoute, type Html, type PageRequest, type Route } from "../Page.ts"
import * as Activity from "../../status/Activity.ts"
import { detailedMax, type Filter as CompanyFilter } from "../../status/CompanyStates.ts"
import * as Resources from "../../status/Resources.ts"
import { companyStates } from "../../tasks/CountCompanies.ts"
import { ago, badge, count, duration, filterLinks, none, select, table, type Sorting } from "../../web/Components.ts"
import { address, plural, truncated, visible } from "../../web/Escape.ts"
import { runAddress } from "../Addresses.ts"
import { actionLink, healthBadges, nextRun, problemOf, rows, runTones, withoutName } from "../Format.ts"
import { areasOf, otherArea } from "../HealthPicture.ts"
import { companyLink, detail, resourceLink } from "../Links.ts"
import { hiddenFields } from "../ListControls.ts"
import { choiceOf, companyNamed, ofQuery } from "../Params.ts"
import { freshnessSpark, landedSpark } from "../Sparkline.ts"
import { companyList, companySearch, textOf } from "./Companies.ts"
import { companyActions, unknownNumber } from "./Overview.ts"

const path = "/resources"
const shownMax = 50
const whyMax = 300

type ResourceState = Resources.ResourceState

const filters = ["all", "failing", "late", "blocked", "quarantine", "never-synced", "paused", "fresh"] as const
type Filter = (typeof filters)[number]

const filterWords: Readonly<Record<Filter, string>> = {
  all: "All",
  failing: "Failing",
  late: "Late",
  blocked: "Blocked",
  quarantine: "With quarantine",
  "never-synced": "Never synced",
  paused: "Paused",
  fresh: "Fresh"
}

/** Each resource counts in its worst state, as on the overview; the quarantine is beside the state. */
const isOf = (filter: Filter, { health, quarantined }: ResourceState): boolean =>
  filter === "all" || (filter === "quarantine" ? quarantined > 0 : health.state === filter)

// -------------------------------------------------------------------------------------------------------------- the order

type Value = number | string | null

interface Column {
  readonly heading: string
  /** The option of the form. */
  readonly words: string
  /** Null has no place in the order and stands last. */
  readonly of: (state: ResourceState) => Value
  /** Whether the highest value is the first. */
  readonly isDescending: boolean
}

const timeOf = (at: Date | null | undefined): number | null => at?.getTime() ?? null

/** The order of the table by the name of its column. The number in quarantine is below the name. */
const columns = {
  state: { heading: "State", words: "the worst first", of: () => null, isDescending: false },
  resource: { heading: "Resource", words: "by name", of: ({ resource }) => resource, isDescending: false },
  company: { heading: "Company", words: "by company", of: ({ company }) => company, isDescending: false },
  age: { heading: "Age", words: "the oldest first", of: ({ health }) => health.ageMs, isDescending: true },
  rows: { heading: "Rows", words: "the most rows first", of: (state) => state.rows?.rows ?? null, isDescending: true },
  run: {
    heading: "Last run",
    words: "the newest run first",
    of: (state) => timeOf(state.lastRun?.beganAt),
    isDescending: true
  },
  next: {
    heading: "Next run",
    words: "the next run first",
    of: ({ task }) => timeOf(task?.nextAt),
    isDescending: false
  },
  quarantine: {
    heading: "Quarantine",
    words: "the most quarantine first",
    of: ({ quarantined }) => quarantined,
    isDescending: true
  }
} as const satisfies Readonly<Record<string, Column>>
type ColumnName = keyof typeof columns
const columnNames = Object.keys(columns) as ReadonlyArray<ColumnName>
/** A minus turns the order round. */
type Order = ColumnName | `-${ColumnName}`
const orders: ReadonlyArray<Order> = columnNames.flatMap((name) => [name, `-${name}`] as const)

const columnOf = (order: Order): ColumnName => order.replace("-", "") as ColumnName
const isReversed = (order: Order): boolean => order.startsWith("-")

const compare = (one: Value, other: Value): number => (one === other ? 0 : one! < other! ? -1 : 1)

/** Sorted by a column; equal ones the worst first. */
const sorted = (states: ReadonlyArray<ResourceState>, order: Order): ReadonlyArray<ResourceState> => {
  const { of, isDescending }: Column = columns[columnOf(order)]
  const sign = isDescending === isReversed(order) ? 1 : -1
  const worst = states.toSorted(Resources.worse)
  if (columnOf(order) === "state") return isReversed(order) ? worst.toReversed() : worst
  return worst.toSorted((one, other) => {
    const [a, b] = [of(one), of(other)]
    if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0)
    return sign * compare(a, b)
  })
}

// ------------------------------------------------------------------------------------------------------------- the choice

interface Choice {
  readonly company: string | null
  readonly filter: Filter
  readonly area: string | null
  readonly text: string | null
  readonly order: Order
  /** From 1. */
  readonly part: number
}

const choiceOfRequest = Effect.fnUntraced(function* (request: PageRequest): Effect.fn.Return<Choice, PageError> {
  const company = ofQuery(request, "company")
  const part = ofQuery(request, "page") ?? "1"
  if (!/^[1-9]\d{0,5}$/.test(part)) {
    return yield* new PageError({ status: 400, message: "That is not the number of a page." })
  }
  return {
    company: company === null ? null : (yield* companyNamed(request, company)).name,
    filter: (yield* choiceOf(request, "state", filters)) ?? "all",
    area: ofQuery(request, "area"),
    text: textOf(request),
    order: (yield* choiceOf(request, "order", orders)) ?? "state",
    part: Number(part)
  }
})

const queryOf = ({ company, filter, area, text, order, part }: Choice) => ({
  company,
  state: filter === "all" ? null : filter,
  area,
  text,
  order: order === "state" ? null : order,
  page: part === 1 ? null : String(part)
})

/** The same table with a change; another filter or order begins at the first page. */
const here = (choice: Choice, change: Partial<Choice>): string =>
  address(path, queryOf({ ...choice, part: 1, ...change }))

const sortingsOf = (choice: Choice): Readonly<Record<string, Sorting>> =>
  Object.fromEntries(
    columnNames.map((name) => {
      const { heading, isDescending }: Column = columns[name]
      const isCurrent = columnOf(choice.order) === name
      const isUp = isDescending === isReversed(choice.order)
      const next: Order = isCurrent && !isReversed(choice.order) ? `-${name}` : name
      return [
        heading,
        { to: here(choice, { order: next }), direction: isCurrent ? (isUp ? "ascending" : "descending") : null }
      ]
    })
  )

// -------------------------------------------------------------------------------------------------------------- the parts

/** The age beside its target. */
const age = ({ isProven, health: { ageMs, targetMs, isBlocked } }: ResourceState): Html =>
  html`${ageMs === null ? none("never") : duration(ageMs)}${
    targetMs === null || isBlocked ? "" : html` ${none(`of ${duration(targetMs)}`)}`
  }${isProven ? html` ${none("by events")}` : ""}`

/** The sign of the status, and the age. */
const lastRun = ({ lastRun: run }: ResourceState, now: Date): Html =>
  run === null
    ? none("–")
    : html`<a href="${runAddress(run.id)}"
          ><span class="badge ${runTones[run.status]}"><span class="visually-hidden">${run.status}</span></span></a
        >
        ${ago(run.beganAt, now)}`

/** The one action that a row offers; the page of the resource has all. */
const actionOf = ({ company, resource, health: { isPaused, isFailing, isLate } }: ResourceState): Html | string => {
  const query = { company, resource }
  const about = `${visible(resource)} of ${visible(company)}`
  if (isPaused) return actionLink("resume", query, "Resume", about)
  return isFailing || isLate ? actionLink("sync", query, "Sync now", about) : ""
}

const rowOf = (
  state: ResourceState,
  hours: ReadonlyArray<Activity.ResourceHour>,
  hasCompany: boolean,
  now: Date
): ReadonlyArray<Html | string> => {
  const { company, resource, health, quarantined } = state
  const query = { company, resource }
  const isSynced = state.freshAt !== null
  const why = problemOf(state, now)?.error ?? null
  return [
    html`${resourceLink(company, resource)}${
      quarantined === 0
        ? ""
        : html` <a class="quarantined" href="${address("/quarantine", query)}">${count(quarantined)} in quarantine</a>`
    }${why === null ? "" : detail(truncated(withoutName(why, resource), whyMax))}`,
    ...(hasCompany ? [companyLink(company)] : []),
    healthBadges(health),
    age(state),
    isSynced ? freshnessSpark(hours, now) : none("–"),
    isSynced ? landedSpark(hours, now) : none("–"),
    isSynced || (state.rows?.rows ?? 0) > 0 ? rows(state) : none("–"),
    lastRun(state, now),
    nextRun(state, now),
    actionOf(state)
  ]
}

const resourceTable = ({ choice, shown, hours, now }: Listed): Html => {
  const hasCompany = choice.company === null
  const hoursOf = Map.groupBy(hours, ({ company, resource }) => `${company} ${resource}`)
  return html`<div class="compact">
    ${table(
      `Resources, ${columns[columnOf(choice.order)].words}${isReversed(choice.order) ? ", in reverse" : ""}; charts of the last 24 hours`,
      `Resource, ${hasCompany ? "Company, " : ""}State, Age, -Age by hour, -#Landed, -#Rows, -Last run, -Next run, -Actions`,
      shown.map((state) => rowOf(state, hoursOf.get(`${state.company} ${state.resource}`) ?? [], hasCompany, now)),
      sortingsOf(choice)
    )}
  </div>`
}

const controls = ({ choice, all, areas, names }: Listed): Html => {
  const filterChoices = filters
    .map((filter) => ({ filter, number: all.filter((state) => isOf(filter, state)).length }))
    .filter(({ filter, number }) => filter === "all" || number > 0 || filter === choice.filter)
  const hasNames = names.length > 1 && names.length <= detailedMax
  const { company, state } = queryOf(choice)
  return html`<div class="controls">
    ${filterLinks(
      "State",
      filterChoices.map(({ filter, number }) => ({
        to: here(choice, { filter }),
        text: html`${filterWords[filter]} <span class="number">${count(number)}</span>`,
        isCurrent: filter === choice.filter
      }))
    )}
    <form method="get" action="${path}" role="search" aria-label="Resources">
      ${hasNames ? select("company", "Company", "all", names, company) : ""}
      ${areas.length > 1 ? select("area", "Area", "all", areas, choice.area) : ""}
      <p>
        <label for="order">Order</label>
        <select id="order" name="order">
          ${columnNames.map(
            (name) =>
              html`<option value="${name}" ${name === columnOf(choice.order) ? html` selected` : ""}>
                ${columns[name].words}
              </option>`
          )}
        </select>
      </p>
      <p>
        <label for="text">Name</label>
        <input type="search" id="text" name="text" value="${choice.text ?? ""}" maxlength="100" />
      </p>
      ${hiddenFields({ company: hasNames ? null : company, state })}
      <button type="submit">Show</button>
    </form>
  </div>`
}

/** Which part of the list is shown, with links to its neighbours. */
const parts = ({ choice, part, matching }: Listed): Html | string => {
  const last = Math.max(1, Math.ceil(matching / shownMax))
  if (last === 1) return ""
  const from = (part - 1) * shownMax + 1
  return html`<nav class="pages" aria-label="Pages of the table">
    <span>${count(from)} to ${count(Math.min(matching, part * shownMax))} of ${count(matching)}</span>
    ${part === 1 ? "" : html`<a href="${here(choice, { part: part - 1 })}" rel="prev">Previous</a>`}
    ${part >= last ? "" : html`<a href="${here(choice, { part: part + 1 })}" rel="next">Next</a>`}
  </nav>`
}

// -------------------------------------------------------------------------------------------------------------- the pages

type Listed = Effect.Success<ReturnType<typeof loadList>>

const loadList = Effect.fnUntraced(function* ({ companies, now }: PageRequest, choice: Choice) {
  const everything = yield* Resources.read(
    companies.filter(({ name }) => choice.company === null || name === choice.company)
  )
  const areas = areasOf(companies)
  const areaOf = ({ resource }: ResourceState) => areas.get(resource) ?? otherArea
  const wanted = choice.text?.toLowerCase() ?? ""
  /** Before the choice of a state, whose numbers are beside it. */
  const all = everything.filter(
    (state) => (choice.area === null || areaOf(state) === choice.area) && state.resource.toLowerCase().includes(wanted)
  )
  const matching = sorted(
    all.filter((state) => isOf(choice.filter, state)),
    choice.order
  )
  const part = Math.min(choice.part, Math.max(1, Math.ceil(matching.length / shownMax)))
  const shown = matching.slice((part - 1) * shownMax, part * shownMax)
  return {
    _tag: "Listed" as const,
    choice,
    everything,
    areas: [...new Set(everything.map(areaOf))].toSorted(),
    names: companies.map(({ name }) => name),
    all,
    matching: matching.length,
    part,
    shown,
    hours: shown.length === 0 ? [] : yield* Activity.readResourceHours(shown),
    now
  }
})

/** The companies that have resources in a state. */
const companyFilter = (filter: Filter): Pick<CompanyFilter, "state" | "sign"> => ({
  state: companyStates.find((state) => state === filter) ?? null,
  sign: filter === "quarantine" ? "quarantined" : null
})

/** The companies to choose from. */
const loadCompanies = Effect.fnUntraced(function* (request: PageRequest, { filter, text }: Choice) {
  const state = filter === "all" ? null : filter
  const { part } = yield* companyList(request, {
    path,
    filter: { ...companyFilter(filter), text },
    order: "worst",
    query: { state, text },
    addressOf: (company) => address(path, { company, state })
  })
  return { _tag: "Companies" as const, state, text, part }
})

/** The resources of a company or of all, or the companies to choose from. */
export type Model = Listed | Effect.Success<ReturnType<typeof loadCompanies>>

const load = Effect.fn("page.resources")(function* (request: PageRequest) {
  const choice = yield* choiceOfRequest(request)
  return choice.company === null && request.companies.length > detailedMax
    ? yield* loadCompanies(request, choice)
    : yield* loadList(request, choice)
})

const listOf = (model: Listed): Html => {
  const { choice, everything, shown } = model
  if (everything.length === 0) {
    return html`<p>
      No resource is known yet: the first tasks are created when the source has answered and the configuration names a
      resource.
    </p>`
  }
  return shown.length === 0
    ? html`<p>
        None of ${plural(everything.length, "resource")} matches.
        <a href="${address(path, { company: choice.company })}">Show all</a>
      </p>`
    : resourceTable(model)
}

export const view = (model: Model) => {
  if (model._tag === "Companies") {
    return page({
      title: "Resources",
      section: "resources",
      body: html`<h1>Resources</h1>
        <p class="summary">${badge("quiet", "Choose a company")} Its resources are one table.</p>
        <div class="controls">${companySearch(path, model.text, { state: model.state })}</div>
        ${model.part}`
    })
  }
  const { choice, everything } = model
  const { company, filter, area, text } = choice
  const isFiltered = filter !== "all" || area !== null || text !== null
  return page({
    title: company === null ? "Resources" : `Resources of ${visible(company)}`,
    section: "resources",
    body: html`<div class="head">
        <h1>${company === null ? "Resources" : html`Resources of ${companyLink(company)}`}</h1>
        ${company === null || isFiltered ? "" : companyActions(company, everything)}
      </div>
      ${company !== null && everything.some(({ companyId }) => companyId === null) ? unknownNumber : ""}
      ${controls(model)} ${listOf(model)} ${parts(model)}`
  })
}

export const routes: ReadonlyArray<Route> = [pageRoute({ path, load, view })]
