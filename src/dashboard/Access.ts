/**
 * Who may see the pages, and whose forms are believed.
 *
 * Promise: without a password the pages are answered to this machine only, and for reading: the connection comes from
 * loopback, the Host is a loopback name with this port (so that no foreign name can be made to point here) and no header
 * says that a proxy passed the request on. A proxy that adds no header cannot be told from a person at this machine;
 * therefore what changes something takes a session as well, which the link opens that `serve` prints when it starts.
 * With a password every session begins with it. A form is believed only from a page of ours: by the browser's word
 * (Origin, Sec-Fetch-Site) and by a token in the form that belongs to the session.
 *
 * Sessions and tokens are signed with a random key of the installation, and nothing that is sent depends on the password:
 * it can be guessed only by asking, so many times in a minute. Every process on the same warehouse with
 * the same password takes a session. It ends after twelve hours, at a log-out, or when the password changes. A browser
 * that logged in before has a limit of its own, so that others cannot lock it out. Programs send `Authorization: Bearer`
 * with the password; they read, and change nothing: the commands do that.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import { isIP, isIPv6 } from "node:net"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/encoding/Base64Url"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type { Sessions } from "./Sessions.ts"

/** What a request says of who sends it. */
export interface AccessRequest {
  readonly method: string
  /** Of the connection. */
  readonly address: string | undefined
  readonly header: (name: string) => string | undefined
  /** Of HTTP: `1.1`. */
  readonly httpVersion: string
  /** Of the session; undefined when there is none. */
  readonly cookie: string | undefined
}

export type Verdict =
  /** `session` is what form tokens are bound to; empty where there is none, and nothing may be changed then. */
  | { readonly _tag: "Granted"; readonly by: "loopback" | "session" | "bearer"; readonly session: string }
  /** The warehouse, which knows the sessions, does not answer. */
  | { readonly _tag: "Away" }
  | { readonly _tag: "LogIn" }
  | {
      readonly _tag: "Refused"
      readonly status: 401 | 403 | 429
      readonly message: string
      readonly retryAfterSeconds?: number
    }

export interface AccessOptions {
  readonly host: string
  readonly port: number
  readonly password: Redacted.Redacted | null
  readonly publicUrl: string | null
  readonly sessions: Sessions<unknown>
}

export type LogIn =
  | { readonly _tag: "Away" }
  | { readonly _tag: "Open"; readonly cookie: string }
  | { readonly _tag: "Wrong" }
  | { readonly _tag: "TooMany"; readonly retryAfterSeconds: number }

export interface Access {
  readonly hasPassword: boolean
  /** Opens a session where there is no password: proof that somebody sees what this process prints. */
  readonly linkToken: string | null
  readonly judge: (asked: AccessRequest) => Effect.Effect<Verdict>
  /** The hidden field of forms. Only after {@link judge}, which fetches the key. */
  readonly formToken: (session: string) => string
  /** Why a form is not believed; null when it is. */
  readonly doubt: (asked: AccessRequest, session: string, token: string | null) => string | null
  readonly logIn: (asked: AccessRequest, password: string) => Effect.Effect<LogIn>
  /** A session by the token of the link; null where it is another one. */
  readonly openLink: (asked: AccessRequest, token: string) => Effect.Effect<LogIn>
  /** Ends a session, or all of them; false where the warehouse does not answer. */
  readonly logOut: (session: string, everywhere: boolean) => Effect.Effect<boolean>
  /** The key is fetched anew: the warehouse may be another one. */
  readonly forget: () => void
}

/** Why nothing can be changed, and what to do. */
export const readingOnly = {
  loopback:
    "Reading only: to act, open the link that tributary serve printed when it started, or set a password " +
    "(TRIBUTARY_DASHBOARD_PASSWORD).",
  bearer: "With the password in a header the pages are for reading; the commands change things."
} as const

