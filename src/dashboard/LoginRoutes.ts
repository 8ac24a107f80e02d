/** Log-in and log-out: by the password, or by a link. */
import type { Hono } from "hono"
import { noSession } from "./Access.ts"
import { away, notDone, refusal } from "./ErrorPages.ts"
import { html, page, type Page, type PageStatus } from "./Page.ts"
import {
  accessRequestOf,
  admit,
  type Bindings,
  decide,
  deleteSession,
  type Exchange,
  type PageServer,
  readForm,
  setSession,
  show
} from "./PageServer.ts"
import { knownBrowserLifetime, sessionLifetime } from "./SessionCookies.ts"

const staleLink = "This link is outdated, or for another machine. Open the link that tributary serve link prints there."

export const loginPage = (token: string, next: string, problem: string | null, status: PageStatus): Page =>
  page({
    title: "Log in",
    status,
    section: null,
    isLive: false,
    body: html`<h1>Log in</h1>
      ${problem === null ? "" : html`<p class="problem" id="problem" role="alert">${problem}</p>`}
      <form method="post" action="/login" class="stack">
        <input type="hidden" name="form_token" value="${token}" /><input type="hidden" name="next" value="${next}" />
        <p>
          <label for="password">Password</label>
          <input
            type="password"
            id="password"
            name="password"
            autocomplete="current-password"
            required
            autofocus${problem === null ? "" : html` aria-describedby="problem" aria-invalid="true"`}
          />
        </p>
        <p class="buttons"><button type="submit" class="primary">Log in</button></p>
      </form>
      <p class="hint">
        The password is in <code>TRIBUTARY_DASHBOARD_PASSWORD</code>, or in the variable that
        <code>dashboard.password_env</code> names, in the environment of tributary serve.
      </p>`
  })

/** The page after the log-in; an address outside the dashboard becomes `/`. */
const ownPath = (next: string | null | undefined): string => {
  const here = "http://here.invalid"
  if (next === null || next === undefined || !URL.canParse(next, here)) return "/"
  const url = new URL(next, here)
  // A browser takes `//name/` for the address of another host.
  return url.origin === here && !url.pathname.startsWith("//") ? `${url.pathname}${url.search}` : "/"
}

const showLogin = (server: PageServer, exchange: Exchange, next: string, problem: string | null, status: PageStatus) =>
  show(server, exchange, loginPage(server.access.formToken(noSession), next, problem, status), null)

const getLogin = async (server: PageServer, exchange: Exchange): Promise<Response> => {
  const decision = await decide(server, exchange)
  const next = ownPath(exchange.req.query("next"))
  if (decision._tag === "Granted") return exchange.redirect(next, 303)
  return decision._tag === "Away" ? show(server, exchange, away, null) : showLogin(server, exchange, next, null, 200)
}

const postLogin = async (server: PageServer, exchange: Exchange): Promise<Response> => {
  const { access, run } = server
  // This also loads the key that signs the form's token.
  const decision = await decide(server, exchange)
  if (decision._tag === "Away") return show(server, exchange, notDone, null)
  const form = await readForm(server, exchange, noSession)
  if (form instanceof Response) return form
  const next = ownPath(form.get("next"))
  const result = await run(access.logIn(accessRequestOf(exchange), form.get("password") ?? ""), exchange.req.raw.signal)
  switch (result._tag) {
    case "Open":
      setSession(server, exchange, result.cookie, knownBrowserLifetime)
      return exchange.redirect(next, 303)
    case "Away":
      return show(server, exchange, notDone, null)
    case "Wrong":
      return showLogin(server, exchange, next, "That is not the password.", 401)
    case "TooMany": {
      const { retryAfterSeconds } = result
      exchange.header("Retry-After", String(retryAfterSeconds))
      const problem = `Too many wrong passwords. Try again in ${retryAfterSeconds} s, or open the link that tributary serve link prints.`
      return showLogin(server, exchange, next, problem, 429)
    }
  }
}

const openLink = async (server: PageServer, exchange: Exchange): Promise<Response> => {
  const result = await server.run(
    server.access.openLink(accessRequestOf(exchange), exchange.req.query("token") ?? ""),
    exchange.req.raw.signal
  )
  if (result._tag === "Away") return show(server, exchange, away, null)
  if (result._tag !== "Open") return show(server, exchange, refusal(403, staleLink), null)
  setSession(server, exchange, result.cookie, sessionLifetime)
  return exchange.redirect("/", 303)
}

const logOut = async (server: PageServer, exchange: Exchange): Promise<Response> => {
  const { access, run } = server
  const admitted = await admit(server, exchange)
  if (admitted instanceof Response) return admitted
  const form = await readForm(server, exchange, admitted.session)
  if (form instanceof Response) return form
  const isEnded = await run(access.logOut(admitted.session, form.has("everywhere")), new AbortController().signal)
  if (!isEnded) return show(server, exchange, notDone, admitted.session)
  deleteSession(server, exchange)
  return exchange.redirect(access.hasPassword ? "/login" : "/", 303)
}

export const addLoginRoutes = (app: Hono<Bindings>, server: PageServer): void => {
  if (server.access.hasPassword) {
    app.get("/login", (exchange) => getLogin(server, exchange))
    app.post("/login", (exchange) => postLogin(server, exchange))
  }
  app.get("/open", (exchange) => openLink(server, exchange))
  app.post("/logout", (exchange) => logOut(server, exchange))
}
