/**
 * The accepted signing secrets in memory, decrypted.
 *
 * Promise: a process accepts its own changes as soon as they are stored, and those of other processes after
 * {@link refresh}. When the database does not answer, the secrets that were read before stay accepted.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import * as Query from "../postgres/Query.ts"
import { decrypt } from "./SecretCipher.ts"
import type { SecretKeyring } from "./SecretKeyring.ts"
import * as SecretRows from "./SecretRows.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** A company with the token that decrypts its secrets, and the secrets that the configuration names. */
export interface SecretsCompany {
  readonly name: string
  readonly token: Redacted.Redacted
  /** Accepted in addition to the stored ones. */
  readonly configured: ReadonlyArray<Redacted.Redacted>
}

/** Stored secrets of a company that are accepted; each is one more HMAC for each delivery. */
const storedMax = 16
/** A refresh within this time of the last read waits until it is over. */
const readEveryMs = 1000
const readTimeoutMs = 5000
/** More refreshes do not wait: a flood of forgeries is refused at once. */
const waitingMax = 64

export interface SecretCache {
  readonly sql: SqlClient.SqlClient
  readonly clock: Clock.Clock
  companies: ReadonlyMap<string, SecretsCompany>
  /** One read at a time. */
  readonly readLock: Semaphore.Semaphore
  /** Secrets by row; null where the token does not decrypt it. */
  decrypted: Map<bigint, Redacted.Redacted | null>
  accepted: ReadonlyMap<string, ReadonlyArray<Redacted.Redacted>>
  readsStarted: number
  lastReadStartedMs: number
  isLastReadComplete: boolean
  waiting: number
}

/** Runs statements on the connections of the cache. */
export const provide = ({ sql }: SecretCache) => Effect.provideService(SqlClient.SqlClient, sql)

/** The accepted secrets of these companies; those in use first, then the newest. */
export const read = (cache: SecretCache, companies: Iterable<string>) =>
  Query.run(SecretRows.accepted(companies)).pipe(provide(cache))

const monotonicMs = ({ clock }: SecretCache) => MonotonicClock.nowMs(clock)

export const companyOf = ({ companies }: SecretCache, name: string): Effect.Effect<SecretsCompany> => {
  const company = companies.get(name)
  return company === undefined ? Effect.die(new Error(`no company ${name} is configured`)) : Effect.succeed(company)
}

/** Decrypts a row once; a secret in use that the token does not decrypt is reported. */
export const decryptRow = Effect.fnUntraced(function* (
  cache: SecretCache,
  { id, company, subscription, sealed, state }: SecretRows.SecretRow
): Effect.fn.Return<Redacted.Redacted | null> {
  const known = cache.decrypted.get(id)
  if (known !== undefined) return known
  const { token } = yield* companyOf(cache, company)
  const secret = decrypt(company, token, sealed)
  cache.decrypted.set(id, secret)
  if (secret === null && state !== "previous") {
    yield* Effect.logWarning(
      `company ${company}: the signing secret of subscription ${subscription ?? "(unknown)"} cannot be decrypted with ` +
        "this token, so that its deliveries are refused; tributary webhooks ensure makes another"
    )
  }
  return secret
})

const accept = (cache: SecretCache, rows: ReadonlyArray<SecretRows.SecretRow>): void => {
  const stored = Map.groupBy(rows, ({ company }) => company)
  cache.accepted = new Map(
    [...cache.companies.values()].map(({ name, configured }) => {
      const secrets = (stored.get(name) ?? []).flatMap(({ id }) => cache.decrypted.get(id) ?? [])
      return [name, [...secrets.slice(0, storedMax), ...configured]]
    })
  )
}

/** Reads all rows. Never fails: the secrets that were read before stay accepted. */
const readRows = (cache: SecretCache): Effect.Effect<void> =>
  Effect.gen(function* () {
    cache.readsStarted += 1
    cache.lastReadStartedMs = monotonicMs(cache)
    cache.isLastReadComplete = false
    const rows = yield* read(cache, cache.companies.keys())
    for (const row of rows) yield* decryptRow(cache, row)
    const present = new Set(rows.map(({ id }) => id))
    cache.decrypted = new Map([...cache.decrypted].filter(([id]) => present.has(id)))
    accept(cache, rows)
    cache.isLastReadComplete = true
  }).pipe(Effect.timeoutOrElse({ duration: readTimeoutMs, orElse: () => Effect.void }), Effect.ignore)

/** Reads after a change of this process. */
export const reload = (cache: SecretCache): Effect.Effect<void> => cache.readLock.withPermit(readRows(cache))

const byName = (companies: Iterable<SecretsCompany>) => new Map([...companies].map((one) => [one.name, one]))

/** Replaces the companies, and reads their secrets. Never fails: the secrets that were read before stay accepted. */
export const replaceCompanies = (cache: SecretCache, companies: Iterable<SecretsCompany>): Effect.Effect<void> =>
  cache.readLock.withPermit(
    Effect.suspend(() => {
      const before = cache.companies
      cache.companies = byName(companies)
      const hasNewToken = [...cache.companies].some(([name, { token }]) => {
        const earlier = before.get(name)
        return earlier !== undefined && Redacted.value(earlier.token) !== Redacted.value(token)
      })
      if (hasNewToken) cache.decrypted = new Map()
      return readRows(cache)
    })
  )

/** Waits for a read that starts from now on; at most one starts in {@link readEveryMs}. See {@link SecretKeyring}. */
const refresh = Effect.fnUntraced(function* (cache: SecretCache): Effect.fn.Return<boolean> {
  if (cache.waiting >= waitingMax) return false
  cache.waiting += 1
  const startedBefore = cache.readsStarted
  const tooSoonMs = cache.lastReadStartedMs + readEveryMs - monotonicMs(cache)
  return yield* Effect.gen(function* () {
    if (tooSoonMs > 0) yield* Effect.sleep(tooSoonMs)
    yield* cache.readLock.withPermit(
      Effect.suspend(() => (cache.readsStarted > startedBefore ? Effect.void : readRows(cache)))
    )
    return cache.isLastReadComplete
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        cache.waiting -= 1
      })
    )
  )
})

export const keyringOf = (cache: SecretCache): SecretKeyring => ({
  of: (company) => cache.accepted.get(company) ?? [],
  most: () => Math.max(0, ...[...cache.accepted.values()].map(({ length }) => length)),
  refresh: refresh(cache)
})

/** Makes a cache with the configured secrets only, until {@link reload}. */
export const make = Effect.fnUntraced(function* (
  companies: ReadonlyArray<SecretsCompany>
): Effect.fn.Return<SecretCache, never, SqlClient.SqlClient> {
  const cache: SecretCache = {
    sql: yield* SqlClient.SqlClient,
    clock: yield* Clock.Clock,
    companies: byName(companies),
    readLock: yield* Semaphore.make(1),
    decrypted: new Map(),
    accepted: new Map(),
    readsStarted: 0,
    lastReadStartedMs: -Infinity,
    isLastReadComplete: false,
    waiting: 0
  }
  accept(cache, [])
  return cache
})
