/**
 * The /webhooks endpoints (WEBHOOK-12..WEBHOOK-19, LOG-01..LOG-07).
 *
 * Promise: a subscription exists only for the token that created it (H-04). Only the answer that creates it shows its
 * secret (SIG-06). Cancelling is DELETE (H-13) and final.
 */
import type { Operation } from "../../../../src/catalogue/Resource.ts"
import { ApiError } from "../ApiError.ts"
import type { Dialect } from "../http/dialect.ts"
import { readBoolean, readParameters } from "../http/parameters.ts"
import type { Result } from "../http/Message.ts"
import type { Route, ScopedAction, WebhookCall } from "../http/Route.ts"
import type { Token } from "../http/tokens.ts"
import { refuseContent } from "../rules/body.ts"
import { microsPerSecond } from "../time.ts"
import type { World } from "../World.ts"
import { readInput } from "./body.ts"
import type { SubscriptionInput } from "./body.ts"
import { answerText } from "./Log.ts"
import type { Attempt } from "./Log.ts"
import { page, pageParameters, readCursor } from "./pages.ts"
import { etagOf, newSecret, shown, shownInstant } from "./Subscription.ts"
import type { Subscription } from "./Subscription.ts"

/** The operations, by the letters of a resource's operations (C-05). */
export const webhookOperations: ReadonlyArray<Operation> = ["L", "C", "R", "U", "D"]

const scopedAction = (call: WebhookCall, access: "read" | "write" | "cancel", id: number | null): ScopedAction => ({
  action: { kind: "webhooks", call, id },
  scope: `setup:${access}`
})

/** The route of the segments below /webhooks; null when there is none. */
export const webhookRoute = (segments: ReadonlyArray<string>, id: number | null): Route | null => {
  const methods = (...entries: ReadonlyArray<readonly [method: string, ScopedAction]>): Route => ({
    feature: null,
    methods: new Map(entries)
  })
  if (segments.length === 0) {
    return methods(["GET", scopedAction("list", "read", null)], ["POST", scopedAction("create", "write", null)])
  }
  if (segments.length === 1) {
    return methods(
      ["GET", scopedAction("retrieve", "read", id)],
      ["PATCH", scopedAction("update", "write", id)],
      ["DELETE", scopedAction("cancel", "cancel", id)]
    )
  }
  if (segments.length !== 2) return null
  if (segments[1] === "test") return methods(["POST", scopedAction("test", "write", id)])
  return segments[1] === "deliveries" ? methods(["GET", scopedAction("deliveries", "read", id)]) : null
}

/** Whether a request counts as a test call, separate from all others (LOG-03, E-04). */
export const isTestCall = (method: string, path: string | null): boolean =>
  method === "POST" && path !== null && /^\/webhooks\/[^/]+\/test$/.test(path)

/** The parts of a request that the endpoints need. */
export interface WebhookRequest {
  readonly token: Token
  readonly call: WebhookCall
  readonly id: number | null
  readonly query: string
  /** The body; undefined when there is none. */
  readonly body: () => unknown
  readonly ifMatch: string | undefined
  /** The absolute address of the request, for Link headers. */
  readonly address: string
}

export const webhooks = (world: World, request: WebhookRequest): Result => {
  switch (request.call) {
    case "list":
      return list(world, request)
    case "create":
      return create(world, request)
    case "retrieve":
      readParameters(request.query, [])
      return one(world, 200, find(world, request))
    case "update":
      return update(world, request)
    case "cancel": {
      readParameters(request.query, [])
      const subscription = find(world, request)
      if (!subscription.cancelled) world.events.cancel(subscription)
      return one(world, 200, subscription)
    }
    case "test":
      return test(world, request)
    case "deliveries":
      return deliveries(world, request)
  }
}

const find = ({ events }: World, { token, id }: WebhookRequest): Subscription => {
  const subscription = events.find(token, id)
  if (subscription === undefined) throw new ApiError("not_found", "there is no such webhook subscription")
  return subscription
}

const one = ({ dialect }: World, status: number, subscription: Subscription, more: object = {}): Result => {
  const object = shown(subscription, dialect)
  const headers = dialect.etag ? { ETag: etagOf(JSON.stringify(object)) } : {}
  return { status, body: JSON.stringify({ ...object, ...more }), headers }
}

const list = (world: World, { token, query, address }: WebhookRequest): Result => {
  const { dialect, events } = world
  const parameters = readParameters(query, ["cancel", ...pageParameters(dialect)])
  const { after, all } = readCursor(parameters)
  const cancel = all.get("cancel") ?? "false"
  if (cancel !== "true" && cancel !== "false" && cancel !== "any") {
    throw new ApiError("invalid_enum", "cancel takes true, false or any", { field: "cancel" })
  }
  const isListed = ({ cancelled }: Subscription) =>
    cancel === "any" ? true : cancel === "false" ? !cancelled : dialect.cancelTrue !== "only" || cancelled
  const entries = events
    .of(token)
    .filter(isListed)
    .map((subscription) => ({ place: subscription.id, text: JSON.stringify(shown(subscription, dialect)) }))
  return { status: 200, ...page(entries, "ascending", all, after, dialect, "webhooks", address) }
}

