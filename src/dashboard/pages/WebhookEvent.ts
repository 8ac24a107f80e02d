/** `/webhooks/event`: one event from its delivery to the version of its record, or why there is none. */
import * as Effect from "effect/Effect"
import * as EventFlow from "../../status/EventFlow.ts"
import { ago, badge, bytes, count, duration, facts, none, problem, type Tone } from "../../web/Components.ts"
import { plural, visible, visibleLines } from "../../web/Escape.ts"
import { flow, type Step } from "../../web/Flow.ts"
import { exactInstant } from "../../web/Times.ts"
import { resourceAddress } from "../Addresses.ts"
import { actionLink, errorRequest, errorSentence, partsOf, runState } from "../Format.ts"
import { code, copied, detail, recordOrResourceLink, resourceLink, runLink } from "../Links.ts"
import { html, type Html, page, PageError, pageRoute, type PageRequest, type Route } from "../Page.ts"
import { companyNamed, ofQuery } from "../Params.ts"
import { pretty } from "../PrettyJson.ts"
import { landedStep, readLanding } from "./LandedVersions.ts"
import { causeSentence, lastTry, nextStep } from "./WebhookGaps.ts"

const path = "/webhooks/event"
const eventIdMax = 255

/** An event, or the gaps in which it was lost. */
export type Model = Effect.Success<ReturnType<typeof load>>

const load = Effect.fn("page.event")(function* (request: PageRequest) {
  const company = (yield* companyNamed(request, ofQuery(request, "company"))).name
  const eventId = ofQuery(request, "event")
  if (eventId === null || eventId.length > eventIdMax) {
    return yield* new PageError({ status: 400, message: "That is not the number of an event." })
  }
  const { event, subscriptions, gaps } = yield* EventFlow.read(company, eventId)
  if (event === null && !gaps.some(({ isListed }) => isListed)) {
    return yield* new PageError({
      status: 404,
      message: `There is no event ${visible(eventId)} of company ${visible(company)}, or it was removed.`
    })
  }
  const versions = event === null ? [] : yield* readLanding(request, event, { runId: event.runId, origin: null })
  return { company, eventId, event, subscriptions, gaps, versions, now: request.now }
})

/** The state of an event, and its sentence. */
const stateOf = (
  { state, resolvedAt, receivedAt, nextAttemptAt, attempts }: EventFlow.Event,
  now: Date
): readonly [Tone, word: string, sentence: Html] => {
  const after = resolvedAt === null ? "" : ` ${duration(resolvedAt.getTime() - receivedAt.getTime())}`
  switch (state) {
    case "done":
      return ["good", "done", html`Processed${after} after it was received.`]
    case "skipped":
      return ["quiet", "skipped", html`It names nothing that is synced, so that nothing was read.`]
    case "dead_letter":
      return [
        "bad",
        "dead letter",
        attempts === 0
          ? html`A permanent error: it was not retried.`
          : html`Not tried again automatically, after ${plural(attempts, "failed attempt")}.`
      ]
    case "pending":
      return [
        "busy",
        "pending",
        nextAttemptAt.getTime() <= now.getTime()
          ? html`It waits for a worker of tributary serve.`
          : html`The next attempt is ${ago(nextAttemptAt, now)}.`
      ]
  }
}

const subscriptionLine = (company: string, one: EventFlow.DeliveringSubscription): Html =>
  html`<li>
    <a href="/webhooks/${encodeURIComponent(company)}/${encodeURIComponent(one.id)}/deliveries"
      >Deliveries of subscription ${visible(one.id)}</a
    >
    (${one.state}) to ${code(one.url)}
  </li>`

const firedStep = ({ occurredAt, recordModifiedAt, eventType }: EventFlow.Event): Step => ({
  title: "Fired at the source",
  tone: occurredAt === null ? "quiet" : "good",
  word: occurredAt === null ? "time unknown" : null,
  at: occurredAt,
  body: facts([
    ["Type", code(eventType)],
    ["The record’s time of change", recordModifiedAt === null ? none("not stated") : exactInstant(recordModifiedAt)]
  ])
})

