/**
 * Verification that a delivery comes from the service: SIG-01 to SIG-06, H-08 to H-10.
 *
 * Promise: a delivery is genuine only when any v1 of its header is the HMAC-SHA256 of `<t>.<raw body>` under one of the
 * secrets, and t is inside the window on both sides. The comparison takes constant time and tries every candidate.
 * Nothing is read from the body.
 *
 * The code is separate from the sender of the reference server on purpose: a shared mistake would not show.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import * as Duration from "effect/Duration"
import * as Redacted from "effect/Redacted"
import type { Delivery, Verification, VerifySettings } from "../../../src/connector/Delivery.ts"

/** More signatures than any rotation needs are rejected. */
const signaturesMax = 8

/** The time and the signatures of a header, or its fault. Schemes other than v1 are ignored. */
const read = (header: string): { readonly t: string; readonly signatures: ReadonlyArray<Buffer> } | string => {
  const times: Array<string> = []
  const signatures: Array<Buffer> = []
  for (const part of header.split(",")) {
    const equals = part.indexOf("=")
    if (equals < 1) return "has a part that is not name=value"
    const [name, value] = [part.slice(0, equals), part.slice(equals + 1)]
    if (name === "t") times.push(value)
    if (name === "v1") {
      if (!/^[0-9a-f]{64}$/.test(value)) return "has a v1 that is not 32 bytes in lower-case hex"
      signatures.push(Buffer.from(value, "hex"))
    }
  }
  const [t] = times
  if (t === undefined || times.length > 1) return "does not have exactly one t"
  if (!/^\d{1,12}$/.test(t)) return "has a t that is not a number of seconds"
  if (signatures.length === 0) return "has no v1"
  if (signatures.length > signaturesMax) return `has more than ${signaturesMax} v1`
  return { t, signatures }
}

/** Verifies the signature and the age of a delivery. */
export const verify = (delivery: Delivery, settings: VerifySettings): Verification => {
  if (delivery.signature === undefined) return { _tag: "Malformed", detail: "there is no signature" }
  const header = read(delivery.signature)
  if (typeof header === "string") return { _tag: "Malformed", detail: `the signature ${header}` }
  const { t, signatures } = header
  let genuine = false
  for (const secret of settings.secrets) {
    const key = Redacted.value(secret)
    // Everyone knows an empty key.
    if (key === "") continue
    const expected = createHmac("sha256", key).update(`${t}.`).update(delivery.body).digest()
    for (const signature of signatures) {
      // No early exit: the duration must not reveal which candidate matched.
      if (timingSafeEqual(signature, expected)) genuine = true
    }
  }
  if (!genuine) return { _tag: "Forged" }
  const ageSeconds = Math.floor(delivery.receivedAt / 1000) - Number(t)
  // A time that cannot be compared (NaN) is not recent.
  const isRecent =
    ageSeconds <= Duration.toSeconds(settings.tolerance) && -ageSeconds <= Duration.toSeconds(settings.aheadMax)
  if (!isRecent) return { _tag: "Stale", ageSeconds }
  return { _tag: "Genuine", sentAt: Number(t) }
}
