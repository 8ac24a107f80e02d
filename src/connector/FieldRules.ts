/** The rules of fields: what is kept of a value. */
import { createHash, createHmac, hash as hashOnce } from "node:crypto"
import * as Redacted from "effect/Redacted"
import type { FieldRule } from "../catalogue/Protection.ts"

export const exclude: FieldRule = { kind: "exclude", keep: () => null, form: null, statement: "exclude" }

/** Text in the place of the value; after it the last characters of a free text that has more of them. */
export const mask = (shown: string, keepLast: number): FieldRule => ({
  kind: "mask",
  keep: (canonical, isFreeText) => {
    if (keepLast === 0 || isFreeText !== true) return shown
    // A character beyond the basic plane has two units.
    const end = Array.from(canonical.slice(-2 * keepLast - 2)).slice(-keepLast - 1)
    return end.length > keepLast ? shown + end.slice(1).join("") : shown
  },
  form: `^${shown.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}(.{${keepLast}})?$`,
  statement: `mask ${JSON.stringify(keepLast === 0 ? [shown, 0] : [shown, keepLast, "of free text"])}`
})

const slots = 32_768
const cachedLengthMax = 200

/**
 * A function that remembers results: most values of a resource occur again and again. A text has two slots, by a number that
 * its characters give, so that values which never occur again cost little.
 */
const cached = (compute: (text: string) => string) => {
  const texts = Array.from<string | undefined>({ length: slots })
  const results = Array.from({ length: slots }, () => "")
  return (text: string): string => {
    if (text.length > cachedLengthMax) return compute(text)
    let slot = text.length
    for (let at = 0; at < text.length; at++) slot = (Math.imul(slot, 31) + text.charCodeAt(at)) | 0
    slot = (slot ^ (slot >>> 15)) & (slots - 1)
    if (texts[slot] === text) return results[slot]!
    const other = slot ^ 1
    if (texts[other] === text) return results[other]!
    const result = compute(text)
    texts[other] = texts[slot]
    results[other] = results[slot]!
    texts[slot] = text
    results[slot] = result
    return result
  }
}

const blockBytes = 64
const digestBytes = 32
const shortLengthMax = 512

/**
 * HMAC-SHA-256 in base64url. Of a short text it is two hashes over buffers that begin with the padded key (RFC 2104), which
 * takes half the time of an HMAC object.
 */
const hmacWith = (key: Buffer): ((text: string) => string) => {
  const block = key.length > blockBytes ? createHash("sha256").update(key).digest() : key
  const beginning = (moreBytes: number, pad: number) => {
    const buffer = Buffer.alloc(blockBytes + moreBytes)
    for (let at = 0; at < blockBytes; at++) buffer[at] = (block[at] ?? 0) ^ pad
    return buffer
  }
  // A unit of a string takes at most three bytes.
  const inner = beginning(shortLengthMax * 3, 0x36)
  const outer = beginning(digestBytes, 0x5c)
  return (text) => {
    if (text.length > shortLengthMax) return createHmac("sha256", key).update(text, "utf8").digest("base64url")
    const end = blockBytes + inner.write(text, blockBytes)
    outer.write(hashOnce("sha256", inner.subarray(0, end), "binary"), blockBytes, "latin1")
    return hashOnce("sha256", outer, "base64url")
  }
}

/**
 * HMAC-SHA-256 of the value's canonical text, in base64url (43 characters). The same value has the same hash in every
 * field, so that hashed fields still join.
 */
export const hash = (key: Redacted.Redacted): FieldRule => {
  const hmac = cached(hmacWith(Buffer.from(Redacted.value(key), "utf8")))
  // Says which key it was, and nothing about it.
  const statement = `hash ${hmac("tributary: which key is this?").slice(0, 12)}`
  return { kind: "hash", keep: hmac, form: "^[A-Za-z0-9_-]{43}$", statement }
}
