/** Delivery gaps on the page of the webhooks, by cause. */
import type * as Webhooks from "../../status/Webhooks.ts"
import { html, type Html } from "../Page.ts"
import { ago, badge, count, table } from "../../web/Components.ts"
import { plural, truncated, visible } from "../../web/Escape.ts"
import { resourceAddress } from "../Addresses.ts"

type Gap = Webhooks.GapStatus

/** Characters of a reason in a table. */
const reasonMax = 240

/** What happened. */
const causes: Readonly<Record<Gap["cause"], string>> = {
  event_lost: "The source’s delivery log has events that are not in the inbox.",
  subscription_inactive: "No active subscription delivered the events.",
  unobserved: "The delivery log was not read to its end, so that events may have been dropped unseen."
}

/** What ends a gap that lasts. */
const lastsUntil: Readonly<Record<Gap["cause"], Html>> = {
  event_lost: html`the next check`,
  subscription_inactive: html`a subscription delivers them. A disabled one is tested and enabled automatically;
    otherwise run <code>tributary webhooks ensure</code>`,
  unobserved: html`the subscription can be read again`
}

/** What happened at the beginning of a gap of this cause. */
export const causeSentence = (cause: Gap["cause"]): string => causes[cause]

/** What ends an open gap, and what closes it. */
export const nextStep = ({
  cause,
  endedAt
}: {
  readonly cause: Gap["cause"]
  readonly endedAt: Date | string | null
}): Html =>
  endedAt === null
    ? html`It lasts until ${lastsUntil[cause]}; then a scan of the resource closes it.`
    : html`Nothing to do: one more scan of the resource closes it.`

/** Why the last try did not close a gap; {@link nextStep} says what closes it. */
export const lastTry = (reason: string): string => reason.replace("; one more scan closes it", "")

/** Open gaps of the same cause, state and last error, whose numbers of runs may differ. */
const groupOf = ({ cause, endedAt, reason, detail }: Gap): string =>
  JSON.stringify([cause, endedAt === null, reason?.replaceAll(/\d+/g, "#"), detail])

const resourcesMax = 8

const first = (instants: ReadonlyArray<string>): string | null => instants.toSorted()[0] ?? null
const last = (instants: ReadonlyArray<string>): string | null => instants.toSorted().at(-1) ?? null

/** The resources of a group, and its companies. */
const resourcesOf = (gaps: ReadonlyArray<Gap & { readonly company: string }>): Html => {
  const byName = new Map(gaps.map((gap) => [gap.resource, gap.company]))
  const companies = [...new Set(gaps.map(({ company }) => company))]
  const links = [...byName]
    .slice(0, resourcesMax)
    .map(
      ([resource, company], index) =>
        html`${index === 0 ? "" : ", "}<a href="${resourceAddress(company, resource)}">${visible(resource)}</a>`
    )
  return html`${links}${byName.size > resourcesMax ? ` and ${count(byName.size - resourcesMax)} more` : ""}
    <span class="detail"
      >${companies.length > resourcesMax ? plural(companies.length, "company", "companies") : companies.map(visible).join(", ")}</span
    >`
}

const openRow = (gaps: ReadonlyArray<Gap & { readonly company: string }>, now: Date): ReadonlyArray<Html> => {
  const { cause, endedAt, reason, detail } = gaps[0]!
  const began = first(gaps.flatMap(({ beganAt }) => beganAt ?? []))
  return [
    resourcesOf(gaps),
    html`${endedAt === null ? badge("warn", "lasts") : badge("busy", "ended")} ${causes[cause]}
    ${endedAt === null ? "" : html`That ended ${ago(last(gaps.flatMap((gap) => gap.endedAt ?? [])), now)}.`}
    ${detail === "" ? "" : html`<span class="detail">${truncated(detail, reasonMax)}</span>`}`,
    html`${ago(first(gaps.map(({ detectedAt }) => detectedAt)), now)}${
      began === null ? "" : html` <span class="detail">events since ${ago(began, now)}</span>`
    }`,
    html`${nextStep({ cause, endedAt })}
    ${reason === null ? "" : html`<span class="detail">Last try: ${truncated(lastTry(reason), reasonMax)}</span>`}`
  ]
}

/** The open gaps of these companies by cause, with what happens next, those that last first; nothing where none is open. */
export const openGaps = (statuses: ReadonlyArray<Webhooks.CompanyStatus>, now: Date): Html => {
  const all = statuses.flatMap(({ company, gaps }) => gaps.map((gap) => ({ ...gap, company })))
  if (all.length === 0) return html``
  const [ended, lasting] = [true, false].map((hasEnded) => all.filter((gap) => (gap.endedAt !== null) === hasEnded))
  return table(
    `Open delivery gaps: ${count(all.length)}, by cause`,
    "Resources, What happened, Found, Next",
    [...Map.groupBy([...lasting!, ...ended!], groupOf).values()].map((gaps) => openRow(gaps, now))
  )
}

/** The gaps of a company that were closed within a day. */
export const closedGaps = ({ closed, company }: Webhooks.CompanyStatus, key: string, now: Date): Html =>
  closed.length === 0
    ? html``
    : html`<details id="${key}-closed">
        <summary>${plural(closed.length, "gap")} closed within a day</summary>
        ${table(
          `Gaps of company ${visible(company)} closed within a day`,
          "Resource, What happened, Closed, By",
          closed.map((gap) => [
            visible(gap.resource),
            causes[gap.cause],
            ago(new Date(now.getTime() - gap.closedMs), now),
            truncated(gap.closedBy, reasonMax)
          ])
        )}
      </details>`
