/**
 * Who may see the pages, and whose forms are believed.
 *
 * Promise: without a password only somebody at this machine is answered: the connection comes from loopback, the Host is
 * a loopback name with this port (so that no foreign name can be made to point here) and nothing in front says that it
 * passed the request on. With a password everybody else has to prove that they know it. What would change something is
 * believed only from a page of ours: by the browser's word (Origin, Sec-Fetch-Site) and by a token in the form that
 * belongs to the session.
 *
 * A session is a cookie that a key made from the password has signed: every process with the same password takes it, it
 * ends after twelve hours or when the password changes, and nothing is kept here. Wrong passwords are answered slowly and
 * only so many in a minute; a browser in which somebody logged in before is counted by itself, so that others cannot keep
 * it out. Programs send `Authorization: Bearer`
 * with the password; they may read and change nothing, for which there are the commands.
 */
import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto"
import { isIPv6 } from "node:net"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/encoding/Base64Url"
import * as Redacted from "effect/Redacted"
import * as SecureRandom from "effect/crypto/SecureRandom"

/** What a request says of who sends it. */
export interface Asked {
  readonly method: string
  /** Of the connection. */
  readonly address: string | undefined
  readonly header: (name: string) => string | undefined
  /** Of the session; undefined when there is none. */
  readonly cookie: string | undefined
}

export type Verdict =
  /** `session` is what form tokens are bound to; empty on loopback without a password. */
  | { readonly _tag: "Granted"; readonly by: "loopback" | "session" | "bearer"; readonly session: string }
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
}

export type LogIn =
  | { readonly _tag: "Open"; readonly cookie: string }
  | { readonly _tag: "Wrong" }
  | { readonly _tag: "TooMany"; readonly retryAfterSeconds: number }

export interface Access {
  readonly hasPassword: boolean
  readonly judge: (asked: Asked) => Effect.Effect<Verdict>
  /** The hidden field of forms. */
  readonly formToken: (session: string) => string
  /** Why a form is not believed; null when it is. */
  readonly doubt: (asked: Asked, session: string, token: string | null) => string | null
  readonly logIn: (asked: Asked, password: string) => Effect.Effect<LogIn>
}

/** Form tokens of the page on which somebody logs in, who has no session yet. */
export const noSession = "log in"
export const sessionMs = 12 * 60 * 60_000
/** For so long is a browser known after its session ended. */
export const knownMs = 30 * 24 * 60 * 60_000
/** Begins each session, and no address. */
const knownPrefix = "s."
const windowMs = 60_000
/** Wrong passwords within a minute from one address, and from all of them. */
const wrongMax = 10
const wrongOfAllMax = 100
const wrongPauseMs = 500

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

/** Without a password, form tokens are of this process. */
export const make = Effect.fnUntraced(function* (
  options: AccessOptions
): Effect.fn.Return<Access, never, SecureRandom.SecureRandom> {
  const { password, port } = options
  const random = yield* SecureRandom.SecureRandom
  const key =
    password === null
      ? yield* random.randomBytes(32)
      : new Uint8Array(hkdfSync("sha256", Redacted.value(password), "", "tributary dashboard session 1", 32))
  const sign = (purpose: string, text: string) =>
    createHmac("sha256", key).update(`${purpose}\n${text}`).digest("base64url")
  const isPassword = (text: string) => password !== null && same(text, Redacted.value(password))

  const named = options.host.includes(":") ? `[${options.host}]` : options.host
  const hosts = new Set(
    ["localhost", "127.0.0.1", "[::1]", named].flatMap((name) => [
      `${name}:${port}`,
      ...(port === 80 || port === 443 ? [name] : [])
    ])
  )

  /** The session that a cookie names, however old, if we gave it. */
  const signedOf = (cookie: string | undefined): string | null => {
    const [session = "", signature = ""] = cookie?.split("~") ?? []
    return session.startsWith(knownPrefix) && same(signature, sign("session", session)) ? session : null
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
  /** Compares, slowly where it is wrong, and not at all where too many were. */
  const attempt = (asked: Asked, text: string): Effect.Effect<"right" | "wrong" | number> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const from = signedOf(asked.cookie) ?? neighbours(asked.address)
      const wait = waitSeconds(now, from)
      if (wait > 0) return wait
      if (isPassword(text)) return "right"
      wrongs = [...wrongs, { at: now, from }]
      yield* Effect.sleep(wrongPauseMs)
      return "wrong"
    })

  const atThisMachine = (asked: Asked): Verdict => {
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
  const sessionOf = (cookie: string | undefined, now: number): string | null => {
    const session = signedOf(cookie)
    if (session === null) return null
    const until = Number(session.slice(knownPrefix.length).split(".")[0])
    return until > now && until <= now + 2 * sessionMs ? session : null
  }

  const formToken = (session: string) => sign("form", session)
  return {
    hasPassword: password !== null,
    judge: (asked) =>
      Effect.gen(function* () {
        if (password === null) return atThisMachine(asked)
        const authorization = asked.header("authorization")
        if (authorization !== undefined) {
          const bearer = /^Bearer +(\S.*)$/i.exec(authorization)?.[1]
          const outcome = bearer === undefined ? "wrong" : yield* attempt(asked, bearer)
          if (typeof outcome === "number") {
            return {
              _tag: "Refused",
              status: 429,
              message: "Too many wrong passwords. Wait a minute.",
              retryAfterSeconds: outcome
            }
          }
          if (outcome === "wrong") return refused(401, "That is not the password of these pages.")
          if (asked.method !== "GET" && asked.method !== "HEAD") {
            return refused(403, "With the password in a header the pages are for reading; the commands change things.")
          }
          return { _tag: "Granted", by: "bearer", session: "" }
        }
        const session = sessionOf(asked.cookie, yield* Clock.currentTimeMillis)
        return session === null ? { _tag: "LogIn" } : { _tag: "Granted", by: "session", session }
      }),
    formToken,
    doubt: (asked, session, token) => {
      const site = asked.header("sec-fetch-site")
      const origin = asked.header("origin")
      const ours = [asked.header("host")?.toLowerCase(), hostOf(options.publicUrl ?? "")]
      const foreign = "This form was not sent by a page of Tributary, so that nothing was done."
      if (site === undefined && origin === undefined) return foreign
      if (site !== undefined && site !== "same-origin") return foreign
      if (origin !== undefined && !ours.includes(hostOf(origin) ?? "none")) return foreign
      if (token === null || !same(token, formToken(session))) {
        return "This form is of a page from before, so that nothing was done. Go back, reload the page and send it again."
      }
      return null
    },
    logIn: (asked, text) =>
      Effect.gen(function* () {
        const outcome = yield* attempt(asked, text)
        if (typeof outcome === "number") return { _tag: "TooMany", retryAfterSeconds: outcome }
        if (outcome === "wrong") return { _tag: "Wrong" }
        const until = (yield* Clock.currentTimeMillis) + sessionMs
        const session = `${knownPrefix}${until}.${Encoding.encode(yield* random.randomBytes(16))}`
        return { _tag: "Open", cookie: `${session}~${sign("session", session)}` }
      })
  }
})
