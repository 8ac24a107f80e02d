/** The overview of many companies: shares by state, what needs a person, and the companies in parts with filter and search. */
import * as Effect from "effect/Effect"
import * as Activity from "../../status/Activity.ts"
import * as CompanyStates from "../../status/CompanyStates.ts"
import * as Problems from "../../status/Problems.ts"
import { companyStates } from "../../tasks/CountCompanies.ts"
import { html, page, PageError, type Html, type PageRequest, type ShownCompany } from "../Page.ts"
import {
  ago,
  badge,
  count,
  duration,
  filterLinks,
  none,
  pager,
  section,
  table,
  type Tone
} from "../../web/Components.ts"
import { address, plural, truncated, visible } from "../../web/Escape.ts"
import { stateHead } from "../../web/StateHead.ts"
import { companyAddress, resourceAddress } from "../Addresses.ts"
import { choiceOf, ofQuery } from "../Params.ts"
import { lastDay, totalsHint } from "../ActivityCharts.ts"
import { companyShares, signTexts } from "../CompanyShares.ts"
import { needsPart, numbers } from "../NeedsList.ts"
import { stateWords } from "../Format.ts"
import { choiceLinks } from "../ListControls.ts"

const shownMax = 50
const whyMax = 100

/** The signs of trouble beside the state of the resources, each with a link to what it counts. */
const signsOf = (of: CompanyStates.CompanyState): Html => {
  const links = CompanyStates.signs
    .filter((sign) => of[sign] > 0)
    .map((sign, index) => {
      const { words, path, query } = signTexts[sign]
      return html`${index === 0 ? "" : ", "}<a href="${address(path, { ...query, company: of.company })}"
          >${plural(of[sign], ...words)}</a
        >`
    })
  return links.length === 0 ? none("nothing") : html`${links}`
}

/** Whether no resource runs by its schedule. */
const isPaused = ({ paused, resources }: CompanyStates.Summary["amounts"]): boolean =>
  paused > 0 && paused === resources

/** The overall state by the problems and the counts. */
const overallState = (
  { byState, amounts, companies, uncounted }: CompanyStates.Summary,
  groups: ReadonlyArray<Problems.ProblemGroup>
): readonly [tone: Tone, word: string] => {
  if (uncounted === companies) return ["quiet", "Not counted"]
  if (byState.failing > 0 || groups.some(({ severity }) => severity === "critical")) return ["bad", "Not all is well"]
  if (groups.length > 0 || byState.late + byState.attention + byState.blocked > 0) return ["warn", "Not all is well"]
  return isPaused(amounts) ? ["quiet", "Paused"] : ["good", "All is well"]
}

const head = (of: CompanyStates.Summary, groups: ReadonlyArray<Problems.ProblemGroup>): Html => {
  const { amounts, companies, uncounted, outdatedMs } = of
  const [tone, word] = overallState(of, groups)
  return stateHead({
    title: "Overview",
    about: html`The state of a company is the worst of its
    resources.${
      uncounted === 0
        ? ""
        : ` ${plural(uncounted, "company was", "companies were")} not counted yet; tributary serve counts each once its source has answered.`
    }${outdatedMs === null ? "" : ` Counts are up to ${duration(outdatedMs)} old.`}`,
    tone,
    word,
    sentence: html`${plural(amounts.resources, "resource")} of ${plural(companies, "company", "companies")}:
    ${count(amounts.failing)} failing, ${count(amounts.late)} late, ${count(amounts.fresh)} fresh,
    ${count(amounts.paused)} paused, ${count(amounts.never_synced)} never synced, ${count(amounts.blocked)}
    blocked.${isPaused(amounts) ? " No resource runs by its schedule. Next: open a company and resume its resources." : ""}`,
    actions: null,
    trend: companyShares(of.byState)
  })
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
    "Company, State, -#Failing, -#Late, -#Fresh, Why, Also, -Counted",
    companies.map((one) => {
      const [tone, word] = stateWords[one.state]
      return [
        html`<a href="${addressOf(one.company)}">${visible(one.company)}</a>`,
        badge(tone, word),
        count(one.failing),
        count(one.late),
        html`${count(one.fresh)} of ${count(one.resources)}`,
        one.worstResource === null
          ? none("nothing is late")
          : html`<a href="${resourceAddress(one.company, one.worstResource)}">${visible(one.worstResource)}</a>${
                one.error === null ? "" : html`: ${truncated(one.error, whyMax)}`
              }`,
        signsOf(one),
        ago(one.countedAt, now)
      ]
    })
  )

/** The list's position in the query, `<key> <company>`. */
export const placeOf = (request: PageRequest): Effect.Effect<CompanyStates.Place | null, PageError> => {
  const text = ofQuery(request, "after")
  if (text === null) return Effect.succeed(null)
  const [, key, company] = /^(\d{1,15}(?:\.\d{1,30})?(?:e-\d{1,3})?) (.+)$/.exec(text) ?? []
  return key === undefined || company === undefined
    ? Effect.fail(new PageError({ status: 400, message: "That is not a place in the list of companies." }))
    : Effect.succeed({ key: Number(key), company })
}

const placeText = (place: CompanyStates.Place | null): string | null =>
  place === null ? null : `${place.key} ${place.company}`

const captions: Readonly<Record<CompanyStates.Order, string>> = {
  worst: "Companies, the worst first",
  lateness: "Companies, the longest late against their target first",
  signs: "Companies, those with the most problems beside their resources first",
  name: "Companies by name"
}

