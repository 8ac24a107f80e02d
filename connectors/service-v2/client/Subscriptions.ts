/**
 * The webhook subscriptions of a token: WEBHOOK-12 to WEBHOOK-19, LOG-01 to LOG-07.
 *
 * Promise: every attempt of one call carries the same Idempotency-Key (EP-01, EP-02), so that a retry makes no second
 * subscription, no second rotation and no second test. A secret is `Redacted` from the moment it is read, and no
 * failure or result of this connector shows it. An answer without a needed member is a {@link SourceError.Malformed}.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import { limits } from "../catalogue/limits.ts"
import * as SourceError from "../../../src/connector/SourceError.ts"
import type {
  CreatedSubscription,
  LogPage,
  Subscription,
  SubscriptionChange,
  Subscriptions
} from "../../../src/connector/Subscriptions.ts"
import { type Answer, type RequestContext, failure, Failed } from "./Answer.ts"
import { ClientConfigError } from "./BaseAddress.ts"
import { announcing, mayBeRemoval, resourceOf } from "./Deliveries.ts"
import { findRecord, isObject, type JsonObject, member, parse, Unreadable } from "./Envelope.ts"
import type { Call, Exchange } from "./Exchange.ts"
import { newKey } from "./IdempotencyKey.ts"
import type * as Listing from "./Listing.ts"
import { malformed } from "./Listing.ts"
import { SecretFilter } from "./SecretFilter.ts"
import { attemptOf, readable, type RecordText, subscriptionOf, testOf, without } from "./SubscriptionAnswers.ts"

export interface SubscriptionsOptions {
  /** The field that takes a new secret; the documents do not name it (SIG-12, H-07). */
  readonly rotateField: string
  /** Tells which resources lose records without a trace (K-06). */
  readonly catalogue: Catalogue
}

export const rotateFieldDefault = "secret"

const path = "/webhooks"
const pathOf = (id: string) => `${path}/${encodeURIComponent(id)}`

/** Fields of a subscription that answers show, and that therefore must not receive a secret. */
const shownFields: ReadonlySet<string> = new Set(["id", "url", "events", "description", "paused", "enabled", "cancel"])

/** The fault of the field name; null when it has none. */
export const rotateFieldProblem = (name: string): ClientConfigError | null =>
  /^[A-Za-z_]\w{0,99}$/.test(name) && !shownFields.has(name)
    ? null
    : new ClientConfigError({
        setting: "rotateField",
        problem: `is "${name}", which cannot carry a secret`,
        remedy: "give the name of the field that takes a new secret, or remove the setting"
      })

/** Reads one entry of a list. */
type EntryReader<A> = (found: RecordText) => A | Unreadable

/** The entries of a list, read. */
interface Entries<A> extends Listing.Listed {
  readonly entries: ReadonlyArray<A>
}

/** Restarts of a list whose pages moved. */
const restartsMax = 3
/** Answers of success that have no body. */
const withoutBody: ReadonlySet<number> = new Set([202, 204, 205])

interface SubscriptionsContext {
  readonly exchange: Exchange
  readonly listing: Listing.Listing
  readonly rotateField: string
  readonly secrets: SecretFilter
}

/** A failure without secrets, even when the source sent one back. */
const failureWithoutSecrets = ({ secrets }: SubscriptionsContext, answer: Answer, asking: RequestContext): Failed => {
  const failed = failure(answer, { ...asking, scrub: (text) => secrets.hide(asking.scrub(text)) })
  const { reason } = failed
  if (reason._tag !== "Refused") return failed
  const { kind, status, code, field, detail, problems } = reason
  const refused = new SourceError.Refused({ kind, status, code, field, detail, problems, current: null })
  return new Failed(refused, failed.requestId, failed.attemptsMax)
}

/**
 * The failure of a request that had no effect as far as known; null for a success. A success status with a body that is
 * not of this API comes from an intermediary: the request may not have arrived.
 */
