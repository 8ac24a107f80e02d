/** The rules of fields: what is kept of a value. */
import { createHmac } from "node:crypto"
import * as Redacted from "effect/Redacted"
import type { FieldRule } from "../catalogue/Protection.ts"

export const exclude: FieldRule = { kind: "exclude", keep: () => null, statement: "exclude" }

/** Text in the place of the value; after it the last characters of a value that has more of them. */
export const mask = (shown: string, keepLast: number): FieldRule => ({
  kind: "mask",
  keep: (canonical) => {
    const characters = Array.from(canonical)
    return keepLast > 0 && characters.length > keepLast ? shown + characters.slice(-keepLast).join("") : shown
  },
  statement: `mask ${JSON.stringify([shown, keepLast])}`
})

/**
 * HMAC-SHA-256 of the value's canonical text, in base64url (43 characters). The same value has the same hash in every
 * field, so that hashed fields still join.
 */
export const hash = (key: Redacted.Redacted): FieldRule => {
  const secret = Redacted.value(key)
  const hmac = (text: string) => createHmac("sha256", secret).update(text, "utf8").digest("base64url")
  // Says which key it was, and nothing about it.
  return { kind: "hash", keep: hmac, statement: `hash ${hmac("tributary: which key is this?").slice(0, 12)}` }
}
