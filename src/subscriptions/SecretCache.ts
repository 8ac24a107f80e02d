/**
 * The accepted signing secrets in memory, decrypted.
 *
 * Promise: a process accepts its own changes as soon as they are stored, and those of other processes after
 * {@link SecretKeyring.refresh}. When the database does not answer, the secrets that were read before stay accepted.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import * as Query from "../postgres/Query.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import { decrypt } from "./SecretCipher.ts"
import * as SecretRows from "./SecretRows.ts"

/** A company with the token that decrypts its secrets, and the secrets that the configuration names. */
export interface SecretsCompany {
  readonly name: string
  readonly token: Redacted.Redacted
  /** Accepted in addition to the stored ones. */
  readonly configured: ReadonlyArray<Redacted.Redacted>
}

/** The accepted signing secrets, as the receiver of deliveries uses them. */
export interface SecretKeyring {
  /** From memory, so that a forgery costs no query; empty for an unknown company. */
  readonly of: (company: string) => ReadonlyArray<Redacted.Redacted>
  /** The largest number of secrets of one company. */
  readonly most: () => number
  /**
   * Reads secrets that other processes have stored. It runs before a delivery is refused as forged, and queries the database at
   * most about once a second. False when the database did not answer, or too many wait: secrets may be missing then.
   * Never fails.
   */
  readonly refresh: Effect.Effect<boolean>
}

/** Stored secrets of a company that are accepted; each is one more HMAC for each delivery. */
const storedMax = 16
/** A refresh within this time of the last read waits until it is over. */
const readEveryMs = 1000
const readTimeoutMs = 5000
/** More refreshes do not wait: a flood of forgeries is refused at once. */
const waitingMax = 64

const byName = (companies: Iterable<SecretsCompany>) => new Map([...companies].map((one) => [one.name, one]))

type Decrypted = Map<bigint, Redacted.Redacted | null>

/** The accepted secrets of each company, from its rows in their order. */
const acceptedOf = (
  companies: ReadonlyMap<string, SecretsCompany>,
  rows: ReadonlyArray<SecretRows.SecretRow>,
  decrypted: Decrypted
): ReadonlyMap<string, ReadonlyArray<Redacted.Redacted>> => {
  const stored = Map.groupBy(rows, ({ company }) => company)
  return new Map(
    [...companies.values()].map(({ name, configured }) => {
      const secrets = (stored.get(name) ?? []).flatMap(({ id }) => decrypted.get(id) ?? [])
      return [name, [...secrets.slice(0, storedMax), ...configured]]
    })
  )
}

const warnUnreadable = ({ company, subscription }: SecretRows.SecretRow) =>
  Effect.logWarning(
    `company ${company}: the signing secret of subscription ${subscription ?? "(unknown)"} cannot be decrypted with ` +
      "this token, so that its deliveries are refused; tributary webhooks ensure makes another"
  )

/** Makes a cache with the configured secrets only, until `reload`. */
export const make = Effect.fnUntraced(function* (initial: ReadonlyArray<SecretsCompany>) {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  /** One read at a time. */
  const readLock = yield* Semaphore.make(1)
  let companies: ReadonlyMap<string, SecretsCompany> = byName(initial)
  /** Secrets by row; null where the token does not decrypt it. */
  let decrypted = new Map() as Decrypted
  let accepted = acceptedOf(companies, [], decrypted)
  let readsStarted = 0
  let lastReadStartedMs = -Infinity
  let isLastReadComplete = false
  let waiting = 0

  /** Runs statements on the connections of the cache. */
  const provide = Effect.provideService(SqlClient.SqlClient, sql)

  /** The accepted rows of these companies; those in use first, then the newest. */
  const read = (names: Iterable<string>) => provide(Query.run(SecretRows.accepted(names)))

  const companyOf = (name: string): Effect.Effect<SecretsCompany> => {
    const company = companies.get(name)
    return company === undefined ? Effect.die(new Error(`no company ${name} is configured`)) : Effect.succeed(company)
  }

  /** Decrypts a row once; a secret in use that the token does not decrypt is reported. */
  const decryptRow = Effect.fnUntraced(function* (row: SecretRows.SecretRow) {
    const { id, company, sealed, state } = row
    const known = decrypted.get(id)
    if (known !== undefined) return known
    const { token } = yield* companyOf(company)
    const secret = decrypt(company, token, sealed)
    decrypted.set(id, secret)
    if (secret === null && state !== "previous") yield* warnUnreadable(row)
    return secret
  })

  /** Reads all rows. Never fails: the secrets that were read before stay accepted. */
  const readRows = Effect.gen(function* () {
    readsStarted += 1
    lastReadStartedMs = MonotonicClock.nowMs(clock)
    isLastReadComplete = false
    const rows = yield* read(companies.keys())
    for (const row of rows) yield* decryptRow(row)
    const present = new Set(rows.map(({ id }) => id))
    decrypted = new Map([...decrypted].filter(([id]) => present.has(id)))
    accepted = acceptedOf(companies, rows, decrypted)
    isLastReadComplete = true
  }).pipe(Effect.timeoutOrElse({ duration: readTimeoutMs, orElse: () => Effect.void }), Effect.ignore)

  /** Replaces the companies, and reads their secrets. Never fails: the secrets that were read before stay accepted. */
  const replaceCompanies = (all: Iterable<SecretsCompany>): Effect.Effect<void> =>
    readLock.withPermit(
      Effect.suspend(() => {
        const before = companies
        companies = byName(all)
        const hasNewToken = [...companies].some(([name, { token }]) => {
          const earlier = before.get(name)
          return earlier !== undefined && Redacted.value(earlier.token) !== Redacted.value(token)
        })
        if (hasNewToken) decrypted = new Map()
        return readRows
      })
    )

  /** Waits for a read that starts from now on; at most one starts in {@link readEveryMs}. */
  const refresh = Effect.gen(function* () {
    if (waiting >= waitingMax) return false
    waiting += 1
    const startedBefore = readsStarted
    const tooSoonMs = lastReadStartedMs + readEveryMs - MonotonicClock.nowMs(clock)
    return yield* Effect.gen(function* () {
      if (tooSoonMs > 0) yield* Effect.sleep(tooSoonMs)
      yield* readLock.withPermit(Effect.suspend(() => (readsStarted > startedBefore ? Effect.void : readRows)))
      return isLastReadComplete
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          waiting -= 1
        })
      )
    )
  })

  const keyring: SecretKeyring = {
    of: (company) => accepted.get(company) ?? [],
    most: () => Math.max(0, ...[...accepted.values()].map(({ length }) => length)),
    refresh
  }

  /** Reads after a change of this process. */
  const reload = readLock.withPermit(readRows)
  return { keyring, provide, read, companyOf, decryptRow, reload, replaceCompanies }
})
