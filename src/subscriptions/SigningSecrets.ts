/**
 * The signing secrets: sealed in `tributary.webhook_secrets`, open only in memory.
 *
 * Promise: nobody learns a secret from the database, and no delivery is refused that is signed with a secret stored
 * before it arrived. A secret is sealed with a key that comes from the company's token: a subscription belongs to the
 * token that made it (H-04, H-05), so that a sealed secret can be opened exactly as long as it is of use, and whoever
 * holds the token could make another one anyway. One that cannot be opened is told once and left out.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/encoding/Base64Url"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { SecretKeyring } from "./SecretKeyring.ts"

/** A company with what opens its secrets, and the secrets that the configuration names. */
export interface SecretsCompany {
  readonly name: string
  readonly token: Redacted.Redacted
  /** Accepted beside those that are stored. */
  readonly configured: ReadonlyArray<Redacted.Redacted>
}

/** Whether deliveries of a subscription can be checked: `unreadable` when the token has changed since. */
export type Holding = "held" | "unreadable"

export interface StoredSecrets {
  readonly holding: Holding
  /** A rotation that was not seen to its end: this secret is stored, and the source may or may not know it. */
  readonly next: { readonly id: string; readonly secret: Redacted.Redacted } | null
}

export interface SigningSecretsShape {
  readonly held: SecretKeyring
  /** How many secrets of the company the configuration names. */
  readonly configured: (company: string) => number
  /** A new secret, of the form that the source makes itself (H-09). */
  readonly draw: Effect.Effect<Redacted.Redacted>
  /** Seals and stores; answers the number to promote or discard it by. Accepted here as soon as this ends. */
  readonly store: (
    company: string,
    subscriptionId: string,
    secret: Redacted.Redacted,
    state: "next" | "current"
  ) => Effect.Effect<string, SqlError>
  /** The source knows this secret: it is the current one, and those before it are accepted for {@link acceptedHours}. */
  readonly promote: (company: string, subscriptionId: string, id: string) => Effect.Effect<void, SqlError>
  /** The source refused this secret for good. */
  readonly discard: (company: string, id: string) => Effect.Effect<void, SqlError>
  /**
   * The token has no subscriptions beside these: what others may have sent is accepted a little longer, and for a month
   * by whoever has another token that made them.
   */
  readonly retire: (company: string, listed: ReadonlyArray<string>) => Effect.Effect<void, SqlError>
  readonly forget: (company: string, subscriptionId: string) => Effect.Effect<void, SqlError>
  /** By subscription, what is stored for it and not on its way out. */
  readonly stored: (company: string) => Effect.Effect<ReadonlyMap<string, StoredSecrets>, SqlError>
}

export class SigningSecrets extends Context.Service<SigningSecrets, SigningSecretsShape>()(
  "tributary/subscriptions/SigningSecrets"
) {}

/** The source signs with the secret before for 24 h after a rotation (H-08). */
export const acceptedHours = 25
/** A process that has another token may receive what that one subscribed to; nobody tells when it stops. */
const otherTokenDays = 30
/** Each secret is one more HMAC for each delivery. Those that are in use come first. */
const heldMax = 16
/** A read that is asked for within this time of the one before waits until it is over. */
const readEveryMs = 1000
const readTimeoutMs = 5000
/** More do not wait for a read; a flood of forgeries is refused at once. */
const waitingMax = 64

// ------------------------------------------------------------------------------------------------------------- sealing

const purpose = "tributary webhook secret 1"
const version = 1
const [saltLength, nonceLength, tagLength] = [16, 12, 16]
const headLength = 1 + saltLength + nonceLength + tagLength

const keyOf = (token: Redacted.Redacted, salt: Uint8Array) =>
  new Uint8Array(hkdfSync("sha256", Redacted.value(token), salt, purpose, 32))

const boundTo = (company: string) => Buffer.from(`${purpose}\n${company}`)

/** Version, salt, nonce, tag, and the secret under AES-256-GCM; `random` is 28 bytes that were never used before. */
export const encrypt = (
  company: string,
  token: Redacted.Redacted,
  secret: Redacted.Redacted,
  random: Uint8Array
): Uint8Array => {
  const salt = random.subarray(0, saltLength)
  const nonce = random.subarray(saltLength, saltLength + nonceLength)
  const cipher = createCipheriv("aes-256-gcm", keyOf(token, salt), nonce, { authTagLength: tagLength })
  cipher.setAAD(boundTo(company))
  const text = Buffer.concat([cipher.update(Redacted.value(secret), "utf8"), cipher.final()])
  return Buffer.concat([Buffer.from([version]), salt, nonce, cipher.getAuthTag(), text])
}

