/** `/webhooks`: receivers, subscriptions, events, dead letters and delivery gaps, from the warehouse. */
import * as Effect from "effect/Effect"
import * as SubscriptionStore from "../../subscriptions/SubscriptionStore.ts"
import * as WebhookDetails from "../../status/WebhookDetails.ts"
import * as CompanyStates from "../../status/CompanyStates.ts"
import * as Trends from "../../status/Trends.ts"
import * as Webhooks from "../../status/Webhooks.ts"
import { companyNamed, ofQuery } from "../Params.ts"
import { companyChoice } from "../ListControls.ts"
import { timeOf } from "../TimeChoice.ts"
import { html, type Html, page, type PageRequest, type Route, type ShownCompany } from "../Page.ts"
import { ago, badge, count, duration, section, facts } from "../../web/Components.ts"
import { stateHead } from "../../web/StateHead.ts"
import { trend } from "../../web/Trend.ts"
import { actionLink } from "../Format.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { companyList, companySearch, textOf } from "./Companies.ts"
import * as SubscriptionActions from "./SubscriptionActions.ts"
import * as WebhookEvent from "./WebhookEvent.ts"
import * as WebhookEvents from "./WebhookEvents.ts"
import { closedGaps, openGaps } from "./WebhookGaps.ts"
import { subscriptionCards } from "./WebhookSubscriptions.ts"

const eventsShown = 10
/** Events that are read, since dead letters are left out. */
const eventsRead = 50
const deadShown = 10
/** Companies whose dead letters can be replayed from the page together. */
const replayLinksMax = 5

const receiversOf = ({ receivers: alive, receiverSeenMs }: Webhooks.CompanyStatus, now: Date): Html =>
  alive > 0
    ? html`${badge("good", `${alive} alive`)}`
    : html`${badge("bad", "none alive")}
        ${receiverSeenMs === null ? "" : html`the last one was seen ${ago(new Date(now.getTime() - receiverSeenMs), now)}.`}
        Start one with <code>tributary serve</code>.`

/** Whether each subscription has delivered, and there is one. */
const isProven = (subscriptions: Webhooks.CompanyStatus["subscriptions"]): boolean =>
  subscriptions.length > 0 &&
  subscriptions.every((one) => SubscriptionStore.deliveryStateOf(one) === "delivers" && one.problem === null)

/** Its events are delivered and none may be missing, as far as no scan closes it. */
const isWell = ({ receivers, subscriptions, inbox, gaps }: Webhooks.CompanyStatus): boolean =>
  receivers > 0 && inbox.dead === 0 && isProven(subscriptions) && gaps.every(({ endedAt }) => endedAt !== null)

const companySection = (
  company: ShownCompany,
  index: number,
  status: Webhooks.CompanyStatus,
  subscriptions: ReadonlyArray<SubscriptionStore.SubscriptionRow>,
  now: Date,
  isOnly: boolean
): Html => {
  const { name } = company
  const { inbox } = status
  const key = `company-${index}`
  const heading = `Company ${visible(name)}`
  if (company.connector.subscriptions === undefined) {
    return section(key, heading, html`<p>This source has no webhooks; changes are synced by schedule.</p>`)
  }
  const body = html`${facts([
    ["Receivers", receiversOf(status, now)],
    [
      "Waiting",
      `${plural(inbox.waiting, "event")}${inbox.oldestMs === null ? "" : `, the oldest for ${duration(inbox.oldestMs)}`}`
    ],
    ["Done within a day", count(inbox.done)],
    ...(inbox.ignored === 0 ? [] : [["Skipped within a day", count(inbox.ignored)] as const])
  ])}
  ${subscriptionCards(name, subscriptions, key, now)} ${closedGaps(status, key, now)}`
  if (isOnly || !isWell(status)) return section(key, heading, body)
  return html`<section aria-labelledby="${key}">
    <details id="${key}-details">
      <summary>
        <h2 id="${key}" class="inline">${heading}</h2>
        ${badge("good", "delivers")} ${plural(status.receivers, "receiver")}, ${count(inbox.waiting)} waiting,
        ${count(inbox.done)} done within a day
      </summary>
      ${body}
    </details>
  </section>`
}

