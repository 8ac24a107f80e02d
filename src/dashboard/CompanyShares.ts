/**
 * The shares of companies by state as one bar, and what needs a person as counted kinds.
 *
 * Promise: each part is a link to the companies that it counts. The caption and the list state the same numbers in words,
 * so that no meaning depends on a colour.
 */
import type * as CompanyStates from "../status/CompanyStates.ts"
import { companyStates, type State } from "../tasks/CountCompanies.ts"
import { strip } from "../web/Chart.ts"
import { count, type Tone } from "../web/Components.ts"
import { address, plural } from "../web/Escape.ts"
import { stateWords } from "./Format.ts"
import { html, type Html } from "./Page.ts"

/** The least width of a part, as a share, so that one company of thousands is seen. */
const partMin = 0.008
/** Between two parts. */
const gap = 0.002

/** The shares of companies by state, the worst first. */
export const companyShares = (byState: Readonly<Record<State, number>>): Html => {
  const shown = companyStates.filter((state) => byState[state] > 0)
  const total = shown.reduce((sum, state) => sum + byState[state], 0)
  if (total === 0) return html``
  let from = 0
  const parts = shown.map((state) => {
    const [tone, word] = stateWords[state]
    const start = from
    from += partMin + (byState[state] / total) * (1 - shown.length * partMin)
    return {
      kind: tone,
      from: start,
      to: from - gap,
      text: `${count(byState[state])} ${word}`,
      link: address("/", { state })
    }
  })
  const caption = `${plural(total, "company", "companies")}:`
  return html`<figure class="chart">
    <figcaption class="parts">
      ${caption}
      ${parts.map(({ kind, text, link }, index) => html`${index === 0 ? "" : " "}<a class="${kind}" href="${link}">${text}</a>`)}
    </figcaption>
    ${strip({ most: 1, height: 28, blocks: parts }, `${caption} ${parts.map(({ text }) => text).join(", ")}`)}
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