/** Null when it was sealed with another token, for another company, or changed. */
export const decrypt = (company: string, token: Redacted.Redacted, sealed: Uint8Array): Redacted.Redacted | null => {
  if (sealed.length <= headLength || sealed[0] !== version) return null
  const salt = sealed.subarray(1, 1 + saltLength)
  const nonce = sealed.subarray(1 + saltLength, 1 + saltLength + nonceLength)
  const decipher = createDecipheriv("aes-256-gcm", keyOf(token, salt), nonce, { authTagLength: tagLength })
  decipher.setAAD(boundTo(company))
  decipher.setAuthTag(sealed.subarray(headLength - tagLength, headLength))
  try {
    const text = Buffer.concat([decipher.update(sealed.subarray(headLength)), decipher.final()]).toString("utf8")
    return Redacted.make(text, { label: `signing secret of ${company}` })
  } catch {
    return null
  }
}

// ------------------------------------------------------------------------------------------------------------- storing

interface SecretRow {
  readonly id: string
  readonly company: string
  readonly subscription: string | null
  /** Base64. */
  readonly sealed: string
  readonly state: "next" | "current" | "previous"
}

/** Reads what is stored at once, where the database answers. The caller sees to `held.refresh` every few seconds. */
export const make = Effect.fn("Secrets.make")(function* (
  companies: ReadonlyArray<SecretsCompany>
): Effect.fn.Return<SigningSecretsShape, never, SqlClient.SqlClient | SecureRandom.SecureRandom> {
  const sql = yield* SqlClient.SqlClient
  const random = yield* SecureRandom.SecureRandom
  const clock = yield* Clock.Clock
  const reading = yield* Semaphore.make(1)
  const byName = new Map(companies.map((company) => [company.name, company]))
  const names = [...byName.keys()]
  const companyOf = (name: string): Effect.Effect<SecretsCompany> => {
    const company = byName.get(name)
    return company === undefined ? Effect.die(new Error(`no company ${name} is configured`)) : Effect.succeed(company)
  }

  /** What rows held when they were opened; a row never changes its secret. */
  let opened = new Map<string, Redacted.Redacted | null>()
  let accepted = new Map<string, ReadonlyArray<Redacted.Redacted>>()
  let most = 0
  const accept = (rows: ReadonlyArray<SecretRow>) => {
    accepted = new Map(
      companies.map(({ name, configured }) => {
        const stored = rows.flatMap(({ id, company }) => {
          const secret = company === name ? opened.get(id) : undefined
          return secret === undefined || secret === null ? [] : [secret]
        })
        return [name, [...stored.slice(0, heldMax), ...configured]]
      })
    )
    most = Math.max(0, ...[...accepted.values()].map(({ length }) => length))
  }
  accept([])

  const rowsOf = (wanted: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<SecretRow>, SqlError> =>
    sql.unsafe<SecretRow>(
      `select s.id::text as id, company, subscription_id as subscription, encode(sealed, 'base64') as sealed, state
         from tributary.webhook_secrets s
        where company in (select jsonb_array_elements_text($1::jsonb))
          and (state <> 'previous' or accepted_until > tributary.now())
        order by array_position(array['current', 'next', 'previous'], state), s.id desc`,
      [JSON.stringify(wanted)]
    )

  const openRow = ({ id, company, subscription, sealed, state }: SecretRow): Effect.Effect<Redacted.Redacted | null> =>
    Effect.gen(function* () {
      const known = opened.get(id)
      if (known !== undefined) return known
      const { token } = yield* companyOf(company)
      const secret = decrypt(company, token, Buffer.from(sealed, "base64"))
      opened.set(id, secret)
      if (secret === null && state !== "previous") {
        yield* Effect.logWarning(
          `company ${company}: the signing secret of subscription ${subscription ?? "(unknown)"} cannot be opened with ` +
            "this token, so that its deliveries are refused; npx tributary webhooks ensure makes another"
        )
      }
      return secret
    })

  let began = 0
  let beganAt = -Infinity
  /** Whether the read that began last came to its end. */
  let isRead = false
  const monotonicMs = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

  const read = Effect.gen(function* () {
    began += 1
    beganAt = monotonicMs()
    isRead = false
    const rows = yield* rowsOf(names)
    for (const row of rows) yield* openRow(row)
    const present = new Set(rows.map(({ id }) => id))
    opened = new Map([...opened].filter(([id]) => present.has(id)))
    accept(rows)
    isRead = true
  }).pipe(
    Effect.timeoutOrElse({ duration: readTimeoutMs, orElse: () => Effect.void }),
    // What is known stays.
    Effect.ignore
  )
  const readNow = reading.withPermit(read)

  let waiting = 0
  const refresh = Effect.gen(function* () {
    if (waiting >= waitingMax) return false
    waiting += 1
    const beganBefore = began
    const tooSoonMs = beganAt + readEveryMs - monotonicMs()
    return yield* Effect.gen(function* () {
      if (tooSoonMs > 0) yield* Effect.sleep(tooSoonMs)
      // A read that began before this was asked may have seen less.
      yield* reading.withPermit(Effect.suspend(() => (began > beganBefore ? Effect.void : read)))
      return isRead
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          waiting -= 1
        })
      )
    )
  })

  const changed = (statement: Effect.Effect<unknown, SqlError>): Effect.Effect<void, SqlError> =>
    Effect.andThen(statement, readNow)

  const shape: SigningSecretsShape = {
    held: {
      of: (company) => accepted.get(company) ?? [],
      most: () => most,
      refresh
    },
    configured: (company) => byName.get(company)?.configured.length ?? 0,
    draw: Effect.map(random.randomBytes(32), (bytes) =>
      Redacted.make(`whsec_${Encoding.encode(bytes)}`, { label: "a signing secret" })
    ),
    store: Effect.fnUntraced(function* (company, subscriptionId, secret, state) {
      const { token } = yield* companyOf(company)
      const sealed = encrypt(company, token, secret, yield* random.randomBytes(saltLength + nonceLength))
      const [row] = yield* sql<{ id: string }>`
        insert into tributary.webhook_secrets (company, subscription_id, sealed, state)
        values (${company}, ${subscriptionId}, decode(${Buffer.from(sealed).toString("base64")}, 'base64'), ${state})
        returning id::text as id`
      yield* readNow
      return row!.id
    }),
    promote: (company, subscriptionId, id) =>
      changed(
        sql.unsafe(
          `with gone as (
             delete from tributary.webhook_secrets
              where company = $1 and state = 'previous' and accepted_until <= tributary.now()
           )
           update tributary.webhook_secrets
              set state = case when id = $3::bigint then 'current' else 'previous' end,
                  accepted_until = case when id <> $3::bigint
                                        then tributary.now() + make_interval(hours => ${acceptedHours}) end
            where company = $1 and subscription_id = $2 and (state <> 'previous' or id = $3::bigint)`,
          [company, subscriptionId, id]
        )
      ),
    discard: (company, id) =>
      changed(
        sql`delete from tributary.webhook_secrets where company = ${company} and id = ${id}::bigint and state = 'next'`
      ),
    retire: Effect.fnUntraced(function* (company, listed) {
      const unlisted = (yield* rowsOf([company])).filter(
        ({ state, subscription }) => state !== "previous" && subscription !== null && !listed.includes(subscription)
      )
      if (unlisted.length === 0) return
      const own: Array<string> = []
      for (const row of unlisted) if ((yield* openRow(row)) !== null) own.push(row.id)
      yield* changed(
        sql.unsafe(
          `update tributary.webhook_secrets
              set state = 'previous',
                  accepted_until = tributary.now() + case when id in (select jsonb_array_elements_text($3::jsonb)::bigint)
                    then make_interval(hours => ${acceptedHours}) else make_interval(days => ${otherTokenDays}) end
            where company = $1 and state <> 'previous'
              and id in (select jsonb_array_elements_text($2::jsonb)::bigint)`,
          [company, JSON.stringify(unlisted.map(({ id }) => id)), JSON.stringify(own)]
        )
      )
    }),
    forget: (company, subscriptionId) =>
      changed(
        sql`delete from tributary.webhook_secrets where company = ${company} and subscription_id = ${subscriptionId}`
      ),
    stored: Effect.fnUntraced(function* (company) {
      const stored = new Map<string, StoredSecrets>()
      for (const row of yield* rowsOf([company])) {
        if (row.state === "previous" || row.subscription === null) continue
        const secret = yield* openRow(row)
        const before = stored.get(row.subscription) ?? { holding: "unreadable", next: null }
        if (secret === null) stored.set(row.subscription, before)
        else if (row.state === "current") stored.set(row.subscription, { ...before, holding: "held" })
        else stored.set(row.subscription, { ...before, next: before.next ?? { id: row.id, secret } })
      }
      return stored
    })
  }
  yield* readNow
  return shape
})

/** With the random bytes of the platform. */
export const layer = (
  companies: ReadonlyArray<SecretsCompany>
): Layer.Layer<SigningSecrets, never, SqlClient.SqlClient> =>
  Layer.effect(SigningSecrets, make(companies)).pipe(Layer.provide(SecureRandom.layerWebCrypto))

/** The secrets that are accepted, for whoever only checks deliveries. */
export const keyring = (
  companies: ReadonlyArray<SecretsCompany>
): Effect.Effect<SecretKeyring, never, SqlClient.SqlClient> =>
  Effect.map(make(companies), (secrets) => secrets.held).pipe(Effect.provide(SecureRandom.layerWebCrypto))
