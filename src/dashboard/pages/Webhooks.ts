/**
 * `/webhooks`: whether events come in, what became of them, and what may have been missed.
 *
 * Promise: the source is asked only by whoever follows the link to its log, or confirms a change; everything else is what
 * the warehouse knows.
 */
import * as Effect from "effect/Effect"
import type { SourceError } from "../../connector/SourceError.ts"
import { describeAnswer, type Attempt } from "../../connector/Subscriptions.ts"
import * as InboxStore from "../../inbox/InboxStore.ts"
import * as SubscriptionStore from "../../subscriptions/SubscriptionStore.ts"
import * as Webhooks from "../../status/Webhooks.ts"
import * as Subscriptions from "../../subscriptions/Subscriptions.ts"
import { companyNamed, ofForm, ofPath, ofQuery, withQueryTimeout, withPagePriority } from "../Params.ts"
import { html, type Html, page, PageError, type PageRequest, redirect, type Route, type ShownCompany } from "../Page.ts"
import { ago, badge, confirmation, count, duration, table, type Tone } from "../Components.ts"
import { actionLink, facts } from "../Format.ts"
import { address, truncated, plural, recordAddress, resourceAddress, runAddress, visible } from "../Escape.ts"
import { dead, type EventSummary, searchLimit, newest } from "../../status/WebhookDetails.ts"

const eventsShown = 50
const deadShown = 20
/** Events of the source's own log. */
const logShown = 50
/** Characters of a reason in a table. */
const reasonMax = 240

const nothing = (company: string): Webhooks.CompanyStatus => ({
  company,
  subscriptions: [],
  inbox: { waiting: 0, oldestMs: null, done: 0, ignored: 0, dead: 0, deadReasons: [] },
  gaps: [],
  closed: [],
  receivers: 0,
  receiverSeenMs: null
})

const back = "/webhooks"
const before = (now: Date, ms: number): Date => new Date(now.getTime() - ms)
const instant = (text: string | null): Date | null => (text === null ? null : new Date(text))

// ------------------------------------------------------------------------------------------------------ subscriptions

const subscriptionTones: Readonly<Record<SubscriptionStore.SubscriptionState, Tone>> = {
  active: "good",
  paused: "warn",
  disabled: "bad",
  gone: "bad"
}

const logAddress = (company: string, id: string): string =>
  `/webhooks/${encodeURIComponent(company)}/${encodeURIComponent(id)}/deliveries`

const subscriptions = (
  company: string,
  seen: ReadonlyArray<SubscriptionStore.SubscriptionRow>,
  key: string,
  now: Date
): Html => {
  const there = seen.filter(({ state }) => state !== "gone")
  if (there.length === 0) {
    return html`<p>
      No subscription is known${seen.length === 0 ? "" : html`: the last one is gone`}, so that no event is delivered.
      Make one with <code>npx tributary webhooks ensure --company ${visible(company)}</code>.
    </p>`
  }
  return html`${there.map((one, index) => {
    const about = `subscription ${visible(one.id)} of company ${visible(company)}`
    const query = { company, subscription: one.id }
    return html`<article class="card">
      <h4>Subscription ${visible(one.id)} ${badge(subscriptionTones[one.state], one.state)}</h4>
      ${facts([
        ["Delivers to", html`<code>${visible(one.url)}</code>`],
        ["Last delivery (the source’s clock)", ago(instant(one.lastDeliveryAt), now)],
        ["Failed deliveries in a row", one.failCount === null ? "not told" : count(one.failCount)],
        ["Looked at", ago(instant(one.checkedAt), now)],
        ...(one.disabledAt === null ? [] : [["Given up by the source", ago(instant(one.disabledAt), now)] as const])
      ])}
      ${
        one.lacks.length === 0
          ? ""
          : html`<p class="problem">
              It lacks ${one.lacks.map(visible).join(", ")}. Add what is missing with
              <code>npx tributary webhooks ensure --company ${visible(company)}</code>.
            </p>`
      }
      ${
        one.problem === null
          ? ""
          : html`<p class="problem">
              The last look at it failed: ${truncated(one.problem, reasonMax)}.
              ${one.remedy === null ? "" : html`What to do: ${visible(one.remedy)}.`}
            </p>`
      }
      ${
        one.state === "disabled" && one.paused
          ? html`<p class="problem">It is paused as well: it is not enabled again until it is resumed.</p>`
          : ""
      }
      <details id="${key}-events-${index}">
        <summary>${plural(one.events.length, "event")} delivered</summary>
        <p>${one.events.map(visible).join(", ")}</p>
      </details>
      <p class="buttons">
        ${
          one.state === "active"
            ? actionLink("subscription-pause", query, "Pause", about)
            : actionLink("subscription-resume", query, "Resume", about)
        }
        ${actionLink("subscription-test", query, "Send a test", about)}
        <a class="button" href="${logAddress(company, one.id)}"
          >Ask for the delivery log<span class="visually-hidden"> of ${about}</span></a
        >
      </p>
    </article>`
  })}`
}

