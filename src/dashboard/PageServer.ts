/** The steps of one HTTP request to the dashboard: access, form and response. */
import { createHash } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { Context as HonoContext } from "hono"
import { deleteCookie, getCookie, setCookie } from "hono/cookie"
import type { Access } from "./Access.ts"
import type { AccessDecision, AccessRequest } from "./AccessDecision.ts"
import type { Assets } from "../web/Assets.ts"
import { writeTimes, zoneOf } from "../web/Times.ts"
import { away, notDone, refusal } from "./ErrorPages.ts"
import { layout } from "./Layout.ts"
import { html, type Page } from "./Page.ts"
import type { PageRunner } from "./PageRunner.ts"

export type Bindings = { Bindings: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse } }
/** A request and its response. */
export type Exchange = HonoContext<Bindings>

/** The state that all requests share. */
export interface PageServer {
  readonly hasTls: boolean
  /** The address for browsers, where a proxy is in front. */
  readonly publicUrl: string | null
  readonly version: string
  readonly access: Access
  readonly assets: Assets
  readonly runner: PageRunner
  /** Answers requests of assistants; null where there are none. */
  readonly assistant: ((request: Request) => Promise<Response>) | null
  /** Milliseconds of the monotonic clock. */
  readonly monotonicMs: () => number
  readonly run: <A>(effect: Effect.Effect<A>, signal: AbortSignal) => Promise<A>
}

export const bodyBytesMax = 64 * 1024
const noticeSeconds = 60
const cookies = { session: "tributary_session", notice: "tributary_said", zone: "tributary_zone" } as const

/** Whether the browser uses HTTPS, also to a proxy in front. */
const isSecure = ({ hasTls, publicUrl }: PageServer, exchange: Exchange): boolean =>
  hasTls ||
  publicUrl?.startsWith("https:") === true ||
  exchange.req.header("x-forwarded-proto")?.split(",")[0]?.trim().toLowerCase() === "https"

const setOwnCookie = (server: PageServer, exchange: Exchange, name: string, value: string, maxAge: number) =>
  setCookie(exchange, name, value, {
    path: "/",
    httpOnly: true,
    sameSite: "Strict",
    secure: isSecure(server, exchange),
    maxAge
  })

const deleteOwnCookie = (server: PageServer, exchange: Exchange, name: string) =>
  deleteCookie(exchange, name, { path: "/", secure: isSecure(server, exchange) })

export const setSession = (server: PageServer, exchange: Exchange, cookie: string, maxAge: Duration.Duration): void =>
  setOwnCookie(server, exchange, cookies.session, cookie, Duration.toSeconds(maxAge))

export const deleteSession = (server: PageServer, exchange: Exchange): void =>
  void deleteOwnCookie(server, exchange, cookies.session)

export const accessRequestOf = (exchange: Exchange): AccessRequest => ({
  method: exchange.req.method,
  address: exchange.env.incoming.socket.remoteAddress,
  header: (name) => exchange.req.header(name),
  httpVersion: exchange.env.incoming.httpVersion,
  cookie: getCookie(exchange, cookies.session)
})

/** Whether the page's script refreshes the page. Such a request shows no notice and is not redirected to a form. */
const isRefresh = (exchange: Exchange): boolean => exchange.req.header("hx-request") === "true"

/** The time zone that the reader's browser reported. */
export const readerZone = (exchange: Exchange): string => zoneOf(getCookie(exchange, cookies.zone))