/** What may be missing, of all shown companies: dead letters, then open gaps by cause. */
const troublesPart = (
  statuses: ReadonlyArray<Webhooks.CompanyStatus>,
  dead: ReadonlyArray<WebhookDetails.EventSummary>,
  hasCompanies: boolean,
  now: Date
): Html => {
  const withDead = statuses.filter(({ inbox }) => inbox.dead > 0)
  const total = withDead.reduce((sum, { inbox }) => sum + inbox.dead, 0)
  return total === 0 && statuses.every(({ gaps }) => gaps.length === 0)
    ? html``
    : section(
        "missing",
        "What may be missing",
        html`${
          total === 0
            ? ""
            : html`${WebhookEvents.deadTable(dead, total, hasCompanies, now)}
                <p class="buttons">
                  ${withDead
                    .slice(0, replayLinksMax)
                    .map(({ company }) =>
                      actionLink(
                        "replay",
                        { company },
                        withDead.length === 1 ? "Replay all" : `Replay all of ${visible(company)}`,
                        `dead letters of company ${visible(company)}`
                      )
                    )}
                </p>`
        }
        ${openGaps(statuses, now)}`
      )
}

/** A search for a company, and unless one is chosen, the companies whose events may be missing. */
const manyCompanies = Effect.fnUntraced(function* (request: PageRequest, only: string | null) {
  if (only !== null) return html``
  const text = textOf(request)
  const { part } = yield* companyList(request, {
    path: "/webhooks",
    filter: { state: null, text, sign: text === null ? "undelivered" : null },
    order: "worst",
    query: { text },
    addressOf: (company) => address("/webhooks", { company })
  })
  return html`<div class="controls">${companySearch("/webhooks", text)}</div>
    <p>
      ${text === null ? "Companies whose events may be missing; search for any other." : "Companies with this name."}
    </p>
    ${part}`
})

/** What may be missing: dead letters, open gaps, and subscriptions that do not deliver. */
interface Troubles {
  readonly dead: number
  readonly gaps: number
  readonly down: number
  /** Subscriptions whose last test failed after every delivery; of many companies, 0. */
  readonly testFailed: number
  /** Whether a delivery of each company proves that nothing known to be missing means complete; null is not known. */
  readonly isProven: boolean | null
  /** The company with the most of them; null where it is not known, or several have as many. */
  readonly worst: string | null
}

const troublesOf = (statuses: ReadonlyArray<Webhooks.CompanyStatus>): Troubles => {
  const all = statuses.map(({ company, inbox, gaps, subscriptions }) => ({
    company,
    dead: inbox.dead,
    gaps: gaps.length,
    down: subscriptions.filter(({ state }) => state !== "active").length,
    testFailed: subscriptions.filter((one) => SubscriptionStore.deliveryStateOf(one) === "test_failed").length
  }))
  const amountOf = ({ dead, gaps, down }: Pick<Troubles, "dead" | "gaps" | "down">) => dead + gaps + down
  const [worst, second] = all.toSorted((a, b) => amountOf(b) - amountOf(a))
  return {
    dead: all.reduce((sum, { dead }) => sum + dead, 0),
    gaps: all.reduce((sum, { gaps }) => sum + gaps, 0),
    down: all.reduce((sum, { down }) => sum + down, 0),
    testFailed: all.reduce((sum, { testFailed }) => sum + testFailed, 0),
    isProven: statuses.every(({ subscriptions, receivers }) => receivers > 0 && isProven(subscriptions)),
    worst: worst === undefined || second === undefined || amountOf(worst) === amountOf(second) ? null : worst.company
  }
}

/** Of all companies, as last counted. */
const totalTroubles = Effect.fnUntraced(function* (request: PageRequest) {
  const { amounts } = yield* CompanyStates.readSummary(request.companies.map(({ name }) => name))
  const { dead_letters: dead, gaps, subscriptions_down: down } = amounts
  return { dead, gaps, down, testFailed: 0, isProven: null, worst: null } satisfies Troubles
})