// --------------------------------------------------------------------------------------------------------------- gaps

const causes: Readonly<Record<Webhooks.GapStatus["cause"], string>> = {
  abandoned: "The source gave an event up after its last attempt failed.",
  lost: "The source says that it delivered an event which is not in the inbox.",
  disabled: "The source disabled the subscription, and dropped what fired meanwhile.",
  paused: "The subscription was paused, and the source dropped what fired meanwhile.",
  missing: "No subscription asked for the events of this resource.",
  down: "Nobody could look at the subscription for so long that something may have been dropped and mended unseen.",
  dropped: "The source’s log shows that what waited for delivery was dropped.",
  overflow: "More was delivered between two looks than the source’s log was looked through for."
}

const gapNext = ({ cause, endedAt }: Webhooks.GapStatus): string =>
  endedAt !== null
    ? "The resource is read again, and the gap closes when that is done."
    : cause === "paused"
      ? "It lasts until the subscription is resumed; then the resource is read again."
      : cause === "missing"
        ? "It lasts until a subscription asks for them (npx tributary webhooks ensure); then the resource is read again."
        : cause === "down"
          ? "It lasts until the subscription can be looked at again; then the resource is read again."
          : "It lasts until the subscription delivers again, which is tried by itself; then the resource is read again."

const gaps = ({ gaps: open, closed, company }: Webhooks.CompanyStatus, key: string, now: Date): Html => html`
  ${
    open.length === 0
      ? html`<p>No gap is open: every event that may have been dropped is made up for.</p>`
      : table(
          `Open gaps of company ${visible(company)}`,
          [
            { heading: "Resource" },
            { heading: "What happened" },
            { heading: "From" },
            { heading: "Until" },
            { heading: "What happens next" }
          ],
          open.map((gap) => [
            html`<a href="${resourceAddress(company, gap.resource)}">${visible(gap.resource)}</a>`,
            html`${badge("warn", gap.cause)} ${causes[gap.cause]}
              <span class="detail">${truncated(gap.detail, reasonMax)}</span>`,
            ago(instant(gap.beganAt), now, "unknown"),
            ago(instant(gap.endedAt), now, "it lasts"),
            html`${gapNext(gap)}
            ${gap.reason === null ? "" : html`<span class="detail">Last try: ${truncated(gap.reason, reasonMax)}</span>`}`
          ])
        )
  }
  ${
    closed.length === 0
      ? ""
      : html`<details id="${key}-closed">
          <summary>${plural(closed.length, "gap")} closed within a day</summary>
          ${table(
            `Gaps of company ${visible(company)} closed within a day`,
            [{ heading: "Resource" }, { heading: "What happened" }, { heading: "Closed" }, { heading: "By" }],
            closed.map((gap) => [
              visible(gap.resource),
              causes[gap.cause],
              ago(before(now, gap.closedMs), now),
              truncated(gap.closedBy, reasonMax)
            ])
          )}
        </details>`
  }
`

// -------------------------------------------------------------------------------------------------------------- events

