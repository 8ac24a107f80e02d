/** The HTTP application of the pages: headers of every answer, assets, and one handler for each route. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { Hono } from "hono"
import { compress } from "hono/compress"
import { etag } from "hono/etag"
import type { Datasets } from "../warehouse/Table.ts"
import { forbidStoring, restrictBrowsers, serveAsset } from "../web/Headers.ts"
import { readingOnly } from "./Access.ts"
import { broken, refusal } from "./ErrorPages.ts"
import * as AssistantRoute from "./AssistantRoute.ts"
import { addLoginRoutes } from "./LoginRoutes.ts"
import type { FormAccess, Route } from "./Page.ts"
import { runPage } from "./PageRunner.ts"
import {
  admit,
  type Bindings,
  type Exchange,
  type Granted,
  type PageServer,
  readerZone,
  readForm,
  redirectTo,
  show
} from "./PageServer.ts"
import { routes } from "./Routes.ts"

/** An open page is requested so rarely that producing it takes at most this share of a core. */
const openPageShareMax = 0.004
const refreshMsMin = 2_000
const refreshMsMax = 60_000

/** No text of the warehouse has this character, and Postgres refuses a parameter with it. */
const hasNul = (values: Iterable<string>): boolean => [...values].some((value) => value.includes("\0"))

/** The minimum time until the next refresh of a page that took this long. */
const refreshIntervalMs = (elapsedMs: number): number =>
  Math.ceil(Math.min(refreshMsMax, Math.max(refreshMsMin, elapsedMs / openPageShareMax)))

const setHeaders = (app: Hono<Bindings>, { hasTls, monotonicMs }: PageServer): void => {
  app.use(async (exchange, next) => {
    const beganMs = monotonicMs()
    await next()
    exchange.header("Tributary-Refresh-Ms", String(refreshIntervalMs(monotonicMs() - beganMs)))
  })
  app.use(restrictBrowsers(hasTls))
  app.use(compress())
  app.use(forbidStoring)
  app.use(etag())
  app.use(async (exchange, next) =>
    ["GET", "HEAD", "POST"].includes(exchange.req.method) || exchange.req.path === AssistantRoute.path
      ? next()
      : exchange.text("Only GET, HEAD and POST.\n", 405, { Allow: "GET, HEAD, POST" })
  )
}

const formAccessOf = ({ access }: PageServer, { by, session }: Granted): FormAccess =>
  by === "session"
    ? { _tag: "Acting", formToken: access.formToken(session) }
    : { _tag: "Reading", reason: readingOnly[by] }

const handleRoute = async (
  server: PageServer,
  datasets: Datasets,
  route: Route,
  exchange: Exchange
): Promise<Response> => {
  const admitted = await admit(server, exchange)
  if (admitted instanceof Response) return admitted
  const { session, by } = admitted
  const isAction = route.method === "POST"
  if (isAction && by !== "session") return show(server, exchange, refusal(403, readingOnly[by]), session)
  const form = isAction ? await readForm(server, exchange, session) : new URLSearchParams()
  if (form instanceof Response) return form
  const path = exchange.req.param()
  const query = new URL(exchange.req.url).searchParams
  if (hasNul([...Object.values(path), ...query.values(), ...form.values()])) {
    return show(server, exchange, refusal(400, "The request has a NUL character, which no name or text has."), session)
  }
  const answer = await server.run(
    runPage(server.runner, route, {
      path,
      query,
      form,
      datasets,
      zone: readerZone(exchange),
      formAccess: formAccessOf(server, admitted)
    }),
    // An action continues when the browser disconnects.
    isAction ? new AbortController().signal : exchange.req.raw.signal
  )
  return answer._tag === "Redirect"
    ? redirectTo(server, exchange, answer.to, answer.notice)
    : show(server, exchange, answer, session)
}

const handleUnknownPath = async (server: PageServer, exchange: Exchange): Promise<Response> => {
  const admitted = await admit(server, exchange)
  if (admitted instanceof Response) return admitted
  return show(server, exchange, refusal(404, "No page has this address."), admitted.session)
}

const handleError = async (server: PageServer, exchange: Exchange, error: Error): Promise<Response> => {
  // The browser disconnected, so that the page was cancelled.
  if (exchange.req.raw.signal.aborted) return exchange.body(null, 500)
  await server.run(
    Effect.logError("A request for a page could not be handled", Cause.die(error)),
    new AbortController().signal
  )
  return show(server, exchange, broken, null)
}

export const make = (server: PageServer, datasets: Datasets): Hono<Bindings> => {
  const app = new Hono<Bindings>()
  setHeaders(app, server)
  app.get("/assets/:version/:name", serveAsset(server.assets))
  addLoginRoutes(app, server)
  AssistantRoute.add(app, server)
  for (const route of routes) {
    app.on(route.method, route.path, (exchange) => handleRoute(server, datasets, route, exchange))
  }
  app.notFound((exchange) => handleUnknownPath(server, exchange))
  app.onError((error, exchange) => handleError(server, exchange, error))
  return app
}
