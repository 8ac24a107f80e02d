/**
 * The signing secrets of endpoints: those of the file from the environment, the others sealed in the warehouse.
 *
 * Promise: the warehouse alone reveals no secret. A new secret is in the form of Standard Webhooks.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type { FileEndpoint } from "./Endpoint.ts"
import * as SecretCipher from "../subscriptions/SecretCipher.ts"

const cipher = SecretCipher.make("tributary endpoint secret 1", (name) => `signing secret of endpoint ${name}`)
const secretBytes = 32

/** A new secret. */
export const generate: Effect.Effect<Redacted.Redacted> = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  const bytes = yield* random.randomBytes(secretBytes)
  return Redacted.make(`whsec_${Buffer.from(bytes).toString("base64")}`, { label: "a signing secret" })
}).pipe(Effect.provide(SecureRandom.layerWebCrypto))

/** The secret of an endpoint under the key of the warehouse. */
export const seal = (name: string, key: Redacted.Redacted, secret: Redacted.Redacted): Effect.Effect<Uint8Array> =>
  Effect.gen(function* () {
    const random = yield* SecureRandom.SecureRandom
    return cipher.encrypt(name, key, secret, yield* random.randomBytes(SecretCipher.randomLength))
  }).pipe(Effect.provide(SecureRandom.layerWebCrypto))

/** Null where another key sealed it. */
export const open = (name: string, key: Redacted.Redacted, sealed: Uint8Array): Redacted.Redacted | null =>
  cipher.decrypt(name, key, sealed)

/** What a process signs with. */
export interface Keys {
  /** the key of the warehouse; null where it is not set. */
  readonly key: Redacted.Redacted | null
  /** The secrets of the endpoints of the file, by name. */
  readonly file: ReadonlyMap<string, ReadonlyArray<Redacted.Redacted>>
}

/** The keys of a configuration. */
export const keysOf = ({
  companiesKey,
  changeEndpoints
}: {
  readonly companiesKey: Redacted.Redacted | null
  readonly changeEndpoints: ReadonlyArray<FileEndpoint>
}): Keys => ({ key: companiesKey, file: new Map(changeEndpoints.map(({ name, secrets }) => [name, secrets])) })

/** The secrets that sign a message, the current one first; empty where none can be opened. */
export const secretsOf = (
  { key, file }: Keys,
  row: { readonly name: string; readonly secret: Uint8Array | null; readonly previousSecret: Uint8Array | null }
): ReadonlyArray<Redacted.Redacted> =>
  file.get(row.name) ??
  [row.secret, row.previousSecret].flatMap((sealed) =>
    key === null || sealed === null ? [] : (open(row.name, key, sealed) ?? [])
  )
