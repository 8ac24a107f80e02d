/**
 * The signing secrets of a company under a new token.
 *
 * Promise: deliveries of the subscriptions that the earlier token made are accepted as before. A secret that the earlier
 * token does not open stays as it is.
 */
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Query from "../postgres/Query.ts"
import { decrypt, encrypt, randomLength } from "./SecretCipher.ts"
import * as SecretRows from "./SecretRows.ts"

/** Seals the accepted secrets again, as part of the transaction that replaces the token. Returns how many. */
export const reseal = Effect.fnUntraced(function* (
  company: string,
  earlier: Redacted.Redacted,
  token: Redacted.Redacted
) {
  const random = yield* SecureRandom.SecureRandom
  const rows = yield* Query.run(SecretRows.accepted([company]))
  const secrets = rows.flatMap(({ id, sealed }) => {
    const secret = decrypt(company, earlier, sealed)
    return secret === null ? [] : [{ id, secret }]
  })
  for (const { id, secret } of secrets) {
    const sealed = encrypt(company, token, secret, yield* random.randomBytes(randomLength))
    yield* SecretRows.replaceSealed(id, sealed)
  }
  return secrets.length
}, Effect.provide(SecureRandom.layerWebCrypto))
