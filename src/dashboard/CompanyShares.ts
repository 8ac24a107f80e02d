/**
 * The shares of companies by state as one bar, and what needs a person as counted kinds.
 *
 * Promise: each part is a link to the companies that it counts. The caption and the list state the same numbers in words,
 * so that no meaning depends on a colour.
 */
import { scaleLinear } from "d3-scale"
import type * as CompanyStates from "../status/CompanyStates.ts"
import { companyStates, type State } from "../tasks/CountCompanies.ts"
import { badge, count, type Tone } from "../web/Components.ts"
import { address, plural, truncated, visible } from "../web/Escape.ts"
import { resourceAddress } from "./Addresses.ts"
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
  readonly word: string
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

const needsOf = (
  { amounts, byState, companiesWith, companiesLate }: CompanyStates.Summary,
  worst: CompanyStates.CompanyState | undefined
): ReadonlyArray<Need> => [
  {
    tone: "bad",
    word: amounts.failing === 1 ? "resource fails" : "resources fail",
    amount: amounts.failing,
    companies: byState.failing,
    to: address("/", { state: "failing" }),
    next: stepOf(byState.failing > 0 ? worst : undefined, "open a company: its error states the remedy")
  },
  {
    tone: "warn",
    word: amounts.late === 1 ? "resource is late" : "resources are late",
    amount: amounts.late,
    companies: companiesLate,
    to: address("/", { order: "lateness" }),
    next: html`see whether the <a href="/budget">rate budget</a> or a schedule delays them`
  },
  {
    tone: "bad",
    word: amounts.dead_letters === 1 ? "dead letter" : "dead letters",
    amount: amounts.dead_letters,
    companies: companiesWith.dead_letters,
    to: address("/", { sign: "dead_letters" }),
    next: html`read their errors, then <a href="/webhooks/events?state=dead_letter">replay them</a>`
  },
  {
    tone: "warn",
    word: amounts.gaps === 1 ? "delivery gap" : "delivery gaps",
    amount: amounts.gaps,
    companies: companiesWith.gaps,
    to: address("/", { sign: "gaps" }),
    next: html`they close by themselves; <a href="/webhooks">see why</a> one stays open`
  },
  {
    tone: "warn",
    word: amounts.subscriptions_down === 1 ? "subscription not active" : "subscriptions not active",
    amount: amounts.subscriptions_down,
    companies: companiesWith.subscriptions_down,
    to: address("/", { sign: "subscriptions_down" }),
    next: html`resume them on <a href="/webhooks">Webhooks</a>`
  },
  {
    tone: "bad",
    word: amounts.rejected === 1 ? "refused push" : "refused pushes",
    amount: amounts.rejected,
    companies: companiesWith.rejected,
    to: address("/", { sign: "rejected" }),
    next: html`correct the <a href="/outbox/rows?state=rejected">refused rows</a> and send them again`
  },
  {
    tone: "warn",
    word: amounts.quarantined === 1 ? "record in quarantine" : "records in quarantine",
    amount: amounts.quarantined,
    companies: companiesWith.quarantined,
    to: address("/", { sign: "quarantined" }),
    next: html`correct them at the source, then <a href="/quarantine">retry</a>`
  }
]

/** What needs a person: the counted kinds, each with one next step. */
export const companyNeeds = (summary: CompanyStates.Summary, worst: CompanyStates.CompanyState | undefined): Html => {
  const needs = needsOf(summary, worst).filter(({ amount }) => amount > 0)
  return needs.length === 0
    ? html``
    : html`<section aria-labelledby="needed">
        <h2 id="needed">What needs a person</h2>
        <ul class="needs-counted">
          ${needs.map(
            ({ tone, word, amount, companies, to, next }) =>
              html`<li>
                <a class="amount" href="${to}">${badge(tone, count(amount))} ${word}</a>
                <span class="where">${plural(companies, "company", "companies")}</span>
                <span class="detail">Next: ${next}.</span>
              </li>`
          )}
        </ul>
      </section>`
}
