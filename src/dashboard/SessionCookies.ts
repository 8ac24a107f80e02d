/**
 * Signed session cookies, form tokens and links.
 *
 * Promise: all are signed with a random key of the warehouse, and nothing that is sent depends on the password. A
 * session ends after twelve hours, at a log-out, or when the password changes. Every process on the same warehouse with
 * the same password accepts it.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/encoding/Base64Url"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type { Sessions } from "./Sessions.ts"

export const sessionLifetime = Duration.hours(12)
/** The lifetime of the cookie: the browser stays known after its session ended. */
export const knownBrowserLifetime = Duration.days(30)

/** The beginning of each session; no address begins like this. */
const sessionPrefix = "s."
/** The generation of sessions that a link opened. */
const linkGeneration = "link"

export interface SessionKeys {
  readonly key: Uint8Array
  readonly generation: string
}

export interface SessionCookies {
  readonly password: Redacted.Redacted | null
  readonly sessions: Sessions
  readonly random: SecureRandom.SecureRandom["Service"]
  /** Many requests at once hash the password once. */
  readonly lock: Semaphore.Semaphore
  /** Null until they are loaded, and again when the warehouse may be another one. */
  keys: SessionKeys | null
}

export const make = (
  password: Redacted.Redacted | null,
  sessions: Sessions
): Effect.Effect<SessionCookies, never, SecureRandom.SecureRandom> =>
  Effect.map(SecureRandom.SecureRandom, (random) => ({
    password,
    sessions,
    random,
    lock: Semaphore.makeUnsafe(1),
    keys: null
  }))

/** Compares texts in a time that does not depend on where they differ. */
export const isEqual = (one: string, other: string): boolean =>
  timingSafeEqual(createHash("sha256").update(one).digest(), createHash("sha256").update(other).digest())

export const randomToken = ({ random }: SessionCookies, bytes: number): Effect.Effect<string> =>
  Effect.map(random.randomBytes(bytes), Encoding.encode)

const fetchKeys = Effect.fnUntraced(function* (cookies: SessionCookies) {
  const { keys, password, sessions } = cookies
  if (keys !== null) return keys
  const key = yield* sessions.key
  const generation = password === null ? linkGeneration : yield* sessions.generation(Redacted.value(password))
  cookies.keys = { key, generation }
  return cookies.keys
})

export const loadKeys = (cookies: SessionCookies): Effect.Effect<SessionKeys, unknown> =>
  Effect.suspend(() =>
    cookies.keys === null ? cookies.lock.withPermit(fetchKeys(cookies)) : Effect.succeed(cookies.keys)
  )

const sign = ({ key, generation }: SessionKeys, purpose: string, text: string) =>
  createHmac("sha256", key).update(`${purpose}\n${generation}\n${text}`).digest("base64url")

/** The session of a cookie with our signature, however old; null for any other cookie. */
export const signedSession = (keys: SessionKeys, cookie: string | undefined): string | null => {
  const [session = "", signature = ""] = cookie?.split("~") ?? []
  return session.startsWith(sessionPrefix) && isEqual(signature, sign(keys, "session", session)) ? session : null
}

/** The open session of a cookie, or null. */
export const openSession = Effect.fnUntraced(function* (
  { sessions }: SessionCookies,
  keys: SessionKeys,
  cookie: string | undefined
) {
  const now = yield* Clock.currentTimeMillis
  const session = signedSession(keys, cookie)
  if (session === null) return null
  const until = Number(session.slice(sessionPrefix.length).split(".")[0])
  if (!(until > now && until <= now + 2 * Duration.toMillis(sessionLifetime))) return null
  return (yield* sessions.isOpen(session, keys.generation)) ? session : null
})

/** Begins a session; answers its cookie. */
export const beginSession = Effect.fnUntraced(function* (cookies: SessionCookies, keys: SessionKeys) {
  const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(sessionLifetime)
  const session = `${sessionPrefix}${until}.${yield* randomToken(cookies, 16)}`
  yield* cookies.sessions.begin(session, keys.generation, sessionLifetime)
  return `${session}~${sign(keys, "session", session)}`
})

/** A text that opens a session, as long as a session lasts. */
export const linkToken = (keys: SessionKeys): Effect.Effect<string> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const until = String(now + Duration.toMillis(sessionLifetime))
    return `${until}.${sign(keys, "link", until)}`
  })

export const isLinkToken = (keys: SessionKeys, token: string): Effect.Effect<boolean> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const [until = "", signature = ""] = token.split(".")
    return isEqual(signature, sign(keys, "link", until)) && Number(until) > now
  })

/** The hidden field of forms; empty while the keys are not loaded. */
export const formToken = ({ keys }: SessionCookies, session: string): string =>
  keys === null ? "" : sign(keys, "form", session)

export const isFormToken = (cookies: SessionCookies, session: string, token: string | null): boolean =>
  cookies.keys !== null && token !== null && isEqual(token, formToken(cookies, session))