/** What a list of companies shows, and where. */
export interface CompanyListView {
  readonly path: string
  readonly filter: CompanyStates.Filter
  readonly order: CompanyStates.Order
  /** The parameters of the list's address, without its place. */
  readonly query: Readonly<Record<string, string | null>>
  readonly addressOf: (company: string) => string
}

/** A part of the list of companies with its links, and its first row. */
export const companyList = Effect.fnUntraced(function* (
  request: PageRequest,
  { path, filter, order, query, addressOf }: CompanyListView
) {
  const after = yield* placeOf(request)
  const names = request.companies.map(({ name }) => name)
  const rows = yield* CompanyStates.list(names, filter, after, shownMax + 1, order)
  const shown = rows.slice(0, shownMax)
  const last = rows.length > shownMax ? shown.at(-1) : undefined
  const next = last === undefined ? null : CompanyStates.placeOf(last, order)
  return {
    first: rows[0],
    part: html`${
      shown.length === 0
        ? html`<p>${after === null ? "No company matches." : "There is nothing further."}</p>`
        : companyTable(captions[order], shown, request.now, addressOf)
    }
    ${pager("Further companies", ["First", "Further"], { after, next }, (place) =>
      address(path, { ...query, after: placeText(place) })
    )}`
  }
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

const signChoices = CompanyStates.signs
const orderWords: Readonly<Record<CompanyStates.Order, string>> = {
  worst: "Worst first",
  lateness: "Longest late",
  signs: "Most other problems",
  name: "Name"
}

/** The choices above the list: states and signs with their numbers, a search, and the order. */
const controls = (
  of: CompanyStates.Summary,
  query: Readonly<Record<"state" | "sign" | "text" | "order", string | null>>
): Html => {
  const { state, sign, text, order } = query
  const link = (change: Partial<typeof query>, words: Html | string, isCurrent: boolean) => ({
    to: address("/", { text, order, ...change }),
    text: words,
    isCurrent
  })
  const numbered = (word: string, number: number) => html`${word} <span class="number">${count(number)}</span>`
  const trouble = signChoices.filter((one) => of.companiesWith[one] > 0 || one === sign)
  return html`<div class="controls lists">
    ${filterLinks("State", [
      link({}, numbered("All", of.companies), state === null && sign === null),
      ...companyStates
        .filter((one) => of.byState[one] > 0 || one === state)
        .map((one) => link({ state: one }, numbered(stateWords[one][1], of.byState[one]), one === state))
    ])}
    ${
      trouble.length === 0
        ? ""
        : filterLinks(
            "With",
            trouble.map((one) =>
              link({ sign: one }, numbered(signTexts[one].words[1], of.companiesWith[one]), one === sign)
            )
          )
    }
    ${companySearch("/", text, { state, sign, order })}
    ${choiceLinks("Order", "/", query, "order", [
      [null, orderWords.worst],
      ...CompanyStates.orders.filter((one) => one !== "worst").map((one) => [one, orderWords[one]] as const)
    ])}
  </div>`
}

/** Installations that the page lists. */
const installationsMax = 20

/** The companies of each installation by state; nothing where all are of one. */
export const installationsPart = (companies: ReadonlyArray<ShownCompany>) =>
  Effect.map(CompanyStates.readInstallations(companies), (all) =>
    all.length === 0
      ? html``
      : section(
          "installations",
          "Installations",
          html`${table(
            "The companies of each installation by state, the worst first",
            `Installation, #Companies, ${companyStates.map((state) => `#${stateWords[state][1]}`).join(", ")}`,
            all
              .slice(0, installationsMax)
              .map(({ byState, companies, installation }) => [
                visible(installation),
                count(companies),
                ...companyStates.map((state) => count(byState[state]))
              ])
          )}
          ${all.length > installationsMax ? html`<p class="hint">${plural(all.length - installationsMax, "further installation")}.</p>` : ""}`
        )
  )

/** The first page of a warehouse with many companies. */
export const companiesPage = Effect.fnUntraced(function* (request: PageRequest) {
  const state = yield* choiceOf(request, "state", companyStates)
  const sign = yield* choiceOf(request, "sign", signChoices)
  const order = yield* choiceOf(request, "order", CompanyStates.orders)
  const text = textOf(request)
  const query = { state, sign, text, order: order === "worst" ? null : order }
  const names = request.companies.map(({ name }) => name)
  const of = yield* CompanyStates.readSummary(names)
  const isPlain =
    state === null && sign === null && text === null && order === null && ofQuery(request, "after") === null
  const hours = isPlain ? yield* Activity.readHoursOf(names, names.length) : null
  const problems = isPlain ? yield* Problems.read(names) : []
  const groups = Problems.grouped(problems)
  const { part } = yield* companyList(request, {
    path: "/",
    filter: { state, text, sign },
    order: order ?? "worst",
    query,
    addressOf: companyAddress
  })
  return page({
    title: "Overview",
    section: "overview",
    body: html`${head(of, groups)}
      ${
        hours === null
          ? ""
          : html`${numbers(problems, null)} ${needsPart(groups, request.now)} ${lastDay(hours, request.now)}
            ${Activity.hasTotalsOnly(names.length) ? totalsHint(null) : ""}`
      }
      ${yield* installationsPart(request.companies)}
      <section aria-labelledby="companies">
        <h2 id="companies">Companies</h2>
        ${controls(of, query)} ${part}
      </section>`
  })
})
