/**
 * The shares of companies by state as one bar, and what needs a person as counted kinds.
 *
 * Promise: each part is a link to the companies that it counts. The caption and the list state the same numbers in words,
 * so that no meaning depends on a colour.
 */
import { scaleLinear } from "d3-scale"
import type * as CompanyStates from "../status/CompanyStates.ts"
import { companyStates, type State } from "../tasks/CountCompanies.ts"
import { count, type Tone } from "../web/Components.ts"
import { address, plural } from "../web/Escape.ts"
import { stateWords } from "./Format.ts"
import { html, type Html } from "./Page.ts"

const width = 1_000
const height = 28
/** The least width of a part, so that one company of thousands is seen. */
const partMin = 8

/** The shares of companies by state, the worst first. */
export const companyShares = (byState: Readonly<Record<State, number>>): Html => {
  const shown = companyStates.filter((state) => byState[state] > 0)
  const total = shown.reduce((sum, state) => sum + byState[state], 0)
  if (total === 0) return html``
  const across = scaleLinear([0, total], [0, width - shown.length * partMin])
  let left = 0
  return html`<figure class="chart">
    <figcaption id="shares-title" class="parts">
      ${plural(total, "company", "companies")}:
      ${shown.map((state, index) => {
        const [tone, word] = stateWords[state]
        return html`${index === 0 ? "" : " "}<a class="${tone}" href="${address("/", { state })}"
            >${count(byState[state])} ${word}</a
          >`
      })}
    </figcaption>
    <svg
      class="chart shares"
      viewBox="0 0 ${width} ${height}"
      preserveAspectRatio="none"
      role="group"
      aria-labelledby="shares-title"
    >
      ${shown.map((state) => {
        const [tone, word] = stateWords[state]
        const size = Math.round(across(byState[state]) + partMin)
        const x = left
        left += size
        const text = `${count(byState[state])} ${word}`
        return html`<a href="${address("/", { state })}" aria-label="${text}" tabindex="-1"
          ><rect class="${tone}" x="${x}" y="0" width="${size - 2}" height="${height}"><title>${text}</title></rect></a
        >`
      })}
    </svg>
  </figure>`
}

/** The words of each sign, the page that lists what it counts; the first is the most urgent. */
export const signTexts: Readonly<
  Record<
    CompanyStates.Sign,
    {
      readonly words: readonly [one: string, several: string]
      readonly tone: Tone
      readonly path: string
      readonly query?: Readonly<Record<string, string>>
    }
  >
> = {
  dead_letters: {
    words: ["dead letter", "dead letters"],
    tone: "bad",
    path: "/webhooks/events",
    query: { state: "dead_letter" }
  },
  gaps: {
    words: ["delivery gap", "delivery gaps"],
    tone: "warn",
    path: "/webhooks"
  },
  subscriptions_down: {
    words: ["subscription not active", "subscriptions not active"],
    tone: "warn",
    path: "/webhooks"
  },
  rejected: {
    words: ["rejected row of the outbox", "rejected rows of the outbox"],
    tone: "bad",
    path: "/outbox/rows",
    query: { state: "rejected" }
  },
  quarantined: {
    words: ["record in quarantine", "records in quarantine"],
    tone: "warn",
    path: "/quarantine"
  }
}
