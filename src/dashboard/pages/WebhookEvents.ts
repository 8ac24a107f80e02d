/** `/webhooks/events`: the events received by time, state, company and resource with the records that they name; and their replay. */
import * as Effect from "effect/Effect"
import * as InboxStore from "../../inbox/InboxStore.ts"
import * as WebhookDetails from "../../status/WebhookDetails.ts"
import { routesOf } from "../Action.ts"
import { choiceOf, companyNamed, ofQuery, positionOf } from "../Params.ts"
import { html, type Html, page, PageError, type PageRequest, type Route } from "../Page.ts"
import { ago, none, badge, count, duration, pager, partOf, table, type Tone } from "../../web/Components.ts"
import { actionLink, reason } from "../Format.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { choiceLinks, companyChoice } from "../ListControls.ts"
import { timeChoice, timeOf, type ChosenTime } from "../TimeChoice.ts"
import { eventAddress, recordAddress, resourceAddress, runAddress } from "../Addresses.ts"

type EventSummary = WebhookDetails.EventSummary

export const eventsPath = "/webhooks/events"
const eventsShown = 50
/** Resources that are offered as a choice. */
const resourcesShown = 12

/** Characters of a reason in a table. */
const reasonMax = 240

const eventTones: Readonly<Record<EventSummary["state"], Tone>> = {
  pending: "busy",
  done: "good",
  dead_letter: "bad",
  skipped: "quiet"
}

const recordOf = ({ company, resource, recordId }: EventSummary): Html =>
  resource === null
    ? none("none")
    : recordId === null
      ? html`<a href="${resourceAddress(company, resource)}">${visible(resource)}</a>`
      : html`<a class="whole" href="${recordAddress(company, resource, recordId)}"
          >${visible(resource)} ${visible(recordId)}</a
        >`

/** The type of an event with a link to its page; its id for screen readers, and as a title. */
const eventOf = ({ company, eventId, eventType }: EventSummary): Html =>
  html`<a href="${eventAddress(company, eventId)}" title="${visible(eventId)}"
    >${visible(eventType)}<span class="visually-hidden"> ${visible(eventId)}</span></a
  >`

const replayLink = ({ company, eventId }: EventSummary): Html =>
  actionLink("replay", { company, event: eventId }, "Replay", `event ${visible(eventId)}`)

/** The state of an event, and why. */
const stateOf = (event: EventSummary, now: Date): Html => html`
  ${badge(eventTones[event.state], event.state.replaceAll("_", " "))}
  ${event.dueAt === null || event.dueAt.getTime() <= now.getTime() ? "" : html`next attempt ${ago(event.dueAt, now)}`}
  ${event.runId === null ? "" : html`<a href="${runAddress(event.runId)}">run ${event.runId}</a>`}
  ${event.reason === null ? "" : html`<span class="detail">${reason(event.reason, reasonMax)}</span>`}
`

/** The newest dead letters, of this number. */
export const deadTable = (events: ReadonlyArray<EventSummary>, all: number, hasCompanies: boolean, now: Date): Html =>
  table(
    `Dead letters${all > events.length ? `, the newest ${events.length} of ${count(all)}` : ""}`,
    `Record, -Event, ${hasCompanies ? "Company, " : ""}Received, Why, Action`,
    events.map((event) => [
      recordOf(event),
      eventOf(event),
      ...(hasCompanies ? [visible(event.company)] : []),
      ago(event.receivedAt, now),
      html`${event.reason === null ? "" : reason(event.reason, reasonMax)}
      ${event.attempts === 0 ? "" : html`<span class="detail">after ${plural(event.attempts, "failed attempt")}</span>`}`,
      replayLink(event)
    ])
  )

const actionOf = (event: EventSummary): Html | string => (event.state === "dead_letter" ? replayLink(event) : "")

/** Events with the records that they name. */
export const eventTable = (
  caption: string,
  events: ReadonlyArray<EventSummary>,
  hasCompanies: boolean,
  now: Date
): Html => {
  const hasActions = events.some(({ state }) => state === "dead_letter")
  return table(
    caption,
    `Record, Event, Received, ${hasCompanies ? "Company, " : ""}State, -#Took${hasActions ? ", Action" : ""}`,
    events.map((event) => [
      recordOf(event),
      eventOf(event),
      ago(event.receivedAt, now),
      ...(hasCompanies ? [visible(event.company)] : []),
      stateOf(event, now),
      event.resolvedMs === null ? "" : duration(event.resolvedMs),
      ...(hasActions ? [actionOf(event)] : [])
    ])
  )
}

const stateWords: Readonly<Record<EventSummary["state"], string>> = {
  pending: "Pending",
  done: "Done",
  dead_letter: "Dead letters",
  skipped: "Skipped"
}

/** What the list of events shows. */
type EventQuery = Readonly<Record<"time" | "state" | "company" | "resource", string | null>>

const stateChoice = (query: EventQuery): Html =>
  choiceLinks("State", eventsPath, query, "state", [
    [null, "All states"],
    ...WebhookDetails.eventStates.map((one) => [one, stateWords[one]] as const)
  ])