const problemOf = (context: SubscriptionsContext, answer: Answer, asking: RequestContext): Failed | null => {
  const { status, bytes } = answer
  if (status < 200 || status >= 300) return failureWithoutSecrets(context, answer, asking)
  if (bytes.length === 0 && withoutBody.has(status)) return null
  const parsed = parse(bytes)
  if (parsed instanceof Unreadable) return malformed(answer, parsed)
  return isObject(parsed.value) && isObject(member(parsed.value, "error"))
    ? malformed(answer, new Unreadable("the answer carries an error, but its status is a success", true))
    : null
}

/** The record of an answer. */
const recordOf = (answer: Answer): RecordText | Unreadable => {
  const parsed = parse(answer.bytes)
  if (parsed instanceof Unreadable) return parsed
  const record = findRecord(parsed)
  return record instanceof Unreadable ? record : { text: parsed.text, from: record.from, value: record.value }
}

/** Reads the subscription with that number. */
const readSubscription =
  (id: string) =>
  (answer: Answer): Subscription | Failed => {
    const record = recordOf(answer)
    const read = record instanceof Unreadable ? record : subscriptionOf(record)
    if (read instanceof Unreadable) return malformed(answer, read)
    return read.id === id ? read : malformed(answer, new Unreadable(`the answer is the subscription ${read.id}`, true))
  }

/** Sends a change under its own idempotency key. */
const write = <A>(
  { exchange }: SubscriptionsContext,
  call: Pick<Call, "method" | "path" | "isCountedApart">,
  body: JsonObject | null,
  read: (answer: Answer, asking: RequestContext) => A | Failed
): Effect.Effect<A, SourceError.SourceError> =>
  Effect.flatMap(newKey, (key) =>
    exchange.send(
      {
        ...call,
        headers: { "idempotency-key": key },
        body: body === null ? null : new TextEncoder().encode(JSON.stringify(body)),
        pageParameters: null
      },
      read
    )
  )

const listOf = <A>(
  { listing }: SubscriptionsContext,
  at: string,
  name: string,
  parameters: ReadonlyArray<Listing.Parameter>,
  one: EntryReader<A>
) => ({
  path: at,
  name,
  parameters: () => parameters,
  read: (answer: Answer): Entries<A> | Failed => {
    const listed = listing.texts(name)(answer)
    if (listed instanceof Failed) return listed
    const entries: Array<A> = []
    for (const [place, value] of listed.list.items.entries()) {
      if (!isObject(value)) return malformed(answer, new Unreadable(`an entry of ${name} is not an object`, true))
      const read = one({ text: listed.texts()[place]!, from: 0, value })
      if (read instanceof Unreadable) return malformed(answer, read)
      entries.push(read)
    }
    return { ...listed, entries }
  }
})

const list = (context: SubscriptionsContext): Subscriptions["list"] =>
  Effect.gen(function* () {
    const pages = listOf(context, path, "webhooks", [], subscriptionOf)
    const known = new Map<string, Subscription>()
    let token: string | null = null
    do {
      const turned: Listing.LinkedPage<Entries<Subscription>> = yield* context.listing.turn(pages, token)
      for (const one of turned.listed.entries.slice(turned.repeated)) known.set(one.id, one)
      token = turned.next
    } while (token !== null)
    return [...known.values()].filter(({ cancelled }) => !cancelled)
  }).pipe(
    Effect.retry({
      times: restartsMax,
      while: ({ reason }) => reason._tag === "PageDrift" || reason._tag === "PageTokenRefused"
    })
  )

const get = (context: SubscriptionsContext, id: string): ReturnType<Subscriptions["get"]> =>
  context.exchange.send(
    { method: "GET", path: pathOf(id), headers: {}, body: null, pageParameters: null },
    (answer, asking) => {
      const problem = problemOf(context, answer, asking)
      return problem === null ? readSubscription(id)(answer) : problem.reason._tag === "NotFound" ? null : problem
    }
  )