const eventTones: Readonly<Record<EventSummary["state"], Tone>> = {
  waiting: "busy",
  done: "good",
  dead: "bad",
  ignored: "quiet"
}

const recordOf = ({ company, resource, recordId }: EventSummary): Html =>
  resource === null
    ? html`<span class="none">none</span>`
    : recordId === null
      ? html`<a href="${resourceAddress(company, resource)}">${visible(resource)}</a>`
      : html`<a href="${recordAddress(company, resource, recordId)}">${visible(resource)} ${visible(recordId)}</a>`

const replayLink = ({ company, eventId }: EventSummary): Html =>
  actionLink("replay", { company, event: eventId }, "Replay", `event ${visible(eventId)}`)

/** What became of it, and why. */
const fate = (event: EventSummary, now: Date): Html => html`
  ${badge(eventTones[event.state], event.state)}
  ${event.dueAt === null || event.dueAt.getTime() <= now.getTime() ? "" : html`tried again ${ago(event.dueAt, now)}`}
  ${event.runId === null ? "" : html`<a href="${runAddress(event.runId)}">run ${event.runId}</a>`}
  ${event.reason === null ? "" : html`<span class="detail">${truncated(event.reason, reasonMax)}</span>`}
`

const deadTable = (company: string, events: ReadonlyArray<EventSummary>, all: number, now: Date): Html =>
  events.length === 0
    ? html``
    : html`${table(
        `Events of company ${visible(company)} that were given up${all > events.length ? `, the newest ${events.length} of ${count(all)}` : ""}`,
        [
          { heading: "Event" },
          { heading: "Record" },
          { heading: "Received" },
          { heading: "Why" },
          { heading: "Action" }
        ],
        events.map((event) => [
          html`${visible(event.eventType)} <span class="detail">${visible(event.eventId)}</span>`,
          recordOf(event),
          ago(event.receivedAt, now),
          html`${event.reason === null ? "" : truncated(event.reason, reasonMax)}
          ${event.attempts === 0 ? "" : html`<span class="detail">after ${plural(event.attempts, "failed attempt")}</span>`}`,
          replayLink(event)
        ])
      )}`

const eventTable = (events: ReadonlyArray<EventSummary>, company: string | null, now: Date): Html =>
  events.length === 0
    ? html`<p>
        ${
          company === null
            ? "No event was received yet, or none is kept any more."
            : `None of the last ${count(searchLimit)} events was about this company.`
        }
      </p>`
    : table(
        `The last ${events.length} events received, newest first`,
        [
          { heading: "Received" },
          { heading: "Event" },
          { heading: "Company" },
          { heading: "Record" },
          { heading: "State" },
          { heading: "Failed attempts", isNumber: true },
          { heading: "Settled after", isNumber: true },
          { heading: "Fired" }
        ],
        events.map((event) => [
          ago(event.receivedAt, now),
          html`${visible(event.eventType)} <span class="detail">${visible(event.eventId)}</span>`,
          visible(event.company),
          recordOf(event),
          html`${fate(event, now)} ${event.state === "dead" ? replayLink(event) : ""}`,
          count(event.attempts),
          event.settledMs === null ? "" : duration(Math.max(0, event.settledMs)),
          ago(event.occurredAt, now, "not told")
        ])
      )

// --------------------------------------------------------------------------------------------------------- the company

const receivers = ({ receivers: alive, receiverSeenMs }: Webhooks.CompanyStatus, now: Date): Html =>
  alive > 0
    ? html`${badge("good", `${alive} alive`)}`
    : html`${badge("bad", "none alive")}
        ${receiverSeenMs === null ? "" : html`the last one was seen ${ago(before(now, receiverSeenMs), now)}.`} Start
        one with <code>npx tributary serve</code>.`