const receivedStep = (
  event: EventFlow.Event,
  subscriptions: ReadonlyArray<EventFlow.DeliveringSubscription>
): Step => ({
  title: "Delivered, signature verified",
  tone: "good",
  word: null,
  at: event.receivedAt,
  body: html`${facts([
      ["Signed at the source", exactInstant(event.sentAt)],
      ["From signature to receipt", duration(event.receivedAt.getTime() - event.sentAt.getTime())],
      ["Signed for company", visible(event.company)]
    ])}
    <p class="hint">
      Of the headers, the id, the type and the time of the signature are stored. The signature and the secret are not.
    </p>
    ${
      subscriptions.length === 0
        ? html`<p>
            No known subscription lists this type: another receiver, a test or a removed subscription sent it.
          </p>`
        : html`<p>Subscriptions of the company that list this type:</p>
            <ul>
              ${subscriptions.map((one) => subscriptionLine(event.company, one))}
            </ul>`
    }`
})

/** The body as text; bytes that are not UTF-8 become replacement characters. */
const bodyOf = ({ body, bodyBytes }: EventFlow.Event): Html => {
  const text = new TextDecoder().decode(body)
  const isCut = bodyBytes > body.length
  return html`<details id="body">
    <summary>The body as received, ${bytes(bodyBytes)}</summary>
    <pre tabindex="0">${isCut ? visibleLines(text) : (pretty(text) ?? visibleLines(text))}</pre>
    ${isCut ? html`<p class="hint">Cut after ${bytes(body.length)}.</p>` : ""}
  </details>`
}

const storedStep = (event: EventFlow.Event): Step => ({
  title: "Stored in the inbox",
  tone: "good",
  word: null,
  at: event.receivedAt,
  body: html`${facts([
      ["Row of tributary.inbox", String(event.id)],
      ["Names", recordOf(event)]
    ])}
    <p class="hint">The body is a hint and is never loaded: the record is read from the source.</p>
    ${bodyOf(event)}`
})

const recordOf = ({ company, resource, recordId }: EventFlow.Event): Html =>
  resource === null
    ? none("no known resource")
    : recordId === null
      ? html`<a href="${resourceAddress(company, resource)}">the whole of ${visible(resource)}</a>`
      : recordOrResourceLink(company, resource, recordId)

/** The run that read its record or failed to, as far as it is stored. */
const runOf = ({ state, attempts, runId, runStatus }: EventFlow.Event): readonly [string, Html] => {
  const isDead = state === "dead_letter"
  const missing = isDead ? "its run is not stored" : state === "pending" ? "no run yet" : "no run of its own"
  return [
    isDead || (state === "pending" && attempts > 0) ? "Failed in" : "Read by",
    runId === null
      ? none(missing)
      : html`${runLink(runId)}
        ${runStatus === null ? "which is no longer stored" : runState({ status: runStatus, deadLetters: isDead ? 1 : 0 })}`
  ]
}

const processedStep = (event: EventFlow.Event, now: Date): Step => {
  const [tone, word, sentence] = stateOf(event, now)
  return {
    title: "Processed",
    tone,
    word,
    at: event.resolvedAt,
    body: html`<p>${sentence}</p>
      ${facts([
        event.attempts === 0 ? null : ["Failed attempts", count(event.attempts)],
        event.state === "pending" ? ["Next attempt", exactInstant(event.nextAttemptAt)] : null,
        event.resolution === null ? null : ["Resolution", visible(event.resolution)],
        runOf(event)
      ])} `
  }
}

/** The error of an event that was not processed, with what a person does. */
const troubleOf = ({ state, lastError, company, eventId }: EventFlow.Event): Html => {
  if (lastError === null || (state !== "dead_letter" && state !== "pending")) return html``
  const [error, remedy] = partsOf(lastError)
  const what = html`Last error: ${visible(errorSentence(error))}${errorRequest(lastError)}`
  return state === "pending"
    ? problem(html`${what} It is tried again automatically.`, null, null, "note")
    : problem(
        what,
        `${visible(remedy || "remove the cause")}; then replay the event.`,
        actionLink("replay", { company, event: eventId }, "Replay", `event ${visible(eventId)}`)
      )
}

