/**
 * Encryption of secrets in the database.
 *
 * Promise: the database alone reveals no secret. The key of a signing secret comes from the company's token: a
 * subscription belongs to the token that made it, so that a secret can be decrypted exactly as long as it is of use. A
 * cipher of another purpose neither decrypts nor replaces a value of this one.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto"
import * as Redacted from "effect/Redacted"

const version = 1
const [saltLength, nonceLength, tagLength] = [16, 12, 16]
const headLength = 1 + saltLength + nonceLength + tagLength

/** Random bytes that one encryption takes. */
export const randomLength = saltLength + nonceLength

export interface Cipher {
  /** Version, salt, nonce, tag, and the secret under AES-256-GCM; `random` is {@link randomLength} fresh bytes. */
  readonly encrypt: (owner: string, key: Redacted.Redacted, secret: Redacted.Redacted, random: Uint8Array) => Uint8Array
  /** Null when it was encrypted with another key or for another owner, or was changed. */
  readonly decrypt: (owner: string, key: Redacted.Redacted, sealed: Uint8Array) => Redacted.Redacted | null
}

/** A cipher for secrets of one kind. `label` names a decrypted secret in messages. */
export const make = (purpose: string, label: (owner: string) => string): Cipher => {
  const deriveKey = (key: Redacted.Redacted, salt: Uint8Array) =>
    new Uint8Array(hkdfSync("sha256", Redacted.value(key), salt, purpose, 32))
  const associatedData = (owner: string) => Buffer.from(`${purpose}\n${owner}`)
  return {
    encrypt: (owner, key, secret, random) => {
      const salt = random.subarray(0, saltLength)
      const nonce = random.subarray(saltLength, randomLength)
      const cipher = createCipheriv("aes-256-gcm", deriveKey(key, salt), nonce, { authTagLength: tagLength })
      cipher.setAAD(associatedData(owner))
      const text = Buffer.concat([cipher.update(Redacted.value(secret), "utf8"), cipher.final()])
      return Buffer.concat([Buffer.from([version]), salt, nonce, cipher.getAuthTag(), text])
    },
    decrypt: (owner, key, sealed) => {
      if (sealed.length <= headLength || sealed[0] !== version) return null
      const salt = sealed.subarray(1, 1 + saltLength)
      const nonce = sealed.subarray(1 + saltLength, 1 + randomLength)
      const decipher = createDecipheriv("aes-256-gcm", deriveKey(key, salt), nonce, { authTagLength: tagLength })
      decipher.setAAD(associatedData(owner))
      decipher.setAuthTag(sealed.subarray(headLength - tagLength, headLength))
      try {
        const text = Buffer.concat([decipher.update(sealed.subarray(headLength)), decipher.final()]).toString("utf8")
        return Redacted.make(text, { label: label(owner) })
      } catch {
        return null
      }
    }
  }
}

/** The cipher of signing secrets: the owner is the company, and the key is its token. */
export const { encrypt, decrypt } = make("tributary webhook secret 1", (company) => `signing secret of ${company}`)
