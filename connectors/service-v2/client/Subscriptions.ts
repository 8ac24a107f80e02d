/**
 * The webhook subscriptions of a token: WEBHOOK-12 to WEBHOOK-19, LOG-01 to LOG-07.
 *
 * Promise: every attempt of one call carries the same Idempotency-Key (EP-01, EP-02), so that a retry makes no second
 * subscription, rotates nothing twice and sends no second test. A secret is `Redacted` from the moment it is read, and
 * stands in no failure and no answer of this connector. Members that are not known are passed over; a member that is
 * needed and missing is a {@link SourceError.Malformed}. Times stay the text that was sent.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import * as SourceError from "../../../src/connector/SourceError.ts"
import type {
  Attempt,
  Created,
  LogPage,
  Subscription,
  SubscriptionChange,
  Subscriptions,
  TestResult
} from "../../../src/connector/Subscriptions.ts"
import { type Answer, type RequestContext, failure, Failed } from "./Answer.ts"
import { ClientConfigError } from "./BaseAddress.ts"
import { mayBeRemoval, resourceOf } from "./Deliveries.ts"
import { findRecord, isObject, type JsonObject, member, parse, Unreadable } from "./Envelope.ts"
import type { Call, Exchange } from "./Exchange.ts"
import { memberStart, valueEnd } from "./JsonText.ts"
import type * as Listing from "./Listing.ts"
import { malformed } from "./Listing.ts"
import { isStorable } from "./Values.ts"

export interface SubscriptionsOptions {
  /** The field by which a new secret is sent; the documents do not name it (SIG-12, H-07). */
  readonly rotateField: string
  /** Says which resources lose records without trace (K-06). */
  readonly catalogue: Catalogue
}

export const rotateFieldDefault = "secret"

const path = "/webhooks"
const pathOf = (id: string) => `${path}/${encodeURIComponent(id)}`

/** Fields of a subscription that no secret may be sent in: they are shown again. */
const shownFields: ReadonlySet<string> = new Set(["id", "url", "events", "description", "paused", "enabled", "cancel"])

/** What is wrong with the name of the field; null when nothing is. */
export const rotateFieldProblem = (name: string): ClientConfigError | null =>
  /^[A-Za-z_]\w{0,99}$/.test(name) && !shownFields.has(name)
    ? null
    : new ClientConfigError({
        setting: "rotateField",
        problem: `is "${name}", which no secret can be sent in`,
        remedy: "give the name of the field that takes a new secret, or leave it out"
      })

// -- answers ----------------------------------------------------------------------------------------------------------

/** A record of an answer, and where it begins in the text. */
interface Found {
  readonly text: string
  readonly from: number
  readonly value: JsonObject
}

const without = (what: string, name: string) => new Unreadable(`${what} has no readable ${name}`, true)

/** The text of a member; null when it is absent or null, undefined when it is no text. */
const textOf = (value: JsonObject, name: string): string | null | undefined => {
  const found = member(value, name) ?? null
  return found === null || (typeof found === "string" && isStorable(found)) ? found : undefined
}

const textsOf = (value: unknown): ReadonlyArray<string> | null =>
  Array.isArray(value) && value.every((one) => typeof one === "string" && isStorable(one)) ? value : null

const countOf = (value: JsonObject, name: string): number | null => {
  const found = member(value, name)
  return typeof found === "number" && Number.isSafeInteger(found) && found >= 0 ? found : null
}

/** The number of a subscription as it was sent. */
const idOf = ({ text, from, value }: Found): string | null => {
  const found = member(value, "id")
  const start = typeof found === "number" ? memberStart(text, from, "id") : null
  const id = start === null ? found : text.slice(start, valueEnd(text, start))
  return typeof id === "string" && /^[1-9]\d{0,18}$/.test(id) ? id : null
}

const subscriptionOf = (found: Found): Subscription | Unreadable => {
  const what = "the subscription"
  const { value } = found
  const id = idOf(found)
  if (id === null) return without(what, "id")
  const url = textOf(value, "url") ?? ""
  if (url === "") return without(what, "url")
  const events = textsOf(member(value, "events"))
  if (events === null) return without(what, "events")
  const paused = member(value, "paused")
  if (typeof paused !== "boolean") return without(what, "paused")
  const cancelled = member(value, "cancel") ?? false
  if (typeof cancelled !== "boolean") return without(what, "cancel")
  const description = textOf(value, "description")
  if (description === undefined) return without(what, "description")
  const lastDeliveryAt = textOf(value, "lastdeliverydate")
  if (lastDeliveryAt === undefined) return without(what, "lastdeliverydate")
  const disabledAt = textOf(value, "disableddate")
  if (disabledAt === undefined) return without(what, "disableddate")
  return {
    id,
    url,
    events,
    description,
    paused,
    failCount: countOf(value, "failcount"),
    lastDeliveryAt: lastDeliveryAt === "" ? null : lastDeliveryAt,
    disabledAt: disabledAt === "" ? null : disabledAt,
    cancelled
  }
}

