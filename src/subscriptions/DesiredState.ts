/**
 * The desired state of a company's subscriptions: one at our address, active, with the wanted events and a stored secret.
 *
 * Promise: {@link actionsFor} decides, and changes nothing. It returns no action for subscriptions that match. A
 * subscription at another address is changed only if it is the only one that was ours there, and there is none at ours.
 */
import type { Catalogue } from "../catalogue/Catalogue.ts"
import type { Subscription, SubscriptionChange, Subscriptions } from "../connector/Subscriptions.ts"
import type { StoredSecrets } from "./SigningSecrets.ts"
import { commandFor } from "./SubscriptionError.ts"

// ------------------------------------------------------------------------------------------------- addresses and events

/** The address in normal form: host in lower case, no default port. */
const canonical = (address: string): string => (URL.canParse(address) ? new URL(address).href : address)

/** Whether two spellings are the same address. */
export const isSameAddress = (left: string, right: string): boolean => canonical(left) === canonical(right)

/**
 * Whether the company's deliveries to an address arrive here: at `url`, or where that is null, at any address that ends
 * in `/hooks/` and its name. Other subscriptions are changed only by their id, and their secrets, which another receiver
 * knows too, are never accepted here.
 */
export const isOurs = (company: string, url: string | null, address: string): boolean =>
  url === null ? canonical(address).endsWith(`/hooks/${company}`) : isSameAddress(address, url)

/** Events that the token may not read, with the missing scope; empty where the source does not report scopes. */
export const undeliverableEvents = (
  { resources }: Catalogue,
  { resourceOf }: Pick<Subscriptions, "resourceOf">,
  scopes: ReadonlyArray<string> | null,
  events: ReadonlyArray<string>
): ReadonlyMap<string, string> =>
  new Map(
    events.flatMap((event) => {
      const resource = resources.get(resourceOf(event) ?? "")
      if (scopes === null || resource === undefined) return []
      const scope = resource.traits.missingScope(scopes, resource.area, "read")
      return scope === null ? [] : [[event, scope] as const]
    })
  )

/** Length of a description at the source. */
const descriptionMax = 100

/** The description of a subscription that we make. */
export const descriptionOf = (company: string): string => `Tributary, company ${company}`.slice(0, descriptionMax)

// ------------------------------------------------------------------------------------------------- changes

/** What decides whether a subscription delivers. */
type Delivering = Pick<Subscription, "url" | "events" | "paused" | "disabledAt">

const sorted = (events: ReadonlyArray<string>) => [...new Set(events)].sort()
const isSameSet = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): boolean =>
  sorted(left).join("\n") === sorted(right).join("\n")

/** The change that makes a subscription deliver these events to this address; null when it does. */
export const changeTo = (
  one: Delivering,
  { url, events }: Pick<Subscription, "url" | "events"> = one
): SubscriptionChange | null => {
  const change: SubscriptionChange = {
    ...(isSameAddress(one.url, url) ? {} : { url }),
    ...(isSameSet(one.events, events) ? {} : { events }),
    ...(one.paused ? { paused: false } : {}),
    ...(one.disabledAt === null ? {} : { enabled: true as const })
  }
  return Object.keys(change).length === 0 ? null : change
}

export const describeChange = (one: Delivering, change: SubscriptionChange): string =>
  [
    ...(change.url === undefined ? [] : [`delivers to ${change.url} and no longer to ${one.url}`]),
    ...(change.events === undefined
      ? []
      : [
          ...change.events.filter((event) => !one.events.includes(event)).map((event) => `${event} added`),
          ...one.events.filter((event) => !change.events?.includes(event)).map((event) => `${event} removed`)
        ]),
    ...(change.paused === undefined ? [] : ["resumed after a pause"]),
    ...(change.enabled === undefined ? [] : [`re-enabled after it was disabled at ${one.disabledAt ?? ""}`])
  ].join(", ")

// ------------------------------------------------------------------------------------------------- the desired state

/** What is known of the subscriptions of a company. */
export interface KnownState {
  readonly name: string
  /** The source's whole list. */
  readonly listed: ReadonlyArray<Subscription>
  /** The stored secrets by subscription. */
  readonly secrets: ReadonlyMap<string, StoredSecrets>
  /** Whether the configuration names secrets of the company. */
  readonly isConfigured: boolean
  /** Whether the last delivery of the subscription that stays was answered 401. */
  readonly isUnauthorized: boolean
  /** The subscriptions that the warehouse stores for other companies, with the company. */
  readonly ofOthers: ReadonlyArray<{ readonly id: string; readonly url: string; readonly company: string }>
}

/** Ids are numbers of any length. */
const byAge = (left: Subscription, right: Subscription): number =>
  left.id.length - right.id.length || (left.id < right.id ? -1 : 1)