const head = (troubles: Troubles, shown: Trends.Trend): Html => {
  const { dead, gaps, down, testFailed, isProven: isComplete, worst } = troubles
  const isWell = dead + gaps + down + testFailed === 0
  return stateHead({
    title: "Webhooks",
    about: "Events that the source delivers, the subscriptions that deliver them, and what may be missing.",
    tone: isWell ? (isComplete === true ? "good" : "quiet") : dead + gaps > 0 ? "bad" : "warn",
    word: isWell ? (isComplete === true ? "complete" : "nothing known to be missing") : "events may be missing",
    sentence: html`${plural(dead, "dead letter")},
    ${plural(gaps, "open gap")}${down === 0 ? "" : `, ${plural(down, "subscription")} not active`}${testFailed === 0 ? "" : `, the last test of ${plural(testFailed, "subscription")} failed`}.
    ${isWell && isComplete === false ? "No delivery proves yet that events arrive: send a test, and keep a receiver alive." : ""}
    ${worst === null ? "" : html`The most: company <a href="${address("/webhooks", { company: worst })}">${visible(worst)}</a>.`}`,
    actions: null,
    trend: trend(shown, {
      id: "trend",
      title: "Events received",
      kinds: [
        ["done", "done", "good"],
        ["skipped", "skipped", "quiet"],
        ["pending", "pending", "busy"],
        ["dead_letter", "dead letter", "bad"]
      ]
    })
  })
}

const overview = Effect.fn("page.webhooks")(function* (request: PageRequest) {
  const { companies, now } = request
  const only = ofQuery(request, "company")
  const isMany = companies.length > CompanyStates.detailedMax
  const chosen = only === null ? null : yield* companyNamed(request, only)
  const shown = chosen !== null ? [chosen] : isMany ? [] : companies
  const statuses = shown.length === 0 ? [] : yield* Webhooks.readOf(shown.map(({ name }) => name))
  const subscriptions = yield* Effect.forEach(shown, ({ name, events }) => SubscriptionStore.read(name, events))
  const statusOf = (name: string) => statuses.find((one) => one.company === name) ?? Webhooks.emptyStatus(name)
  const sections = shown.map((company, index) =>
    companySection(company, index, statusOf(company.name), subscriptions[index] ?? [], now, shown.length === 1)
  )
  const { since, until } = yield* timeOf(request)
  const hasDead = statuses.some(({ inbox }) => inbox.dead > 0)
  const dead = hasDead
    ? yield* WebhookDetails.events({ since, until, company: only, state: "dead_letter" }, null, null, deadShown)
    : []
  const newest = yield* WebhookDetails.events({ since, until, company: only, state: null }, null, null, eventsRead)
  // Dead letters stand in their own table.
  const events = newest.filter(({ state }) => dead.length === 0 || state !== "dead_letter").slice(0, eventsShown)
  const hasCompanies = companies.length > 1 && only === null
  const received = yield* Trends.read(Trends.eventsStatement, now, only)
  const troubles = isMany && chosen === null ? yield* totalTroubles(request) : troublesOf(statuses)
  return page({
    title: "Webhooks",
    section: "webhooks",
    body: html`${head(troubles, received)}
    ${
      isMany
        ? yield* manyCompanies(request, only)
        : html`<div class="controls lists">${companyChoice(request, "/webhooks", { company: only })}</div>`
    }
    ${troublesPart(statuses, dead, hasCompanies, now)}
    ${section(
      "events",
      "Events received",
      newest.length === 0
        ? html`<p>No event is stored.</p>`
        : html`<div class="controls lists">${WebhookEvents.eventLinks(request, only)}</div>
            ${
              events.length === 0
                ? html`<p>The newest events are dead letters, which are listed above.</p>`
                : WebhookEvents.eventTable(
                    `The last ${events.length} ${dead.length === 0 ? "" : "other "}events, newest first`,
                    events,
                    hasCompanies,
                    now
                  )
            }`
    )}
    ${companies.length === 0 ? html`<p>No company is configured.</p>` : sections}`
  })
})

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/webhooks", handle: overview },
  ...WebhookEvent.routes,
  ...WebhookEvents.routes,
  ...SubscriptionActions.routes
]