/** Form tokens of the page on which somebody logs in, who has no session yet. */
export const noSession = "log in"
export const sessionMs = 12 * 60 * 60_000
/** For so long is a browser known after its session ended. */
export const sessionCacheMs = 30 * 24 * 60 * 60_000
/** Begins each session, and no address. */
const knownPrefix = "s."
const windowMs = 60_000
/** Wrong passwords within a minute from one address, and from all of them. */
const wrongMax = 10
const wrongOfAllMax = 100
/** How long the warehouse may take to say whether a session is open. */
const sessionMaxMs = 5_000
/** The generation of sessions that a link opened. */
const linkGeneration = "link"

/** Headers by which something in front of the page says that it passes on what others asked. */
const passedOn = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"]

const refused = (status: 401 | 403, message: string): Verdict => ({ _tag: "Refused", status, message })

const isLoopback = (address: string): boolean => /^(?:::ffff:)?127\.\d+\.\d+\.\d+$/.test(address) || address === "::1"

/** Equal texts, in a time that tells nothing of where they differ. */
const same = (one: string, other: string): boolean =>
  timingSafeEqual(createHash("sha256").update(one).digest(), createHash("sha256").update(other).digest())

/** Who shares what is bounded for an address: of IPv6 a whole network is one. */
const neighbours = (address = ""): string => {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, "").replace(/%.*$/, "")
  if (!isIPv6(plain)) return plain
  const [head = "", tail = ""] = plain.split("::")
  const groups = (text: string) => text.split(":").filter((group) => group !== "")
  const zeros = Array<string>(Math.max(0, 8 - groups(head).length - groups(tail).length)).fill("0")
  return [...groups(head), ...zeros, ...groups(tail)].slice(0, 4).join(":")
}

const hostOf = (url: string): string | null => (URL.canParse(url) ? new URL(url).host : null)

interface Keys {
  readonly key: Uint8Array
  readonly generation: string
}

