/**
 * The signing secrets of the subscriptions, encrypted in `tributary.webhook_secrets`.
 *
 * Promise: no delivery is refused that is signed with a secret stored before it arrived. A secret that the token does not
 * decrypt is reported once and left out.
 */
import type * as Duration from "effect/Duration"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/encoding/Base64Url"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as SecretCache from "./SecretCache.ts"
import { decrypt, encrypt, randomLength } from "./SecretCipher.ts"
import * as SecretRows from "./SecretRows.ts"

export interface StoredSecrets {
  /** Whether deliveries of the subscription can be checked: `unreadable` when the token has changed since. */
  readonly state: "stored" | "unreadable"
  /** The secret of an interrupted rotation: it is stored, and the source may or may not have it. */
  readonly next: { readonly id: bigint; readonly secret: Redacted.Redacted } | null
}

/** Reads the stored secrets once. The caller runs `keyring.refresh` every few seconds. */
export const make = Effect.fn("SigningSecrets.make")(function* (companies: ReadonlyArray<SecretCache.SecretsCompany>) {
  const random = yield* SecureRandom.SecureRandom
  const { keyring, provide, read, companyOf, decryptRow, reload } = yield* SecretCache.make(companies)
  const thenReload = <A>(statement: Sql.Query<A>): Effect.Effect<A, DatabaseError> =>
    Effect.tap(provide(statement), reload)
  yield* reload
  return {
    keyring,
    /** How many secrets of the company the configuration names. */
    configured: (company: string): number => companies.find(({ name }) => name === company)?.configured.length ?? 0,
    /** A new secret, in the form of the source's own secrets. */
    draw: Effect.map(random.randomBytes(32), (bytes) =>
      Redacted.make(`whsec_${Encoding.encode(bytes)}`, { label: "a signing secret" })
    ),
    /** Encrypts and stores a secret, accepted here from then on. Returns its id for `promote` and `discard`. */
    store: Effect.fnUntraced(function* (
      company: string,
      subscriptionId: string,
      secret: Redacted.Redacted,
      state: "next" | "current"
    ) {
      const { token } = yield* companyOf(company)
      const sealed = encrypt(company, token, secret, yield* random.randomBytes(randomLength))
      return (yield* thenReload(SecretRows.insert(company, subscriptionId, sealed, state)))!.id
    }),
    /** The source has this secret: those before it are accepted until the source has surely stopped signing with them. */
    promote: (company: string, subscriptionId: string, id: bigint, overlap: Duration.Duration) =>
      thenReload(SecretRows.promote(company, subscriptionId, id, overlap)),
    /** The source refused this secret for good. */
    discard: (company: string, id: bigint) => thenReload(SecretRows.discard(company, id)),
    /**
     * The token has no subscriptions except these. The secrets of others are accepted a little longer, and those of
     * another token for a month.
     */
    retire: Effect.fnUntraced(function* (company: string, listed: ReadonlyArray<string>, overlap: Duration.Duration) {
      const unlisted = (yield* read([company])).filter(
        ({ state, subscription }) => state !== "previous" && subscription !== null && !listed.includes(subscription)
      )
      if (unlisted.length === 0) return
      const own = yield* Effect.filter(unlisted, (row) => Effect.map(decryptRow(row), (secret) => secret !== null))
      const idsOf = (rows: typeof own) => rows.map(({ id }) => id)
      yield* thenReload(SecretRows.expire(company, idsOf(unlisted), idsOf(own), overlap))
    }),
    /** Deletes the secrets of a subscription. */
    forget: (company: string, subscriptionId: string) => thenReload(SecretRows.forget(company, subscriptionId)),
    /** The current and next secrets by subscription. */
    stored: Effect.fnUntraced(function* (company: string) {
      const bySubscription = new Map<string, StoredSecrets>()
      for (const row of yield* read([company])) {
        if (row.state === "previous" || row.subscription === null) continue
        const secret = yield* decryptRow(row)
        const before = bySubscription.get(row.subscription) ?? { state: "unreadable", next: null }
        const isCurrent = secret !== null && row.state === "current"
        bySubscription.set(row.subscription, {
          state: isCurrent ? "stored" : before.state,
          next: before.next ?? (secret === null || isCurrent ? null : { id: row.id, secret })
        })
      }
      return bySubscription
    })
  }
})

export class SigningSecrets extends Context.Service<SigningSecrets, Effect.Success<ReturnType<typeof make>>>()(
  "tributary/subscriptions/SigningSecrets"
) {}

/** With the random bytes of the platform. */
export const layer = (
  companies: ReadonlyArray<SecretCache.SecretsCompany>
): Layer.Layer<SigningSecrets, never, SqlClient.SqlClient> =>
  Layer.effect(SigningSecrets, make(companies)).pipe(Layer.provide(SecureRandom.layerWebCrypto))

/** The accepted secrets, for a process that only checks deliveries. Its companies change. */
export const keyring = Effect.fnUntraced(function* (companies: ReadonlyArray<SecretCache.SecretsCompany>) {
  const { keyring, reload, replaceCompanies } = yield* SecretCache.make(companies)
  yield* reload
  return { ...keyring, replaceCompanies }
})

/**
 * Seals the accepted secrets of a company again, as part of the transaction that replaces its token, so that deliveries of
 * the subscriptions that the earlier token made are accepted as before. Returns how many. A secret that the earlier token
 * does not open stays as it is.
 */
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