const companySection = (
  company: ShownCompany,
  index: number,
  status: Webhooks.CompanyStatus,
  seen: ReadonlyArray<SubscriptionStore.SubscriptionRow>,
  given: ReadonlyArray<EventSummary>,
  now: Date
): Html => {
  const { name } = company
  const { inbox } = status
  const key = `company-${index}`
  const heading = html`<h2 id="${key}">Company ${visible(name)}</h2>`
  if (company.connector.subscriptions === undefined) {
    return html`<section aria-labelledby="${key}">
      ${heading}
      <p>This source has no webhooks; what changes is brought over by its schedule.</p>
    </section>`
  }
  return html`<section aria-labelledby="${key}">
    ${heading}
    ${facts([
      ["Receivers", receivers(status, now)],
      [
        "Waiting",
        `${plural(inbox.waiting, "event")}${inbox.oldestMs === null ? "" : `, the oldest for ${duration(inbox.oldestMs)}`}`
      ],
      ["Done within a day", count(inbox.done)],
      ["Ignored within a day", count(inbox.ignored)],
      [
        "Given up",
        inbox.dead === 0
          ? "none"
          : html`${badge("bad", `${count(inbox.dead)} dead`)}
            ${actionLink("replay", { company: name }, "Replay all", `what company ${visible(name)} has given up`)}`
      ]
    ])}
    <h3>Subscriptions</h3>
    ${subscriptions(name, seen, key, now)}
    ${
      given.length === 0
        ? ""
        : html`<h3>Events that were given up</h3>
            ${deadTable(name, given, inbox.dead, now)}`
    }
    <h3>Gaps</h3>
    ${gaps(status, key, now)}
  </section>`
}

const overview = Effect.fn("page.webhooks")(function* (request: PageRequest) {
  const { companies, now } = request
  const only = ofQuery(request, "company")
  if (only !== null) yield* companyNamed(request, only)
  const shown = companies.filter(({ name }) => only === null || name === only)
  const statuses = yield* Webhooks.read
  const sections = yield* Effect.forEach(shown, (company, index) =>
    Effect.gen(function* () {
      const status = statuses.find((one) => one.company === company.name) ?? nothing(company.name)
      const seen = yield* SubscriptionStore.read(company.name, company.events)
      const given = status.inbox.dead === 0 ? [] : yield* dead(company.name, deadShown)
      return companySection(company, index, status, seen, given, now)
    })
  )
  const events = yield* newest(only, eventsShown)
  return page({
    title: "Webhooks",
    section: "webhooks",
    body: html`<h1>Webhooks</h1>
      ${
        companies.length < 2
          ? ""
          : html`<nav class="filters" aria-label="Company">
              <a href="/webhooks" aria-current="${only === null ? "true" : "false"}">All companies</a>
              ${companies.map(
                ({ name }) =>
                  html`<a
                    href="${address("/webhooks", { company: name })}"
                    aria-current="${only === name ? "true" : "false"}"
                    >${visible(name)}</a
                  >`
              )}
            </nav>`
      }
      ${sections.length === 0 ? html`<p>No company is configured.</p>` : sections}
      <section aria-labelledby="events">
        <h2 id="events">Events received</h2>
        ${eventTable(events, only, now)}
      </section>`
  })
})

// ---------------------------------------------------------------------------------------------------- the source's log

const logTable = (attempts: ReadonlyArray<Attempt>): Html =>
  attempts.length === 0
    ? html`<p>There is no delivery in the source’s log.</p>`
    : table(
        `The last ${attempts.length} events in the source’s log, newest first; times by its clock`,
        [
          { heading: "Event" },
          { heading: "Outcome" },
          { heading: "Attempts", isNumber: true },
          { heading: "Status", isNumber: true },
          { heading: "Took", isNumber: true },
          { heading: "At" },
          { heading: "Answer" }
        ],
        attempts.map((one) => [
          html`${visible(one.eventType)} <span class="detail">${visible(one.eventId)}</span>`,
          one.delivered
            ? badge("good", "delivered")
            : one.abandoned
              ? badge("bad", "given up")
              : badge("warn", "failed"),
          count(one.attempts),
          one.responseCode === null ? "none" : String(one.responseCode),
          one.durationMs === null ? "" : duration(one.durationMs),
          visible(one.at),
          truncated(one.responseBody, reasonMax)
        ])
      )

