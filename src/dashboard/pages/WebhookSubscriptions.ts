/** Subscriptions on the page of the webhooks, as last stored in the warehouse. */
import * as SubscriptionStore from "../../subscriptions/SubscriptionStore.ts"
import { html, type Html } from "../Page.ts"
import { ago, badge, count, type Tone, facts } from "../../web/Components.ts"
import { actionLink } from "../Format.ts"
import { plural, truncated, visible } from "../../web/Escape.ts"

/** Characters of a problem. */
const problemMax = 240

const subscriptionBadges: Readonly<Record<SubscriptionStore.DeliveryState, readonly [Tone, string]>> = {
  delivers: ["good", "active"],
  unproven: ["warn", "active, no delivery yet"],
  test_failed: ["warn", "active, the last test failed"],
  failing: ["bad", "active, deliveries fail"],
  paused: ["warn", "paused"],
  disabled: ["bad", "disabled"],
  deleted: ["bad", "deleted"]
}

const logAddress = (company: string, id: string): string =>
  `/webhooks/${encodeURIComponent(company)}/${encodeURIComponent(id)}/deliveries`

/** A card for each subscription, or how to create the first one. */
export const subscriptionCards = (
  company: string,
  rows: ReadonlyArray<SubscriptionStore.SubscriptionRow>,
  key: string,
  now: Date
): Html => {
  const existing = rows.filter(({ state }) => state !== "deleted")
  if (existing.length === 0) {
    return html`<p>
      No subscription is known${rows.length === 0 ? "" : html`: the last one was deleted`}, so that no event is
      delivered. Create one with <code>tributary webhooks ensure --company ${visible(company)}</code>.
    </p>`
  }
  return html`${existing.map((one, index) => {
    const about = `subscription ${visible(one.id)} of company ${visible(company)}`
    const query = { company, subscription: one.id }
    return html`<article class="card">
      <h3>Subscription ${visible(one.id)} ${badge(...subscriptionBadges[SubscriptionStore.deliveryStateOf(one)])}</h3>
      ${facts([
        ["Delivers to", html`<code>${visible(one.url)}</code>`],
        ["Last delivery at the time of the check", ago(one.lastDeliveryAt, now)],
        ["Failed deliveries in a row", one.failCount === null ? "unknown" : count(one.failCount)],
        ["Checked", ago(one.checkedAt, now)],
        [
          "Last test",
          one.testedAt === null
            ? "never"
            : one.testError === null
              ? html`succeeded ${ago(one.testedAt, now)}`
              : html`failed ${ago(one.testedAt, now)}: ${truncated(one.testError, problemMax)}`
        ],
        ...(one.disabledAt === null ? [] : [["Disabled by the source", ago(one.disabledAt, now)] as const])
      ])}
      ${
        one.missingEvents.length === 0
          ? ""
          : html`<p class="problem">
              It lacks ${one.missingEvents.map(visible).join(", ")}. Add them with
              <code>tributary webhooks ensure --company ${visible(company)}</code>.
            </p>`
      }
      ${
        one.problem === null
          ? ""
          : html`<p class="problem">
              The last check failed: ${truncated(one.problem, problemMax)}.
              ${one.remedy === null ? "" : html`What to do: ${visible(one.remedy)}.`}
            </p>`
      }
      ${
        one.state === "disabled" && one.paused
          ? html`<p class="problem">It is paused as well: it is not enabled again until it is resumed.</p>`
          : ""
      }
      <details id="${key}-events-${index}">
        <summary>${plural(one.events.length, "event type")}</summary>
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
          >Show the delivery log<span class="visually-hidden"> of ${about}</span></a
        >
      </p>
    </article>`
  })}`
}