/** What a receiver answered may be any bytes: what no text can hold is replaced. */
const readable = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD")

/** The status of an answer; null when none arrived (H-18). */
const statusOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599 ? value : null

/** An entry of the delivery log (LOG-05). */
const attemptOf = ({ value }: Found): Attempt | Unreadable => {
  const what = "an entry of the delivery log"
  const eventId = textOf(value, "eventid") ?? ""
  if (eventId === "") return without(what, "eventid")
  const eventType = textOf(value, "eventtype") ?? ""
  if (eventType === "") return without(what, "eventtype")
  const attempts = countOf(value, "attempts")
  if (attempts === null) return without(what, "attempts")
  const delivered = member(value, "delivered")
  if (typeof delivered !== "boolean") return without(what, "delivered")
  const abandoned = member(value, "abandoned")
  if (typeof abandoned !== "boolean") return without(what, "abandoned")
  const at = textOf(value, "entrydate") ?? ""
  if (at === "") return without(what, "entrydate")
  const responseBody = member(value, "responsebody")
  return {
    eventId,
    eventType,
    resource: resourceOf(eventType),
    attempts,
    delivered,
    abandoned,
    responseCode: statusOf(member(value, "responsecode")),
    responseBody: typeof responseBody === "string" ? readable(responseBody) : "",
    durationMs: countOf(value, "durationms"),
    at
  }
}

/** The members of the answer, those of its members included: how they are called is not documented. */
const flat = (value: JsonObject): ReadonlyArray<readonly [name: string, value: unknown]> =>
  Object.entries(value).flatMap(([name, given]) =>
    isObject(given)
      ? Object.entries(given).map(([inner, one]) => [`${name}.${inner}`, one] as const)
      : [[name, given] as const]
  )

/** How a test went, by what the values are and how they are called (LOG-02, H-14). */
const testOf = (value: JsonObject, raw: string): TestResult => {
  const members = flat(value)
  const named = <A>(shape: RegExp, read: (given: unknown) => A | null): A | null =>
    members.map(([name, given]) => (shape.test(name) ? read(given) : null)).find((one) => one !== null) ?? null
  const text = (given: unknown) => (typeof given === "string" ? readable(given) : null)
  const span = (given: unknown) => (typeof given === "number" && given >= 0 && Number.isFinite(given) ? given : null)
  const responseCode = named(/code|status/i, statusOf)
  const isSilent = members.some(([name, given]) => /code|status/i.test(name) && given === null)
  const isDelivered = named(/delivered|success/i, (given) => (typeof given === "boolean" ? given : null))
  return {
    eventId: named(/event_?id$/i, text),
    responseCode,
    responseBody: named(/body$/i, text),
    durationMs: named(/duration|elapsed|round/i, span) ?? named(/time|ms$/i, span),
    delivered: isDelivered ?? (responseCode !== null && responseCode >= 200 && responseCode < 300),
    isSilent: responseCode === null && isSilent,
    raw
  }
}

// -- requests ---------------------------------------------------------------------------------------------------------

/** A key that no other call has. */
const newKey = Effect.map(Effect.all(Array.from({ length: 4 }, () => Random.nextIntBetween(0, 0xffff_ffff))), (parts) =>
  parts.map((part) => part.toString(16).padStart(8, "0")).join("")
)

/** Reads one entry of a list. */
type Reader<A> = (found: Found) => A | Unreadable

/** The entries of a list, read. */
interface Entries<A> extends Listing.Listed {
  readonly entries: ReadonlyArray<A>
}

/** How often a list is begun again when its pages moved. */
const restartsMax = 3
/** Answers of success that have no body. */
const withoutBody: ReadonlySet<number> = new Set([202, 204, 205])
/** Shorter texts stand in half of all words. */
const secretLengthMin = 8

