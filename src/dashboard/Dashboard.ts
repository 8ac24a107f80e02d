/**
 * The page for people that `tributary serve` shows.
 *
 * Promise: it listens from the first moment to the last. Without the warehouse it says that it is away, and shows the
 * pages again as soon as it is back; a page that fails says so and tells nothing of the inside. Every page that does not ask
 * the source is one read-only transaction of the reader (src/warehouse/Reader.ts) with a timeout for each statement, so that
 * looking never changes or holds up anything. Who may look, and whose forms are believed, is decided in Access.ts before
 * anything else is done.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { getRequestListener } from "@hono/node-server"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Deferred from "effect/Deferred"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type Context as HonoContext, Hono } from "hono"
import { compress } from "hono/compress"
import { deleteCookie, getCookie, setCookie } from "hono/cookie"
import { etag } from "hono/etag"
import { secureHeaders } from "hono/secure-headers"
import type { ListenError, Tls } from "../http/Server.ts"
import * as Server from "../http/Server.ts"
import * as Reader from "../warehouse/Reader.ts"
import type { Datasets } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as Access from "./Access.ts"
import * as Sessions from "./Sessions.ts"
import * as Assets from "./Assets.ts"
import { layout } from "./Layout.ts"
import {
  html,
  page,
  PageError,
  type Answer,
  type Page,
  type PageRequest,
  type PageStatus,
  type Route,
  type ShownCompany
} from "./Page.ts"
import { routes } from "./Routes.ts"

export interface DashboardOptions {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** PEM files; null for plain HTTP. */
  readonly tls: Tls | null
  /** Null only where nobody else can reach it. Also the bearer token of programs. */
  readonly password: Redacted.Redacted | null
  /** The address that people use where a proxy stands in front. */
  readonly publicUrl: string | null
  readonly datasets: Datasets
  readonly version: string
}

export interface Dashboard {
  readonly url: string
  /** Opens a session with which things can be done, where there is no password; null where there is one. */
  readonly link: string | null
  /** Gives the pages their warehouse and companies for as long as it runs; without, they say that the warehouse is away. */
  readonly within: (
    companies: ReadonlyArray<ShownCompany>
  ) => Effect.Effect<never, never, Database | SqlClient.SqlClient>
}

/** What pages are made of, while there is a warehouse. */
interface Behind {
  readonly companies: ReadonlyArray<ShownCompany>
  readonly context: Context.Context<Database | SqlClient.SqlClient>
  /** As whom pages read. */
  readonly pages: Effect.Effect<Reader.Pages>
  readonly background: PageRequest["background"]
}

type Bindings = { Bindings: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse } }
type Asking = HonoContext<Bindings>

const bodyBytesMax = 64 * 1024
const statementMaxMs = 10_000
const pageMaxMs = 15_000
/** What is done may ask the source, which has a timeout of its own. */
const actionMaxMs = 90_000
/** Pages must not take all connections from those who do the work. */
const pagesAtOnce = 2
const saidSeconds = 60
const cookies = { session: "tributary_session", said: "tributary_said" } as const

