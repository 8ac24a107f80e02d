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
import type { SqlError } from "effect/sql/SqlError"
import * as SecretCache from "./SecretCache.ts"
import { encrypt, randomLength } from "./SecretCipher.ts"
import type { SecretKeyring } from "./SecretKeyring.ts"
import * as SecretRows from "./SecretRows.ts"

export interface StoredSecrets {
  /** Whether deliveries of the subscription can be checked: `unreadable` when the token has changed since. */
  readonly holding: "held" | "unreadable"
  /** The secret of an interrupted rotation: it is stored, and the source may or may not have it. */
  readonly next: { readonly id: string; readonly secret: Redacted.Redacted } | null
}

export interface SigningSecretsShape {
  readonly keyring: SecretKeyring
  /** How many secrets of the company the configuration names. */
  readonly configured: (company: string) => number
  /** A new secret, of the form that the source makes itself. */
  readonly draw: Effect.Effect<Redacted.Redacted>
  /** Encrypts and stores a secret, accepted here from then on. Answers its id for `promote` and `discard`. */
  readonly store: (
    company: string,
    subscriptionId: string,
    secret: Redacted.Redacted,
    state: "next" | "current"
  ) => Effect.Effect<string, SqlError>
  /** The source has this secret: those before it are accepted until the source has surely stopped signing with them. */
  readonly promote: (
    company: string,
    subscriptionId: string,
    id: string,
    overlap: Duration.Duration
  ) => Effect.Effect<void, SqlError>
  /** The source refused this secret for good. */
  readonly discard: (company: string, id: string) => Effect.Effect<void, SqlError>
  /**
   * The token has no subscriptions except these. The secrets of others are accepted a little longer, and those of another
   * token for a month.
   */
  readonly retire: (
    company: string,
    listed: ReadonlyArray<string>,
    overlap: Duration.Duration
  ) => Effect.Effect<void, SqlError>
  /** Deletes the secrets of a subscription. */
  readonly forget: (company: string, subscriptionId: string) => Effect.Effect<void, SqlError>
  /** The current and next secrets by subscription. */
  readonly stored: (company: string) => Effect.Effect<ReadonlyMap<string, StoredSecrets>, SqlError>
}

export class SigningSecrets extends Context.Service<SigningSecrets, SigningSecretsShape>()(
  "tributary/subscriptions/SigningSecrets"
) {}

const retire = Effect.fnUntraced(function* (
  cache: SecretCache.SecretCache,
  company: string,
  listed: ReadonlyArray<string>,
  overlap: Duration.Duration
): Effect.fn.Return<void, SqlError> {
  const unlisted = (yield* SecretRows.select(cache.sql, [company])).filter(
    ({ state, subscription }) => state !== "previous" && subscription !== null && !listed.includes(subscription)
  )
  if (unlisted.length === 0) return
  const own = yield* Effect.filter(unlisted, (row) =>
    Effect.map(SecretCache.decryptRow(cache, row), (secret) => secret !== null)
  )
  const idsOf = (rows: ReadonlyArray<SecretRows.SecretRow>) => rows.map(({ id }) => id)
  yield* SecretRows.expire(cache.sql, company, idsOf(unlisted), idsOf(own), overlap)
  yield* SecretCache.reload(cache)
})

const stored = Effect.fnUntraced(function* (
  cache: SecretCache.SecretCache,
  company: string
): Effect.fn.Return<ReadonlyMap<string, StoredSecrets>, SqlError> {
  const bySubscription = new Map<string, StoredSecrets>()
  for (const row of yield* SecretRows.select(cache.sql, [company])) {
    if (row.state === "previous" || row.subscription === null) continue
    const secret = yield* SecretCache.decryptRow(cache, row)
    const before = bySubscription.get(row.subscription) ?? { holding: "unreadable", next: null }
    const isCurrent = secret !== null && row.state === "current"
    bySubscription.set(row.subscription, {
      holding: isCurrent ? "held" : before.holding,
      next: before.next ?? (secret === null || isCurrent ? null : { id: row.id, secret })
    })
  }
  return bySubscription
})

/** Reads the stored secrets once. The caller runs `keyring.refresh` every few seconds. */
export const make = Effect.fn("SigningSecrets.make")(function* (
  companies: ReadonlyArray<SecretCache.SecretsCompany>
): Effect.fn.Return<SigningSecretsShape, never, SqlClient.SqlClient | SecureRandom.SecureRandom> {
  const random = yield* SecureRandom.SecureRandom
  const cache = yield* SecretCache.make(companies)
  const { sql } = cache
  const thenReload = (statement: Effect.Effect<unknown, SqlError>): Effect.Effect<void, SqlError> =>
    Effect.andThen(statement, SecretCache.reload(cache))
  yield* SecretCache.reload(cache)
  return {
    keyring: SecretCache.keyringOf(cache),
    configured: (company) => cache.companies.get(company)?.configured.length ?? 0,
    draw: Effect.map(random.randomBytes(32), (bytes) =>
      Redacted.make(`whsec_${Encoding.encode(bytes)}`, { label: "a signing secret" })
    ),
    store: Effect.fnUntraced(function* (company, subscriptionId, secret, state) {
      const { token } = yield* SecretCache.companyOf(cache, company)
      const sealed = encrypt(company, token, secret, yield* random.randomBytes(randomLength))
      const id = yield* SecretRows.insert(sql, company, subscriptionId, sealed, state)
      yield* SecretCache.reload(cache)
      return id
    }),
    promote: (company, subscriptionId, id, overlap) =>
      thenReload(SecretRows.promote(sql, company, subscriptionId, id, overlap)),
    discard: (company, id) =>
      thenReload(
        sql`delete from tributary.webhook_secrets where company = ${company} and id = ${id}::bigint and state = 'next'`
      ),
    retire: (company, listed, overlap) => retire(cache, company, listed, overlap),
    forget: (company, subscriptionId) =>
      thenReload(
        sql`delete from tributary.webhook_secrets where company = ${company} and subscription_id = ${subscriptionId}`
      ),
    stored: (company) => stored(cache, company)
  }
})

/** With the random bytes of the platform. */
export const layer = (
  companies: ReadonlyArray<SecretCache.SecretsCompany>
): Layer.Layer<SigningSecrets, never, SqlClient.SqlClient> =>
  Layer.effect(SigningSecrets, make(companies)).pipe(Layer.provide(SecureRandom.layerWebCrypto))

/** The accepted secrets, for a process that only checks deliveries. */
export const keyring = (
  companies: ReadonlyArray<SecretCache.SecretsCompany>
): Effect.Effect<SecretKeyring, never, SqlClient.SqlClient> =>
  Effect.map(make(companies), (secrets) => secrets.keyring).pipe(Effect.provide(SecureRandom.layerWebCrypto))
