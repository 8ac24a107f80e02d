/**
 * Requests to the receivers of routes: Slack and compatible ones, any HTTP endpoint, e-mail.
 *
 * Promise: an answer decides whether the receiver has the messages. Without an answer the outcome is known only where
 * nothing was sent, as after a refused connection. No error contains an address, a password or a secret.
 *
 * Slack gets `{"text": …}`. An HTTP endpoint gets `{"id", "route", "messages": [{"id", "event": "start" | "worse" | "end",
 * "severity": "warning" | "critical", "kind", "title", "company", "subject", "since", "at", "what", "consequence",
 * "remedy"}]}`. With a secret it is signed as Standard Webhooks defines: `webhook-signature` is `v1,` and the base64 of the
 * HMAC-SHA256 of id, time and body. `Idempotency-Key`, `webhook-id` and the Message-ID of an e-mail are the same for each
 * attempt.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Redacted from "effect/Redacted"
import { Webhook } from "standardwebhooks"
import { ProxyFailed } from "../http/Proxies.ts"
import * as RetryAfter from "../time/RetryAfter.ts"
import { type Answer, requestTimeout } from "./Answer.ts"
import * as Email from "./Email.ts"
import type { AlertMessage } from "./MessageStore.ts"
import { jsonOf, textOf } from "./MessageText.ts"
import type { Receiver, Route } from "./Route.ts"

/** Whether a receiver recognizes a request that is sent again, by its key. */
export const isIdempotent = ({ type }: Receiver): boolean => type === "http"

/** The key of a batch. The time separates installations that share a receiver. */
export const keyOf = ([first]: ReadonlyArray<AlertMessage>): string =>
  first === undefined ? "" : `tributary-${first.id}-${first.at.getTime()}`

/** Errors before the first byte of a request was sent. */
const notSent =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_.*|ERR_PROXY_.*|CERT_.*|.*_CERT(?:_.*)?|.*_SIGNATURE|ERR_SSL_.*)$/

/** The code of a network error, and the proxy that it is of; no message, which may contain the address. */
const failureOf = (error: unknown): { readonly code: string | null; readonly proxy: string | null } => {
  let cause: unknown = error
  for (let depth = 0; depth < 6 && typeof cause === "object" && cause !== null; depth += 1) {
    if ("code" in cause && typeof cause.code === "string")
      return { code: cause.code, proxy: cause instanceof ProxyFailed ? cause.proxy : null }
    if ("reason" in cause) cause = cause.reason
    else if ("errors" in cause && Array.isArray(cause.errors)) cause = cause.errors[0]
    else cause = "cause" in cause ? cause.cause : null
  }
  return { code: null, proxy: null }
}

/** A Retry-After in seconds or as a date. */
export const retryAfterOf = (header: string | undefined, nowMs: number): Duration.Duration | null => {
  const ms = RetryAfter.millisOf(header, nowMs)
  return ms === null ? null : Duration.millis(ms)
}

/** The secret is a text of the receiver's choice, not `whsec_` and base64. */
const signature = (secret: Redacted.Redacted, key: string, seconds: number, body: string): string =>
  new Webhook(Redacted.value(secret), { format: "raw" }).sign(key, new Date(seconds * 1000), body)

const post = Effect.fnUntraced(function* (
  url: Redacted.Redacted,
  body: string,
  headers: Readonly<Record<string, string>>
): Effect.fn.Return<Answer, never, HttpClient.HttpClient> {
  // The status decides. The end of the scope closes a connection whose body has not ended.
  const client = HttpClient.withScope(yield* HttpClient.HttpClient)
  const request = HttpClientRequest.post(Redacted.value(url)).pipe(
    HttpClientRequest.setHeaders(headers),
    HttpClientRequest.bodyText(body, "application/json")
  )
  const timedOut: Answer = { type: "unknown", error: `no answer within ${Duration.toSeconds(requestTimeout)} s` }
  return yield* client.execute(request).pipe(
    Effect.flatMap((response) =>
      Effect.map(Clock.currentTimeMillis, (nowMs): Answer =>
        response.status >= 200 && response.status < 300
          ? { type: "accepted" }
          : {
              type: "refused",
              error: `the receiver answered ${response.status}`,
              retryAfter: retryAfterOf(response.headers["retry-after"], nowMs)
            }
      )
    ),
    Effect.scoped,
    Effect.catch((failure) => {
      const { code, proxy } = failureOf(failure)
      const error = `the request ${proxy === null ? "" : `through the proxy ${proxy} `}failed (${code ?? "no answer"})`
      return Effect.succeed<Answer>(
        code !== null && notSent.test(code) ? { type: "refused", error, retryAfter: null } : { type: "unknown", error }
      )
    }),
    Effect.timeoutOrElse({ duration: requestTimeout, orElse: () => Effect.succeed(timedOut) })
  )
})

/** Slack reads these characters as markup. */
const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** Sends messages together, once. */
export const send = Effect.fnUntraced(function* (
  { name, receiver }: Pick<Route, "name" | "receiver">,
  messages: ReadonlyArray<AlertMessage>
): Effect.fn.Return<Answer, never, HttpClient.HttpClient> {
  const key = keyOf(messages)
  switch (receiver.type) {
    case "slack":
      return yield* post(receiver.url, JSON.stringify({ text: escaped(textOf(messages)) }), { "idempotency-key": key })
    case "http": {
      const body = JSON.stringify({ id: key, route: name, messages: messages.map(jsonOf) })
      const seconds = Math.floor((yield* Clock.currentTimeMillis) / 1000)
      const signed =
        receiver.secret === null ? {} : { "webhook-signature": signature(receiver.secret, key, seconds, body) }
      return yield* post(receiver.url, body, {
        "idempotency-key": key,
        "webhook-id": key,
        "webhook-timestamp": String(seconds),
        ...signed
      })
    }
    case "email":
      return yield* Email.send(receiver, key, messages)
  }
})
