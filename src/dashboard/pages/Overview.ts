/**
 * The first page: a summary, and the state of every resource of every company. Where there are many companies, it lists
 * them by their counted states (`Companies.ts`), and each has this page of its own.
 */
import * as Effect from "effect/Effect"
import { html, page, type PageError, type Html, type PageRequest, type Route, type ShownCompany } from "../Page.ts"
import * as Activity from "../../status/Activity.ts"
import { badge, count, filterLinks, none, table } from "../../web/Components.ts"
import { actionLink, cursor, freshness, lastRun, nextRun, rows, healthBadges, problemOf } from "../Format.ts"
import { address, truncated, plural, visible } from "../../web/Escape.ts"
import { companyAddress, resourceAddress } from "../Addresses.ts"
import * as Resources from "../../status/Resources.ts"
import { choiceOf, companyNamed, ofPath, ofQuery } from "../Params.ts"
import { detailedMax } from "../../status/CompanyStates.ts"
import { companiesPage } from "./Companies.ts"
import { lastDay } from "../ActivityCharts.ts"
import { healthTiles } from "../HealthPicture.ts"

const filters = ["all", "late", "failing", "paused", "quarantine", "never-synced", "blocked"] as const
type Filter = (typeof filters)[number]

const filterWords: Readonly<Record<Filter, string>> = {
  all: "All",
  late: "Late",
  failing: "Failing",
  paused: "Paused",
  quarantine: "With quarantine",
  "never-synced": "Never synced",
  blocked: "Blocked"
}

const matches: Readonly<Record<Filter, (state: Resources.ResourceState) => boolean>> = {
  all: () => true,
  late: ({ health }) => health.isLate,
  failing: ({ health }) => health.isFailing,
  paused: ({ health }) => health.isPaused,
  quarantine: ({ quarantined }) => quarantined > 0,
  "never-synced": ({ health, freshAt }) => freshAt === null && !health.isBlocked,
  blocked: ({ health }) => health.isBlocked
}

const orders = ["worst", "name"] as const

interface View {
  /** The path of the page. */
  readonly path: string
  readonly filter: Filter
  readonly text: string
  readonly order: (typeof orders)[number]
}

const viewOf = Effect.fnUntraced(function* (request: PageRequest, path: string): Effect.fn.Return<View, PageError> {
  return {
    path,
    filter: (yield* choiceOf(request, "state", filters)) ?? "all",
    text: (ofQuery(request, "text") ?? "").slice(0, 100),
    order: (yield* choiceOf(request, "order", orders)) ?? "worst"
  }
})

const here = (view: View, change: Partial<View>): string => {
  const { path, filter, text, order } = { ...view, ...change }
  return address(path, {
    state: filter === "all" ? null : filter,
    text: text === "" ? null : text,
    order: order === "worst" ? null : order
  })
}

/** The worst first; equally bad ones by age against target. */
const worse = (one: Resources.ResourceState, other: Resources.ResourceState): number => {
  const rank = ({ health }: Resources.ResourceState) => Resources.healthStates.indexOf(health.state)
  const share = ({ health: { ageMs, targetMs } }: Resources.ResourceState) =>
    ageMs === null || targetMs === null ? 0 : ageMs / targetMs
  const isBad = one.health.isFailing || one.health.isLate
  return rank(one) - rank(other) || (isBad ? share(other) - share(one) : one.resource < other.resource ? -1 : 1)
}

