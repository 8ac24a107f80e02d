/**
 * Encryption of signing secrets in the database.
 *
 * Promise: the database alone reveals no secret. The key comes from the company's token: a subscription belongs to the
 * token that made it, so that a secret can be decrypted exactly as long as it is of use.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto"
import * as Redacted from "effect/Redacted"

const purpose = "tributary webhook secret 1"
const version = 1
const [saltLength, nonceLength, tagLength] = [16, 12, 16]
const headLength = 1 + saltLength + nonceLength + tagLength

/** Random bytes that one encryption takes. */
export const randomLength = saltLength + nonceLength

const deriveKey = (token: Redacted.Redacted, salt: Uint8Array) =>
  new Uint8Array(hkdfSync("sha256", Redacted.value(token), salt, purpose, 32))

const associatedData = (company: string) => Buffer.from(`${purpose}\n${company}`)

/** Version, salt, nonce, tag, and the secret under AES-256-GCM; `random` is {@link randomLength} fresh bytes. */
export const encrypt = (
  company: string,
  token: Redacted.Redacted,
  secret: Redacted.Redacted,
  random: Uint8Array
): Uint8Array => {
  const salt = random.subarray(0, saltLength)
  const nonce = random.subarray(saltLength, randomLength)
  const cipher = createCipheriv("aes-256-gcm", deriveKey(token, salt), nonce, { authTagLength: tagLength })
  cipher.setAAD(associatedData(company))
  const text = Buffer.concat([cipher.update(Redacted.value(secret), "utf8"), cipher.final()])
  return Buffer.concat([Buffer.from([version]), salt, nonce, cipher.getAuthTag(), text])
}

/** Null when it was encrypted with another token or for another company, or was changed. */
export const decrypt = (company: string, token: Redacted.Redacted, sealed: Uint8Array): Redacted.Redacted | null => {
  if (sealed.length <= headLength || sealed[0] !== version) return null
  const salt = sealed.subarray(1, 1 + saltLength)
  const nonce = sealed.subarray(1 + saltLength, 1 + randomLength)
  const decipher = createDecipheriv("aes-256-gcm", deriveKey(token, salt), nonce, { authTagLength: tagLength })
  decipher.setAAD(associatedData(company))
  decipher.setAuthTag(sealed.subarray(headLength - tagLength, headLength))
  try {
    const text = Buffer.concat([decipher.update(sealed.subarray(headLength)), decipher.final()]).toString("utf8")
    return Redacted.make(text, { label: `signing secret of ${company}` })
  } catch {
    return null
  }
}
