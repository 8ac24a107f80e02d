/** The overview of many companies: totals by state, a search, and the companies by severity, part by part. */
import * as Effect from "effect/Effect"
import * as Activity from "../../status/Activity.ts"
import * as CompanyStates from "../../status/CompanyStates.ts"
import { companyStates, type State } from "../../tasks/CountCompanies.ts"
import { html, page, PageError, type Html, type PageRequest } from "../Page.ts"
import { ago, badge, count, duration, filterLinks, none, pager, table, type Tone } from "../../web/Components.ts"
import { address, plural, truncated, visible } from "../../web/Escape.ts"
import { companyAddress, resourceAddress } from "../Addresses.ts"
import { choiceOf, ofQuery } from "../Params.ts"
import { lastDay } from "../ActivityCharts.ts"
import { healthShares } from "../HealthPicture.ts"
import { seriesMax } from "../../tasks/WriteActivity.ts"

const shownMax = 50
const whyMax = 100

const words: Readonly<Record<State, readonly [tone: Tone, word: string]>> = {
  failing: ["bad", "failing"],
  late: ["warn", "late"],
  attention: ["warn", "attention"],
  "never-synced": ["quiet", "never synced"],
  blocked: ["quiet", "blocked"],
  paused: ["quiet", "paused"],
  fresh: ["good", "fresh"]
}

/** The signs of trouble beside the state of the resources. */
export const signsOf = (of: Readonly<Record<CompanyStates.Amount, number>>): ReadonlyArray<string> =>
  [
    [of.quarantined, plural(of.quarantined, "record in quarantine", "records in quarantine")] as const,
    [of.dead_letters, plural(of.dead_letters, "dead event", "dead events")] as const,
    [of.gaps, plural(of.gaps, "gap in the events", "gaps in the events")] as const,
    [of.rejected, plural(of.rejected, "refused push", "refused pushes")] as const,
    [
      of.subscriptions_down,
      plural(of.subscriptions_down, "subscription not active", "subscriptions not active")
    ] as const
  ].flatMap(([number, text]) => (number > 0 ? [text] : []))

const summary = (of: CompanyStates.Summary): Html => {
  const { byState, amounts, companies, uncounted, outdatedMs } = of
  const isWell = byState.failing + byState.late + byState.attention === 0
  const signs = signsOf(amounts)
  return html`<p class="summary">
      ${
        isWell
          ? badge("good", uncounted === companies ? "Not counted" : "All is well")
          : badge(byState.failing > 0 ? "bad" : "warn", "Not all is well")
      }
      ${plural(amounts.resources, "resource")} of ${plural(companies, "company", "companies")}:
      ${count(amounts.failing)} failing, ${count(amounts.late)} late, ${count(amounts.fresh)} fresh,
      ${count(amounts.paused)} paused, ${count(amounts.never_synced)} never synced, ${count(amounts.blocked)}
      blocked.${signs.length === 0 ? "" : ` Also: ${signs.join(", ")}.`}
    </p>
    ${
      uncounted === 0
        ? ""
        : html`<p class="hint">
            ${plural(uncounted, "company was", "companies were")} not counted yet; tributary serve counts each once its
            source has answered.
          </p>`
    }
    ${outdatedMs === null ? "" : html`<p class="hint">Counts are up to ${duration(outdatedMs)} old.</p>`}`
}

/** The companies as a table, with what is wrong. */
const companyTable = (
  caption: string,
  companies: ReadonlyArray<CompanyStates.CompanyState>,
  now: Date,
  addressOf: (company: string) => string
): Html =>
  table(
    caption,
    "Company, State, #Failing, #Late, #Fresh, Why, Also, Counted",
    companies.map((one) => {
      const [tone, word] = words[one.state]
      const signs = signsOf(one)
      return [
        html`<a href="${addressOf(one.company)}">${visible(one.company)}</a>`,
        badge(tone, word),
        count(one.failing),
        count(one.late),
        html`${count(one.fresh)} of ${count(one.resources)}`,
        one.worstResource === null
          ? none("nothing is late")
          : html`<a href="${resourceAddress(one.company, one.worstResource)}">${visible(one.worstResource)}</a>${
                one.error === null ? "" : html`<span class="detail">${truncated(one.error, whyMax)}</span>`
              }`,
        signs.length === 0 ? none("nothing") : signs.join(", "),
        ago(one.countedAt, now)
      ]
    })
  )