export const make = (
  exchange: Exchange,
  listing: Listing.Listing,
  { rotateField, catalogue }: SubscriptionsOptions
): Subscriptions => {
  /** Secrets that went through here: whatever the source sends back is told without them. */
  const secrets: Array<Redacted.Redacted> = []
  const remember = (secret: Redacted.Redacted) => {
    if (!secrets.some((one) => Redacted.value(one) === Redacted.value(secret))) secrets.push(secret)
  }
  const hide = (text: string): string =>
    secrets
      .map((secret) => Redacted.value(secret))
      .filter((secret) => secret.length >= secretLengthMin)
      .reduce((told, secret) => told.replaceAll(secret, "[secret]"), text)
      .replaceAll(/whsec_[\w-]{8,}/g, "[secret]")

  /** A failure without secrets, also when the source sent one back. */
  const failed = (answer: Answer, asking: RequestContext): Failed => {
    const { reason, requestId, attemptsMax } = failure(answer, {
      ...asking,
      scrub: (text) => hide(asking.scrub(text))
    })
    if (reason._tag !== "Refused") return new Failed(reason, requestId, attemptsMax)
    const { status, code, field, detail, problems } = reason
    const refused = new SourceError.Refused({ status, code, field, detail, problems, current: null })
    return new Failed(refused, requestId, attemptsMax)
  }

  /**
   * Why nothing was done, for all that is known; null for a success. A body that is none of this API's under a status of
   * success is somebody else's word: the request may not have arrived.
   */
  const problemOf = (answer: Answer, asking: RequestContext): Failed | null => {
    const { status, bytes } = answer
    if (status < 200 || status >= 300) return failed(answer, asking)
    if (bytes.length === 0 && withoutBody.has(status)) return null
    const parsed = parse(bytes)
    if (parsed instanceof Unreadable) return malformed(answer, parsed)
    return isObject(parsed.value) && isObject(member(parsed.value, "error"))
      ? malformed(answer, new Unreadable("the answer carries an error under a status of success", true))
      : null
  }

  const found = (answer: Answer): Found | Unreadable => {
    const parsed = parse(answer.bytes)
    if (parsed instanceof Unreadable) return parsed
    const record = findRecord(parsed)
    return record instanceof Unreadable ? record : { text: parsed.text, from: record.from, value: record.value }
  }

  /** The subscription of that number. */
  const shown =
    (id: string) =>
    (answer: Answer): Subscription | Failed => {
      const record = found(answer)
      const read = record instanceof Unreadable ? record : subscriptionOf(record)
      if (read instanceof Unreadable) return malformed(answer, read)
      return read.id === id
        ? read
        : malformed(answer, new Unreadable(`the answer is the subscription ${read.id}`, true))
    }

  const write = <A>(
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

  const listOf = <A>(at: string, name: string, parameters: ReadonlyArray<Listing.Parameter>, one: Reader<A>) => ({
    path: at,
    name,
    parameters: () => parameters,
    read: (answer: Answer): Entries<A> | Failed => {
      const listed = listing.texts(name)(answer)
      if (listed instanceof Failed) return listed
      const entries: Array<A> = []
      for (const [place, value] of listed.list.items.entries()) {
        if (!isObject(value)) return malformed(answer, new Unreadable(`an entry of ${name} is no object`, true))
        const read = one({ text: listed.texts()[place]!, from: 0, value })
        if (read instanceof Unreadable) return malformed(answer, read)
        entries.push(read)
      }
      return { ...listed, entries }
    }
  })

  const pages = listOf(path, "webhooks", [], subscriptionOf)

  const list: Subscriptions["list"] = Effect.gen(function* () {
    const known = new Map<string, Subscription>()
    let token: string | null = null
    do {
      const turned: Listing.LinkedPage<Entries<Subscription>> = yield* listing.turn(pages, token)
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

  const get: Subscriptions["get"] = (id) =>
    exchange.send(
      { method: "GET", path: pathOf(id), headers: {}, body: null, pageParameters: null },
      (answer, asking) => {
        const problem = problemOf(answer, asking)
        return problem === null ? shown(id)(answer) : problem.reason._tag === "NotFound" ? null : problem
      }
    )

  /** What the documents promise of the answer names neither the number nor the events: then it is looked for. */
  const made = (given: {
    readonly url: string
    readonly description: string
    readonly events: ReadonlyArray<string>
  }) =>
    Effect.flatMap(list, (subscriptions) => {
      const events = [...given.events].sort().join()
      const alike = subscriptions
        .filter(({ url, description }) => url === given.url && (description ?? "") === given.description)
        .filter((one) => [...one.events].sort().join() === events)
        .sort((one, other) => (BigInt(one.id) < BigInt(other.id) ? 1 : -1))
      return alike[0] === undefined
        ? new SourceError.SourceError({
            reason: new SourceError.Malformed({ detail: "a subscription was made, and the list does not show it" }),
            request: { method: "POST", path, requestId: null }
          })
        : Effect.succeed(alike[0])
    })

  const create: Subscriptions["create"] = ({ url, events, description }) =>
    write({ method: "POST", path }, { url, events, description }, (answer, asking) => {
      const problem = problemOf(answer, asking)
      if (problem !== null) return problem
      const record = found(answer)
      if (record instanceof Unreadable) return malformed(answer, record)
      const secret = member(record.value, "secret")
      if (typeof secret !== "string" || secret === "") return malformed(answer, without("the answer", "secret"))
      const redacted = Redacted.make(secret)
      remember(redacted)
      const isWhole = ["id", "events"].every((name) => member(record.value, name) !== undefined)
      const subscription = isWhole ? subscriptionOf(record) : null
      return subscription instanceof Unreadable ? malformed(answer, subscription) : { subscription, secret: redacted }
    }).pipe(
      Effect.flatMap(({ subscription, secret }) =>
        subscription === null
          ? Effect.map(made({ url, events, description }), (one): Created => ({ subscription: one, secret }))
          : Effect.succeed<Created>({ subscription, secret })
      )
    )

  const gone = (id: string, method: Call["method"]) =>
    new SourceError.SourceError({
      reason: new SourceError.NotFound({ detail: "the token has no such subscription" }),
      request: { method, path: pathOf(id), requestId: null }
    })

  /** A success that does not show the subscription is one all the same, and it is read again. */
  const patch = (id: string, body: JsonObject) =>
    write({ method: "PATCH", path: pathOf(id) }, body, (answer, asking) => {
      const problem = problemOf(answer, asking)
      if (problem !== null) return problem
      const after = shown(id)(answer)
      return after instanceof Failed ? null : after
    }).pipe(
      Effect.flatMap((one) => (one === null ? get(id) : Effect.succeed(one))),
      Effect.flatMap((one) => (one === null ? gone(id, "PATCH") : Effect.succeed(one)))
    )

  const update: Subscriptions["update"] = (id, { secret, ...change }: SubscriptionChange) =>
    Effect.suspend(() => {
      if (secret === undefined) return patch(id, change)
      remember(secret)
      return patch(id, { ...change, [rotateField]: Redacted.value(secret) })
    })

  /** How the source answers a cancelling is not documented: any success is one (H-13), whatever it shows. */
  const cancelled = (before: Subscription) =>
    write({ method: "DELETE", path: pathOf(before.id) }, null, (answer, asking) => {
      const problem = problemOf(answer, asking)
      if (problem === null) {
        const after = shown(before.id)(answer)
        return { ...(after instanceof Failed ? before : after), cancelled: true }
      }
      // It was there a moment ago: then it is the way that is not.
      const { _tag } = problem.reason
      return answer.status === 405 || _tag === "NotImplemented" || _tag === "NotFound" ? null : problem
    })

  const cancel: Subscriptions["cancel"] = Effect.fnUntraced(function* (id) {
    const before = yield* get(id)
    if (before === null) return yield* gone(id, "DELETE")
    const after = yield* cancelled(before)
    if (after !== null) return after
    return before.paused ? before : yield* patch(id, { paused: true })
  })

  // Counted apart from all other requests, ten a minute (LOG-03): its 429 tells nothing about the others.
  const test: Subscriptions["test"] = (id) =>
    write({ method: "POST", path: `${pathOf(id)}/test`, isCountedApart: true }, null, (answer, asking) => {
      const problem = problemOf(answer, asking)
      if (problem !== null) return problem
      const record = found(answer)
      if (record instanceof Unreadable) return malformed(answer, record)
      return testOf(record.value, hide(asking.scrub(readable(record.text))))
    })

  const deliveries: Subscriptions["deliveries"] = ({ id, delivered, abandoned, eventType, token }) => {
    const parameters: Array<Listing.Parameter> = []
    if (delivered !== undefined) parameters.push(["delivered", String(delivered)])
    if (abandoned !== undefined) parameters.push(["abandoned", String(abandoned)])
    if (eventType !== undefined) parameters.push(["eventtype", eventType])
    return Effect.map(
      listing.turn(listOf(`${pathOf(id)}/deliveries`, "deliveries", parameters, attemptOf), token),
      ({ listed, next, repeated }): LogPage => ({ attempts: listed.entries.slice(repeated), next })
    )
  }

  const mayRemove: Subscriptions["mayRemove"] = (eventType) => {
    const resource = resourceOf(eventType)
    return mayBeRemoval(eventType) && resource !== null && catalogue.resources.get(resource)?.removes === true
  }

  return { mayRemove, list, get, create, update, cancel, test, deliveries }
}