/** Why the warehouse has no version for it. */
const whyNotLanded = ({ state, resource, recordId, lastError, resolution }: EventFlow.Event): string => {
  if (resource === null) return "The type names no resource that is synced."
  if (state === "dead_letter") return "The record was not read: the event is a dead letter."
  if (state === "skipped") return "The event was skipped, so that nothing was read."
  if (state === "pending") {
    return lastError === null
      ? "The event was not processed yet."
      : `Not yet. ${visible(errorSentence(partsOf(lastError)[0]))}`
  }
  if (recordId === null) return "The event names no single record: the run shows what was read."
  return resolution === null
    ? "The warehouse has no version of the record; its history was removed, or the record is in quarantine."
    : `Resolved without a version: ${visible(resolution)}.`
}

const landed = (event: EventFlow.Event, versions: Model["versions"], now: Date): Step => {
  const isPending = event.state === "pending"
  const absence = {
    tone: isPending ? "busy" : event.state === "dead_letter" ? "bad" : "quiet",
    word: isPending ? "not yet" : "no version",
    sentence: whyNotLanded(event)
  } as const
  return landedStep(event, versions, absence, now)
}

const gapNote = (gap: EventFlow.EventGap, company: string, now: Date): Html =>
  html`<div class="card">
    <h3>Gap ${gap.id} ${badge(gap.closedAt === null ? "warn" : "good", gap.closedAt === null ? "open" : "closed")}</h3>
    <p>
      ${
        gap.isListed
          ? "The source reports this event, and the delivery was lost."
          : html`The event fired during this gap of ${resourceLink(company, gap.resource)}.`
      }
      ${causeSentence(gap.cause)} ${detail(visible(gap.detail))}
    </p>
    <p>
      ${
        gap.closedAt === null
          ? html`${nextStep(gap)} ${gap.lastError === null ? "" : errorSentence(visible(lastTry(gap.lastError)))}`
          : html`Closed ${ago(gap.closedAt, now)}${gap.closedBy === null ? "" : ` by ${visible(gap.closedBy)}`}: the
            resource was read again.`
      }
    </p>
  </div>`

const gapNotes = (gaps: Model["gaps"], company: string, now: Date): Html | string =>
  gaps.length === 0
    ? ""
    : html`<h2>Delivery gaps</h2>
        ${gaps.map((gap) => gapNote(gap, company, now))}`

export const view = ({ company, eventId, event, subscriptions, gaps, versions, now }: Model) => {
  if (event === null) {
    const lost = gaps.filter(({ isListed }) => isListed)
    return page({
      title: "Event",
      section: "webhooks",
      isLive: false,
      body: html`<h1>Event ${visible(eventId)}</h1>
        <p class="summary">
          ${badge("bad", "lost")} The inbox does not have this event of company ${visible(company)}.
        </p>
        ${gapNotes(lost, company, now)}`
    })
  }
  const { resource, recordId } = event
  const [tone, word, sentence] = stateOf(event, now)
  return page({
    title: `Event ${visible(eventId)}`,
    section: "webhooks",
    isLive: event.state === "pending",
    body: html`<h1>
        ${visible(event.eventType)}${resource === null || recordId === null ? "" : html`: ${visible(resource)} ${visible(recordId)}`}
      </h1>
      <p class="summary">
        ${badge(tone, word)} ${recordOf(event)}, company ${visible(company)}. ${sentence}
        ${detail(html`Event ${copied(eventId)}`)}
      </p>
      ${troubleOf(event)}
      ${flow("From the delivery to the warehouse", [
        firedStep(event),
        receivedStep(event, subscriptions),
        storedStep(event),
        processedStep(event, now),
        landed(event, versions, now)
      ])}
      ${gapNotes(gaps, company, now)}`
  })
}

export const routes: ReadonlyArray<Route> = [pageRoute({ path, load, view })]