/** The summary in a sentence; each problem is a link. */
const summary = (
  path: string,
  all: ReadonlyArray<Resources.ResourceState>,
  beside: ReadonlyArray<Resources.CompanyAlerts>,
  companies: number
): Html => {
  const of = (filter: Filter) => all.filter(matches[filter]).length
  const sum = (alert: "dead" | "gaps" | "refused") => beside.reduce((total, one) => total + one[alert], 0)
  const quarantined = all.reduce((total, { quarantined }) => total + quarantined, 0)
  const links = (...entries: ReadonlyArray<readonly [number: number, text: string, to: string]>) =>
    entries
      .filter(([number]) => number > 0)
      .map(([, text, to], index) => html`${index === 0 ? "" : ", "}<a href="${to}">${text}</a>`)
  const inState = (filter: Filter, word: string) =>
    [of(filter), `${count(of(filter))} ${word}`, `${path}?state=${filter}`] as const
  const counted = (number: number, one: string, several: string, to: string) =>
    [number, plural(number, one, several), to] as const
  const wrong = links(
    inState("failing", "failing"),
    inState("late", "late"),
    counted(quarantined, "record in quarantine", "records in quarantine", "/quarantine"),
    counted(sum("dead"), "dead event", "dead events", "/webhooks"),
    counted(sum("gaps"), "gap in the events", "gaps in the events", "/webhooks"),
    counted(sum("refused"), "refused push", "refused pushes", "/outbox")
  )
  const noted = links(
    inState("paused", "paused"),
    inState("never-synced", "never synced"),
    inState("blocked", "blocked for the token")
  )
  const also = noted.length === 0 ? "" : html` Also: ${noted}.`
  const receivers = beside.length === 0 ? 0 : Math.min(...beside.map(({ receivers }) => receivers))
  const receiving = html` <a href="/webhooks"
      >${receivers === 0 ? "No process receives events" : `Events are received by ${plural(receivers, "process", "processes")}`}</a
    >.`
  if (all.length === 0) {
    return html`<p class="summary">
      ${badge("quiet", "Empty")} No resource is known yet: the first tasks are created when the source has
      answered.${receiving}
    </p>`
  }
  const where = `${plural(all.length, "resource")} of ${plural(companies, "company", "companies")}`
  return wrong.length === 0
    ? html`<p class="summary">
        ${badge("good", "All is well")} ${where}: nothing is late, nothing fails.${also}${receiving}
      </p>`
    : html`<p class="summary">
        ${badge(of("failing") > 0 ? "bad" : "warn", "Not all is well")} ${where}: ${wrong}.${also}${receiving}
      </p>`
}

const whyMax = 100
const columns = "Resource, State, Freshness, #Rows, Last run, Cursor, Next run, #Quarantine, Actions"

const rowOf = (state: Resources.ResourceState, now: Date): ReadonlyArray<Html | string> => {
  const { company, resource, health, quarantined, checkpoint } = state
  const query = { company, resource }
  const about = `${visible(resource)} of ${visible(company)}`
  const why = problemOf(state)?.error ?? null
  return [
    html`<a href="${resourceAddress(company, resource)}">${visible(resource)}</a
      >${why === null ? "" : html`<span class="detail">${truncated(why, whyMax)}</span>`}`,
    healthBadges(health),
    freshness(state, now),
    rows(state),
    lastRun(state, now),
    cursor(checkpoint?.cursor ?? null),
    nextRun(state, now),
    quarantined === 0 ? none("0") : html`<a href="${address("/quarantine", query)}">${count(quarantined)}</a>`,
    html`<span class="actions"
      >${actionLink("sync", query, "Sync now", about)}
      ${
        health.isPaused ? actionLink("resume", query, "Resume", about) : actionLink("pause", query, "Pause", about)
      }</span
    >`
  ]
}

const companyPart = (
  company: string,
  all: ReadonlyArray<Resources.ResourceState>,
  shown: ReadonlyArray<Resources.ResourceState>,
  now: Date
): Html => {
  const name = visible(company)
  const isUnknown = all.some(({ companyId }) => companyId === null)
  const paused = all.filter(({ health }) => health.isPaused).length
  return html`<section aria-label="Company ${name}">
    <div class="head">
      <h2>${name}</h2>
      <p class="buttons">
        ${all.length === 0 ? "" : actionLink("sync", { company }, "Sync all now", `resources of ${name}`)}${
          all.length > paused
            ? html` ${actionLink("pause-company", { company }, "Pause all", `resources of ${name}`)}`
            : ""
        }${paused > 0 ? html` ${actionLink("resume-company", { company }, "Resume all", `resources of ${name}`)}` : ""}
      </p>
    </div>
    ${isUnknown ? html`<p class="hint">The number of this company at the source is not known yet, so that its runs and rows cannot be shown.</p>` : ""}
    ${
      all.length === 0
        ? html`<p>Its resources are not known yet.</p>`
        : shown.length === 0
          ? html`<p>None of its ${plural(all.length, "resource")} matches.</p>`
          : table(
              `${name}: ${shown.length === all.length ? plural(all.length, "resource") : `${shown.length} of ${plural(all.length, "resource")}`}`,
              columns,
              shown.map((state) => rowOf(state, now))
            )
    }
  </section>`
}

