/** `/webhooks`: receivers, subscriptions, events, dead letters and delivery gaps, from the warehouse. */
import * as Effect from "effect/Effect"
import * as SubscriptionStore from "../../subscriptions/SubscriptionStore.ts"
import * as Statement from "../../postgres/Statement.ts"
import * as WebhookDetails from "../../status/WebhookDetails.ts"
import * as CompanyStates from "../../status/CompanyStates.ts"
import * as Webhooks from "../../status/Webhooks.ts"
import { companyNamed, ofQuery } from "../Params.ts"
import { html, type Html, page, type PageRequest, type Route, type ShownCompany } from "../Page.ts"
import { ago, badge, count, duration, filterLinks, section, facts } from "../../web/Components.ts"
import { actionLink } from "../Format.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { companyList, companySearch, textOf } from "./Companies.ts"
import * as SubscriptionActions from "./SubscriptionActions.ts"
import * as WebhookEvents from "./WebhookEvents.ts"
import { gapTables } from "./WebhookGaps.ts"
import { subscriptionCards } from "./WebhookSubscriptions.ts"

const eventsShown = 50
const deadShown = 20

const receiversOf = ({ receivers: alive, receiverSeenMs }: Webhooks.CompanyStatus, now: Date): Html =>
  alive > 0
    ? html`${badge("good", `${alive} alive`)}`
    : html`${badge("bad", "none alive")}
        ${receiverSeenMs === null ? "" : html`the last one was seen ${ago(new Date(now.getTime() - receiverSeenMs), now)}.`}
        Start one with <code>npx tributary serve</code>.`

const companySection = (
  company: ShownCompany,
  index: number,
  status: Webhooks.CompanyStatus,
  subscriptions: ReadonlyArray<SubscriptionStore.SubscriptionRow>,
  deadLetters: ReadonlyArray<WebhookDetails.EventSummary>,
  now: Date
): Html => {
  const { name } = company
  const { inbox } = status
  const key = `company-${index}`
  const heading = `Company ${visible(name)}`
  if (company.connector.subscriptions === undefined) {
    return section(key, heading, html`<p>This source has no webhooks; changes are synced by schedule.</p>`)
  }
  return section(
    key,
    heading,
    html`${facts([
        ["Receivers", receiversOf(status, now)],
        [
          "Waiting",
          `${plural(inbox.waiting, "event")}${inbox.oldestMs === null ? "" : `, the oldest for ${duration(inbox.oldestMs)}`}`
        ],
        ["Done within a day", count(inbox.done)],
        ["Ignored within a day", count(inbox.ignored)],
        [
          "Dead letters",
          inbox.dead === 0
            ? "none"
            : html`${badge("bad", `${count(inbox.dead)} dead`)}
              ${actionLink("replay", { company: name }, "Replay all", `dead letters of company ${visible(name)}`)}`
        ]
      ])}
      <h3>Subscriptions</h3>
      ${subscriptionCards(name, subscriptions, key, now)}
      ${
        deadLetters.length === 0
          ? ""
          : html`<h3>Dead letters</h3>
              ${WebhookEvents.deadTable(name, deadLetters, inbox.dead, now)}`
      }
      <h3>Gaps</h3>
      ${gapTables(status, key, now)}`
  )
}

/** A search for a company, and unless one is chosen, the companies whose events may be missing. */
const manyCompanies = Effect.fnUntraced(function* (request: PageRequest, only: string | null) {
  if (only !== null) return html`<p><a href="/webhooks">All companies</a></p>`
  const text = textOf(request)
  const { amounts } = yield* CompanyStates.readSummary(request.companies.map(({ name }) => name))
  return html`${facts([
      ["Dead letters", count(amounts.dead_letters)],
      ["Gaps", count(amounts.gaps)],
      ["Subscriptions not active", count(amounts.subscriptions_down)]
    ])}
    <div class="controls">${companySearch("/webhooks", text)}</div>
    <p>
      ${text === null ? "Companies whose events may be missing; search for any other." : "Companies with this name."}
    </p>
    ${yield* companyList(
      request,
      "/webhooks",
      { state: null, text, isUndelivered: text === null },
      { text },
      (company) => address("/webhooks", { company })
    )}`
})

const overview = Effect.fn("page.webhooks")(function* (request: PageRequest) {
  const { companies, now } = request
  const only = ofQuery(request, "company")
  const isMany = companies.length > CompanyStates.detailedMax
  const chosen = only === null ? null : yield* companyNamed(request, only)
  const shown = chosen !== null ? [chosen] : isMany ? [] : companies
  const statuses = shown.length === 0 ? [] : yield* Webhooks.readOf(shown.map(({ name }) => name))
  const sections = yield* Effect.forEach(shown, (company, index) =>
    Effect.gen(function* () {
      const status = statuses.find((one) => one.company === company.name) ?? Webhooks.emptyStatus(company.name)
      const subscriptions = yield* SubscriptionStore.read(company.name, company.events)
      const deadLetters =
        status.inbox.dead === 0 ? [] : yield* Statement.run(WebhookDetails.deadLetters, [company.name, deadShown])
      return companySection(company, index, status, subscriptions, deadLetters, now)
    })
  )
  const events = yield* Statement.run(WebhookDetails.newestEvents, [only, eventsShown])
  return page({
    title: "Webhooks",
    section: "webhooks",
    body: html`<h1>Webhooks</h1>
      ${
        isMany
          ? yield* manyCompanies(request, only)
          : companies.length < 2
            ? ""
            : filterLinks("Company", [
                { to: "/webhooks", text: "All companies", isCurrent: only === null },
                ...companies.map(({ name }) => ({
                  to: address("/webhooks", { company: name }),
                  text: visible(name),
                  isCurrent: only === name
                }))
              ])
      }
      ${companies.length === 0 ? html`<p>No company is configured.</p>` : sections}
      ${section("events", "Events received", WebhookEvents.eventTable(events, only, now))}`
  })
})

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/webhooks", handle: overview },
  ...WebhookEvents.routes,
  ...SubscriptionActions.routes
]