/** Finds the new subscription in the list: the answer may lack its number or its events. */
const findCreated = (
  context: SubscriptionsContext,
  given: {
    readonly url: string
    readonly description: string
    readonly events: ReadonlyArray<string>
  }
) =>
  Effect.flatMap(list(context), (subscriptions) => {
    const events = [...given.events].sort().join()
    const alike = subscriptions
      .filter(({ url, description }) => url === given.url && (description ?? "") === given.description)
      .filter((one) => [...one.events].sort().join() === events)
      .sort((one, other) => (BigInt(one.id) < BigInt(other.id) ? 1 : -1))
    return alike[0] === undefined
      ? new SourceError.SourceError({
          reason: new SourceError.Malformed({ detail: "the subscription was created, but the list does not show it" }),
          request: { method: "POST", path, requestId: null }
        })
      : Effect.succeed(alike[0])
  })

const create = (
  context: SubscriptionsContext,
  { url, events, description, paused }: Parameters<Subscriptions["create"]>[0]
): ReturnType<Subscriptions["create"]> =>
  write(context, { method: "POST", path }, { url, events, description, paused }, (answer, asking) => {
    const problem = problemOf(context, answer, asking)
    if (problem !== null) return problem
    const record = recordOf(answer)
    if (record instanceof Unreadable) return malformed(answer, record)
    const secret = member(record.value, "secret")
    if (typeof secret !== "string" || secret === "") return malformed(answer, without("the answer", "secret"))
    const redacted = Redacted.make(secret)
    context.secrets.remember(redacted)
    const isWhole = ["id", "events"].every((name) => member(record.value, name) !== undefined)
    const subscription = isWhole ? subscriptionOf(record) : null
    return subscription instanceof Unreadable ? malformed(answer, subscription) : { subscription, secret: redacted }
  }).pipe(
    Effect.flatMap(({ subscription, secret }) =>
      subscription === null
        ? Effect.map(findCreated(context, { url, events, description }), (one): CreatedSubscription => ({
            subscription: one,
            secret
          }))
        : Effect.succeed<CreatedSubscription>({ subscription, secret })
    )
  )

const gone = (id: string, method: Call["method"]) =>
  new SourceError.SourceError({
    reason: new SourceError.NotFound({ detail: "the token has no such subscription" }),
    request: { method, path: pathOf(id), requestId: null }
  })

/**
 * Changes a subscription. After a success that does not show the subscription, the subscription is read. A new secret
 * is never shown, so reading cannot prove that it was stored. So with a secret, a body that does not show the
 * subscription is a failure: it may come from an intermediary.
 */
const patch = (context: SubscriptionsContext, id: string, body: JsonObject, { isSecret = false } = {}) =>
  write(context, { method: "PATCH", path: pathOf(id) }, body, (answer, asking) => {
    const problem = problemOf(context, answer, asking)
    if (problem !== null) return problem
    const after = readSubscription(id)(answer)
    if (!(after instanceof Failed)) return after
    return isSecret && answer.bytes.length > 0 ? after : null
  }).pipe(
    Effect.flatMap((one) => (one === null ? get(context, id) : Effect.succeed(one))),
    Effect.flatMap((one) => (one === null ? gone(id, "PATCH") : Effect.succeed(one)))
  )

const update = (context: SubscriptionsContext, id: string, { secret, ...change }: SubscriptionChange) =>
  Effect.suspend(() => {
    if (secret === undefined) return patch(context, id, change)
    context.secrets.remember(secret)
    return patch(context, id, { ...change, [context.rotateField]: Redacted.value(secret) }, { isSecret: true })
  })

