/** Events of the inbox on the page of the webhooks, and their replay. */
import * as Effect from "effect/Effect"
import * as InboxStore from "../../inbox/InboxStore.ts"
import { type EventSummary, searchLimit } from "../../status/WebhookDetails.ts"
import { routesOf } from "../Action.ts"
import { companyNamed } from "../Params.ts"
import { html, type Html, PageError, type Route } from "../Page.ts"
import { ago, none, badge, count, duration, table, type Tone } from "../../web/Components.ts"
import { actionLink } from "../Format.ts"
import { plural, truncated, visible } from "../../web/Escape.ts"
import { eventAddress, recordAddress, resourceAddress, runAddress } from "../Addresses.ts"

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
      : html`<a href="${recordAddress(company, resource, recordId)}">${visible(resource)} ${visible(recordId)}</a>`

/** The type and the id of an event, with a link to its page. */
const eventOf = ({ company, eventId, eventType }: EventSummary): Html =>
  html`<a href="${eventAddress(company, eventId)}"
    >${visible(eventType)} <span class="detail">${visible(eventId)}</span></a
  >`

const replayLink = ({ company, eventId }: EventSummary): Html =>
  actionLink("replay", { company, event: eventId }, "Replay", `event ${visible(eventId)}`)

/** The state of an event, and why. */
const stateOf = (event: EventSummary, now: Date): Html => html`
  ${badge(eventTones[event.state], event.state.replaceAll("_", " "))}
  ${event.dueAt === null || event.dueAt.getTime() <= now.getTime() ? "" : html`next attempt ${ago(event.dueAt, now)}`}
  ${event.runId === null ? "" : html`<a href="${runAddress(event.runId)}">run ${event.runId}</a>`}
  ${event.reason === null ? "" : html`<span class="detail">${truncated(event.reason, reasonMax)}</span>`}
`

export const deadTable = (company: string, events: ReadonlyArray<EventSummary>, all: number, now: Date): Html =>
  table(
    `Events of company ${visible(company)} that are dead letters${all > events.length ? `, the newest ${events.length} of ${count(all)}` : ""}`,
    "Event, Record, Received, Why, Action",
    events.map((event) => [
      eventOf(event),
      recordOf(event),
      ago(event.receivedAt, now),
      html`${event.reason === null ? "" : truncated(event.reason, reasonMax)}
      ${event.attempts === 0 ? "" : html`<span class="detail">after ${plural(event.attempts, "failed attempt")}</span>`}`,
      replayLink(event)
    ])
  )

/** The newest events; `isFiltered` says that only some of them were searched for. */
export const eventTable = (events: ReadonlyArray<EventSummary>, isFiltered: boolean, now: Date): Html =>
  events.length === 0
    ? html`<p>${isFiltered ? `None of the last ${count(searchLimit)} events matches.` : "No event is stored."}</p>`
    : table(
        `The last ${events.length} events received, newest first`,
        "Received, Event, Company, Record, State, #Failed attempts, #Resolved after, Fired",
        events.map((event) => [
          ago(event.receivedAt, now),
          eventOf(event),
          visible(event.company),
          recordOf(event),
          html`${stateOf(event, now)} ${event.state === "dead_letter" ? replayLink(event) : ""}`,
          count(event.attempts),
          event.resolvedMs === null ? "" : duration(Math.max(0, event.resolvedMs)),
          ago(event.occurredAt, now, "unknown")
        ])
      )

// -------------------------------------------------------------------------------------------------------------- replay

const eventIdMax = 255

interface ReplayTarget {
  readonly company: string
  /** Null for all dead letters of the company. */
  readonly event: string | null
}

export const routes: ReadonlyArray<Route> = routesOf<ReplayTarget>({
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
