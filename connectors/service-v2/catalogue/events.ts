/**
 * The events of the service (EVT-06; the full catalogue is not documented: decision H-01).
 *
 * Promise: every name that a subscription may list is derived here from the resources, and only here: `created`,
 * `updated` and `cancelled` of each, and `posted` of each that can be posted. The five names that the documents show
 * are among them.
 */
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"

export type EventVerb = "created" | "updated" | "cancelled" | "posted"

/** Sent by the test call only (LOG-01); subscriptions may list it like any other name. */
export const testEvent = "webhooks.test"

export const isPostable = (resource: Resource): boolean =>
  resource.field.has("voucherid") && resource.specials.some(({ method, name }) => method === "POST" && name === "post")

export const eventName = (resource: Resource, verb: EventVerb): string => `${resource.path}.${verb}`

const verbsOf = (resource: Resource): ReadonlyArray<EventVerb> => [
  "created",
  "updated",
  "cancelled",
  ...(isPostable(resource) ? (["posted"] as const) : [])
]

/** The names of the events of a resource. Together they announce every change of it (H-01, H-23). */
export const eventsOf = (resource: Resource): ReadonlyArray<string> =>
  verbsOf(resource).map((verb) => eventName(resource, verb))

/** Every event name, in the order of the resources. */
export const eventNames = (catalogue: Catalogue): ReadonlyArray<string> => [
  ...[...catalogue.resources.values()].flatMap(eventsOf),
  testEvent
]