/** The answer to a DELETE is not documented: any success counts (H-13). Null when the source has no DELETE. */
const sendCancel = (context: SubscriptionsContext, before: Subscription) =>
  write(context, { method: "DELETE", path: pathOf(before.id) }, null, (answer, asking) => {
    const problem = problemOf(context, answer, asking)
    if (problem === null) {
      const after = readSubscription(before.id)(answer)
      return { ...(after instanceof Failed ? before : after), cancelled: true }
    }
    // The subscription existed a moment ago, so the method is what is missing.
    const { _tag } = problem.reason
    return answer.status === 405 || _tag === "NotImplemented" || _tag === "NotFound" ? null : problem
  })

const cancel = Effect.fnUntraced(function* (context: SubscriptionsContext, id: string) {
  const before = yield* get(context, id)
  if (before === null) return yield* gone(id, "DELETE")
  const after = yield* sendCancel(context, before)
  if (after !== null) return after
  return before.paused ? before : yield* patch(context, id, { paused: true })
})

// Limited separately, ten a minute (LOG-03): its 429 does not concern other requests.
const test = (context: SubscriptionsContext, id: string) =>
  write(context, { method: "POST", path: `${pathOf(id)}/test`, isCountedApart: true }, null, (answer, asking) => {
    const problem = problemOf(context, answer, asking)
    if (problem !== null) return problem
    const record = recordOf(answer)
    if (record instanceof Unreadable) return malformed(answer, record)
    return testOf(record.value, context.secrets.hide(asking.scrub(readable(record.text))))
  })

const deliveries = (
  context: SubscriptionsContext,
  { id, delivered, abandoned, eventType, token }: Parameters<Subscriptions["deliveries"]>[0]
) => {
  const parameters: Array<Listing.Parameter> = []
  if (delivered !== undefined) parameters.push(["delivered", String(delivered)])
  if (abandoned !== undefined) parameters.push(["abandoned", String(abandoned)])
  if (eventType !== undefined) parameters.push(["eventtype", eventType])
  return Effect.map(
    context.listing.turn(listOf(context, `${pathOf(id)}/deliveries`, "deliveries", parameters, attemptOf), token),
    ({ listed, next, repeated }): LogPage => ({ attempts: listed.entries.slice(repeated), next })
  )
}

/** The sent event names that the error reports as unknown (H-01). */
const unknownEvents = ({ reason }: SourceError.SourceError, sent: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (reason._tag !== "Refused") return []
  const problems = [
    ...reason.problems,
    ...(reason.field === null ? [] : [{ field: reason.field, code: reason.code, message: reason.detail }])
  ]
  const positions = problems.flatMap(({ field, code }) => {
    const position = code === "unknown_value" ? /^events\[(\d+)\]$/.exec(field)?.[1] : undefined
    return position === undefined ? [] : [Number(position)]
  })
  return sent.filter((_, index) => positions.includes(index))
}

export const make = (
  exchange: Exchange,
  listing: Listing.Listing,
  { rotateField, catalogue }: SubscriptionsOptions
): Subscriptions => {
  const context: SubscriptionsContext = { exchange, listing, rotateField, secrets: new SecretFilter() }
  return {
    resourceOf,
    unknownEvents,
    logRetention: Duration.days(limits.webhookDeliveredDays),
    // The source retries within five minutes (DLV-08); the rest is a margin for a slow source.
    attemptDelayMax: Duration.hours(1),
    // Five minutes (DLV-04), and a margin for the time of a cycle.
    deliveryDelayMax: Duration.minutes(6),
    announcing,
    secretOverlap: Duration.hours(24),
    mayRemove: (eventType) => {
      const resource = resourceOf(eventType)
      return mayBeRemoval(eventType) && resource !== null && catalogue.resources.get(resource)?.removes === true
    },
    list: list(context),
    get: (id) => get(context, id),
    create: (request) => create(context, request),
    update: (id, change) => update(context, id, change),
    cancel: (id) => cancel(context, id),
    test: (id) => test(context, id),
    deliveries: (request) => deliveries(context, request)
  }
}