export const make = Effect.fnUntraced(function* (
  options: AccessOptions
): Effect.fn.Return<Access, never, SecureRandom.SecureRandom> {
  const { password, port, sessions } = options
  const random = yield* SecureRandom.SecureRandom
  const linkToken = password === null ? Encoding.encode(yield* random.randomBytes(24)) : null

  let keys: Keys | null = null
  const fetchKeys: Effect.Effect<Keys, unknown> = Effect.gen(function* () {
    if (keys !== null) return keys
    const key = yield* sessions.key
    keys = {
      key,
      generation: password === null ? linkGeneration : yield* sessions.generation(Redacted.value(password))
    }
    return keys
  })
  /** Many requests at once hash the password once. */
  const turn = Semaphore.makeUnsafe(1)
  const loadKeys = Effect.suspend(() => (keys === null ? turn.withPermit(fetchKeys) : Effect.succeed(keys)))
  const sign = ({ key, generation }: Keys, purpose: string, text: string) =>
    createHmac("sha256", key).update(`${purpose}\n${generation}\n${text}`).digest("base64url")

  /** The slow hash is for what is kept; this process has the password itself, and a guess costs it next to nothing. */
  const isPassword = (text: string) => password !== null && same(text, Redacted.value(password))

  const named = options.host.includes(":") ? `[${options.host}]` : options.host
  const hosts = new Set(
    ["localhost", "127.0.0.1", "[::1]", named].flatMap((name) => [
      `${name}:${port}`,
      ...(port === 80 || port === 443 ? [name] : [])
    ])
  )

  /** The session that a cookie names, however old, if we gave it. */
  const signedOf = (known: Keys, cookie: string | undefined): string | null => {
    const [session = "", signature = ""] = cookie?.split("~") ?? []
    return session.startsWith(knownPrefix) && same(signature, sign(known, "session", session)) ? session : null
  }
  /** Behind a proxy that the configuration names, its word for who asks; a lie there evades only the limit per address. */
  const addressOf = (asked: AccessRequest): string => {
    const passed = options.publicUrl === null ? undefined : asked.header("x-forwarded-for")?.split(",").at(-1)?.trim()
    return neighbours(passed !== undefined && isIP(passed) !== 0 ? passed : asked.address)
  }

  let wrongs: ReadonlyArray<{ readonly at: number; readonly from: string }> = []
  /** After how many seconds somebody there may try again; 0 for now. */
  const waitSeconds = (now: number, from: string): number => {
    wrongs = wrongs.filter(({ at }) => now - at < windowMs && at <= now)
    const own = wrongs.filter((one) => one.from === from)
    const others = from.startsWith(knownPrefix) ? [] : wrongs
    const first = own.length >= wrongMax ? own[0] : others.length >= wrongOfAllMax ? others[0] : undefined
    return first === undefined ? 0 : Math.max(1, Math.ceil((first.at + windowMs - now) / 1000))
  }
  /** Compares, and not at all where too many were wrong. */
  const attempt = (known: Keys, asked: AccessRequest, text: string): Effect.Effect<"right" | "wrong" | number> =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const from = signedOf(known, asked.cookie) ?? addressOf(asked)
      const wait = waitSeconds(now, from)
      if (wait > 0) return wait
      if (isPassword(text)) return "right"
      wrongs = [...wrongs, { at: now, from }]
      return "wrong"
    })

  const atThisMachine = (asked: AccessRequest): Verdict => {
    if (asked.address === undefined || !isLoopback(asked.address)) {
      return refused(
        403,
        "Without a password these pages are only for this machine. Set one (dashboard.password_env, or " +
          "TRIBUTARY_DASHBOARD_PASSWORD) to see them from another."
      )
    }
    const header = passedOn.find((name) => asked.header(name) !== undefined)
    if (header !== undefined) {
      return refused(
        403,
        `Something in front passed this request on (${header}), so that others may reach these pages: set a password ` +
          "(dashboard.password_env, or TRIBUTARY_DASHBOARD_PASSWORD)."
      )
    }
    if (asked.httpVersion === "1.0") {
      return refused(
        403,
        "Something in front passed this request on (HTTP/1.0), so that others may reach these pages: set a password " +
          "(dashboard.password_env, or TRIBUTARY_DASHBOARD_PASSWORD)."
      )
    }
    if (!hosts.has(asked.header("host")?.toLowerCase() ?? "")) {
      return refused(
        403,
        `Without a password these pages are only answered as http://127.0.0.1:${port} or http://localhost:${port}.`
      )
    }
    // A link on another site may lead here; nothing else there may ask for a page, which may ask the source in turn.
    const site = asked.header("sec-fetch-site")
    const isLed = asked.header("sec-fetch-mode") === "navigate" && asked.header("sec-fetch-dest") === "document"
    if ((site === "cross-site" || site === "same-site") && !isLed) {
      return refused(403, "Another site asked for this page, and is not answered.")
    }
    return { _tag: "Granted", by: "loopback", session: "" }
  }

  /** The session that is open by a cookie, or null. */
  const sessionOf = Effect.fnUntraced(function* (known: Keys, cookie: string | undefined) {
    const now = yield* Clock.currentTimeMillis
    const session = signedOf(known, cookie)
    if (session === null) return null
    const until = Number(session.slice(knownPrefix.length).split(".")[0])
    if (!(until > now && until <= now + 2 * sessionMs)) return null
    return (yield* sessions.isOpen(session, known.generation)) ? session : null
  })
  const begin = Effect.fnUntraced(function* (known: Keys): Effect.fn.Return<LogIn, unknown> {
    const until = (yield* Clock.currentTimeMillis) + sessionMs
    const session = `${knownPrefix}${until}.${Encoding.encode(yield* random.randomBytes(16))}`
    yield* sessions.begin(session, known.generation, sessionMs)
    return { _tag: "Open", cookie: `${session}~${sign(known, "session", session)}` }
  })
  /** Whatever the warehouse fails with, it is away. */
  const orAway = <A>(effect: Effect.Effect<A, unknown>): Effect.Effect<A | { readonly _tag: "Away" }> =>
    effect.pipe(
      Effect.timeout(sessionMaxMs),
      Effect.catch(() => Effect.succeed({ _tag: "Away" as const }))
    )

  const judgeBearer = Effect.fnUntraced(function* (known: Keys, asked: AccessRequest, authorization: string) {
    const bearer = /^Bearer +(\S.*)$/i.exec(authorization)?.[1]
    const outcome = bearer === undefined ? "wrong" : yield* attempt(known, asked, bearer)
    if (typeof outcome === "number") {
      return {
        _tag: "Refused",
        status: 429,
        message: "Too many wrong passwords. Wait a minute.",
        retryAfterSeconds: outcome
      } satisfies Verdict
    }
    if (outcome === "wrong") return refused(401, "That is not the password of these pages.")
    if (asked.method !== "GET" && asked.method !== "HEAD") return refused(403, readingOnly.bearer)
    return { _tag: "Granted", by: "bearer", session: "" } satisfies Verdict
  })

  const formToken = (session: string) => (keys === null ? "" : sign(keys, "form", session))
  return {
    hasPassword: password !== null,
    linkToken,
    judge: (asked): Effect.Effect<Verdict> => {
      if (password === null) {
        const verdict = atThisMachine(asked)
        if (verdict._tag !== "Granted") return Effect.succeed(verdict)
        return Effect.flatMap(loadKeys, (known) => sessionOf(known, asked.cookie)).pipe(
          Effect.map((session): Verdict => (session === null ? verdict : { _tag: "Granted", by: "session", session })),
          orAway,
          // Without the warehouse nothing is shown but that it is away, and nothing is done.
          Effect.map((judged) => (judged._tag === "Away" && asked.method !== "POST" ? verdict : judged))
        )
      }
      return Effect.gen(function* (): Effect.fn.Return<Verdict, unknown> {
        const known = yield* loadKeys
        const authorization = asked.header("authorization")
        if (authorization !== undefined) return yield* judgeBearer(known, asked, authorization)
        const session = yield* sessionOf(known, asked.cookie)
        return session === null ? { _tag: "LogIn" } : { _tag: "Granted", by: "session", session }
      }).pipe(Effect.catch(() => Effect.succeed({ _tag: "Away" as const })))
    },
    formToken,
    doubt: (asked, session, token) => {
      const site = asked.header("sec-fetch-site")
      const origin = asked.header("origin")
      const ours = [asked.header("host")?.toLowerCase(), hostOf(options.publicUrl ?? "")]
      const foreign = "This form was not sent by a page of Tributary, so that nothing was done."
      if (site === undefined && origin === undefined) return foreign
      if (site !== undefined && site !== "same-origin") return foreign
      if (origin !== undefined && !ours.includes(hostOf(origin) ?? "none")) return foreign
      if (keys === null || token === null || !same(token, formToken(session))) {
        return "This form is of a page from before, so that nothing was done. Go back, reload the page and send it again."
      }
      return null
    },
    logIn: (asked, text) =>
      Effect.gen(function* (): Effect.fn.Return<LogIn, unknown> {
        const known = yield* loadKeys
        const outcome = yield* attempt(known, asked, text)
        if (typeof outcome === "number") return { _tag: "TooMany", retryAfterSeconds: outcome }
        return outcome === "wrong" ? { _tag: "Wrong" } : yield* begin(known)
      }).pipe(Effect.catch(() => Effect.succeed({ _tag: "Away" as const }))),
    openLink: (asked, token) =>
      linkToken === null || atThisMachine(asked)._tag !== "Granted" || !same(token, linkToken)
        ? Effect.succeed({ _tag: "Wrong" })
        : orAway(Effect.flatMap(loadKeys, begin)),
    logOut: (session, everywhere) =>
      Effect.match(everywhere ? sessions.endAll : sessions.end(session), {
        onFailure: () => false,
        onSuccess: () => true
      }),
    forget: () => {
      keys = null
    }
  }
})