const create = (world: World, { token, query, body }: WebhookRequest): Result => {
  readParameters(query, [])
  const input = readInput(world.store.catalogue, "create", body())
  const subscription: Subscription = {
    id: world.store.draw("webhooks"),
    owner: token,
    url: input.url!,
    events: input.events!,
    description: input.description ?? null,
    paused: input.paused ?? false,
    failcount: 0,
    lastDelivery: null,
    disabled: input.enabled === false ? world.clock.now() : null,
    cancelled: false,
    secret: newSecret(world.random),
    previous: null,
    queue: []
  }
  world.events.add(subscription)
  return one(world, 201, subscription, {
    secret: subscription.secret,
    secret_note: "Keep this secret: deliveries are signed with it, and it is not shown again."
  })
}

const refuseStale = (world: World, ifMatch: string | undefined, subscription: Subscription) => {
  if (ifMatch === undefined) return
  const current = JSON.stringify(shown(subscription, world.dialect))
  const etag = etagOf(current)
  if (ifMatch.split(",").some((tag) => tag.trim() === "*" || tag.trim() === etag)) return
  throw new ApiError("stale_record", "the subscription has changed since: merge and send again", {
    current,
    ...(world.dialect.etag ? { headers: { ETag: etag } } : {})
  })
}

const update = (world: World, request: WebhookRequest): Result => {
  readParameters(request.query, [])
  const input = readInput(world.store.catalogue, "update", request.body(), () => void find(world, request))
  const subscription = find(world, request)
  refuseStale(world, request.ifMatch, subscription)
  if (subscription.cancelled) {
    throw new ApiError("rule_violation", `subscription ${subscription.id} is cancelled, which cannot be undone`)
  }
  apply(world, subscription, input)
  return one(world, 200, subscription)
}

const apply = (world: World, subscription: Subscription, input: SubscriptionInput) => {
  const { url, events, description, paused, enabled, secret } = input
  if (url !== undefined) subscription.url = url
  if (events !== undefined) subscription.events = events
  if (description !== undefined) subscription.description = description
  if (paused !== undefined) subscription.paused = paused
  if (secret !== undefined && secret !== subscription.secret) {
    const until = world.clock.now() + world.limits.rotationHours * 3600 * microsPerSecond
    subscription.previous = { secret: subscription.secret, until }
    subscription.secret = secret
  }
  if (enabled === false) world.events.disable(subscription)
  // A subscription that was not disabled is not re-enabled: failcount stays (DLV-13).
  if (enabled === true && subscription.disabled !== null) {
    subscription.disabled = null
    subscription.failcount = 0
  }
}

/** The answer waits for that of the receiver. */
const test = (world: World, request: WebhookRequest): Result => {
  readParameters(request.query, [])
  refuseContent(request.body())
  const subscription = find(world, request)
  if (subscription.cancelled) {
    throw new ApiError("rule_violation", `subscription ${subscription.id} is cancelled`)
  }
  const pending = world.events.test(subscription).then(({ event, outcome, delivered }): Result => ({
    status: 200,
    body: JSON.stringify({
      eventid: event.occurrence.id,
      responsecode: outcome.status,
      responsebody: answerText(outcome),
      durationms: outcome.durationms,
      delivered
    })
  }))
  return { status: 200, body: "", pending }
}

/** One entry of the log (LOG-05). */
const entryOf = (attempt: Attempt, dialect: Dialect) => ({
  place: attempt.seq,
  text: JSON.stringify({
    eventid: attempt.event.occurrence.id,
    eventtype: attempt.event.occurrence.type,
    attempts: attempt.attempt,
    delivered: attempt.delivered,
    abandoned: attempt.abandoned,
    responsecode: attempt.outcome.status,
    responsebody: answerText(attempt.outcome),
    durationms: attempt.outcome.durationms,
    entrydate: shownInstant(attempt.at, dialect)
  })
})

const deliveries = (world: World, request: WebhookRequest): Result => {
  const { dialect, events, clock } = world
  const parameters = readParameters(request.query, ["delivered", "abandoned", "eventtype", ...pageParameters(dialect)])
  const { after, all } = readCursor(parameters)
  const flag = (name: string) => (all.has(name) ? readBoolean(name, all.get(name)!) : null)
  const delivered = flag("delivered")
  const abandoned = flag("abandoned")
  const type = all.get("eventtype")
  const subscription = find(world, request)
  const entries = events.log
    .of(subscription.id, clock.now())
    .filter(
      (attempt) =>
        (delivered === null || attempt.delivered === delivered) &&
        (abandoned === null || attempt.abandoned === abandoned) &&
        (type === undefined || attempt.event.occurrence.type === type)
    )
    .map((attempt) => entryOf(attempt, dialect))
  return { status: 200, ...page(entries, "descending", all, after, dialect, "deliveries", request.address) }
}
