/**
 * Verification of webhook deliveries, with the signature check of the engine (`client/Signature.ts`).
 *
 * Promise: an event is returned only for a body that the service signed with one of the secrets, within the time allowed.
 * Everything else is a {@link WebhookVerificationError}, without the secrets and without the body.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { isEvent } from "../../../src/connector/Delivery.ts"
import { serviceV2 } from "../catalogue/index.ts"
import { limits } from "../catalogue/limits.ts"
import * as Decode from "../client/Decode.ts"
import { deliveryReader } from "../client/Deliveries.ts"
import { kindAt, memberStart, skipSpace, valueEnd } from "../client/JsonText.ts"
import { ConfigurationError, WebhookVerificationError } from "./Errors.ts"
import * as RecordDecoder from "./RecordDecoder.ts"
import type { WebhookDeliveryInput, WebhookEvent } from "./WebhookEvent.ts"
import type { JsonObject, JsonValue } from "./Values.ts"

const signatureSeconds = limits.webhookSignatureAgeSeconds
const decoderOf = RecordDecoder.decoders()

const refused = (code: WebhookVerificationError["code"], detail: string, remedy: string) =>
  new WebhookVerificationError(`the delivery is not accepted: ${detail}: ${remedy}`, {
    code,
    status: code === "no_event" ? 400 : 401,
    remedy
  })

const headerOf = (headers: WebhookDeliveryInput["headers"], name: string): string | undefined => {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return typeof found === "string" ? found : found === undefined ? undefined : found.join(",")
}

const wrongArgument = (field: string, remedy: string) =>
  new ConfigurationError(`${field} of verifyWebhook: ${remedy}`, { code: "invalid_argument", field, remedy })

const bytesOf = (body: unknown): Uint8Array => {
  if (typeof body === "string") return new TextEncoder().encode(body)
  if (body instanceof Uint8Array) return body
  throw wrongArgument("body", "give the raw body as received, as bytes or text; a parsed body cannot be verified")
}

/** The secrets in use. None at all is a mistake of the program: it would call every delivery forged. */
const secretsOf = (secrets: WebhookDeliveryInput["secrets"]): ReadonlyArray<string> => {
  const texts = (typeof secrets === "string" ? [secrets] : [...(secrets ?? [])]).filter(
    (one) => typeof one === "string" && one !== ""
  )
  if (texts.length > 0) return texts
  throw wrongArgument("secrets", "give the signing secret that the creation of the subscription returned")
}

/** The text of `data`; null when the envelope has none. */
const dataText = (text: string): string | null => {
  const from = memberStart(text, skipSpace(text, 0), "data")
  return from === null ? null : text.slice(from, valueEnd(text, from))
}

/** The record that the event carries; null where it does not fit the catalogue. */
const recordOf = (path: string, text: string | null): JsonObject | null => {
  const resource = serviceV2.resources.get(path)
  if (resource === undefined || text === null || kindAt(text, 0) !== "object") return null
  const outcome = decoderOf(resource).one(text, 0, text.length)
  return Decode.isRejected(outcome) ? null : RecordDecoder.valueOf(outcome)
}

/**
 * Verifies a delivery and reads its event. Give the raw body as it was received, and every secret in use: two while one
 * is being rotated. Throws a {@link WebhookVerificationError}; answer the delivery with its `status`. Throws a
 * {@link ConfigurationError} without a raw body or a secret.
 */
export const verifyWebhook = (delivery: WebhookDeliveryInput): WebhookEvent => {
  const { headers, secrets, toleranceSeconds = signatureSeconds, aheadSeconds = signatureSeconds } = delivery
  const body = bytesOf(delivery.body)
  const received = delivery.now ?? Effect.runSync(Clock.currentTimeMillis)
  const receivedAt = typeof received === "number" ? received : received.getTime()
  const given = secretsOf(secrets)
  const verification = deliveryReader.verify(
    { signature: headerOf(headers, deliveryReader.signatureHeader), body, receivedAt },
    {
      secrets: given.map((one) => Redacted.make(one)),
      tolerance: Duration.seconds(toleranceSeconds),
      aheadMax: Duration.seconds(aheadSeconds)
    }
  )
  switch (verification._tag) {
    case "Malformed":
      throw refused("malformed", verification.detail, "answer 401; a sender without a signature is not the service")
    case "Forged":
      throw refused(
        "forged",
        "no signature fits any of the secrets",
        "answer 401; give the raw body as received, and every secret in use"
      )
    case "Stale":
      throw refused(
        "stale",
        verification.ageSeconds < 0
          ? `its signature is ${-verification.ageSeconds} s in the future, and ${aheadSeconds} s are allowed`
          : `it was signed ${verification.ageSeconds} s ago, and ${toleranceSeconds} s are allowed`,
        "answer 401; check the clock of this machine when all deliveries are stale"
      )
    case "Genuine":
  }
  const event = deliveryReader.read(body)
  if (!isEvent(event))
    throw refused("no_event", event.detail, "answer 400 and report it to the operator of the service")
  const text = new TextDecoder().decode(body)
  const data = dataText(text)
  const attempt = Number(headerOf(headers, "svc-delivery-attempt") ?? "")
  const common = {
    id: event.id,
    type: event.type,
    companyId: event.companyId === null ? null : Number(event.companyId),
    createdAt: event.occurredAt,
    attempt: Number.isSafeInteger(attempt) && attempt > 0 ? attempt : null
  }
  if (event.resource !== null && serviceV2.resources.has(event.resource)) {
    const recordId = event.recordId === null ? null : Number(event.recordId)
    return { ...common, resource: event.resource, recordId, data: recordOf(event.resource, data) } as WebhookEvent
  }
  const value: JsonValue = data === null ? null : RecordDecoder.exactJson(data)
  return { ...common, resource: null, recordId: null, data: value }
}
