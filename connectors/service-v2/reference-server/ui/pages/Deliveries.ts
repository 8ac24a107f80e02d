/** `/deliveries`: the attempts to deliver events, their headers and bodies, and replay. */
import {
  badge,
  count,
  duration,
  facts,
  none,
  pager,
  section,
  select,
  table
} from "../../../../../src/web/Components.ts"
import { address, truncated, visible } from "../../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import { answerText } from "../../events/Log.ts"
import type { Attempt } from "../../events/Log.ts"
import type { Action } from "../Action.ts"
import { accepted, button, routesOf, textOf } from "../Action.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { numberOf, ofForm, ofQuery, page, PageError, root } from "../Page.ts"
import { body, headerLines, safeUrl, statusBadge, when } from "../Parts.ts"

const rowsMax = 100
const path = `${root}/deliveries`
const states = ["delivered", "failed", "abandoned"]

const outcome = ({ delivered, abandoned }: Attempt): Html =>
  delivered ? badge("good", "delivered") : abandoned ? badge("bad", "abandoned") : badge("warn", "failed")

const hasState = (attempt: Attempt, state: string): boolean =>
  state === "delivered" ? attempt.delivered : state === "abandoned" ? attempt.abandoned : !attempt.delivered

const replayButton = (request: PageRequest, { seq, event }: Attempt): Html =>
  event.state === "waiting"
    ? none("waits for a cycle")
    : button(request, "replay", { delivery: String(seq) }, "Replay", `delivery ${seq}`)

const row = (request: PageRequest, attempt: Attempt): ReadonlyArray<Html | string> => [
  html`<a href="${path}/${attempt.seq}">${attempt.seq}</a>`,
  html`<code>${visible(attempt.event.occurrence.type)}</code
    ><span class="detail">${attempt.event.occurrence.id}</span>`,
  html`${outcome(attempt)}
  ${attempt.outcome.status ?? ""}${attempt.outcome.failure === null ? "" : html`<span class="detail">${truncated(attempt.outcome.failure, 100)}</span>`}`,
  String(attempt.attempt),
  html`<a href="${root}/subscriptions#subscription-${attempt.subscriptionId}">${attempt.subscriptionId}</a>`,
  duration(attempt.outcome.durationms),
  when(attempt.at, request.now),
  replayButton(request, attempt)
]

const find = (attempts: ReadonlyArray<Attempt>, isMeant: (attempt: Attempt) => boolean, before: number | null) => {
  const found: Array<Attempt> = []
  for (let index = attempts.length - 1; index >= 0 && found.length <= rowsMax; index--) {
    const attempt = attempts[index]!
    if ((before === null || attempt.seq < before) && isMeant(attempt)) found.push(attempt)
  }
  return found
}

const list = (request: PageRequest): Page => {
  const { world } = request
  const subscription = numberOf(ofQuery(request, "subscription"), "The number of a subscription")
  const state = ofQuery(request, "state")
  const before = numberOf(ofQuery(request, "before"), "The position in the list")
  const attempts = world.events.log.all()
  const found = find(
    attempts,
    (one) => (subscription === null || one.subscriptionId === subscription) && (state === null || hasState(one, state)),
    before
  )
  const shown = found.slice(0, rowsMax)
  const next = found.length > rowsMax ? shown.at(-1)!.seq : null
  return page({
    title: "Deliveries",
    section: "deliveries",
    isLive: true,
    body: html`<h1>Deliveries</h1>
      <p>
        ${count(attempts.length)} attempts to deliver events, newest first. A replay sends the same bytes once more.
      </p>
      <form method="get" action="${path}" class="ask" role="search" aria-label="Filter the deliveries">
        ${select("state", "Result", "any", states, state)}
        <p>
          <label for="subscription">Subscription number</label>
          <input
            id="subscription"
            name="subscription"
            inputmode="numeric"
            size="6"
            value="${subscription ?? ""}"
            autocomplete="off"
          />
        </p>
        <p class="buttons"><button type="submit" class="primary">Filter</button></p>
      </form>
      <div class="controls">${button(request, "cycle", {}, "Run a delivery cycle now")}</div>
      ${
        shown.length === 0
          ? html`<p class="note">
              ${attempts.length === 0 ? "Nothing was delivered yet." : "No delivery matches this filter."}
            </p>`
          : table(
              "Attempts",
              "Number, Event, Result, #Attempt, Subscription, #Duration, Time, Action",
              shown.map((attempt) => row(request, attempt))
            )
      }
      ${pager("Parts of the log", ["Newest", "Older"], { after: before, next }, (place) =>
        address(path, {
          state,
          subscription: subscription === null ? null : String(subscription),
          before: place === null ? null : String(place)
        })
      )}`
  })
}

const one = (request: PageRequest): Page => {
  const seq = numberOf(request.path["seq"] ?? null, "The number of a delivery") ?? 0
  const attempt = request.world.events.log.find(seq)
  if (attempt === undefined) throw new PageError(404, `The log has no delivery ${seq}.`)
  const { event, outcome: result, headers, url } = attempt
  return page({
    title: `Delivery ${seq}`,
    section: "deliveries",
    body: html`<p><a href="${path}">All deliveries</a></p>
      <h1>Delivery ${seq} ${outcome(attempt)}</h1>
      ${facts([
        ["Event", html`<code>${visible(event.occurrence.type)}</code>`],
        ["Event id", html`<code>${event.occurrence.id}</code>`],
        ["Receiver", html`<code>${visible(safeUrl(url))}</code>`],
        ["Attempt", String(attempt.attempt)],
        ["State of the event", event.state],
        ["Time", when(attempt.at, request.now)],
        ["Duration", duration(result.durationms)],
        [
          "Subscription",
          html`<a href="${root}/subscriptions#subscription-${attempt.subscriptionId}">${attempt.subscriptionId}</a>`
        ]
      ])}
      ${replayButton(request, attempt)}
      ${section("sent", "As sent", html`${headerLines(headers)} ${body(Buffer.from(event.occurrence.body).toString("utf8"), "Body of the event")}`)}
      ${section(
        "answer",
        "Answer of the receiver",
        html`<p>${statusBadge(result.status)} ${result.failure === null ? "" : visible(result.failure)}</p>
          ${body(answerText(result), "Body of the answer, its first 500 bytes")}`
      )}`
  })
}

const replay: Action = {
  name: "replay",
  section: "deliveries",
  confirmation: null,
  back: () => path,
  act: async (request) => {
    const delivery = numberOf(ofForm(request, "delivery"), "The number of a delivery") ?? 0
    const sent = accepted(await request.call("POST", `/deliveries/${delivery}/replay`))
    const answer =
      sent["responsecode"] === null ? `no answer: ${textOf(sent["failure"])}` : `status ${textOf(sent["responsecode"])}`
    return `Delivery ${delivery} was sent again as delivery ${textOf(sent["delivery"])}: ${answer}.`
  }
}

const cycle: Action = {
  name: "cycle",
  section: "deliveries",
  confirmation: null,
  back: () => path,
  act: async (request) => {
    const { attempts } = accepted(await request.call("POST", "/cycle"))
    return `The delivery cycle made ${Array.isArray(attempts) ? attempts.length : 0} attempts.`
  }
}

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/deliveries", handle: list },
  { method: "GET", path: "/deliveries/:seq", handle: one },
  ...routesOf(replay),
  ...routesOf(cycle)
]
