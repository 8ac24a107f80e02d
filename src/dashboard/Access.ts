/**
 * Access to the pages, and to their forms.
 *
 * Promise: without a password, the pages can only be read, and from this machine only ({@link LoopbackAccess}). A
 * change needs a session. The password opens one, and wrong passwords are limited per minute ({@link PasswordAttempts}).
 * A signed link opens one too, which `serve link` makes on the machine; no limit applies to it, so that strangers cannot
 * lock the operator out. A form is accepted only from an own page: the browser's headers (Origin, Sec-Fetch-Site) are
 * checked, and a token in the form that belongs to the session. Programs send `Authorization: Bearer` with a token of
 * their own ({@link AccessTokens}). They can only read; changes are made by commands.
 */
import { isIP } from "node:net"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as SecureRandom from "effect/crypto/SecureRandom"
import { addressOf } from "../http/ConnectionLimit.ts"
import { type AccessDecision, type AccessRequest, refused } from "./AccessDecision.ts"
import * as LoopbackAccess from "./LoopbackAccess.ts"
import * as PasswordAttempts from "./PasswordAttempts.ts"
import * as SessionCookies from "./SessionCookies.ts"
import type { Sessions } from "./Sessions.ts"

export interface AccessOptions {
  readonly host: string
  readonly port: number
  readonly password: Redacted.Redacted | null
  readonly publicUrl: string | null
  readonly sessions: Sessions
}

export type LogInResult =
  | { readonly _tag: "Away" }
  | { readonly _tag: "Open"; readonly cookie: string }
  | Exclude<PasswordAttempts.AttemptResult, { readonly _tag: "Right" }>

export interface Access {
  readonly hasPassword: boolean
  /** A text that opens a session; null where there is a password, or the warehouse does not answer. */
  readonly linkToken: Effect.Effect<string | null>
  readonly decide: (request: AccessRequest) => Effect.Effect<AccessDecision>
  /** The hidden field of forms. Call it after {@link decide}, which loads the key. */
  readonly formToken: (session: string) => string
  /** Why a form is not accepted; null when it is. */
  readonly formProblem: (request: AccessRequest, session: string, token: string | null) => string | null
  readonly logIn: (request: AccessRequest, password: string) => Effect.Effect<LogInResult>
  /** Opens a session by the token of the link. */
  readonly openLink: (request: AccessRequest, token: string) => Effect.Effect<LogInResult>
  /** Ends a session, or all of them; false where the warehouse does not answer. */
  readonly logOut: (session: string, everywhere: boolean) => Effect.Effect<boolean>
  /** Makes the next request load the key again: the warehouse may be another one. */
  readonly forgetKeys: () => void
}

/** Why nothing can be changed, and what to do. */
export const readingOnly = {
  loopback:
    "Reading only: to act, open the link that tributary serve link prints, or set a password " +
    "(TRIBUTARY_DASHBOARD_PASSWORD).",
  bearer: "Reading only: a request with a token in a header cannot change anything. Use the commands."
} as const

/** The session in the form token of the log-in page. */
export const noSession = "log in"
/** Timeout of the warehouse for the check of a session. */
const sessionMaxMs = 5_000

interface AccessState {
  readonly password: Redacted.Redacted | null
  readonly publicUrl: string | null
  readonly loopback: LoopbackAccess.LoopbackAccess
  readonly cookies: SessionCookies.SessionCookies
  readonly attempts: PasswordAttempts.PasswordAttempts
}

const away = { _tag: "Away" } as const

/**
 * The sender of a password. Behind a proxy, a header has the address; a forged one evades only the limit of one client.
 */
const clientOf = (
  { publicUrl }: AccessState,
  keys: SessionCookies.SessionKeys,
  request: AccessRequest
): PasswordAttempts.Client => {
  const session = SessionCookies.signedSession(keys, request.cookie)
  if (session !== null) return { key: session, isKnownBrowser: true }
  const forwarded = publicUrl === null ? undefined : request.header("x-forwarded-for")?.split(",").at(-1)?.trim()
  const address = forwarded !== undefined && isIP(forwarded) !== 0 ? forwarded : request.address
  return { key: addressOf(address ?? ""), isKnownBrowser: false }
}

/** Compares with the password in memory, which is fast; only the stored hash is slow. */
const attemptPassword = (
  access: AccessState,
  keys: SessionCookies.SessionKeys,
  request: AccessRequest,
  text: string
): Effect.Effect<PasswordAttempts.AttemptResult> => {
  const { attempts, password } = access
  return PasswordAttempts.attempt(
    attempts,
    clientOf(access, keys, request),
    () => password !== null && SessionCookies.isEqual(text, Redacted.value(password))
  )
}

const decideBearer = Effect.fnUntraced(function* (
  { cookies }: AccessState,
  { method }: AccessRequest,
  authorization: string
): Effect.fn.Return<AccessDecision, unknown> {
  const bearer = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
  if (bearer === undefined || !(yield* cookies.sessions.isToken(bearer))) {
    return refused(401, "That is no token of these pages; tributary serve tokens add NAME makes one.")
  }
  return method === "GET" || method === "HEAD"
    ? { _tag: "Granted", by: "bearer", session: "" }
    : refused(403, readingOnly.bearer)
})

