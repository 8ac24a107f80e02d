/**
 * The shares of companies by state as one bar, and what needs a person as counted kinds.
 *
 * Promise: each part is a link to the companies that it counts. The caption and the list state the same numbers in words,
 * so that no meaning depends on a colour.
 */
import { scaleLinear } from "d3-scale"
import type * as CompanyStates from "../status/CompanyStates.ts"
import type * as UnresolvedRequests from "../status/UnresolvedRequests.ts"
import { companyStates, type State } from "../tasks/CountCompanies.ts"
import { badge, count, type Tone } from "../web/Components.ts"
import { address, plural, truncated, visible } from "../web/Escape.ts"
import { outboxRequestsAddress, resourceAddress } from "./Addresses.ts"
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

/** A kind of trouble that needs a person. */
interface Need {
  readonly tone: Tone
  readonly words: readonly [one: string, several: string]
  readonly amount: number
  /** How many companies have it. */
  readonly companies: number
  /** The companies that have it. */
  readonly to: string
  readonly next: Html | string
}

/** The step after the worst company's error. */
const stepOf = (worst: CompanyStates.CompanyState | undefined, otherwise: string): Html | string =>
  worst === undefined || worst.worstResource === null
    ? otherwise
    : html`begin with
        <a href="${resourceAddress(worst.company, worst.worstResource)}"
          >${visible(worst.worstResource)} of ${visible(worst.company)}</a
        >${worst.remedy === null ? "" : html`: ${truncated(worst.remedy, 120)}`}`

/** The words of each sign, the page that lists what it counts, and its next step; the first is the most urgent. */
export const signTexts: Readonly<
  Record<
    CompanyStates.Sign,
    {
      readonly words: readonly [one: string, several: string]
      readonly tone: Tone
      readonly path: string
      readonly query?: Readonly<Record<string, string>>
      readonly next: Html
    }
  >
> = {
  dead_letters: {
    words: ["dead letter", "dead letters"],
    tone: "bad",
    path: "/webhooks/events",
    query: { state: "dead_letter" },
    next: html`read their errors, then <a href="/webhooks/events?state=dead_letter">replay them</a>`
  },
  gaps: {
    words: ["delivery gap", "delivery gaps"],
    tone: "warn",
    path: "/webhooks",
    next: html`they close by themselves; <a href="/webhooks">see why</a> one stays open`
  },
  subscriptions_down: {
    words: ["subscription not active", "subscriptions not active"],
    tone: "warn",
    path: "/webhooks",
    next: html`resume them on <a href="/webhooks">Webhooks</a>`
  },
  rejected: {
    words: ["rejected row of the outbox", "rejected rows of the outbox"],
    tone: "bad",
    path: "/outbox/rows",
    query: { state: "rejected" },
    next: html`correct the <a href="/outbox/rows?state=rejected">rejected rows</a> and send them again`
  },
  quarantined: {
    words: ["record in quarantine", "records in quarantine"],
    tone: "warn",
    path: "/quarantine",
    next: html`correct them at the source, then <a href="/quarantine">retry</a>`
  }
}

const needsOf = (
  { amounts, byState, companiesWith, companiesLate }: CompanyStates.Summary,
  worst: CompanyStates.CompanyState | undefined,
  unresolved: ReadonlyArray<UnresolvedRequests.UnresolvedRequests>
): ReadonlyArray<Need> => [
  {
    tone: "bad",
    words: ["resource fails", "resources fail"],
    amount: amounts.failing,
    companies: byState.failing,
    to: address("/", { state: "failing" }),
    next: stepOf(byState.failing > 0 ? worst : undefined, "open a company: its error states the remedy")
  },
  {
    tone: "warn",
    words: ["resource is late", "resources are late"],
    amount: amounts.late,
    companies: companiesLate,
    to: address("/", { order: "lateness" }),
    next: html`see whether the <a href="/budget">rate budget</a> or a schedule delays them`
  },
  ...(Object.keys(signTexts) as ReadonlyArray<CompanyStates.Sign>).map((sign) => ({
    ...signTexts[sign],
    amount: amounts[sign],
    companies: companiesWith[sign],
    to: address("/", { sign })
  })),
  {
    tone: "warn",
    words: ["push request without a known outcome", "push requests without a known outcome"],
    amount: unresolved.reduce((sum, { requests }) => sum + requests, 0),
    companies: new Set(unresolved.map(({ company }) => company)).size,
    to: outboxRequestsAddress,
    next: html`take the step that <a href="${outboxRequestsAddress}">the list of them</a> names`
  }
]

/** What needs a person: the counted kinds, each with one next step. */
export const companyNeeds = (...findings: Parameters<typeof needsOf>): Html => {
  const needs = needsOf(...findings).filter(({ amount }) => amount > 0)
  return needs.length === 0
    ? html``
    : html`<section aria-labelledby="needed">
        <h2 id="needed">What needs a person</h2>
        <ul class="needs-counted">
          ${needs.map(
            ({ tone, words, amount, companies, to, next }) =>
              html`<li>
                <a class="amount" href="${to}">${badge(tone, count(amount))} ${words[amount === 1 ? 0 : 1]}</a>
                <span class="where">${plural(companies, "company", "companies")}</span>
                <span class="detail">Next: ${next}.</span>
              </li>`
          )}
        </ul>
      </section>`
}