/** Until its scope ends. */
export const start = Effect.fnUntraced(function* (
  options: DashboardOptions
): Effect.fn.Return<Dashboard, ListenError, Scope.Scope> {
  const run = yield* FiberSet.makeRuntimePromise()
  let behind: Behind | null = null
  /** Both are set as soon as it listens. */
  let answer: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => {
    response.writeHead(503).end()
  }
  let isStopping = () => false
  const server = yield* Server.listen({
    purpose: "show the page for people",
    host: options.host,
    port: options.port,
    tls: options.tls,
    bodyBytesMax,
    silenceMaxMs: actionMaxMs + pageMaxMs,
    handle: (request, response) => {
      request.on("error", () => {})
      response.on("error", () => {})
      // A connection that nobody closes would hold up the end.
      response.once("finish", () => {
        if (isStopping()) request.socket.destroySoon()
      })
      answer(request, response)
    }
  })
  isStopping = server.isStopping
  const inWarehouse = <A>(
    use: (sessions: Sessions.Sessions<SqlError>) => Effect.Effect<A, SqlError>
  ): Effect.Effect<A, SqlError | "away"> =>
    Effect.suspend((): Effect.Effect<A, SqlError | "away"> =>
      behind === null
        ? Effect.fail("away" as const)
        : Effect.provideContext(
            Effect.flatMap(Effect.provide(Sessions.inWarehouse, SecureRandom.layerWebCrypto), use),
            behind.context
          )
    )
  const access = yield* Access.make({
    ...options,
    port: server.port,
    sessions: {
      key: inWarehouse(({ key }) => key),
      generation: (password) => inWarehouse(({ generation }) => generation(password)),
      begin: (session, generation, forMs) => inWarehouse(({ begin }) => begin(session, generation, forMs)),
      isOpen: (session, generation) => inWarehouse(({ isOpen }) => isOpen(session, generation)),
      end: (session) => inWarehouse(({ end }) => end(session)),
      endAll: inWarehouse(({ endAll }) => endAll)
    }
  }).pipe(Effect.provide(SecureRandom.layerWebCrypto))
  const app = application({
    options,
    access,
    assets: Assets.load(),
    behind: () => behind,
    run: (effect, signal) => run(effect, { signal })
  })
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false })
  answer = (request, response) => void listener(request, response)

  return {
    url: server.url,
    link: access.linkToken === null ? null : `${server.url}/open?token=${access.linkToken}`,
    within: (companies) =>
      Effect.scoped(
        Effect.gen(function* () {
          const context = yield* Effect.context<Database | SqlClient.SqlClient>()
          const begun = yield* FiberSet.make()
          const pages = yield* Deferred.make<Reader.Pages>()
          yield* readerPages.pipe(
            Effect.flatMap((made) => Deferred.succeed(pages, made)),
            Effect.forkScoped
          )
          const mine: Behind = {
            companies,
            context,
            pages: Deferred.await(pages),
            background: (effect) => Effect.asVoid(FiberSet.run(begun, Effect.provideContext(effect, context)))
          }
          yield* Effect.acquireRelease(
            Effect.sync(() => {
              access.forget()
              behind = mine
            }),
            () =>
              Effect.sync(() => {
                if (behind === mine) behind = null
              })
          )
          return yield* Effect.never
        })
      )
  }
})

const readerRetryMs = 1_000

/** As whom pages read; asked again while the server does not answer. */
const readerPages = Reader.pages.pipe(
  Effect.retry(Schedule.spaced(readerRetryMs)),
  Effect.tap(({ asOwner }) =>
    asOwner === null
      ? Effect.void
      : Effect.logInfo(
          `the dashboard reads as the owner, in read-only transactions: ${asOwner.reason}; ${asOwner.remedy}`
        )
  ),
  Effect.orDie
)

type Granted = Extract<Access.Verdict, { readonly _tag: "Granted" }>

interface Application {
  readonly options: DashboardOptions
  readonly access: Access.Access
  readonly assets: Assets.Assets
  readonly behind: () => Behind | null
  readonly run: <A>(effect: Effect.Effect<A>, signal: AbortSignal) => Promise<A>
}

// ------------------------------------------------------------------------------------------------------- what is shown

/** Comes alive by itself when it is over. */
const passing = (title: string, sentence: string): Page =>
  page({
    title,
    status: 503,
    section: null,
    body: html`<h1>${title}</h1>
      <p>${sentence}</p>`
  })

const away = passing(
  "The warehouse is away",
  "Postgres does not answer. This page shows itself again as soon as it does; nothing is lost meanwhile."
)

const slow = passing("The warehouse is slow", "It took too long to answer. This page tries again by itself.")

const failed = passing(
  "This page cannot be shown now",
  "The warehouse could not answer it; the log of the service says why. This page tries again by itself."
)

const problemPage = (status: PageStatus, title: string, sentence: string): Page =>
  page({
    title,
    status,
    section: null,
    isLive: false,
    body: html`<h1>${title}</h1>
      <p>${sentence}</p>`
  })

const notDone = problemPage(503, "The warehouse is away", "Postgres does not answer, so that nothing was done.")
const notCertain = problemPage(
  503,
  "The warehouse failed",
  "It is not certain that this was done. Look at the page again before you repeat it."
)

const titles = {
  400: "That makes no sense",
  403: "Not allowed",
  404: "There is nothing here",
  409: "Not now",
  413: "That is too much",
  415: "Not a form",
  429: "Too many wrong passwords",
  401: "Not the password"
} as const
const refusal = (status: keyof typeof titles, sentence: string): Page => problemPage(status, titles[status], sentence)

const oldLink =
  "This link is of a process from before. Open the one that tributary serve printed when it started last, on this machine."