const decideByPassword = Effect.fnUntraced(
  function* (access: AccessState, request: AccessRequest): Effect.fn.Return<AccessDecision, unknown> {
    const authorization = request.header("authorization")
    if (authorization !== undefined) return yield* decideBearer(access, request, authorization)
    const keys = yield* SessionCookies.loadKeys(access.cookies)
    const session = yield* SessionCookies.openSession(access.cookies, keys, request.cookie)
    return session === null ? { _tag: "LogIn" } : { _tag: "Granted", by: "session", session }
  },
  Effect.catch(() => Effect.succeed(away))
)

/** Any failure and the timeout mean that the warehouse does not answer. */
const orAway = <A>(effect: Effect.Effect<A, unknown>): Effect.Effect<A | typeof away> =>
  effect.pipe(
    Effect.timeout(sessionMaxMs),
    Effect.catch(() => Effect.succeed(away))
  )

const decideByLoopback = (
  { cookies, loopback }: AccessState,
  request: AccessRequest
): Effect.Effect<AccessDecision> => {
  const reading = LoopbackAccess.decide(loopback, request)
  if (reading._tag !== "Granted") return Effect.succeed(reading)
  return Effect.flatMap(SessionCookies.loadKeys(cookies), (keys) =>
    SessionCookies.openSession(cookies, keys, request.cookie)
  ).pipe(
    Effect.map((session): AccessDecision => (session === null ? reading : { _tag: "Granted", by: "session", session })),
    orAway,
    // Without the warehouse, pages report that it does not answer, and no form is accepted.
    Effect.map((decision) => (decision._tag === "Away" && request.method !== "POST" ? reading : decision))
  )
}

const hostOf = (url: string): string | null => (URL.canParse(url) ? new URL(url).host : null)

const formProblem = (
  { cookies, publicUrl }: AccessState,
  request: AccessRequest,
  session: string,
  token: string | null
): string | null => {
  const site = request.header("sec-fetch-site")
  const origin = request.header("origin")
  const ownHosts = [request.header("host")?.toLowerCase(), hostOf(publicUrl ?? "")]
  const isForeign =
    (site === undefined && origin === undefined) ||
    (site !== undefined && site !== "same-origin") ||
    (origin !== undefined && !ownHosts.includes(hostOf(origin) ?? "none"))
  if (isForeign) return "This form was not sent by a page of Tributary. Nothing was done."
  return SessionCookies.isFormToken(cookies, session, token)
    ? null
    : "This form is from an outdated page. Nothing was done: go back, reload the page and send it again."
}

const logIn = Effect.fnUntraced(
  function* (access: AccessState, request: AccessRequest, text: string): Effect.fn.Return<LogInResult, unknown> {
    const keys = yield* SessionCookies.loadKeys(access.cookies)
    const result = yield* attemptPassword(access, keys, request, text)
    if (result._tag !== "Right") return result
    return { _tag: "Open", cookie: yield* SessionCookies.beginSession(access.cookies, keys) }
  },
  Effect.catch(() => Effect.succeed(away))
)

const openLink = ({ cookies, loopback, password }: AccessState, request: AccessRequest, token: string) =>
  orAway(
    Effect.gen(function* (): Effect.fn.Return<LogInResult, unknown> {
      const keys = yield* SessionCookies.loadKeys(cookies)
      const isHere = password !== null || LoopbackAccess.decide(loopback, request)._tag === "Granted"
      if (!isHere || !(yield* SessionCookies.isLinkToken(keys, token))) return { _tag: "Wrong" }
      return { _tag: "Open", cookie: yield* SessionCookies.beginSession(cookies, keys) }
    })
  )

export const make = Effect.fnUntraced(function* (
  options: AccessOptions
): Effect.fn.Return<Access, never, SecureRandom.SecureRandom> {
  const { host, password, port, publicUrl, sessions } = options
  const cookies = yield* SessionCookies.make(password, sessions)
  const access: AccessState = {
    password,
    publicUrl,
    loopback: LoopbackAccess.make(host, port),
    cookies,
    attempts: PasswordAttempts.make()
  }
  return {
    hasPassword: password !== null,
    linkToken:
      password === null
        ? SessionCookies.loadKeys(cookies).pipe(
            Effect.flatMap(SessionCookies.linkToken),
            Effect.orElseSucceed(() => null)
          )
        : Effect.succeed(null),
    decide: (request) => (password === null ? decideByLoopback(access, request) : decideByPassword(access, request)),
    formToken: (session) => SessionCookies.formToken(cookies, session),
    formProblem: (request, session, token) => formProblem(access, request, session, token),
    logIn: (request, text) => logIn(access, request, text),
    openLink: (request, token) => openLink(access, request, token),
    logOut: (session, everywhere) =>
      Effect.match(everywhere ? sessions.endAll : sessions.end(session), {
        onFailure: () => false,
        onSuccess: () => true
      }),
    forgetKeys: () => {
      cookies.keys = null
    }
  }
})