/** What a person is told of a request to the source that went wrong. */
const told = (error: Subscriptions.SubscriptionError | SourceError): string =>
  `${visible(error.message)}. What to do: ${visible(error.remedy)}.`

const tooLong =
  "The source has not answered within 10 seconds. Nothing is lost: look again in a moment, or repeat it, which is safe."

const subscriber = (request: PageRequest, name: string | null) =>
  Effect.map(companyNamed(request, name), (company) => ({
    company,
    wanted: { url: company.receivesAt, events: company.events } satisfies Subscriptions.DesiredSubscription
  }))

type Asked<A> = { readonly answer: A } | { readonly problem: string }

/** Asks the source, and answers a sentence where that fails or takes too long. */
const asked = <A, R>(work: Effect.Effect<A, Subscriptions.SubscribeError, R>) =>
  withPagePriority(work).pipe(
    Effect.map((answer): Asked<A> => ({ answer })),
    Effect.catchTags({
      SubscriptionError: (error) => Effect.succeed<Asked<A>>({ problem: told(error) }),
      SourceError: (error) => Effect.succeed<Asked<A>>({ problem: told(error) })
    }),
    Effect.timeoutOrElse({ duration: withQueryTimeout, orElse: () => Effect.succeed<Asked<A>>({ problem: tooLong }) })
  )

const log = Effect.fn("page.deliveries")(function* (request: PageRequest) {
  const { company, wanted } = yield* subscriber(request, ofPath(request, "company"))
  const id = ofPath(request, "subscription")
  const result = yield* asked(Subscriptions.deliveries(company, wanted, id, { limit: logShown }))
  return page({
    title: "Delivery log",
    section: "webhooks",
    // Every look costs requests.
    isLive: false,
    body: html`<p><a href="${back}">Webhooks</a></p>
      <h1>Delivery log of subscription ${visible(id)}, company ${visible(company.name)}</h1>
      <p>
        As the source tells it now; each look at this page costs requests. For each event its last attempt is shown.
      </p>
      ${"answer" in result ? logTable(result.answer.attempts) : html`<p class="problem" role="alert">${result.problem}</p>`}`
  })
})

// ------------------------------------------------------------------------------------------------------------- actions

const eventIdMax = 255

/** Which events are meant: one, or all that a company has given up. */
const meant = Effect.fnUntraced(function* (request: PageRequest, name: string | null, event: string | null) {
  const company = yield* companyNamed(request, name)
  if (event !== null && event.length > eventIdMax) {
    return yield* new PageError({ status: 400, message: "That is no number of an event." })
  }
  return { company, event }
})

const confirmReplay = Effect.fn("page.confirm.replay")(function* (request: PageRequest) {
  const { company, event } = yield* meant(request, ofQuery(request, "company"), ofQuery(request, "event"))
  const name = visible(company.name)
  return page({
    title: "Replay",
    section: "webhooks",
    isLive: false,
    body: confirmation(request.permit, {
      title: event === null ? `Replay what company ${name} has given up?` : "Replay this event?",
      consequences: [
        event === null
          ? `Every event of company ${name} that was given up waits to be acted on again.`
          : `Event ${visible(event)} of company ${name} waits to be acted on again.`,
        "tributary serve then reads the records that they name from the source, within its request budget.",
        "What an event says is never loaded itself, so that replaying one twice does no harm."
      ],
      action: "/do/replay",
      fields: { company: company.name, ...(event === null ? {} : { event }) },
      button: "Replay",
      back
    })
  })
})

const doReplay = Effect.fn("page.do.replay")(function* (request: PageRequest) {
  const { company, event } = yield* meant(request, ofForm(request, "company"), ofForm(request, "event"))
  const events = yield* InboxStore.replay(company.name, {
    state: "dead",
    ...(event === null ? {} : { eventIds: [event] })
  })
  return redirect(
    back,
    events > 0
      ? `${plural(events, "event")} of company ${visible(company.name)} ${events === 1 ? "waits" : "wait"} to be acted on again.`
      : event === null
        ? `Company ${visible(company.name)} has no event that was given up.`
        : "That event is not given up any more, so nothing was changed."
  )
})

