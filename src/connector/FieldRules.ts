/** The rules of fields: what is kept of a value. */
import { createHmac, createSecretKey } from "node:crypto"
import * as Redacted from "effect/Redacted"
import type { FieldRule } from "../catalogue/Protection.ts"

export const exclude: FieldRule = { kind: "exclude", keep: () => null, form: null, statement: "exclude" }

/** Text in the place of the value; after it the last characters of a free text that has more of them. */
export const mask = (shown: string, keepLast: number): FieldRule => ({
  kind: "mask",
  keep: (canonical, isFreeText) => {
    if (keepLast === 0 || isFreeText !== true) return shown
    const characters = Array.from(canonical)
    return characters.length > keepLast ? shown + characters.slice(-keepLast).join("") : shown
  },
  form: `^${shown.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}(.{${keepLast}})?$`,
  statement: `mask ${JSON.stringify(keepLast === 0 ? [shown, 0] : [shown, keepLast, "of free text"])}`
})

const cachedMax = 20_000
const cachedLengthMax = 200

/** A function that remembers its latest results: most values of a resource occur again and again. */
const cached = (compute: (text: string) => string) => {
  let recent = new Map<string, string>()
  let earlier = new Map<string, string>()
  return (text: string): string => {
    const known = recent.get(text)
    if (known !== undefined) return known
    const result = earlier.get(text) ?? compute(text)
    if (text.length > cachedLengthMax) return result
    if (recent.size >= cachedMax) [earlier, recent] = [recent, new Map()]
    recent.set(text, result)
    return result
  }
}

/**
 * HMAC-SHA-256 of the value's canonical text, in base64url (43 characters). The same value has the same hash in every
 * field, so that hashed fields still join.
 */
export const hash = (key: Redacted.Redacted): FieldRule => {
  const secret = createSecretKey(Buffer.from(Redacted.value(key), "utf8"))
  const hmac = cached((text) => createHmac("sha256", secret).update(text, "utf8").digest("base64url"))
  // Says which key it was, and nothing about it.
  const statement = `hash ${hmac("tributary: which key is this?").slice(0, 12)}`
  return { kind: "hash", keep: hmac, form: "^[A-Za-z0-9_-]{43}$", statement }
}