/**
 * The subscription that stays, or moves to our address, undefined where one must be created; the other ones at our
 * address; and those of ours that still deliver to an earlier one.
 */
export const select = (
  { name, listed, secrets }: Pick<KnownState, "name" | "listed" | "secrets">,
  url: string | null
) => {
  const oldestFirst = listed.toSorted(byAge)
  const ours = oldestFirst.filter((one) => isOurs(name, url, one.url))
  const hasSecret = ({ id }: Subscription) => secrets.get(id)?.state === "stored"
  // Only secrets of ours are stored: a subscription elsewhere that has one was ours at an earlier address.
  const strays = oldestFirst.filter(
    (one) => !ours.includes(one) && (hasSecret(one) || (secrets.get(one.id)?.next ?? null) !== null)
  )
  const kept = ours.find(hasSecret) ?? ours[0] ?? (strays.length === 1 ? strays[0] : undefined)
  return { kept, duplicates: ours.filter((one) => one !== kept), strays: strays.filter((one) => one !== kept) }
}

/** What makes the source sign with a stored secret. */
export type SecretAction =
  /** The secret of an interrupted rotation is sent. */
  | {
      readonly _tag: "FinishRotation"
      readonly subscription: Subscription
      readonly secret: NonNullable<StoredSecrets["next"]>
      /** The actions where the source refuses it for good. */
      readonly otherwise: ReadonlyArray<SecretAction>
    }
  | {
      readonly _tag: "Rotate"
      readonly subscription: Subscription
      readonly reason: string
      /** Whether a test delivery has to show that the source signs with it. */
      readonly isTested: boolean
    }
  | { readonly _tag: "Warn"; readonly warning: string }

/** The action for the secret of a subscription; empty where the source signs with one that is accepted. */
const secretActions = (
  state: KnownState,
  subscription: Subscription,
  stored: StoredSecrets | undefined
): ReadonlyArray<SecretAction> => {
  const { name: company, isConfigured, isUnauthorized } = state
  const { id, description } = subscription
  if (stored !== undefined && stored.next !== null) {
    const otherwise = secretActions(state, subscription, { ...stored, next: null })
    return [{ _tag: "FinishRotation", subscription, secret: stored.next, otherwise }]
  }
  if (stored?.state === "stored") {
    const reason = "its last delivery was answered 401: the source signs with another secret than the stored one"
    return isUnauthorized ? [{ _tag: "Rotate", subscription, reason, isTested: true }] : []
  }
  // The secret of a subscription that we made is none of the configured ones.
  if (!isConfigured || description === descriptionOf(company))
    return [{ _tag: "Rotate", subscription, reason: "its secret was not stored here", isTested: false }]
  const warning =
    `the last delivery of subscription ${id} was answered 401: its secret is none of webhook_secrets_env, or a clock ` +
    `is wrong; ${commandFor(company, `rotate ${id}`)} makes a secret that is kept here`
  return isUnauthorized ? [{ _tag: "Warn", warning }] : []
}

export type Action =
  | { readonly _tag: "Create" }
  /** Makes a subscription deliver the wanted events to our address. */
  | { readonly _tag: "Change"; readonly subscription: Subscription }
  /** Ends a second delivery to our address. */
  | { readonly _tag: "Cancel"; readonly subscription: Subscription; readonly reason: string }
  | SecretAction

const strayWarning = (company: string, { id, url }: Subscription, madeFor: string | null = null): Action => ({
  _tag: "Warn",
  warning:
    `subscription ${id}${madeFor === null ? "" : `, made for company ${madeFor},`} still sends events to ${url}: ` +
    `to stop it, run ${commandFor(company, `delete ${id}`)}`
})

/** The actions that lead to the desired state, in their order. */
export const actionsFor = (desired: Pick<Subscription, "url" | "events">, state: KnownState): ReadonlyArray<Action> => {
  const { name, listed, secrets, ofOthers } = state
  const { kept, duplicates, strays } = select(state, desired.url)
  const warnings = strays.filter(({ paused }) => !paused).map((one) => strayWarning(name, one))
  if (kept !== undefined) {
    const reason = `subscription ${kept.id} delivers to the same address`
    return [
      ...(changeTo(kept, desired) === null ? [] : [{ _tag: "Change", subscription: kept } as const]),
      ...secretActions(state, kept, secrets.get(kept.id)),
      ...duplicates.map((subscription) => ({ _tag: "Cancel", subscription, reason }) as const),
      ...warnings
    ]
  }
  const madeForOthers = listed
    .filter(({ paused }) => !paused)
    .flatMap((one) =>
      ofOthers
        .filter((other) => other.id === one.id && isSameAddress(other.url, one.url))
        .map(({ company }) => strayWarning(name, one, company))
    )
  return [{ _tag: "Create" }, ...warnings, ...madeForOthers]
}