/** The list's position in the query, `<severity> <company>`. */
export const placeOf = (request: PageRequest): Effect.Effect<CompanyStates.Place | null, PageError> => {
  const text = ofQuery(request, "after")
  if (text === null) return Effect.succeed(null)
  const [, severity, company] = /^(\d{1,8}(?:\.\d{1,17})?) (.+)$/.exec(text) ?? []
  return severity === undefined || company === undefined
    ? Effect.fail(new PageError({ status: 400, message: "That is not a place in the list of companies." }))
    : Effect.succeed({ severity: Number(severity), company })
}

const placeText = (place: CompanyStates.Place | null): string | null =>
  place === null ? null : `${place.severity} ${place.company}`

/** A part of the list of companies with its links, at a path with these other parameters. */
export const companyList = Effect.fnUntraced(function* (
  request: PageRequest,
  path: string,
  filter: CompanyStates.Filter,
  query: Readonly<Record<string, string | null>>,
  addressOf: (company: string) => string = companyAddress
) {
  const after = yield* placeOf(request)
  const names = request.companies.map(({ name }) => name)
  const rows = yield* CompanyStates.list(names, filter, after, shownMax + 1)
  const shown = rows.slice(0, shownMax)
  const next = rows.length > shownMax ? (shown.at(-1) ?? null) : null
  return html`${
    shown.length === 0
      ? html`<p>${after === null ? "No company matches." : "There is nothing further."}</p>`
      : companyTable("Companies, the worst first", shown, request.now, addressOf)
  }
  ${pager("Further companies", ["The worst", "Further"], { after, next }, (place) =>
    address(path, { ...query, after: placeText(place) })
  )}`
})

/** A field for a part of a company's name. */
export const companySearch = (
  path: string,
  text: string | null,
  hidden: Readonly<Record<string, string | null>> = {}
) =>
  html`<form method="get" action="${path}" role="search">
    <label for="text">Company</label>
    <input type="search" id="text" name="text" value="${text ?? ""}" maxlength="100" />${Object.entries(hidden).map(
      ([name, value]) => (value === null ? "" : html`<input type="hidden" name="${name}" value="${value}" />`)
    )}
    <button type="submit">Find</button>
  </form>`

/** A part of a name that the query searches for. */
export const textOf = (request: PageRequest): string | null => ofQuery(request, "text")?.slice(0, 100) ?? null

/** The first page of an installation with many companies. */
export const companiesPage = Effect.fnUntraced(function* (request: PageRequest) {
  const state = yield* choiceOf(request, "state", companyStates)
  const text = textOf(request)
  const names = request.companies.map(({ name }) => name)
  const of = yield* CompanyStates.readSummary(names)
  const isPlain = state === null && text === null && ofQuery(request, "after") === null
  // Of more companies there is only the activity of all together.
  const hours = isPlain ? yield* Activity.readHours(names.length > seriesMax.hour ? null : names, 24 * 3_600_000) : []
  const links = [null, ...companyStates]
    .map((one) => ({ one, number: one === null ? of.companies : of.byState[one], isCurrent: one === state }))
    .filter(({ one, number, isCurrent }) => one === null || number > 0 || isCurrent)
    .map(({ one, number, isCurrent }) => ({
      to: address("/", { state: one, text }),
      text: html`${one === null ? "All" : words[one][1]} <span class="number">${count(number)}</span>`,
      isCurrent
    }))
  return page({
    title: "Overview",
    section: "overview",
    body: html`<h1>Overview</h1>
      ${summary(of)} ${isPlain ? healthShares(of.byState) : ""}
      <div class="controls">${filterLinks("State", links)} ${companySearch("/", text, { state })}</div>
      ${yield* companyList(request, "/", { state, text, isUndelivered: false }, { state, text })}
      ${isPlain ? lastDay(hours, request.now) : ""}`
  })
})