/** Answers a page; `session` is null before a person logged in. */
export const show = async (
  server: PageServer,
  exchange: Exchange,
  shown: Page,
  session: string | null
): Promise<Response> => {
  const { access, assets, version } = server
  const notice = isRefresh(exchange) ? undefined : getCookie(exchange, cookies.notice)
  if (notice !== undefined) deleteOwnCookie(server, exchange, cookies.notice)
  const made = await layout({
    title: shown.title,
    section: shown.section,
    body: shown.body,
    isLive: shown.isLive !== false,
    notice: notice ?? null,
    logOutToken: session === null || session === "" ? null : access.formToken(session),
    hasMenu: session !== null,
    now: shown.now ?? null,
    version,
    assets
  })
  const text = made.toString()
  const zone = readerZone(exchange)
  const status = shown.status ?? 200
  exchange.header("Tributary-Assets", assets.version)
  if (status !== 200) return exchange.html(writeTimes(text, zone), status)
  // A page of which only the ages differ is unchanged: the browser keeps them moving.
  const etag = createHash("sha256")
    .update(writeTimes(text, zone, false))
    .digest("base64url")
  exchange.header("ETag", `"${etag}"`)
  return exchange.req.header("if-none-match")?.includes(etag) === true
    ? exchange.body(null, 304)
    : exchange.html(writeTimes(text, zone))
}

/** Redirects to a page that shows the notice once. */
export const redirectTo = (server: PageServer, exchange: Exchange, to: string, notice: string | null): Response => {
  if (notice !== null) setOwnCookie(server, exchange, cookies.notice, notice, noticeSeconds)
  return exchange.redirect(to, 303)
}

const redirectToLogin = (exchange: Exchange): Response | Promise<Response> => {
  const { pathname, search } = new URL(exchange.req.url)
  const login = `/login?next=${encodeURIComponent(exchange.req.method === "GET" ? pathname + search : "/")}`
  if (isRefresh(exchange)) return exchange.body(null, 401, { "HX-Redirect": login })
  // A link on another site is requested without the session's cookie. After a reload by this page the cookie is sent.
  const isLinkFromElsewhere =
    exchange.req.header("sec-fetch-site") === "cross-site" && exchange.req.header("sec-fetch-mode") === "navigate"
  return isLinkFromElsewhere
    ? exchange.html(
        html`<!doctype html>
          <html lang="en">
            <title>Tributary</title
            ><meta http-equiv="refresh" content="0" />
          </html>`
      )
    : exchange.redirect(login, 303)
}

export type Granted = Extract<AccessDecision, { readonly _tag: "Granted" }>

export const decide = (server: PageServer, exchange: Exchange): Promise<AccessDecision> =>
  server.run(server.access.decide(accessRequestOf(exchange)), exchange.req.raw.signal)

/** The granted access of a request, or the response that refuses it. */
export const admit = async (server: PageServer, exchange: Exchange): Promise<Granted | Response> => {
  const decision = await decide(server, exchange)
  switch (decision._tag) {
    case "Granted":
      return decision
    case "Away":
      return show(server, exchange, exchange.req.method === "POST" ? notDone : away, null)
    case "Refused":
      if (decision.retryAfterSeconds !== undefined) exchange.header("Retry-After", String(decision.retryAfterSeconds))
      if (decision.status === 401) exchange.header("WWW-Authenticate", "Bearer")
      return show(server, exchange, refusal(decision.status, decision.message), null)
    case "LogIn":
      return redirectToLogin(exchange)
  }
}

/** The body, with a length or in chunks; null where it exceeds {@link bodyBytesMax}. */
export const readBody = async ({ body, headers }: Request): Promise<string | null> => {
  if (body === null) return ""
  if (Number(headers.get("content-length") ?? 0) > bodyBytesMax) return null
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  // The peer is answered even if it continues to send.
  for await (const chunk of body.values({ preventCancel: true })) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** The fields of an accepted form, or the response that refuses it. */
export const readForm = async (
  server: PageServer,
  exchange: Exchange,
  session: string
): Promise<URLSearchParams | Response> => {
  const type = exchange.req.header("content-type")?.split(";")[0]?.trim().toLowerCase()
  if (type !== "application/x-www-form-urlencoded") {
    return show(server, exchange, refusal(415, "Only forms are accepted here."), session)
  }
  const text = await readBody(exchange.req.raw)
  if (text === null) {
    return show(server, exchange, refusal(413, `A form has at most ${bodyBytesMax / 1024} KB.`), session)
  }
  const form = new URLSearchParams(text)
  const problem = server.access.formProblem(accessRequestOf(exchange), session, form.get("form_token"))
  return problem === null ? form : show(server, exchange, refusal(403, problem), session)
}
