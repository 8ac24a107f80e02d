/** Delivery gaps on the page of the webhooks. */
import type * as Webhooks from "../../status/Webhooks.ts"
import { html, type Html } from "../Page.ts"
import { ago, badge, table } from "../../web/Components.ts"
import { plural, truncated, visible } from "../../web/Escape.ts"
import { resourceAddress } from "../Addresses.ts"

/** Characters of a reason in a table. */
const reasonMax = 240

/** What happened, and until when a gap of this cause lasts. */
const causes: Readonly<
  Record<Webhooks.GapStatus["cause"], { readonly happened: string; readonly lastsUntil?: string }>
> = {
  abandoned: { happened: "The source abandoned an event after its last attempt failed." },
  acknowledged_not_stored: { happened: "The source reports an event as delivered which is not in the inbox." },
  disabled: { happened: "The source disabled the subscription, and dropped the events that fired meanwhile." },
  paused: {
    happened: "The subscription was paused, and the source dropped the events that fired meanwhile.",
    lastsUntil: "the subscription is resumed"
  },
  missing: {
    happened: "No subscription included the events of this resource.",
    lastsUntil: "a subscription includes them (npx tributary webhooks ensure)"
  },
  unobserved: {
    happened: "The subscription could not be read for so long that events may have been dropped unseen.",
    lastsUntil: "the subscription can be read again"
  },
  dropped: { happened: "The source’s log shows that events waiting for delivery were dropped." },
  overflow: { happened: "The source delivered more events between two checks than a check reads from its log." }
}

const deliversAgain = "the subscription delivers again, which is retried automatically"

/** What happened at the beginning of a gap of this cause. */
export const causeSentence = (cause: Webhooks.GapStatus["cause"]): string => causes[cause].happened

/** What ends an open gap, and what closes it. */
export const nextStep = ({
  cause,
  endedAt
}: {
  readonly cause: Webhooks.GapStatus["cause"]
  readonly endedAt: Date | string | null
}): string =>
  endedAt === null
    ? `It lasts until ${causes[cause].lastsUntil ?? deliversAgain}; then the resource is read again.`
    : "The resource is read again, and the gap closes when that is done."

/** Open gaps and what happens next, then those that were closed. */
export const gapTables = (
  { gaps: open, closed, company }: Webhooks.CompanyStatus,
  key: string,
  now: Date
): Html => html`
  ${
    open.length === 0
      ? html`<p>No gap is open: the resources of every dropped event were read again.</p>`
      : table(
          `Open gaps of company ${visible(company)}`,
          "Resource, What happened, From, Until, What happens next",
          open.map((gap) => [
            html`<a href="${resourceAddress(company, gap.resource)}">${visible(gap.resource)}</a>`,
            html`${badge("warn", gap.cause.replaceAll("_", " "))} ${causes[gap.cause].happened}
              <span class="detail">${truncated(gap.detail, reasonMax)}</span>`,
            ago(gap.beganAt, now, "unknown"),
            ago(gap.endedAt, now, "still open"),
            html`${nextStep(gap)}
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
            "Resource, What happened, Closed, By",
            closed.map((gap) => [
              visible(gap.resource),
              causes[gap.cause].happened,
              ago(new Date(now.getTime() - gap.closedMs), now),
              truncated(gap.closedBy, reasonMax)
            ])
          )}
        </details>`
  }
`
