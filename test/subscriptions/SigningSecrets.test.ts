/** Encryption of signing secrets: the keys that decrypt one, and the stored form, which reveals nothing of it. */
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import { decrypt, encrypt } from "../../src/subscriptions/SecretCipher.ts"

const token = Redacted.make("svc_tok_9b1f0c33ab54")
const secret = Redacted.make("whsec_dGhlIHNlY3JldCB0aGF0IG5vYm9keSBzaG91bGQgc2Vl")
const bytes = (first: number) => Uint8Array.from({ length: 28 }, (_, index) => (first + index * 7) % 256)
const opened = (company: string, key: Redacted.Redacted, sealed: Uint8Array) => {
  const plaintext = decrypt(company, key, sealed)
  return plaintext === null ? null : Redacted.value(plaintext)
}

describe("an encrypted signing secret", () => {
  it("decrypts only with its own token and company", () => {
    const sealed = encrypt("main", token, secret, bytes(1))
    assert.strictEqual(opened("main", token, sealed), Redacted.value(secret))
    assert.isNull(opened("other", token, sealed))
    assert.isNull(opened("main", Redacted.make("svc_tok_9b1f0c33ab55"), sealed))
  })

  it("does not decrypt when any byte is changed or missing", () => {
    const sealed = encrypt("main", token, secret, bytes(1))
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Uint8Array.from(sealed)
      changed[index] = changed[index]! ^ 1
      assert.isNull(opened("main", token, changed), `byte ${index}`)
      assert.isNull(opened("main", token, sealed.subarray(0, index)), `cut at ${index}`)
    }
  })

  it("shows neither secret nor token, and differs each time", () => {
    const sealed = [encrypt("main", token, secret, bytes(1)), encrypt("main", token, secret, bytes(2))]
    for (const one of sealed) {
      for (const form of ["utf8", "base64", "hex"] as const) {
        const text = Buffer.from(one).toString(form)
        for (const canary of [secret, token]) {
          assert.notInclude(text, Buffer.from(Redacted.value(canary)).toString(form).slice(0, 12))
        }
      }
    }
    assert.notDeepEqual(sealed[0]!.subarray(45), sealed[1]!.subarray(45))
  })

  it("is redacted when printed after decryption", () => {
    const plaintext = decrypt("main", token, encrypt("main", token, secret, bytes(1)))
    assert.notInclude(`${JSON.stringify({ plaintext })} ${inspect(plaintext)}`, "whsec_")
  })
})