const controls = (view: View, all: ReadonlyArray<Resources.ResourceState>): Html =>
  html`<div class="controls">
    ${filterLinks(
      "State",
      filters
        .map((filter) => ({ filter, number: all.filter(matches[filter]).length, isCurrent: filter === view.filter }))
        .filter(({ filter, number, isCurrent }) => filter === "all" || number > 0 || isCurrent)
        .map(({ filter, number, isCurrent }) => ({
          to: here(view, { filter }),
          text: html`${filterWords[filter]} <span class="number">${count(number)}</span>`,
          isCurrent
        }))
    )}
    <form method="get" action="${view.path}" role="search">
      <label for="text">Resource</label>
      <input type="search" id="text" name="text" value="${view.text}" maxlength="100" />${
        view.filter === "all" ? "" : html`<input type="hidden" name="state" value="${view.filter}" />`
      }${view.order === "worst" ? "" : html`<input type="hidden" name="order" value="${view.order}" />`}
      <button type="submit">Find</button>
    </form>
    <p class="order">
      ${
        view.order === "worst"
          ? html`The worst first; <a href="${here(view, { order: "name" })}">by name</a>`
          : html`By name; <a href="${here(view, { order: "worst" })}">the worst first</a>`
      }
    </p>
  </div>`

/** Problems that are listed; further ones are only counted. */
const problemsMax = 5

/** What needs a person, the worst first, each with its next step. The same problem of several resources is listed once. */
const needsPerson = (path: string, all: ReadonlyArray<Resources.ResourceState>): Html => {
  const failing = all.filter(({ health }) => health.isFailing).toSorted(worse)
  const problems = [...Map.groupBy(failing, (state) => problemOf(state)?.error ?? "its last run failed")]
  const shown = problems.slice(0, problemsMax)
  return problems.length === 0
    ? html``
    : html`<section aria-labelledby="needed">
        <h2 id="needed">What needs a person</h2>
        <ul class="problems">
          ${shown.map(([error, states]) => {
            const [{ company, resource }] = states as [Resources.ResourceState]
            const remedy = problemOf(states[0]!)?.remedy ?? "see its last run"
            return html`<li>
              <a href="${resourceAddress(company, resource)}">${visible(resource)} of ${visible(company)}</a>${
                states.length > 1 ? ` and ${plural(states.length - 1, "other resource")}` : ""
              }:
              ${truncated(error, whyMax)}<span class="detail">Next: ${visible(remedy)}</span>
            </li>`
          })}
        </ul>
        ${
          problems.length > shown.length
            ? html`<p>
                <a href="${path}?state=failing">${plural(problems.length - shown.length, "further problem")}</a>
              </p>`
            : ""
        }
      </section>`
}

const dayMs = 24 * 3_600_000
/** Whether the page shows everything: the pictures are not repeated in its filtered lists. */
const isPlain = ({ filter, text, order }: View): boolean => filter === "all" && text === "" && order === "worst"

/** Every resource of these companies. */
const detailedPage = Effect.fnUntraced(function* (
  request: PageRequest,
  path: string,
  title: string,
  companies: ReadonlyArray<ShownCompany>
) {
  const { now } = request
  const view = yield* viewOf(request, path)
  const all = yield* Resources.read(companies, now)
  const beside = yield* Resources.readAlerts(companies)
  const wanted = view.text.toLowerCase()
  const pictures = html`${healthTiles(companies, all)}
  ${lastDay(
    yield* Activity.readHours(
      companies.map(({ name }) => name),
      dayMs
    ),
    now
  )}`
  const shown = all.filter(
    (state) => matches[view.filter](state) && (wanted === "" || state.resource.toLowerCase().includes(wanted))
  )
  const ordered = view.order === "name" ? shown : shown.toSorted(worse)
  return page({
    title,
    section: "overview",
    body: html`<h1>${title}</h1>
      ${summary(path, all, beside, companies.length)} ${needsPerson(path, all)} ${isPlain(view) ? pictures : ""}
      ${controls(view, all)}
      ${companies.map(({ name }) =>
        companyPart(
          name,
          all.filter(({ company }) => company === name),
          ordered.filter(({ company }) => company === name),
          now
        )
      )}`
  })
})

export const routes: ReadonlyArray<Route> = [
  {
    method: "GET",
    path: "/",
    handle: Effect.fn("page.overview")(function* (request) {
      const { companies } = request
      return companies.length > detailedMax
        ? yield* companiesPage(request)
        : yield* detailedPage(request, "/", "Overview", companies)
    })
  },
  {
    method: "GET",
    path: "/companies/:company",
    handle: Effect.fn("page.company")(function* (request) {
      const company = yield* companyNamed(request, ofPath(request, "company"))
      return yield* detailedPage(request, companyAddress(company.name), `Company ${visible(company.name)}`, [company])
    })
  }
]
