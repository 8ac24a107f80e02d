/**
 * The requests of a comparison: GET only, one after the other.
 *
 * Promise: no more than the allowed requests are sent, retries included, and no more than the allowed ones in a minute. A
 * 429 is honored as by the connector. A refusal is an answer to compare; a fault is a {@link Gap}, and five faults in a row
 * end the comparison.
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Redacted from "effect/Redacted"
import type { BudgetShape } from "../../../src/budget/Budget.ts"
import type { RadarBounds } from "../../../src/connector/Radar.ts"
import { type SourceError, withoutTexts } from "../../../src/connector/SourceError.ts"
import { type Answer, failure, type RequestContext, type Failed, retryAfter } from "../client/Answer.ts"
import type { BaseAddress } from "../client/BaseAddress.ts"
import { isObject, type JsonObject, member, parse, Unreadable } from "../client/Envelope.ts"
import * as Exchange from "../client/Exchange.ts"
import { elements, skipSpace, memberStart } from "../client/JsonText.ts"
import { type Parameter, query } from "../client/Listing.ts"

/** An answer is missing: what it would have shown stays unchecked. */
export class Gap extends Data.TaggedError("Gap")<{ readonly reason: string }> {}

/** A list in an answer. */
export interface SeenList {
  /** The member that holds it; `bare` without one. */
  readonly key: string
  /** JSON text of each record. */
  readonly texts: ReadonlyArray<string>
  readonly records: ReadonlyArray<JsonObject>
  /** `_meta`; null where there is none. */
  readonly meta: JsonObject | null
}

/** An answer as it was seen. */
export interface Seen {
  /** Path and query below the base address. */
  readonly path: string
  /** The path with the names of its parameters, for people. */
  readonly shown: string
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly requestId: string | null
  /** Null when the body is no JSON text. */
  readonly text: string | null
  readonly value: unknown
  /** `error.code` and `error.field` of a refusal; null when the body has none. */
  readonly code: string | null
  readonly field: string | null
}

/** A 429. */
export interface Limited {
  /** Requests that were answered in the minute before. */
  readonly before: number
  readonly retryAfter: string | null
  readonly seen: Pick<Seen, "shown" | "requestId">
}

export interface Session {
  /** Sends `GET path?parameters`. `authorization` replaces the token. */
  readonly get: (
    path: string,
    parameters?: ReadonlyArray<Parameter>,
    authorization?: string
  ) => Effect.Effect<Seen, Gap | SourceError>
  /** All answers, in their order. */
  readonly answers: ReadonlyArray<Seen>
  readonly limited: ReadonlyArray<Limited>
  readonly sent: Effect.Effect<{ readonly requests: number; readonly rateLimited: number }>
  readonly base: BaseAddress
}

export interface SessionOptions extends RadarBounds {
  readonly base: BaseAddress
  readonly token: Redacted.Redacted
  readonly requestTimeout: Duration.Duration
  readonly retryAfterMax: Duration.Duration
}

/** Attempts of one request: a comparison does not wait for a service that is down. */
const attemptsMax = 3
const faultsMax = 5
const minuteMs = 60_000
const answerBytesMax = 64 * 1024 * 1024
const listKeys = ["data", "results", "items", "records"]

/** The list of an answer; null when it has none. `name` is another possible name of it. */
export const listOf = ({ text, value }: Pick<Seen, "text" | "value">, name: string): SeenList | null => {
  if (text === null) return null
  const root = skipSpace(text, 0)
  const key = Array.isArray(value)
    ? "bare"
    : isObject(value)
      ? [...listKeys, name].find((one) => Array.isArray(member(value, one)))
      : undefined
  if (key === undefined) return null
  const start = key === "bare" ? root : (memberStart(text, root, key) ?? root)
  const ranges = elements(text, start)
  const texts = Array.from({ length: ranges.length / 2 }, (_, at) => text.slice(ranges[2 * at], ranges[2 * at + 1]))
  const records = (Array.isArray(value) ? value : (member(value as JsonObject, key) as ReadonlyArray<unknown>)).map(
    (one) => (isObject(one) ? one : {})
  )
  const meta = isObject(value) ? member(value, "_meta") : undefined
  return { key, texts, records, meta: isObject(meta) ? meta : null }
}

/** Whether a refusal is about the limit. */
export const isAboutLimit = ({ status, field, code }: Seen): boolean =>
  status === 400 && (field === "limit" || code === "unknown_parameter")

const shownPath = (path: string): string => {
  const [head = "", tail] = path.split("?", 2)
  const below = head.replace(/\/-?\d+(?=\/|$)/g, "/{id}")
  return tail === undefined ? below : `${below}?${[...new URLSearchParams(tail).keys()].join("&")}`
}