const broken = problemPage(500, "Something went wrong", "The page could not be made. The log of the service says why.")

const loginPage = (token: string, next: string, problem: string | null, status: PageStatus): Page =>
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
        It is the one in <code>TRIBUTARY_DASHBOARD_PASSWORD</code>, or in the variable that
        <code>dashboard.password_env</code> names, where the service runs.
      </p>`
  })

/** The body, with a length or in chunks; null where it is larger than a form may be. */
const bodyOf = async ({ body, headers }: Request): Promise<string | null> => {
  if (body === null) return ""
  if (Number(headers.get("content-length") ?? 0) > bodyBytesMax) return null
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  // The peer is answered, whatever it goes on to send.
  for await (const chunk of body.values({ preventCancel: true })) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Only somewhere in these pages. */
const nextOf = (asked: string | null | undefined): string => {
  const here = "http://here.invalid"
  if (asked === null || asked === undefined || !URL.canParse(asked, here)) return "/"
  const url = new URL(asked, here)
  return url.origin === here ? `${url.pathname}${url.search}` : "/"
}

// ------------------------------------------------------------------------------------------------------------- the app

const application = ({ options, access, assets, behind, run }: Application): Hono<Bindings> => {
  /** A proxy with TLS in front may say so. */
  const isSecure = (c: Asking): boolean =>
    options.tls !== null ||
    options.publicUrl?.startsWith("https:") === true ||
    c.req.header("x-forwarded-proto")?.split(",")[0]?.trim().toLowerCase() === "https"
  const slots = Semaphore.makeUnsafe(pagesAtOnce)

  const askedOf = (c: Asking): Access.AccessRequest => ({
    method: c.req.method,
    address: c.env.incoming.socket.remoteAddress,
    header: (name) => c.req.header(name),
    httpVersion: c.env.incoming.httpVersion,
    cookie: getCookie(c, cookies.session)
  })
  const setOurs = (c: Asking, name: string, value: string, maxAge: number) =>
    setCookie(c, name, value, { path: "/", httpOnly: true, sameSite: "Strict", secure: isSecure(c), maxAge })

  /** What the page itself asks for again shows nothing once, and is not led to a form to log in. */
  const isAgain = (c: Asking) => c.req.header("hx-request") === "true"

  const show = async (c: Asking, shown: Page, session: string | null): Promise<Response> => {
    const said = isAgain(c) ? undefined : getCookie(c, cookies.said)
    if (said !== undefined) deleteCookie(c, cookies.said, { path: "/", secure: isSecure(c) })
    const text = await layout({
      title: shown.title,
      section: shown.section,
      body: shown.body,
      isLive: shown.isLive !== false,
      said: said ?? null,
      logOutToken: session === null || session === "" ? null : access.formToken(session),
      hasMenu: session !== null,
      version: options.version,
      assets
    })
    c.header("Tributary-Assets", assets.version)
    return c.html(text, shown.status ?? 200)
  }
  const goTo = (c: Asking, to: string, said: string | null): Response => {
    if (said !== null) setOurs(c, cookies.said, said, saidSeconds)
    return c.redirect(to, 303)
  }

  /** Who asks, or what they are answered instead. */
  const admit = async (c: Asking): Promise<Granted | Response> => {
    const verdict = await run(access.judge(askedOf(c)), c.req.raw.signal)
    switch (verdict._tag) {
      case "Granted":
        return verdict
      case "Away":
        return show(c, c.req.method === "POST" ? notDone : away, null)
      case "Refused":
        if (verdict.retryAfterSeconds !== undefined) c.header("Retry-After", String(verdict.retryAfterSeconds))
        if (verdict.status === 401) c.header("WWW-Authenticate", "Bearer")
        return show(c, refusal(verdict.status, verdict.message), null)
      case "LogIn":
        return toLogin(c)
    }
  }
  const toLogin = (c: Asking): Response | Promise<Response> => {
    const { pathname, search } = new URL(c.req.url)
    const login = `/login?next=${encodeURIComponent(c.req.method === "GET" ? pathname + search : "/")}`
    if (isAgain(c)) return c.body(null, 401, { "HX-Redirect": login })
    // A link from elsewhere comes without the session's cookie; asked for again from here it comes with it.
    if (c.req.header("sec-fetch-site") === "cross-site" && c.req.header("sec-fetch-mode") === "navigate") {
      return c.html(
        html`<!doctype html>
          <html lang="en">
            <title>Tributary</title
            ><meta http-equiv="refresh" content="0" />
          </html>`
      )
    }
    return c.redirect(login, 303)
  }

  /** The fields of a form that is believed, or what is answered instead. */
  const formOf = async (c: Asking, session: string): Promise<URLSearchParams | Response> => {
    const type = c.req.header("content-type")?.split(";")[0]?.trim().toLowerCase()
    if (type !== "application/x-www-form-urlencoded") {
      return show(c, refusal(415, "Only forms are taken here."), session)
    }
    const text = await bodyOf(c.req.raw)
    if (text === null) return show(c, refusal(413, `A form has at most ${bodyBytesMax / 1024} KB.`), session)
    const form = new URLSearchParams(text)
    const doubt = access.doubt(askedOf(c), session, form.get("form_token"))
    return doubt === null ? form : show(c, refusal(403, doubt), session)
  }

  /** What was told of last, so that a page that is asked for every two seconds does not fill the log. */
  let told = ""
  const tell = (sentence: string) =>
    Effect.suspend(() => {
      if (sentence === told) return Effect.void
      told = sentence
      return Effect.logWarning(sentence)
    })

  const answerOf = (
    route: Route,
    request: Omit<PageRequest, "now" | "companies" | "background">
  ): Effect.Effect<Answer> => {
    const isAction = route.method === "POST"
    const back = behind()
    if (back === null) return Effect.succeed(isAction ? notDone : away)
    const { companies, background, context, pages } = back
    const handled = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ now: Date }>`select tributary.now() as now`
      return yield* route.handle({ ...request, now: row!.now, companies, background })
    })
    const read = Effect.flatMap(pages, (reader) => {
      const once = transaction(Effect.andThen(asReader(reader), handled)).pipe(
        Effect.provideService(SqlClient.SqlClient, reader.sql)
      )
      // A table that was made since the last grant.
      return Effect.catchIf(
        once,
        (error) => DatabaseError.from("page")(error).code === insufficientPrivilege,
        () => Effect.andThen(reader.grant, once)
      )
    })
    return (isAction || route.asksSource === true ? handled : slots.withPermit(read)).pipe(
      Effect.timeoutOrElse({
        duration: isAction ? actionMaxMs : pageMaxMs,
        orElse: () => Effect.succeed(isAction ? notCertain : slow)
      }),
      Effect.tap(() =>
        Effect.sync(() => {
          told = ""
        })
      ),
      Effect.catch((error: PageError | SqlError | DatabaseError) => {
        if (error instanceof PageError) return Effect.succeed(refusal(error.status, error.message))
        const { message, code, isRetryable } = DatabaseError.from("page")(error)
        const shown = isAction ? notCertain : isRetryable ? away : code === statementTimedOut ? slow : failed
        return Effect.as(tell(`The page ${route.path} could not be made: ${message}`), shown)
      }),
      Effect.catchDefect((defect) =>
        Effect.as(Effect.logError(`The page ${route.path} could not be made`, Cause.die(defect)), broken)
      ),
      Effect.provideContext(context)
    )
  }

  const handle = (route: Route) => async (c: Asking) => {
    const admitted = await admit(c)
    if (admitted instanceof Response) return admitted
    const { session, by } = admitted
    if (route.method === "POST" && by !== "session") return show(c, refusal(403, Access.readingOnly[by]), session)
    const form = route.method === "POST" ? await formOf(c, session) : new URLSearchParams()
    if (form instanceof Response) return form
    const answer = await run(
      answerOf(route, {
        path: c.req.param(),
        query: new URL(c.req.url).searchParams,
        form,
        datasets: options.datasets,
        permit:
          by === "session"
            ? { _tag: "Acting", formToken: access.formToken(session) }
            : { _tag: "Reading", reason: Access.readingOnly[by] },
        by: "the page"
      }),
      // What somebody asked to be done is not given up because they went away.
      route.method === "POST" ? new AbortController().signal : c.req.raw.signal
    )
    return answer._tag === "Redirect" ? goTo(c, answer.to, answer.said) : show(c, answer, session)
  }

  const app = new Hono<Bindings>()
  app.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'", "data:"],
        connectSrc: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"]
      },
      // A form from a page without a referrer says that it comes from nowhere.
      referrerPolicy: "same-origin",
      xFrameOptions: "DENY",
      strictTransportSecurity: options.tls === null ? false : "max-age=31536000"
    })
  )
  app.use(compress())
  app.use(async (c, next) => {
    await next()
    if (!c.res.headers.has("Cache-Control")) c.res.headers.set("Cache-Control", "no-store")
  })
  app.use(etag())
  app.use(async (c, next) =>
    ["GET", "HEAD", "POST"].includes(c.req.method)
      ? next()
      : c.text("Only GET, HEAD and POST.\n", 405, { Allow: "GET, HEAD, POST" })
  )

  app.get("/assets/:version/:name", (c) => {
    const asset = assets.read(c.req.param("version"), c.req.param("name"))
    return asset === undefined
      ? c.text("There is nothing here.\n", 404)
      : c.body(asset.text, 200, {
          "Content-Type": asset.type,
          "Cache-Control": "public, max-age=31536000, immutable"
        })
  })

  if (access.hasPassword) {
    app.get("/login", async (c) => {
      const verdict = await run(access.judge(askedOf(c)), c.req.raw.signal)
      const next = nextOf(c.req.query("next"))
      if (verdict._tag === "Granted") return c.redirect(next, 303)
      if (verdict._tag === "Away") return show(c, away, null)
      return show(c, loginPage(access.formToken(Access.noSession), next, null, 200), null)
    })
    app.post("/login", async (c) => {
      const verdict = await run(access.judge(askedOf(c)), c.req.raw.signal)
      if (verdict._tag === "Away") return show(c, notDone, null)
      const form = await formOf(c, Access.noSession)
      if (form instanceof Response) return form
      const next = nextOf(form.get("next"))
      const outcome = await run(access.logIn(askedOf(c), form.get("password") ?? ""), c.req.raw.signal)
      const again = (problem: string, status: PageStatus) =>
        show(c, loginPage(access.formToken(Access.noSession), next, problem, status), null)
      switch (outcome._tag) {
        case "Open":
          setOurs(c, cookies.session, outcome.cookie, Access.sessionCacheMs / 1000)
          return c.redirect(next, 303)
        case "Away":
          return show(c, notDone, null)
        case "Wrong":
          return again("That is not the password.", 401)
        case "TooMany":
          c.header("Retry-After", String(outcome.retryAfterSeconds))
          return again(`Too many wrong passwords. Try again in ${outcome.retryAfterSeconds} s.`, 429)
      }
    })
  } else {
    app.get("/open", async (c) => {
      const outcome = await run(access.openLink(askedOf(c), c.req.query("token") ?? ""), c.req.raw.signal)
      if (outcome._tag === "Away") return show(c, away, null)
      if (outcome._tag !== "Open") return show(c, refusal(403, oldLink), null)
      setOurs(c, cookies.session, outcome.cookie, Access.sessionMs / 1000)
      return c.redirect("/", 303)
    })
  }
  app.post("/logout", async (c) => {
    const admitted = await admit(c)
    if (admitted instanceof Response) return admitted
    const form = await formOf(c, admitted.session)
    if (form instanceof Response) return form
    const isEnded = await run(access.logOut(admitted.session, form.has("everywhere")), new AbortController().signal)
    if (!isEnded) return show(c, notDone, admitted.session)
    deleteCookie(c, cookies.session, { path: "/", secure: isSecure(c) })
    return c.redirect(access.hasPassword ? "/login" : "/", 303)
  })

  for (const route of routes) app.on(route.method, route.path, handle(route))
  app.notFound(async (c) => {
    const admitted = await admit(c)
    if (admitted instanceof Response) return admitted
    return show(c, refusal(404, "No page has this address."), admitted.session)
  })
  app.onError(async (error, c) => {
    // Whoever asked went away, so that the page was given up.
    if (c.req.raw.signal.aborted) return c.body(null, 500)
    await run(
      Effect.logError("A request for a page could not be handled", Cause.die(error)),
      new AbortController().signal
    )
    return show(c, broken, null)
  })
  return app
}

/** The first statement of a transaction: from here on it cannot write. */
const asReader = ({ sql, role }: Reader.Pages) =>
  sql`select set_config('transaction_read_only', 'on', true),
             set_config('statement_timeout', ${String(statementMaxMs)}, true),
             set_config('role', coalesce(${role}::text, current_setting('role')), true)`

/** SQLSTATE of what the reader may not read. */
const insufficientPrivilege = "42501"
/** SQLSTATE of a statement that took longer than it may. */
const statementTimedOut = "57014"
