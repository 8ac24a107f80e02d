/**
 * What the receivers of routes get: Slack and compatible ones, any HTTP endpoint, e-mail.
 *
 * Promise: no error contains the path of an address, a password or a secret.
 *
 * Slack gets `{"text": …}`. An HTTP endpoint gets `{"id", "route", "messages": [{"id", "event": "start" | "worse" | "end",
 * "severity": "warning" | "critical", "kind", "title", "company", "subject", "since", "at", "what", "consequence",
 * "remedy"}]}`. With a secret it is signed as Standard Webhooks defines: `webhook-signature` is `v1,` and the base64 of the
 * HMAC-SHA256 of id, time and body. `Idempotency-Key`, `webhook-id` and the Message-ID of an e-mail are the same for each
 * attempt.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Webhook } from "standardwebhooks"
import { type Outcome, post } from "../delivery/Sending.ts"
import type { Transport } from "../delivery/Transport.ts"
import * as Email from "./Email.ts"
import type { AlertMessage } from "./MessageStore.ts"
import { jsonOf, textOf } from "./MessageText.ts"
import type { Receiver, Route } from "./Route.ts"

/** Whether a receiver recognizes a request that is sent again, by its key. */
export const isIdempotent = ({ type }: Receiver): boolean => type === "http"

/** The key of messages that are sent together. The time separates installations that share a receiver. */
export const keyOf = ([first]: ReadonlyArray<AlertMessage>): string =>
  first === undefined ? "" : `tributary-${first.id}-${first.at.getTime()}`

/** The secret is a text of the receiver's choice, not `whsec_` and base64. */
const signature = (secret: Redacted.Redacted, key: string, seconds: number, body: string): string =>
  new Webhook(Redacted.value(secret), { format: "raw" }).sign(key, new Date(seconds * 1000), body)

/** Slack reads these characters as markup. */
const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** Sends messages together, once. */
export const send = Effect.fnUntraced(function* (
  { name, receiver }: Pick<Route, "name" | "receiver">,
  transport: Transport,
  messages: ReadonlyArray<AlertMessage>
): Effect.fn.Return<Outcome> {
  const key = keyOf(messages)
  const seconds = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  const common = { "content-type": "application/json", "user-agent": "tributary", "idempotency-key": key }
  const postTo = (url: Redacted.Redacted, body: string, headers: Readonly<Record<string, string>>) =>
    // The file names the receiver, which may be of a private network.
    post(transport, { url: Redacted.value(url), allowPrivate: true, headers: { ...common, ...headers }, body })
  switch (receiver.type) {
    case "slack":
      return yield* postTo(receiver.url, JSON.stringify({ text: escaped(textOf(messages)) }), {})
    case "http": {
      const { url, secret } = receiver
      const body = JSON.stringify({ id: key, route: name, messages: messages.map(jsonOf) })
      const signed = secret === null ? {} : { "webhook-signature": signature(secret, key, seconds, body) }
      return yield* postTo(url, body, { "webhook-id": key, "webhook-timestamp": String(seconds), ...signed })
    }
    case "email":
      return yield* Email.send(receiver, key, messages)
  }
})