interface SubscriptionAction {
  readonly what: string
  readonly title: (id: string, company: string) => string
  readonly consequences: ReadonlyArray<string>
  readonly button: string
  /** Does it, and answers a sentence on what came of it. */
  readonly act: (
    company: ShownCompany,
    wanted: Subscriptions.DesiredSubscription,
    id: string
  ) => Effect.Effect<string, Subscriptions.SubscribeError, Subscriptions.ChangeNeeds>
}

const subscriptionActions: ReadonlyArray<SubscriptionAction> = [
  {
    what: "subscription-pause",
    title: (id, company) => `Pause subscription ${id} of company ${company}?`,
    consequences: [
      "The source delivers nothing to it until it is resumed, and drops the events that fire meanwhile.",
      "Nothing is lost: syncing by schedule goes on, and the resources are read again once it is resumed."
    ],
    button: "Pause",
    act: (company, wanted, id) =>
      Effect.as(Subscriptions.pause(company, wanted, id), `Subscription ${visible(id)} is paused.`)
  },
  {
    what: "subscription-resume",
    title: (id, company) => `Resume subscription ${id} of company ${company}?`,
    consequences: [
      "The source delivers to it again, whether it was paused or the source had given it up.",
      "That is done whether or not deliveries arrive: where that is not sure, send a test first.",
      "What fired meanwhile was dropped; the resources are read again to make up for it."
    ],
    button: "Resume",
    act: (company, wanted, id) =>
      Effect.map(
        Subscriptions.resume(company, wanted, id),
        (one) => `Subscription ${visible(id)} is ${SubscriptionStore.stateOf(one)}.`
      )
  },
  {
    what: "subscription-test",
    title: (id, company) => `Send a test delivery through subscription ${id} of company ${company}?`,
    consequences: [
      "The source sends a test event to the subscription’s address now, and tells how that went.",
      "The test event names no record, so that no row changes."
    ],
    button: "Send a test",
    act: (company, wanted, id) =>
      Effect.map(Subscriptions.test(company, wanted, id), ({ result }) => {
        const took = result.durationMs === null ? "" : ` after ${duration(result.durationMs)}`
        return `The test event was ${result.delivered ? "delivered" : "not delivered"}: ${visible(describeAnswer(result))}${took}.`
      })
  }
]

/** The subscription's number, as the source gave it. */
const subscriptionIdOf = (text: string | null): Effect.Effect<string, PageError> =>
  text !== null && text.length <= eventIdMax
    ? Effect.succeed(text)
    : Effect.fail(new PageError({ status: 400, message: "No subscription was named." }))

const subscriptionRoutes = subscriptionActions.flatMap(
  ({ what, title, consequences, button, act }): ReadonlyArray<Route> => [
    {
      method: "GET",
      path: `/confirm/${what}`,
      handle: Effect.fn("page.confirm.subscription")(function* (request) {
        const company = yield* companyNamed(request, ofQuery(request, "company"))
        const id = yield* subscriptionIdOf(ofQuery(request, "subscription"))
        return page({
          title: button,
          section: "webhooks",
          isLive: false,
          body: confirmation(request.permit, {
            title: title(visible(id), visible(company.name)),
            consequences,
            action: `/do/${what}`,
            fields: { company: company.name, subscription: id },
            button,
            back
          })
        })
      })
    },
    {
      method: "POST",
      path: `/do/${what}`,
      handle: Effect.fn("page.do.subscription")(function* (request) {
        const { company, wanted } = yield* subscriber(request, ofForm(request, "company"))
        const id = yield* subscriptionIdOf(ofForm(request, "subscription"))
        const result = yield* asked(act(company, wanted, id))
        return redirect(back, "answer" in result ? result.answer : result.problem)
      })
    }
  ]
)

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/webhooks", handle: overview },
  { method: "GET", path: "/webhooks/:company/:subscription/deliveries", asksSource: true, handle: log },
  { method: "GET", path: "/confirm/replay", handle: confirmReplay },
  { method: "POST", path: "/do/replay", handle: doReplay },
  ...subscriptionRoutes
]
