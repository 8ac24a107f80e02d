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
import type * as Sql from "../postgres/Sql.ts"
import * as SecretCache from "./SecretCache.ts"
import { encrypt, randomLength } from "./SecretCipher.ts"
import type { SecretKeyring } from "./SecretKeyring.ts"
import * as SecretRows from "./SecretRows.ts"

export interface StoredSecrets {
  /** Whether deliveries of the subscription can be checked: `unreadable` when the token has changed since. */
  readonly state: "stored" | "unreadable"
  /** The secret of an interrupted rotation: it is stored, and the source may or may not have it. */
  readonly next: { readonly id: bigint; readonly secret: Redacted.Redacted } | null
}

export interface SigningSecretsShape {
  readonly keyring: SecretKeyring
  /** How many secrets of the company the configuration names. */
  readonly configured: (company: string) => number
  /** A new secret, in the form of the source's own secrets. */
  readonly draw: Effect.Effect<Redacted.Redacted>
  /** Encrypts and stores a secret, accepted here from then on. Returns its id for `promote` and `discard`. */
  readonly store: (
    company: string,
    subscriptionId: string,
    secret: Redacted.Redacted,
    state: "next" | "current"
  ) => Effect.Effect<bigint, DatabaseError>
  /** The source has this secret: those before it are accepted until the source has surely stopped signing with them. */
  readonly promote: (
    company: string,
    subscriptionId: string,
    id: bigint,
    overlap: Duration.Duration
  ) => Effect.Effect<unknown, DatabaseError>
  /** The source refused this secret for good. */
  readonly discard: (company: string, id: bigint) => Effect.Effect<unknown, DatabaseError>
  /**
   * The token has no subscriptions except these. The secrets of others are accepted a little longer, and those of another
   * token for a month.
   */
  readonly retire: (
    company: string,
    listed: ReadonlyArray<string>,
    overlap: Duration.Duration
  ) => Effect.Effect<unknown, DatabaseError>
  /** Deletes the secrets of a subscription. */
  readonly forget: (company: string, subscriptionId: string) => Effect.Effect<unknown, DatabaseError>
  /** The current and next secrets by subscription. */
  readonly stored: (company: string) => Effect.Effect<ReadonlyMap<string, StoredSecrets>, DatabaseError>
}

export class SigningSecrets extends Context.Service<SigningSecrets, SigningSecretsShape>()(
  "tributary/subscriptions/SigningSecrets"
) {}

const retire = Effect.fnUntraced(function* (
  cache: SecretCache.SecretCache,
  company: string,
  listed: ReadonlyArray<string>,
  overlap: Duration.Duration
): Effect.fn.Return<void, DatabaseError> {
  const unlisted = (yield* SecretCache.read(cache, [company])).filter(
    ({ state, subscription }) => state !== "previous" && subscription !== null && !listed.includes(subscription)
  )
  if (unlisted.length === 0) return
  const own = yield* Effect.filter(unlisted, (row) =>
    Effect.map(SecretCache.decryptRow(cache, row), (secret) => secret !== null)
  )
  const idsOf = (rows: typeof own) => rows.map(({ id }) => id)
  yield* SecretRows.expire(company, idsOf(unlisted), idsOf(own), overlap).pipe(SecretCache.provide(cache))
  yield* SecretCache.reload(cache)
})

const stored = Effect.fnUntraced(function* (
  cache: SecretCache.SecretCache,
  company: string
): Effect.fn.Return<ReadonlyMap<string, StoredSecrets>, DatabaseError> {
  const bySubscription = new Map<string, StoredSecrets>()
  for (const row of yield* SecretCache.read(cache, [company])) {
    if (row.state === "previous" || row.subscription === null) continue
    const secret = yield* SecretCache.decryptRow(cache, row)
    const before = bySubscription.get(row.subscription) ?? { state: "unreadable", next: null }
    const isCurrent = secret !== null && row.state === "current"
    bySubscription.set(row.subscription, {
      state: isCurrent ? "stored" : before.state,
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
  const thenReload = <A>(statement: Sql.Query<A>): Effect.Effect<A, DatabaseError> =>
    Effect.tap(statement.pipe(SecretCache.provide(cache)), SecretCache.reload(cache))
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
      return (yield* thenReload(SecretRows.insert(company, subscriptionId, sealed, state)))!.id
    }),
    promote: (company, subscriptionId, id, overlap) =>
      thenReload(SecretRows.promote(company, subscriptionId, id, overlap)),
    discard: (company, id) => thenReload(SecretRows.discard(company, id)),
    retire: (company, listed, overlap) => retire(cache, company, listed, overlap),
    forget: (company, subscriptionId) => thenReload(SecretRows.forget(company, subscriptionId)),
    stored: (company) => stored(cache, company)
  }
})

/** With the random bytes of the platform. */
export const layer = (
  companies: ReadonlyArray<SecretCache.SecretsCompany>
): Layer.Layer<SigningSecrets, never, SqlClient.SqlClient> =>
  Layer.effect(SigningSecrets, make(companies)).pipe(Layer.provide(SecureRandom.layerWebCrypto))

/** A keyring whose companies change. */
export interface ServedKeyring extends SecretKeyring {
  readonly replaceCompanies: (companies: Iterable<SecretCache.SecretsCompany>) => Effect.Effect<void>
}

/** The accepted secrets, for a process that only checks deliveries. */
export const keyring = Effect.fnUntraced(function* (
  companies: ReadonlyArray<SecretCache.SecretsCompany>
): Effect.fn.Return<ServedKeyring, never, SqlClient.SqlClient> {
  const cache = yield* SecretCache.make(companies)
  yield* SecretCache.reload(cache)
  return {
    ...SecretCache.keyringOf(cache),
    replaceCompanies: (all) => SecretCache.replaceCompanies(cache, all)
  }
})