/** Links to the lists of events by time; none of them is the current one. */
export const eventLinks = (request: PageRequest, company: string | null): Html =>
  timeChoice(request, eventsPath, { company, time: "" }, "Events")

const resourceChoice = (
  query: EventQuery,
  found: ReadonlyArray<WebhookDetails.ResourceEvents>,
  resource: string | null
): Html => {
  const shown = found.filter((one, index) => index < resourcesShown || one.resource === resource)
  const named = shown.flatMap((one) => (one.resource === null ? [] : [[one.resource, one.records] as const]))
  const missing = resource === null || named.some(([name]) => name === resource) ? [] : [[resource, 0] as const]
  return choiceLinks("Resource", eventsPath, query, "resource", [
    [null, "All resources"],
    ...[...named, ...missing].map(
      ([name, records]) => [name, html`${visible(name)} <span class="number">${count(records)}</span>`] as const
    )
  ])
}

/** How many events and records of a time were found, in a sentence. */
const foundSentence = (
  { rows, isCut }: { readonly rows: ReadonlyArray<WebhookDetails.ResourceEvents>; readonly isCut: boolean },
  resource: string | null,
  { words }: ChosenTime
): Html => {
  const own = rows.filter((one) => resource === null || one.resource === resource)
  const events = own.reduce((sum, one) => sum + one.events, 0)
  const records = own.reduce((sum, one) => sum + one.records, 0)
  return html`<p class="summary">
    ${plural(events, "event")} about
    ${plural(records, "record")}${resource === null ? "" : html` of ${visible(resource)}`}${words === "" ? "" : ` ${words}`}.
    ${isCut ? html`<span class="detail">This time has more: only its newest ${count(WebhookDetails.searchLimit)} events are searched. Choose a shorter time.</span>` : ""}
  </p>`
}

const eventsPage = Effect.fn("page.webhookEvents")(function* (request: PageRequest) {
  const { now } = request
  const chosen = yield* timeOf(request)
  const state = yield* choiceOf(request, "state", WebhookDetails.eventStates)
  const [company, resource] = [ofQuery(request, "company"), ofQuery(request, "resource")]
  const before = yield* positionOf(request, "before", "an event")
  const search = { since: chosen.since, until: chosen.until, company, state }
  const found = yield* WebhookDetails.resources(search)
  const { shown, next } = partOf(yield* WebhookDetails.events(search, resource, before, eventsShown + 1), eventsShown)
  const query: EventQuery = { time: chosen.time, state, company, resource }
  return page({
    title: "Events",
    section: "webhooks",
    body: html`<h1>Events received</h1>
      ${foundSentence(found, resource, chosen)}
      <div class="controls lists">
        ${timeChoice(request, eventsPath, query)} ${stateChoice(query)} ${resourceChoice(query, found.rows, resource)}
        ${companyChoice(request, eventsPath, query)}
      </div>
      ${
        shown.length === 0
          ? html`<p>No ${before === null ? "" : "further "}event matches.</p>`
          : eventTable("Events, newest first", shown, request.companies.length > 1 && company === null, now)
      }
      ${pager("Further events", ["Newest", "Older"], { after: before, next }, (place) =>
        address(eventsPath, { ...query, before: place === null ? null : String(place) })
      )}`
  })
})

// -------------------------------------------------------------------------------------------------------------- replay

const eventIdMax = 255

interface ReplayTarget {
  readonly company: string
  /** Null for all dead letters of the company. */
  readonly event: string | null
}

const replayRoutes = routesOf<ReplayTarget>({
  name: "replay",
  section: "webhooks",
  target: Effect.fnUntraced(function* (request, field) {
    const company = yield* companyNamed(request, field("company"))
    const event = field("event")
    if (event !== null && event.length > eventIdMax) {
      return yield* new PageError({ status: 400, message: "That is not the number of an event." })
    }
    return { company: company.name, event }
  }),
  fields: ({ company, event }) => ({ company, event }),
  title: "Replay",
  heading: ({ company, event }) =>
    event === null ? `Replay the dead letters of company ${visible(company)}?` : "Replay this event?",
  consequences: ({ company, event }) => [
    event === null
      ? `Every dead letter of company ${visible(company)} is processed again.`
      : `Event ${visible(event)} of company ${visible(company)} is processed again.`,
    "tributary serve reads the records that they name from the source, within the rate budget.",
    "The content of an event is never loaded, so that a second replay does no harm."
  ],
  button: "Replay",
  back: () => "/webhooks",
  act: ({ company, event }) =>
    Effect.map(
      InboxStore.replay(company, { state: "dead_letter", ...(event === null ? {} : { eventIds: [event] }) }),
      (events) =>
        events > 0
          ? `${plural(events, "event")} of company ${visible(company)} ${events === 1 ? "waits" : "wait"} to be processed again.`
          : event === null
            ? `Company ${visible(company)} has no dead letter.`
            : "That event is no longer a dead letter, so nothing was changed."
    )
})

export const routes: ReadonlyArray<Route> = [{ method: "GET", path: eventsPath, handle: eventsPage }, ...replayRoutes]
