/** `/subscriptions`: the webhook subscriptions of all tokens. */
import { badge, count, none, table } from "../../../../../src/web/Components.ts"
import { address, plural, truncated, visible } from "../../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import type { Subscription } from "../../events/Subscription.ts"
import { button } from "../Action.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { page, root } from "../Page.ts"
import { safeUrl, when } from "../Parts.ts"

const subscriptionsShown = 200

const state = ({ cancelled, disabled, paused }: Subscription): Html => {
  if (cancelled) return badge("quiet", "cancelled")
  if (disabled !== null) return badge("bad", "disabled")
  return paused ? badge("warn", "paused") : badge("good", "active")
}

const events = ({ events: all }: Subscription): Html =>
  html`<details>
    <summary>${plural(all.length, "event")}</summary>
    ${all.map((name) => html`<code class="line">${visible(name)}</code>`)}
  </details>`

const row = (one: Subscription, threshold: number, now: Date): ReadonlyArray<Html | string> => [
  html`<a id="subscription-${one.id}" href="${address(`${root}/deliveries`, { subscription: String(one.id) })}"
    >${one.id}</a
  >`,
  html`<code>${truncated(safeUrl(one.url), 120)}</code
    >${one.description === null ? "" : html`<span class="detail">${truncated(one.description, 100)}</span>`}`,
  state(one),
  html`<a href="${root}/tokens#token-${one.owner.id}">${one.owner.id}</a
    ><span class="detail">company ${one.owner.company}</span>`,
  events(one),
  count(one.queue.length),
  `${one.failcount} of ${threshold}`,
  when(one.lastDelivery, now)
]

const list = (request: PageRequest): Page => {
  const { world, now } = request
  const all = world.events.all()
  const shown = all.slice(-subscriptionsShown).toReversed()
  return page({
    title: "Subscriptions",
    section: "subscriptions",
    isLive: true,
    body: html`<h1>Subscriptions</h1>
      <p>
        ${plural(all.length, "subscription")}; the number opens the deliveries of one. The next delivery cycle is
        ${when(world.events.nextCycle, now)}${world.clock.isManual() ? ", once the clock is moved" : ""}.
      </p>
      <div class="controls">${button(request, "cycle", {}, "Run a delivery cycle now")}</div>
      ${
        shown.length === 0
          ? html`<p class="note">No subscription exists: <code>POST /webhooks</code> of the API creates one.</p>`
          : table(
              "Subscriptions, newest first",
              "Number, Receiver, State, Token, Events, #Waiting, #Failures in a row, Last delivery",
              shown.map((one) => row(one, world.limits.failureThreshold, now))
            )
      }
      ${all.length > shown.length ? html`<p>${none(`The newest ${shown.length} are shown.`)}</p>` : ""}`
  })
}

export const routes: ReadonlyArray<Route> = [{ method: "GET", path: "/subscriptions", handle: list }]