/** The answer without the token, wherever the service may have sent it back. */
const seenOf = (path: string, answer: Answer, scrub: (text: string) => string): Seen => {
  const whole = parse(answer.bytes)
  const scrubbed = whole instanceof Unreadable ? "" : scrub(whole.text)
  const parsed = whole instanceof Unreadable || whole.text === scrubbed ? whole : parse(Buffer.from(scrubbed))
  const isJson = !(parsed instanceof Unreadable)
  const headers = Object.entries(answer.headers).map(([name, value]) => [name, scrub(value)] as const)
  const error = isJson && isObject(parsed.value) ? member(parsed.value, "error") : undefined
  const textOf = (name: string) => {
    const value = isObject(error) ? member(error, name) : undefined
    return typeof value === "string" ? value : null
  }
  return {
    path,
    shown: shownPath(path),
    status: answer.status,
    headers: Object.fromEntries(headers),
    requestId: answer.requestId === null ? null : scrub(answer.requestId),
    text: isJson ? parsed.text : null,
    value: isJson ? parsed.value : undefined,
    code: textOf("code"),
    field: textOf("field")
  }
}

/** Whether nothing further can be compared after the failure. */
const isEnd = ({ reason }: SourceError): boolean =>
  reason._tag === "Unauthorized" ||
  reason._tag === "Redirected" ||
  (reason._tag === "Forbidden" && reason.kind === "user")

export const make = (client: HttpClient.HttpClient, budget: BudgetShape, options: SessionOptions): Session => {
  const { base, requestsMax, requestsPerMinute } = options
  const exchange = Exchange.make(client, budget, {
    base,
    token: options.token,
    requestTimeout: options.requestTimeout,
    answerBytesMax,
    requestIdHeader: null,
    retry: { attemptsMax, backoffBase: Duration.millis(250), backoffMax: Duration.seconds(10) },
    retryAfterMax: options.retryAfterMax,
    rateLimitedWaitMax: Duration.times(options.retryAfterMax, 2)
  })
  const answers: Array<Seen> = []
  const limited: Array<Limited> = []
  /** When the last requests were sent. */
  let sentAt: Array<number> = []
  let faults = 0

  const mayBeSent = Effect.gen(function* () {
    if ((yield* exchange.usage).requests >= requestsMax) return false
    const now = yield* Clock.currentTimeMillis
    sentAt = sentAt.filter((at) => now - at < minuteMs)
    if (sentAt.length >= requestsPerMinute) {
      yield* Effect.sleep(Duration.millis(sentAt[sentAt.length - requestsPerMinute]! + minuteMs - now))
    }
    sentAt.push(yield* Clock.currentTimeMillis)
    return true
  })

  const read =
    (path: string, isOwnToken: boolean) =>
    (answer: Answer, asking: RequestContext): Seen | Failed => {
      const { status } = answer
      const seen = seenOf(path, answer, asking.scrub)
      if (status === 429) {
        const wait = retryAfter(answer.headers, asking.nowMs)
        limited.push({
          before: sentAt.length - 1,
          retryAfter: wait === null ? null : (answer.headers["retry-after"] ?? null),
          seen
        })
      }
      const isAnswer =
        (status >= 200 && status < 300) ||
        (status >= 400 && status < 500 && ![401, 408, 423, 425, 429].includes(status)) ||
        status === 501 ||
        (status === 401 && !isOwnToken)
      const isUser = status === 403 && seen.code === "forbidden"
      return isAnswer && !isUser ? seen : failure(answer, asking)
    }

  const get: Session["get"] = (path, parameters = [], authorization) => {
    const whole = `${path}${query(parameters)}`
    const headers = {
      "accept-encoding": "gzip",
      ...(authorization === undefined ? {} : { authorization })
    }
    const call = { method: "GET" as const, path: whole, headers, body: null, pageParameters: null, mayBeSent }
    return exchange.send(call, read(whole, authorization === undefined)).pipe(
      // Its message may quote values of a record.
      Effect.mapError(withoutTexts),
      Effect.tap((seen) =>
        Effect.sync(() => {
          faults = 0
          answers.push(seen)
        })
      ),
      Effect.catch((error): Effect.Effect<never, Gap | SourceError> => {
        if (error.reason._tag === "SendCancelled") {
          return Effect.fail(new Gap({ reason: `the bound of ${requestsMax} requests was reached` }))
        }
        faults++
        return isEnd(error) || faults >= faultsMax
          ? Effect.fail(error)
          : Effect.fail(new Gap({ reason: `${shownPath(whole)}: ${error.reason.handling.description}` }))
      })
    )
  }

  return {
    get,
    answers,
    limited,
    sent: Effect.map(exchange.usage, ({ requests, rateLimited }) => ({ requests, rateLimited })),
    base
  }
}
